"""Which scores of a set count: means, rates, intervals, gates, tables and comparisons ask here.

A result is vacuous when there was nothing to check, such as an answer without quotations, which scores 1.0. Such scores
say nothing about a set and would carry its mean, so they are left out and counted beside it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar, cast, get_args

from pytest_ragmetrics.core.result import Direction

#: What becomes of vacuous scores: they are left out, or count like all others.
Vacuous = Literal["skip", "count"]
#: Scores and sums of scores that differ by less are equal: the same numbers added in another order.
ROUNDING = 1e-9
#: What a row is to a figure over its set.
Standing = Literal["counted", "vacuous", "unscored"]


class Scored(Protocol):
    """What has a score, ``None`` if it is unscored, and may be vacuous."""

    @property
    def score(self) -> float | None:
        """The score."""

    @property
    def vacuous(self) -> bool:
        """Whether there was nothing to check."""


S = TypeVar("S", bound=Scored)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredRow:
    """One row of a set by name: its score with the reason if it is low, or why there is none, and its cluster.

    ``scale`` is the lowest and the highest score of the metric, ``None`` where it has no ends or this one is beyond.
    ``row`` is that of which it is one of several answers, ``None`` where a row has one.
    """

    name: str
    score: float | None
    reason: str | None = None
    vacuous: bool = False
    cluster: Hashable | None = None
    scale: tuple[float, float] | None = (0.0, 1.0)
    unit: str = ""
    row: Hashable | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreSet(Generic[S]):
    """The rows of a set, each part in their order: those that count, those left out as vacuous, the unscored."""

    counted: tuple[S, ...]
    vacuous: tuple[S, ...]
    unscored: tuple[S, ...]

    @property
    def scores(self) -> list[float]:
        """The scores that count."""
        return [row.score for row in self.counted if row.score is not None]


def standing(row: Scored, vacuous: Vacuous = "skip") -> Standing:
    """Return what a row is to a figure over its set."""
    if row.score is None:
        return "unscored"
    return "vacuous" if row.vacuous and vacuous == "skip" else "counted"


def score_set(rows: Iterable[S], vacuous: Vacuous = "skip") -> ScoreSet[S]:
    """Return the rows of a set by their standing; raise ``ValueError`` unless ``vacuous`` is "skip" or "count"."""
    parts: dict[Standing, list[S]] = {part: [] for part in get_args(Standing)}
    chosen = check_vacuous(vacuous)
    for row in rows:
        parts[standing(row, chosen)].append(row)
    return ScoreSet(**{part: tuple(members) for part, members in parts.items()})


def by_row(answers: Iterable[ScoredRow]) -> list[list[ScoredRow]]:
    """Return the answers to each row together; a score that is no answer of several is alone."""
    found: dict[Hashable, list[ScoredRow]] = {}
    for number, answer in enumerate(answers):
        found.setdefault(("alone", number) if answer.row is None else ("row", answer.row), []).append(answer)
    return list(found.values())


def worst_answers(
    answers: Iterable[ScoredRow], better: Direction = "higher", vacuous: Vacuous = "skip"
) -> list[ScoredRow]:
    """Return the worst answer to each row, which reaches a bound where all do; one without a score is worse than any.

    An answer with nothing to check stands for its row only where no other had something.

    >>> rows = [ScoredRow(name=name, score=score, row="q7") for name, score in (("a", 0.9), ("b", 0.2), ("c", 1.0))]
    >>> [row.name for row in worst_answers(rows)]
    ['b']
    """
    order: tuple[Standing, ...] = ("unscored", "counted", "vacuous")

    def badness(row: ScoredRow) -> tuple[int, float]:
        return order.index(standing(row, vacuous)), (-1.0 if better == "lower" else 1.0) * (row.score or 0.0)

    return [min(members, key=badness) for members in by_row(answers)]


class OnScale(Scored, Protocol):
    """What has a score, and the lowest and the highest score of its metric if it has both and the score is between."""

    @property
    def scale(self) -> tuple[float, float] | None:
        """The lowest and the highest score of the metric."""


class InUnit(Protocol):
    """What has a unit, "" if it is unscored."""

    @property
    def unit(self) -> str:
        """The unit of its score."""


def unit_of(rows: Iterable[InUnit]) -> str:
    """Return the unit of the scores of a metric, "" if they have none."""
    return next((row.unit for row in rows if row.unit), "")


def common_scale(rows: Iterable[OnScale]) -> tuple[float, float] | None:
    """Return the lowest and the highest score of the metric of all rows; ``None`` where a score may be beyond them."""
    scored = [row for row in rows if row.score is not None]
    scale = scored[0].scale if scored else None
    if scale is None:
        return None
    is_common = all(row.scale is not None and scale[0] <= (row.score or 0.0) <= scale[1] for row in scored)
    return scale if is_common else None


def goodness(score: float, scale: tuple[float, float], better: Direction) -> float:
    """Return where a score is on its scale, from 0 at the bad end to 1 at the good one."""
    low, high = scale
    share = (score - low) / (high - low)
    return 1.0 - share if better == "lower" else share


def check_vacuous(vacuous: object) -> Vacuous:
    """Return what becomes of vacuous scores; raise ``ValueError`` if it is not known."""
    if vacuous not in get_args(Vacuous):
        raise ValueError(f'vacuous must be "skip" (leave out what had nothing to check) or "count", not {vacuous!r}')
    return cast("Vacuous", vacuous)
