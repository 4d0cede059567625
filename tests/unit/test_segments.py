"""Cutting texts where marks begin and end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.report.page.segments import Highlight, MarkKind, cut, fits, fold

_KINDS: tuple[MarkKind, ...] = ("missing", "found", "against", "evidence", "nearest")
_MARKS = st.lists(
    st.builds(
        Highlight,
        start=st.integers(-3, 30),
        end=st.integers(-3, 30),
        kind=st.sampled_from(_KINDS),
        number=st.integers(1, 9),
        piece=st.integers(0, 2),
    ),
    max_size=8,
)


def mark(start: int, end: int, kind: MarkKind = "found", number: int = 1) -> Highlight:
    """Return a mark."""
    return Highlight(start=start, end=end, kind=kind, number=number)


@given(st.text(max_size=25), _MARKS)
def test_the_pieces_make_up_the_text(text: str, marks: list[Highlight]) -> None:
    """However marks overlap, nothing is lost, doubled or moved."""
    assert "".join(piece.text for piece in cut(text, marks)) == text


@given(st.text(max_size=25), _MARKS)
def test_every_character_has_the_marks_that_cover_it(text: str, marks: list[Highlight]) -> None:
    """A character is under exactly the marks whose range holds its offset."""
    offset = 0
    for piece in cut(text, marks):
        for index in range(offset, offset + len(piece.text)):
            covering = [m for m in marks if fits(m.start, m.end, text) and m.start <= index < m.end]
            assert sorted(map(repr, piece.marks)) == sorted(map(repr, covering))
        offset += len(piece.text)


@given(st.text(max_size=25), _MARKS)
def test_every_fitting_mark_opens_and_closes_once(text: str, marks: list[Highlight]) -> None:
    """A mark's number is written once where it begins, and once where it ends."""
    fitting = sorted(repr(m) for m in marks if fits(m.start, m.end, text))
    pieces = cut(text, marks)
    assert sorted(repr(m) for piece in pieces for m in piece.opens) == fitting
    assert sorted(repr(m) for piece in pieces for m in piece.closes) == fitting


def test_what_is_wrong_shows_over_what_is_right() -> None:
    """Where a missing span lies in a found one, the reader sees the missing one."""
    pieces = cut("abcdef", [mark(0, 6), mark(2, 4, "missing", 2)])
    assert [(piece.text, piece.mark and piece.mark.kind) for piece in pieces] == [
        ("ab", "found"),
        ("cd", "missing"),
        ("ef", "found"),
    ]


def test_anchors_tell_marks_apart() -> None:
    """A verdict has one mark in the response and any number of pieces of evidence."""
    marks = [mark(0, 1, kind, 4) for kind in _KINDS]
    assert [m.anchor for m in marks] == ["m4", "m4", "e4.0", "e4.0", "n4"]


@given(st.integers(0, 12_000), st.integers(0, 9_000), st.integers(1, 4_000))
def test_folding_keeps_the_text(length: int, start: int, size: int) -> None:
    """Folding hides, it does not remove."""
    text = ("some words and " * 900)[:length]
    pieces = fold(cut(text, [mark(start, start + size)]))
    assert "".join(piece.text for piece in pieces) == text


def test_a_long_text_around_a_mark_is_folded() -> None:
    """Some text next to the mark stays in sight, and words stay whole."""
    text = "word " * 1000 + "HERE" + " word" * 1000
    pieces = fold(cut(text, [mark(5000, 5004)]))
    assert [piece.folded for piece in pieces] == [True, False, False, False, True]
    before, after = pieces[1].text, pieces[3].text
    assert 150 <= len(before) <= 200
    assert before.split(" ")[0] == "word"
    assert 150 <= len(after) <= 200
    assert pieces[4].text.startswith(" word")


def test_a_short_text_is_not_folded() -> None:
    """Hiding a line or two saves nothing."""
    text = "x" * 500 + "HERE" + "y" * 500
    assert not any(piece.folded for piece in fold(cut(text, [mark(500, 504)])))
    assert not any(piece.folded for piece in fold(cut("x" * 2300)))


def test_a_text_without_marks_shows_its_beginning() -> None:
    """Of a long text that nothing points into, the start is in sight."""
    pieces = fold(cut("x" * 5000))
    assert [(len(piece.text), piece.folded) for piece in pieces] == [(2000, False), (3000, True)]


def test_a_monstrous_mark_is_folded_in_the_middle() -> None:
    """A mark over a megabyte keeps its number at the start and its marks all through."""
    pieces = fold(cut("x" * 1_000_000, [mark(0, 1_000_000)]))
    assert [piece.folded for piece in pieces] == [False, True, False]
    assert all(piece.mark for piece in pieces)
    assert [len(piece.opens) for piece in pieces] == [1, 0, 0]
    assert [len(piece.closes) for piece in pieces] == [0, 0, 1]
