"""The figures of a calibration from plain scores and labels: agreement, suggested threshold, reliability curve."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.stats.agreement import Agreement, agreement, auroc, check_labels
from pytest_ragmetrics.stats.intervals import Interval, check_confidence, check_values, rate_interval
from pytest_ragmetrics.stats.means import meets
from pytest_ragmetrics.stats.scores import ROUNDING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: The figure that a suggested threshold maximises.
Aim = Literal["balanced_accuracy", "kappa"]

_FOLDS = 10
_RESAMPLES = 1000
# Fewer resamples for very many rows: more than _MOST_ROWS drawn rows take minutes.
_MOST_ROWS, _LEAST_RESAMPLES = 20_000_000, 200
_AT_ONCE = 1_000_000
_MOST_DECIMALS = 15
_BINS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Suggestion:
    """A threshold chosen on labelled answers.

    The share ``confidence`` of resampled sets leads to a threshold between ``low`` and ``high``. ``agreement`` is
    cross-validated over ``folds`` of whole clusters: each answer is judged by the threshold chosen on the other folds.
    In simulations its figures are those of the threshold on further answers; its intervals, which take the thresholds
    as given, contain these in 0.89 to 0.94 of the cases.
    """

    threshold: float
    low: float
    high: float
    confidence: float
    aim: Aim
    folds: int
    agreement: Agreement


def suggest_threshold(
    scores: Sequence[float],
    good: Sequence[bool],
    *,
    clusters: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    better: Direction = "higher",
    aim: Aim = "balanced_accuracy",
    confidence: float = 0.95,
    seed: int = 0,
) -> Suggestion:
    """Return the threshold with the highest balanced accuracy (or kappa), in the middle of the gap between two scores.

    Of several equally good ones it is the one in the widest gap, with as few decimals as the middle of the gap allows.
    Raises ``ValueError`` if none can be chosen or cross-validated: for equal scores, equal labels, fewer than two
    clusters, or one cluster with all the good answers or all the bad ones.

    >>> scores, good = [0.1, 0.2, 0.3, 0.8, 0.9, 1.0], [False, False, False, True, True, True]
    >>> suggest_threshold(scores, good).threshold
    0.6
    """
    import numpy as np

    check_labels(good, scores, clusters)
    check_values(scores, None, None)
    confidence = check_confidence(confidence)
    if aim not in get_args(Aim):
        raise ValueError(f"aim must be one of {', '.join(get_args(Aim))}, not {aim!r}")
    sign = -1.0 if better == "lower" else 1.0
    values, flags = sign * np.array(scores, dtype=float), np.array(good, dtype=bool)
    weighed = np.ones(len(values)) if weights is None else np.array(weights, dtype=float)
    if values.min() == values.max():
        raise ValueError(f"all scores are {sign * float(values[0]):g}, and no threshold parts them")
    groups = _numbers(range(len(values)) if clusters is None else clusters)
    folds = _folds(groups, flags, seed)
    others = [folds != fold for fold in range(int(folds.max()) + 1)]
    cuts = [_cut(values[rest], flags[rest], weighed[rest], aim) for rest in others]
    passed: list[bool] = (values >= np.array(cuts)[folds]).tolist()
    ends = _spread(values, flags, weighed, groups, aim, confidence=confidence, seed=seed)
    low, high = sorted(sign * end for end in ends)
    return Suggestion(
        threshold=sign * _cut(values, flags, weighed, aim) + 0.0,
        low=low,
        high=high,
        confidence=confidence,
        aim=aim,
        folds=len(cuts),
        agreement=agreement(passed, good, clusters=clusters, weights=weights, confidence=confidence),
    )


def roundest(low: float, high: float) -> float:
    """Return the number with the fewest decimals in the middle half between two.

    >>> roundest(0.75, 1.0), roundest(2 / 3, 0.75), roundest(-0.4, 0.3)
    (0.9, 0.7, 0.0)
    """
    middle, quarter = (low + high) / 2.0, (high - low) / 4.0
    for decimals in range(_MOST_DECIMALS):
        rounded = round(middle, decimals) + 0.0
        if abs(rounded - middle) <= quarter:
            return rounded
    return middle if low < middle else high


def _numbers(names: Iterable[Hashable]) -> npt.NDArray[np.int64]:
    import numpy as np

    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names])


def _folds(groups: npt.NDArray[np.int64], flags: npt.NDArray[np.bool_], seed: int) -> npt.NDArray[np.int64]:
    """Return the number of the fold of each row: folds of whole clusters, none with all the rows of one class."""
    import numpy as np

    count = int(groups.max()) + 1
    for kind, name in ((flags, "good"), (~flags, "bad")):
        if len(set(groups[kind].tolist())) <= 1:
            msg = f"all {name} answers are in one group, and a threshold must be tried on others than it was chosen on"
            raise ValueError(msg)
    order = np.random.default_rng(seed).permutation(count)
    # Sorted by kind (bad answers only, mixed, good only) and numbered in turn, each kind is in several folds.
    has_good, has_bad = (np.bincount(groups[kind], minlength=count) > 0 for kind in (flags, ~flags))
    kinds = has_good.astype(int) - has_bad
    places = np.empty(count, dtype=np.int64)
    places[order[np.argsort(kinds[order], kind="stable")]] = np.arange(count) % min(_FOLDS, count)
    return places[groups]


def _cut(values: Floats, flags: npt.NDArray[np.bool_], weights: Floats, aim: Aim) -> float:
    """Return the best threshold for values that are better the higher they are."""
    import numpy as np

    steps, places = np.unique(values, return_inverse=True)
    good, bad = (np.bincount(places, weights * kind, len(steps)).astype(float)[None] for kind in (flags, ~flags))
    return float(_best_cuts(steps, good, bad, aim)[0])


def _best_cuts(steps: Floats, good: Floats, bad: Floats, aim: Aim) -> Floats:
    """Return the best threshold for each row of weights, NaN for a class without weight.

    ``steps`` are the different scores in order, ``good`` and ``bad`` the weights of the answers at each, shape (b, n).
    """
    import numpy as np

    if len(steps) == 1:
        return np.full(len(good), steps[0])
    all_good, all_bad = good.sum(1, keepdims=True), bad.sum(1, keepdims=True)
    known = (all_good[:, 0] > 0) & (all_bad[:, 0] > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        tpr = 1.0 - good.cumsum(1)[:, :-1] / all_good
        tnr = bad.cumsum(1)[:, :-1] / all_bad
        reached = tpr + tnr if aim == "balanced_accuracy" else _kappas(tpr, tnr, all_good / (all_good + all_bad))
    reached = np.where(known[:, None], reached, -np.inf)
    tied = reached >= reached.max(1, keepdims=True) - ROUNDING
    widest = np.where(tied, np.diff(steps), -1.0).argmax(1)
    cuts = {int(place): roundest(float(steps[place]), float(steps[place + 1])) for place in set(widest.tolist())}
    return np.where(known, [cuts[int(place)] for place in widest], np.nan)


def _kappas(tpr: Floats, tnr: Floats, share: Floats) -> Floats:
    """Return :func:`kappa_of` for arrays."""
    passed = share * tpr + (1.0 - share) * (1.0 - tnr)
    expected = share * passed + (1.0 - share) * (1.0 - passed)
    return (share * tpr + (1.0 - share) * tnr - expected) / (1.0 - expected)


def _spread(
    values: Floats,
    flags: npt.NDArray[np.bool_],
    weights: Floats,
    groups: npt.NDArray[np.int64],
    aim: Aim,
    *,
    confidence: float,
    seed: int,
) -> tuple[float, float]:
    """Return the percentiles of the best thresholds of resampled clusters (their distribution is not smooth)."""
    import numpy as np

    random, count = np.random.default_rng(seed), int(groups.max()) + 1
    order = np.argsort(values, kind="stable")
    values, flags, weights, groups = values[order], flags[order], weights[order], groups[order]
    steps, starts = np.unique(values, return_index=True)
    found = []
    step = max(1, _AT_ONCE // len(values))
    resamples = min(_RESAMPLES, max(_LEAST_RESAMPLES, _MOST_ROWS // len(values)))
    for done in range(0, resamples, step):
        size = min(step, resamples - done)
        drawn = random.multinomial(count, np.full(count, 1.0 / count), size=size)[:, groups] * weights
        good, bad = (np.add.reduceat(drawn * kind, starts, axis=1) for kind in (flags, ~flags))
        found.append(_best_cuts(steps, good, bad, aim))
    cuts = np.concatenate(found)
    ends = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
    low, high = np.quantile(cuts[~np.isnan(cuts)], ends, method="inverted_cdf")
    return float(low), float(high)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """The ``n`` answers with scores from ``low`` up to ``high``: their mean score, and the rate of good ones."""

    low: float
    high: float
    n: int
    mean: float
    good: Interval


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibrationFigures:
    """The figures of a judge's scores on labelled answers.

    ``agreement`` is at the ``threshold`` that was given, else cross-validated for the suggested one. Without a
    ``suggestion`` the reason is in ``no_suggestion``.
    """

    threshold: float
    is_given: bool
    agreement: Agreement
    auroc: Interval
    reliability: tuple[Bin, ...]
    suggestion: Suggestion | None
    no_suggestion: str | None


def calibration_figures(
    scores: Sequence[float],
    good: Sequence[bool],
    *,
    threshold: float | None = None,
    clusters: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    better: Direction = "higher",
    scale: tuple[float, float] = (0.0, 1.0),
    aim: Aim = "balanced_accuracy",
    confidence: float = 0.95,
    seed: int = 0,
) -> CalibrationFigures:
    """Return how scores agree with labels, at a given threshold or the suggested one.

    ``clusters`` names the cluster of each answer, such as its source; ``weights`` are the inverse chances of answers
    that were not drawn alike. Raises ``ValueError`` for labels that are all
    equal, and if no threshold is given and none can be suggested.

    >>> figures = calibration_figures([0.1, 0.3, 0.9, 0.4, 0.8, 1.0], [False, False, False, True, True, True])
    >>> figures.auroc.estimate.__format__(".3f"), figures.suggestion.threshold
    ('0.778', 0.35)
    """
    signed = [-score if better == "lower" else score for score in scores]
    area = auroc(signed, good, clusters=clusters, weights=weights, confidence=confidence)
    suggestion, failure = None, None
    try:
        suggestion = suggest_threshold(
            scores, good, clusters=clusters, weights=weights, better=better, aim=aim, confidence=confidence, seed=seed
        )
    except ValueError as error:
        failure = error
    if threshold is not None:
        passed = [meets(score, threshold, better) for score in scores]
        used = threshold
        found = agreement(passed, good, clusters=clusters, weights=weights, confidence=confidence)
    elif suggestion is not None:
        used, found = suggestion.threshold, suggestion.agreement
    else:
        raise ValueError(f"no threshold can be suggested: {failure}; give the threshold to judge by") from failure
    return CalibrationFigures(
        threshold=used,
        is_given=threshold is not None,
        agreement=found,
        auroc=area,
        reliability=reliability(scores, good, clusters=clusters, weights=weights, scale=scale, confidence=confidence),
        suggestion=suggestion,
        no_suggestion=None if failure is None else str(failure),
    )


def reliability(
    scores: Sequence[float],
    good: Sequence[bool],
    *,
    clusters: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    scale: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
) -> tuple[Bin, ...]:
    """Return the reliability curve: ten bins of equal width over the scale, empty ones left out.

    >>> [(bin.low, bin.n, bin.good.estimate) for bin in reliability([0.05, 0.95, 1.0], [False, True, False])]
    [(0.0, 1, 0.0), (0.9, 2, 0.5)]
    """
    low, high = scale
    rows: dict[int, list[int]] = {}
    for index, score in enumerate(scores):
        # 1e-9, or a score on an edge, such as 0.3, is in the bin below it by rounding.
        place = math.floor((score - low) / (high - low) * _BINS + 1e-9)
        rows.setdefault(min(max(place, 0), _BINS - 1), []).append(index)
    return tuple(
        Bin(
            low=round(low + (high - low) * place / _BINS, 12),
            high=round(low + (high - low) * (place + 1) / _BINS, 12),
            n=len(members),
            mean=math.fsum(scores[index] for index in members) / len(members),
            good=rate_interval(
                [good[index] for index in members],
                clusters=None if clusters is None else [clusters[index] for index in members],
                weights=None if weights is None else [weights[index] for index in members],
                confidence=confidence,
            ),
        )
        for place, members in sorted(rows.items())
    )
