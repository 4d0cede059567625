"""The tool calls of an agent against those of the reference."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from pytest_ragmetrics.errors import UnscoredError
from pytest_ragmetrics.metrics.assertion import assert_metric
from pytest_ragmetrics.metrics.base import Metric, check_choice, check_flag, f1_of_counts
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.sample import Sample, ToolCall, read_messages, read_tool_calls

#: The keys of the calls in ``metadata``: ours and those of other tools.
_MADE = ("tool_calls", "tools_called")
_WANTED = ("reference_tool_calls", "expected_tools")


class ToolCallMetric(Metric):
    """A metric over the tool calls of a conversation and those of the reference.

    Takes ``reference_tool_calls`` and either ``messages`` (the calls of the assistant in them, in order) or
    ``tool_calls``: as inputs of ``score()``, or in the ``metadata`` of a sample. See
    :func:`~pytest_ragmetrics.sample.read_messages` for the forms. An empty list is a list; two of them score 1.0.
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


class ToolCallAccuracy(ToolCallMetric):
    """The mean share of right arguments over the calls of the reference, if the right tools were called; else 0.0.

    The tools must be the same in the same order, or with ``strict_order=False`` in any order (equal calls are then
    paired first, the others of a name in order). Where their number or order differs, no arguments are compared: one
    call too many makes it 0.0, and ToolCallF1 says how much is right. Of each call, the share of the reference's
    arguments whose value is equal as JSON (1 is 1.0, but not "1" or true); a call that should have none is right when
    it has none. Otherwise arguments that the reference does not name count for nothing; ToolCallF1 counts them. After
    Ragas' tool call accuracy.

    >>> call = {"name": "weather", "args": {"city": "Oslo", "days": 2}}
    >>> ToolCallAccuracy().score(
    ...     messages=[{"role": "assistant", "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}}]}],
    ...     reference_tool_calls=[call],
    ... ).value
    0.5
    """

    name = "tool_call_accuracy"
    noun = "tool call"
    complaint = "not as in the reference"

    def __init__(self, *, strict_order: bool = True) -> None:
        self.strict_order = check_flag("strict_order", strict_order)

    def compared(self, made: Sequence[ToolCall], wanted: Sequence[ToolCall]) -> MetricResult:
        """Return the mean share of right arguments."""
        partners = list(made) if self.strict_order else _partners(made, wanted)
        names, right = [call.name for call in partners], [call.name for call in wanted]
        if len(made) != len(wanted) or names != right:
            return self._not_aligned(made, wanted)
        shares = [_arguments_right(call, partner) for call, partner in zip(wanted, partners, strict=True)]
        verdicts = [
            Verdict(text=_shown(call), ok=share == 1, reason=_complaint(call, partner))
            for call, partner, share in zip(wanted, partners, shares, strict=True)
        ]
        reason = f"the right tools, {sum(verdict.ok for verdict in verdicts)} of {len(wanted)} calls with all arguments"
        return MetricResult(sum(shares) / len(shares), metric=self.name, reason=reason, verdicts=verdicts)

    def _not_aligned(self, made: Sequence[ToolCall], wanted: Sequence[ToolCall]) -> MetricResult:
        names = [", ".join(call.name for call in calls) or "none" for calls in (made, wanted)]
        reason = f"called {names[0]} instead of {names[1]}{'' if self.strict_order else ', in any order'}"
        left = Counter(call.name for call in made)
        verdicts = []
        for index, call in enumerate(wanted):
            in_place = self.strict_order and [c.name for c in made[index : index + 1]] == [call.name]
            called = in_place or (not self.strict_order and left[call.name] > 0)
            left[call.name] -= 1
            missing = f"not called as number {index + 1}" if self.strict_order else "not called"
            said = "called, arguments not compared" if called else missing
            verdicts.append(Verdict(text=_shown(call), ok=called, reason=said))
        return MetricResult(0.0, metric=self.name, reason=reason, verdicts=verdicts)


class ToolCallF1(ToolCallMetric):
    """The F1 of the calls made against those of the reference, in any order, each as often as it was made.

    Two calls are the same if the tool is and all arguments are equal as JSON (1 is 1.0, but not "1" or true).

    >>> ToolCallF1().score(
    ...     tool_calls=[{"name": "stop"}, {"name": "stop"}], reference_tool_calls=[{"name": "stop"}]
    ... ).value
    0.6666666666666666
    """

    name = "tool_call_f1"
    noun = "tool call"
    complaint = "not matched"

    def compared(self, made: Sequence[ToolCall], wanted: Sequence[ToolCall]) -> MetricResult:
        """Return the F1."""
        surplus, missing = Counter(map(_key, made)), Counter(map(_key, wanted))
        common = (surplus & missing).total()
        verdicts = []
        for calls, left, said in ((wanted, surplus, "not called"), (made, missing, "called and not in the reference")):
            for call in calls:
                matched = left[_key(call)] > 0
                left[_key(call)] -= 1
                if calls is wanted or not matched:
                    verdicts.append(Verdict(text=_shown(call), ok=matched, reason="called" if matched else said))
        reason = f"{common} calls in common of {len(made)} made and {len(wanted)} in the reference"
        value = f1_of_counts(common, len(made) - common, len(wanted) - common)
        return MetricResult(value, metric=self.name, reason=reason, verdicts=verdicts)


def assert_tools_called(
    messages: object,
    reference_tool_calls: object,
    *,
    metric: Literal["accuracy", "f1"] = "accuracy",
    strict_order: bool = True,
    min: float = 1.0,
) -> MetricResult:
    """Assert that the calls of tools in a conversation are, to the degree ``min``, those of the reference.

    ``messages`` are those of OpenAI, Anthropic, LangChain or Ragas. See
    :class:`~pytest_ragmetrics.metrics.ToolCallAccuracy`, which ``strict_order`` is for, and
    :class:`~pytest_ragmetrics.metrics.ToolCallF1`.

    >>> call = {"name": "weather", "args": {"city": "Oslo"}}
    >>> assert_tools_called([{"role": "assistant", "tool_calls": [call]}], [call]).value
    1.0
    """
    __tracebackhide__ = True
    chosen = check_choice("metric", metric, ("accuracy", "f1"))
    made = ToolCallF1() if chosen == "f1" else ToolCallAccuracy(strict_order=strict_order)
    sample = Sample(metadata={"messages": messages, "reference_tool_calls": reference_tool_calls})
    return assert_metric(made, sample, min=min)


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


def _partners(made: Sequence[ToolCall], wanted: Sequence[ToolCall]) -> list[ToolCall]:
    """Return the calls made in the order of those wanted: equal ones first, then the next of the same name."""
    found: dict[int, int] = {}
    keys: tuple[Callable[[ToolCall], str], ...] = (_key, lambda call: call.name)
    for key in keys:
        left: defaultdict[str, deque[int]] = defaultdict(deque)
        for index in sorted({*range(len(made))} - {*found.values()}):
            left[key(made[index])].append(index)
        for number, call in enumerate(wanted):
            if number not in found and left[key(call)]:
                found[number] = left[key(call)].popleft()
    return [made[found[number]] for number in sorted(found)]


def _arguments_right(wanted: ToolCall, made: ToolCall) -> float:
    if not wanted.arguments:
        return float(not made.arguments)
    return (len(wanted.arguments) - len(_wrong(wanted, made))) / len(wanted.arguments)


def _wrong(wanted: ToolCall, made: ToolCall) -> list[str]:
    return [
        f"{name} is {_canonical(made.arguments[name])}" if name in made.arguments else f"{name} is missing"
        for name, value in wanted.arguments.items()
        if name not in made.arguments or _canonical(made.arguments[name]) != _canonical(value)
    ]


def _complaint(wanted: ToolCall, made: ToolCall) -> str | None:
    """Return what is wrong with the arguments of a call, and which it has too many."""
    surplus = (f"{name} is not in the reference" for name in made.arguments if name not in wanted.arguments)
    return "; ".join([*_wrong(wanted, made), *surplus]) or None


def _key(call: ToolCall) -> str:
    return f"{call.name} {_canonical(call.arguments)}"


def _canonical(value: object) -> str:
    """Return the JSON text that equal values have in common; raise ``UnscoredError`` for one nested too deep."""
    try:
        return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, default=str)
    except RecursionError as error:
        msg = "the arguments of a tool call are nested too deep to be compared"
        raise UnscoredError(msg) from error


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _shown(call: ToolCall) -> str:
    arguments = ", ".join(f"{name}={_canonical(value)}" for name, value in call.arguments.items())
    return f"{call.name}({arguments})"
