"""What `ragmetrics label` saves against labels in random order, and how often its intervals are right, by simulation.

Run ``python tests/benchmarks/labels.py``; with ``--draws 1500`` the standard error of a share is 0.6 %. A world makes
rows with the score of a judge and the label that a person would give; 0.8 of the answers are good unless it says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pytest_ragmetrics.stats.corrected import drawn_mean, prediction_powered_mean

Floats = npt.NDArray[np.float64]
World = Callable[[np.random.Generator, int], tuple[Floats, Floats]]


def good_with(random: np.random.Generator, rate: float, n: int) -> Floats:
    """Return labels."""
    return (random.random(n) < rate).astype(float)


def calibrated(a: float, b: float) -> World:
    """Scores that are the probability of a good label."""

    def world(random: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        chance = random.beta(a, b, n)
        return chance, (random.random(n) < chance).astype(float)

    return world


def counted(good: tuple[float, float], bad: tuple[float, float], rate: float = 0.8) -> World:
    """Scores that are shares of five votes or claims, with other chances for good and bad answers."""

    def world(random: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        label = good_with(random, rate, n)
        chance = np.where(label > 0, random.beta(*good, n), random.beta(*bad, n))
        return random.binomial(5, chance) / 5, label

    return world


def without_skill(random: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Scores that say nothing."""
    return random.random(n), good_with(random, 0.8, n)


def mostly_one(random: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Scores of 1 for 85 % of the rows, whatever their labels."""
    return np.maximum(random.random(n), good_with(random, 0.85, n)), good_with(random, 0.8, n)


WORLDS: dict[str, tuple[float, World]] = {
    "scores that are probabilities, 0.75 good": (0.75, calibrated(1.5, 0.5)),
    "scores that are sure and right": (0.8, calibrated(0.4, 0.1)),
    "shares of five claims": (0.8, counted((60, 4.5), (6, 4))),
    "five votes": (0.8, counted((4, 0.6), (1, 2))),
    "five votes, 0.95 good": (0.95, counted((8, 0.6), (1, 2), 0.95)),
    "scores that say nothing": (0.8, without_skill),
    "scores of 1 whatever the label": (0.8, mostly_one),
}


def drawn(
    random: np.random.Generator, scores: Floats, good: Floats, n: int, *, weights: Floats
) -> tuple[list[float | None], list[float]]:
    """Return the labels of the first n rows by weight / U, and the inverse chances."""
    priority = weights / random.random(len(scores))
    order = np.argsort(-priority)
    labels: list[float | None] = [None] * len(scores)
    for row in order[:n]:
        labels[row] = float(good[row])
    return labels, np.maximum(1.0, priority[order[n]] / weights).tolist()


def hard_first(scores: Floats) -> Floats:
    """Return the weights of graded scores."""
    weights: Floats = np.sqrt(scores * (1.0 - scores)) + 0.2
    return weights


def errors(
    random: np.random.Generator, rate: float, world: World, rows: int, n: int, *, draws: int
) -> tuple[float, float]:
    """Return how often the interval contains the rate, and the share of labels saved for the same error."""
    covered, squares = 0, [0.0, 0.0]
    for _ in range(draws):
        scores, good = world(random, rows)
        found = [
            drawn_mean(scores.tolist(), *drawn(random, scores, good, n, weights=weights))
            for weights in (hard_first(scores), np.ones(rows))
        ]
        covered += found[0].low <= rate <= found[0].high
        for place, interval in enumerate(found):
            squares[place] += (interval.estimate - float(good.mean())) ** 2
    # The squared error of n of N rows in random order is as 1/n - 1/N.
    return covered / draws, (1.0 - squares[0] / squares[1]) * (1.0 - n / rows)


def same_width(random: np.random.Generator, world: World, sets: int) -> int:
    """Return how many labels by priority have the mean width of the interval of 150 of 500 in random order."""

    def width(n: int, *, by_priority: bool) -> float:
        widths = []
        for _ in range(sets):
            scores, good = world(random, 500)
            weights = hard_first(scores) if by_priority else np.ones(500)
            labels, inverse = drawn(random, scores, good, n, weights=weights)
            interval = (
                drawn_mean(scores.tolist(), labels, inverse)
                if by_priority
                else prediction_powered_mean(scores.tolist(), labels)
            )
            widths.append(interval.half_width)
        return float(np.mean(widths))

    goal, low, high = width(150, by_priority=False), 50, 300
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if width(middle, by_priority=True) > goal else (low, middle)
    return high


def main() -> None:
    """Print the figures, world by world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=400, help="simulated sets of each line (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for name, (rate, world) in WORLDS.items():
        random = np.random.default_rng(arguments.seed)
        print(name)
        for rows, n in ((300, 60), (300, 100), (1000, 200)):
            covered, saved = errors(random, rate, world, rows, n, draws=arguments.draws)
            print(f"  {n:4} of {rows:4} labelled: covered {covered:.3f}, labels saved for the same error {saved:+.2f}")
        needed = same_width(random, world, max(10, arguments.draws // 20))
        print(f"  {needed:4} labels have the interval of 150 of 500 in random order", flush=True)


if __name__ == "__main__":
    main()
