"""From a passage to a row of a golden set: a judge writes it, and everything that can be checked is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pytest_ragmetrics.errors import UnscoredError
from pytest_ragmetrics.generate.documents import SourcePassage
from pytest_ragmetrics.judges.suspicion import suspicious_signs
from pytest_ragmetrics.judges.tasks import GoldenQuestion, Task, VerifyClaims, WriteGoldenQuestion
from pytest_ragmetrics.metrics.verdicts import missing_from
from pytest_ragmetrics.text.characters import printable, shortened
from pytest_ragmetrics.text.sentences import sentence_table
from pytest_ragmetrics.text.words import telling_words, word_tokens

# Of a hundred: how alike two questions are that ask the same, and two spellings of one word.
_ALIKE = 80


_Drawer = tuple[tuple[str, ...], frozenset[str]]


@dataclass(frozen=True, slots=True)
class _Question:
    """A question with its words, and the stems of those that carry its content."""

    text: str
    words: tuple[str, ...]
    keys: frozenset[str]

    @property
    def said(self) -> str:
        return " ".join(self.words)

    @property
    def drawer(self) -> _Drawer:
        """What two questions that ask the same have in common: their first word and their numbers."""
        return self.words[:1], frozenset(key for key in self.keys if any(map(str.isdigit, key)))


class AskedQuestions:
    """The questions that a golden set has, to find one that asks the same in nearly the same words.

    Those that begin with another word (when, where) or differ in a name or a number are others.

    >>> asked = AskedQuestions(["How deep is the lake Aru?", "When was it dug in 1887?"])
    >>> asked.same("How deep is lake Aru?"), asked.same("How deep is the lake Oro?")
    ('How deep is the lake Aru?', None)
    """

    def __init__(self, questions: Iterable[str] = ()) -> None:
        self._drawers: defaultdict[_Drawer, list[_Question]] = defaultdict(list)
        for question in questions:
            self.add(question)

    def add(self, question: str) -> None:
        """Take in a question."""
        read = _read(question)
        self._drawers[read.drawer].append(read)

    def same(self, question: str) -> str | None:
        """Return a question that asks the same, if there is one."""
        from rapidfuzz import fuzz

        mine = _read(question)
        others = self._drawers.get(mine.drawer, ())
        return next((other.text for other in others if _is_same(mine, other, fuzz.ratio)), None)


def _read(question: str) -> _Question:
    keys = frozenset(word.key for word in telling_words(question))
    return _Question(question, tuple(word_tokens(question)), keys)


def _is_same(one: _Question, other: _Question, alike: Callable[[str, str], float]) -> bool:
    if one.words == other.words:
        return True
    mine, theirs = one.keys - other.keys, other.keys - one.keys
    return (
        _are_spellings(mine, theirs, alike)
        and _are_spellings(theirs, mine, alike)
        and alike(one.said, other.said) >= _ALIKE
    )


def _are_spellings(words: frozenset[str], others: frozenset[str], alike: Callable[[str, str], float]) -> bool:
    """Tell whether each word is nearly one of the others."""
    return all(any(alike(word, other) >= _ALIKE for other in others) for word in words)


A = TypeVar("A")

#: A passage of fewer letters and digits is not asked about.
SHORTEST = 20
#: Nor a longer one, which only a file of given passages can hold (characters).
LONGEST_GIVEN = 8000
# How much of a reason is shown (characters).
_SHOWN = 300


class AskWriter(Protocol):
    """Asks a judge a task."""

    def __call__(self, task: Task[A]) -> Awaitable[A]:
        """Return the answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """A passage of which no row is made: why in a few words that many may share, and what more there is to say."""

    passage: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldenDraft:
    """A question about a passage that has stood every check by itself."""

    passage: SourcePassage
    question: str
    answer: str
    support: tuple[str, ...]

    def row(self, judge: str) -> dict[str, Any]:
        """Return the row of a data set."""
        passage = self.passage
        places = {"file": passage.file, "start": passage.start, "end": passage.end, "line": passage.line}
        return {
            "id": passage.row_id,
            "user_input": self.question,
            "reference": self.answer,
            "reference_contexts": [passage.text],
            "reference_context_ids": [passage.id],
            "metadata": {
                **{name: value for name, value in places.items() if value is not None},
                **({"heading": passage.heading} if passage.heading else {}),
                "judge": judge,
                "support": list(self.support),
            },
        }


async def drafted(passage: SourcePassage, ask: AskWriter, *, language: str | None = None) -> GoldenDraft | Skipped:
    """Return a question about a passage, or why there is none; raises what the judge raises but ``UnscoredError``.

    The answer must follow from the sentences that the judge named, as a second question to it finds that shows it
    these alone; and its numbers and names must stand in the passage. In another ``language`` names may be written
    otherwise, so that only numbers count.
    """
    problem = _unfit(passage)
    if problem is not None:
        return problem
    try:
        written = await ask(
            WriteGoldenQuestion(passage=passage.text, heading=printable(passage.heading), language=language)
        )
        if written is None:
            return Skipped(passage=passage.id, reason="nothing worth asking about")
        table = sentence_table((passage.text,))
        draft = GoldenDraft(
            passage=passage,
            question=printable(written.question),
            answer=printable(written.answer),
            support=tuple(table[index].text for index in written.sentences),
        )
        return _faulty(draft, written, language) or await _unsupported(draft, ask) or draft
    except UnscoredError as error:
        return Skipped(passage=passage.id, reason="no usable answer of the judge", detail=_short(str(error)))


def _unfit(passage: SourcePassage) -> Skipped | None:
    """Return why a passage is not shown to a judge."""
    if len(passage.text) > LONGEST_GIVEN:
        return Skipped(passage=passage.id, reason=f"longer than {LONGEST_GIVEN:,} characters")
    if sum(map(str.isalnum, passage.text)) < SHORTEST:
        return Skipped(passage=passage.id, reason="too short")
    signs = dict.fromkeys((*suspicious_signs(passage.text), *suspicious_signs(passage.heading)))
    return Skipped(passage=passage.id, reason="suspicious", detail=", ".join(signs)) if signs else None


def _faulty(draft: GoldenDraft, written: GoldenQuestion, language: str | None) -> Skipped | None:
    """Return what is wrong with a question as far as can be told without a judge."""
    signs = [sign for text in (written.question, written.answer) for sign in suspicious_signs(text)]
    if signs:
        return Skipped(passage=draft.passage.id, reason="suspicious question", detail=signs[0])
    if set(word_tokens(draft.answer)) <= set(word_tokens(draft.question)):
        return Skipped(passage=draft.passage.id, reason="the question holds its answer", detail=_short(draft.question))
    missing = list(_missing(draft, language))
    if missing:
        reason = "the answer has a number or name that the passage lacks"
        return Skipped(passage=draft.passage.id, reason=reason, detail=_short(", ".join(missing)))
    return None


def _missing(draft: GoldenDraft, language: str | None) -> Iterator[str]:
    for fact in missing_from(draft.answer, [draft.passage.text]):
        if language is None or any(map(str.isdigit, fact)):
            yield fact


async def _unsupported(draft: GoldenDraft, ask: AskWriter) -> Skipped | None:
    """Return what is wrong with an answer by a second look at the sentences it was made of, and nothing else."""
    judgement = (await ask(VerifyClaims(claims=(draft.answer,), contexts=draft.support)))[0]
    if judgement.ok:
        return None
    reason = "the answer does not follow from the sentences named for it"
    return Skipped(passage=draft.passage.id, reason=reason, detail=_short(judgement.reason))


def _short(text: str) -> str:
    return shortened(printable(text), _SHOWN)
