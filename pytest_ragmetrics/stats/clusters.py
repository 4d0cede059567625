"""The error of a mean whose values come in clusters, such as many questions about one document."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

# Values that differ by less, relative to their size, are equal but for rounding.
_ROUNDING = 1e-12
# However evenly the clusters mix, they are not taken to make a mean more certain than four times its values would.
_LEAST_EFFECT = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanError:
    """What a sample says of its mean: ``error`` is the standard error, with ``df`` degrees of freedom.

    ``groups`` counts the clusters, ``effect`` is the design effect (how many times the variance exceeds that of as many
    independent values), ``worst_effect`` what it would be if the values of a cluster were copies of one another,
    ``skewness`` that of the clusters. ``df`` is 0 for a single cluster, which says nothing about the error.
    """

    n: int
    groups: int
    mean: float
    error: float
    df: float
    skewness: float
    effect: float
    worst_effect: float

    @property
    def is_constant(self) -> bool:
        """Whether all values are the same."""
        return self.error == 0.0

    @property
    def says_error(self) -> bool:
        """Whether there is a spread between clusters to tell an error from."""
        return self.error > 0.0 and self.df > 0.0

    def grown(self, n: int) -> MeanError:
        """Return what ``n`` values would say if they went on like these, in clusters of the same sizes."""
        factor = n / self.n
        return replace(
            self,
            n=n,
            groups=max(1, round(self.groups * factor)),
            error=self.error / math.sqrt(factor),
            df=self.df * factor,
        )


def totals_by_cluster(values: Sequence[float], clusters: Sequence[Hashable] | None) -> list[tuple[float, int]]:
    """Return the sum and the number of values of every cluster, in an order that does not depend on theirs.

    >>> totals_by_cluster([1.0, 0.5, 0.0], ["a", "b", "a"])
    [(0.5, 1), (1.0, 2)]
    """
    if clusters is None:
        return sorted((value, 1) for value in values)
    grouped: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        grouped.setdefault(cluster, []).append(value)
    return sorted((math.fsum(members), len(members)) for members in grouped.values())


def mean_error(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> MeanError:
    """Return the mean of at least one value with its cluster-robust error.

    The error is CR2 (Bell and McCaffrey 2002), the degrees of freedom are Satterthwaite's under independence and under
    full dependence inside the clusters, whichever are fewer. Where every value is its own cluster this is the ordinary
    standard error with n - 1 degrees of freedom.
    """
    totals = totals_by_cluster(values, clusters)
    n, groups = len(values), len(totals)
    mean = math.fsum(values) / n
    worst = math.fsum(size * size for _, size in totals) / n
    plain = _variance(values, mean) / n
    if groups == 1 or not plain:
        return MeanError(
            n=n,
            groups=groups,
            mean=mean,
            error=math.sqrt(plain),
            df=float(groups - 1),
            skewness=0.0,
            effect=worst,
            worst_effect=worst,
        )
    residuals = [(total - size * mean) / math.sqrt(1.0 - size / n) for total, size in totals]
    squares = math.fsum(residual**2 for residual in residuals)
    variance = max(squares / n**2, plain * _LEAST_EFFECT)
    cubes = math.fsum(residual**3 for residual in residuals) / groups
    share = mean * n
    return MeanError(
        n=n,
        groups=groups,
        mean=mean,
        error=math.sqrt(variance),
        df=_degrees([size for _, size in totals], n),
        skewness=cubes / (squares / groups) ** 1.5 if squares > _ROUNDING * (1.0 + share * share) else 0.0,
        effect=variance / plain,
        worst_effect=worst,
    )


def _variance(values: Sequence[float], mean: float) -> float:
    """Return the variance of a sample; 0.0 where the values differ by rounding alone."""
    spread = max(values) - min(values)
    if len(values) == 1 or spread <= _ROUNDING * max(1.0, abs(mean)):
        return 0.0
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _degrees(sizes: Sequence[int], n: int) -> float:
    """Return the degrees of freedom of CR2 for clusters of these sizes (Pustejovsky and Tipton 2018, for a mean)."""
    shares = [size / n for size in sizes]
    weights = [size**2 / (1.0 - share) for size, share in zip(sizes, shares, strict=True)]
    both = list(zip(weights, shares, strict=True))
    total, squared = math.fsum(weights), math.fsum(weight**2 for weight in weights)
    independent = n**2 / (math.fsum(size**2 for size in sizes) + (total**2 - squared) / n**2)

    worst = math.fsum(share**2 for share in shares)
    trace = math.fsum(weight * (1.0 - 2.0 * share + worst) for weight, share in both)
    first = math.fsum(weight * share for weight, share in both)
    second = math.fsum(weight * share**2 for weight, share in both)
    everywhere = worst**2 * total**2 + 2 * total * second + 2 * first**2 - 4 * worst * total * first
    diagonal = math.fsum(w**2 * ((1.0 - 2.0 * s + worst) ** 2 - (worst - 2.0 * s) ** 2) for w, s in both)
    return min(independent, trace**2 / (everywhere + diagonal))
