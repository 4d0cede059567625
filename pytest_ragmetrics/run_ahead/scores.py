"""What the fixture ``rag_scores`` hands to a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.run_ahead.marker import canonical


class Scores(Mapping[str, MetricResult]):
    """The results of one row by metric.

    A metric is looked up by any of its names. One that is unscored raises the reason when it is looked up, so that only
    a test that needs it fails; raises ``KeyError`` naming what there is for a metric that was not asked for.

    >>> Scores({"faithfulness": MetricResult(0.5, metric="faithfulness")})["Faithfulness"].value
    0.5
    """

    def __init__(self, outcomes: Mapping[str, MetricResult | Exception]) -> None:
        self._outcomes = dict(outcomes)

    def __getitem__(self, metric: str) -> MetricResult:
        __tracebackhide__ = True
        outcome = self._outcomes.get(metric) if metric in self._outcomes else self._outcomes.get(canonical(metric))
        if outcome is None:
            there = f"there are {', '.join(self._outcomes)}" if self._outcomes else "the marker names none"
            msg = f"{metric!r} was not scored: {there}; write @pytest.mark.rag_dataset(..., metrics=[{metric!r}])"
            raise _UnknownMetricError(msg)
        if isinstance(outcome, Exception):
            raise outcome.with_traceback(None)
        return outcome

    def __contains__(self, metric: object) -> bool:
        return metric in self._outcomes or (isinstance(metric, str) and canonical(metric) in self._outcomes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._outcomes!r})"


class _UnknownMetricError(KeyError):
    """A ``KeyError`` that is shown as the sentence it is."""

    def __str__(self) -> str:
        return str(self.args[0])
