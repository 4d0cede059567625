"""The tool calls of an agent against those of the reference."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.core.messages import ToolCall, read_messages, read_tool_calls
from pytest_ragmetrics.core.result import MetricResult, Usage, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.base import Metric, f_of_counts, is_blank
from pytest_ragmetrics.metrics.parameters import choice, count, declared, parameter

#: How right values are that differ, from 0.0 to 1.0, by their JSON texts, that of the reference first.
Alike: TypeAlias = Mapping[tuple[str, str], float]
#: Which tools are the right ones.
Match: TypeAlias = Literal["exact", "any order", "superset", "subset"]
_EQUAL: Alike = MappingProxyType({})
#: The keys of the calls in ``metadata``: ours and those of other tools.
_MADE = ("tool_calls", "tools_called")
_WANTED = ("reference_tool_calls", "expected_tools")


class ToolCallMetric(Metric):
    """A metric over the tool calls of a conversation and those of the reference.

    Takes ``reference_tool_calls`` and either ``messages`` (the calls of the assistant in them, in order) or
    ``tool_calls``: as inputs of ``score()``, or in the ``metadata`` of a sample. See
    :func:`~pytest_ragmetrics.core.messages.read_messages` for the forms. An empty list is a list; two score 1.0.
    """

    helper = "assert_tools_called"

    requires: ClassVar[tuple[str, ...]] = ()
    extra_inputs: ClassVar[tuple[str, ...]] = ("messages", *_MADE, *_WANTED)

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` naming what is missing, ``TypeError`` for what is no message or call."""
        _calls_of(sample, metric=self.name)

    def measure(self, sample: Sample) -> MetricResult:
        """Return the score of the calls."""
        made, wanted = _calls_of(sample, metric=self.name)
        if not made and not wanted:
            return MetricResult(1.0, metric=self.name, reason="no tool was to be called, and none was", vacuous=True)
        return self.compared(made, wanted)

    @abstractmethod
    def compared(self, made: Sequence[ToolCall], wanted: Sequence[ToolCall]) -> MetricResult:
        """Return the score of the calls made, there being any or any wanted."""


def _comparing(given: Metric | str | None) -> Metric | None:
    """Return the metric that compares values; raise ``ValueError`` for one that takes more than two texts."""
    if given is None:
        return None
    # The registry loads every metric, and with them the judges.
    from pytest_ragmetrics.metrics.registry import metric_for

    metric = metric_for(given)
    if metric.better == "lower" or not {*metric.requires} <= {"response", "reference"}:
        msg = f"arg_comparison must score response and reference, the higher the more alike; {metric.name} does not"
        raise ValueError(msg)
    return metric


@declared
class ToolCallAccuracy(ToolCallMetric):
    """The mean share of right arguments over the calls of the reference, if the right tools were called; else 0.0.

    Use it when you know which tools answer a question. ``match="exact"`` requires the same tools in the same order,
    "any order" (or ``strict_order=False``) the same tools, "superset" at least those of the reference, "subset" no
    others; its score is the mean over the calls made, 1.0 without any. More than ``max_calls`` calls score 0.0. With
    wrong tools no arguments are compared: one extra call is 0.0 by default; :class:`ToolCallF1` says how much is right.

    Except for "exact", calls of a name are paired so that the most arguments are right. A pair scores the share of the
    reference's arguments that are equal as JSON (1 is 1.0, but not "1" or true). Further arguments are ignored, unless
    the reference has none. ``arg_comparison``, a metric of ``response`` and ``reference`` or its name, scores unequal
    values as texts. After Ragas.

    >>> call = {"name": "weather", "args": {"city": "Oslo", "days": 2}}
    >>> ToolCallAccuracy().score(
    ...     messages=[{"role": "assistant", "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}}]}],
    ...     reference_tool_calls=[call],
    ... ).value
    0.5
    >>> made = [{"name": "clock"}, call]
    >>> [
    ...     ToolCallAccuracy(match=match).score(tool_calls=made, reference_tool_calls=[call]).value
    ...     for match in ("exact", "superset")
    ... ]
    [0.0, 1.0]
    >>> from pytest_ragmetrics.metrics import NonLLMStringSimilarity
    >>> ToolCallAccuracy(arg_comparison=NonLLMStringSimilarity()).score(
    ...     tool_calls=[{"name": "weather", "args": {"city": "Osla", "days": 2}}], reference_tool_calls=[call]
    ... ).value
    0.875
    """

    name = "tool_call_accuracy"
    blind_spots = "What the tools returned, and whether the answer used it."
    noun = "tool call"
    complaint = "not as in the reference"

    match: Match = choice("exact", Match)
    max_calls: int | None = count(None)
    strict_order: bool = True
    arg_comparison: Metric | str | None = parameter(None, _comparing)

    @property
    def _how(self) -> Match:
        return "any order" if self.match == "exact" and not self.strict_order else self.match

    def measure(self, sample: Sample) -> MetricResult:
        """Return the score of the calls, with another metric on the background loop."""
        if self.arg_comparison is None:
            return super().measure(sample)
        from pytest_ragmetrics.core import loop

        return loop.run(self.ameasure(sample))

    async def ameasure(self, sample: Sample) -> MetricResult:
        """Return the score of the calls; another metric compares their values at the same time."""
        made, wanted = _calls_of(sample, metric=self.name)
        if not isinstance(self.arg_comparison, Metric) or not made or not self._aligned(made, wanted):
            return super().measure(sample)
        pairs = _unlike(zip(wanted, made, strict=True) if self._how == "exact" else product(wanted, made))
        samples = [Sample(response=str(said), reference=str(right)) for right, said in pairs.values()]
        found = await asyncio.gather(*map(self.arg_comparison.ameasure, samples))
        result = self.compared(made, wanted, {key: max(0.0, each) for key, each in zip(pairs, found, strict=True)})
        judges = dict.fromkeys(each.judge for each in found if each.judge)
        return result.replaced(judge=", ".join(judges) or None, usage=sum((each.usage for each in found), Usage()))

    def compared(self, made: Sequence[ToolCall], wanted: Sequence[ToolCall], alike: Alike = _EQUAL) -> MetricResult:
        """Return the mean share of right arguments; ``alike`` scores values that differ, by their JSON texts."""
        if not self._aligned(made, wanted):
            return self._not_aligned(made, wanted)
        pairs = [*zip(wanted, made, strict=True)] if self._how == "exact" else _pairs(made, wanted, alike)
        if not pairs:
            reason = "no tool was called, and none had to be" if wanted else "no tool had to be called"
            return MetricResult(1.0, metric=self.name, reason=reason, vacuous=True)
        values = [(_values(call), _values(partner)) for call, partner in pairs]
        shares = [_share_right(*pair, alike) for pair in values]
        verdicts = [
            Verdict(text=_shown(call), ok=share == 1, reason=_complaint(*pair, alike))
            for (call, _), share, pair in zip(pairs, shares, values, strict=True)
        ]
        reason = f"the right tools, {sum(verdict.ok for verdict in verdicts)} of {len(pairs)} calls with all arguments"
        return MetricResult(sum(shares) / len(shares), metric=self.name, reason=reason, verdicts=verdicts)

    def _aligned(self, made: Sequence[ToolCall], wanted: Sequence[ToolCall]) -> bool:
        names, right = [call.name for call in made], [call.name for call in wanted]
        if len(made) > (self.max_calls or len(made)):
            return False
        if self._how in ("exact", "any order"):
            return names == right if self._how == "exact" else Counter(names) == Counter(right)
        return Counter(names) >= Counter(right) if self._how == "superset" else Counter(names) <= Counter(right)

    def _not_aligned(self, made: Sequence[ToolCall], wanted: Sequence[ToolCall]) -> MetricResult:
        names, right = (", ".join(call.name for call in calls) or "none" for calls in (made, wanted))
        most, calls, missing, there = self.max_calls, wanted, "not called", "called, arguments not compared"
        left = Counter(call.name for call in made)
        reason = {
            "exact": f"called {names} instead of {right}",
            "any order": f"called {names} instead of {right}, in any order",
            "superset": f"called {names}, which lacks some of {right}",
            "subset": f"called {names}, of which not all are among {right}",
        }[self._how]
        if most is not None and len(made) > most:
            calls, missing, reason = made, "one of too many", f"{len(made)} calls, and max_calls is {most}"
        elif self._how == "subset":
            calls, missing, left = made, "not in the reference", Counter(call.name for call in wanted)
        verdicts = []
        for index, call in enumerate(calls):
            called = left[call.name] > 0
            left[call.name] -= 1
            if calls is made and most is not None and len(made) > most:
                called = index < most
            elif self._how == "exact":
                called = [it.name for it in made[index : index + 1]] == [call.name]
                missing = f"not called as number {index + 1}"
            verdicts.append(Verdict(text=_shown(call), ok=called, reason=there if called else missing))
        return MetricResult(0.0, metric=self.name, reason=reason, verdicts=verdicts)


class ToolCallF1(ToolCallMetric):
    """The F1 of the calls made against those of the reference, in any order, each as often as it was made.

    Use it when some of an agent's calls are right, and you want to know how many. Calls are equal if the tool and all
    arguments are, as in :class:`ToolCallAccuracy`.

    >>> ToolCallF1().score(
    ...     tool_calls=[{"name": "stop"}, {"name": "stop"}], reference_tool_calls=[{"name": "stop"}]
    ... ).value
    0.6666666666666666
    """

    name = "tool_call_f1"
    blind_spots = "The order of the calls, what they returned, and how near a wrong argument is."
    noun = "tool call"
    complaint = "not matched"

    def compared(self, made: Sequence[ToolCall], wanted: Sequence[ToolCall]) -> MetricResult:
        """Return the F1."""
        surplus, missing = Counter(map(_key, made)), Counter(map(_key, wanted))
        common = (surplus & missing).total()
        verdicts = []
        for calls, left, wrong in ((wanted, surplus, "not called"), (made, missing, "called and not in the reference")):
            for call in calls:
                matched = left[_key(call)] > 0
                left[_key(call)] -= 1
                if calls is wanted or not matched:
                    verdicts.append(Verdict(text=_shown(call), ok=matched, reason="called" if matched else wrong))
        reason = f"{common} calls in common of {len(made)} made and {len(wanted)} in the reference"
        value = f_of_counts(common, len(made) - common, len(wanted) - common)
        return MetricResult(value, metric=self.name, reason=reason, verdicts=verdicts)


assert_tools_called = asserting(
    ToolCallAccuracy,
    ToolCallF1,
    called=("accuracy", "f1"),
    takes=("messages", "reference_tool_calls"),
    min=1.0,
    example='[{"role": "assistant", "tool_calls": [{"name": "stop"}]}], [{"name": "stop"}]',
    note="``messages`` are those of OpenAI, Anthropic, LangChain or Ragas.",
)


def _calls_of(sample: Sample, *, metric: str) -> tuple[tuple[ToolCall, ...], tuple[ToolCall, ...]]:
    given = sample.metadata
    wanted = next((name for name in _WANTED if given.get(name) is not None), None)
    made = next((name for name in _MADE if given.get(name) is not None), None)
    if wanted is None or (made is None and given.get("messages") is None):
        msg = f"{metric}: {'reference_tool_calls' if wanted is None else 'messages'} is missing; it needs messages (or "
        msg += "tool_calls) and reference_tool_calls, given to score() or in the metadata of the sample"
        raise ValueError(msg)
    if made is not None:
        return read_tool_calls(given[made], name=made), read_tool_calls(given[wanted], name=wanted)
    spoken = read_messages(given["messages"])
    calls = tuple(call for message in spoken for call in message.tool_calls if message.role == "assistant")
    return calls, read_tool_calls(given[wanted], name=wanted)


def _unlike(calls: Iterable[tuple[ToolCall, ToolCall]]) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Return the values of one argument that differ and are not blank, those of the reference first, by their JSON."""
    pairs = (
        (value, made.arguments[name])
        for wanted, made in calls
        if wanted.name == made.name
        for name, value in wanted.arguments.items()
        if name in made.arguments
    )
    found = {(_canonical(right), _canonical(said)): (right, said) for right, said in pairs}
    return {key: pair for key, pair in found.items() if key[0] != key[1] and not any(is_blank(str(v)) for v in pair)}


def _pairs(made: Sequence[ToolCall], wanted: Sequence[ToolCall], alike: Alike) -> list[tuple[ToolCall, ToolCall]]:
    """Return calls wanted, in order, each with one made of its name, so that the most arguments are right.

    Where a name was called more often, or less often, what is left over has no partner.
    """
    found: dict[int, ToolCall] = {}
    for name in dict.fromkeys(call.name for call in wanted):
        places = [index for index, call in enumerate(wanted) if call.name == name]
        calls = [call for call in made if call.name == name]
        said = [_values(call) for call in calls]
        size = max(len(places), len(calls))
        shares = [[_share_right(_values(wanted[place]), values, alike) for values in said] for place in places]
        square = [[*row, *[0.0] * (size - len(row))] for row in [*shares, *[[]] * (size - len(shares))]]
        chosen = zip(places, best_assignment(square), strict=False)
        found |= {place: calls[column] for place, column in chosen if column < len(calls)}
    return [(wanted[place], found[place]) for place in sorted(found)]


def best_assignment(gains: Sequence[Sequence[float]]) -> list[int]:
    """Return for each row of a square table a column of its own, so that the sum of the gains is the largest.

    The Hungarian method with potentials (Kuhn 1955; Jonker and Volgenant 1987): rows are added one by one, each along
    the shortest augmenting path. Time grows with the cube of the rows; scipy, which has it, is no dependency.

    >>> best_assignment([[1.0, 0.5], [1.0, 0.0]])
    [1, 0]
    """
    import numpy as np

    size = len(gains)
    costs = -np.asarray(gains, dtype=float).reshape(size, size)
    of_row, of_column = np.zeros(size), np.zeros(size + 1)
    # The last column is where each path begins.
    owner = np.full(size + 1, -1)
    for row in range(size):
        column, owner[size] = size, row
        least, before, reached = np.full(size, np.inf), np.full(size, size), np.zeros(size + 1, dtype=bool)
        while owner[column] >= 0:
            reached[column] = True
            slack = costs[owner[column]] - of_row[owner[column]] - of_column[:size]
            closer = ~reached[:size] & (slack < least)
            least[closer], before[closer] = slack[closer], column
            column = int(np.where(reached[:size], np.inf, least).argmin())
            step = least[column]
            of_row[owner[reached]] += step
            of_column[reached] -= step
            least[~reached[:size]] -= step
        while column != size:
            owner[column], column = owner[before[column]], before[column]
    columns: list[int] = np.argsort(owner[:size]).tolist()
    return columns


def _values(call: ToolCall) -> dict[str, str]:
    return {name: _canonical(value) for name, value in call.arguments.items()}


def _share_right(wanted: Mapping[str, str], made: Mapping[str, str], alike: Alike) -> float:
    if not wanted:
        return float(not made)
    return sum(_right(wanted, made, alike).values()) / len(wanted)


def _right(wanted: Mapping[str, str], made: Mapping[str, str], alike: Alike) -> dict[str, float]:
    return {
        name: float(made.get(name) == value) or alike.get((value, made.get(name, "")), 0.0)
        for name, value in wanted.items()
    }


def _complaint(wanted: Mapping[str, str], made: Mapping[str, str], alike: Alike) -> str | None:
    """Return what is wrong with the arguments of a call, and which it has too many."""
    wrong = [name for name, score in _right(wanted, made, alike).items() if score < 1]
    faults = [f"{name} is {made[name]}" if name in made else f"{name} is missing" for name in wrong]
    surplus = (f"{name} is not in the reference" for name in made if name not in wanted)
    return "; ".join([*faults, *surplus]) or None


def _key(call: ToolCall) -> str:
    return f"{call.name} {_canonical(call.arguments)}"


def _canonical(value: object) -> str:
    """Return the JSON text that equal values have in common; raise ``UnscoredError`` for one nested too deep."""
    try:
        return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, default=str)
    except RecursionError as error:
        raise UnscoredError("the arguments of a tool call are nested too deep to be compared") from error


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _shown(call: ToolCall) -> str:
    arguments = ", ".join(f"{name}={_canonical(value)}" for name, value in call.arguments.items())
    return f"{call.name}({arguments})"
