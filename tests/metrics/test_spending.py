"""What metrics of metrics spend is told once, however deep and in whatever thread they score."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context

import pytest

from pytest_ragmetrics import MetricResult, Sample
from pytest_ragmetrics.metrics import AspectCritique
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.result import Usage
from tests.metrics.fake_session import FakeSession
from tests.scripted_judge import ScriptedJudge

PARTS = [AspectCritique(name=name, definition="Does it hum?") for name in "abc"]
HUM = Sample(response="It hums.")


class OneByOne(Metric):
    """Scores its parts in turn."""

    name = "one_by_one"

    def measure(self, sample: Sample) -> MetricResult:
        """Return a result that has the cost of all of them."""
        usage = sum((result.usage for result in self.parts(sample)), start=Usage())
        return MetricResult(1.0, metric=self.name, usage=usage)

    def parts(self, sample: Sample) -> Iterable[MetricResult]:
        """Score the parts."""
        return [part.score_sample(sample) for part in PARTS]


class Awaited(OneByOne):
    """Scores its parts together in one loop."""

    def parts(self, sample: Sample) -> Iterable[MetricResult]:
        """Score the parts."""

        async def together() -> list[MetricResult]:
            return await asyncio.gather(*(part.ascore_sample(sample) for part in PARTS))

        return asyncio.run(together())


class Threaded(OneByOne):
    """Scores its parts in threads that have its context."""

    def parts(self, sample: Sample) -> Iterable[MetricResult]:
        """Score the parts."""
        with ThreadPoolExecutor() as pool:
            return [*pool.map(lambda context: context[0].run(context[1].score_sample, sample), self._tasks())]

    def _tasks(self) -> list[tuple[Context, Metric]]:
        return [(copy_context(), part) for part in PARTS]


class Nested(OneByOne):
    """Scores metrics of metrics, and a part beside them."""

    def parts(self, sample: Sample) -> Iterable[MetricResult]:
        """Score the parts."""
        return [metric.score_sample(sample) for metric in (OneByOne(), Threaded(), PARTS[0])]


@pytest.mark.parametrize("votes", [1, 3])
@pytest.mark.parametrize(("metric", "calls"), [(OneByOne(), 3), (Awaited(), 3), (Threaded(), 3), (Nested(), 7)])
def test_what_a_metric_of_metrics_spends_is_told_once(metric: Metric, calls: int, votes: int) -> None:
    """The result has the sum, and the scorings have each their own."""
    session = FakeSession(judge=ScriptedJudge(critique={"reason": "It says so.", "verdict": "yes"}), votes=votes)
    with session.running():
        result = metric.score_sample(HUM)
    assert result.usage.calls == calls * votes
    assert sum(scoring.usage.calls for scoring in session.scorings) == calls * votes
    assert session.scorings[-1].metric == metric.name
    assert session.scorings[-1].usage == Usage()
