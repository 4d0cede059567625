"""Edited quotations: ellipses and brackets are read, and the phrases between them found in order in one context.

:func:`read_edits` reads the signs of an editor; :class:`PhraseSearch` finds what they leave, its pieces close together.
What an editor may insert or leave out is limited: no negation, no number. ``bracket_words.txt`` has the pronouns,
determiners and auxiliaries that a bracket may have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import Literal, NamedTuple

from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.quotes.folding import PieceComparison, QuotePiece, cut_piece, find_join, is_seen
from pytest_ragmetrics.text.quotes.negations import lost_at_edge, lost_negation, names_number, turns_round
from pytest_ragmetrics.text.quotes.search import Passage, SourceIndex, key_length
from pytest_ragmetrics.text.sentences import ends_sentence, guess_language
from pytest_ragmetrics.text.unicode import LEFT_SQUARE, RIGHT_SQUARE, caseless
from pytest_ragmetrics.text.words import MARKS, WordsIn, content_words, count_words, read_word_lists, stands_alone

# A part of a quotation with this many words is found by itself; one with fewer must be near the others. With brackets
# alone all of it is in one place, so less is enough.
_TELLING_WORDS, _TELLING_WORDS_TOGETHER = 3, 2
_MOST_WORDS_IN_BRACKET = 5
# Places tried for one quotation; only texts made for it have more.
_STEPS, _STEPS_A_PIECE, _GAP_A_STEP, _MOST_LOOKED_UP = 1000, 4, 10_000, 32
#: Characters that two chunks must share for one to continue the other.
OVERLAP = 20
# How much of a chunk is read where a quotation begins in the next one or ends in the one before.
_GLANCE = 400
_WIDEST_GAP = 160
#: How letters in brackets at a word are read: as part of it, so in the other case, or as another form of a word.
Letters = Literal["kept", "swapped", "changed"]
# What is between two pieces of a quotation: "" for nothing but punctuation, the words of a bracket, or this for what an
# ellipsis left out beside a piece of only one or two words.
_NEAR = unicode.ELLIPSIS

_BETWEEN_WORDS = re.compile(rf"(?:[^\w{MARKS}'{unicode.RIGHT_SINGLE}]|_)+")
_HAN_NUMBER = re.compile(r"[〇零一二三四五六七八九十百千万萬億亿兆两兩半数數几幾]{1,8}[^\W\d_]{0,2}")
_ELLIPSIS = rf"\.(?:[ {unicode.NO_BREAK_SPACE}]?\.){{2,}}|[{unicode.ELLIPSES}]+"
_CLOSING = f"\"'{unicode.QUOTES}"
_SIGNS = re.compile(
    rf"(?P<gap>[\[({LEFT_SQUARE}{unicode.LEFT_ROUND}]\s*(?:{_ELLIPSIS})\s*[\]){RIGHT_SQUARE}{unicode.RIGHT_ROUND}]|{_ELLIPSIS})"
    rf"|[\[{LEFT_SQUARE}](?P<words>[^\[\]{LEFT_SQUARE}{RIGHT_SQUARE}]{{0,200}})[\]{RIGHT_SQUARE}]"
    # Marks of a source that models write, and a number in parentheses at the end of a sentence or a clause.
    rf"|{unicode.LEFT_LENTICULAR}(?P<mark>[^{unicode.LEFT_LENTICULAR}{unicode.RIGHT_LENTICULAR}]{{0,80}}{unicode.DAGGER}"
    rf"[^{unicode.LEFT_LENTICULAR}{unicode.RIGHT_LENTICULAR}]{{0,200}}|\d{{1,3}}){unicode.RIGHT_LENTICULAR}"
    rf"|(?<=[^\W\d_]|[){_CLOSING} ])\((?P<number>\d{{1,2}})\)(?=[\s.,;:!?){_CLOSING}]*(?:\(\d|[.,;:!?]|$))"
)
_MAY_HAVE_SIGNS = re.compile(
    rf"[\[({unicode.ELLIPSES}{LEFT_SQUARE}{unicode.LEFT_LENTICULAR}]|\.[ {unicode.NO_BREAK_SPACE}]?\."
)
# Remarks on the text, and marks of notes: they add nothing to it.
_REMARK = re.compile(
    rf"\s*(?:sic!?|recte|[!?]|emphasis (?:added|mine|in (?:the )?original)|[*{unicode.DAGGER}{unicode.DOUBLE_DAGGER}]"
    rf"|\^?\d{{1,2}}(?:\s*[,;{unicode.EN_DASH}-]\s*\d{{1,2}})*)?\s*",
    re.IGNORECASE,
)
# A larger number is that of a note only where it cannot be read as part of the sentence.
_LARGE_NOTE = re.compile(r"\s*\^?\d{3}\s*")
# What is between a chunk and one that does not go on with it, beside the end of a sentence; how such a one begins.
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n\s*$")
_NEW_BLOCK = re.compile(rf"\s*(?:#{{1,6}}\s|[-*+{unicode.BULLET}{unicode.PAUSES}]\s|\d{{1,3}}[.)]\s|>)")
_AT_WORD = re.compile(rf"\w[\[{LEFT_SQUARE}]|[\]{RIGHT_SQUARE}]\w")
_LAST_LETTERS, _FIRST_LETTERS = re.compile(r"[^\W\d_]*$"), re.compile(r"^[^\W\d_]*")
# Where a source breaks off, nothing is replaced by a bracket.
_BREAKS_OFF = re.compile(rf"[^\S\n]*[.!?;:\n|)\]\"{unicode.CLOSING_QUOTES}{unicode.ELLIPSIS}{unicode.STOPS}]")
_WITHOUT = re.compile("(?:less|los(?:e[nmrs]?)?|frei(?:e[nmrs]?)?|free|lös[at]?|løse?|loos)(?:ly|ness)?$")


@dataclass
class Phrase:
    """Pieces that are close to one another in the source: ``gaps[i]`` is before ``pieces[i]``, one more behind all."""

    pieces: list[QuotePiece] = field(default_factory=list)
    gaps: list[str] = field(default_factory=lambda: [""])
    words: int = 0

    @cached_property
    def anchor(self) -> int:
        """Which piece is the longest; for phrases that are complete."""
        return max(range(len(self.pieces)), key=lambda at: len(self.pieces[at].key))

    def add(self, text: str, gap: str = "") -> None:
        """Add a piece; a gap follows it."""
        if piece := cut_piece(text):
            self.pieces.append(piece)
            self.gaps.append(gap)
            self.words += count_words(text)
        else:  # Two gaps with nothing between them are one.
            self.gaps[-1] = f"{self.gaps[-1]} {gap}".strip()

    def join(self, other: Phrase) -> None:
        """Put another phrase behind this one, close to it."""
        self.pieces += other.pieces
        self.gaps[-1:] = [_NEAR, *other.gaps[1:]]
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
    return names_number(words) or any(map(_HAN_NUMBER.fullmatch, _words(words)))


@lru_cache(maxsize=8)
def _listed(*sections: str) -> frozenset[str]:
    lists = read_word_lists("bracket_words.txt")
    return frozenset(_words(" ".join(lists[section] for section in sections)))


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
    if word == other or any(
        {word, other}.issubset(_words(line)) for line in read_word_lists("bracket_words.txt")["forms"].splitlines()
    ):
        return True
    found = list(content_words(word))
    denied = bool(_WITHOUT.search(word)) != bool(_WITHOUT.search(other))
    return bool(found) and not denied and all(map(WordsIn(other).__contains__, found))


def _words(text: str) -> list[str]:
    """Return the words of a text, caseless; marks on letters, vowel signs too, belong to the words."""
    return [word for token in _BETWEEN_WORDS.split(caseless(text)) if (word := token.strip(f"'{unicode.RIGHT_SINGLE}"))]


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
    signs = list(_SIGNS.finditer(span)) if _MAY_HAVE_SIGNS.search(span) else []
    if not signs:
        return None
    kinds = [_kind(span, sign) for sign in signs]
    phrases, text, done = [Phrase()], "", 0
    for sign, kind in zip(signs, kinds, strict=True):
        words = sign["words"]
        text += span[done : sign.start()]
        done = sign.end()
        if kind == "letters":
            begins = _LAST_LETTERS.findall(text)[0] if letters == "changed" else ""
            if not begins:
                text += words.swapcase() if letters == "swapped" else words
                continue
            ends = _FIRST_LETTERS.findall(span[done:])[0]
            text, words, done = text.removesuffix(begins), f"{begins}{words}{ends}", done + len(ends)
        if kind in ("letters", "words") and not may_be_inserted(words):
            return Edited([], problem="a bracket may not add a negation or a number")
        phrases[-1].add(text, words if kind in ("letters", "words") else "")
        text = ""
        # A long run of ellipses with nothing between them is one.
        if kind == "gap" and phrases[-1].pieces:
            phrases.append(Phrase())
    phrases[-1].add(text + span[done:])
    return replace(
        _assemble(phrases, has_ellipsis="gap" in kinds, has_bracket={*kinds} != {"gap"}),
        cut_before=kinds[0] in ("gap", "words") and not any(map(str.isalnum, span[: signs[0].start()])),
        cut_after=kinds[-1] in ("gap", "words") and not any(map(str.isalnum, span[signs[-1].end() :])),
    )


def _kind(span: str, sign: re.Match[str]) -> Literal["gap", "remark", "letters", "words"]:
    """Tell what a sign is: an ellipsis, a remark or a mark of a note, letters of a word, or words that replace some."""
    words, before, after = sign["words"], span[sign.start() - 1 : sign.start()], span[sign.end() : sign.end() + 1]
    if words is None:
        return "gap" if sign["gap"] else "remark"
    if _REMARK.fullmatch(words) or (_LARGE_NOTE.fullmatch(words) and not (before.isspace() and after.isspace())):
        return "remark"
    in_word = words.isalpha() and any(char.isalpha() and not unicode.is_unspaced(char) for char in before + after)
    return "letters" if in_word else "words"


def _assemble(phrases: list[Phrase], *, has_ellipsis: bool, has_bracket: bool) -> Edited:
    telling = _TELLING_WORDS if has_ellipsis else _TELLING_WORDS_TOGETHER
    if not any(phrase.words >= telling for phrase in phrases):
        problem = "its pieces are too short to tell where they are from"
        return Edited([], has_ellipsis=has_ellipsis, has_bracket=has_bracket, problem=problem)
    joined: list[Phrase] = []
    # Beside an ellipsis the source does not show what these replace.
    loose = [phrase.gaps[-1] for phrase in phrases if not phrase.pieces]
    for phrase in phrases:
        if joined and phrase.pieces and min(phrase.words, joined[-1].words) < _TELLING_WORDS:
            loose += (joined[-1].gaps[-1], phrase.gaps[0])
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
    return not (ends_sentence(first) or _BLANK_LINE.search(first[-64:]) or _NEW_BLOCK.match(second))


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
    return f'"{unicode.printable(words)}" (contexts[{context}]), which turns the statement round'


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
                needed = reduce(or_, (piece.needed for piece in placed))
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
            before = self._extend(
                ((pieces[at], gaps[at + 1]) for at in reversed(range(anchor))), here, start, left=True
            )
            if before is None:
                continue
            after = self._extend(((pieces[at], gaps[at]) for at in range(anchor + 1, len(pieces))), here, end)
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
        for gap, piece, before in ((phrase.gaps[0], pieces[0], True), (phrase.gaps[-1], pieces[-1], False)):
            if not gap:
                continue
            context, start, end = piece.passage
            text, far = self._sources.text(context), _WIDEST_GAP
            near = text[max(start - far, 0) : start] if before else text[end : end + far]
            words = near.split()
            # Nothing shows how many of them are replaced; at the end of a sentence none is.
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
