"""Counting words in scripts with and without spaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.text.words import count_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        (" \n\t", 0),
        ("Herons wade at dawn", 4),
        ("the heron -- a grey one -- waits ...", 6),
        ("it's a well-known 2.5-kilo pike", 5),
        ("elle\u00a0attend\u202fl’aube", 3),
        ("[…] (…) — * _", 0),
        ("снег и лёд", 3),
    ],
)
def test_a_word_is_a_token_with_a_letter_or_a_digit(text: str, words: int) -> None:
    """Marks and signs between spaces are no words, however many there are."""
    assert count_words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("鳥", 0),
        ("青鷺", 1),
        ("青鷺が立つ", 2),
        ("アオサギがいる", 3),
        ("นกกระสา", 3),
        ("ນົກຍາງ", 3),
        ("ខ្យង", 2),
        ("ငှက်", 2),
    ],
)
def test_two_characters_of_a_script_without_spaces_are_a_word(text: str, words: int) -> None:
    """Half of the characters are counted, rounded down."""
    assert count_words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [("青鷺 heron 青鷺", 3), ("heron青鷺", 2), ("青heron鷺 waits", 3), ("青 鷺", 1), ("2024年11月", 2)],
)
def test_scripts_in_one_text_are_counted_each_in_its_way(text: str, words: int) -> None:
    """What a token has outside the scripts without spaces makes it a word, its other characters are halved."""
    assert count_words(text) == words


@given(st.text(alphabet="ab9 -’.\n\té"), st.text(alphabet="ab9 -’.\n\té"))
def test_words_of_two_texts_add_up(first: str, second: str) -> None:
    """A space between two texts neither makes nor hides a word."""
    assert count_words(f"{first} {second}") == count_words(first) + count_words(second)


@given(st.text())
def test_outer_white_space_does_not_count(text: str) -> None:
    """A text has as many words with white space around it as without."""
    assert count_words(f"\n {text}\u00a0 ") == count_words(text)
