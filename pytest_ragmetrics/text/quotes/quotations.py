"""Finding the quotations of a text, in the marks of any convention.

Markup and code are blanked out and block quotes lifted; then the marks of each paragraph are read from left to right.
A mark may open a quotation, close one, or be neither (an apostrophe, a measure). Each reading has a cost, which depends
on the mark and its neighbours; the cheapest way to read the whole text is taken. The metric on quoted spans aligns what
is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import NamedTuple

from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.markup import BlockQuote, drop_unseen, lift_block_quotes, mask_markup
from pytest_ragmetrics.text.quotes.marks import (
    CLOSED_BY,
    NEVER,
    REOPENED_BY,
    RIGHT_SINGLE,
    SINGLE,
    STRAY,
    Costs,
    Guillemets,
    Mark,
    Paragraph,
    has_mark,
    is_in_unspaced,
    paragraphs_of,
    reading_costs,
)
from pytest_ragmetrics.text.unicode import check_text
from pytest_ragmetrics.text.words import count_words

_EMPHASIS = f"*_{unicode.WORD_JOINER} \t\r\n"
_BEFORE_ATTRIBUTION = f"-{unicode.PAUSES}("
# What it costs to leave alone the first mark of a text, read as a closing one, and the last, read as an opening one.
_CUT = 40
_REOPENING = 10
_REOPENING_SINGLE = 45
_NESTING = 3
_NESTING_SAME = 40
# »so« in «so» or the other way round: two quotations side by side are likelier than one with its mirror image inside.
_NESTING_MIRRORED = 100
_MIRRORED = frozenset((*permutations(unicode.GUILLEMETS[:2]), *permutations(unicode.GUILLEMETS[2:])))
_DEEPEST = 3
# What a stray mark costs more inside a quotation, so that of two opening marks the one nearer to the end is taken.
_INSIDE = 5
_INSIDE_FROM = 60
# What »so« must save to be preferred to «so»: more than a mark that has lost its partner.
_RARER = 150
# More readings than this at a time occur only in texts made to have them.
_MOST_READINGS = 12
_FEW_READINGS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotation:
    """What is between an opening mark and its closing mark; offsets are code points of the text.

    ``text`` has no white space at either end; ``marks`` are the opening and closing mark as they are written,
    ``(">", "")`` for a block quote; ``words`` is its length.
    """

    text: str
    start: int
    end: int
    marks: tuple[str, str]
    words: int


def find_quotations(text: str) -> list[Quotation]:
    """Find the outermost quotations of a text, of any length, in the order they start.

    >>> [quotation.text for quotation in find_quotations("It's “the boys’ ‘own’ tea”, isn't it?")]
    ['the boys’ ‘own’ tea']
    """
    check_text("text", text)
    if not has_mark(text):
        return []
    seen, offsets = drop_unseen(text)
    prose, blocks = lift_block_quotes(mask_markup(seen))
    found: list[Quotation] = []
    done = 0
    for block in blocks:
        found += (_quotation(seen, prose, pair) for pair in _pair_marks(prose, done, block.start))
        found += _block_quotations(seen, prose, block)
        done = block.end
    found += (_quotation(seen, prose, pair) for pair in _pair_marks(prose, done, len(prose)))
    found = [quotation for quotation in found if quotation.text]
    return [_located(quotation, text, offsets) for quotation in found] if offsets else found


def _located(quotation: Quotation, text: str, offsets: list[int]) -> Quotation:
    start, end = offsets[quotation.start], offsets[quotation.end - 1] + 1
    return replace(quotation, text=text[start:end], start=start, end=end, words=count_words(text[start:end]))


def _quotation(text: str, prose: str, pair: Pair) -> Quotation:
    opening, closing, _ = pair
    # The prose, unlike the text, has a space where markup makes one.
    inside = prose[opening.end : closing.start]
    start = opening.end + len(inside) - len(inside.lstrip())
    end = max(start, opening.end + len(inside.rstrip()))
    marks = (text[opening.start : opening.end], text[closing.start : closing.end])
    return Quotation(text=text[start:end], start=start, end=end, marks=marks, words=count_words(text[start:end]))


def _block_quotations(text: str, prose: str, block: BlockQuote) -> Iterator[Quotation]:
    """Yield the block as one quotation, without its marks when it is one in marks, and what its attribution quotes."""
    pairs = _pair_marks(prose, block.start, block.end)
    inside = [pair for pair in pairs if pair.opening.start < block.last]
    before = prose[block.first : inside[0].opening.start].strip(_EMPHASIS) if inside else ""
    after = prose[inside[0].closing.end : block.last].strip(_EMPHASIS) if inside else ""
    if len(inside) != 1 or before or not (after in ("", ".", ",") or after[0] in _BEFORE_ATTRIBUTION):
        quoted = text[block.first : block.last]
        yield Quotation(text=quoted, start=block.first, end=block.last, marks=(">", ""), words=count_words(quoted))
        pairs = pairs[len(inside) :]
    yield from (_quotation(text, prose, pair) for pair in pairs)


class Pair(NamedTuple):
    """Two marks that belong together, and the pair before them."""

    opening: Mark
    closing: Mark
    earlier: Pair | None


#: One way to read the text so far: what it costs, the outermost open mark, the last pair found.
_Reading = tuple[int, "Mark | None", "Pair | None"]
#: The glyphs that are open, outermost first, with the cheapest way to get there.
_Readings = dict[tuple[str, ...], _Reading]


def _pair_marks(prose: str, start: int, end: int) -> list[Pair]:
    """Return the outermost pairs of quotation marks between two offsets of a text without markup, in order."""
    paragraphs = list(paragraphs_of(prose, start, end))
    marks = [mark for marks, _ in paragraphs for mark in marks]
    if not marks:
        return []
    # An excerpt may begin and end inside a quotation.
    edges = (_edge(marks, prose) if start == 0 else None, _edge(marks[::-1], prose) if end == len(prose) else None)
    left, right = (
        any(mark.glyph in side for mark in marks) for side in (unicode.GUILLEMETS[::2], unicode.GUILLEMETS[1::2])
    )
    best = _read_all(paragraphs, prose, "right" if right and not left else "out", edges)
    if left and right and best[0] > _RARER:
        best = min(best, _read_all(paragraphs, prose, "in", edges), key=lambda reading: reading[0])
    pairs: list[Pair] = []
    pair = best[2]
    while pair:
        pairs.append(pair)
        pair = pair.earlier
    return pairs[::-1]


def _edge(marks: Sequence[Mark], prose: str) -> Mark | None:
    """Return the first mark that is no apostrophe, unless the spaces round it leave open what it is."""
    if marks[0].is_torn(prose) and not any(map(_is_loose, marks[1:-1])):
        return marks[0]
    for mark in marks:
        if mark.glyph not in (SINGLE, RIGHT_SINGLE):
            doubtful = mark.glyph in unicode.GUILLEMETS and is_in_unspaced(mark)
            return None if doubtful or _is_loose(mark) else mark
    return None


def _is_loose(mark: Mark) -> bool:
    return mark.before.isspace() and mark.after.isspace()


def _read_all(
    paragraphs: list[Paragraph], prose: str, guillemets: Guillemets, edges: tuple[Mark | None, Mark | None]
) -> _Reading:
    """Return the cheapest reading of the paragraphs in which nothing is left open; ``edges`` are where text is cut."""
    readings: _Readings = {(): (_RARER if guillemets == "in" else 0, None, None)}
    first, last = edges
    for marks, led in paragraphs:
        carried = _carried_over(readings, marks[0]) if led else {}
        readings = {(): readings[()]}
        for mark in marks:
            costs = reading_costs(mark, prose, guillemets)
            if mark in (first, last):
                costs = _cut_costs(costs, is_first=mark is first, is_torn=mark.is_torn(prose))
            readings = _read(readings, mark, costs, prose)
            for opened, reading in carried.items():
                _keep(readings, opened, reading)
            carried = {}
    return readings[()]


def _cut_costs(costs: Costs, *, is_first: bool, is_torn: bool) -> Costs:
    """Return the costs of a mark that may have lost its partner where the text is cut."""
    opening, closing, stray = costs
    if is_torn:
        return Costs(opening, closing + _CUT, min(stray, _CUT))
    return Costs(opening, closing, min(stray, (closing if is_first else opening) + _CUT))


def _carried_over(readings: _Readings, mark: Mark) -> _Readings:
    """Return what stays open at the end of a paragraph because the next one begins with its mark again."""
    carried: _Readings = {}
    for opened, (cost, first, pair) in readings.items():
        if opened and (mark.glyph == opened[0] or _reopens(mark, opened[0])):
            # What is quoted inside must have been closed.
            unclosed = STRAY * (len(opened) - 1)
            _keep(carried, opened[:1], (cost + unclosed + _reopening(mark), first, pair))
    return carried


def _read(readings: _Readings, mark: Mark, costs: Costs, prose: str) -> _Readings:
    """Read one more mark in every way that is possible."""
    opening, closing, stray = costs
    glyph = mark.glyph
    inside = _INSIDE if stray >= _INSIDE_FROM else 0
    kept: _Readings = {}
    for opened, (cost, first, pair) in readings.items():
        if first is None:
            _keep(kept, (), (cost + stray, None, pair))
            if opening < NEVER:
                _keep(kept, (glyph,), (cost + opening, mark, pair))
            continue
        _keep(kept, opened, (cost + stray + inside, first, pair))
        last, depth = opened[-1], len(opened)
        if opening < NEVER and depth < _DEEPEST:
            nesting = _NESTING_SAME if last == glyph else _NESTING_MIRRORED if (last, glyph) in _MIRRORED else _NESTING
            _keep(kept, (*opened, glyph), (cost + opening + nesting, first, pair))
        if closing < NEVER and glyph in CLOSED_BY[last]:
            total = cost + closing + CLOSED_BY[last][glyph]
            _keep(kept, opened[:-1], (total, first, pair) if depth > 1 else (total, None, Pair(first, mark, pair)))
        if depth == 1 and _reopens(mark, last) and mark.earlier(prose) == "\n":
            _keep(kept, opened, (cost + _reopening(mark), first, pair))
    return kept if len(kept) <= _FEW_READINGS else _promising(kept)


def _keep(readings: _Readings, opened: tuple[str, ...], reading: _Reading) -> None:
    known = readings.get(opened)
    if known is None or reading[0] < known[0]:
        readings[opened] = reading


def _reopens(mark: Mark, opening: str) -> bool:
    # Where marks are set with spaces, one that also closes may begin a line.
    return mark.glyph in REOPENED_BY[opening] and not (mark.after.isspace() and mark.glyph in CLOSED_BY[opening])


def _reopening(mark: Mark) -> int:
    return _REOPENING_SINGLE if mark.glyph in (SINGLE, RIGHT_SINGLE) else _REOPENING


def _promising(readings: _Readings) -> _Readings:
    """Drop the readings that leaving their last open mark alone would have made cheaper, then the dearest."""
    kept = [
        opened
        for opened, reading in readings.items()
        if opened and (opened[:-1] not in readings or reading[0] <= readings[opened[:-1]][0] + STRAY)
    ]
    if len(kept) > _MOST_READINGS:
        kept = sorted(kept, key=lambda opened: readings[opened][0])[:_MOST_READINGS]
    return {(): readings[()]} | {opened: readings[opened] for opened in kept}
