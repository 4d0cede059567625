"""The pieces of a text under its highlights, and what of it is folded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.report.highlights import Highlight, HighlightKind, cut, fits, fold

KINDS: tuple[HighlightKind, ...] = ("missing", "missed", "found", "against", "evidence", "nearest")
RANGES = st.integers(-3, 30)
HIGHLIGHTS = st.lists(
    st.builds(Highlight, start=RANGES, end=RANGES, kind=st.sampled_from(KINDS), number=st.integers(1, 9)), max_size=8
)
WORDS = "word " * 1000


def mark(start: int, end: int, kind: HighlightKind = "found", number: int | None = 1, score: int = 0) -> Highlight:
    return Highlight(start=start, end=end, kind=kind, number=number, score=score)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=25), HIGHLIGHTS, st.lists(st.integers(0, 25)))
def test_pieces_make_up_the_marked_text(text: str, marks: list[Highlight], edges: list[int]) -> None:
    pieces, offset = cut(text, marks, [edge for edge in edges if edge <= len(text)]), 0
    fitting = sorted(repr(m) for m in marks if fits(m.start, m.end, text))
    assert "".join(piece.text for piece in pieces) == text
    assert sorted(repr(m) for piece in pieces for m in piece.closes) == fitting
    for piece in pieces:
        for index in range(offset, offset + len(piece.text)):
            covering = [m for m in marks if fits(m.start, m.end, text) and m.start <= index < m.end]
            assert sorted(map(repr, piece.marks)) == sorted(map(repr, covering))
        offset += len(piece.text)


def test_a_piece_looks_as_the_worst_of_each_score() -> None:
    pieces = cut("abcdef", [mark(0, 6), mark(2, 4, "missing", 2), mark(3, 5, "missed", None, score=1)])
    assert [(p.text, dict(p.looks), p.verdicts) for p in pieces] == [
        ("ab", {0: "found"}, ("0.1",)),
        ("c", {0: "missing"}, ("0.1", "0.2")),
        ("d", {0: "missing", 1: "missed"}, ("0.1", "0.2")),
        ("e", {1: "missed", 0: "found"}, ("0.1",)),
        ("f", {0: "found"}, ("0.1",)),
    ]


@given(st.integers(0, 12_000), st.lists(st.tuples(st.integers(0, 9_000), st.integers(1, 4_000)), max_size=4))
def test_folding_keeps_the_text(length: int, ranges: list[tuple[int, int]]) -> None:
    text = ("some words and " * 900)[:length]
    marks = [mark(start, start + size, "missing") for start, size in ranges]
    stretches = fold(text, marks)
    assert "".join(piece.text for stretch in stretches for piece in stretch.pieces) == text
    hidden = [piece for stretch in stretches if stretch.folded for piece in stretch.pieces]
    assert all(m.end - m.start > 2000 for piece in hidden for m in piece.marks)


@pytest.mark.parametrize(
    ("text", "highlights", "stretches"),
    [
        # Next to a highlight words stay whole, and a stretch that would hide little is shown.
        (f"{WORDS}HERE {WORDS}", [mark(5000, 5004)], [(4885, True), (239, False), (4881, True)]),
        ("x" * 250 + "HERE" + "y" * 250, [mark(250, 254)], [(504, False)]),
        ("x" * 2100, [], [(2100, False)]),
        ("x" * 5000, [], [(2000, False), (3000, True)]),
        ("x" * 9000, [mark(0, 9000)], [(1500, False), (7000, True), (500, False)]),
        # Only what is not ok counts, and words without a number only where there is nothing else.
        ("x" * 3000, [mark(100, 110), mark(2900, 2910, "missing")], [(2780, True), (220, False)]),
        ("x" * 3000, [mark(100, 110, "missing"), mark(2900, 2910, "missed", None)], [(230, False), (2770, True)]),
        ("x" * 600, [mark(0, 9, "missed", None)], [(129, False), (471, True)]),
    ],
    ids=["around", "short", "short without", "long without", "a long highlight", "faults", "a word", "words"],
)  # fmt: skip
def test_long_stretches_are_folded(text: str, highlights: list[Highlight], stretches: list[tuple[int, bool]]) -> None:
    assert [(stretch.length, stretch.folded) for stretch in fold(text, highlights)] == stretches
