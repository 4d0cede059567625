"""Edited quotations: ellipses and brackets are read, and the phrases between them found in order in one context.

:func:`read_edits` reads the signs of an editor; :class:`PhraseSearch` finds what they leave, its pieces close together.
What an editor may insert or leave out is limited: no negation, no number. ``bracket_words.txt`` has the numbers and the
pronouns, determiners and auxiliaries that a bracket may have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache, partial
from typing import Literal, NamedTuple
from unicodedata import normalize

from pytest_ragmetrics.text.quotes.folding import PieceComparison, QuotePiece, Tolerance, cut_piece, find_join, is_seen
from pytest_ragmetrics.text.quotes.negations import lost_at_edge, lost_negation, turns_round
from pytest_ragmetrics.text.quotes.search import Passage, SourceIndex, key_length
from pytest_ragmetrics.text.sentences import guess_language
from pytest_ragmetrics.text.unicode import is_unspaced, printable
from pytest_ragmetrics.text.words import WordsIn, content_words, count_words, read_word_lists, stands_alone

# A part of a quotation with this many words is found by itself; one with fewer must be near the others.
_TELLING_WORDS = 3
# With brackets alone all of it is in one place, so less is enough.
_TELLING_WORDS_TOGETHER = 2
_MOST_WORDS_IN_BRACKET = 5
# Places tried for one quotation; only texts made for it have more.
_STEPS, _STEPS_A_PIECE = 1000, 4
_GAP_A_STEP = 10_000
#: Characters that two chunks must share for one to continue the other.
OVERLAP = 20
_MOST_LOOKED_UP = 32

_BETWEEN_WORDS = re.compile(
    r"[\s!-&(-/:-@\[-`{-~\u00a1-\u00bf\u060c\u061b\u061f\u0964\u0965\u2010-\u2018\u201a-\u205e\u3001-\u301f]+"
)
_HAN_NUMBER = re.compile(r"[〇零一二三四五六七八九十百千万萬億亿兆两兩半数數几幾]{1,8}[^\W\d_]{0,2}")

_ELLIPSIS = r"\.(?:[ \u00a0]?\.){2,}|[\u2026\u22ef]+"
_SIGNS = re.compile(
    rf"(?P<gap>[\[(\uff3b\uff08\u3014]\s*(?:{_ELLIPSIS})\s*[\])\uff3d\uff09\u3015]|{_ELLIPSIS})"
    r"|[\[\uff3b\u3014](?P<words>[^\[\]\uff3b\uff3d\u3014\u3015]{0,200})[\]\uff3d\u3015]"
    # Marks of a source that models write, and a number in parentheses at the end of a sentence or a clause.
    r"|\u3010(?P<mark>[^\u3010\u3011]{0,80}\u2020[^\u3010\u3011]{0,200}|\d{1,3})\u3011"
    r"|(?<=[^\W\d_]|[)\"'\u2019\u201d ])\((?P<number>\d{1,2})\)(?=[\s.,;:!?)\"'\u2019\u201d]*(?:\(\d|[.,;:!?]|$))"
)
_FOREIGN_SIGNS = frozenset("\u2026\u22ef\uff3b\u3010\u3014\u00a0")
# Remarks on the text, and marks of notes: they add nothing to it.
_REMARK = re.compile(
    r"\s*(?:sic!?|recte|[!?]|emphasis (?:added|mine|in (?:the )?original)|[*\u2020\u2021]"
    r"|\^?\d{1,2}(?:\s*[,;\u2013-]\s*\d{1,2})*)?\s*",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"[.!?\u2026\u3002\uff01\uff1f\uff0e\u061f\u06d4\u0964\u0965\u0589\u1362\u17d4][\s\"'\u00bb\u00ab\u2018-\u201f\u2039\u203a\u300d\u300f)\]*_]*$"
)
_NEW_BLOCK = re.compile(r"\s*(?:#{1,6}\s|[-*+\u2022\u2013\u2014]\s|\d{1,3}[.)]\s|>)")
_PARAGRAPH_END = re.compile(r"\n[ \t\r]*\n\s*$")
# How much of a chunk is read where a quotation begins in the next one or ends in the one before.
_GLANCE = 400
_AT_WORD = re.compile(r"\w[\[\uff3b\u3014]|[\]\uff3d\u3015]\w")
_LAST_LETTERS, _FIRST_LETTERS = re.compile(r"[^\W\d_]*$"), re.compile(r"^[^\W\d_]*")
# Where a source breaks off, nothing is replaced by a bracket.
_BREAKS_OFF = re.compile(r"[^\S\n]*[.!?;:\n|)\]\"\u00bb\u201d\u2026\u3002\uff01\uff1f\u061f\u06d4\u0964]")
_WITHOUT = re.compile("(?:less|los(?:e[nmrs]?)?|frei(?:e[nmrs]?)?|free|lös[at]?|løse?|loos)(?:ly|ness)?$")
_LARGE_NOTE = re.compile(r"\s*\^?\d{3}\s*")


#: How letters in brackets at a word are read: as part of it, so in the other case, or as another form of a word.
Letters = Literal["kept", "swapped", "changed"]
#: What is between two pieces of a quotation: "" for nothing but punctuation, the words of a bracket, or ``_NEAR`` for
#: what an ellipsis left out beside a piece of only one or two words.
_NEAR = "\u2026"
_WIDEST_GAP = 160


@dataclass(slots=True)
class Phrase:
    """Pieces that are close to one another in the source: ``gaps[i]`` is between ``pieces[i]`` and the next."""

    pieces: list[QuotePiece] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    words: int = 0
    #: Which piece is the longest.
    anchor: int = 0
    #: The gap before the first piece, and the one behind the last.
    first_gap: str = ""
    last_gap: str = ""

    def add(self, text: str, gap: str = "") -> None:
        """Add a piece; a gap follows it."""
        piece = cut_piece(text)
        if piece is None:
            # Two gaps with nothing between them are one.
            self.last_gap = f"{self.last_gap} {gap}".strip()
            return
        if self.pieces:
            self.gaps.append(self.last_gap)
        else:
            self.first_gap = self.last_gap
        if not self.pieces or len(piece.key) > len(self.pieces[self.anchor].key):
            self.anchor = len(self.pieces)
        self.pieces.append(piece)
        self.words += count_words(text)
        self.last_gap = gap

    def join(self, other: Phrase) -> None:
        """Put another phrase behind this one, close to it."""
        if len(other.pieces[other.anchor].key) > len(self.pieces[self.anchor].key):
            self.anchor = len(self.pieces) + other.anchor
        self.gaps += [_NEAR, *other.gaps]
        self.last_gap = other.last_gap
        self.pieces += other.pieces
        self.words = max(self.words, other.words)


@dataclass(frozen=True, slots=True)
class Edited:
    """A quotation with an editor's signs in it: phrases in order, with anything in between.

    ``problem`` says why it cannot be a true quotation of any source.
    """

    phrases: list[Phrase]
    _: KW_ONLY
    has_ellipsis: bool = False
    has_bracket: bool = False
    #: Whether an ellipsis, or a bracket that replaces words, is in front of the first phrase, and behind the last.
    cut_before: bool = False
    cut_after: bool = False
    problem: str | None = None


class Match(NamedTuple):
    """Where a quotation was found, piece by piece, and what had to be overlooked."""

    passages: tuple[Passage, ...]
    needed: int


def may_be_inserted(words: str) -> bool:
    """Tell whether a bracket may insert these words, or replace them: no negation and no number is among them.

    >>> [may_be_inserted(words) for words in ("the company", "not", "kein einziger", "twelve of them", "1914", "不曾")]
    [True, False, False, False, False, False]
    """
    return not (turns_round(words) or _has_number(words))


def _has_number(words: str) -> bool:
    if any(char.isdigit() for char in words):
        return True
    found = _words(words)
    return not _listed("numbers", "ordinals").isdisjoint(found) or any(map(_HAN_NUMBER.fullmatch, found))


_bracket_words = lru_cache(maxsize=1)(partial(read_word_lists, "bracket_words.txt"))


@lru_cache(maxsize=8)
def _listed(*sections: str) -> frozenset[str]:
    return frozenset(_words(" ".join(_bracket_words()[section] for section in sections)))


def may_replace(words: str, replaced: str | None) -> bool:
    """Tell whether a bracket with these words may stand for others; ``None`` where those are not known.

    It may be inserted; it may replace pronouns, be a pronoun, a name or a noun phrase with its determiner, or have
    other forms of the words that it replaces. One verb, adjective or lone noun never stands for another.

    >>> [may_replace(words, "fell") for words in ("the mill", "Hull", "rose")], may_replace("falls", "fall")
    ([True, True, False], True)
    >>> may_replace("mill owners", "they"), may_replace("was", "is"), may_replace("by boat", "")
    (True, True, True)
    """
    ours, theirs, nominal = _words(words), _words(replaced or ""), _listed("pronouns", "determiners")
    if not ours or ours[0] in nominal:
        return True
    # A capital is that of a name, and no name begins with "All" or "Few".
    if ours[0] not in _listed("quantifiers") and any(word[0].isupper() for word in _BETWEEN_WORDS.split(words) if word):
        return True
    if replaced is None or nominal.issuperset(theirs):
        return replaced is not None
    # Auxiliaries may be added to a form: "is closing" for "closed".
    telling = [word for word in ours if word not in _listed("determiners", "forms")] or ours
    return all(any(_is_form(word, other) for other in theirs) for word in telling)


def _is_form(word: str, other: str) -> bool:
    """Tell whether two words are forms of one: they begin alike, and not one alone has an ending that denies."""
    if word == other or any({word, other}.issubset(_words(line)) for line in _bracket_words()["forms"].splitlines()):
        return True
    found = list(content_words(word))
    denied = bool(_WITHOUT.search(word)) != bool(_WITHOUT.search(other))
    return bool(found) and not denied and all(map(WordsIn(other).__contains__, found))


def _words(text: str) -> list[str]:
    """Return the words of a text, caseless; marks on letters, vowel signs too, belong to the words."""
    return [
        word for token in _BETWEEN_WORDS.split(normalize("NFC", text.casefold())) if (word := token.strip("'\u2019"))
    ]


# The search and the reason of a failure read the same span.
@lru_cache(maxsize=32)
def read_edits(span: str, letters: Letters = "kept") -> Edited | None:
    """Read the ellipses and brackets of a quotation; ``None`` when it has none.

    A letter in brackets at a word is read as part of the word, or as ``letters`` says.

    >>> edited = read_edits("[W]e left \u2026 before the rain [of May] came")
    >>> [[piece.core for piece in phrase.pieces] for phrase in edited.phrases]
    [['We left', 'before the rain', 'came']]
    """
    if letters != "kept" and not _AT_WORD.search(span):
        return read_edits(span)
    may_have_signs = "[" in span or ".." in span or ". ." in span or "(" in span
    may_have_signs = may_have_signs or not (span.isascii() or _FOREIGN_SIGNS.isdisjoint(span))
    signs = list(_SIGNS.finditer(span)) if may_have_signs else []
    if not signs:
        return None
    phrases, text, done = [Phrase()], "", 0
    for sign in signs:
        words = sign["words"]
        text += span[done : sign.start()]
        done = sign.end()
        if words is not None and _is_inside_word(span, sign):
            begins = _LAST_LETTERS.findall(text)[0] if letters == "changed" else ""
            if not begins:
                text += words.swapcase() if letters == "swapped" else words
                continue
            ends = _FIRST_LETTERS.findall(span[done:])[0]
            text, words, done = text.removesuffix(begins), f"{begins}{words}{ends}", done + len(ends)
        if words is None or _is_remark(span, sign):
            phrases[-1].add(text)
        elif may_be_inserted(words):
            phrases[-1].add(text, words)
        else:
            return Edited([], problem="a bracket may not add a negation or a number")
        text = ""
        # A long run of ellipses with nothing between them is one.
        if sign["gap"] and phrases[-1].pieces:
            phrases.append(Phrase())
    phrases[-1].add(text + span[done:])
    brackets = sum(sign["gap"] is None for sign in signs)
    edited = _assemble(phrases, has_ellipsis=brackets < len(signs), has_bracket=brackets > 0)
    first, last = signs[0], signs[-1]
    return replace(
        edited,
        cut_before=_leaves_out(span, first) and not any(map(str.isalnum, span[: first.start()])),
        cut_after=_leaves_out(span, last) and not any(map(str.isalnum, span[last.end() :])),
    )


def _leaves_out(span: str, sign: re.Match[str]) -> bool:
    """Tell whether a sign stands for words: an ellipsis, or a bracket that replaces them."""
    if sign["words"] is None:
        return bool(sign["gap"])
    return any(map(str.isalpha, sign["words"])) and not (_is_inside_word(span, sign) or _is_remark(span, sign))


def _is_remark(span: str, sign: re.Match[str]) -> bool:
    if _REMARK.fullmatch(sign["words"]):
        return True
    # A larger number is that of a note only where it cannot be read as part of the sentence.
    before, after = span[sign.start() - 1 : sign.start()], span[sign.end() : sign.end() + 1]
    return bool(_LARGE_NOTE.fullmatch(sign["words"])) and not (before.isspace() and after.isspace())


def _is_inside_word(span: str, sign: re.Match[str]) -> bool:
    words = sign["words"]
    if not words.isalpha() or _REMARK.fullmatch(words):
        return False
    neighbours = span[sign.start() - 1 : sign.start()] + span[sign.end() : sign.end() + 1]
    return any(char.isalpha() and not is_unspaced(char) for char in neighbours)


def _assemble(phrases: list[Phrase], *, has_ellipsis: bool, has_bracket: bool) -> Edited:
    telling = _TELLING_WORDS if has_ellipsis else _TELLING_WORDS_TOGETHER
    if not any(phrase.words >= telling for phrase in phrases):
        problem = "its pieces are too short to tell where they are from"
        return Edited([], has_ellipsis=has_ellipsis, has_bracket=has_bracket, problem=problem)
    joined: list[Phrase] = []
    # Beside an ellipsis the source does not show what these replace.
    loose = [phrase.last_gap for phrase in phrases if not phrase.pieces]
    for phrase in phrases:
        if joined and phrase.pieces and min(phrase.words, joined[-1].words) < _TELLING_WORDS:
            loose += (joined[-1].last_gap, phrase.first_gap)
            joined[-1].join(phrase)
        elif phrase.pieces:
            joined.append(phrase)
    if not all(may_replace(words, None) for words in loose):
        return Edited([], problem="a bracket beside an ellipsis may be a pronoun, a name or a noun with an article")
    return Edited(joined, has_ellipsis=has_ellipsis, has_bracket=has_bracket)


def lost_at_edges(edited: Edited, sources: SourceIndex, first: Passage, last: Passage) -> str | None:
    """Return what the first and the last sign leave out that turns round the clause that they cut a passage out of.

    The clause may begin in the chunk before, and end in the one behind.
    """
    for is_cut, before, passage in ((edited.cut_before, True, first), (edited.cut_after, False, last)):
        text, at = sources.text(passage.context), passage.start if before else passage.end
        beside = _beside(sources, passage.context, before=before) if is_cut else ()
        for context, other in beside:
            joined, cut = (other + text, len(other) + at) if before else (text + other, at)
            if lost := lost_at_edge(joined, cut, before=before):
                return describe_lost(lost, context)
    return None


def goes_on(first: str, second: str) -> bool:
    """Tell whether one chunk stops in mid-sentence and the next may go on with it."""
    return not (_SENTENCE_END.search(first[-64:]) or _PARAGRAPH_END.search(first[-64:]) or _NEW_BLOCK.match(second))


def _beside(sources: SourceIndex, context: int, *, before: bool) -> Iterator[tuple[int, str]]:
    """Yield a context without a text, and the chunks that it goes on from, or into, with what they have beside it.

    As for quotations that run over chunks, those share characters, or follow each other and part in mid-sentence.
    """
    yield context, ""
    text = sources.text(context)
    for other in range(len(sources.bounds)):
        pair = (sources.text(other), text) if before else (text, sources.text(other))
        first, second = pair[0].rstrip(), pair[1].lstrip()
        at = first.rfind(second[:OVERLAP]) if other != context and len(second) >= OVERLAP else -1
        if at >= 0 and second.startswith(first[at:]):
            yield other, first[max(at - _GLANCE, 0) : at] if before else second[len(first) - at :][:_GLANCE]
        elif other == context + (-1 if before else 1) and goes_on(*pair):
            # A capital begins another text, unless nouns have one.
            if second[:1].isupper() and guess_language(f"{first[-_GLANCE:]} {second[:_GLANCE]}") != "de":
                continue
            yield other, f"{first[-_GLANCE:]} " if before else f" {second[:_GLANCE]}"


def describe_lost(words: str, context: int) -> str:
    """Return what is left out, and where."""
    return f'"{printable(words)}" (contexts[{context}]), which turns the statement round'


class _Placed(NamedTuple):
    """A piece at a place: from where to where in the key of all contexts, and its passage."""

    start: int
    end: int
    passage: Passage
    needed: int
    piece: QuotePiece


class PhraseSearch:
    """One search for one edited quotation; takes a bounded number of steps, however often its pieces occur."""

    def __init__(self, sources: SourceIndex, comparison: PieceComparison) -> None:
        self._sources = sources
        self._comparison = comparison
        self._steps = 0
        #: What was left out in the first place where everything else agreed, which turns the statement round.
        self.lost: str | None = None

    def find(self, edited: Edited) -> Match | None:
        """Return where the phrases are found in order inside one context."""
        sources = self._sources
        self._steps = _STEPS + _STEPS_A_PIECE * sum(len(phrase.pieces) for phrase in edited.phrases)
        keys = sorted({piece.key for phrase in edited.phrases for piece in phrase.pieces}, key=len, reverse=True)
        if any(sources.find(key) < 0 for key in keys[:_MOST_LOOKED_UP]):
            return None
        position = sources.find(keys[0])
        while position >= 0 and self._steps > 0:
            start, end = sources.bounds[sources.context_at(position)]
            if placed := self._find_in(edited, start, end):
                needed = Tolerance.EXACT
                for piece in placed:
                    needed |= piece.needed
                return Match(tuple(piece.passage for piece in placed), needed)
            position = sources.find(keys[0], end)
        return None

    def _find_in(self, edited: Edited, start: int, end: int) -> list[_Placed]:
        placed: list[list[_Placed]] = []
        for number, phrase in enumerate(edited.phrases):
            pieces = self._find_phrase(phrase, start, end)
            if not pieces:
                return []
            start = pieces[-1].end
            while placed and self._loses(placed[-1][-1], pieces[0]):
                # The phrase before may stand nearer, too.
                nearer = self._find_phrase(edited.phrases[number - 1], placed[-1][0].start + 1, pieces[0].start)
                if not nearer or (number > 1 and self._loses(placed[-2][-1], nearer[0])):
                    return []
                placed[-1] = nearer
            placed.append(pieces)
        found = [piece for pieces in placed for piece in pieces]
        first, last = found[0].passage, found[-1].passage
        lost = lost_at_edges(edited, self._sources, first, last)
        self.lost = self.lost or lost
        return [] if lost else found

    def _find_phrase(self, phrase: Phrase, start: int, end: int) -> list[_Placed]:
        """Find the longest piece, and from there the others to its left and right."""
        pieces, gaps, anchor = phrase.pieces, phrase.gaps, phrase.anchor
        for position in self._sources.occurrences(pieces[anchor].key, start, end):
            if self._steps <= 0:
                return []
            here = self._place(pieces[anchor], position)
            if here is None:
                continue
            # Most places fail at the next piece: to copy all of them for each place takes quadratic time.
            before = self._extend(((pieces[at], gaps[at]) for at in reversed(range(anchor))), here, start, left=True)
            if before is None:
                continue
            after = self._extend(((pieces[at], gaps[at - 1]) for at in range(anchor + 1, len(pieces))), here, end)
            if after is not None and self._fits(phrase, placed := [*before[::-1], here, *after]):
                return placed
        return []

    def _extend(
        self, pieces: Iterable[tuple[QuotePiece, str]], here: _Placed, bound: int, *, left: bool = False
    ) -> list[_Placed] | None:
        """Place piece after piece to one side, each as near as it is found; ``None`` when one is not."""
        placed: list[_Placed] = []
        for piece, gap in pieces:
            reach = len(piece.key) + (_WIDEST_GAP if gap else 0)
            start, end = (
                (max(here.start - reach, bound), here.start) if left else (here.end, min(here.end + reach, bound))
            )
            positions = self._sources.occurrences(piece.key, start, end)
            for position in reversed(list(positions)) if left else positions:
                found = self._place(piece, position)
                if found and self._bridges(gap, *((found, here) if left else (here, found))):
                    break
            else:
                return None
            placed.append(found)
            here = found
        return placed

    def _place(self, piece: QuotePiece, position: int) -> _Placed | None:
        if self._steps <= 0:
            return None
        self._steps -= 1
        end = position + len(piece.key)
        passage = self._sources.passage(position, end)
        text = self._sources.text(passage.context)
        if not stands_alone(text, passage.start - piece.sign, passage.end, lead=piece.lead, trail=piece.trail):
            return None
        needed = self._comparison.part(piece, text, passage.start, passage.end)
        return None if needed is None else _Placed(position, end, passage, needed, piece)

    def _bridges(self, gap: str, left: _Placed, right: _Placed) -> bool:
        if gap == _NEAR:
            return not self._loses(left, right)
        text, start, end = self._sources.text(left.passage.context), left.passage.end, right.passage.start
        last = next(at for at in range(start - 1, -1, -1) if key_length(text[at]))
        if not any(map(is_seen, left.piece.trail + right.piece.lead)) and find_join("", text, last, end + 1):
            return False
        if not gap:
            return True
        between = text[start:end]
        if self._loses(left, right) or count_words(between) > _MOST_WORDS_IN_BRACKET:
            return False
        if _has_number(between) or not may_replace(gap, between):
            self.lost = self.lost or describe_lost(between.strip(), left.passage.context)
            return False
        return True

    def _fits(self, phrase: Phrase, pieces: list[_Placed]) -> bool:
        """Tell whether the brackets at the ends of a phrase may stand for what the source has there."""
        for gap, piece, before in ((phrase.first_gap, pieces[0], True), (phrase.last_gap, pieces[-1], False)):
            if not gap:
                continue
            context, start, end = piece.passage
            text, far = self._sources.text(context), _WIDEST_GAP
            near = text[max(start - far, 0) : start] if before else text[end : end + far]
            words = near.split()
            # How many of them are replaced is not said; at the end of a sentence nothing is.
            rows = [words[-count:] if before else words[:count] for count in range(1, _MOST_WORDS_IN_BRACKET + 1)]
            breaks_off = _BREAKS_OFF.match(near[::-1] if before else near)
            if breaks_off or any(may_replace(gap, " ".join(row)) for row in rows):
                continue
            self.lost = self.lost or describe_lost(" ".join(rows[0]), context)
            return False
        return True

    def _loses(self, left: _Placed, right: _Placed) -> bool:
        """Tell whether what is between two pieces turns one of them round."""
        start, end = left.passage.end, right.passage.start
        # Only texts made for it have a long gap again and again.
        self._steps -= (end - start) // _GAP_A_STEP
        text = self._sources.text(left.passage.context)
        lost = lost_negation(text, start, end)
        if lost and self.lost is None:
            self.lost = describe_lost(lost, left.passage.context)
        return lost is not None
