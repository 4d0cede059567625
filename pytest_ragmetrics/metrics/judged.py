"""What the metrics that ask a judge have in common: how they ask, and the tally of what it cost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, TypeVar

from pytest_ragmetrics import loop, session
from pytest_ragmetrics.embedders.embedder import Embedder, as_vectors
from pytest_ragmetrics.errors import JudgeError, UnscoredError
from pytest_ragmetrics.judges.judge import DirectDesk, Judge
from pytest_ragmetrics.judges.suspicion import suspicious_signs
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.metrics.provided import EmbedderLike, JudgeLike, Provided, provided_embedder, provided_judge
from pytest_ragmetrics.result import MetricResult, Usage, Verdict
from pytest_ragmetrics.sample import Sample

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

A = TypeVar("A")


class JudgedMetric(Metric):
    """A metric that asks a judge; subclasses implement :meth:`judged`.

    ``judge`` and ``embedder`` are those of the running session unless given; without a session, those that the
    environment has a key for. Scoring runs on the background loop, so ``score`` works inside a running loop too.

    >>> from pytest_ragmetrics.judges.tasks import RateRelevance
    >>> class Sympathy(JudgedMetric):
    ...     name = "sympathy"
    ...
    ...     async def judged(self, sample, ask):
    ...         rating = await ask(RateRelevance(question="Is it kind?", response=sample.response))
    ...         return ask.result(rating.value, reason=rating.reason)
    >>> judge = lambda prompt: '{"reason": "Warm words.", "rating": 4}'
    >>> Sympathy(judge=judge).score(response="Get well soon!").value
    1.0
    """

    rounds: ClassVar[int] = 1

    def __init__(self, *, judge: JudgeLike | None = None, embedder: EmbedderLike | None = None) -> None:
        self._judge = provided_judge(judge)
        self._embedder = provided_embedder(embedder)

    @abstractmethod
    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the score of a sample whose required fields are there; raise ``UnscoredError`` if it has none."""

    def measure(self, sample: Sample) -> MetricResult:
        """Score a sample on the background loop, and wait."""
        return loop.run(self._measured(sample))

    async def ameasure(self, sample: Sample) -> MetricResult:
        """Score a sample on the background loop, from any loop."""
        return await loop.arun(self._measured(sample))

    async def _measured(self, sample: Sample) -> MetricResult:
        ask = Ask(self.name, judge=self._judge, embedder=self._embedder, signs=_signs_in(sample))
        try:
            return await self.judged(sample, ask)
        except JudgeError as error:
            msg = f"{self.name}: {error}"
            raise UnscoredError(msg, usage=ask.usage) from error
        except UnscoredError as error:
            error.usage = ask.usage if error.usage is None else ask.usage + error.usage
            raise


class Ask:
    """One scoring's access to judge and embedder: ``await ask(task)`` is the answer, ``ask.result(...)`` the end."""

    def __init__(
        self, metric: str, *, judge: Provided[Judge], embedder: Provided[Embedder], signs: Sequence[str] = ()
    ) -> None:
        self._metric = metric
        self._judge = judge
        self._embedder = embedder
        self._signs = signs
        self.usage = Usage()
        self._asked: dict[str, None] = {}

    async def __call__(self, task: Task[A], *, vote: int = 0) -> A:
        """Return the judge's answer to a task; ``vote`` numbers independent answers to the same task."""
        judge = self._judge.get()
        self._asked[judge.name] = None
        running = session.current()
        answered = await judge.ask(task, vote=vote, desk=running.desk if running is not None else DirectDesk())
        self.usage += answered.usage
        return answered.answer

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of texts, shape (n, d)."""
        embedder = self._embedder.get()
        self._asked[embedder.name] = None
        running = session.current()
        if running is not None and embedder.is_kept:
            return await running.embedding_desk.embed(embedder, texts)
        return as_vectors(await embedder.aembed(texts), count=len(texts), name=embedder.name)

    def result(
        self, value: float, *, reason: str | None, verdicts: Sequence[Verdict] = (), vacuous: bool = False
    ) -> MetricResult:
        """Return a result that carries who was asked and what it cost."""
        if self._signs:
            verdicts = [replace(verdict, suspicious=True) for verdict in verdicts]
            reason = f"{reason or ''} (suspicious: {'; '.join(self._signs)})".strip()
        return MetricResult(
            value,
            metric=self._metric,
            reason=reason,
            verdicts=verdicts,
            vacuous=vacuous,
            judge=", ".join(self._asked) or None,
            usage=self.usage,
        )

    def share(self, verdicts: Sequence[Verdict], counted: str) -> MetricResult:
        """Return the share of the verdicts that are ok, saying how many ``counted`` there are: "claims supported"."""
        met = sum(verdict.ok for verdict in verdicts)
        return self.result(met / len(verdicts), reason=f"{met} of {len(verdicts)} {counted}", verdicts=verdicts)

    def nothing(self, reason: str, *, if_empty: float | None) -> MetricResult:
        """Return the caller's value for a sample with nothing to judge; raise ``UnscoredError`` if there is none."""
        if if_empty is None:
            msg = f"{self._metric}: {reason}; if_empty= gives such samples a value"
            raise UnscoredError(msg)
        return self.result(if_empty, reason=reason, vacuous=True)


def _signs_in(sample: Sample) -> tuple[str, ...]:
    """Return what in a sample hints at an attempt to deceive the judge; the reference is the author's own."""
    texts = [("user_input", sample.user_input or ""), ("response", sample.response or "")]
    for field in ("retrieved_contexts", "reference_contexts"):
        # A context without a word is a slip of the splitter, no attempt at anything.
        texts += [(field, text) for text in getattr(sample, field) or () if any(map(str.isalnum, text))]
    return tuple(dict.fromkeys(f"{field} {sign}" for field, text in texts for sign in _signs(text)))


# Several metrics look at the same sample, and a context may be long.
@lru_cache(maxsize=256)
def _signs(text: str) -> tuple[str, ...]:
    return suspicious_signs(text)
