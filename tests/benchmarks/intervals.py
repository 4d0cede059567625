"""How often intervals of 95 % miss the truth, below and above, by seeded simulation.

Run ``python -m tests.benchmarks.intervals``; with ``--draws 2000`` the standard error of a share is 0.5 %.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from pytest_ragmetrics.stats.agreement import agreement, auroc, kappa_of
from pytest_ragmetrics.stats.corrected import corrected_rate, prediction_powered_mean
from pytest_ragmetrics.stats.intervals import Interval, mean_interval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Simulation = Callable[[np.random.Generator], dict[str, Interval]]


def alike(random: np.random.Generator, cluster: Ints, within: float = 0.3) -> Floats:
    """Return normal variables that correlate in their cluster."""
    own, common = random.normal(size=len(cluster)), random.normal(size=cluster.max() + 1)
    found: Floats = math.sqrt(1 - within) * own + math.sqrt(within) * common[cluster]
    return found


def means(random: np.random.Generator) -> dict[str, Interval]:
    """Few scores with two modes, and the shares of ten claims."""
    return {
        "8 scores with two modes": mean_interval(np.where(random.random(8) < 0.1, 0.05, 0.95).tolist()),
        "40 shares of ten claims": mean_interval((random.binomial(10, 0.8, 40) / 10).tolist()),
    }


def clustered(random: np.random.Generator) -> dict[str, Interval]:
    """Scores and flags in clusters of one size and of very different ones, by Student's t and as rates."""
    threes, mixed = np.repeat(np.arange(10), 3), np.repeat(np.arange(21), (1, 3, 5, 11) * 5 + (1,))
    normal, few = alike(random, mixed, 0.4), alike(random, threes, 0.4)
    return {
        "mean of 101": mean_interval((0.6 + normal / 10).tolist(), clusters=mixed.tolist(), bounds=None),
        "rate of 101": mean_interval((normal < NormalDist().inv_cdf(0.6)).tolist(), clusters=mixed.tolist()),
        "rate of 30": mean_interval((few < NormalDist().inv_cdf(0.8)).tolist(), clusters=threes.tolist()),
    }


def corrected(random: np.random.Generator) -> dict[str, Interval]:
    """Rates that the errors of a judge correct, known by labels, and the rates as the judge has them."""
    found = {}
    for truth, tpr, tnr, labels in ((0.5, 0.85, 0.8, 60), (0.95, 0.95, 0.7, 100)):
        right = mean_interval((random.random(labels // 2) < tpr).tolist())
        caught = mean_interval((random.random(labels // 2) < tnr).tolist())
        good = random.random(300) < truth
        passed = mean_interval((random.random(300) < np.where(good, tpr, 1 - tnr)).tolist())
        found[f"rate of {truth}, corrected"] = corrected_rate(passed, tpr=right, tnr=caught)
        found[f"rate of {truth}, as judged"] = passed
    return found


def predicted(random: np.random.Generator) -> dict[str, Interval]:
    """Means of scores and labels in random order, alone and in clusters over both parts."""
    cluster, found = np.repeat(np.arange(100), 3), {}
    for name, shares in (("alone", 0.0), ("in clusters", 0.5)):
        good = np.where(random.random(300) < shares, random.random(100)[cluster], random.random(300)) < 0.7
        scores = np.round(good * 0.6 + 0.4 * random.random(300), 1).tolist()
        places = random.permutation(300)
        labels = [float(label) if place < 60 else None for label, place in zip(good, places, strict=True)]
        names = cluster.tolist() if shares else None
        found[f"60 of 300 labels {name}"] = prediction_powered_mean(scores, labels, clusters=names)
    return found


def agreements(random: np.random.Generator) -> dict[str, Interval]:
    """Figures of a judge against people, for answers in clusters of one to six."""
    cluster = np.repeat(np.arange(20), random.integers(1, 7, 20))
    good = alike(random, cluster) < NormalDist().inv_cdf(0.7)
    limits = np.where(good, NormalDist().inv_cdf(0.9), NormalDist().inv_cdf(0.7))
    passed = good == (alike(random, cluster) < limits)
    figures = agreement(passed.tolist(), good.tolist(), clusters=cluster.tolist())
    area = auroc((good + alike(random, cluster)).tolist(), good.tolist(), clusters=cluster.tolist())
    names = ("tpr", "tnr", "balanced_accuracy", "f1_bad", "kappa")
    return {**{name: getattr(figures, name) for name in names}, "auroc": area}


#: Each simulation with the figures of its populations, in their order.
PARTS: dict[str, tuple[Simulation, tuple[float, ...]]] = {
    "means": (means, (0.86, 0.8)),
    "clustered": (clustered, (0.6, 0.6, 0.8)),
    "corrected": (corrected, (0.5, 0.5, 0.95, 0.95)),
    "predicted": (predicted, (0.7, 0.7)),
    "agreements": (agreements, (0.9, 0.7, 0.8, 0.42 / 0.58, kappa_of(0.9, 0.7, 0.7), 0.5 * math.erfc(-0.5))),
}


def missed(part: str, draws: int, seed: int = 1) -> Iterator[tuple[str, int, int, float]]:
    """Return how often each interval of a part is above the truth and below it, and half of its width in the mean."""
    simulate, truths = PARTS[part]
    random = np.random.default_rng(seed)
    sets = [simulate(random) for _ in range(draws)]
    for name, truth in zip(sets[0], truths, strict=True):
        found = [each[name] for each in sets]
        above, below = sum(it.low > truth for it in found), sum(it.high < truth for it in found)
        yield name, above, below, sum(it.half_width for it in found) / draws


def simulations(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=400, help="simulated sets (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def main() -> None:
    arguments = simulations(__doc__).parse_args()
    for part, (simulate, _) in PARTS.items():
        print((simulate.__doc__ or "").strip())
        for name, above, below, half in missed(part, arguments.draws, arguments.seed):
            shares = f"above {above / arguments.draws:.3f}, below {below / arguments.draws:.3f}"
            print(f"  {name:35} {shares}, half width {half:.3f}", flush=True)


if __name__ == "__main__":
    main()
