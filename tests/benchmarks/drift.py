"""How soon sentinels find a judge that has changed, and how often they find one that has not; a part of ``gates``."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pytest_ragmetrics.stats.drift import ALARM, drift_evidence
from tests.benchmarks.simulated import Figure, Random, part, share_of


def alarm_after(random: Random, rate: float, asked: int, *, quiet: int = 0, runs: int = 40) -> float:
    """Return in which run there is an alarm, after ``quiet`` ones in which nothing changes; infinity without any."""
    changed = [*[0.0] * quiet, *map(float, random.binomial(asked, rate, runs))]
    evidence = [e for e, _ in drift_evidence((asked, it) for it in changed)][quiet:]
    return next((run for run, e in enumerate(evidence, start=1) if e >= ALARM), math.inf)


@part
def drift(random: Random, draws: int) -> Iterator[Figure]:
    """Sentinels: alarms where verdicts of a judge change, and where they do so by chance alone."""
    # By the share that changes and the answers asked again a run: alarms in 40 runs, and in which run half have come.
    found = {(0.0, 20): None, (0.05, 20): None, (0.15, 20): 7, (0.15, 10): 13, (0.25, 20): 3, (0.25, 10): 4}
    for (rate, asked), known in found.items():
        runs = sorted(alarm_after(random, rate, asked) for _ in range(draws))
        what = f"{rate:.0%} of verdicts change, {asked} asked again"
        yield share_of(f"{what}: alarms in 40 runs", [run < math.inf for run in runs], 0.0 if known is None else 1.0)
        if known is not None:
            yield Figure(f"{what}: run of the alarm, median (expected: {known})", runs[draws // 2])
    for rate in (0.05, 0.025):
        for asked in (20, 50):
            flags = [alarm_after(random, rate, asked, runs=200) < math.inf for _ in range(draws)]
            yield share_of(f"{rate:.1%} change by chance, {asked} asked again: alarms in 200 runs", flags)
    for rate, known in ((0.15, 6), (0.1, 20), (0.25, 3)):
        runs = sorted(alarm_after(random, rate, 20, quiet=100, runs=100) for _ in range(draws))
        yield Figure(f"{rate:.0%} change after 100 quiet runs: run of the alarm, median ({known})", runs[draws // 2])
