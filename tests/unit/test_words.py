"""Words, sentences and what of a text goes to a terminal."""

from __future__ import annotations

from importlib import import_module
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.text.sentences import MAX_SENTENCE, guess_language, sentence_table, split_sentences
from pytest_ragmetrics.text.unicode import printable, printable_lines, shortened
from pytest_ragmetrics.text.words import WordsIn, content_words, count_words, ends_word

#: Words are white-space tokens with a letter or digit, and pairs of characters where there are no spaces.
WORDS = [
    # Marks and signs between spaces are no words, however many there are.
    *(("", 0), (" \n\t", 0), ("Herons wade at dawn", 4), ("the heron -- a grey one -- waits ...", 6)),
    *(("it's a well-known 2.5-kilo pike", 5), ("elle\u00a0attend\u202fl’aube", 3), ("[…] (…) — * _", 0)),
    ("снег и лёд", 3),
    # Half of the characters are counted, rounded down.
    *(("鳥", 0), ("青鷺", 1), ("青鷺が立つ", 2), ("アオサギがいる", 3), ("นกกระสา", 3), ("ນົກຍາງ", 3), ("ខ្យង", 2)),
    ("ငှက်", 2),
    # What a token has outside the scripts without spaces makes it a word, its other characters are halved.
    *(("青鷺 heron 青鷺", 3), ("heron青鷺", 2), ("青heron鷺 waits", 3), ("青 鷺", 1), ("2024年11月", 2)),
]


def test_words_are_counted_in_every_script() -> None:
    assert [(text, count_words(text)) for text, _ in WORDS] == WORDS


#: Korean words with the particles that may follow them, and with ends that only look like particles.
PARTICLES = {
    "보일러": ["를", "가", "는", "와", "로", "의", "에서는", "까지도", "라고", "", "."],
    "사실": ["을", "이", "은", "과", "로", "로는", "이라고", "만의", "”이라고"],
    "바뀐다": ["고", "는", "라고는", "면서"],
}
NO_PARTICLES = {"사": "과", "보일러": "을", "사실": "는데", "서울": "역", "나": "무는", "바뀌": "지"}


def test_a_korean_word_ends_before_its_particle() -> None:
    pairs = [(word, end) for word, ends in PARTICLES.items() for end in ends]
    assert [pair for pair in pairs if not ends_word(f"{''.join(pair)} 그", len(pair[0]))] == []
    assert [word for word, end in NO_PARTICLES.items() if ends_word(f"{word}{end} 그", len(word))] == []


@given(st.text(alphabet="ab9 -’.\n\té"), st.text(alphabet="ab9 -’.\n\té"))
def test_words_of_two_texts_add_up(first: str, second: str) -> None:
    assert count_words(f"\n {first}\u00a0 ") == count_words(first)
    assert count_words(f"{first} {second}") == count_words(first) + count_words(second)


def test_words_are_found_in_any_form_of_them() -> None:
    for text in permutations(("carpenters", "car", "carp", "carpets")):
        known = WordsIn(" ".join(text))
        found = [word.text for word in content_words("car cars care carpeting card cat caravans") if word in known]
        assert found == ["car", "cars", "care", "carpeting", "card"]


sentencex: Any = import_module("sentencex")

MARKS = " \n\t.!?\"'“”«»()。、[]-#*>|1aA Ä中ะ।។😀\r\u2028\ud800"
TEXTS = st.text(st.one_of(st.characters(), st.sampled_from(MARKS)), max_size=200)


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    "marked",
    [
        "Dr. Oda paid $3.50 in the U.S. last year.¦ He left.",
        '"Stop!" she said.¦ Nobody did.',
        "Am 3. Oktober kam Hr. Lenz bzw. seine Frau.¦ Das war z. B. gut.",
        "M. Dupont est arrivé.¦ Il a dit « Bonjour. » et partit.",
        "El Sr. Pérez vive en la ciudad.¦ No es de aquí.",
        "今天天气很好。¦我们去公园吧！¦好吗？",
        "今日は天気がいい。¦公園へ行こう。",
        "ذهب الولد إلى المدرسة.¦ هل عاد؟¦ نعم، عاد.",
        "वह घर गया।¦ वह सो गया।",
        "Πού πας;¦ Στο σπίτι.",
        "Это г. Москва.¦ А. С. Пушкин жил там.",
        "នេះ។¦ បាទ។",
        # A sentence goes on in the next line of a paragraph.
        "This paragraph was wrapped by whoever wrote it at some\nColumn of the page.",
        "The end of the line is not\nthe end of the sentence.",
        "> A quotation that was written over more than one line of\n> the mail.",
        "- an item that is too long for its line and goes on in the\n  Next one",
        "今天我们去了那个很大很漂亮的公园里面玩了\n一整天。",
    ],
)
def test_sentences_end_where_their_language_ends_them(marked: str) -> None:
    assert sentences(marked.replace("¦", "")) == [part.strip(" ->") for part in marked.split("¦")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("# Moths\nThey fly", ["Moths", "They fly"]), ("Moths\n=====\nThey fly", ["Moths", "They fly"])),
        ("- by night\n* by day\n+ never", ["by night", "by day", "never"]),
        ("1. Heat the oven. Wait.\n2. Bake.\n(a) eat", ["1. Heat the oven.", "Wait.", "2. Bake.", "(a) eat"]),
        ("| Name | Age |\n|------|:---:|\n| Ann  | 5   |", ["| Name | Age |", "| Ann  | 5   |"]),
        ("Before\n\n---\n\nAfter", ["Before", "After"]),
        ("Name: Ann of the long and winding road\nAge: 5", ["Name: Ann of the long and winding road", "Age: 5"]),
        ("Title\r\nText", ["Title", "Text"]),
        ("**Bold:** text here. More.", ["**Bold:** text here.", "More."]),
        *((text, []) for text in ("", "  \n ", "---", "# ", "```\n```")),
    ],
)
def test_the_structure_of_a_page_ends_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(TEXTS)
def test_no_character_of_a_text_is_lost_or_told_twice(text: str) -> None:
    end_before = 0
    for start, end in split_sentences(text):
        assert end_before <= start < end
        assert text[start:end] == text[start:end].strip()
        assert not any(map(str.isalnum, text[end_before:start]))
        end_before = end
    assert not any(map(str.isalnum, text[end_before:]))


def test_an_endless_sentence_is_cut_between_clauses() -> None:
    text = "and then the river rose again, " * 100
    parts = sentences(text)
    assert all(part.endswith("again,") and len(part) <= MAX_SENTENCE for part in parts)
    assert " ".join(parts) == text.strip()


@pytest.mark.parametrize("unit", ["今天。", "word "])
def test_the_splitter_is_given_windows(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The splitter, whose time is not linear, never sees a long text, nor any text more than a few times."""
    given: list[int] = []
    segment = sentencex.segment

    def measured(language: str, window: str) -> list[str]:
        given.append(len(window))
        return list(segment(language, window))

    monkeypatch.setattr(sentencex, "segment", measured)
    text = unit * (50_000 // len(unit))
    split_sentences(text)
    assert max(given) <= 2 * MAX_SENTENCE
    assert sum(given) <= 3 * len(text)


def test_the_table_numbers_the_sentences_of_all_contexts() -> None:
    contexts = ["One. Two.", " ", "Three."]
    table = sentence_table(contexts)
    expected = [(0, 0, 4, "One."), (0, 5, 9, "Two."), (2, 0, 6, "Three.")]
    assert [(row.context, row.start, row.end, row.text) for row in table] == expected
    assert sentence_table(tuple(contexts)) is table


LANGUAGES = {
    "en": ["", "1234 !!", "The cat is on the mat."],
    "fr": ["Le chat est sur la table."],
    "de": ["Die Katze ist nicht auf der Matte.", "Il cane e il gatto, der die das."],
    "it": ["Il cane, il gatto, il topo e il lupo, der die das."],
    "es": ["La casa no es de los niños."],
    "ja": ["漢字とかな"],
    "zh": ["简体中文"],
    "ar": ["القاهرة"],
}


def test_the_language_is_guessed_from_script_and_words() -> None:
    """Script decides, then common words; French is split by the rules of English on purpose."""
    found = [(text, language) for language, texts in LANGUAGES.items() for text in texts]
    assert [(text, guess_language(text)) for text, _ in found] == found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *(("plain", "plain"), ("\x1b[31mred\x1b[0m", "[31mred[0m"), ("a\x00b\x07c\x7fd\x9be", "abcde")),
        *(("left\u202eright\u2066x\u2069", "leftrightx"), ("two\r\nlines\tand\u2028more", "two lines and more")),
        *(("lone \ud800 surrogate", "lone surrogate"), ("back\b\b\b\bspace\x7f", "backspace")),
        *(("a\U000e0069\U000e0067\U000e006e\U000e007fb\U000e0001", "ab"), ("кот 猫 قط é", "кот 猫 قط é")),
    ],
)
def test_controls_are_stripped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_stay_lines() -> None:
    assert printable_lines("a\tb\nc\rd\x0be\x85f\u2028g\b\x1b[2J\U000e0041") == "a\tb\nc d e f g[2J"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_becomes_one_encodable_line(text: str) -> None:
    assert not {"\n", "\x1b"} & set(printable(text).encode().decode())


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(min_value=8, max_value=60))
def test_shortened_keeps_both_ends(text: str, limit: int) -> None:
    short = shortened(text, limit)
    if len(text) <= limit:
        assert short == text
    else:
        head, tail = short.split(" … ", 1) if text.count(" … ") == 0 else (short[:1], short[-1:])
        assert len(short) == limit
        assert text.startswith(head)
        assert text.endswith(tail)
