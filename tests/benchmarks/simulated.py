"""What the parts of :mod:`tests.benchmarks.gates` are made of: applications by chance, and the values they leave.

A part is a function under :func:`part` that yields a :class:`Figure` for each line of its table. It goes through what
users call: ``red(assert_no_regression, table(now), table(before))``, ``gate(run(now), run(before), regression=True)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.table import Evaluation, Row
from pytest_ragmetrics.plugin.gates.decide import RunTests, evaluate_gates
from pytest_ragmetrics.report.history import History, HistoryRun, MetricPoint
from pytest_ragmetrics.runs.records import Document, Gate, GateRecord, Judging, function_name
from pytest_ragmetrics.runs.tables import Baseline
from tests.documents import FILE, document, gate_of, record, row
from tests.tables import evaluate_gate, gated_set

Random: TypeAlias = np.random.Generator
Scores: TypeAlias = npt.NDArray[np.float64]

#: The metric of a table of scores without a name.
METRIC = "faithfulness"
# Figures that are expected were simulated with as many draws.
_DRAWS = 600


class Figure(NamedTuple):
    """A line of a part: a figure with its standard error, and what an earlier simulation of the method came to."""

    what: str
    found: float
    error: float = 0.0
    expected: float | None = None

    @property
    def is_far(self) -> bool:
        """Whether it differs from what is expected by more than three standard errors, and by more than 1 %."""
        if self.expected is None:
            return False
        error = math.hypot(self.error, math.sqrt(self.expected * (1.0 - self.expected) / _DRAWS))
        return abs(self.found - self.expected) > max(0.01, 3.0 * error)


Part: TypeAlias = Callable[[Random, int], Iterator[Figure]]
#: The parts by name.
PARTS: dict[str, Part] = {}


def part(function: Part) -> Part:
    """Add a function to the parts; its docstring is the title of its table."""
    PARTS[function.__name__] = function
    return function


def share(what: str, draws: int, is_so: Callable[[], bool], expected: float | None = None) -> Figure:
    """Return how often something is so."""
    return share_of(what, [is_so() for _ in range(draws)], expected)


def share_of(what: str, flags: Sequence[bool], expected: float | None = None) -> Figure:
    """Return how many of the draws are so, where one draw answers several questions."""
    found = sum(flags) / len(flags)
    return Figure(what, found, math.sqrt(found * (1.0 - found) / len(flags)), expected)


# Applications: the chance of each row to pass in a run.


def coins(random: Random, n: int, rate: float = 0.9) -> Scores:
    """Return rows of which 10 % pass in every other run and the others always or never: 5 % differ in two runs."""
    steady = random.random(n) < (rate - 0.05) / 0.9
    return np.where(random.random(n) < 0.1, 0.5, steady)


def unsteady(random: Random, n: int, rate: float = 0.9) -> Scores:
    """Return rows that all pass in the same share of runs."""
    return np.full(n, rate)


#: The applications by what they are called in tables.
APPLICATIONS: dict[str, Callable[[Random, int, float], Scores]] = {"coins": coins, "unsteady": unsteady}


def worse(random: Random, chances: Scores, drop: float) -> Scores:
    """Return the application of which rows fail for good, so that it loses a ``drop`` on average."""
    return np.where(random.random(len(chances)) < drop / chances.mean(), 0.0, chances)


def ran(random: Random, chances: Scores) -> Scores:
    """Return the scores of a run."""
    return (random.random(len(chances)) < chances).astype(float)


def judged(random: Random, scores: Scores, tpr: float = 0.9, tnr: float = 0.8) -> Scores:
    """Return the scores of a judge that finds shares of the good and of the bad answers."""
    return (random.random(len(scores)) < np.where(scores == 1.0, tpr, 1.0 - tnr)).astype(float)


def several(n: int, k: int) -> tuple[list[str], list[dict[str, int]]]:
    """Return the ids and the metadata of so many answers to each row."""
    places = [(row, number) for row in range(n) for number in range(1, k + 1)]
    return [f"q{row}" for row, _ in places], [{"answer": number} for _, number in places]


# What a run leaves, and what is asked of it.


@lru_cache(maxsize=4096)
def _sample(row: int) -> Sample:
    return Sample(id=f"q{row}")


def table(
    scores: Scores | Mapping[str, Scores],
    *,
    metadata: Sequence[Mapping[str, Any]] = (),
    vacuous: npt.NDArray[np.bool_] | None = None,
    ids: Sequence[str] = (),
) -> Evaluation:
    """Return a table of the scores of one or of several metrics; ``metadata``, ``vacuous`` and ``ids`` are by row."""
    named = scores if isinstance(scores, Mapping) else {METRIC: scores}
    columns = [(name, given.tolist()) for name, given in named.items()]
    rows = []
    for at in range(len(columns[0][1])):
        sample = _sample(at)
        if metadata or ids:
            sample = Sample(id=ids[at] if ids else f"q{at}", metadata=metadata[at] if metadata else {})
        nothing = vacuous is not None and bool(vacuous[at])
        results = {name: MetricResult(given[at], metric=name, vacuous=nothing) for name, given in columns}
        rows.append(Row(sample=sample, results=results))
    return Evaluation(metrics=tuple(named), rows=tuple(rows))


def red(check: Callable[..., object], *given: Any, **named: Any) -> bool:
    """Tell whether an assertion fails."""
    try:
        check(*given, **named)
    except AssertionError:
        return True
    return False


def run(
    scores: Scores,
    *,
    function: str = "test_bot",
    metadata: Sequence[Mapping[str, Any]] = (),
    responses: Sequence[str] = (),
    **fields: Any,
) -> Document:
    """Return the document of a run of the data set of a function; ``fields`` are those of each record."""
    given: list[dict[str, Any]] = [{"response": each} for each in responses] or [{}] * len(scores)
    samples = [{"id": f"q{at}", "metadata": metadata[at] if metadata else {}, **it} for at, it in enumerate(given)]
    rows = zip(scores.tolist(), samples, strict=True)
    return document(
        *(
            row(f"{function}[q{at}]", record(METRIC, score, at_least=None, sample=sample, **fields))
            for at, (score, sample) in enumerate(rows)
        )
    )


def gates(sets: Sequence[tuple[Document, Document]], **named: Any) -> list[GateRecord]:
    """Return what the ``rag_gate`` of each function of a run finds, of which each has a set now and in the baseline."""
    asked = gate_of(METRIC, **named)
    tests = [[test.id for test in side.tests] for side, _ in sets]
    whole = [gated_set(asked, total=len(it), selected=it, function=function_name(it[0])) for it in tests]
    now = {test.id: test for side, _ in sets for test in side.tests}
    before = tuple(test for _, side in sets for test in side.tests)
    baseline = Baseline(runs=(replace(sets[0][1], tests=before),))
    found = evaluate_gates([(asked, each) for each in whole], RunTests(now.get, now.keys()), baseline=baseline)
    return [each.record for each in found]


def gate(now: Document, *before: Document, judging: Mapping[str, Any] | None = None, **named: Any) -> GateRecord:
    """Return what a ``rag_gate`` with these arguments finds in a run, against those before.

    ``judging`` is what :func:`evaluate_gates` takes to judge both sides anew.
    """
    asked, tests = gate_of(METRIC, **named), {test.id: test for test in now.tests}
    return evaluate_gate(asked, tests, *before, function=function_name(now.tests[0].id), **(judging or {})).record


def past(scores: Iterable[Scores]) -> History:
    """Return the history of runs whose gate of a rate passed on these scores."""
    asked, runs = gate_of(METRIC, rate=0.5, min=1.0), []
    known = {METRIC: Judging(judge="", prompts={}, definition={})}
    where = replace(document().run, judging=known)
    for given in scores:
        value, n = float(given.mean()), len(given)
        counts = {"n": n, "unscored": 0, "total": n}
        terms = {each.name: getattr(asked, each.name) for each in fields(Gate)}
        found = GateRecord(**{**terms, **counts, "value": value, "low": None, "high": None, "outcome": "passed"})
        point = MetricPoint(
            metric=METRIC, n=n, mean=value, lowest=0.0, failing=0, unscored=0, vacuous=0, low=None, high=None, cost=None
        )
        gates = {f"{FILE}::test_bot[{asked.id}]": found}
        runs.append(HistoryRun(run=where, cost=None, metrics=(point,), gates=gates, tests=()))
    return History(runs=tuple(runs), branch="main")
