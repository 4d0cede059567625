"""Finding which marks belong together."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.text.quotations import pair_marks


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
