"""Metrics of conversations with an agent, by a judge: the goal reached, and the topics kept to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from pytest_ragmetrics.core.messages import Message, read_messages
from pytest_ragmetrics.core.result import MetricResult, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges.tasks import JudgeGoal, ListTopics, MatchTopics
from pytest_ragmetrics.metrics.asserting import MAJORITY, asserting
from pytest_ragmetrics.metrics.base import f_of_counts, is_blank
from pytest_ragmetrics.metrics.claims import Mode
from pytest_ragmetrics.metrics.conversations import conversation, turns_of, untrusted_turns
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import choice, declared, share


class ConversationMetric(JudgedMetric):
    """A metric that shows a conversation to a judge.

    Takes ``messages``: an input of ``score()``, or in the ``metadata`` of a sample. See
    :func:`~pytest_ragmetrics.core.messages.read_messages` for the forms.
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

    def untrusted_texts(self, sample: Sample) -> Iterator[tuple[str, str]]:
        """Yield what was said and given to tools; the other fields are not shown."""
        yield from (("messages", text) for text in untrusted_turns(_spoken(sample)))

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the score of the conversation."""
        return await self.judged_turns(turns_of(_spoken(sample)), sample, ask)

    @abstractmethod
    async def judged_turns(self, turns: tuple[str, ...], sample: Sample, ask: Ask) -> MetricResult:
        """Return the score of a conversation."""


class AgentGoalAccuracy(ConversationMetric):
    """1.0 if a conversation reached its goal, else 0.0.

    Use it when an agent should get something done, and may stop short of it. ``reference`` is the goal; without one the
    judge states what the user wanted. After Ragas.

    >>> judge = lambda prompt: '{"goal": "Book a seat.", "reason": "It is booked.", "verdict": "reached"}'
    >>> metric = AgentGoalAccuracy(judge=judge)
    >>> messages = [{"role": "user", "content": "A seat, please."}, {"role": "assistant", "content": "Booked."}]
    >>> metric.score(messages=messages, reference="A seat is booked.").value
    1.0
    """

    name = "agent_goal_accuracy"
    blind_spots = "How the goal was reached: detours, superfluous calls of tools, cost."
    noun = "goal"
    complaint = "missed"
    helper = "assert_goal_reached"
    aliases = ("AgentGoalAccuracyWithReference", "AgentGoalAccuracyWithoutReference", "GoalReached", "goal_reached")

    async def judged_turns(self, turns: tuple[str, ...], sample: Sample, ask: Ask) -> MetricResult:
        """Return whether the goal was reached."""
        reference = None if is_blank(sample.reference or "") else sample.reference
        goal, judgement = await ask(JudgeGoal(turns=turns, goal=reference))
        verdict = Verdict(text=goal, ok=judgement.ok, reason=judgement.reason or None)
        return ask.result(float(judgement.ok), reason=judgement.reason or None, verdicts=[verdict])


#: What it is called where nobody is an agent.
GoalReached = AgentGoalAccuracy
assert_goal_reached = asserting(AgentGoalAccuracy, takes=("messages",), optional=("reference",), min=0.5, note=MAJORITY)


@declared
class TopicAdherence(ConversationMetric):
    """How well an agent keeps to the topics it is there for.

    Use it when an agent answers questions that are none of its business. ``reference_topics`` are the allowed ones. The
    judge lists the user's topics, whether the agent dealt with each, and which are allowed. Precision is the share of
    allowed ones among those dealt with, recall the share of those dealt with among the allowed; ``mode="f1"`` is their
    harmonic mean. After Ragas.

    >>> judge = lambda prompt: (
    ...     '{"matches": [{"number": 1, "reason": "A ferry.", "allowed": 1}]}' if "<<<topics" in prompt
    ...     else '{"topics": [{"topic": "Departure", "answered": true}]}'
    ... )
    >>> messages = [{"role": "user", "content": "When does it leave?"}, {"role": "assistant", "content": "At nine."}]
    >>> TopicAdherence(judge=judge).score(messages=messages, reference_topics=["ferries"]).value
    1.0
    """

    name = "topic_adherence"
    blind_spots = "Whether what the agent says on its topics is right."
    noun = "topic"
    complaint = "wrongly dealt with or declined"
    helper = "assert_topics_kept"
    aliases = ("TopicAdherenceScore",)
    rounds = 2

    mode: Mode = choice("f1", Mode)
    if_empty: float | None = share(None)

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` when there is no conversation or no topic, ``TypeError`` for what is neither."""
        super().require(sample)
        topics = sample.metadata.get("reference_topics")
        is_list = isinstance(topics, (list, tuple, set, frozenset))
        if topics is not None and not (is_list and all(isinstance(topic, str) for topic in topics)):
            raise TypeError(f"{self.name}: reference_topics must be a list of texts, not {topics!r}")
        if topics is None or is_blank(tuple(topics)):
            msg = f"{self.name}: reference_topics is {'missing' if topics is None else 'blank'}; name the allowed ones"
            raise ValueError(msg)

    async def judged_turns(self, turns: tuple[str, ...], sample: Sample, ask: Ask) -> MetricResult:
        """Return precision, recall or F1 of the topics dealt with against those allowed."""
        allowed = tuple(topic for topic in sample.metadata["reference_topics"] if not is_blank(topic))
        brought = await ask(ListTopics(turns=turns))
        if not brought:
            return ask.nothing("the user brought up no topic")
        matches = await ask(MatchTopics(topics=tuple(topic for topic, _ in brought), allowed=allowed))
        found = [(topic, answered, match) for (topic, answered), match in zip(brought, matches, strict=True)]
        right = sum(answered and match is not None for _, answered, match in found)
        strayed = sum(answered and match is None for _, answered, match in found)
        declined = sum(not answered and match is not None for _, answered, match in found)
        value = _share(self.mode, right, strayed, declined)
        if value is None:
            what = {"precision": "was dealt with", "recall": "is allowed", "f1": "was dealt with or is allowed"}
            return ask.nothing(f"no topic {what[self.mode]}")
        reason = f"{right} allowed topics dealt with, {declined} declined; {strayed} others dealt with"
        verdicts = []
        for topic, answered, match in found:
            place = "not allowed" if match is None else f'part of "{allowed[match]}"'
            done = f"{'dealt with' if answered else 'declined'}, and {place}"
            verdicts.append(Verdict(text=topic, ok=answered == (match is not None), reason=done))
        return ask.result(value, reason=reason, verdicts=verdicts)


assert_topics_kept = asserting(TopicAdherence, takes=("messages", "topics"), min=0.8)


def _spoken(sample: Sample) -> tuple[Message, ...]:
    """Return the messages, and the response that is given beside them where they do not end in an answer."""
    messages = read_messages(sample.metadata["messages"])
    ends_in_answer = messages[-1].role == "assistant" and not is_blank(messages[-1].text)
    return messages if ends_in_answer else conversation(sample)


def _share(mode: str, right: int, strayed: int, declined: int) -> float | None:
    if mode == "f1":
        return f_of_counts(right, surplus=strayed, missing=declined) if right + strayed + declined else None
    others = strayed if mode == "precision" else declined
    return right / (right + others) if right + others else None
