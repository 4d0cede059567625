"""The figures of a calibration from plain scores and labels: agreement, suggested threshold, reliability curve."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.stats.agreement import Agreement, agreement, auroc, check_labels, kappa_of
from pytest_ragmetrics.stats.bounded import Floats
from pytest_ragmetrics.stats.intervals import Clusters, Interval, check_values, mean_interval
from pytest_ragmetrics.stats.means import meets
from pytest_ragmetrics.stats.scores import ROUNDING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: The figure that a suggested threshold maximises.
Aim = Literal["balanced_accuracy", "kappa"]

_FOLDS = 10
_MOST_DECIMALS = 15
_BINS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Suggestion:
    """A threshold chosen on labelled answers.

    ``agreement`` is cross-validated over ``folds`` of whole clusters: each answer is judged by the threshold chosen on
    the other folds. In simulations its figures are those of the threshold on further answers; its intervals, which take
    the thresholds as given, contain these in 0.94 to 0.96 of the cases.
    """

    threshold: float
    aim: Aim
    folds: int
    agreement: Agreement


def suggest_threshold(
    scores: Sequence[float],
    good: Sequence[bool],
    *,
    clusters: Clusters = None,
    better: Direction = "higher",
    aim: Aim = "balanced_accuracy",
    confidence: float = 0.95,
    seed: int = 0,
) -> Suggestion:
    """Return the threshold with the highest balanced accuracy (or kappa), in the middle of the gap between two scores.

    Of several equally good ones it is the one in the widest gap, with as few decimals as the middle of the gap allows.
    Raises ``ValueError`` if none can be chosen or cross-validated: for equal scores, equal labels, fewer than two
    clusters, or one cluster with all the good answers or all the bad ones.
    """
    import numpy as np

    check_labels(good, scores, clusters)
    check_values(scores, None, None)
    if aim not in get_args(Aim):
        raise ValueError(f"aim must be one of {', '.join(get_args(Aim))}, not {aim!r}")
    sign = -1.0 if better == "lower" else 1.0
    values, flags = sign * np.array(scores, dtype=float), np.array(good, dtype=bool)
    if values.min() == values.max():
        raise ValueError(f"all scores are {sign * float(values[0]):g}, and no threshold parts them")
    folds = _folds(range(len(values)) if clusters is None else clusters, flags, seed)
    cuts = [_cut(values[folds != fold], flags[folds != fold], aim) for fold in range(int(folds.max()) + 1)]
    passed: list[bool] = (values >= np.array(cuts)[folds]).tolist()
    return Suggestion(
        threshold=sign * _cut(values, flags, aim) + 0.0,
        aim=aim,
        folds=len(cuts),
        agreement=agreement(passed, good, clusters=clusters, confidence=confidence),
    )


def roundest(low: float, high: float) -> float:
    """Return the number with the fewest decimals in the middle half between two."""
    middle, quarter = (low + high) / 2.0, (high - low) / 4.0
    for decimals in range(_MOST_DECIMALS):
        rounded = round(middle, decimals) + 0.0
        if abs(rounded - middle) <= quarter:
            return rounded
    return middle if low < middle else high


def _folds(clusters: Iterable[Hashable], flags: npt.NDArray[np.bool_], seed: int) -> npt.NDArray[np.int64]:
    """Return the number of the fold of each row: folds of whole clusters, none with all the rows of one class."""
    import numpy as np

    known: dict[Hashable, int] = {}
    groups = np.array([known.setdefault(name, len(known)) for name in clusters])
    for kind, name in ((flags, "good"), (~flags, "bad")):
        if len(set(groups[kind].tolist())) <= 1:
            msg = f"all {name} answers are in one group, and a threshold must be tried on others than it was chosen on"
            raise ValueError(msg)
    order = np.random.default_rng(seed).permutation(len(known))
    # Sorted by kind (bad answers only, mixed, good only) and numbered in turn, each kind is in several folds.
    has_good, has_bad = (np.bincount(groups[kind], minlength=len(known)) > 0 for kind in (flags, ~flags))
    kinds = has_good.astype(int) - has_bad
    places = np.empty(len(known), dtype=np.int64)
    places[order[np.argsort(kinds[order], kind="stable")]] = np.arange(len(known)) % min(_FOLDS, len(known))
    return np.asarray(places[groups])


def _cut(values: Floats, flags: npt.NDArray[np.bool_], aim: Aim) -> float:
    """Return the best threshold for values that are better the higher they are."""
    import numpy as np

    steps, places = np.unique(values, return_inverse=True)
    if len(steps) == 1:
        return float(steps[0])
    good, bad = (np.bincount(places[kind], minlength=len(steps)) for kind in (flags, ~flags))
    rates = zip(1.0 - good.cumsum()[:-1] / good.sum(), bad.cumsum()[:-1] / bad.sum(), strict=True)
    share, by_kappa = float(flags.mean()), aim == "kappa"
    reached = np.array([kappa_of(tpr, tnr, share) if by_kappa else tpr + tnr for tpr, tnr in rates])
    tied = reached >= reached.max() - ROUNDING
    widest = int(np.where(tied, np.diff(steps), -1.0).argmax())
    return roundest(float(steps[widest]), float(steps[widest + 1]))


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
    clusters: Clusters = None,
    better: Direction = "higher",
    scale: tuple[float, float] = (0.0, 1.0),
    aim: Aim = "balanced_accuracy",
    confidence: float = 0.95,
    seed: int = 0,
) -> CalibrationFigures:
    """Return how scores agree with labels, at a given threshold or the suggested one.

    ``clusters`` names the cluster of each answer, such as its source. Raises ``ValueError`` for labels that are
    all equal, and if no threshold is given and none can be suggested.

    >>> figures = calibration_figures([0.1, 0.3, 0.9, 0.4, 0.8, 1.0], [False, False, False, True, True, True])
    >>> figures.auroc.estimate.__format__(".3f"), figures.suggestion.threshold
    ('0.778', 0.35)
    """
    signed = [-score if better == "lower" else score for score in scores]
    area = auroc(signed, good, clusters=clusters, confidence=confidence)
    suggestion, failure = None, None
    try:
        suggestion = suggest_threshold(
            scores, good, clusters=clusters, better=better, aim=aim, confidence=confidence, seed=seed
        )
    except ValueError as error:
        failure = error
    if threshold is not None:
        passed = [meets(score, threshold, better) for score in scores]
        used = threshold
        found = agreement(passed, good, clusters=clusters, confidence=confidence)
    elif suggestion is not None:
        used, found = suggestion.threshold, suggestion.agreement
    else:
        raise ValueError(f"no threshold can be suggested: {failure}; give the threshold to judge by") from failure
    return CalibrationFigures(
        threshold=used,
        is_given=threshold is not None,
        agreement=found,
        auroc=area,
        reliability=reliability(scores, good, clusters=clusters, scale=scale, confidence=confidence),
        suggestion=suggestion,
        no_suggestion=None if failure is None else str(failure),
    )


def reliability(
    scores: Sequence[float],
    good: Sequence[bool],
    *,
    clusters: Clusters = None,
    scale: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
) -> tuple[Bin, ...]:
    """Return the reliability curve: ten bins of equal width over the scale, empty ones left out."""
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
            good=mean_interval(
                [good[index] for index in members],
                clusters=None if clusters is None else [clusters[index] for index in members],
                confidence=confidence,
            ),
        )
        for place, members in sorted(rows.items())
    )
