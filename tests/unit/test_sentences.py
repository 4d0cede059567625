"""Splitting into sentences."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.text.sentences import MAX_SENTENCE, guess_language, sentence_table, split_sentences

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
