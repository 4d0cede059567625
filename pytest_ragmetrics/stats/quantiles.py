"""The distributions that intervals and tests are read off, exact to the precision of a float."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_TINY = 1e-300
_LARGE = 50.0
_TERMS = 100_000
_STEPS = 200
_ENOUGH = 1e-15


def normal_quantile(probability: float) -> float:
    """Return the value that a standard normal variable stays below with this probability, in (0, 1).

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    return NormalDist().inv_cdf(probability)


def t_tail(value: float, df: float) -> float:
    """Return the probability that Student's t with ``df`` degrees of freedom exceeds a value.

    >>> round(t_tail(2.228139, 10), 6)
    0.025
    """
    if math.isinf(value):
        return 0.0 if value > 0 else 1.0
    tail = 0.5 * _half_beta_share(df / (df + value * value), value * value / (df + value * value), df / 2, 0.5)
    return tail if value >= 0 else 1.0 - tail


@lru_cache(maxsize=256)
def t_quantile(probability: float, df: float) -> float:
    """Return the value that Student's t with ``df`` degrees of freedom stays below with this probability.

    >>> round(t_quantile(0.975, 10), 6)
    2.228139
    """
    tail = min(probability, 1.0 - probability)
    low, high = 0.0, 1.0
    while t_tail(high, df) > tail:
        low, high = high, high * 2.0
    value = (low + high) / 2.0
    for _ in range(_STEPS):
        excess = t_tail(value, df) - tail
        low, high = (value, high) if excess > 0.0 else (low, value)
        before, value = value, value + excess / _t_density(value, df)
        if not low <= value <= high:
            value = (low + high) / 2.0
        if abs(value - before) <= abs(value) * _ENOUGH:
            break
    return value if probability > tail else -value


def _t_density(value: float, df: float) -> float:
    scale = _gamma_step(df / 2) - 0.5 * math.log(df * math.pi)
    return math.exp(scale - (df + 1.0) / 2.0 * math.log1p(value * value / df))


def _half_beta_share(x: float, rest: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), where a or b is 1/2 and ``rest`` is 1 - x.

    The continued fraction of Numerical Recipes, 6.4, evaluated by Lentz's method.
    """
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _half_beta_share(rest, x, b, a)
    scale = _gamma_step(a + b - 0.5) - math.lgamma(0.5) + a * math.log(x) + b * math.log(rest)
    return math.exp(scale) * _fraction(x, a, b) / a


def _gamma_step(a: float) -> float:
    """Return lgamma(a + 1/2) - lgamma(a), by its series where the difference would lose digits."""
    if a < _LARGE:
        return math.lgamma(a + 0.5) - math.lgamma(a)
    return 0.5 * math.log(a) - 1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5)


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1.0 / _nonzero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        before = value
        for term in (even, odd):
            c, d = _nonzero(1.0 + term / c), 1.0 / _nonzero(1.0 + term * d)
            value *= c * d
        if abs(value - before) <= abs(value) * 1e-16:
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
