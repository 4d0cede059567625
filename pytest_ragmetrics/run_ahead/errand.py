"""What is to be done for the test of one row, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace

from pytest_ragmetrics.datasets.row import DatasetRow
from pytest_ragmetrics.evaluation.patience import Patience, PatientSession
from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.session import Scoring, Session


@dataclass(frozen=True, kw_only=True, slots=True)
class Errand:
    """One row to answer and to score for one test.

    ``test`` is the node id, the same in every process. Tests of one ``group`` share the application that answers their
    rows. ``judge`` is the spec of the test's judge, and ``votes`` how many of its judgements make a score.
    """

    test: str
    group: str
    row: DatasetRow
    sample: Sample
    metrics: tuple[Metric, ...]
    judge: str
    votes: int = 1

    @property
    def is_unanswered(self) -> bool:
        """Whether the application has to be asked first."""
        return self.sample.response is None

    @property
    def place(self) -> str:
        """How messages name the row.

        >>> row = DatasetRow(sample=Sample(), id="q1", file="golden.jsonl", line=3)
        >>> Errand(test="t", group="t", row=row, sample=Sample(), metrics=(), judge="auto").place
        "row 'q1' (golden.jsonl:3)"
        """
        file, line = self.row.file, self.row.line
        where = f"{file}:{line}" if file and line else file
        return f"row {self.row.id!r} ({where})" if where else f"row {self.row.id!r}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """What one metric came to, and the scorings it told the session of, its own among them."""

    outcome: MetricResult | Exception
    scorings: tuple[Scoring, ...] = ()

    def handed_out(self) -> Scored:
        """Return a copy whose results have not been held against anything: each attempt at a test gets its own."""
        copies = {id(told.outcome): copy(told.outcome) for told in self.scorings if _is_result(told.outcome)}
        own: MetricResult | Exception | None = copies.get(id(self.outcome))
        # A score of 0.0 is false.
        if own is None:
            own = copy(self.outcome) if _is_result(self.outcome) else self.outcome
        told = tuple(replace(told, outcome=copies.get(id(told.outcome), told.outcome)) for told in self.scorings)
        return Scored(outcome=own, scorings=told)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of an errand: the sample with its response and the scores by metric, or what the application raised."""

    sample: Sample
    scores: Mapping[str, Scored] = field(default_factory=dict)
    failure: BaseException | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing: then it stands, however often the test is run again."""
        return self.failure is None and all(_is_result(scored.outcome) for scored in self.scores.values())


class Listener(PatientSession):
    """The session as the metrics of one row see it: what they tell is kept until the row's own test is run."""

    def __init__(self, running: Session, errand: Errand, patience: Patience) -> None:
        super().__init__(running, patience)
        self.test = errand.test
        self.scorings: list[Scoring] = []
        self._judge = errand.judge
        self._votes = errand.votes

    @property
    def votes(self) -> int:
        """How many judgements make a score in the row's test."""
        return self._votes

    def scored(self, scoring: Scoring) -> None:
        """Keep a scoring."""
        self.scorings.append(scoring)

    def judge(self, given: Judge | str | None = None) -> Judge:
        """Return a given judge, or that of the row's test."""
        return self._running.judge(given or self._judge)


def _is_result(outcome: object) -> bool:
    return isinstance(outcome, MetricResult)
