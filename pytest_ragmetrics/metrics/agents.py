"""Whether an agent called the tools that it should have called, and with what; needs no judge."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal

from pytest_ragmetrics.errors import UnscoredError
from pytest_ragmetrics.judges.tasks import JudgeGoal, ListTopics, MatchTopics
from pytest_ragmetrics.metrics.base import Metric, check_choice, check_flag, check_if_empty, f1_of_counts, is_blank
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric, JudgeLike
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.sample import Message, Sample, ToolCall, read_messages, read_tool_calls


class ConversationMetric(JudgedMetric):
    """A metric that shows a conversation to a judge.

    Takes ``messages``: an input of ``score()``, or in the ``metadata`` of a sample. See
    :func:`~pytest_ragmetrics.sample.read_messages` for the forms.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    extra_inputs: ClassVar[tuple[str, ...]] = ("messages", "reference_topics")

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` when there is no conversation, ``TypeError`` for what is no message."""
        given = sample.metadata.get("messages")
        if given is None or not turns_of(read_messages(given)):
            msg = f"{self.name}: messages is {'missing' if given is None else 'blank'}; give it to score(), or in the "
            msg += "metadata of the sample"
            raise ValueError(msg)

    def foreign_texts(self, sample: Sample) -> Iterator[tuple[str, str]]:
        """Yield what was said and given to tools; the other fields are not shown."""
        for message in read_messages(sample.metadata["messages"]):
            texts = (message.text, *(_arguments(call.arguments) for call in message.tool_calls))
            if message.role != "system":
                yield from (("messages", text) for text in texts if any(map(str.isalnum, text)))

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the score of the conversation."""
        return await self.judged_turns(turns_of(read_messages(sample.metadata["messages"])), sample, ask)

    @abstractmethod
    async def judged_turns(self, turns: tuple[str, ...], sample: Sample, ask: Ask) -> MetricResult:
        """Return the score of a conversation."""


class AgentGoalAccuracy(ConversationMetric):
    """1.0 when a conversation reached its goal, else 0.0.

    Takes ``messages`` and, as the goal, ``reference``; without one the goal is what the user wanted, which the judge
    states. One request. After the agent goal accuracy of Ragas.

    >>> judge = lambda prompt: '{"goal": "Book a seat.", "reason": "It is booked.", "verdict": "reached"}'
    >>> metric = AgentGoalAccuracy(judge=judge)
    >>> messages = [{"role": "user", "content": "A seat, please."}, {"role": "assistant", "content": "Booked."}]
    >>> metric.score(messages=messages, reference="A seat is booked.").value
    1.0
    """

    name = "agent_goal_accuracy"
    aliases: ClassVar[tuple[str, ...]] = ("AgentGoalAccuracyWithReference", "AgentGoalAccuracyWithoutReference")

    async def judged_turns(self, turns: tuple[str, ...], sample: Sample, ask: Ask) -> MetricResult:
        """Return whether the goal was reached."""
        reference = None if is_blank(sample.reference or "") else sample.reference
        goal, judgement = await ask(JudgeGoal(turns=turns, goal=reference))
        verdict = Verdict(text=goal, ok=judgement.ok, reason=judgement.reason or None)
        return ask.result(float(judgement.ok), reason=judgement.reason or None, verdicts=[verdict])


class TopicAdherence(ConversationMetric):
    """How well an agent keeps to the topics it is there for.

    Takes ``messages`` and ``reference_topics``, the allowed ones. Two requests in a row: the topics that the user
    brought up, each with whether the agent dealt with it; which of them are allowed. Precision is the share of allowed
    ones among those dealt with, recall the share of those dealt with among the allowed ones; ``mode="f1"`` is their
    harmonic mean. Raises ``UnscoredError`` when there is nothing to take a share of, unless ``if_empty`` is the score
    then. After the topic adherence of Ragas.

    >>> judge = lambda prompt: (
    ...     '{"matches": [{"number": 1, "reason": "A ferry.", "allowed": 1}]}' if "<<<topics" in prompt
    ...     else '{"topics": [{"topic": "Departure", "answered": true}]}'
    ... )
    >>> messages = [{"role": "user", "content": "When does it leave?"}, {"role": "assistant", "content": "At nine."}]
    >>> TopicAdherence(judge=judge).score(messages=messages, reference_topics=["ferries"]).value
    1.0
    """

    name = "topic_adherence"
    aliases: ClassVar[tuple[str, ...]] = ("TopicAdherenceScore",)
    rounds: ClassVar[int] = 2

    def __init__(
        self,
        *,
        mode: Literal["precision", "recall", "f1"] = "f1",
        if_empty: float | None = None,
        judge: JudgeLike | None = None,
    ) -> None:
        super().__init__(judge=judge)
        self.mode = check_choice("mode", mode, ("precision", "recall", "f1"))
        self.if_empty = check_if_empty(if_empty, self.scale)

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` when there is no conversation or no topic, ``TypeError`` for what is neither."""
        super().require(sample)
        topics = sample.metadata.get("reference_topics")
        if topics is not None and not _are_texts(topics):
            msg = f"{self.name}: reference_topics must be a list of texts, not {topics!r}"
            raise TypeError(msg)
        if topics is None or is_blank(tuple(topics)):
            msg = f"{self.name}: reference_topics is {'missing' if topics is None else 'blank'}; name the allowed ones"
            raise ValueError(msg)

    async def judged_turns(self, turns: tuple[str, ...], sample: Sample, ask: Ask) -> MetricResult:
        """Return precision, recall or F1 of the topics dealt with against those allowed."""
        allowed = tuple(topic for topic in sample.metadata["reference_topics"] if not is_blank(topic))
        brought = await ask(ListTopics(turns=turns))
        if not brought:
            return ask.nothing("the user brought up no topic", if_empty=self.if_empty)
        matches = await ask(MatchTopics(topics=tuple(topic for topic, _ in brought), allowed=allowed))
        found = [(topic, answered, match) for (topic, answered), match in zip(brought, matches, strict=True)]
        right = sum(answered and match is not None for _, answered, match in found)
        strayed = sum(answered and match is None for _, answered, match in found)
        declined = sum(not answered and match is not None for _, answered, match in found)
        value = _share(self.mode, right, strayed, declined)
        if value is None:
            what = {"precision": "was dealt with", "recall": "is allowed", "f1": "was dealt with or is allowed"}
            return ask.nothing(f"no topic {what[self.mode]}", if_empty=self.if_empty)
        reason = f"{right} allowed topics dealt with, {declined} declined; {strayed} others dealt with"
        return ask.result(value, reason=reason, verdicts=[_verdict(*topic, allowed=allowed) for topic in found])


def turns_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return what was said and called, a text a message, without the instructions of the system.

    >>> turns_of(read_messages([{"role": "user", "content": "Rain?"}]))
    ('user: Rain?',)
    """
    turns = []
    for message in messages:
        calls = [f"calls {call.name}({_arguments(call.arguments)})" for call in message.tool_calls]
        said = "; ".join(filter(None, [message.text.strip(), *calls]))
        if said and message.role != "system":
            turns.append(f"{message.role}: {said}")
    return tuple(turns)


def _arguments(arguments: Any) -> str:
    return ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items()
    )


def _share(mode: str, right: int, strayed: int, declined: int) -> float | None:
    """Return precision, recall or F1; ``None`` where there is nothing to take a share of."""
    if mode == "f1":
        return f1_of_counts(right, surplus=strayed, missing=declined) if right + strayed + declined else None
    others = strayed if mode == "precision" else declined
    return right / (right + others) if right + others else None


def _verdict(topic: str, answered: bool, match: int | None, *, allowed: Sequence[str]) -> Verdict:  # noqa: FBT001 - a row
    done = "dealt with" if answered else "declined"
    what = "not allowed" if match is None else f'part of "{allowed[match]}"'
    return Verdict(text=topic, ok=answered == (match is not None), reason=f"{done}, and {what}")


def _are_texts(topics: object) -> bool:
    return isinstance(topics, (list, tuple, set, frozenset)) and all(isinstance(topic, str) for topic in topics)


#: Where the calls stand in ``metadata``, under our names and those of other tools.
_MADE = ("tool_calls", "tools_called")
_WANTED = ("reference_tool_calls", "expected_tools")


class ToolCallMetric(Metric):
    """A metric over the tool calls of a conversation and those of the reference.

    Takes ``reference_tool_calls`` and either ``messages`` (the calls of the assistant in them, in order) or
    ``tool_calls``: as inputs of ``score()``, or in the ``metadata`` of a sample. See
    :func:`~pytest_ragmetrics.sample.read_messages` for the forms. An empty list is a list; two of them score 1.0.
    """

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
            said = (
                "called, arguments not compared"
                if called
                else f"not called as number {index + 1}"
                if self.strict_order
                else "not called"
            )
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


def _calls_of(sample: Sample, *, metric: str) -> tuple[tuple[ToolCall, ...], tuple[ToolCall, ...]]:
    """Return the calls made and those wanted."""
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
    equal: dict[str, deque[int]] = {}
    for index, call in enumerate(made):
        equal.setdefault(_key(call), deque()).append(index)
    paired = [equal[key].popleft() if equal.get(key := _key(call)) else None for call in wanted]
    taken = set(paired)
    rest: dict[str, deque[int]] = {}
    for index, call in enumerate(made):
        if index not in taken:
            rest.setdefault(call.name, deque()).append(index)
    found = [
        index if index is not None else rest[call.name].popleft() if rest.get(call.name) else None
        for index, call in zip(paired, wanted, strict=True)
    ]
    return [made[index] for index in found if index is not None]


def _arguments_right(wanted: ToolCall, made: ToolCall) -> float:
    if not wanted.arguments:
        return float(not made.arguments)
    right = sum(
        name in made.arguments and _canonical(made.arguments[name]) == _canonical(value)
        for name, value in wanted.arguments.items()
    )
    return right / len(wanted.arguments)


def _complaint(wanted: ToolCall, made: ToolCall) -> str | None:
    """Return what is wrong with the arguments of a call, and which it has too many."""
    said = [
        f"{name} is {_canonical(made.arguments[name])}" if name in made.arguments else f"{name} is missing"
        for name, value in wanted.arguments.items()
        if name not in made.arguments or _canonical(made.arguments[name]) != _canonical(value)
    ]
    said += [f"{name} is not in the reference" for name in made.arguments if name not in wanted.arguments]
    return "; ".join(said) or None


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
