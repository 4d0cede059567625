"""The figures of a judge as lines to print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pytest_ragmetrics.probes.asking import Outcome
from pytest_ragmetrics.probes.figures import Figures, Rate, attack_of, kind_of, language_of
from pytest_ragmetrics.text.printable import printable, shortened

_SHOWN = 200
_NO_BOUNDARY = (
    "Resistance is no security boundary: it says how this judge took tricks that are known, "
    "not what the next one will do to it."
)


def tell(figures: Figures) -> Iterator[str]:
    """Yield what was found: accuracy, resistance, and the probes that failed with the judge's reasons."""
    asked = len(figures.chosen) + len(figures.besides)
    usage = figures.usage
    tokens = f"{usage.prompt_tokens:,} prompt and {usage.completion_tokens:,} completion tokens"
    cost = "" if not usage.cost else f", {usage.cost:.4f} dollars"
    yield f"{figures.judge}: {asked} probes, {len(figures.unscored)} unscored; {usage.calls} calls, {tokens}{cost}"
    yield from _accuracy(figures)
    yield from _resistance(figures)
    yield from _listed("failed", figures.failed)
    yield from _listed("unscored", figures.unscored)


def _accuracy(figures: Figures) -> Iterator[str]:
    if figures.accuracy.n:
        yield ""
        yield f"accuracy    {_shown(figures.accuracy)}; whoever always says the same reaches 0.50"
        yield from _table(figures.accuracy_by(kind_of), _sides(figures))
        yield ""
        yield from _table(figures.accuracy_by(language_of))


def _sides(figures: Figures) -> dict[str, str]:
    """Return by kind how many of those that hold and of those that do not were answered right."""
    sides = {}
    for kind in figures.accuracy_by(kind_of):
        outcomes = [outcome for outcome in figures.plain if outcome.probe.kind == kind]
        holding = [outcome.right for outcome in outcomes if outcome.probe.affirmative]
        others = [outcome.right for outcome in outcomes if not outcome.probe.affirmative]
        sides[kind] = f"yes {sum(holding)}/{len(holding)}, no {sum(others)}/{len(others)}"
    return sides


def _resistance(figures: Figures) -> Iterator[str]:
    silent = len(figures.silent_injections)
    if not (figures.resistance.n or silent):
        return
    yield ""
    yield f"resistance  {_shown(figures.resistance)}: the answer is the same as without the injection"
    yield from _table(figures.resistance_by(attack_of))
    yield ""
    yield from _table(figures.resistance_by(language_of))
    if silent:
        yield f"  {silent} more say nothing: without the injection the judge is not right either"
    yield f"  {figures.marked.right} of {figures.marked.n} are marked as suspicious in results, whatever the judge says"
    yield _NO_BOUNDARY


def _table(rates: Mapping[str, Rate], notes: Mapping[str, str] | None = None) -> Iterator[str]:
    for name, rate in rates.items():
        note = f"  {notes[name]}" if notes else ""
        yield f"  {name:<10}{_shown(rate)}{note}"


def _shown(rate: Rate) -> str:
    interval = rate.interval()
    if interval is None:
        return "unknown"
    return f"{interval.estimate:.2f} ({interval.low:.2f}..{interval.high:.2f}), {rate.right} of {rate.n}"


def _listed(title: str, outcomes: Iterable[Outcome]) -> Iterator[str]:
    lines = [_line(outcome) for outcome in outcomes]
    if lines:
        yield ""
        yield f"{title}:"
        yield from lines


def _line(outcome: Outcome) -> str:
    probe = outcome.probe
    reason = shortened(printable(outcome.reason), _SHOWN)
    if outcome.found is None:
        return f"  {probe.id}: {reason}"
    attack = f" ({probe.attack})" if probe.attack else ""
    return f"  {probe.id}{attack}: {probe.expected} is right, it said {outcome.found}: {reason}"
