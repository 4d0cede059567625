"""What goes to a terminal cannot steer it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.text.unicode import printable, printable_lines, shortened


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
