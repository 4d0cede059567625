"""Gates whose judge became stricter, by seeded simulation: with the scores as they are, and judged anew."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.session import OwnSession
from pytest_ragmetrics.metrics.base import Metric, rule_of
from pytest_ragmetrics.plugin.gates.anew import Today
from tests.benchmarks.simulated import METRIC, Figure, Random, gate, part, run, share


class Stricter(Metric):
    """A judge that finds an answer good where the text says so."""

    name = METRIC

    def measure(self, sample: Sample) -> MetricResult:
        """Return 1 for a good answer."""
        return MetricResult(float("good" in (sample.response or "")), metric=self.name)

    async def ameasure(self, sample: Sample) -> MetricResult:
        """Do the same, on the loop."""
        return self.measure(sample)


class Strict(OwnSession):
    """A session in which that judge judges."""

    metrics = (Stricter,)


@part
def judged_anew(random: Random, draws: int) -> Iterator[Figure]:
    """Judge both sides anew: a judge became stricter by 8 % under its name, and half of the answers are reworded."""

    def is_red(n: int, *, drop: float = 0.0, drift: str = "it drifts") -> bool:
        good, lost, flagged = random.random(n) < 0.9, random.random(n) < drop / 0.9, random.random((2, n)) < 0.08
        reworded = lost | (random.random(n) < 0.5)
        of_now = np.where(reworded, good & ~lost & ~flagged[1], good)  # the replies to equal answers are cached
        words = [f"{row} {'good' if it else ''}" for row, it in enumerate(good & ~flagged[0])]
        said = [f"anew {row} {'good' if it else ''}" for row, it in enumerate(of_now)]
        new = [said[row] if reworded[row] else words[row] for row in range(n)]
        anew, rule = Today(session=session), rule_of(Stricter())
        sides = (run(side.astype(float), responses=texts, rule=rule) for side, texts in ((of_now, new), (good, words)))
        return gate(*sides, regression=True, judging={"anew": anew, "drift": lambda _: drift}).outcome == "failed"

    with Strict(None, 8) as session:
        for n, as_it_is, anew, found in ((50, 0.024, 0.006, 0.36), (200, 0.84, 0.028, 0.97), (1000, 1.0, 0.043, 1.0)):
            times = draws if n < 1000 else max(1, draws // 5)
            yield share(f"unchanged, {n} rows: red", times, partial(is_red, n, drift=""), as_it_is)
            yield share(f"unchanged, {n} rows judged anew: red", times, partial(is_red, n), anew)
            yield share(f"ten points lost, {n} rows judged anew: red", times, partial(is_red, n, drop=0.1), found)
