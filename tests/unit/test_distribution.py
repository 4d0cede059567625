"""The small picture of a metric's scores."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.report.page.distribution import BASE, WIDTH, distribute

_SCORES = st.lists(st.tuples(st.floats(-1, 5), st.booleans()), min_size=1, max_size=40)


@given(_SCORES, st.lists(st.floats(-1, 5), max_size=3))
def test_everything_is_inside_the_picture(scores: list[tuple[float, bool]], bounds: list[float]) -> None:
    """Whatever the range of the scores, bars, thresholds and mean stay on the axis."""
    picture = distribute(scores, bounds)
    assert picture is not None
    for bar in picture.bars:
        assert 0 <= bar.x < bar.x + bar.width <= WIDTH
        assert 0 <= bar.y < bar.y + bar.height <= BASE + 0.02
    assert all(0 <= x <= WIDTH for x in (*picture.thresholds, picture.mean))


def test_bars_grow_with_their_scores_and_stack() -> None:
    """Three scores in a bin, two of which fell short, are a low bar under a lower one."""
    picture = distribute([(0.5, True), (0.51, True), (0.52, False), (1.0, False)], [])
    assert picture is not None
    short, held, top = picture.bars
    assert (short.x, short.short, held.x, held.short, top.x) == (100, True, 100, False, 190)
    assert short.height == 2 * held.height == 2 * top.height
    assert short.y == held.y + held.height


def test_a_score_on_an_edge_belongs_to_the_bin_above() -> None:
    """0.3 stands right of a threshold of 0.3, although binary fractions are what they are."""
    picture = distribute([(step / 20, False) for step in range(20)], [0.3])
    assert picture is not None
    assert [bar.x for bar in picture.bars] == [step * 10 for step in range(20)]


def test_the_text_says_what_the_picture_shows() -> None:
    """Who cannot see it is told number, range, mean, thresholds and failures."""
    picture = distribute([(0.2, True), (0.9, False), (0.7, False)], [0.8, 0.7])
    assert picture is not None
    assert picture.text == "3 scores between 0.20 and 0.90, mean 0.600, threshold 0.70 and 0.80, 1 fell short"


def test_no_scores_no_picture() -> None:
    """An empty axis says nothing."""
    assert distribute([], [0.5]) is None
