"""Where the scores of a metric lie, as shapes for a small drawing and in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_ragmetrics.explain.phrases import bound_text, counted, score_text
from pytest_ragmetrics.report.page.scale import Scale

#: The drawing's units: bars stand on the base line, the mean is marked below it.
WIDTH = 200.0
HEIGHT = 40.0
BASE = 32.0
_BINS = 20
#: The height of a bar of one score where all fit: a lone score shall not look like a crowd.
_UNIT = 6.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """The scores of one bin that fell short, or those that did not."""

    x: float
    y: float
    width: float
    height: float
    short: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """A histogram from ``low`` to ``high`` with the thresholds and the mean, and the same as a sentence."""

    low: int
    high: int
    bars: tuple[Bar, ...]
    thresholds: tuple[float, ...]
    mean: float
    text: str


def distribute(scores: Sequence[tuple[float, bool]], bounds: Iterable[float]) -> Distribution | None:
    """Return the histogram of scores, each with whether it fell short; ``None`` without any.

    It spans 0 to 1, or whole numbers around what lies outside.

    >>> picture = distribute([(0.25, True), (1.0, False)], [0.8])
    >>> picture.text
    '2 scores between 0.25 and 1.00, mean 0.625, threshold 0.80, 1 fell short'
    >>> [bar.x for bar in picture.bars if bar.short], picture.thresholds, picture.mean
    ([50.0], (160.0,), 125.0)
    """
    if not scores:
        return None
    values = [score for score, _ in scores]
    limits = sorted(set(bounds))
    scale = Scale.around([*values, *limits])
    mean = math.fsum(values) / len(values)
    return Distribution(
        low=scale.low,
        high=scale.high,
        bars=tuple(_bars([(scale.place(score), short) for score, short in scores])),
        thresholds=tuple(round(scale.place(limit, WIDTH), 2) for limit in limits),
        mean=round(scale.place(mean, WIDTH), 2),
        text=_sentence(scores, limits, mean),
    )


def _bars(scores: Sequence[tuple[float, bool]]) -> Iterable[Bar]:
    counts = [[0, 0] for _ in range(_BINS)]
    for share, short in scores:
        # 0.29 * 100 is 28.999...: a score on the edge belongs to the bin above.
        counts[min(int(share * _BINS + 1e-9), _BINS - 1)][not short] += 1
    unit = min(_UNIT, BASE / max(map(sum, counts)))
    width = WIDTH / _BINS
    for index, (failing, held) in enumerate(counts):
        for count, below, short in ((failing, 0, True), (held, failing, False)):
            if count:
                y = round(BASE - (below + count) * unit, 2)
                yield Bar(x=index * width, y=y, width=width - 1, height=round(count * unit, 2), short=short)


def _sentence(scores: Sequence[tuple[float, bool]], limits: Sequence[float], mean: float) -> str:
    values = [score for score, _ in scores]
    short = sum(is_short for _, is_short in scores)
    between = f"between {score_text(min(values))} and {score_text(max(values))}, " if len(values) > 1 else ""
    threshold = f", threshold {' and '.join(map(bound_text, limits))}" if limits else ""
    return f"{counted(len(values), 'score')} {between}mean {mean_text(mean)}{threshold}, {short:,} fell short"


def mean_text(mean: float) -> str:
    """Return a mean with three decimals, as the terminal shows it."""
    return f"{mean + 0.0:.3f}"
