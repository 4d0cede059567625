"""Weighing the readings of a mark against each other."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.text.quotations import NEVER, Guillemets, Prices, price, read_paragraphs


def prices(text: str) -> Prices:
    """Return the prices of the one mark of a text."""
    (mark,) = [mark for paragraph in read_paragraphs(text, 0, len(text)) for mark in paragraph.marks]
    return price(mark, text, Guillemets.OUTWARD)


@pytest.mark.parametrize("text", ["the 'tis", "in '98", "give 'em", "give ‘em", "rock 'n roll", "they 're", "'s ist"])
def test_an_elision_is_rather_left_alone_than_opened(text: str) -> None:
    """What is elided at the beginning of a word leaves an apostrophe."""
    assert prices(text).stray < prices(text).opening


@pytest.mark.parametrize("text", ["the 'matter", "a 'Why", "a ‘matter", 'a "tis', "a “98"])
def test_another_mark_before_a_word_is_rather_opened(text: str) -> None:
    """A mark that begins no elision opens a quotation."""
    assert prices(text).opening < prices(text).stray


@pytest.mark.parametrize(
    "text", ["the boys' tea", "James’ tea", "goin' home", 'a 12" pipe', "6' tall", "f'(x)", "12” pipe"]
)
def test_a_possessive_an_elision_and_a_measure_are_rather_left_alone_than_closed(text: str) -> None:
    """They close a quotation only where one is open that nothing else closes."""
    assert prices(text).stray < prices(text).closing < NEVER


@pytest.mark.parametrize("text", ["the end.' he", "the end’ he", "the boys' and", "the boys', so", 'the end" he'])
def test_another_mark_behind_a_word_is_rather_closed(text: str) -> None:
    """After a stop, or before a word that nobody owns, a mark closes."""
    assert prices(text).closing < prices(text).stray


@pytest.mark.parametrize(("text", "opens"), [('say "so', True), ('so" he', False), ("„so", True), ("so」", False)])
def test_a_mark_whose_side_is_plain_has_one_reading(text: str, opens: bool) -> None:  # noqa: FBT001 - a parameter
    """What can only open never closes, what can only close never opens."""
    assert ((prices(text).opening, prices(text).closing) == (0, NEVER)) is opens
    assert ((prices(text).opening, prices(text).closing) == (NEVER, 0)) is not opens
