"""Metrics of conversations as a whole, by a judge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from pytest_ragmetrics.core.messages import read_messages
from pytest_ragmetrics.core.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.core.sample import Sample, Turn, read_turns
from pytest_ragmetrics.judges.tasks import Judgement, Task
from pytest_ragmetrics.judges.tasks.conversations import (
    AnswersTask,
    JudgeKept,
    JudgeRole,
    JudgeTurns,
    JudgeWishes,
    ListTold,
    ListWishes,
    Sentence,
    Told,
)
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.base import is_blank
from pytest_ragmetrics.metrics.conversations import beside_text, conversation, untrusted_turns
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric, together
from pytest_ragmetrics.metrics.parameters import choice, declared, parameter
from pytest_ragmetrics.runs.wording.figures import quoted
from pytest_ragmetrics.text.sentences import split_sentences
from pytest_ragmetrics.text.unicode import check_text

# A request shows so many answered exchanges at most, and so many before them.
_WINDOW, _BEFORE = 20, 4


class Window(NamedTuple):
    """The exchanges of a conversation that one request is about, by their sentences, and some before them.

    ``answers`` are the numbers of the turns that the assistant answers.
    """

    conversation: tuple[Sentence, ...]
    earlier: tuple[Sentence, ...]
    answers: tuple[int, ...]


class DialogueMetric(JudgedMetric):
    """A metric that shows a conversation to a judge, sentence by sentence.

    Takes ``messages``: an input of ``score()``, or in the ``metadata`` of a sample, whose question and response come
    after them. See :func:`~pytest_ragmetrics.core.messages.read_messages` for the forms. More than 20 exchanges are
    shown in several requests.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    extra_inputs: ClassVar[tuple[str, ...]] = ("messages",)
    of_conversation = True
    if_empty: float | None = 1.0

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` when nothing is answered in a conversation, ``TypeError`` for what is no message."""
        if sample.metadata.get("messages") is None:
            raise ValueError(f"{self.name}: messages is missing; give it to score(), or in the metadata of the sample")
        if not any(map(_is_answered, read_turns(sample))):
            raise ValueError(f"{self.name}: the assistant says nothing in the messages; it needs an answer")

    def untrusted_texts(self, sample: Sample) -> Iterator[tuple[str, str]]:
        """Yield what was said and given to tools; the other fields are not shown."""
        yield from (("messages", text) for text in untrusted_turns(conversation(sample)))

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the score of the conversation."""
        return await self.judged_windows(windows_of(sample), sample, ask)

    @abstractmethod
    async def judged_windows(self, windows: Sequence[Window], sample: Sample, ask: Ask) -> MetricResult:
        """Return the score of a conversation."""


class KnowledgeRetention(DialogueMetric):
    """The share of the user's facts that later answers respect.

    Use it when a chat asks again for what the user has already said, or contradicts it. The judge lists the facts, and
    which of them an answer asks for again or contradicts. A fact holds until the user corrects it. Vacuous without
    facts, or without an answer after them. After DeepEval.

    >>> told = '{"facts": [{"turn": 1, "fact": "The user eats no meat.", "replaces": 0}]}'
    >>> kept = '{"facts": [{"number": 1, "reason": "It is meat.", "sentences": [2], "verdict": "contradicted"}]}'
    >>> metric = KnowledgeRetention(judge=lambda prompt: kept if "<<<facts" in prompt else told)
    >>> talk = [{"role": "user", "content": "I eat no meat."}, {"role": "assistant", "content": "Try the ham!"}]
    >>> metric.score(messages=talk).verdicts[0].reason
    'contradicted, turn 1: "Try the ham!" It is meat.'
    """

    name = "knowledge_retention"
    aliases = ("KnowledgeRetentionMetric",)
    blind_spots = "Facts that the application looked up, and what the user implied."
    noun = "fact"
    complaint = "not kept"
    helper = "assert_knowledge_retained"
    rounds = 2

    async def judged_windows(self, windows: Sequence[Window], sample: Sample, ask: Ask) -> MetricResult:  # noqa: ARG002 - as its base
        """Return the share of facts that are kept."""
        answers = [turn for window in windows for turn in window.answers]
        told = await listed(ListTold, windows, ask)
        facts = [fact for fact in told if any(fact.turn <= turn <= (fact.until or turn) for turn in answers)]
        if not facts:
            return ask.nothing("the user tells nothing that a later answer has to respect")

        def task(window: Window, left: tuple[Told, ...]) -> JudgeKept:
            return JudgeKept(facts=left, conversation=window.conversation, earlier=window.earlier)

        found = await followed(task, facts, windows, ask, wanting=("kept",))
        verdicts = [verdict_on(fact, judgement, window) for fact, (judgement, window) in found.items()]
        return ask.share(verdicts, "facts kept")


assert_knowledge_retained = asserting(KnowledgeRetention, takes=("messages",), min=0.8)

#: Whether a wish that the assistant declines counts as one that is not met.
Declined: TypeAlias = Literal["count", "skip"]


@declared
class ConversationCompleteness(DialogueMetric):
    """The share of the user's wishes that a conversation meets.

    Use it when chats end before the user has what they came for. The judge lists what the user wants to know or have
    done, and whether an answer, or a call of a tool, meets it; ``reference`` is the intended outcome. A withdrawn wish
    is not counted, with ``declined="skip"`` neither is one that the assistant says it cannot or may not meet. Vacuous
    without wishes. After DeepEval.

    >>> wishes = '{"wishes": [{"turn": 1, "wish": "Opening hours"}]}'
    >>> became = '{"wishes": [{"number": 1, "reason": "They are given.", "sentences": [2], "verdict": "met"}]}'
    >>> metric = ConversationCompleteness(judge=lambda prompt: became if "<<<wishes" in prompt else wishes)
    >>> talk = [{"role": "user", "content": "When are you open?"}, {"role": "assistant", "content": "From nine on."}]
    >>> metric.score(messages=talk).reason
    '1 of 1 wishes met'
    """

    name = "conversation_completeness"
    aliases = ("ConversationCompletenessMetric",)
    blind_spots = "Whether what the answers say is right."
    noun = "wish|wishes"
    complaint = "not met"
    helper = "assert_conversation_complete"
    rounds = 2

    declined: Declined = choice("count", Declined)

    async def judged_windows(self, windows: Sequence[Window], sample: Sample, ask: Ask) -> MetricResult:
        """Return the share of wishes that are met."""
        wishes = await listed(ListWishes, windows, ask)
        if not wishes:
            return ask.nothing("the user wants nothing to be known or done")
        reference = None if is_blank(sample.reference or "") else sample.reference

        def task(window: Window, left: tuple[Told, ...]) -> JudgeWishes:
            shown = window.conversation
            return JudgeWishes(wishes=left, conversation=shown, earlier=window.earlier, reference=reference)

        found = await followed(task, wishes, windows, ask, wanting=("unmet", "declined"))
        verdicts = []
        for wish, (judgement, window) in found.items():
            verdict = verdict_on(wish, judgement, window)
            if judgement.word == "withdrawn":
                verdict = replace(verdict, ok=True, kind="withdrawn")
            if judgement.word == "declined" and self.declined == "skip":
                verdict = replace(verdict, ok=True, kind="declined")
            verdicts.append(verdict)
        return ask.share(verdicts, "wishes met")


assert_conversation_complete = asserting(
    ConversationCompleteness, takes=("messages",), optional=("reference",), min=0.8
)


async def listed(task: Callable[..., Task[tuple[Told, ...]]], windows: Sequence[Window], ask: Ask) -> tuple[Told, ...]:
    """Return what the user says or wants in a conversation, each window with what is known from those before it."""
    known: tuple[Told, ...] = ()
    for window in windows:
        said, before = map(_of_user, (window.conversation, window.earlier))
        if said:
            known = await ask(task(conversation=said, earlier=before, known=known))
    return known


async def followed(
    task: Callable[[Window, tuple[Told, ...]], Task[tuple[Judgement, ...]]],
    told: Sequence[Told],
    windows: Sequence[Window],
    ask: Ask,
    *,
    wanting: Sequence[str],
) -> dict[Told, tuple[Judgement, Window]]:
    """Return what becomes of each thing told, with the window that shows it.

    Later windows are asked about those whose verdict is one of ``wanting``, and the first of these changes none.
    """
    found: dict[Told, tuple[Judgement, Window]] = {}
    for window in windows:
        first, last = window.conversation[0].turn, window.conversation[-1].turn
        here = [it for it in dict.fromkeys(told) if it.turn <= last and (it.until or last) >= first]
        left = tuple(it for it in here if it not in found or found[it][0].word in wanting)
        if left:
            judgements = await ask(task(window, left))
            for it, judgement in zip(left, judgements, strict=True):
                if it not in found or judgement.word != wanting[0]:
                    found[it] = judgement, window
    return found


def verdict_on(told: Told, judgement: Judgement, window: Window) -> Verdict:
    """Return the verdict on what the user told, whose reason names the first sentence that shows it, with its turn."""
    sentences = [window.conversation[number] for number in judgement.sentences]
    shown = [f"{judgement.word}, turn {it.turn}: {quoted(it.text)}" for it in sentences[:1]]
    return Verdict(
        text=told.text,
        ok=judgement.ok,
        reason=" ".join(filter(None, [*shown, judgement.reason])) or None,
        evidence=tuple(map(evidence_of, sentences)),
        turn=told.turn,
    )


class TurnRelevancy(DialogueMetric):
    """The share of the answers of a conversation that take up what the user says there.

    Use it when a chat talks past the user. An answer *answers*, rightly or wrongly, or *asks back* for what it needs;
    the others *evade* or *miss* it. *Small talk* is not counted, nor are messages before the user's first. One request
    covers 20 exchanges. After DeepEval.

    >>> judge = lambda prompt: '{"turns": [{"turn": 1, "reason": "It names cars.", "verdict": "misses"}]}'
    >>> messages = [{"role": "user", "content": "When does it leave?"}, {"role": "assistant", "content": "By car."}]
    >>> TurnRelevancy(judge=judge).score(messages=messages).value
    0.0
    """

    name = "turn_relevancy"
    blind_spots = "Whether an answer is right or complete; one that explains why it may not answer counts as an answer."
    noun = "answer"
    complaint = "beside the point"
    helper = "assert_turns_relevant"
    aliases = ("TurnRelevancyMetric", "ConversationRelevancyMetric", "ConversationRelevancy")

    async def judged_windows(self, windows: Sequence[Window], sample: Sample, ask: Ask) -> MetricResult:
        """Return the share of answers that answer or ask back among those that are no small talk."""
        answers = _answers_of(sample)
        asked = [(it, [n for n in it.answers if answers[n].question is not None]) for it in windows]
        tasks = [JudgeTurns(conversation=it.conversation, earlier=it.earlier, answers=(*of,)) for it, of in asked if of]
        found = await _judgements(tasks, ask)
        verdicts = []
        for number, turn in answers.items():
            judgement = found[number][0] if number in found else _OPENING
            verdict = Verdict(
                text=_answer_of(turn),
                ok=judgement.ok,
                reason=": ".join(filter(None, [judgement.word, judgement.reason])),
                kind="small talk" if judgement.word == "small talk" else None,
                turn=number,
            )
            verdicts.append(verdict)
        return ask.share(verdicts, "answers to the point")


assert_turns_relevant = asserting(TurnRelevancy, takes=("messages",), min=0.8)


def _given_role(role: object) -> object:
    if role is not None:
        check_text("role", role)
    if role is not None and is_blank(role):
        raise ValueError("role is blank; say who the assistant is, what it does and what it leaves alone")
    return role


@declared
class RoleAdherence(DialogueMetric):
    """The share of the answers of a conversation that keep to the role of the assistant.

    Use it when an assistant does what its instructions forbid, or falls out of character. The role is ``role``, else
    ``chatbot_role`` or ``role`` of the sample, else the first system message. It instructs the judge, so take none from
    users. What it does not mention is in role. One request covers 20 exchanges. After DeepEval.

    >>> judge = lambda prompt: '{"turns": [{"turn": 1, "reason": "", "sentences": [2], "verdict": "out of role"}]}'
    >>> messages = [{"role": "user", "content": "Which shares?"}, {"role": "assistant", "content": "Those of Lund."}]
    >>> RoleAdherence(role="A clerk who sells tickets and nothing else.", judge=judge).score(messages=messages).value
    0.0
    """

    name = "role_adherence"
    blind_spots = "What the role does not say; whether the answers are right and useful."
    noun = "answer"
    complaint = "out of role"
    helper = "assert_role_kept"
    aliases = ("RoleAdherenceMetric",)
    extra_inputs: ClassVar[tuple[str, ...]] = ("messages", "chatbot_role", "role")

    role: str | None = parameter(None, _given_role)

    def require(self, sample: Sample) -> None:
        """Raise as the base class, and ``ValueError`` where there is no role, ``TypeError`` if it is no text."""
        super().require(sample)
        self._role_in(sample)

    async def judged_windows(self, windows: Sequence[Window], sample: Sample, ask: Ask) -> MetricResult:
        """Return the share of answers in the role."""
        role, verdicts = self._role_in(sample), []
        tasks = [
            JudgeRole(conversation=it.conversation, earlier=it.earlier, answers=it.answers, role=role) for it in windows
        ]
        found = await _judgements([task for task in tasks if task.answers], ask)
        for number, turn in _answers_of(sample).items():
            judgement, cited = found[number]
            text = _answer_of(turn) if judgement.ok else " ".join(sentence.text for sentence in cited)
            evidence = () if judgement.ok else tuple(map(evidence_of, cited))
            reason = judgement.reason or None
            verdicts.append(Verdict(text=text, ok=judgement.ok, reason=reason, evidence=evidence, turn=number))
        return ask.share(verdicts, "answers in role")

    def _role_in(self, sample: Sample) -> str:
        named = {name: sample.metadata.get(name) for name in ("chatbot_role", "role")}
        for name, text in named.items():
            if text is not None:
                check_text(f"{self.name}: {name}", text)
        of_system = (it.text for it in read_messages(sample.metadata["messages"]) if it.role == "system")
        found = (text for text in (self.role, *named.values(), *of_system) if text and not is_blank(text))
        if (role := next(found, None)) is None:
            ways = "RoleAdherence(role=...), chatbot_role or role in the row, or a message of the system"
            raise ValueError(f"{self.name}: no role; give {ways}")
        return role


assert_role_kept = asserting(RoleAdherence, takes=("messages",), min=1.0)

#: What is said of an answer before which nobody asked.
_OPENING = Judgement(ok=True, reason="it opens the conversation", word="small talk")


def _answers_of(sample: Sample) -> dict[int, Turn]:
    """Return the turns that the assistant answers by their numbers."""
    return {turn.number: turn for turn in read_turns(sample) if _is_answered(turn)}


def _answer_of(turn: Turn) -> str:
    return turn.said[turn.answer or 0].message.text


async def _judgements(tasks: Sequence[AnswersTask], ask: Ask) -> dict[int, tuple[Judgement, list[Sentence]]]:
    """Return the judgement on each answer, with the sentences that it cites, by the number of its turn."""
    judged = zip(tasks, await together(map(ask, tasks)), strict=True)
    return {
        number: (it, [task.conversation[index] for index in it.sentences])
        for task, of_task in judged
        for number, it in zip(task.answers, of_task, strict=True)
    }


def windows_of(sample: Sample) -> tuple[Window, ...]:
    """Return the exchanges of a conversation, 20 that are answered at a time, each time with the 4 before them.

    >>> talk = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No. Sun."}]
    >>> [window.answers for window in windows_of(Sample(metadata={"messages": talk * 21}))]
    [(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20), (21,)]
    """
    turns = read_turns(sample)
    answered = [place for place, turn in enumerate(turns) if _is_answered(turn)]
    # What the user says last belongs to the last window: it alone is nothing to ask about.
    starts = [0, *(place + 1 for place in answered[_WINDOW - 1 : -1 : _WINDOW])]
    return tuple(
        Window(
            conversation=sentences_of(turns[start:end]),
            earlier=sentences_of(turns[max(start - _BEFORE, 0) : start]),
            answers=tuple(turn.number for turn in turns[start:end] if _is_answered(turn)),
        )
        for start, end in zip(starts, [*starts[1:], len(turns)], strict=True)
    )


def sentences_of(turns: Iterable[Turn]) -> tuple[Sentence, ...]:
    """Return the sentences of some turns, with calls of tools and what is attached as sentences of their own.

    >>> talk = [{"role": "user", "content": "Hi. Rain?"}, {"role": "assistant", "tool_calls": [{"name": "look"}]}]
    >>> [tuple(it) for it in sentences_of(read_turns(Sample(metadata={"messages": talk})))]
    [(1, 'user', 'Hi.', 0, 0, 3), (1, 'user', 'Rain?', 0, 4, 9), (1, 'assistant', 'calls look()', 1, 0, 0)]
    """
    found = []
    for turn in turns:
        for place, (message, *_) in enumerate(turn.said):
            text, said_by = message.text, (turn.number, message.role)
            # A text of marks alone has no sentence.
            places = split_sentences(text) or ([] if is_blank(text) else [(0, len(text))])
            found += [Sentence(*said_by, text[start:end], place, start, end) for start, end in places]
            found += [Sentence(*said_by, line, place) for line in beside_text(message)]
    return tuple(found)


def evidence_of(sentence: Sentence) -> Evidence:
    """Return a sentence of a conversation as evidence: its context is the message, by its place in the turn."""
    return Evidence(
        context=sentence.message, start=sentence.start, end=sentence.end, text=sentence.text, turn=sentence.turn
    )


def _of_user(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    return tuple(it for it in sentences if it.speaker == "user")


def _is_answered(turn: Turn) -> bool:
    return turn.answer is not None and not is_blank(turn.said[turn.answer].message.text)
