"""Reading marks and their neighbours."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.text.quotations import Mark, MarkPlace, may_have_marks, read_paragraphs


def only_mark(text: str) -> Mark:
    """Return the one mark of a text."""
    (paragraph,) = read_paragraphs(text, 0, len(text))
    (mark,) = paragraph.marks
    return mark


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('say "so', MarkPlace.OPENS),
        ('"so', MarkPlace.OPENS),
        ('("so', MarkPlace.OPENS),
        ('say **"so', MarkPlace.OPENS),
        ('say "...so', MarkPlace.OPENS),
        ('say ".net', MarkPlace.OPENS),
        ('say "--so', MarkPlace.OPENS),
        ('so" he', MarkPlace.CLOSES),
        ('so."', MarkPlace.CLOSES),
        ('so**"**, he', MarkPlace.CLOSES),
        ('so"--he', MarkPlace.CLOSES),
        ('so--" he', MarkPlace.CLOSES),
        ('so"/he', MarkPlace.CLOSES),
        ('a " b', MarkPlace.LOOSE),
        ('" so', MarkPlace.LEANS_OPEN),
        ('a\n  " so', MarkPlace.LEANS_OPEN),
        ('so "', MarkPlace.LEANS_CLOSED),
        ('so " , he', MarkPlace.LEANS_CLOSED),
        ('so " ... and', MarkPlace.LEANS_CLOSED),
        ('so ", he', MarkPlace.LEANS_CLOSED),
        ('he: " so', MarkPlace.LOOSE),
        ('he:" so', MarkPlace.LEANS_CLOSED),
        ('he:"so', MarkPlace.LEANS_OPEN),
        ('he--"so', MarkPlace.LEANS_OPEN),
        ('so"[1]', MarkPlace.LEANS_CLOSED),
        ('so,"he', MarkPlace.LEANS_CLOSED),
        ('so."He', MarkPlace.TIGHT),
        ('so"he', MarkPlace.TIGHT),
        ('a \u00a0"so', MarkPlace.OPENS),
        ('a "\u00a0so', MarkPlace.OPENS),
        ('so\u00a0" he', MarkPlace.CLOSES),
    ],
)
def test_neighbours_tell_what_a_mark_may_be(text: str, place: MarkPlace) -> None:
    """White space, brackets, stops and dashes on either side are looked at, emphasis is looked past."""
    assert only_mark(text).place(text) is place


@pytest.mark.parametrize(
    ("text", "glyph", "written"),
    [
        ("＂", '"', "＂"),
        ("&quot;", '"', "&quot;"),
        ("&#0034;", '"', "&#0034;"),
        ("&#x201D;", "”", "&#x201D;"),
        (r"\"", '"', r"\""),
        (r"\u00ab", "«", r"\u00ab"),
        (",,", "„", ",,"),
        ("''", "''", "''"),
        ("``", "``", "``"),
        ("so'''", "''", "''"),
        ("﹁", "「", "﹁"),
        ("‛", "‘", "‛"),
    ],
)
def test_a_mark_may_be_written_in_many_ways(text: str, glyph: str, written: str) -> None:
    """Entities, escapes, doubled signs and other shapes stand for the same marks."""
    mark = only_mark(text)
    assert (mark.glyph, text[mark.start : mark.end]) == (glyph, written)


@pytest.mark.parametrize(
    "text", ["it's l’aube O‘Hara 10'000", "'''", "a, b ` c ``` d", "&amp; &eacute; &#65; \\n", r"\u00e9"]
)
def test_what_is_no_mark_is_not_read(text: str) -> None:
    """Apostrophes inside words, runs of other lengths and entities of other characters are passed over."""
    assert [paragraph.marks for paragraph in read_paragraphs(text, 0, len(text))] == [[]]


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ('"a\n"b', [(2, True)]),
        ('"a\n\n"b', [(1, True), (1, True)]),
        ('"a\r\n \t\r\n  *"b', [(1, True), (1, True)]),
        ('a\n\nb "c', [(0, False), (1, False)]),
        ('"a\n- "b\n2. "c', [(1, True), (1, False), (1, False)]),
        ('"a\n# "b\n| "c', [(1, True), (1, False), (1, False)]),
    ],
)
def test_blank_lines_list_items_headings_and_rows_begin_paragraphs(
    text: str, paragraphs: list[tuple[int, bool]]
) -> None:
    """Only what begins with its mark after a blank line may go on with what was quoted before."""
    assert [(len(marks), led) for marks, led in read_paragraphs(text, 0, len(text))] == paragraphs


@pytest.mark.parametrize(
    ("text", "may_have"), [("No mark. At all!", False), ("it's", True), ("> a", True), ("&quot;", True)]
)
def test_a_text_without_marks_is_told_quickly(text: str, may_have: bool) -> None:  # noqa: FBT001 - a parameter
    """Nothing that could be or begin a mark is in it."""
    assert may_have_marks(text) is may_have
