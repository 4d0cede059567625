"""Finding an edited quotation: its phrases in order, each with its pieces close together, in one context."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, auto
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple
from unicodedata import normalize

from pytest_ragmetrics.text.characters import is_unspaced
from pytest_ragmetrics.text.folding import PieceComparison, QuotePiece, Tolerance, cut_piece
from pytest_ragmetrics.text.search import Haystack, Passage, stands_alone
from pytest_ragmetrics.text.words import count_words

#: Where words are not parted by spaces, or carry endings, a part of them is enough.
_NEGATING = re.compile(
    r"不|没|沒|無|无|非|未|勿|莫|否|ない|なか[っろ]|なく|ません|ずに|ぬ|ไม่|มิ|ບໍ່|않|없|못|아니"
    r"|n['\u2019\u02bc]t\b|\bn['\u2019\u02bc]\w|\b(?:kein|nessun|ningun|nenhum|żadn|žádn)"
)
_BETWEEN_WORDS = re.compile(
    r"[\s!-&(-/:-@\[-`{-~\u00a1-\u00bf\u060c\u061b\u061f\u0964\u0965\u2010-\u2018\u201a-\u205e\u3001-\u301f]+"
)
_HAN_NUMBER = re.compile(r"[〇零一二三四五六七八九十百千万萬億亿兆两兩半数數几幾]{1,8}[^\W\d_]{0,2}")


def is_licensed(words: str) -> bool:
    """Tell whether a bracket may put these words in, or stand for them: no negation and no number among them.

    >>> [is_licensed(words) for words in ("the company", "not", "kein einziger", "twelve of them", "1914", "不曾")]
    [True, False, False, False, False, False]
    """
    if is_negation(words) or any(char.isdigit() for char in words):
        return False
    found = _words(words)
    return _word_lists()["numbers"].isdisjoint(found) and not any(map(_HAN_NUMBER.fullmatch, found))


def is_negation(words: str) -> bool:
    """Tell whether there is a negation among these words.

    >>> is_negation(", never ,"), is_negation("Isn't it?"), is_negation("always")
    (True, True, False)
    """
    return bool(_NEGATING.search(words.casefold())) or not _word_lists()["negations"].isdisjoint(_words(words))


def _words(text: str) -> list[str]:
    """Return the words of a text, caseless; marks on letters, vowel signs among them, belong to the words."""
    return [
        word for token in _BETWEEN_WORDS.split(normalize("NFC", text.casefold())) if (word := token.strip("'\u2019"))
    ]


@lru_cache(maxsize=1)
def _word_lists() -> Mapping[str, frozenset[str]]:
    text = (files(__package__ or "") / "bracket_words.txt").read_text("utf-8")
    parts = (part.partition("\n") for part in text.split("# ") if part)
    return {name: frozenset(_words(block)) for name, _, block in parts}


#: A part of a quotation this long stands for itself; a shorter one must stand near the others.
_TELLING_WORDS = 3
#: With brackets alone all of it stands in one place, so less is enough.
_TELLING_WORDS_TOGETHER = 2

_ELLIPSIS = r"\.(?:[ \u00a0]?\.){2,}|[\u2026\u22ef]+"
_SIGNS = re.compile(
    rf"(?P<gap>[\[(\uff3b\uff08\u3014]\s*(?:{_ELLIPSIS})\s*[\])\uff3d\uff09\u3015]|{_ELLIPSIS})"
    r"|[\[\uff3b\u3014](?P<words>[^\[\]\uff3b\uff3d\u3014\u3015]{0,200})[\]\uff3d\u3015]"
)
_FOREIGN_SIGNS = frozenset("\u2026\u22ef\uff3b\u3014\u00a0")
# Remarks on the text, and marks of notes: they add nothing to it.
_REMARK = re.compile(
    r"\s*(?:sic!?|recte|[!?]|emphasis (?:added|mine|in (?:the )?original)|[*\u2020\u2021]"
    r"|\^?\d{1,2}(?:\s*[,;\u2013-]\s*\d{1,2})*)?\s*",
    re.IGNORECASE,
)
_LARGE_NOTE = re.compile(r"\s*\^?\d{3}\s*")


class Gap(Enum):
    """What lies between two pieces of a quotation."""

    #: Nothing but punctuation.
    CLOSED = auto()
    #: A few words that a bracket stands for.
    BRACKET = auto()
    #: What an ellipsis left out, beside a piece of only one or two words.
    NEAR = auto()


@dataclass(frozen=True, slots=True)
class Phrase:
    """Pieces that stand close to one another in the source: ``gaps[i]`` lies between ``pieces[i]`` and the next."""

    pieces: tuple[QuotePiece, ...]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class Edited:
    """A quotation with an editor's signs in it: phrases in order, with anything in between.

    ``problem`` says why it cannot be a true quotation, whatever the source says.
    """

    phrases: tuple[Phrase, ...]
    _: KW_ONLY
    has_ellipsis: bool = False
    has_bracket: bool = False
    problem: str | None = None


@dataclass(slots=True)
class _PhraseDraft:
    """A phrase in the making: pieces so far, and the text and the gap before it that will be the next one."""

    pieces: list[QuotePiece] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    words: int = 0
    _text: list[str] = field(default_factory=list)
    _gap: Gap = Gap.CLOSED

    def write(self, text: str) -> None:
        self._text.append(text)

    def close(self, gap: Gap) -> None:
        """End the piece that is being written; a gap follows."""
        text = "".join(self._text)
        self._text.clear()
        piece = cut_piece(text)
        if piece is None:
            # Nothing stands between two gaps, which makes them one, as wide as the wider.
            self._gap = gap if self._gap is Gap.CLOSED else self._gap
            return
        if self.pieces:
            self.gaps.append(self._gap)
        self.pieces.append(piece)
        self.words += count_words(text)
        self._gap = gap

    def join(self, other: _PhraseDraft) -> None:
        """Put another phrase behind this one, close to it."""
        self.gaps += [Gap.NEAR, *other.gaps]
        self.pieces += other.pieces
        self.words = max(self.words, other.words)


def read_edits(span: str, *, swap_case: bool = False) -> Edited | None:
    """Read the ellipses and brackets of a quotation; ``None`` when it has none.

    A letter in brackets at a word is read as part of the word, with ``swap_case`` in the other case.

    >>> edited = read_edits("[W]e left \u2026 before the rain [of May] came")
    >>> [[piece.core for piece in phrase.pieces] for phrase in edited.phrases]
    [['We left', 'before the rain', 'came']]
    """
    signs = list(_SIGNS.finditer(span)) if _may_have_signs(span) else []
    if not signs:
        return None
    drafts = [_PhraseDraft()]
    done = 0
    for sign in signs:
        draft, words = drafts[-1], sign["words"]
        draft.write(span[done : sign.start()])
        done = sign.end()
        if words is None:
            draft.close(Gap.CLOSED)
            # A long run of signs with nothing between them is one.
            drafts += [_PhraseDraft()] if draft.pieces else []
        elif _is_remark(span, sign):
            draft.close(Gap.CLOSED)
        elif _is_inside_word(span, sign):
            draft.write(words.swapcase() if swap_case else words)
        elif is_licensed(words):
            draft.close(Gap.BRACKET)
        else:
            return Edited((), problem="a bracket may not add a negation or a number")
    drafts[-1].write(span[done:])
    drafts[-1].close(Gap.CLOSED)
    brackets = sum(sign["words"] is not None for sign in signs)
    return _assemble(drafts, has_ellipsis=brackets < len(signs), has_bracket=brackets > 0)


def _may_have_signs(span: str) -> bool:
    """Tell, quickly, whether a span may hold brackets or ellipses."""
    return "[" in span or ".." in span or ". ." in span or not (span.isascii() or _FOREIGN_SIGNS.isdisjoint(span))


def _is_remark(span: str, sign: re.Match[str]) -> bool:
    if _REMARK.fullmatch(sign["words"]):
        return True
    # A larger number is that of a note only where it cannot be read as part of the sentence.
    before, after = span[sign.start() - 1 : sign.start()], span[sign.end() : sign.end() + 1]
    return bool(_LARGE_NOTE.fullmatch(sign["words"])) and not (before.isspace() and after.isspace())


def _is_inside_word(span: str, sign: re.Match[str]) -> bool:
    words = sign["words"]
    if not words.isalpha():
        return False
    before, after = span[sign.start() - 1 : sign.start()], span[sign.end() : sign.end() + 1]
    return any(char.isalpha() and not is_unspaced(char) for char in (before, after) if char)


def _assemble(drafts: list[_PhraseDraft], *, has_ellipsis: bool, has_bracket: bool) -> Edited:
    telling = _TELLING_WORDS if has_ellipsis else _TELLING_WORDS_TOGETHER
    if not any(draft.words >= telling for draft in drafts):
        return Edited((), problem="its pieces are too short to tell where they are from")
    phrases: list[_PhraseDraft] = []
    for draft in drafts:
        if not draft.pieces:
            continue
        if phrases and min(draft.words, phrases[-1].words) < _TELLING_WORDS:
            phrases[-1].join(draft)
        else:
            phrases.append(draft)
    done = tuple(Phrase(tuple(phrase.pieces), tuple(phrase.gaps)) for phrase in phrases)
    return Edited(done, has_ellipsis=has_ellipsis, has_bracket=has_bracket)


#: How many bytes of the squeezed text may lie in a gap, and what that means in the text itself.
_WIDTHS = {Gap.CLOSED: 0, Gap.BRACKET: 160, Gap.NEAR: 160}
_MOST_WORDS_IN_BRACKET = 5
_LONGEST_NEGATION = 20
# Places tried for one quotation; only texts made for it have more.
_STEPS, _STEPS_A_PIECE = 1000, 4
_MOST_LOOKED_UP = 32


class FoundPhrase(NamedTuple):
    """Where a quotation stands, piece by piece, and what had to be overlooked."""

    passages: tuple[Passage, ...]
    needed: Tolerance


class _Placed(NamedTuple):
    """A piece at a place: its position in the squeezed text and its passage."""

    start: int
    end: int
    passage: Passage
    needed: Tolerance


class PhraseSearch:
    """One search for one edited quotation; takes a bounded number of steps, however often its pieces occur."""

    def __init__(self, haystack: Haystack, comparison: PieceComparison) -> None:
        self._haystack = haystack
        self._comparison = comparison
        self._steps = 0

    def find(self, edited: Edited) -> FoundPhrase | None:
        """Return where the phrases stand in order inside one context."""
        self._steps = _STEPS + _STEPS_A_PIECE * sum(len(phrase.pieces) for phrase in edited.phrases)
        keys = sorted({piece.key for phrase in edited.phrases for piece in phrase.pieces}, key=len, reverse=True)
        if any(self._haystack.find(key) < 0 for key in keys[:_MOST_LOOKED_UP]):
            return None
        position = self._haystack.find(keys[0])
        while position >= 0 and self._steps > 0:
            start, end = self._haystack.bounds(self._haystack.context_at(position))
            if placed := self._find_in(edited, start, end):
                needed = Tolerance.EXACT
                for piece in placed:
                    needed |= piece.needed
                return FoundPhrase(tuple(piece.passage for piece in placed), needed)
            position = self._haystack.find(keys[0], end)
        return None

    def _find_in(self, edited: Edited, start: int, end: int) -> list[_Placed]:
        placed: list[_Placed] = []
        for phrase in edited.phrases:
            pieces = self._find_phrase(phrase, start, end)
            if not pieces or (placed and self._drops_negation(placed[-1].passage, pieces[0].passage)):
                return []
            placed += pieces
            start = pieces[-1].end
        return placed

    def _find_phrase(self, phrase: Phrase, start: int, end: int) -> list[_Placed]:
        anchor = max(range(len(phrase.pieces)), key=lambda index: len(phrase.pieces[index].key))
        for position in self._haystack.occurrences(phrase.pieces[anchor].key, start, end):
            if self._steps <= 0:
                return []
            here = self._place(phrase.pieces[anchor], position)
            if here is None:
                continue
            before = self._extend_left(phrase, anchor, here, start)
            if before is None:
                continue
            after = self._extend_right(phrase, anchor, here, end)
            if after is not None:
                return [*before, here, *after]
        return []

    def _extend_right(self, phrase: Phrase, anchor: int, here: _Placed, end: int) -> list[_Placed] | None:
        placed: list[_Placed] = []
        for piece, gap in zip(phrase.pieces[anchor + 1 :], phrase.gaps[anchor:], strict=True):
            limit = min(here.end + _WIDTHS[gap] + len(piece.key), end)
            positions = self._haystack.occurrences(piece.key, here.end, limit)
            found = self._first(piece, positions, gap, before=here)
            if found is None:
                return None
            placed.append(found)
            here = found
        return placed

    def _extend_left(self, phrase: Phrase, anchor: int, here: _Placed, start: int) -> list[_Placed] | None:
        placed: list[_Placed] = []
        for piece, gap in zip(phrase.pieces[:anchor][::-1], phrase.gaps[:anchor][::-1], strict=True):
            low = max(here.start - _WIDTHS[gap] - len(piece.key), start)
            positions = reversed(list(self._haystack.occurrences(piece.key, low, here.start)))
            found = self._first(piece, positions, gap, after=here)
            if found is None:
                return None
            placed.insert(0, found)
            here = found
        return placed

    def _first(
        self,
        piece: QuotePiece,
        positions: Iterator[int],
        gap: Gap,
        *,
        before: _Placed | None = None,
        after: _Placed | None = None,
    ) -> _Placed | None:
        for position in positions:
            if self._steps <= 0:
                return None
            found = self._place(piece, position)
            if found is not None and self._bridges(gap, before or found, after or found):
                return found
        return None

    def _place(self, piece: QuotePiece, position: int) -> _Placed | None:
        self._steps -= 1
        passage = self._haystack.passage(position, position + len(piece.key))
        text = self._haystack.text(passage.context)
        if not stands_alone(text, passage.start - piece.sign, passage.end):
            return None
        needed = self._comparison.part(piece, text, passage.start, passage.end)
        if needed is None:
            return None
        return _Placed(position, position + len(piece.key), passage, needed)

    def _bridges(self, gap: Gap, left: _Placed, right: _Placed) -> bool:
        if gap is Gap.NEAR:
            return not self._drops_negation(left.passage, right.passage)
        if gap is Gap.CLOSED:
            return True
        between = self._between(left.passage, right.passage)
        return count_words(between) <= _MOST_WORDS_IN_BRACKET and is_licensed(between)

    def _drops_negation(self, left: Passage, right: Passage) -> bool:
        """Tell whether an ellipsis leaves out a negation and nothing else, which turns the sentence round."""
        between = self._between(left, right)
        return len(between) <= _LONGEST_NEGATION and count_words(between) <= 1 and is_negation(between)

    def _between(self, left: Passage, right: Passage) -> str:
        return self._haystack.text(left.context)[left.end : right.start]
