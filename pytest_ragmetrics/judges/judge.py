"""Judges: the base class, judges that read prompts and write JSON, and judges that users write."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from pytest_ragmetrics.core.errors import JudgeError, UnscoredError
from pytest_ragmetrics.judges.rendering import PromptBook, render
from pytest_ragmetrics.judges.schema import InvalidAnswer
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.judges.transports.limiter import DIRECT, holding
from pytest_ragmetrics.judges.transports.values import (
    Answered,
    ChatMessage,
    Reply,
    Request,
    Transport,
    failures_of,
    full_name,
    result_of,
    shown,
)

A = TypeVar("A")


class Judge(ABC):
    """Answers tasks. ``name`` appears in every result: ``openai:gpt-5.4-mini``, ``local (heuristic)``."""

    name: str
    #: Whether the answers to one task may differ; if not, one vote is enough.
    is_varied: bool = True
    #: Whether a request to it costs money.
    is_paid: bool = True

    @abstractmethod
    async def ask(self, task: Task[A], *, vote: int = 0, transport: Transport = DIRECT) -> Answered[A]:
        """Return the answer to a task; raise ``UnscoredError`` or ``JudgeError`` if there is none."""

    async def aclose(self) -> None:  # noqa: B027 - many judges have nothing to close
        """Close the client; the judge must not be asked again."""


class PromptedJudge(Judge):
    """A judge that reads prompts; a provider implements :meth:`complete`."""

    #: The kind of provider, part of what determines a reply.
    kind: ClassVar[str] = "custom"
    #: Whether the name and the request determine the reply, so that it may be stored and used again.
    is_kept: bool = True

    def __init__(
        self,
        *,
        name: str,
        model: str,
        parameters: Mapping[str, Any] = MappingProxyType({}),
        prompts: PromptBook | None = None,
    ) -> None:
        """Ask the provider's ``model`` with sampling ``parameters`` and ``prompts``."""
        self.name = name
        self.model = model
        self.parameters = dict(parameters)
        #: The address of its server where that is not the provider's own.
        self.url: str | None = None
        #: The parameters of further samples of one request that differ from those of the first.
        self.varied: dict[str, Any] = {}
        self.prompts = prompts or PromptBook()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @abstractmethod
    async def complete(self, request: Request) -> Reply:
        """Return the reply of the model; raise ``JudgeError`` if the provider fails, refuses or cuts it short."""

    def request(self, task: Task[Any], *, vote: int = 0) -> Request:
        """Return the request that asks a task."""
        return Request(
            task=task.prompt,
            kind=self.kind,
            model=self.model,
            messages=self.messages(task),
            schema=task.schema(),
            parameters=self.parameters | self.varied if vote else self.parameters,
            vote=vote,
            provider=self,
            url=self.url,
            asked=task,
        )

    def messages(self, task: Task[Any]) -> tuple[ChatMessage, ...]:
        """Return the messages that ask a task; reports show the last of them."""
        system, user = render(task, self.prompts)
        return ChatMessage(role="system", content=system), ChatMessage(role="user", content=user)

    async def ask(self, task: Task[A], *, vote: int = 0, transport: Transport = DIRECT) -> Answered[A]:
        """Return the answer to a task; a reply that does not fit is repaired once, then ``UnscoredError``."""
        request = self.request(task, vote=vote)
        reply = await transport.send(request)
        if reply.answered is not None:
            return reply.answered
        try:
            answer = request.read(reply.text)
        except InvalidAnswer as error:
            # A fresh reply was validated on its way: this one was edited, or recorded by another version.
            fault = f"the recorded reply does not fit: {error.explained}"
            msg = f"{self.name}, {task.prompt}: {fault}; it replied {shown(reply.text)}"
            raise UnscoredError(msg) from error
        return Answered(answer=answer, usage=reply.usage(request))


class AnsweringJudge(PromptedJudge):
    """Sends a judge with an ``ask`` of its own over a transport, which counts and bounds what it is asked.

    Its answers are not stored. A cache of its own is known only afterwards, so nothing is asked once a budget is
    reached. Tokens that its usage leaves out are estimated from the texts of the task.
    """

    is_kept = False

    def __init__(self, judge: Judge) -> None:
        super().__init__(name=judge.name, model=judge.name)
        self.is_varied = judge.is_varied
        self.is_paid = judge.is_paid
        self._judge = judge

    def messages(self, task: Task[Any]) -> tuple[ChatMessage, ...]:
        """Return the texts of a task: its judge has no prompt that could be shown."""
        return tuple(ChatMessage(role="user", content=block.text) for block in task.blocks())

    async def complete(self, request: Request) -> Reply:
        """Return the judge's answer with its usage; without a usage it is one call."""
        task: Any = request.asked
        with holding(None):
            answered = await self._judge.ask(task, vote=request.vote, transport=DIRECT)
        usage = answered.usage
        return Reply(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_prompt_tokens=usage.cached_prompt_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            calls=usage.calls or int(not usage.cached_calls),
            answered=answered,
        )

    async def aclose(self) -> None:
        """Close the judge."""
        await self._judge.aclose()


@runtime_checkable
class Completes(Protocol):
    """An object that :class:`CustomJudge` can ask."""

    async def complete(self, messages: list[ChatMessage], schema: Mapping[str, Any]) -> str:
        """Return the answer to the messages: one JSON object of the form of the schema, as text."""


class CustomJudge(PromptedJudge):
    """A judge made of an object with ``async complete(messages, schema) -> str`` or a callable ``str -> str``.

    A callable is run in a thread, unless it is asynchronous. ``name``, or the target's own attribute ``name``, is
    shown in results and determines, with the prompt, which recorded reply is used: change it when the model behind it
    changes. One that a ``MODULE:FACTORY`` or a hook makes is known by its spec and its own name. Without a name two
    judges cannot be distinguished, so replies are not recorded.

    >>> import asyncio
    >>> from pytest_ragmetrics.judges.tasks import ListClaims
    >>> judge = CustomJudge(lambda prompt: '{"claims": ["Ivy climbs."]}', name="mine")
    >>> asyncio.run(judge.ask(ListClaims(text="It climbs."))).answer
    ('Ivy climbs.',)
    """

    def __init__(
        self,
        target: Completes | Callable[[str], str | Awaitable[str]],
        *,
        name: str | None = None,
        prompts: PromptBook | None = None,
    ) -> None:
        """Name the judge after its target, unless a ``name`` is given."""
        if not isinstance(target, Completes) and not callable(target):
            what = "a spec such as 'openai:MODEL', a callable or an object with complete(messages, schema)"
            raise TypeError(f"a judge is {what}, not {type(target).__name__}")
        given = name or getattr(target, "name", None)
        known = name or f"custom:{given or getattr(target, '__qualname__', None) or type(target).__qualname__}"
        super().__init__(name=known, model=known, prompts=prompts)
        self.is_kept = bool(given)
        self._target = target

    async def complete(self, request: Request) -> Reply:
        """Return the reply of the target; raise ``JudgeError`` if it fails or answers with anything but text."""
        with failures_of(self.name), holding(None):
            text = await self._answer(request)
        if not isinstance(text, str) or not text.strip():
            what = "nothing" if isinstance(text, str) else f"{type(text).__name__} where a str is wanted"
            raise JudgeError(f"{self.name} replied with {what}")
        return Reply(text=text)

    async def aclose(self) -> None:
        """Close the target, if it has an ``aclose`` of its own."""
        close = getattr(self._target, "aclose", None)
        if close is not None:
            await close()

    async def _answer(self, request: Request) -> object:
        if isinstance(self._target, Completes):
            # Copies: the target may change them.
            messages, schema = deepcopy((list(request.messages), dict(request.schema)))
            answer: object = self._target.complete(messages, schema)
            return await answer if inspect.isawaitable(answer) else answer
        parts = [
            f"You answered:\n{message['content']}" if message["role"] == "assistant" else message["content"]
            for message in request.spelled_out()
        ]
        return await result_of(self._target, "\n\n".join(parts))


def as_judge(target: Any, *, name: str | None = None, prompts: PromptBook | None = None) -> Judge:
    """Return a judge, or the one made of an object, known by a ``name`` and its own; ``TypeError`` for another."""
    return target if isinstance(target, Judge) else CustomJudge(target, name=full_name(name, target), prompts=prompts)
