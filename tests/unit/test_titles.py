"""Titles and names in quotation marks are told from passages by their form and the words beside them."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.text.quotations import find_quotations
from pytest_ragmetrics.text.titles import looks_like_title


@pytest.mark.parametrize(
    "text",
    [
        'She liked "The Turn of the Screw".',
        'She liked "The Turn of the Screw," too.',
        "See “Learning from Simulated Images through Adversarial Training” of 2017.",
        'They chanted "No Taxation without Representation."',
        'The second season of "Hello, My Twenties!" began.',
        'Another John, "John of Patmos", wrote it.',
        'The runner-up of "Big Brother 18" left.',
        'He wrote "Harry Potter and the Philosopher \'s Stone" .',
        'their song "how you remind me" was first.',
        'The article "How to train your dragon at home" explains it.',
        'An essay titled *"On being late again"* explains it.',
        'The "On being late again" episode is short.',
        'He read the "On being late again" essay.',
        "Der Roman „Der alte Mann und das Meer“ ist gut, und die Kritik war es auch.",
        "Das ist nicht „The Turn of the Screw“, und das ist gut.",
        "Die „Europäische Zentralbank Frankfurt“ ist nicht groß, und die Zinsen sind hoch.",
        "La novela «Cien años de soledad» es larga.",
        "Le roman « À la recherche du temps perdu » est long.",
        "Elle a lu « Les Fleurs du Mal » hier.",
        "Elle aime « d’Artagnan et L’Étranger ».",
        "Il romanzo «Il nome della rosa» è di Eco.",
        "O livro “Memórias póstumas de um autor” é bom.",
        "В романе «Война и мир» много героев.",
        "Песня «Я спросил у ясеня» известна.",
        "Η ταινία «Ζορμπάς ο Έλληνας» είναι γνωστή.",
        "Powieść „Sto lat samotności” jest znana.",
        "Boken ”Pippi går ombord” är känd.",
        '"İnce Memed ve dağlar" adlı roman ünlü.',
        "小説「吾輩は猫である」は有名だ。",
        "夏目漱石の『吾輩は猫である』は有名だ。",
        "「ノルウェイの森」という小説を読んだ。",
        "电影“霸王别姬的故事”很有名。",
        "《“霸王别姬的故事”》",
        "영화 “기생충의 모든 것”은 유명하다.",
        "“기생충의 모든 것”이라는 영화를 봤다.",
        "قرأت كتاب «ألف ليلة وليلة» أمس.",
        'קראתי את הספר "סיפור על אהבה וחושך" אתמול.',
        'उन्होंने फिल्म "दिल वाले दुल्हनिया ले जाएंगे" देखी।',
        "เขาอ่านหนังสือ “สี่แผ่นดินของเรา” แล้ว",
    ],
)
def test_title_is_told_by_form_or_by_the_word_beside_it(text: str) -> None:
    """Capitals where a language writes them in titles, else the word for a work."""
    assert [looks_like_title(text, quotation) for quotation in find_quotations(text)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        'The article says "The pump needs two minutes to fill".',
        'The article: "The pump needs two minutes".',
        'In her book, "Nobody had inspected it" stands first.',
        'In the book "Nobody had inspected it." stands first.',
        'In the film "I saw the light. Then it went" is said.',
        'The film\'s "Nobody had inspected it" is known.',
        'The book "found that nobody had inspected the pier".',
        'On Facebook "Nobody had inspected it" stood.',
        'He used the word "Nobody had seen it" there.',
        'It says "In the Netherlands the canals were frozen".',
        'He answered "Mr. Smith left on Monday".',
        'He threw it "Over and under and over".',
        'The name means "Reap; from Therasia."',
        'A sign says "DO NOT OPEN THE DOOR".',
        'He shouted "the Great Wall of China".',
        'It says "Anna Smith, Bert Jones, Carl Brown, Dora White, Emil Black, Fred Green, Gert Gray and Hans Blue".',
        'The book "Nobody who came to the pier that day had ever inspected it at all".',
        "They write:\n\n> The Turn of the Screw",
        "Im Bericht steht „Die Sicherheit der Kinder und Lehrer“, und das ist alles.",
        "Er sagte „Nach Umständen, Herr“, und das ist nicht gut.",
        "Er sagte „Mein Neffe, Leon von Poppen“, und das ist nicht gut.",
        "Er sagte „Kinder spielen auf der Straße“, und das ist nicht gut.",
        "Elle a dit « Personne ne l’a inspecté ».",
        "Il a écrit « La Banque a fermé en mars ».",
        "Он сказал «никто не проверял опору».",
        "彼は『誰も調べなかった』と言った。",
        "彼は「誰も調べなかった」と言った。",
        "他说“没有人检查过桥墩”。",
        "她在书中写道“没有人检查过桥墩”。",
        "电影“没有人检查过桥墩。桥塌了”。",
        "책에서 “아무도 검사하지 않았다”라고 했다.",
        "그는 “아무도 검사하지 않았다”라는 말을 했다.",
        "قال «لم يفحصها أحد قط».",
    ],
)
def test_passage_is_no_title(text: str) -> None:
    """Sentences, phrases in small letters, lists and rows of capitals, with the word for a work near them or not."""
    assert [looks_like_title(text, quotation) for quotation in find_quotations(text)] == [False]
