"""Making characters visible."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.report.page.visible import visible

_ANY = st.text(st.characters(exclude_categories=()))


@given(_ANY)
def test_what_is_shown_can_be_written_and_steers_nothing(text: str) -> None:
    """Whatever comes in, valid UTF-8 without controls, bidirectional overrides or halves of characters comes out."""
    shown = visible(text)
    shown.encode("utf-8")
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in shown if character not in "\n\t")
    assert not any(
        unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI") for c in shown
    )


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"], exclude_characters="\U000e0000")))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    """Letters, marks, digits, signs and spaces of any script are not touched."""
    assert visible(text) == text


def test_escapes_say_which_character_it_was() -> None:
    """A developer recognises the escape from any string literal."""
    assert visible("\0 \x1b[1m \r \u202e \ud83d \ufffe \U0001ffff \U000e0041") == (
        r"\x00 \x1b[1m \r \u202e \ud83d \ufffe \U0001ffff \U000e0041"
    )


def test_line_ends_and_tabs_are_layout() -> None:
    """A line end of any system is one line feed."""
    assert visible("a\r\nb\n\tc") == "a\nb\n\tc"
