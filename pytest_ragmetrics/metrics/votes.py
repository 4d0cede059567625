"""Several independent judgements of one sample: their mean, and when further ones cannot change an outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from statistics import mean

from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.core.result import MetricResult, Usage
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.parameters import check_count
from pytest_ragmetrics.runs.wording.figures import describe_votes

Scale = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class VotePlan:
    """How many votes make a score, and the bounds of their mean, where they are known.

    The outcome is the good one from ``least`` on and up to ``most``.

    >>> VotePlan(votes=3, least=0.5).is_decided([1.0, 1.0], (0.0, 1.0))
    True
    """

    votes: int = 1
    least: float | None = None
    most: float | None = None

    @property
    def has_bounds(self) -> bool:
        """Whether the mean has a known bound."""
        return self.least is not None or self.most is not None

    def is_decided(self, samples: Sequence[float], scale: Scale) -> bool:
        """Tell whether the votes that are not among the ``samples`` cannot change the outcome.

        A mean with all of them at one end of the scale is compared as the mean of all votes would be. Rounding never
        turns an order around, so what is true at both ends is true in between.
        """
        if self._must_ask_all(samples, scale):
            return len(samples) == self.votes
        return self._decides(sum(map(Fraction, samples), Fraction()), self.votes - len(samples), scale)

    def least_wave(self, samples: Sequence[float], scale: Scale, unasked: int) -> int:
        """Return the least number of further votes, of those not asked yet, that could decide; 0 if none can."""
        if self._must_ask_all(samples, scale):
            return unasked if len(samples) + unasked == self.votes else 0
        total, rest = sum(map(Fraction, samples), Fraction()), self.votes - len(samples)
        # Votes at an end of the scale, or between two bounds, decide soonest.
        middle = mean([bound for bound in (self.least, self.most) if bound is not None])
        likely = [Fraction(vote) for vote in (*scale, min(scale[1], max(scale[0], middle)))]
        for number in range(1, unasked + 1):
            if any(self._decides(total + number * vote, rest - number, scale) for vote in likely):
                return number
        return 0

    def _must_ask_all(self, samples: Sequence[float], scale: Scale) -> bool:
        # A metric that leaves its own scale may do so again.
        return not self.has_bounds or any(not scale[0] <= sample <= scale[1] for sample in samples)

    def _decides(self, total: Fraction, rest: int, scale: Scale) -> bool:
        lowest, highest = (float((total + rest * Fraction(end)) / self.votes) for end in scale)
        fails = (self.least is not None and highest < self.least) or (self.most is not None and lowest > self.most)
        passes = (self.least is None or lowest >= self.least) and (self.most is None or highest <= self.most)
        return fails or passes


@dataclass(frozen=True, kw_only=True, slots=True)
class Vote:
    """One judgement: its result, or why there is none, and whether the judge could have answered otherwise."""

    outcome: MetricResult | UnscoredError
    is_varied: bool


@contextmanager
def voting(
    metric: Metric | None, *, votes: int | None, least: float | None = None, most: float | None = None
) -> Iterator[None]:
    """Have metrics take so many votes inside the block; the bounds are those of one metric and concern no other.

    Without ``votes`` it is as many as the block around, or the session, says. Raises ``ValueError`` for a number of
    votes that is not one.
    """
    chosen = context.current().wanted_votes() if votes is None else check_count("votes", votes)
    with context.changed(votes=chosen, bounded=metric, least=least, most=most):
        yield


def vote_plan(metric: Metric) -> VotePlan:
    """Return how a metric is to be voted on here."""
    here = context.current()
    votes, session = here.wanted_votes(), here.session
    # A dry run forecasts the most there can be.
    if here.bounded is not metric or (session is not None and session.dry_run):
        return VotePlan(votes=votes)
    return VotePlan(votes=votes, least=here.least, most=here.most)


async def collect_votes(vote: Callable[[int], Awaitable[Vote]], plan: VotePlan, scale: Scale) -> MetricResult:
    """Return the mean of the votes, asking no more of them than the outcome takes.

    ``vote`` is called with the number of each. Those that must be asked anyway are asked at the same time. One that
    has no score could have had any: raises its ``UnscoredError`` unless the others decide the outcome without it. One
    vote is enough where nothing varies.
    """
    from pytest_ragmetrics.core import loop

    votes: list[Vote] = []
    number = plan.least_wave((), scale, plan.votes) or plan.votes
    while number:
        wave = await loop.gather_or_cancel(map(vote, range(len(votes), len(votes) + number)))
        votes += wave
        if not any(each.is_varied for each in wave):
            first = votes[0].outcome
            if isinstance(first, UnscoredError):
                raise first
            note = f"(1 vote: {first.judge} answers alike every time)"
            return first if first.judge is None else first.replaced(reason=f"{first.reason or ''} {note}".strip())
        samples = [each.outcome.value for each in votes if isinstance(each.outcome, MetricResult)]
        # Without any score there is no outcome, however low the bound.
        if samples and plan.is_decided(samples, scale):
            return _mean([each.outcome for each in votes], plan.votes)
        number = plan.least_wave(samples, scale, plan.votes - len(votes))
    errors = [each.outcome for each in votes if isinstance(each.outcome, UnscoredError)]
    # The class is that of the first error: callers read the attributes of its kind.
    error = errors[0]
    error.usage = _usage([each.outcome for each in votes])
    error.args = (f"{error} ({len(errors)} of {len(votes)} votes asked have no score, and it depends on them)",)
    raise error


Outcome = MetricResult | UnscoredError


def _mean(outcomes: Sequence[Outcome], total: int) -> MetricResult:
    scored = [outcome for outcome in outcomes if isinstance(outcome, MetricResult)]
    samples, unscored = [result.value for result in scored], len(outcomes) - len(scored)
    value = mean(samples)
    nearest = min(scored, key=lambda result: abs(result.value - value))
    reason = ": ".join(part for part in (describe_votes(samples, total, unscored=unscored), nearest.reason) if part)
    return MetricResult(
        value,
        metric=nearest.metric,
        reason=reason,
        verdicts=nearest.verdicts,
        vacuous=all(result.vacuous for result in scored),
        judge=nearest.judge,
        disagreements=nearest.disagreements,
        usage=_usage(outcomes),
        samples=samples,
        votes=total,
        unscored_votes=unscored,
    )


def _usage(outcomes: Sequence[Outcome]) -> Usage:
    return sum((outcome.usage or Usage() for outcome in outcomes), start=Usage())
