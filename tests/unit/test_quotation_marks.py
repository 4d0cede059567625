"""Reading quotation marks: what their neighbours tell, what each reading costs, and which marks belong together."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.text.quotations import (
    NEVER,
    Costs,
    Guillemets,
    Mark,
    MarkPlace,
    pair_marks,
    read_paragraphs,
    reading_costs,
)


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


def costs(text: str) -> Costs:
    """Return what the readings of the one mark of a text cost."""
    return reading_costs(only_mark(text), text, Guillemets.OUTWARD)


@pytest.mark.parametrize(
    ("texts", "cheaper", "dearer"),
    [
        # what is elided at the beginning of a word leaves an apostrophe
        (("the 'tis", "in '98", "give 'em", "give ‘em", "rock 'n roll", "they 're", "'s ist"), "stray", "opening"),
        (("the 'matter", "a 'Why", "a ‘matter", 'a "tis', "a “98"), "opening", "stray"),
        # a possessive, an elision and a measure close only where nothing else does
        (("the boys' tea", "James’ tea", "goin' home", 'a 12" pipe', "6' tall", "f'(x)"), "stray", "closing"),
        (("12” pipe",), "stray", "closing"),
        (("the end.' he", "the end’ he", "the boys' and", "the boys', so", 'the end" he'), "closing", "stray"),
    ],
)
def test_the_neighbours_of_a_mark_make_a_reading_cheaper(texts: tuple[str, ...], cheaper: str, dearer: str) -> None:
    """Elisions, possessives and measures are rather left alone, other marks rather open or close."""
    assert [text for text in texts if getattr(costs(text), cheaper) >= getattr(costs(text), dearer)] == []
    assert dearer != "closing" or all(costs(text).closing < NEVER for text in texts)


@pytest.mark.parametrize(
    ("text", "opening_and_closing"),
    [('say "so', (0, NEVER)), ("„so", (0, NEVER)), ('so" he', (NEVER, 0)), ("so」", (NEVER, 0))],
)
def test_a_mark_whose_side_is_plain_has_one_reading(text: str, opening_and_closing: tuple[int, int]) -> None:
    """What can only open never closes, what can only close never opens."""
    assert costs(text)[:2] == opening_and_closing


def pairs(text: str) -> list[str]:
    """Return what the outermost pairs of a text enclose."""
    return [text[pair.opening.end : pair.closing.start] for pair in pair_marks(text, 0, len(text))]


@pytest.mark.parametrize(
    ("text", "enclosed"),
    [
        ("“a b" + '" c', ["a b"]),
        ('"a b” c', ["a b"]),
        ('„a b" c', ["a b"]),
        ("``a b” c", ["a b"]),
        ("‘a b' c", ["a b"]),
        ("“a 'b c'” d", ["a 'b c'"]),
        ("“a b« c", []),
        ("「a b』 c", []),
        ("«a b” c", []),
    ],
)
def test_marks_of_one_kind_close_each_other(text: str, enclosed: list[str]) -> None:
    """Straight and curly marks may be mixed, marks of different shapes may not."""
    assert pairs(text) == enclosed


@pytest.mark.parametrize(
    ("text", "enclosed"),
    [
        ("« a » b « c »", ["a", "c"]),
        ("» A « , b » C «", ["A", "C"]),
        ("a » , b. « C » d", ["C"]),
        ("a » , b. « C", []),
        ("» A » , b » C »", ["A", "C"]),
        ("»A« b »C«", ["A", "C"]),
        ("»A» b »C»", ["A", "C"]),
        ("«A» b «C»", ["A", "C"]),
        ("»A‹b›«", ["A‹b›"]),
    ],
)
def test_the_whole_text_tells_which_way_guillemets_point(text: str, enclosed: list[str]) -> None:
    """Inward and alike are read where that leaves fewer marks alone than outward."""
    assert [inside.strip() for inside in pairs(text)] == enclosed


def test_only_the_piece_between_the_offsets_is_read() -> None:
    """Marks before and after it pair with nothing in it."""
    text = '"a" "b" "c"'
    assert [pair.opening.start for pair in pair_marks(text, 2, 9)] == [4]


@pytest.mark.parametrize("depth", [1, 2])
def test_nesting_as_deep_as_people_write_is_one_pair(depth: int) -> None:
    """Of quotations in quotations in quotations the outermost one is found."""
    assert pairs(f"{'“‘' * depth}a{'’”' * depth}") == [f"‘{'“‘' * (depth - 1)}a{'’”' * (depth - 1)}’"]


def test_many_readings_are_followed_side_by_side() -> None:
    """A quotation is found behind a long row of marks that could all open one."""
    text = f"{'„x ‚x «x ‹x ``x 「x 『x 〝x ' * 30}\n\nHe wrote “so it is”."
    assert pairs(text) == ["so it is"]
