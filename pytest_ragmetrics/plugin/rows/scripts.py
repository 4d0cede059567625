"""Conversations of which an application has to give the answers: their turns, one after the other.

What the user says at the end of a row, message by message, are turns without an answer: a script.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.messages import read_messages
from pytest_ragmetrics.core.sample import FIELDS, ContextsFrom, Sample, Turns, in_turns, read_turns
from pytest_ragmetrics.datasets.rows import DatasetRow, rows_in_turns

#: Stands where an answer is to come, so that a script is read as a conversation.
_PENDING = {"role": "assistant", "content": "..."}
#: What the metadata of a turn has of its place among others.
_PLACED = ("turn", "cluster", "lacking")


class Conversation:
    """What an application has answered of a script, turn by turn, and what it raised instead of the next answer.

    One job at a time has it ``answering``; ``session`` tells apart the conversations that are held of one row.
    """

    def __init__(self) -> None:
        self.session = uuid4().hex
        self.answered: list[Sample] = []
        self.failure: BaseException | None = None
        self.answering = asyncio.Lock()


def rows_with_scripts(
    rows: Iterable[DatasetRow],
    turns: Turns,
    *,
    contexts_from: ContextsFrom = None,
    whole: bool = False,
    answers_logs: bool = True,
) -> Iterator[tuple[DatasetRow, tuple[Sample, ...]]]:
    """Yield the rows that are scored as :func:`rows_in_turns`, each with the turns that are to be answered for it.

    What the user says behind the answers of a log is a turn only where an application ``answers_logs``.

    >>> asks = [{"role": "user", "content": "Rain?"}, {"role": "user", "content": "Snow?"}]
    >>> rows = [DatasetRow(sample=Sample(id="sky", metadata={"messages": asks}), id="sky")]
    >>> [(row.id, len(script)) for row, script in rows_with_scripts(rows, "each", whole=True)]
    [('sky-t1', 1), ('sky-t2', 2), ('sky', 2)]
    """
    scripts: defaultdict[str, list[Sample]] = defaultdict(list)
    pending = (_with_pending(row, turns, answers_logs=answers_logs) for row in rows)
    for row in rows_in_turns(pending, turns, contexts_from=contexts_from, whole=whole):
        if row.sample is None or not _is_pending(row.sample):
            yield row, ()
            continue
        sample = _without_pending(row.sample)
        if turns == "last":
            of_row = row.sample.turns(contexts_from=contexts_from)
            script = [_without_pending(turn) for turn in of_row if _is_pending(turn)]
        else:
            script = scripts[sample.metadata["conversation"]]
            script += [sample] if sample.metadata["turn"] != "all" else []
        yield replace(row, sample=sample), tuple(script)


def rows_with_answers(
    rows: Iterable[tuple[DatasetRow, tuple[Sample, ...]]], answers: int
) -> Iterator[tuple[DatasetRow, tuple[Sample, ...]]]:
    """Yield the rows without a response once for each of so many answers, the others as they are.

    Each sample has the id of its row, and the number of its answer in the metadata, as the turns of its script have. A
    row has an error where it has an ``answer`` of its own there, or where another row has the id of one of its answers.

    >>> [row.id for row, _ in rows_with_answers([(DatasetRow(sample=Sample(user_input="Rain?"), id="sky"), ())], 2)]
    ['sky-answer1', 'sky-answer2']
    """
    found = [*rows]
    ids = {row.id for row, _ in found}
    for row, script in found:
        if answers == 1 or row.sample is None or row.sample.response is not None:
            yield row, script
            continue
        names = [f"{row.id}-answer{number}" for number in range(1, answers + 1)]
        taken = [name for name in names if name in ids]
        fault = f"its answers have the id {taken[0]!r} of another row: give one of the two another" if taken else ""
        if "answer" in row.sample.metadata:
            fault = "its answers are numbered as 'answer' in its metadata, which has one: give that another name"
        if fault:
            error = DatasetError(f"row {row.id}: {fault}", file=row.file, line=row.line)
            yield replace(row, sample=None, error=error), ()
            continue
        for number, name in enumerate(names, start=1):
            given = (row.sample, *script)
            sample, *turns = (replace(it, metadata={**it.metadata, "answer": number}) for it in given)
            yield replace(row, id=name, sample=sample), tuple(turns)


def _with_pending(row: DatasetRow, turns: Turns, *, answers_logs: bool) -> DatasetRow:
    """Return a row with an answer that is pending after each message of the user at the end of its conversation.

    Where the last answer alone is scored, one question has the messages as they are.
    """
    sample = row.sample
    if sample is None or sample.response is not None or sample.metadata.get("messages") is None:
        return row
    try:
        turns_of_row = read_turns(sample)
    except (TypeError, ValueError):
        return row  # Its error is that of the row.
    if not answers_logs and any(turn.answer is not None for turn in turns_of_row[:-1]):
        return row
    said = turns_of_row[-1].said if turns_of_row and turns_of_row[-1].answer is None else ()
    questions = [each for each in said if each.message.role == "user"]
    is_before = bool(questions) and questions[-1].place is None and said[-1] is not questions[-1]
    if is_before or len(questions) < (2 if turns == "last" else 1):
        return row
    items: list[Any] = []
    if questions[-1].place is None:
        items = [{"role": "user", "content": questions.pop().message.text}, _PENDING]
    given: list[Any] = [*sample.metadata["messages"]]
    starts = [each.place or 0 for each in questions]
    for start, end in zip(reversed(starts), [len(given), *reversed(starts)], strict=False):
        items = [*given[start:end], _PENDING, *items]
    metadata = {**sample.metadata, "messages": [*given[: starts[0] if starts else None], *items]}
    contexts = None if "contexts_by_answer" in metadata else sample.retrieved_contexts
    return replace(row, sample=replace(sample, user_input=None, retrieved_contexts=contexts, metadata=metadata))


def _is_pending(sample: Sample) -> bool:
    return any(item is _PENDING for item in sample.metadata.get("messages") or ())


def _without_pending(sample: Sample) -> Sample:
    """Return a sample as it is before its answer; a log may end in what the user says: no answer is no error there."""
    messages = [item for item in sample.metadata["messages"] if item is not _PENDING]
    metadata = {**sample.metadata, "messages": messages}
    if "lacking" in metadata and any(message.role == "assistant" for message in read_messages(messages)):
        metadata["lacking"] = [*metadata["lacking"], "response"]
    return replace(sample, response=None, metadata=metadata)


def next_turn(script: Sequence[Sample], answered: Sequence[Sample]) -> Sample:
    """Return the first turn of a script without an answer: it has those before it, and what these retrieved."""
    turn = script[len(answered)]
    if not answered:
        return turn
    said = script[len(answered) - 1].metadata["messages"]
    earlier = {text: number for number, text in turn.metadata["earlier_contexts"]}
    for each in answered:
        for text in each.retrieved_contexts or ():
            earlier.setdefault(text, each.metadata["turn"])
    there = {name for each in answered for name in FIELDS if getattr(each, name) is not None}
    placed = {
        "messages": [*answered[-1].metadata["messages"], *turn.metadata["messages"][len(said) :]],
        "earlier_contexts": tuple((number, text) for text, number in earlier.items()),
        "lacking": [name for name in FIELDS if name in {*turn.metadata["lacking"], *there} and _lacks(turn, name)],
    }
    return replace(turn, metadata={**turn.metadata, **placed})


def answered_turn(turn: Sample, sample: Sample, contexts_from: ContextsFrom = None) -> Sample:
    """Return the sample of a turn that an application has answered, with the answer as the last of its messages.

    The application may have returned messages: those of the whole conversation, or of this turn. Raises as
    :func:`read_messages`.
    """
    before, messages = turn.metadata["messages"], [*sample.metadata["messages"]]
    spoken = read_messages(messages)
    asked = sum(message.role == "user" for message in spoken)
    if asked < sum(message.role == "user" for message in read_messages(before)):
        messages = [*(before[:-1] if asked else before), *messages]
    if not spoken or (spoken[-1].role, spoken[-1].text.strip()) != ("assistant", (sample.response or "").strip()):
        messages.append({"role": "assistant", "content": sample.response})
    lacking = [name for name in turn.metadata["lacking"] if _lacks(sample, name)]
    metadata = {name: it for name, it in sample.metadata.items() if name != "session" or name in turn.metadata}
    metadata |= {"messages": messages, "lacking": lacking}
    return in_turns(replace(sample, metadata=metadata), "last", contexts_from=contexts_from)[0]


def with_turns(sample: Sample, answered: Sequence[Sample]) -> Sample:
    """Return a sample with the answers of its script: the last turn of it, or a whole, which has the last answer."""
    last, own = answered[-1], sample.metadata
    if sample.id == last.id:
        return last
    metadata = {name: value for name, value in last.metadata.items() if name not in _PLACED}
    metadata |= {name: own[name] for name in _PLACED if name in own}
    return replace(last, id=sample.id, reference=sample.reference or last.reference, metadata=metadata)


def with_stand_ins(sample: Sample, script: Sequence[Sample]) -> Sample:
    """Return what a dry run scores: a sample, or the turns of its script, with what an application would give."""
    from pytest_ragmetrics.evaluation.dry_run import with_stand_in

    answered: list[Sample] = []
    for _ in script:
        turn = next_turn(script, answered)
        answered.append(answered_turn(turn, with_stand_in(turn)))
    return with_turns(sample, answered) if answered else with_stand_in(sample)


def _lacks(sample: Sample, name: str) -> bool:
    return getattr(sample, name) is None
