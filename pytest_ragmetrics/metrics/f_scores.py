"""One figure for precision and recall."""

from __future__ import annotations


def f_beta(precision: float, recall: float, beta: float = 1.0) -> float:
    """Return the weighted harmonic mean of precision and recall, 0.0 when both are; recall counts ``beta`` times.

    After van Rijsbergen (1979).

    >>> f_beta(1.0, 0.5)
    0.6666666666666666
    """
    if not (precision and recall):
        return 0.0
    share = 1 / (1 + beta * beta)
    return 1 / (share / precision + (1 - share) / recall)


def f1_of_counts(found: int, surplus: int, missing: int) -> float:
    """Return the F1 of true positives, false positives and false negatives, 0.0 where there are none at all.

    >>> f1_of_counts(1, surplus=1, missing=0)
    0.6666666666666666
    """
    total = 2 * found + surplus + missing
    return 2 * found / total if total else 0.0
