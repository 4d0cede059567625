"""A judge's scores held against the labels of people: every figure of a calibration, of plain numbers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pytest_ragmetrics.result import Direction
from pytest_ragmetrics.stats.agreement import Agreement, agreement, auroc
from pytest_ragmetrics.stats.intervals import Interval, rate_interval
from pytest_ragmetrics.stats.standing import reaches
from pytest_ragmetrics.stats.thresholds import Aim, Suggestion, suggest_threshold

_BINS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """The answers with scores from ``low`` up to ``high``: their mean score, and the rate that people found good."""

    low: float
    high: float
    n: int
    mean: float
    good: Interval


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What labelled answers say of a judge's scores.

    ``agreement`` is that at the ``threshold``: the one that was given, or else the suggested one, and then it is
    cross-validated. ``suggestion`` is ``None`` where none can be made, for the reason in ``no_suggestion``.
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
    better: Direction = "higher",
    scale: tuple[float, float] = (0.0, 1.0),
    aim: Aim = "balanced_accuracy",
    confidence: float = 0.95,
    seed: int = 0,
) -> Figures:
    """Return how scores agree with what people found good, at a threshold or at the one that suits them best.

    ``clusters`` names for each answer what it has in common with others, such as its source. Raises ``ValueError`` for
    labels that are all equal, and without a threshold where none can be suggested.

    >>> figures = calibration_figures([0.1, 0.3, 0.9, 0.4, 0.8, 1.0], [False, False, False, True, True, True])
    >>> figures.auroc.estimate.__format__(".3f"), figures.suggestion.threshold
    ('0.778', 0.35)
    """
    # The direction of AUROC is the judge's: a good answer scores better than a bad one.
    area = auroc(
        [-score if better == "lower" else score for score in scores], good, clusters=clusters, confidence=confidence
    )
    suggestion, failure = None, None
    try:
        suggestion = suggest_threshold(
            scores, good, clusters=clusters, better=better, aim=aim, confidence=confidence, seed=seed
        )
    except ValueError as error:
        failure = error
    if threshold is not None:
        used = threshold
        passed = [reaches(score, used, better) for score in scores]
        found = agreement(passed, good, clusters=clusters, confidence=confidence)
    elif suggestion is not None:
        used, found = suggestion.threshold, suggestion.agreement
    else:
        msg = f"no threshold can be suggested: {failure}; give the threshold to judge by"
        raise ValueError(msg) from failure
    return Figures(
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
    clusters: Sequence[Hashable] | None = None,
    scale: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
) -> tuple[Bin, ...]:
    """Return the reliability curve: ten bins of equal width over the scale, without those that hold no score.

    >>> [(bin.low, bin.n, bin.good.estimate) for bin in reliability([0.05, 0.95, 1.0], [False, True, False])]
    [(0.0, 1, 0.0), (0.9, 2, 0.5)]
    """
    low, high = scale
    rows: dict[int, list[int]] = {}
    for index, score in enumerate(scores):
        # The tiny part keeps a score on an edge, such as 0.3, from falling below it by rounding.
        place = math.floor((score - low) / (high - low) * _BINS + 1e-9)
        rows.setdefault(min(max(place, 0), _BINS - 1), []).append(index)
    return tuple(
        Bin(
            low=_edge(low, high, place),
            high=_edge(low, high, place + 1),
            n=len(members),
            mean=math.fsum(scores[index] for index in members) / len(members),
            good=rate_interval(
                [good[index] for index in members],
                clusters=None if clusters is None else [clusters[index] for index in members],
                confidence=confidence,
            ),
        )
        for place, members in sorted(rows.items())
    )


def _edge(low: float, high: float, place: int) -> float:
    return round(low + (high - low) * place / _BINS, 12)
