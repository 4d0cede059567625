"""From a passage to a row of a golden set: a judge writes it, and everything that can be checked is."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pytest_ragmetrics.errors import UnscoredError
from pytest_ragmetrics.generating.documents import Passage
from pytest_ragmetrics.judges.suspicion import suspicious_signs
from pytest_ragmetrics.judges.tasks import GoldenQuestion, Task, VerifyClaims, WriteGoldenQuestion
from pytest_ragmetrics.metrics.support import missing_from
from pytest_ragmetrics.text.facts.tokens import word_tokens
from pytest_ragmetrics.text.printable import printable, shortened
from pytest_ragmetrics.text.sentences import sentence_table

A = TypeVar("A")

#: A passage of fewer letters and digits is not asked about.
SHORTEST = 20
#: Nor a longer one, which only a file of given passages can hold (characters).
LONGEST_GIVEN = 8000
# How much of a reason is shown (characters).
_SHOWN = 300


class Ask(Protocol):
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
class Draft:
    """A question about a passage that has stood every check by itself."""

    passage: Passage
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


async def drafted(passage: Passage, ask: Ask, *, language: str | None = None) -> Draft | Skipped:
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
        draft = Draft(
            passage=passage,
            question=printable(written.question),
            answer=printable(written.answer),
            support=tuple(table[index].text for index in written.sentences),
        )
        return _faulty(draft, written, language) or await _unsupported(draft, ask) or draft
    except UnscoredError as error:
        return Skipped(passage=passage.id, reason="no usable answer of the judge", detail=_short(str(error)))


def _unfit(passage: Passage) -> Skipped | None:
    """Return why a passage is not shown to a judge."""
    if len(passage.text) > LONGEST_GIVEN:
        return Skipped(passage=passage.id, reason=f"longer than {LONGEST_GIVEN:,} characters")
    if sum(map(str.isalnum, passage.text)) < SHORTEST:
        return Skipped(passage=passage.id, reason="too short")
    signs = dict.fromkeys((*suspicious_signs(passage.text), *suspicious_signs(passage.heading)))
    return Skipped(passage=passage.id, reason="suspicious", detail=", ".join(signs)) if signs else None


def _faulty(draft: Draft, written: GoldenQuestion, language: str | None) -> Skipped | None:
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


def _missing(draft: Draft, language: str | None) -> Iterator[str]:
    for fact in missing_from(draft.answer, [draft.passage.text]):
        if language is None or any(map(str.isdigit, fact)):
            yield fact


async def _unsupported(draft: Draft, ask: Ask) -> Skipped | None:
    """Return what is wrong with an answer by a second look at the sentences it was made of, and nothing else."""
    judgement = (await ask(VerifyClaims(claims=(draft.answer,), contexts=draft.support)))[0]
    if judgement.ok:
        return None
    reason = "the answer does not follow from the sentences named for it"
    return Skipped(passage=draft.passage.id, reason=reason, detail=_short(judgement.reason))


def _short(text: str) -> str:
    return shortened(printable(text), _SHOWN)
