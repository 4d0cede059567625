"""What became of a text, word by word: the steps from one version to the next, in time that does not depend on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, takewhile
from typing import NamedTuple

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.core.result import ChangeKind, WordChange
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.sentences import ends_sentence
from pytest_ragmetrics.text.words import WORD, fold_word, is_function_word

# A word, apostrophes and the points of a number inside it, or one sign, with joiners, tones and variations of an emoji;
# and the white space behind it.
_INSIDE = rf"(?:(?<=\d)[.,:/](?=\d)|(?<=\w)['_{unicode.APOSTROPHES}](?=\w))"
_TOKEN = lazily(
    rf"(?:(?:{WORD})(?:{_INSIDE}(?:{WORD}))*|[\U0001f1e6-\U0001f1ff]{{2}}"
    rf"|[^\w\s](?:[\ufe00-\ufe0f\u20e3\U0001f3fb-\U0001f3ff]|[{unicode.JOINERS}][^\w\s])*|_)\s*|\s+"
)
# The cells of the table that compares two rows of tokens: 50 MB, 0.1 s.
_MOST_CELLS = 4 * 10**8
# As many characters of words between two longer changes are no use to a reader.
_TOO_FEW = 24
# How many tokens an insertion is moved to begin with a sentence.
_FARTHEST = 60


def word_changes(before: str, after: str) -> tuple[WordChange, ...]:
    """Return the steps from ``before`` (``source``) to ``after`` (``said``): joined they are both texts.

    A step is "same", "replaced", "added" or "missing" in the newer text; white space between the same words may differ.
    A few common words between two longer changes belong to the change, as a reader cannot use them. Texts of 100 kB
    take 0.1 s in any script; much longer ones are one change between what they begin and end with.

    >>> steps = word_changes("within 30 days after the talk.", "within 14 days of the week of the talk.")
    >>> [(step.kind, step.source, step.said) for step in steps if step.kind != "same"]
    [('replaced', '30 ', '14 '), ('replaced', 'after ', 'of the week of ')]
    """
    return changes_of_words(words_of(before), words_of(after))


class Words(NamedTuple):
    """The words of a text: as they are written, with what is behind them, and as they are compared."""

    tokens: list[str]
    keys: list[str]


def changes_of_words(before: Words, after: Words) -> tuple[WordChange, ...]:
    """Return the steps of :func:`word_changes` from words to words."""
    olds, news = before.tokens, after.tokens
    runs = _slid(_readable(runs_of(before.keys, after.keys), before, after), before, after)
    return tuple(_step(run, olds, news) for run in runs)


def words_of(text: str) -> Words:
    """Return the words and signs of a text, each with the white space behind it; joined they are the text.

    >>> words_of("It's 3.5 %, 東京").tokens
    ["It's ", '3.5 ', '%', ', ', '東', '京']
    """
    tokens = _TOKEN.findall(text)
    return Words(tokens, [*map(str.rstrip, tokens)])


class Run(NamedTuple):
    """A run of tokens of the older and one of the newer text, and whether they are the same words."""

    old: int
    old_end: int
    new: int
    new_end: int
    same: bool = False


def _ends_sentence(token: str) -> bool:
    return "\n" in token or ends_sentence(token)


def runs_of(olds: Sequence[str], news: Sequence[str]) -> list[Run]:
    """Return the runs of two rows of keys in order, same ones and changes by turns."""
    return [*_joined(_runs(olds, news))]


def _runs(olds: Sequence[str], news: Sequence[str]) -> Iterator[Run]:
    from rapidfuzz.distance import Indel, Postfix, Prefix

    start = Prefix.similarity(olds, news)
    end = min(Postfix.similarity(olds, news), min(len(olds), len(news)) - start)
    old_end, new_end = len(olds) - end, len(news) - end
    yield Run(0, start, 0, start, same=True)
    if (old_end - start) * (new_end - start) > _MOST_CELLS:
        yield Run(start, old_end, start, new_end)
    else:
        for step in Indel.opcodes(olds[start:old_end], news[start:new_end]):
            old, new = (start + step.src_start, start + step.src_end), (start + step.dest_start, start + step.dest_end)
            yield Run(*old, *new, same=step.tag == "equal")
    yield Run(old_end, len(olds), new_end, len(news), same=True)


def _joined(runs: Iterable[Run]) -> Iterator[Run]:
    """Yield the runs without empty ones, neighbours of one kind as one."""
    some = (run for run in runs if run.old < run.old_end or run.new < run.new_end)
    for _, group in groupby(some, key=lambda run: run.same):
        row = [*group]
        yield row[0]._replace(old_end=row[-1].old_end, new_end=row[-1].new_end)


def _readable(runs: Iterable[Run], before: Words, after: Words) -> list[Run]:
    """Return the runs without those of a few common words that are shorter than the changes beside them."""
    old_sums, new_sums = (list(accumulate(map(_letters, words.keys), initial=0)) for words in (before, after))

    def length(run: Run) -> int:
        return max(old_sums[run.old_end] - old_sums[run.old], new_sums[run.new_end] - new_sums[run.new])

    def is_noise(same: Run, beside: int) -> bool:
        # A word with a meaning counts twice.
        return length(same) <= beside and sum(map(_weight, after.keys[same.new : same.new_end])) <= beside

    kept: list[Run] = []
    for run in runs:
        kept.append(run)
        while not run.same and kept[:-2]:
            first, same, last = kept[-3:]
            if not is_noise(same, min(length(first), length(last), _TOO_FEW)):
                break
            kept[-3:] = [first._replace(old_end=last.old_end, new_end=last.new_end)]
    return kept


def _weight(word: str) -> int:
    return _letters(word) * (1 if len(word) == 1 or is_function_word(fold_word(word)) else 2)


def _letters(token: str) -> int:
    return sum(map(str.isalnum, token))


def _slid(runs: Sequence[Run], olds: Words, news: Words) -> list[Run]:
    """Return the runs with what was only added or only removed moved to begin with a sentence, where it can be.

    In "It rains. <We stay. It> rains" and "It rains. <We stay.> It rains" the same was added.
    """
    found = list(runs)
    for place in range(1, len(found) - 1):
        before, run, after = found[place - 1 : place + 2]
        if not before.same or not after.same or (run.old < run.old_end and run.new < run.new_end):
            continue
        words, start, end = (news, run.new, run.new_end) if run.old == run.old_end else (olds, run.old, run.old_end)
        # Between two changes one token stays, or they were one.
        left = min(before.old_end - before.old - (place > 1), _FARTHEST)
        right = min(after.old_end - after.old - (place < len(found) - 2), _FARTHEST)
        by = _way_to_sentence(words, start, end, left, right)
        found[place - 1 : place + 2] = [
            before._replace(old_end=before.old_end + by, new_end=before.new_end + by),
            Run(run.old + by, run.old_end + by, run.new + by, run.new_end + by),
            after._replace(old=after.old + by, new=after.new + by),
        ]
    return [*_joined(found)]


def _way_to_sentence(words: Words, start: int, end: int, left: int, right: int) -> int:
    """Return how far to move a run to begin with a sentence, backwards if negative; 0 where it cannot be."""

    def fits(at: int) -> bool:
        """Tell whether the run is the same words one step further."""
        step = at if at < 0 else at - 1
        return at == 0 or words.keys[start + step] == words.keys[end + step]

    places = [*takewhile(fits, range(0, -left - 1, -1)), *takewhile(fits, range(1, right + 1))]
    return min(
        (at for at in places if start + at == 0 or _ends_sentence(words.tokens[start + at - 1])), key=abs, default=0
    )


def _step(run: Run, olds: Sequence[str], news: Sequence[str]) -> WordChange:
    source, said = "".join(olds[run.old : run.old_end]), "".join(news[run.new : run.new_end])
    kind: ChangeKind = "same" if run.same else "added" if not source else "missing" if not said else "replaced"
    return WordChange(kind=kind, said=said, source=source)
