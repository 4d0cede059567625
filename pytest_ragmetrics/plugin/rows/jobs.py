"""The row of one test as a job, and the application that answers it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import pytest

from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.core.sample import MEASURED, ContextsFrom, Sample, answer_of, written_for
from pytest_ragmetrics.datasets.interop import sample_from
from pytest_ragmetrics.datasets.rows import DatasetRow
from pytest_ragmetrics.evaluation.runner import Job
from pytest_ragmetrics.plugin.rows.scripts import Conversation, answered_turn, next_turn, with_turns
from pytest_ragmetrics.plugin.rows.timed import Timed

Answer: TypeAlias = "Sample | Mapping[str, Any] | str"
#: What the fixture ``rag_respond`` returns; what is yielded are texts and fields of one answer.
Respond: TypeAlias = "Callable[[Sample], Answer | Awaitable[Answer] | Iterator[Answer] | AsyncIterator[Answer]]"
#: The sample with its response, or as it was and what was raised instead.
Asked: TypeAlias = "tuple[Sample, BaseException | None]"
#: What an application returns, in an error.
_RETURN = '{"response": ..., "retrieved_contexts": [...]}'


# mypy takes no attribute of a value as a base.
class SparedError(pytest.skip.Exception):  # type: ignore[name-defined, misc]
    """A row is not needed any more; says why, and skips its test."""


class Application:
    """A ``rag_respond`` and the rows that it is answering.

    ``concurrency`` bounds them where it is asynchronous; one that is not is called in ``threads``, ``width`` at a time.
    """

    def __init__(self, respond: Respond, *, threads: ThreadPoolExecutor, width: int, concurrency: int) -> None:
        self.respond = respond
        #: By what is answered, the id of the conversation or of the test; one conversation takes the room of one row.
        self.answering: dict[asyncio.Future[Asked], str] = {}
        #: The conversations that it has begun to answer.
        self.held: set[str] = set()
        self._threads = threads
        self._width = concurrency if _is_async(respond) else width

    @property
    def has_room(self) -> bool:
        """Whether one more row may be answered now."""
        return len({*self.answering.values()}) < self._width

    def is_free(self, job: RowJob) -> bool:
        """Whether no other turn of its conversation is being answered."""
        return not job.script or job.talk not in self.answering.values()

    def ask(self, job: RowJob, held: Conversation) -> asyncio.Future[Asked]:
        """Begin to answer a row; of a conversation that is ``held`` the turns up to it that have no answer yet."""
        asked = asyncio.ensure_future(self._asked_in_turn(job, held) if job.script else self._asked(job.sample))
        self.answering[asked] = job.talk
        self.held.update([job.talk] if job.script else ())
        asked.add_done_callback(self.answering.pop)
        return asked

    async def _asked_in_turn(self, job: RowJob, held: Conversation) -> Asked:
        script = job.script
        async with held.answering:
            while len(held.answered) < len(script) and held.failure is None:
                turn = next_turn(script, held.answered)
                placed = replace(turn, metadata={"session": held.session, **turn.metadata})
                sample, held.failure = await self._asked(placed)
                if held.failure is None:
                    try:
                        held.answered.append(answered_turn(turn, sample, job.contexts_from))
                    except (TypeError, ValueError) as error:
                        held.failure = UnscoredError(f"rag_respond returned messages that cannot be read: {error}")
        missing = len(script) - len(held.answered)
        if missing <= 0:
            return with_turns(job.sample, held.answered[: len(script)]), None
        if missing == 1 or isinstance(held.failure, pytest.skip.Exception):
            return job.sample, held.failure
        number = script[len(held.answered)].metadata["turn"]
        return job.sample, UnscoredError(f"turn {number} was not answered")

    async def _asked(self, sample: Sample) -> Asked:
        """Return the answer or what was raised: SystemExit in a task would end the loop instead of failing the test."""
        try:
            timed = Timed()
            if _is_async(self.respond):
                answer = self.respond(sample)
            else:
                run = asyncio.get_running_loop().run_in_executor
                answer, error = await run(self._threads, copy_context().run, _called, self.respond, sample, timed)
                if error is not None:
                    return sample, error
            if inspect.isawaitable(answer):
                answer = await answer
                timed.end()
            if isinstance(answer, AsyncIterator):
                async for piece in answer:
                    timed.take(piece)
                timed.end()
                answer = timed.answer
            return with_answer(sample, answer, timed.took), None
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - a skip among them; it is raised in the row's own test
            return sample, error


def with_answer(sample: Sample, answer: Any, took: Mapping[str, float] = MappingProxyType({})) -> Sample:
    """Return a sample with what an application answered: a text, a row of fields, or a sample.

    What the answer leaves out stays as it is in the row. Figures that it has itself come before those that it ``took``
    as measured. Raises ``UnscoredError`` for anything else, and for an answer without a response.

    >>> with_answer(Sample(user_input="How long?", id="q1"), {"answer": "Two minutes.", "contexts": ["It takes two."]})
    ... # doctest: +NORMALIZE_WHITESPACE
    Sample(user_input='How long?', response='Two minutes.', retrieved_contexts=('It takes two.',), reference=None,
           reference_contexts=None, retrieved_context_ids=None, reference_context_ids=None, id='q1', metadata={})
    """
    try:
        given = sample_from(answer)
    except (TypeError, ValueError) as error:
        what = "None" if answer is None else f"an object of type {type(answer).__name__}"
        msg = f"rag_respond returned {what}; it must return a text, a mapping of fields or a Sample, such as {_RETURN}"
        if isinstance(answer, Mapping):
            msg = f"rag_respond returned a mapping that is no sample: {error}"
        raise UnscoredError(msg) from error
    known = {name.name: getattr(given, name.name) for name in fields(Sample) if name.name != "metadata"}
    measured = {MEASURED: own} if (own := [name for name in took if name not in given.metadata]) else {}
    metadata = {**sample.metadata, **took, **given.metadata, **measured}
    metadata |= {} if answer_of(sample) is None else {"answer": answer_of(sample)}
    changed = {name: value for name, value in known.items() if value is not None and name != "id"}
    if given.response is None:
        hint = written_for("response", given.metadata)
        raise UnscoredError(f"rag_respond returned no response; write return {_RETURN}{hint}")
    return replace(sample, metadata=metadata, **changed)


def _called(respond: Respond, sample: Sample, timed: Timed) -> tuple[Any, BaseException | None]:
    try:
        # Not before: the thread may have been waited for.
        timed.start()
        answer = respond(sample)
        if isinstance(answer, Iterator):
            for piece in answer:
                timed.take(piece)
            answer = timed.answer
        timed.end()
    except BaseException as error:  # noqa: BLE001 - as above; a future takes no StopIteration
        return None, error
    return answer, None


def _is_async(respond: Respond) -> bool:
    called = (respond, getattr(respond, "__call__", None))  # noqa: B004 - asked of the object, not whether it can be called
    return any(inspect.iscoroutinefunction(it) or inspect.isasyncgenfunction(it) for it in called)


@dataclass(frozen=True, kw_only=True, slots=True)
class RowJob(Job):
    """One row to answer and to score for one test; tests of one ``group`` share the application that answers.

    ``test`` is the node id, the same in every process. ``script`` are the turns of a conversation that are to be
    answered for it, with ``contexts_from`` for their contexts.
    """

    test: str
    group: str
    row: DatasetRow
    script: tuple[Sample, ...] = ()
    contexts_from: ContextsFrom = None

    @property
    def is_unanswered(self) -> bool:
        """Whether the application has to be asked first."""
        return self.sample.response is None

    @property
    def talk(self) -> str:
        """What is answered in one go: the conversation of the row, or the row of the test."""
        if not self.script:
            return self.test
        return f"{self.group} {self.script[0].metadata['conversation']} {answer_of(self.script[0])}"

    @property
    def place(self) -> str:
        """How messages name the row.

        >>> row = DatasetRow(sample=Sample(), id="q1", file="golden.jsonl", line=3)
        >>> RowJob(test="t", group="t", row=row, sample=Sample(), metrics=()).place
        "row 'q1' (golden.jsonl:3)"
        """
        file, line = self.row.file, self.row.line
        where = f"{file}:{line}" if file and line else file
        return f"row {self.row.id!r} ({where})" if where else f"row {self.row.id!r}"
