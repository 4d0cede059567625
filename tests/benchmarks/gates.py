"""How often the assertions over sets are wrong, and how often they find what is there, by seeded simulation.

Run ``python -m tests.benchmarks.gates``; with ``--draws 2000`` the standard error of a share is 0.5 %. No language
model and no pytest takes part: rows pass or fail by chance, as those of an application whose answers vary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from pytest_ragmetrics.plugin.rows.drawn import BLOCK
from pytest_ragmetrics.stats.corrected import prediction_powered_mean
from pytest_ragmetrics.stats.drop import drops
from pytest_ragmetrics.stats.intervals import mean_interval, verdict
from pytest_ragmetrics.stats.means import samples_to_settle, set_threshold
from pytest_ragmetrics.stats.paired import paired_difference
from pytest_ragmetrics.stats.permutation import PairedScores
from pytest_ragmetrics.stats.scores import ScoredRow
from pytest_ragmetrics.stats.sequential import FEWEST
from pytest_ragmetrics.stats.stopping import DrawnSet, Rule, draw
from tests.benchmarks.intervals import simulations

Scores = npt.NDArray[np.float64]
Line = tuple[str, str]


def share(draws: int, is_so: Callable[[], bool]) -> str:
    return f"{sum(is_so() for _ in range(draws)) / draws:.3f}"


def flipped(random: np.random.Generator, scores: Scores, rate: float) -> Scores:
    """Return the scores of a run, in which a share of the rows comes out the other way by chance."""
    return np.where(random.random(len(scores)) < rate, 1.0 - scores, scores)


def regressions(random: np.random.Generator, draws: int) -> Iterator[Line]:
    """No regression: an unchanged application, and one that lost ten points."""

    def is_red(n: int, *, drop: float, metrics: int = 1) -> bool:
        rows = {}
        for metric in range(metrics):
            steady = (random.random(n) < 0.9).astype(float)
            before, after = (flipped(random, steady, 0.025) for _ in range(2))  # 5 % of the rows differ
            lost = random.random(n) < (drop / 0.9 if metric == 0 else 0.0)
            now = np.where(lost, 0.0, after)
            rows[str(metric)] = [PairedScores((old,), (new,)) for old, new in zip(before, now, strict=True)]
        return any(found.shown for found in drops(rows, clusters=dict.fromkeys(rows)).values())

    for n in (20, 50, 200, 1000):
        yield f"unchanged, {n} rows: red", share(draws, partial(is_red, n, drop=0.0))
    yield "unchanged, ten metrics of 200 rows: red", share(draws // 5, partial(is_red, 200, drop=0.0, metrics=10))
    for n in (50, 200, 1000):
        yield f"ten points lost, {n} rows: red", share(draws, partial(is_red, n, drop=0.1))


def rates(random: np.random.Generator, draws: int) -> Iterator[Line]:
    """Hold a rate against 0.9 without a confidence: an unchanged application whose rows all vary."""

    def is_red(n: int, rate: float) -> bool:
        return float((random.random(n) < rate).mean()) < 0.9

    for n in (50, 200):
        for rate in (0.92, 0.9):
            yield f"{n} rows, each passes in {rate:.0%} of runs: red", share(draws, partial(is_red, n, rate))


def margins(random: np.random.Generator, draws: int) -> Iterator[Line]:
    """Not worse: a true loss as large as the margin, and none."""

    def passes(n: int, loss: float, margin: float) -> bool:
        before, after = np.ones(n), (random.random(n) >= loss).astype(float)
        interval = paired_difference(before.tolist(), after.tolist()).interval
        return verdict(interval, -margin) == "passed"

    for n in (10, 40, 100, 300):
        yield f"a loss of 0.02 = margin, {n} rows: passed", share(draws, partial(passes, n, 0.02, 0.02))
    for n in (100, 200):
        yield f"no loss, margin 0.05, {n} rows: passed", share(draws, partial(passes, n, 0.0, 0.05))


def bounds(random: np.random.Generator, draws: int) -> Iterator[Line]:
    """Means and rates on their bound, in both directions, with two modes and in clusters."""

    def misses(n: int, side: str) -> bool:
        found = mean_interval(np.where(random.random(n) < 0.1, 0.05, 0.95).tolist())
        return found.low > 0.86 if side == "low" else found.high < 0.86

    for n in (5, 12, 50):
        for side, outcome in (("low", "passed"), ("high", "failed")):
            yield f"mean of {n} scores with two modes on its bound: {outcome}", share(draws, partial(misses, n, side))

    def clustered(groups: int) -> bool:
        common = random.random(groups) < 0.85
        rows = np.where(random.random((groups, 5)) < 0.89, common[:, None], random.random((groups, 5)) < 0.85)
        names = np.repeat(np.arange(groups), 5).tolist()
        return mean_interval(rows.ravel().astype(float).tolist(), clusters=names).low > 0.85

    for groups in (20, 50):
        what = f"rate of {groups} clusters (correlation 0.8) on its bound: passed"
        yield what, share(draws, partial(clustered, groups))

    def settled() -> bool | None:
        first = (random.random(60) < 0.9).astype(float).tolist()
        more = samples_to_settle(first, 0.8)
        if not more:
            return None
        rate = sum(first) / 60
        rest = (random.random(more) < rate).astype(float).tolist()
        return set_threshold([*first, *rest], 0.8, confidence=0.95).outcome != "inconclusive"

    found = [known for known in (settled() for _ in range(draws)) if known is not None]
    yield f"settled by the number of samples that is said ({len(found)} sets)", f"{np.mean(found):.3f}"


def stops(random: np.random.Generator, draws: int) -> Iterator[Line]:
    """Stop when decided: rows asked, to the end of their block, and decisions that the whole set contradicts."""

    def decide(n: int, rate: float, size: int, vacuous: float, seed: str) -> tuple[int, bool]:
        good = round(n * rate)
        flags = np.array([1.0] * good + [0.0] * (n - good))
        if size == 1:
            random.shuffle(flags)  # else good rows are together
        nothing = random.random(n) < vacuous
        rows = {
            f"row {row}": ScoredRow(name="", score=1.0 if nothing[row] else flags[row], vacuous=bool(nothing[row]))
            for row in range(n)
        }
        clusters = {name: row // size if size > 1 else None for row, name in enumerate(rows)}
        order, drawn = draw(clusters, seed)
        found = DrawnSet(order, drawn, [Rule(metric="m", bound=0.85, alpha=0.05, score_bound=0.5)])
        for name in order:
            found.note(name, {"m": rows[name]})
            if found.is_decided:
                break
        gate, counted = found.gates[0], flags[~nothing]
        asked = FEWEST + BLOCK * math.ceil(max(0, (gate.after or n) - FEWEST) / BLOCK)
        return min(n, asked), (gate.outcome == "passed") != (counted.mean() >= 0.85)

    for n, rate, size, vacuous in (
        *((500, 0.95, 1, 0.0), (2000, 0.95, 1, 0.0), (500, 0.95, 1, 0.3), (500, 0.8, 1, 0.0)),
        *((500, 0.848, 1, 0.0), (500, 0.848, 1, 0.3), (500, 0.848, 5, 0.0), (500, 0.95, 5, 0.0)),
    ):
        found = [decide(n, rate, size, vacuous, f"{draws} {run}") for run in range(max(1, draws // 5))]
        asked, wrong = np.mean(found, axis=0)
        what = f"{n} rows in clusters of {size}, {vacuous:.0%} vacuous, rate {rate} against 0.85: asked, wrong"
        yield what, f"{asked / n:.3f}, {wrong:.3f}"


def labels(random: np.random.Generator, draws: int) -> Iterator[Line]:
    """Labels that correct a judge: coverage, and the width against the labels alone."""

    def one(count: int, accuracy: float) -> tuple[bool, float]:
        good = (random.random(500) < 0.8).astype(float)
        judged = np.where(random.random(500) < accuracy, good, 1.0 - good)
        given = [float(label) if row < count else None for row, label in enumerate(good)]
        found = prediction_powered_mean(judged.tolist(), given)
        alone = mean_interval(good[:count].tolist())
        return found.low <= 0.8 <= found.high, found.half_width / alone.half_width

    for count, accuracy in ((10, 0.9), (30, 0.85), (100, 0.7), (100, 0.95)):
        found = [one(count, accuracy) for _ in range(max(1, draws // 5))]
        covered, width = np.mean(found, axis=0)
        what = f"{count} labels, judge of accuracy {accuracy}: covered, width of labels alone"
        yield what, f"{covered:.3f}, {width:.2f}"


PARTS = {part.__name__: part for part in (regressions, rates, margins, bounds, stops, labels)}


def main() -> None:
    parser = simulations(__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which to run (default: all)")
    arguments = parser.parse_args()
    for name in arguments.parts or PARTS:
        print((PARTS[name].__doc__ or "").splitlines()[0])
        for what, figure in PARTS[name](np.random.default_rng(arguments.seed), arguments.draws):
            print(f"  {what:75} {figure}", flush=True)


if __name__ == "__main__":
    main()
