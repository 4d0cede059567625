"""Reading the signs an editor leaves in a quotation: what was left out, and what was put in brackets."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, auto

from pytest_ragmetrics.text.matching.comparison import Piece, cut_piece
from pytest_ragmetrics.text.matching.licence import is_licensed
from pytest_ragmetrics.text.scripts import is_unspaced
from pytest_ragmetrics.text.words import count_words

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

    pieces: tuple[Piece, ...]
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
class _Draft:
    """A phrase in the making: pieces so far, and the text and the gap before it that will be the next one."""

    pieces: list[Piece] = field(default_factory=list)
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

    def join(self, other: _Draft) -> None:
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
    drafts = [_Draft()]
    done = 0
    for sign in signs:
        draft, words = drafts[-1], sign["words"]
        draft.write(span[done : sign.start()])
        done = sign.end()
        if words is None:
            draft.close(Gap.CLOSED)
            # A long run of signs with nothing between them is one.
            drafts += [_Draft()] if draft.pieces else []
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


def _assemble(drafts: list[_Draft], *, has_ellipsis: bool, has_bracket: bool) -> Edited:
    telling = _TELLING_WORDS if has_ellipsis else _TELLING_WORDS_TOGETHER
    if not any(draft.words >= telling for draft in drafts):
        return Edited((), problem="its pieces are too short to tell where they are from")
    phrases: list[_Draft] = []
    for draft in drafts:
        if not draft.pieces:
            continue
        if phrases and min(draft.words, phrases[-1].words) < _TELLING_WORDS:
            phrases[-1].join(draft)
        else:
            phrases.append(draft)
    done = tuple(Phrase(tuple(phrase.pieces), tuple(phrase.gaps)) for phrase in phrases)
    return Edited(done, has_ellipsis=has_ellipsis, has_bracket=has_bracket)
