"""Whether a judge has changed: a test by betting on stored answers that are asked for again, in run after run.

The null hypothesis is that such an answer changes by at most a tolerance, on average. A gambler bets against it; as the
capital of one who has lost for a hundred runs never recovers, it is spread over the runs in which a change may begin: a
mixture of e-processes, which is one (Ramdas, Grünwald, Vovk and Shafer 2023, arXiv:2210.01948; Shin, Ramdas and Rinaldo
2022 on such sums). One may look after each run: the capital of an unchanged judge reaches 20 with a probability of at
most 1/20 in an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable

#: How much of an answer changes on average in a judge that is the same; the capital that is an alarm; the runs for
#: which a capital is spread.
TOLERANCE, ALARM, EPOCH = 0.05, 20.0, 200
#: Shares of the capital that are bet; the capital is the mean over all of them.
_FRACTIONS = tuple(i / 11 for i in range(1, 11))
_MOST = 1e12


def drift_evidence(runs: Iterable[tuple[int, float]], *, epoch: int = EPOCH) -> list[tuple[float, int]]:
    """Return after each run the evidence that a judge has changed, and how many runs it rests on: those of its epoch.

    ``runs`` are the numbers of answers that were asked again and the sums of their changes, each from 0 to 1. Of graded
    changes the sum gives no more evidence than each by itself: the logarithm is concave.

    >>> [(round(evidence, 4), count) for evidence, count in drift_evidence([(20, 0.0), (5, 4.0)])]
    [(0.9951, 1), (32.8962, 2)]
    """
    capital, count = [0.0] * len(_FRACTIONS), 0
    found = []
    for asked, changed in runs:
        if count == epoch:
            capital, count = [0.0] * len(_FRACTIONS), 0
        count += 1
        factors = ((1 + it * (1 / TOLERANCE - 1)) ** changed * (1 - it) ** (asked - changed) for it in _FRACTIONS)
        capital = [min((money + 1 / epoch) * it, _MOST) for money, it in zip(capital, factors, strict=True)]
        found.append((sum(capital) / len(capital) + 1 - count / epoch, count))
    return found
