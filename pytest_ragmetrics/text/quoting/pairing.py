"""Finding which quotation marks belong together.

The marks are read once, in order, following side by side all readings that are still possible (which quotations are
open) and keeping of those that agree the cheapest. So an inch mark, an apostrophe or a mark without a partner
is left alone exactly when that explains the rest best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_ragmetrics.text.quoting.marks import (
    CLOSING_TAG,
    LATEX_CLOSING,
    LATEX_OPENING,
    LATEX_SINGLE,
    LEFT_ANGLE,
    LEFT_SINGLE,
    LOW_SINGLE,
    OPENING_TAG,
    RIGHT_ANGLE,
    RIGHT_SINGLE,
    SINGLE,
    STRAIGHT,
    Mark,
    Paragraph,
    read_paragraphs,
)
from pytest_ragmetrics.text.quoting.pricing import NEVER, STRAY, Guillemets, price

#: By opening mark: what closes it, and what that costs where conventions are mixed.
_CLOSED_BY: dict[str, dict[str, int]] = {
    STRAIGHT: {STRAIGHT: 0, "”": 20, "“": 50, LATEX_CLOSING: 30},
    "“": {"”": 0, STRAIGHT: 20, LATEX_CLOSING: 20, "“": 40},
    "”": {"”": 0, STRAIGHT: 30, "“": 30},
    "„": {"“": 0, "”": 0, STRAIGHT: 10, LATEX_CLOSING: 0},
    LATEX_OPENING: {LATEX_CLOSING: 0, STRAIGHT: 10, "”": 10},
    LATEX_CLOSING: {LATEX_CLOSING: 0, STRAIGHT: 30},
    "«": {"»": 0},
    "»": {"«": 0, "»": 0},
    LEFT_ANGLE: {RIGHT_ANGLE: 0},
    RIGHT_ANGLE: {LEFT_ANGLE: 0, RIGHT_ANGLE: 0},
    LEFT_SINGLE: {RIGHT_SINGLE: 0, SINGLE: 20},
    LATEX_SINGLE: {SINGLE: 0, RIGHT_SINGLE: 10},
    LOW_SINGLE: {LEFT_SINGLE: 0, RIGHT_SINGLE: 0, SINGLE: 10},
    RIGHT_SINGLE: {RIGHT_SINGLE: 0},
    SINGLE: {SINGLE: 0, RIGHT_SINGLE: 20},
    "「": {"」": 0},
    "『": {"』": 0},
    "〝": {"〞": 0},
    OPENING_TAG: {CLOSING_TAG: 0},
}
#: What begins the next paragraph of a quotation; in Spanish and old French it is the closing mark.
_REOPENED_BY = {opening: {opening} for opening in _CLOSED_BY} | {"“": {"“", "”"}, "«": {"«", "»"}, LATEX_SINGLE: set()}
_REOPENING = 10
_REOPENING_SINGLE = 45
_NESTING = 3
_NESTING_SAME = 40
_DEEPEST = 3
#: What a stray mark costs more inside a quotation, so that of two opening marks the one nearer to the end is taken.
_INSIDE = 5
_INSIDE_FROM = 60
#: What »so« must save to be preferred to «so»: more than a mark that has lost its partner.
_RARER = 150
#: More readings than this at a time occur only in texts made to have them.
_MOST_READINGS = 12
_FEW_READINGS = 4


class Pair(NamedTuple):
    """Two marks that belong together, and the pair before them."""

    opening: Mark
    closing: Mark
    earlier: Pair | None


class _Reading(NamedTuple):
    """One way to read the text so far: what it costs, the outermost open mark, the last pair found."""

    cost: int = 0
    opening: Mark | None = None
    pair: Pair | None = None


#: The glyphs that are open, outermost first, with the cheapest way to get there.
_Readings = dict[tuple[str, ...], _Reading]


def pair_marks(prose: str, start: int, end: int) -> list[Pair]:
    """Return the outermost pairs of quotation marks between two offsets of a text without markup, in order."""
    paragraphs = list(read_paragraphs(prose, start, end))
    best = min((_read_all(paragraphs, prose, way) for way in _ways(paragraphs)), key=lambda reading: reading.cost)
    pairs: list[Pair] = []
    pair = best.pair
    while pair:
        pairs.append(pair)
        pair = pair.earlier
    return pairs[::-1]


def _ways(paragraphs: list[Paragraph]) -> Sequence[Guillemets]:
    """Return the ways in which the guillemets of a text may point, the likelier one first."""
    glyphs = {mark.glyph for marks, _ in paragraphs for mark in marks}
    if glyphs.isdisjoint(("»", RIGHT_ANGLE)):
        return (Guillemets.OUTWARD,)
    return (Guillemets.ALIKE,) if glyphs.isdisjoint(("«", LEFT_ANGLE)) else (Guillemets.OUTWARD, Guillemets.INWARD)


def _read_all(paragraphs: list[Paragraph], prose: str, guillemets: Guillemets) -> _Reading:
    """Return the cheapest reading of the paragraphs in which nothing is left open."""
    readings: _Readings = {(): _Reading(cost=_RARER if guillemets is Guillemets.INWARD else 0)}
    for marks, led in paragraphs:
        carried = _carried_over(readings, marks[0]) if led else {}
        readings = {(): readings[()]}
        for mark in marks:
            readings = _read(readings, mark, prose, guillemets)
            for opened, reading in carried.items():
                _keep(readings, opened, *reading)
            carried = {}
    return readings[()]


def _carried_over(readings: _Readings, mark: Mark) -> _Readings:
    """Return what stays open at the end of a paragraph because the next one begins with its mark again."""
    carried: _Readings = {}
    for opened, reading in readings.items():
        if opened and (mark.glyph == opened[0] or _reopens(mark, opened[0])):
            # What is quoted inside must have been closed.
            unclosed = STRAY * (len(opened) - 1)
            _keep(carried, opened[:1], reading.cost + unclosed + _reopening(mark), reading.opening, reading.pair)
    return carried


def _read(readings: _Readings, mark: Mark, prose: str, guillemets: Guillemets) -> _Readings:
    """Read one more mark in every way that is possible."""
    opening, closing, stray = price(mark, prose, guillemets)
    glyph = mark.glyph
    kept: _Readings = {}
    for opened, (cost, first, pair) in readings.items():
        inside = _INSIDE if opened and stray >= _INSIDE_FROM else 0
        _keep(kept, opened, cost + stray + inside, first, pair)
        if opening < NEVER and len(opened) < _DEEPEST:
            nesting = 0 if not opened else _NESTING_SAME if opened[-1] == glyph else _NESTING
            _keep(kept, (*opened, glyph), cost + opening + nesting, first or mark, pair)
        if first is None:
            continue
        if closing < NEVER and glyph in _CLOSED_BY[opened[-1]]:
            total = cost + closing + _CLOSED_BY[opened[-1]][glyph]
            if opened[1:]:
                _keep(kept, opened[:-1], total, first, pair)
            else:
                _keep(kept, (), total, None, Pair(first, mark, pair))
        if not opened[1:] and _reopens(mark, opened[0]) and mark.earlier(prose) == "\n":
            _keep(kept, opened, cost + _reopening(mark), first, pair)
    return kept if len(kept) <= _FEW_READINGS else _promising(kept)


def _keep(readings: _Readings, opened: tuple[str, ...], cost: int, first: Mark | None, pair: Pair | None) -> None:
    if opened not in readings or cost < readings[opened].cost:
        readings[opened] = _Reading(cost, first, pair)


def _reopens(mark: Mark, opening: str) -> bool:
    # Where marks are set with spaces, one that also closes may stand at the beginning of a line.
    return mark.glyph in _REOPENED_BY[opening] and not (mark.after.isspace() and mark.glyph in _CLOSED_BY[opening])


def _reopening(mark: Mark) -> int:
    return _REOPENING_SINGLE if mark.glyph in (SINGLE, RIGHT_SINGLE) else _REOPENING


def _promising(readings: _Readings) -> _Readings:
    """Drop the readings that leaving their last open mark alone would have made cheaper, then the dearest."""
    kept = [
        opened
        for opened, reading in readings.items()
        if opened and (opened[:-1] not in readings or reading.cost <= readings[opened[:-1]].cost + STRAY)
    ]
    if len(kept) > _MOST_READINGS:
        kept = sorted(kept, key=lambda opened: readings[opened].cost)[:_MOST_READINGS]
    return {(): readings[()]} | {opened: readings[opened] for opened in kept}
