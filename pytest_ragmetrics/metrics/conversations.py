"""Conversations as a judge is shown them: their turns in order, with calls of tools and what these returned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias

from pytest_ragmetrics.core.messages import Message, ToolCall
from pytest_ragmetrics.core.result import Evidence, Verdict
from pytest_ragmetrics.core.sample import Sample, Turn, read_spoken, read_turns
from pytest_ragmetrics.metrics.base import is_blank

#: Whether what earlier turns of a conversation retrieved is evidence.
History: TypeAlias = Literal["contexts", "none"]
#: Whether citations number the contexts of a turn, or those of the whole conversation so far.
Numbering: TypeAlias = Literal["turn", "conversation"]
#: Where a text of a conversation is from, in the order in which it is evidence.
Origin: TypeAlias = Literal["contexts", "user", "assistant"]
# Stands for the id of a context of an earlier turn: no citation is that.
_NO_ID = "\0"
#: Who speaks where a sample is one question and its answer at most.
_PLAIN: tuple[list[str], ...] = ([], ["user"], ["assistant"], ["user", "assistant"])


def conversation(sample: Sample) -> tuple[Message, ...]:
    """Return what was said and called, in order: the messages of a sample, its question and its response.

    See :func:`~pytest_ragmetrics.core.sample.read_spoken`; what shows nothing is left out.

    >>> history = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada."}]
    >>> sample = Sample(user_input="When?", response="In May.", metadata={"messages": history})
    >>> [turn.text for turn in conversation(sample)]
    ['Who?', 'Ada.', 'When?', 'In May.']
    """
    spoken = (said.message for said in read_spoken(sample))
    return tuple(turn for turn in spoken if turn.tool_calls or turn.attachments or not is_blank(turn.text))


class Earlier(NamedTuple):
    """A text of a conversation that is older than an answer: a context by its place in the turn, or what was said."""

    origin: Origin
    turn: int
    place: int
    text: str


def earlier_texts(sample: Sample, history: History = "contexts") -> tuple[Earlier, ...]:
    """Return what a conversation has before an answer: contexts of earlier turns, then what the user and it said.

    Nothing for a sample that is no conversation, and where ``history`` is "none".

    >>> talk = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No.", "contexts": ["Dry."]}]
    >>> [(it.origin, it.turn, it.text) for it in earlier_texts(Sample(user_input="Sure?", metadata={"messages": talk}))]
    [('contexts', 1, 'Dry.'), ('user', 1, 'Rain?'), ('user', 2, 'Sure?'), ('assistant', 1, 'No.')]
    """
    if history == "none" or sample.metadata.get("messages") is None:
        return ()
    try:
        turns = read_turns(sample)
    except (TypeError, ValueError):
        return ()  # A metric that needs the messages says what is wrong.
    own = set(sample.retrieved_contexts or ())
    texts = [it for it in _earlier_contexts(sample, turns) if it.text not in own and not is_blank(it.text)]
    spoken = [(turn.number, said.message) for turn in turns for said in turn.said]
    of_answer = [n for n, (turn, it) in enumerate(spoken) if turn == len(turns) and it.role == "assistant"]
    last = max(of_answer, default=-1)
    said = [(role, n, it.text) for index, (n, it) in enumerate(spoken) if index != last for role in [it.role]]
    for origin in ("user", "assistant"):
        texts += [Earlier(origin, turn, 0, text) for role, turn, text in said if role == origin and not is_blank(text)]
    return tuple(texts)


def _earlier_contexts(sample: Sample, turns: Sequence[Turn]) -> list[Earlier]:
    """Return the contexts of earlier turns in order, each once, at its place in its turn."""
    lists = {turn.number: turn.contexts() or () for turn in turns[:-1]}
    given = sample.metadata.get("earlier_contexts")
    if given is None:
        found = [(number, text) for number, contexts in lists.items() for text in contexts]
        first = {text: number for number, text in reversed(found)}
        given = dict.fromkeys((first[text], text) for _, text in found)
    counts = Counter[int]()
    texts = []
    for turn, text in sorted(given, key=itemgetter(0)):
        on_messages = lists.get(turn, ())
        place = on_messages.index(text) if text in on_messages else counts[turn]
        texts.append(Earlier("contexts", turn, place, text))
        counts[turn] += 1
    return texts


def looked_back_for(numbering: Numbering) -> tuple[str, ...]:
    """Return the fields that a turn may lack for metrics of citations, as they may cite earlier contexts."""
    return ("retrieved_contexts",) if numbering == "conversation" else ()


def numbered_contexts(sample: Sample, numbering: Numbering) -> tuple[tuple[Evidence, ...], tuple[str | int, ...]]:
    """Return the contexts in the order in which citations number them from 1, each at its place, and their ids.

    In a conversation those of earlier turns come first, and one that is retrieved again keeps its number; the ids are
    those of the turn.

    >>> talk = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No.", "contexts": ["Dry."]}]
    >>> sample = Sample(user_input="Snow?", retrieved_contexts=["Cold.", "Dry."], metadata={"messages": talk})
    >>> [(it.text, it.turn, it.context) for it in numbered_contexts(sample, "conversation")[0]]
    [('Dry.', None, 1), ('Cold.', None, 0)]
    """
    contexts = sample.retrieved_contexts or ()
    own = [Evidence(context=n, start=0, end=len(text), text=text) for n, text in enumerate(contexts)]
    ids = tuple(sample.retrieved_context_ids or ())
    if numbering == "turn" or sample.metadata.get("messages") is None:
        return tuple(own), ids
    placed = {
        it.text: Evidence(context=it.place, start=0, end=len(it.text), text=it.text, turn=it.turn)
        for it in _earlier_contexts(sample, read_turns(sample))
    }
    again = {it.text: it for it in reversed(own) if it.text in placed}
    numbered = (*(placed | again).values(), *(it for it in own if it.text not in placed))
    known = {it: ids[it.context] for it in own if it.context < len(ids)}
    return numbered, tuple(known.get(it, _NO_ID) for it in numbered)


def seen_earlier(verdict: Verdict, texts: Sequence[Earlier], evidence: Sequence[Evidence]) -> Verdict:
    """Return what a verdict is where the conversation has its text before the answer, and not the answer's contexts.

    ``evidence`` are pieces of ``texts`` of one origin. The contexts of an earlier turn bear it out; what the user said
    is not counted; an answer is no evidence.
    """
    source = texts[evidence[0].context]
    if source.origin == "contexts":
        sources = [(piece, texts[piece.context]) for piece in evidence]
        placed = tuple(replace(piece, context=source.place, turn=source.turn) for piece, source in sources)
        reason = f"found earlier, in turn {source.turn}"
        return replace(verdict, ok=True, kind="found earlier", reason=reason, evidence=placed, nearest=None)
    if source.origin == "user":
        reason = f"told by the user in turn {source.turn}"
        return replace(verdict, ok=True, kind="told by the user", reason=reason, nearest=None)
    reason = f"repeated from turn {source.turn}, where no passage has it"
    return replace(verdict, kind="repeated", reason=reason, nearest=None)


def asked(sample: Sample) -> dict[str, Any]:
    """Return the question of a sample as tasks take it: its text, and the turns before it, if any.

    >>> asked(Sample(user_input="When?"))
    {'question': 'When?', 'earlier': None}
    """
    return {"question": sample.user_input, "earlier": earlier_turns(sample)}


def asked_after(sample: Sample) -> dict[str, Any]:
    """Return the same for tasks that show no question unless there are turns before it: they say what a response means.

    >>> asked_after(Sample(user_input="When?"))
    {}
    """
    found = asked(sample)
    return {} if found["earlier"] is None else found


def earlier_turns(sample: Sample) -> tuple[str, ...] | None:
    """Return the turns before the question, one text each, and what the question has besides its text."""
    turns = conversation(sample)
    last = max((index for index, turn in enumerate(turns) if turn.role == "user"), default=0)
    beside = [Message(role=turn.role, attachments=turn.attachments) for turn in turns[last : last + 1]]
    return turns_of([*turns[:last], *beside]) or None


def turns_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return what was said and called, a text a message, without the instructions of the system.

    >>> turns_of([Message(role="user", text="Rain?")])
    ('user: Rain?',)
    """
    turns = []
    for message in messages:
        text = "; ".join(filter(None, [message.text.strip(), *beside_text(message)]))
        if text and message.role != "system":
            turns.append(f"{message.role}: {text}")
    return tuple(turns)


def beside_text(message: Message) -> list[str]:
    """Return what a message calls, and what it attaches.

    >>> beside_text(Message(role="assistant", tool_calls=(ToolCall(name="look", arguments={"at": 1}),)))
    ['calls look(at=1)']
    """
    return [*(f"calls {_shown(call)}" for call in message.tool_calls), *map(_not_shown, message.attachments)]


def numbered_turns(sample: Sample) -> tuple[tuple[str, str], ...]:
    """Return the parts of a conversation as ``(name, text)``; empty for one question and its answer at most.

    >>> talk = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "tool_calls": [{"name": "look"}]}]
    >>> numbered_turns(Sample(metadata={"messages": talk}))
    (('turn 1 user', 'Rain?'), ('turn 2 assistant calls', 'look()'))
    """
    turns = conversation(sample)
    if [turn.role for turn in turns] in _PLAIN and not any(turn.tool_calls or turn.attachments for turn in turns):
        return ()
    parts = []
    for number, turn in enumerate(turns, start=1):
        name = f"turn {number} {turn.role}"
        parts += [(name, turn.text)] if turn.text.strip() else []
        parts += [(f"{name} calls", _shown(call)) for call in turn.tool_calls]
        parts += [(f"{name} attaches", _not_shown(kind)) for kind in turn.attachments]
    return tuple(parts)


def untrusted_turns(messages: Iterable[Message]) -> Iterator[str]:
    """Yield what was said and given to tools, without the instructions of the system, which are ours."""
    for message in messages:
        if message.role != "system":
            texts = (message.text, *(_arguments(call) for call in message.tool_calls))
            yield from (text for text in texts if any(map(str.isalnum, text)))


def _not_shown(kind: str) -> str:
    return f"({kind}, not shown)"


def _shown(call: ToolCall) -> str:
    return f"{call.name}({_arguments(call)})"


def _arguments(call: ToolCall) -> str:
    return ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in call.arguments.items()
    )
