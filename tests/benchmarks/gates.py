"""How often the assertions over sets are wrong, and how often they find what is there, by seeded simulation.

Run ``python -m tests.benchmarks.gates [PART ...]``; with ``--draws 2000`` the standard error of a share is at most 1 %.
No language model and no pytest takes part: rows pass or fail by chance, as those of an application whose answers vary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import tests.benchmarks.anew
import tests.benchmarks.drift
import tests.benchmarks.earlier_runs  # noqa: F401 - adds its parts
from pytest_ragmetrics import assert_mean, assert_no_regression, assert_not_worse, assert_pass_rate
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.table import Evaluation
from pytest_ragmetrics.plugin.rows.drawn import BLOCK
from pytest_ragmetrics.runs.records import Document
from pytest_ragmetrics.stats.power import Plan
from pytest_ragmetrics.stats.scores import ScoredRow
from pytest_ragmetrics.stats.sequential import FEWEST
from pytest_ragmetrics.stats.stopping import DrawnSet, Rule, draw
from tests.benchmarks.intervals import simulations
from tests.benchmarks.simulated import (
    METRIC,
    PARTS,
    Figure,
    Random,
    Scores,
    coins,
    gate,
    gates,
    part,
    ran,
    red,
    run,
    several,
    share,
    share_of,
    table,
    unsteady,
    worse,
)


def flipped(random: Random, scores: Scores, rate: float) -> Scores:
    """Return the scores of a run, in which a share of the rows comes out the other way by chance."""
    return np.where(random.random(len(scores)) < rate, 1.0 - scores, scores)


@part
def regressions(random: Random, draws: int) -> Iterator[Figure]:
    """No regression: an unchanged application, and one that lost ten points."""

    def is_red(n: int, *, drop: float, metrics: int = 1) -> bool:
        before, now = {}, {}
        for metric in range(metrics):
            steady = (random.random(n) < 0.9).astype(float)
            before[str(metric)], after = (flipped(random, steady, 0.025) for _ in range(2))  # 5 % of the rows differ
            lost = random.random(n) < (drop / 0.9 if metric == 0 else 0.0)
            now[str(metric)] = np.where(lost, 0.0, after)
        return red(assert_no_regression, table(now), table(before))

    for n in (20, 50, 200, 1000):
        yield share(f"unchanged, {n} rows: red", draws, partial(is_red, n, drop=0.0))
    yield share("unchanged, ten metrics of 200 rows: red", draws // 5, partial(is_red, 200, drop=0.0, metrics=10))
    for n in (50, 200, 1000):
        yield share(f"ten points lost, {n} rows: red", draws, partial(is_red, n, drop=0.1))


@part
def planned(random: Random, draws: int) -> Iterator[Figure]:
    """Plan: how often a loss is found, beside the power that a dry run says, and how often the smallest one is."""

    def finds(n: int, quiet: float, drop: float, runs: int = 1) -> bool:
        before = np.where(random.random(n) < 4.0 * quiet, 0.5, 1.0)
        now = np.where((before == 1.0) & (random.random(n) < drop / (1.0 - 4.0 * quiet)), 0.0, before)
        return red(assert_no_regression, table(ran(random, now)), [table(ran(random, before)) for _ in range(runs)])

    for n, quiet, drop in (
        *((50, 0.025, 0.1), (50, 0.025, 0.2), (100, 0.025, 0.1), (200, 0.025, 0.1)),
        *((50, 0.0, 0.1), (50, 0.05, 0.2), (200, 0.05, 0.1), (500, 0.05, 0.05)),
    ):
        what = f"{n} rows, {quiet:.1%} change each way: a loss of {drop:.0%}"
        yield share(what, draws, partial(finds, n, quiet, drop), Plan(quiet=quiet).power(n, drop))
    for n, runs, drop in ((50, 3, 0.1), (50, 5, 0.1), (200, 5, 0.05)):
        what = f"{n} rows, 2.5% change each way, {runs} runs before: a loss of {drop:.0%}"
        yield share(what, draws, partial(finds, n, 0.025, drop, runs), Plan(before=runs).power(n, drop))

    def graded(scores: Scores, lost: float = 0.0) -> Scores:
        noise = random.normal(0.0, 0.15, len(scores)) * (random.random(len(scores)) < 0.5)
        return np.clip(np.where(random.random(len(scores)) < lost / scores.mean(), 0.0, scores + noise), 0.0, 1.0)

    def finds_smallest(n: int) -> bool:
        steady = np.clip(random.normal(0.8, 0.15, n), 0.0, 1.0)
        unchanged, before = table(graded(steady)), table(graded(steady))
        with suppress(AssertionError):
            smallest = assert_no_regression(unchanged, before).drops[METRIC].smallest or 1.0
            return red(assert_no_regression, table(graded(steady, smallest)), before)
        return True

    for n in (20, 50, 200):
        what = f"{n} graded scores: the smallest loss that is said"
        yield share(what, max(60, draws // 5), partial(finds_smallest, n), 0.8)


@part
def rates(random: Random, draws: int) -> Iterator[Figure]:
    """Hold a rate against 0.9 without a confidence: an unchanged application whose rows all vary."""

    def is_red(n: int, rate: float) -> bool:
        return red(assert_pass_rate, ran(random, unsteady(random, n, rate)).tolist(), 1.0, 0.9)

    for n in (50, 200):
        for rate in (0.92, 0.9):
            yield share(f"{n} rows, each passes in {rate:.0%} of runs: red", draws, partial(is_red, n, rate))


@part
def margins(random: Random, draws: int) -> Iterator[Figure]:
    """Not worse: a true loss as large as the margin, and none."""

    def passes(n: int, loss: float, margin: float) -> bool:
        before, after = np.ones(n), (random.random(n) >= loss).astype(float)
        return not red(assert_not_worse, table(after), table(before), margin=margin)

    for n in (10, 40, 100, 300):
        yield share(f"a loss of 0.02 = margin, {n} rows: passed", draws, partial(passes, n, 0.02, 0.02))
    for n in (100, 200):
        yield share(f"no loss, margin 0.05, {n} rows: passed", draws, partial(passes, n, 0.0, 0.05))


@part
def bounds(random: Random, draws: int) -> Iterator[Figure]:
    """Means and rates on their bound, in both directions, with two modes and in clusters."""

    def misses(n: int, side: str) -> bool:
        scores = np.where(random.random(n) < 0.1, 0.05, 0.95).tolist()
        if side == "low":
            return not red(assert_mean, scores, 0.86, confidence=0.95)
        return red(assert_mean, scores, 0.86, confidence=0.95, inconclusive="pass")

    for n in (5, 12, 50):
        for side, outcome in (("low", "passed"), ("high", "failed")):
            yield share(f"mean of {n} scores with two modes on its bound: {outcome}", draws, partial(misses, n, side))

    def clustered(groups: int) -> bool:
        common = random.random(groups) < 0.85
        rows = np.where(random.random((groups, 5)) < 0.89, common[:, None], random.random((groups, 5)) < 0.85)
        names = np.repeat(np.arange(groups), 5).tolist()
        scores = rows.ravel().astype(float).tolist()
        return not red(assert_pass_rate, scores, 1.0, 0.85, confidence=0.95, clusters=names)

    for groups in (20, 50):
        yield share(
            f"rate of {groups} clusters (correlation 0.8) on its bound: passed", draws, partial(clustered, groups)
        )

    known = 0

    def settled() -> bool:
        nonlocal known
        first = (random.random(60) < 0.9).astype(float).tolist()
        more = assert_mean(first, 0.8, confidence=0.95, inconclusive="pass").more
        if not more:
            return False
        known += 1
        rest = (random.random(more) < sum(first) / 60).astype(float).tolist()
        passed = not red(assert_mean, [*first, *rest], 0.8, confidence=0.95)
        return passed or red(assert_mean, [*first, *rest], 0.8, confidence=0.95, inconclusive="pass")

    found = sum(settled() for _ in range(draws))
    yield Figure(f"settled by the number of samples that is said ({known} sets)", found / max(1, known))


@part
def answers(random: Random, draws: int) -> Iterator[Figure]:
    """Several answers a row, of an application on its bound: rates and means of them, and rows whose answers all pass.

    The chance of a row to pass is drawn from a beta distribution of mean 0.85, the third moment of which is 0.708.
    """

    def asked(n: int, k: int) -> tuple[Scores, list[str], list[dict[str, int]]]:
        return np.repeat(random.beta(1.7, 0.3, n), k), *several(n, k)

    def passes(n: int, k: int, figure: str, **named: Any) -> bool:
        chances, ids, metadata = asked(n, k)
        scores = ran(random, chances)
        if figure == "mean":
            scores = np.where(scores == 1.0, 0.95, 0.05)
            return not red(assert_mean, table(scores, ids=ids, metadata=metadata), 0.815, confidence=0.95)
        bound = 1.7 * 2.7 * 3.7 / 24.0 if figure == "all" else 0.85
        given = table(scores, ids=ids, metadata=metadata)
        return not red(assert_pass_rate, given, 1.0, bound, confidence=0.95, all_pass=figure == "all", **named)

    for n in (20, 50, 200):
        for figure in ("rate", "mean", "all"):
            yield share(
                f"3 answers to each of {n} rows, {figure} on its bound: passed", draws, partial(passes, n, 3, figure)
            )
    alone = partial(passes, 50, 3, "rate", clusters=range(150))
    yield share("3 answers to each of 50 rows, as if they were 150 rows: passed", draws, alone)

    def covered(n: int) -> bool:
        chances, ids, metadata = asked(n, 3)
        given = table(ran(random, chances), ids=ids, metadata=metadata)
        interval = assert_pass_rate(given, 1.0, 0.0, confidence=0.95, all_pass=True).interval
        assert interval is not None
        return interval.low <= 1.7 * 2.7 * 3.7 / 24.0 <= interval.high

    for n in (20, 50, 200):
        yield share(f"{n} rows whose 3 answers all pass: covered by the interval", draws, partial(covered, n))


@part
def stops(random: Random, draws: int) -> Iterator[Figure]:
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
        what = f"{n} rows in clusters of {size}, {vacuous:.0%} vacuous, rate {rate} against 0.85"
        yield Figure(f"{what}: asked", float(asked) / n)
        yield Figure(f"{what}: wrong", float(wrong))


@part
def labels(random: Random, draws: int) -> Iterator[Figure]:
    """Labels that correct a judge: coverage, and the width against the labels alone."""

    def one(count: int, accuracy: float) -> tuple[bool, float]:
        good = (random.random(500) < 0.8).astype(float)
        scores = np.where(random.random(500) < accuracy, good, 1.0 - good)
        given = [{"label": float(label)} if row < count else {} for row, label in enumerate(good)]
        found = table(scores, metadata=given).corrected_mean(METRIC)
        alone = assert_mean(good[:count].tolist(), 0.0, confidence=0.95).interval
        assert alone is not None
        return found.low <= 0.8 <= found.high, found.half_width / alone.half_width

    for count, accuracy in ((10, 0.9), (30, 0.85), (100, 0.7), (100, 0.95)):
        found = [one(count, accuracy) for _ in range(max(1, draws // 5))]
        covered, width = np.mean(found, axis=0)
        yield Figure(f"{count} labels, judge of accuracy {accuracy}: covered", float(covered))
        yield Figure(f"{count} labels, judge of accuracy {accuracy}: width of labels alone", float(width))


@part
def shared_passages(random: Random, draws: int) -> Iterator[Figure]:
    """No regression where rows share passages, of which some fail together: as they are, and told to be apart."""

    def asked(scores: Scores, passages: Sequence[int], *, apart: bool) -> Evaluation:
        rows = (
            Sample(id=f"q{at}", reference_contexts=[f"passage {it}"], metadata={"cluster": at} if apart else {})
            for at, it in enumerate(passages)
        )
        found = table(scores)
        return replace(
            found, rows=tuple(replace(row, sample=sample) for row, sample in zip(found.rows, rows, strict=True))
        )

    def is_red(n: int, number: int, *, failing: float = 0.0, lost: float = 0.0, apart: bool) -> bool:
        passages = random.integers(0, number, n)
        steady = np.where(random.random(n) < 0.92, 1.0, 0.0)

        def ran_once(chances: Scores) -> Scores:
            fails = (random.random(number) < failing)[passages] & (random.random(n) < 0.8)
            return flipped(random, np.where(fails, 0.0, chances), 0.025)

        before, now = ran_once(steady), ran_once(worse(random, steady, lost) if lost else steady)
        named = passages.tolist()
        return red(assert_no_regression, asked(now, named, apart=apart), asked(before, named, apart=apart))

    for n, number in ((50, 10), (200, 40)):
        for apart in (True, False):
            where = f"{n} rows on {number} passages, {'apart' if apart else 'joined'}"
            yield share(
                f"{where}, unchanged, 10 % of passages fail in a run: red",
                draws,
                partial(is_red, n, number, failing=0.1, apart=apart),
            )
            yield share(f"{where}, unchanged, none fails: red", draws, partial(is_red, n, number, apart=apart))
            yield share(f"{where}, ten points lost: red", draws, partial(is_red, n, number, lost=0.1, apart=apart))


@part
def groups(random: Random, draws: int) -> Iterator[Figure]:
    """No regression by group: red, red where the groups are tested beside the whole, and with the right one named."""

    def one(number: int, size: int, lost: float, *, everywhere: bool = False) -> tuple[bool, bool, bool]:
        chances = coins(random, number * size)
        now = chances.copy()
        good = np.flatnonzero(chances[: None if everywhere else size])
        rows = math.ceil(lost * size * (number if everywhere else 1))
        now[random.choice(good, min(rows, len(good)), replace=False)] = 0.0
        languages = [{"language": f"l{row // size}"} for row in range(number * size)]
        sides = [table(ran(random, each), metadata=languages) for each in (now, chances)]
        told: dict[str, Any] = {"inconclusive": "pass"}
        try:
            named = assert_no_regression(*sides, by="language", **told).drops[METRIC].dropped
        except AssertionError as error:
            text = str(error)
            return red(assert_no_regression, *sides, **told), True, "language=l0:" in text.partition("\n")[0]
        assert not named
        return red(assert_no_regression, *sides, **told), False, False

    for (number, size, lost, everywhere), expected in {
        (8, 25, 0.0, False): (0.017, 0.012, 0.0),
        (8, 25, 0.3, False): (0.58, 0.78, 0.75),
        (8, 25, 0.5, False): (0.94, 1.0, 0.99),
        (8, 25, 0.1, True): (0.99, 0.99, 0.02),
        (4, 50, 0.3, False): (0.96, 0.99, 0.99),
    }.items():
        who = "all lose" if everywhere else "one loses" if lost else "none loses"
        found = zip(*(one(number, size, lost, everywhere=everywhere) for _ in range(draws)), strict=True)
        for what, flags, figure in zip(
            ("whole: red", "by group: red", "names the first group"), found, expected, strict=True
        ):
            yield share_of(f"{number} groups of {size}, {who} {lost:g}: {what}", flags, figure)


@part
def silence(random: Random, draws: int) -> Iterator[Figure]:
    """No regression where rows have nothing to check any more, as 5 % of the others differ by chance in two runs."""

    def is_red(n: int, share_silent: float) -> bool:
        speaks, chances = coins(random, n), coins(random, n)
        now = np.where(random.random(n) < share_silent, 0.0, speaks)
        sides = [table(ran(random, chances), vacuous=ran(random, each) == 0.0) for each in (now, speaks)]
        return red(assert_no_regression, *sides, inconclusive="pass")

    for n, expected in ((200, (0.007, 0.50, 0.94, 1.0)), (50, (0.0, None, None, 0.94))):
        for silent, figure in zip((0.0, 0.05, 0.1, 0.3), expected, strict=True):
            yield share(f"{n} rows, {silent:.0%} fall silent: red", draws, partial(is_red, n, silent), figure)


@part
def many_gates(random: Random, draws: int) -> Iterator[Figure]:
    """Ten functions with a regression gate each: how often any is red, with one limit each and with one of the run."""

    def sets(n: int, drop: float = 0.0) -> list[tuple[Document, Document]]:
        found = []
        for at in range(10):
            chances = unsteady(random, n)
            now = worse(random, chances, drop) if at == 0 else chances
            of = partial(run, function=f"test_bot{at}")
            found.append((of(ran(random, now)), of(ran(random, chances))))
        return found

    def apart(n: int) -> bool:
        return any(gate(now, before, regression=True).outcome == "failed" for now, before in sets(n))

    def together(n: int, drop: float = 0.0) -> bool:
        return any(found.outcome == "failed" for found in gates(sets(n, drop), regression=True))

    for n in (50, 200):
        yield share(f"unchanged, {n} rows, a limit each: red", draws, partial(apart, n))
        yield share(f"unchanged, {n} rows, one limit: red", draws, partial(together, n))
    for drop in (0.1, 0.2):
        yield share(f"one loses {drop:g}, 200 rows, one limit: red", draws, partial(together, 200, drop))


def figures(name: str, draws: int, seed: int = 1) -> Iterator[Figure]:
    """Yield the figures of a part."""
    yield from PARTS[name](np.random.default_rng(seed), draws)


def main() -> None:
    parser = simulations(__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which to run (default: all)")
    arguments = parser.parse_args()
    for name in arguments.parts or PARTS:
        print((PARTS[name].__doc__ or "").splitlines()[0])
        for line in figures(name, arguments.draws, arguments.seed):
            error = f" +- {line.error:.3f}" if line.error else ""
            known = "" if line.expected is None else f"  ({line.expected:.3f}{', far' if line.is_far else ''})"
            print(f"  {line.what:75} {line.found:.3f}{error}{known}", flush=True)


if __name__ == "__main__":
    main()
