"""Conversations as a judge is shown them: their turns in order, with calls of tools and what these returned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pytest_ragmetrics.core.messages import Message, ToolCall
from pytest_ragmetrics.core.sample import Sample, read_spoken
from pytest_ragmetrics.metrics.base import is_blank

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


def asked(sample: Sample) -> dict[str, Any]:
    """Return the question of a sample as tasks take it: its text, and the turns before it, if any.

    >>> asked(Sample(user_input="When?"))
    {'question': 'When?', 'earlier': None}
    """
    return {"question": sample.user_input, "earlier": earlier_turns(sample)}


def earlier_turns(sample: Sample) -> tuple[str, ...] | None:
    """Return the turns before the question, one text each, and what the question has besides its text."""
    turns = conversation(sample)
    last = max((index for index, turn in enumerate(turns) if turn.role == "user"), default=0)
    beside = [Message(role=turn.role, attachments=turn.attachments) for turn in turns[last : last + 1]]
    return turns_of([*turns[:last], *beside]) or None


def turns_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return what was said and called, a text a message, without the instructions of the system.

    >>> turns_of(read_messages([{"role": "user", "content": "Rain?"}]))
    ('user: Rain?',)
    """
    turns = []
    for message in messages:
        calls = [f"calls {_shown(call)}" for call in message.tool_calls]
        text = "; ".join(filter(None, [message.text.strip(), *calls, *map(_not_shown, message.attachments)]))
        if text and message.role != "system":
            turns.append(f"{message.role}: {text}")
    return tuple(turns)


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
