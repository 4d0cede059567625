"""The figures of a judge's answers to probes, as JSON and as the lines of ``ragmetrics probe``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_ragmetrics.judges.suspicion import suspicious_signs
from pytest_ragmetrics.probes.probes import INJECTION, ProbeOutcome
from pytest_ragmetrics.result import Usage
from pytest_ragmetrics.stats.intervals import Interval, rate_interval
from pytest_ragmetrics.text.characters import printable, shortened

VERSION = 1
_SHOWN = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeRate:
    """``right`` answers of ``n``.

    >>> ProbeRate(right=9, n=10).estimate
    0.9
    """

    right: int
    n: int

    @classmethod
    def of(cls, outcomes: Sequence[ProbeOutcome]) -> ProbeRate:
        """Return the rate of right answers."""
        return cls(right=sum(outcome.right for outcome in outcomes), n=len(outcomes))

    @property
    def estimate(self) -> float | None:
        """The share of right answers; ``None`` if there are no answers."""
        return self.right / self.n if self.n else None

    @property
    def interval(self) -> Interval | None:
        """Wilson's interval of 95 %."""
        return rate_interval([True] * self.right + [False] * (self.n - self.right)) if self.n else None

    def to_row(self) -> dict[str, Any]:
        """Return the rate as JSON builtins."""
        ends = {} if self.interval is None else {"low": self.interval.low, "high": self.interval.high}
        return {"right": self.right, "n": self.n, "estimate": self.estimate, **ends}

    def __str__(self) -> str:
        interval = self.interval
        if interval is None:
            return "unknown"
        return f"{interval.estimate:.2f} ({interval.low:.2f}..{interval.high:.2f}), {self.right} of {self.n}"


class ProbeFigures:
    """The figures of the answers to the probes ``chosen``, and to the twins asked ``besides`` them.

    ``plain`` are the answered probes without an injection, ``injections`` the answered ones whose twin was answered
    right: the judge resists if the answer is the same. The other answered injections are ``uninformative``.
    """

    def __init__(self, *, judge: str, chosen: Sequence[ProbeOutcome], besides: Sequence[ProbeOutcome] = ()) -> None:
        self.judge = judge
        self.chosen = chosen
        self.asked = (*chosen, *besides)
        self.all_injections = [outcome for outcome in chosen if outcome.probe.kind == INJECTION]
        self.plain = [o for o in chosen if o.probe.kind != INJECTION and o.found is not None]
        by_id = {outcome.probe.id: outcome for outcome in self.asked}
        answered = [outcome for outcome in self.all_injections if outcome.found is not None]
        self.injections = [outcome for outcome in answered if by_id[outcome.probe.twin or ""].right]
        self.uninformative = [outcome for outcome in answered if not by_id[outcome.probe.twin or ""].right]
        self.unscored = [outcome for outcome in self.asked if outcome.found is None]
        self.failed = [outcome for outcome in (*self.plain, *self.injections) if not outcome.right]
        self.accuracy = ProbeRate.of(self.plain)
        self.resistance = ProbeRate.of(self.injections)
        self.usage = sum((outcome.usage for outcome in self.asked), Usage())

        # How many injections the package itself marks as suspicious.
        marked = sum(bool(suspicious_signs(outcome.probe.injected or "")) for outcome in self.all_injections)
        self.marked = ProbeRate(right=marked, n=len(self.all_injections))

    @property
    def lowest_accuracy(self) -> float:
        """The accuracy if every probe without an answer is counted as wrong."""
        return self.accuracy.right / (len(self.chosen) - len(self.all_injections)) if self.plain else 0.0

    @property
    def lowest_resistance(self) -> float:
        """The resistance if every injection that is unanswered or uninformative is counted as wrong."""
        return self.resistance.right / len(self.all_injections) if self.injections else 0.0

    def to_document(self) -> dict[str, Any]:
        """Return everything as JSON builtins, one outcome a probe."""
        return {
            "version": VERSION,
            "judge": self.judge,
            "accuracy": self.accuracy.to_row(),
            "accuracy_by_kind": _rows(self.plain, "kind"),
            "accuracy_by_language": _rows(self.plain, "language"),
            "resistance": self.resistance.to_row(),
            "resistance_by_attack": _rows(self.injections, "attack"),
            "resistance_by_language": _rows(self.injections, "language"),
            "marked_as_suspicious": self.marked.to_row(),
            "unscored": len(self.unscored),
            "usage": {
                name: getattr(self.usage, name)
                for name in ("calls", "cached_calls", "prompt_tokens", "completion_tokens", "cost")
            },
            "probes": [
                {
                    "id": outcome.probe.id,
                    "kind": outcome.probe.kind,
                    "language": outcome.probe.language,
                    "attack": outcome.probe.attack,
                    "twin": outcome.probe.twin,
                    "task": outcome.probe.task.prompt,
                    "expected": outcome.probe.expected,
                    "found": outcome.found,
                    "right": outcome.right if outcome.found is not None else None,
                    "reason": outcome.reason,
                    "calls": outcome.usage.calls,
                }
                for outcome in self.asked
            ],
        }


def _grouped(outcomes: Iterable[ProbeOutcome], name: str) -> dict[str, ProbeRate]:
    """Return the rates of outcomes by ``kind``, ``language`` or ``attack``, in the order of its first appearance."""
    groups: dict[str, list[ProbeOutcome]] = {}
    for outcome in outcomes:
        groups.setdefault(getattr(outcome.probe, name) or "", []).append(outcome)
    return {name: ProbeRate.of(group) for name, group in groups.items()}


def _rows(outcomes: Iterable[ProbeOutcome], name: str) -> dict[str, Any]:
    return {group: rate.to_row() for group, rate in _grouped(outcomes, name).items()}


def figure_lines(figures: ProbeFigures) -> Iterator[str]:
    """Yield accuracy, resistance, and the probes that failed with the judge's reasons."""
    usage = figures.usage
    tokens = f"{usage.prompt_tokens:,} prompt and {usage.completion_tokens:,} completion tokens"
    cost = f", {usage.cost:.4f} dollars" if usage.cost else ""
    counts = f"{len(figures.asked)} probes, {len(figures.unscored)} unscored"
    yield f"{figures.judge}: {counts}; {usage.calls} calls, {tokens}{cost}"
    yield from _accuracy(figures)
    yield from _resistance(figures)
    for title, outcomes in (("failed", figures.failed), ("unscored", figures.unscored)):
        if outcomes:
            yield ""
            yield f"{title}:"
            yield from map(_outcome_line, outcomes)


def _accuracy(figures: ProbeFigures) -> Iterator[str]:
    if not figures.plain:
        return
    yield ""
    yield f"accuracy    {figures.accuracy}; whoever always says the same reaches 0.50"
    for kind, rate in _grouped(figures.plain, "kind").items():
        outcomes = [outcome for outcome in figures.plain if outcome.probe.kind == kind]
        yes = [outcome.right for outcome in outcomes if outcome.probe.affirmative]
        no = [outcome.right for outcome in outcomes if not outcome.probe.affirmative]
        yield f"  {kind:<10}{rate}  yes {sum(yes)}/{len(yes)}, no {sum(no)}/{len(no)}"
    yield ""
    yield from _table(figures.plain, "language")


def _resistance(figures: ProbeFigures) -> Iterator[str]:
    if not (figures.injections or figures.uninformative):
        return
    yield ""
    yield f"resistance  {figures.resistance}: the answer is the same as without the injection"
    yield from _table(figures.injections, "attack")
    yield ""
    yield from _table(figures.injections, "language")
    if figures.uninformative:
        yield f"  {len(figures.uninformative)} more say nothing: without the injection the judge is not right either"
    yield f"  {figures.marked.right} of {figures.marked.n} are marked as suspicious, independent of the judge"
    yield (
        "Resistance is no security boundary: it says how this judge took tricks that are known, "
        "not what the next one will do to it."
    )


def _table(outcomes: Iterable[ProbeOutcome], name: str) -> Iterator[str]:
    yield from (f"  {group:<10}{rate}" for group, rate in _grouped(outcomes, name).items())


def _outcome_line(outcome: ProbeOutcome) -> str:
    probe = outcome.probe
    reason = shortened(printable(outcome.reason), _SHOWN)
    if outcome.found is None:
        return f"  {probe.id}: {reason}"
    attack = f" ({probe.attack})" if probe.attack else ""
    return f"  {probe.id}{attack}: {probe.expected} is right, it said {outcome.found}: {reason}"
