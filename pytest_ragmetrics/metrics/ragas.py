"""ragas_score: one number for several metrics, their harmonic mean."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from statistics import fmean, harmonic_mean
from typing import Any

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.result import MetricResult, Usage
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.metrics.asserting import assert_metric
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.claims import asked_together
from pytest_ragmetrics.metrics.critiques import ASPECTS, AspectCritique
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.parameters import check_metrics
from pytest_ragmetrics.metrics.registry import built_in_metrics, metric_for
from pytest_ragmetrics.runs.wording.figures import NOTHING_TO_CHECK
from pytest_ragmetrics.stats.scores import ScoredRow, Vacuous, score_set

NAME = "ragas_score"
_ASPECTS = frozenset(aspect.name for aspect in ASPECTS)
Scores = Mapping[str, float | Iterable[float]] | Iterable[MetricResult]


def ragas_score(results: Scores, *, vacuous: Vacuous = "skip") -> MetricResult:
    """Return the harmonic mean of the means of several metrics.

    ``results`` maps names of metrics to a score or the scores of several samples, or is a list of results. A mean of 0
    or less makes it 0.0. Predefined aspects are left out, and so are results with nothing to check, unless
    ``vacuous="count"``. Raises ``ValueError`` if fewer than two metrics are left, if lower scores of one are better,
    and for a missing or infinite score.

    >>> ragas_score({"faithfulness": [1.0, 0.5], "answer_relevancy": 0.75}).value
    0.75
    """
    scores = _by_metric(results)
    counted = {name: values for name, values in scores.items() if name not in _ASPECTS}
    _check_directions(kind for kind in built_in_metrics() if kind.name in counted)
    empty = [name for name, values in counted.items() if not values]
    if empty or len(counted) <= 1:
        msg = f"{NAME}: {empty[0]} has no score" if empty else f"{NAME} needs two metrics or more, not {len(counted)}"
        raise ValueError(msg)
    checked = {name: _checked(name, values, vacuous) for name, values in counted.items()}
    silent = [name for name, values in checked.items() if not values]
    is_vacuous = len(silent) == len(checked)
    means = {name: fmean(values) for name, values in (counted if is_vacuous else checked).items() if values}
    value = harmonic_mean([*means.values()]) if min(means.values()) > 0 else 0.0
    listed = ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())
    given = [score for values in counted.values() for score in values if isinstance(score, MetricResult)]
    for score in given:
        score.used = True
    judges = dict.fromkeys(name for score in given if score.judge for name in score.judge.split(", "))
    return MetricResult(
        value,
        metric=NAME,
        reason=f"harmonic mean of {listed}" + (f"; {NOTHING_TO_CHECK}: {', '.join(silent)}" if silent else ""),
        vacuous=is_vacuous,
        judge=", ".join(judges) or None,
        usage=sum((score.usage for score in given), start=Usage()),
    )


class RagasScore(Metric):
    """The harmonic mean of several metrics of one sample, scored at the same time; needs what they need.

    Metrics of yes or no are left out. Raises ``ValueError`` if fewer than two are left, or if lower scores of one are
    better.

    >>> from pytest_ragmetrics.metrics import QuotedSpansAlignment
    >>> RagasScore(metrics=[QuotedSpansAlignment()])
    Traceback (most recent call last):
    ValueError: ragas_score needs two metrics or more, not 1
    """

    name = NAME
    helper = "assert_ragas_score"
    requires = ()

    def __init__(self, *, metrics: Sequence[Metric], name: str | None = None) -> None:
        super().__init__(name=name)
        listed = [*check_metrics(metrics)]
        given: object
        for given in listed:
            if not isinstance(given, Metric):
                right = "write RagasScore(metrics=[Faithfulness(), ...])"
                raise TypeError(f"{NAME} takes metrics, not {given!r:.40}: {right}")
        self.metrics = [metric for metric in listed if not isinstance(metric, AspectCritique)]
        _check_directions(self.metrics)
        if len({metric.name for metric in self.metrics}) <= 1:
            raise ValueError(f"{NAME} needs two metrics or more, not {len(self.metrics)}")

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` naming a field that one of the metrics misses."""
        for metric in self.metrics:
            metric.require(sample)

    def measure(self, sample: Sample) -> MetricResult:
        """Score the metrics on the background loop, and wait."""
        return loop.run(self.ameasure(sample))

    async def ameasure(self, sample: Sample) -> MetricResult:
        """Return the harmonic mean."""
        names = [metric.name for metric in self.metrics]
        # A metric that is in the row too does not know of the others here.
        is_apart = not {*names} & {*context.current().row}
        changes = {"row": names, "beside": asked_together(self.metrics, sample)} if is_apart else {}
        with context.changed(**changes):
            scores = asyncio.gather(*(metric.ascore_sample(sample) for metric in self.metrics))
        return ragas_score(await scores)


def assert_ragas_score(
    sample: Sample | Mapping[str, Any],
    *,
    min: float,
    metrics: Sequence[str | Metric] = ("faithfulness", "answer_relevancy", "context_recall"),
    votes: int | None = None,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
) -> MetricResult:
    """Assert that the harmonic mean of several metrics of a sample is at least ``min``; they are scored together.

    Each is the mean of ``votes`` independent judgements.

    >>> fields = {"response": "Moths fly.", "retrieved_contexts": ["Moths fly at night."]}
    >>> assert_ragas_score(fields, metrics=("lexical_grounding", "numbers_aligned"), min=0.9).value
    1.0
    """
    __tracebackhide__ = True
    made = [metric_for(metric, judge=judge, embedder=embedder) for metric in check_metrics(metrics)]
    return assert_metric(RagasScore(metrics=made), sample, min=min, votes=votes)


def _check_directions(metrics: Iterable[Metric | type[Metric]]) -> None:
    """Raise ``ValueError`` for a metric whose lower scores are better: a harmonic mean takes them for bad."""
    lower = [metric.name for metric in metrics if metric.better == "lower"]
    if lower:
        msg = f"{NAME}: lower scores of {lower[0]} are better, and a high one would raise the mean; leave it out"
        raise ValueError(msg)


def _checked(name: str, values: Sequence[float], vacuous: Vacuous) -> list[float]:
    """Return the scores that count."""
    for index, value in enumerate(values):
        if not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(f"{NAME}: score {index} of {name} is {value!r}, not a finite number")
    rows = (
        ScoredRow(name=name, score=value, vacuous=isinstance(value, MetricResult) and value.vacuous) for value in values
    )
    return score_set(rows, vacuous).scores


def _by_metric(results: Scores) -> dict[str, list[float]]:
    if isinstance(results, Mapping):
        return {name: list(value) if isinstance(value, Iterable) else [value] for name, value in results.items()}
    scores: dict[str, list[float]] = {}
    listed: object = results
    for result in listed if isinstance(listed, Iterable) else (listed,):
        if not isinstance(result, MetricResult):
            right = "give results of several metrics, or a mapping of their names to scores"
            raise TypeError(f"{NAME}: {result!r:.40} is no result: {right}")
        scores.setdefault(result.metric, []).append(result)
    return scores
