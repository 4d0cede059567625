"""A text of then and now as one, and which texts of two lists are versions of one another.

The comparison of two runs (:mod:`pytest_ragmetrics.report.compare_view`) shows answers, passages and claims so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pytest_ragmetrics.core.result import WordChange
from pytest_ragmetrics.runs.wording.figures import counted
from pytest_ragmetrics.text.diff import word_changes, words_of
from pytest_ragmetrics.text.unicode import shortened
from pytest_ragmetrics.text.words import count_words

PieceKind = Literal["same", "removed", "added"]

#: Texts are versions of one another where so much of their words is the same, in order; of one id where less is.
_NEAR, _NEAR_OF_ID = 0.6, 0.3
#: How many tokens of two texts are compared to see whether they are near, and how many pairs of texts: 0.4 s.
_COMPARED, _MOST_PAIRS = 600, 2500
#: A text with less of the former one is shown as two texts.
_REWRITTEN = 0.3
#: How many characters beside a change are shown, of a text without one, and of a change; so many more are hidden.
_BESIDE, _HEAD, _LONGEST, _HIDDEN = 240, 700, 6000, 300
#: How far to look for a space, so as not to cut a word.
_REACH = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A piece of a text of then and now; a ``folded`` one is long and hidden until it is opened."""

    text: str
    kind: PieceKind = "same"
    folded: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TextChange:
    """A text then and now in one row of pieces, and what changed in words.

    Of a text that was ``rewritten`` all that is removed comes first.
    """

    pieces: tuple[Piece, ...]
    title: str
    rewritten: bool = False


def text_change(before: str, now: str) -> TextChange:
    """Return a text then and now as one text.

    >>> change = text_change("Write within 30 days.", "Write within 14 days.")
    >>> change.title, [piece.text for piece in change.pieces if piece.kind != "same"]
    ('1 word added, 1 removed', ['30', '14'])
    """
    if before == now:
        # The test itself shows all of it.
        return TextChange(pieces=(Piece(text=shortened(now, _HEAD)),) if now else (), title="as before")
    steps = word_changes(before, now)
    others = [step for step in steps if step.kind != "same"]
    added, removed = _words(step.said for step in others), _words(step.source for step in others)
    counts = [f"{counted(added, 'word')} added"] if added else []
    if removed:
        counts.append(f"{removed:,} removed" if added else f"{counted(removed, 'word')} removed")
    title = ", ".join(counts) or f"only {'signs' if others else 'spaces'} differ"
    same = sum(len(step.said) for step in steps if step.kind == "same")
    if added and removed and same < _REWRITTEN * max(len(before), len(now)):
        pieces = folded([*marked(before, "removed"), *marked(now, "added")])
        return TextChange(pieces=pieces, title=f"rewritten, {title}", rewritten=True)
    return TextChange(pieces=folded(_pieces(steps)), title=title)


def _words(texts: Iterable[str]) -> int:
    """Return how many words texts have together; one character of a script without spaces is one."""
    text = " ".join(texts)
    return max(count_words(text), any(map(str.isalnum, text)))


def _pieces(steps: Iterable[WordChange]) -> Iterator[Piece]:
    """Yield the texts of the steps; the white space behind what changed is not marked."""
    for step in steps:
        if step.kind == "same":
            yield Piece(text=step.said)
            continue
        yield from marked(step.source.rstrip(), "removed")
        space = step.source[len(step.source.rstrip()) :]
        # Between the old words and the new ones no line has to break.
        yield Piece(text=" " if space and step.said else space)
        yield from marked(step.said.rstrip(), "added")
        yield Piece(text=step.said[len(step.said.rstrip()) :])


def marked(text: str, kind: PieceKind) -> Iterator[Piece]:
    """Yield a text as a piece, unless it is empty."""
    if text:
        yield Piece(text=text, kind=kind)


def folded(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Return the pieces, of long ones only what is beside a change, or the beginning."""
    shown = [piece for piece in pieces if piece.text]
    return tuple(part for at, piece in enumerate(shown) for part in _parts(piece, at, len(shown) - 1))


def _parts(piece: Piece, at: int, last: int) -> Iterator[Piece]:
    text, head, tail = piece.text, _LONGEST, 0
    if piece.kind == "same":
        head, tail = (_BESIDE if at else 0, _BESIDE if at < last else 0) if last else (_HEAD, 0)
    if len(text) < head + tail + _HIDDEN:
        yield piece
        return
    # Neither end cuts a word, if there is a space near it.
    start = text.rfind(" ", head - _REACH, head) + 1 or head
    end = text.find(" ", len(text) - tail, len(text) - tail + _REACH) + 1 or len(text) - tail
    yield from marked(text[:start], piece.kind)
    yield Piece(text=text[start:end], kind=piece.kind, folded=True)
    yield from marked(text[end:], piece.kind)


class Text(NamedTuple):
    """A text that may be an edited version of another one; those of the same ``id`` are likelier to be."""

    text: str
    id: str | None = None


def versions(olds: Sequence[Text], news: Sequence[Text]) -> dict[int, int]:
    """Return places of the older by those of the newer texts: the same ones, else near ones, the nearest first."""
    from rapidfuzz.distance import Indel

    found: dict[int, int] = {}
    keys: tuple[Callable[[Text], Hashable], ...] = (
        lambda it: None if it.id is None else (it.id, it.text),
        lambda it: " ".join(it.text.split()),
    )
    for key in keys:
        waiting: dict[Hashable, list[int]] = {}
        for place in sorted(set(range(len(olds))).difference(found.values())):
            waiting.setdefault(key(olds[place]), []).append(place)
        waiting.pop(None, None)
        for place, text in enumerate(news):
            if place not in found and (places := waiting.get(key(text))):
                found[place] = places.pop(0)
    old_places = sorted(set(range(len(olds))).difference(found.values()))
    new_places = [place for place in range(len(news)) if place not in found]
    if len(old_places) * len(new_places) > _MOST_PAIRS:
        return found
    # As many characters have more tokens than are compared.
    old_tokens, new_tokens = (
        {place: words_of(texts[place].text[: 20 * _COMPARED]).keys[:_COMPARED] for place in places}
        for texts, places in ((olds, old_places), (news, new_places))
    )
    near = []
    for old in old_places:
        for new in new_places:
            same_id = olds[old].id is not None and olds[old].id == news[new].id
            least = _NEAR_OF_ID if same_id else _NEAR
            alike = Indel.normalized_similarity(old_tokens[old], new_tokens[new], score_cutoff=least)
            near += [(same_id, alike, -new, -old)] if alike >= least else []
    for _, _, new, old in sorted(near, reverse=True):
        if -new not in found and -old not in found.values():
            found[-new] = -old
    return found
