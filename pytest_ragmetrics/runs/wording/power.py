"""What a gate can find, and what it can never do, in words: dry runs, `ragmetrics init`, summary and page say it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from pytest_ragmetrics.runs.records import Gate, Threshold, is_met
from pytest_ragmetrics.runs.wording.comparisons import FEWEST
from pytest_ragmetrics.runs.wording.figures import counted, is_quantile
from pytest_ragmetrics.stats.intervals import mean_interval
from pytest_ragmetrics.stats.power import MOST_ROWS, POWER, Plan
from pytest_ragmetrics.stats.scores import ROUNDING, goodness

#: The losses that are asked for, as shares of the scale.
_SMALL, _LARGE = 0.1, 0.2
# A bound that is recommended has two decimals.
_STEPS = 100


def finds_text(plan: Plan, rows: int, clusters: int | None = None) -> str:
    """Return how often a regression gate over so many rows (in so many clusters) finds a loss, and what it needs.

    >>> print(finds_text(Plan(), 50))
    50 rows find a loss of 10 points in 4 of 10 runs, of 20 points in 9 of 10; for 8 of 10 at 10 points take 100 rows
    >>> print(finds_text(Plan(), 400, 20).partition(";")[0])
    400 rows in 20 clusters find a loss of 10 points in 1 of 10 runs, of 20 points in 3 of 10
    """
    units, noun = (rows, "row") if clusters is None else (clusters, "cluster")
    small, large = (plan.power(units, drop) for drop in (_SMALL, _LARGE))
    verb = "finds" if rows == 1 else "find"
    text = f"{counted(rows, 'row')}{'' if clusters is None else f' in {counted(clusters, noun)}'} {verb}"
    text += f" a loss of 10 points {_often(small, ' runs')}, of 20 points {_often(large)}"
    if round(10 * small) >= 10 * POWER:
        return text
    needed = plan.rows(_SMALL)
    more = f"take {counted(needed, noun)}" if needed else f"{counted(MOST_ROWS, noun)} are too few"
    return f"{text}; for 8 of 10 at 10 points {more}"


def _often(power: float, noun: str = "") -> str:
    tenths = round(10 * power)
    return {0: "in hardly any run", 10: "in nearly every run"}.get(tenths, f"in {tenths} of 10{noun}")


def changes_text(plan: Plan, runs: int = 0) -> str:
    """Return on which changes by chance a plan rests: among the last ``runs``, in that of the baseline, or a guess.

    >>> changes_text(Plan()), changes_text(Plan(quiet=0.01), 6)
    ('no earlier runs: 2.5 % of rows taken to change each way', '1 % of rows changed each way in the last 6 runs')
    """
    share, last = (
        f"{100 * plan.quiet:.2g} % of rows",
        "the run of the baseline" if runs == 1 else f"the last {runs} runs",
    )
    if not runs:
        return f"no earlier runs: {share} taken to change each way"
    return f"as scores differed in {last}" if plan.runs else f"{share} changed each way in {last}"


def limit_text(
    gate: Gate,
    n: int,
    clusters: Sequence[Hashable] | None = None,
    *,
    scale: tuple[float, float] | None = (0.0, 1.0),
    alpha: float | None = None,
    earlier: int = 1,
) -> str:
    """Return what a gate over ``n`` scores can never do, and what to write instead; "" where it can pass and fail.

    ``alpha`` is that of a regression gate, with so many ``earlier`` runs in its baseline.

    >>> gate = Gate(metric="m", statistic="rate", bound=0.9, min_score=0.8, better="higher", confidence=0.95)
    >>> limit_text(gate, 20)
    'can never pass: with confidence=0.95 even 20 of 20 gives an interval from 0.83; take 36 rows or a bound of 0.83'
    >>> share = {"statistic": "rate", "bound": 0.95, "min_score": 2, "confidence": 0.95}
    >>> latency = Gate(metric="latency", better="lower", unit="s", **share)
    >>> limit_text(latency, 50, scale=None)
    'can never pass: with confidence=0.95 even 50 of 50 gives an interval from 0.92; take 72 rows or p92='
    >>> limit_text(Gate(metric="m", statistic="regression", bound=0.0), 30, [0, 1, 2] * 10, alpha=0.05)
    'can never fail: if nothing had changed, all 3 clusters become worse in 12.5 % of runs (limit 5 %); take 5 clusters'
    """
    units = n if clusters is None else len({*clusters})
    noun = "row" if units == n else "cluster"
    if alpha is not None:
        return _regression_limit(gate, n, units, noun, alpha=alpha, earlier=earlier)
    if (scale is None and gate.statistic == "mean") or not n:
        return ""
    better, what, ends = gate.better or "higher", f"{n} of {n}", scale or (-math.inf, math.inf)
    worst, best = ends if better == "higher" else ends[::-1]
    if gate.statistic == "mean":
        what = f"{counted(n, 'score')} of {best:g}"
    elif is_met(worst, Threshold(operator=">=" if better == "higher" else "<=", bound=gate.min_score or 0.0)):
        return f"can never fail: every score reaches {'min' if better == 'higher' else 'max'}={gate.min_score:g}"
    else:
        ends, better, worst, best = (0.0, 1.0), "higher", 0.0, 1.0
    bound = goodness(gate.bound, ends, better)
    if bound <= 0.0:
        return f"can never fail: no {gate.statistic} is {'below' if better == 'higher' else 'above'} {worst:g}"
    if gate.confidence is None:
        return ""
    # By symmetry, scores that are all at the worst end give an interval as far from it.
    low = mean_interval([1.0] * n, confidence=gate.confidence, clusters=clusters).low
    tail, side = math.log((1.0 - gate.confidence) / 2.0), {"higher": "from", "lower": "to"}[better]
    verb = "give" if gate.statistic == "mean" and n > 1 else "gives"
    even = f"with confidence={gate.confidence:g} even {what} {verb} an interval {side}"
    if gate.inconclusive == "fail" and low < bound:
        end = worst + low * (best - worst)
        end = (math.floor if better == "higher" else math.ceil)(end * _STEPS) / _STEPS
        rows = f"{counted(math.ceil(tail / math.log(bound)), noun)} or " if bound < 1.0 else ""
        easier = f"p{100 * end:g}=" if is_quantile(gate) else f"a bound of {end:g}"
        return f"can never pass: {even} {end:g}; take {rows}{easier}"
    if gate.inconclusive == "pass" and 1.0 - low >= bound:
        rows = f"; take {counted(math.floor(tail / math.log1p(-bound)) + 1, noun)}" if bound < 1.0 else ""
        which = f"{counted(n, 'score')} at {worst:g}"
        return f"can never fail: with confidence={gate.confidence:g} even {which} are inconclusive, which passes{rows}"
    return ""


def _regression_limit(gate: Gate, n: int, units: int, noun: str, *, alpha: float, earlier: int) -> str:
    if n < FEWEST:
        what = "pass" if gate.inconclusive == "fail" else "fail"
        return f"can never {what}: {counted(n, 'row')}, and {FEWEST} are the least that a regression gate compares"
    least = (earlier + 1.0) ** -units
    if least <= alpha + ROUNDING:
        return ""
    needed = math.ceil(-math.log(alpha) / math.log(earlier + 1.0) - ROUNDING)
    worse = f"its only {noun} becomes worse" if units == 1 else f"all {counted(units, noun)} become worse"
    chance = f"{worse} in {100 * least:.3g} % of runs (limit {100 * alpha:.3g} %)"
    return f"can never fail: if nothing had changed, {chance}; take {counted(needed, noun)}"
