"""Finding the quotations of a text, whatever marks they are written in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_ragmetrics.text.quoting.marks import may_have_marks
from pytest_ragmetrics.text.quoting.markup import BlockQuote, lift_block_quotes, mask_markup
from pytest_ragmetrics.text.quoting.pairing import Pair, pair_marks
from pytest_ragmetrics.text.words import count_words

_EMPHASIS = "*_\u2060 \t\r\n"
_BEFORE_ATTRIBUTION = "-\u2013—―("


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotation:
    """What stands between an opening mark and its closing mark; offsets are code points of the text.

    ``text`` is ``response[start:end]`` with no white space at either end; ``marks`` are the opening and
    closing mark as they are written, ``(">", "")`` for a Markdown block quote; ``words`` is its length.
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
    if not may_have_marks(text):
        return []
    prose, blocks = lift_block_quotes(mask_markup(text))
    found: list[Quotation] = []
    done = 0
    for block in blocks:
        found += (_quotation(text, prose, pair) for pair in pair_marks(prose, done, block.start))
        found += _block_quotations(text, prose, block)
        done = block.end
    found += (_quotation(text, prose, pair) for pair in pair_marks(prose, done, len(prose)))
    return [quotation for quotation in found if quotation.text]


def _quotation(text: str, prose: str, pair: Pair) -> Quotation:
    opening, closing, _ = pair
    # The prose, unlike the text, has a space where markup stands for one.
    inside = prose[opening.end : closing.start]
    start = opening.end + len(inside) - len(inside.lstrip())
    end = max(start, opening.end + len(inside.rstrip()))
    marks = (text[opening.start : opening.end], text[closing.start : closing.end])
    return Quotation(text=text[start:end], start=start, end=end, marks=marks, words=count_words(text[start:end]))


def _block_quotations(text: str, prose: str, block: BlockQuote) -> Iterator[Quotation]:
    """Yield the block as one quotation, without its marks when it is one in marks, and what its attribution quotes."""
    pairs = list(pair_marks(prose, block.start, block.end))
    inside = [pair for pair in pairs if pair.opening.start < block.last]
    if len(inside) == 1 and _is_whole(prose, block, inside[0]):
        yield _quotation(text, prose, inside[0])
    else:
        quoted = text[block.first : block.last]
        yield Quotation(text=quoted, start=block.first, end=block.last, marks=(">", ""), words=count_words(quoted))
    yield from (_quotation(text, prose, pair) for pair in pairs if pair.opening.start >= block.last)


def _is_whole(prose: str, block: BlockQuote, pair: Pair) -> bool:
    before = prose[block.first : pair.opening.start].strip(_EMPHASIS)
    after = prose[pair.closing.end : block.last].strip(_EMPHASIS)
    return not before and (after in ("", ".", ",") or after[0] in _BEFORE_ATTRIBUTION)
