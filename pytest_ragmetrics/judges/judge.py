"""Judges that answer in a way of their own, asked within the budget of a run."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypedDict, TypeVar

from pytest_ragmetrics.context import Exchange, note
from pytest_ragmetrics.errors import JudgeError, RagMetricsError, UnscoredError
from pytest_ragmetrics.judges.rendering import PromptBook, render
from pytest_ragmetrics.judges.schema import extract_json, parse_json
from pytest_ragmetrics.judges.tasks import InvalidAnswer, Task
from pytest_ragmetrics.prices import estimated_tokens, price
from pytest_ragmetrics.result import Usage
from pytest_ragmetrics.text.characters import printable, shortened

if TYPE_CHECKING:
    from pytest_ragmetrics.budget import Budget, Receipt

A = TypeVar("A")

#: How much of an unusable reply an error shows.
_SHOWN = 300


class ChatMessage(TypedDict):
    """One turn of a conversation with a judge."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """Everything that determines a reply, and nothing else.

    ``parameters`` are those that were asked for, whatever a server then accepts of them; ``vote`` numbers
    independent samples of the same question.
    """

    task: str
    kind: str
    model: str
    messages: tuple[ChatMessage, ...]
    schema: Mapping[str, Any]
    parameters: Mapping[str, Any]
    vote: int = 0

    def spelled_out(self) -> list[ChatMessage]:
        """Return the messages with the schema in words, for a judge that takes it in no other way."""
        *earlier, last = self.messages
        form = json.dumps(self.schema, separators=(",", ":"))
        stated = f"{last['content']}\n\nThe form of the JSON object: {form}"
        return [*earlier, ChatMessage(role=last["role"], content=stated)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What a judge wrote, and what it took to get it; ``text`` that reaches a desk is JSON that fits the task."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedReply:
    """A reply as a desk hands it out: just made, or made before."""

    reply: Reply
    cached: bool


Fetch = Callable[[], Awaitable[Reply]]


class Transport(Protocol):
    """Where requests are handed in: an engine's desk caches, shares and limits them."""

    async def obtain(self, request: Request, fetch: Fetch) -> CachedReply:
        """Return the reply to a request, by calling ``fetch`` if it has none; raises what ``fetch`` raises."""


class DirectTransport:
    """A desk that keeps nothing, for where no session runs."""

    async def obtain(self, request: Request, fetch: Fetch) -> CachedReply:  # noqa: ARG002 - it keeps nothing
        """Return what ``fetch`` makes."""
        return CachedReply(reply=await fetch(), cached=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered(Generic[A]):
    """The answer to a task and what it cost."""

    answer: A
    usage: Usage


class JudgeUnavailableError(JudgeError):
    """No further request to this judge can succeed (no credit, wrong key, no such model): a run should stop asking."""


class JudgeOutageError(JudgeError):
    """The provider did not answer, whatever it was asked: too fast for it, out of order, or out of reach."""


class UnreadableReplyError(UnscoredError):
    """A judge's reply did not fit the task, and its repair neither; ``spent`` is what the attempts took."""

    def __init__(self, message: str, *, spent: Reply) -> None:
        super().__init__(message)
        self.spent = spent


class Judge(ABC):
    """Answers tasks. ``name`` stands in every result: ``openai:gpt-5.4-mini``, ``local (heuristic)``."""

    name: str
    #: Whether the answers to one task may differ; where they cannot, one vote says what many would.
    is_varied: bool = True
    #: Whether asking it is a request that somebody is paid for.
    is_paid: bool = True

    @abstractmethod
    async def ask(self, task: Task[A], *, vote: int = 0, desk: Transport) -> Answered[A]:
        """Return the answer to a task; raise ``UnscoredError`` or ``JudgeError`` if there is none."""

    async def aclose(self) -> None:  # noqa: B027 - many judges hold nothing
        """Give back what the judge holds; it must not be asked again."""


class PromptedJudge(Judge):
    """A judge that reads prompts; a provider implements :meth:`complete`."""

    #: The kind of provider, part of what determines a reply.
    kind: ClassVar[str] = "custom"
    #: Whether the name and the request determine the reply, so that it may be kept and used again.
    is_lasting: bool = True

    def __init__(
        self,
        *,
        name: str,
        model: str,
        parameters: Mapping[str, Any] = MappingProxyType({}),
        prompts: PromptBook | None = None,
    ) -> None:
        """Take the provider's ``model`` and sampling ``parameters``, and the ``prompts`` to ask with."""
        self.name = name
        self.model = model
        self.parameters = dict(parameters)
        #: What replaces some parameters where several independent samples are wanted, after the first.
        self.varied: dict[str, Any] = {}
        self.prompts = prompts or PromptBook()
        #: Called whenever the provider says that it is asked too fast.
        self.on_rate_limit: Callable[[], None] | None = None
        #: What is asked before each request.
        self.budget: Budget | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @abstractmethod
    async def complete(self, request: Request) -> Reply:
        """Return what the model writes; raise ``JudgeError`` if the provider fails, refuses or cuts it short."""

    def rate_limited(self) -> None:
        """Tell whoever listens that the provider is asked too fast."""
        if self.on_rate_limit is not None:
            self.on_rate_limit()

    def request(self, task: Task[Any], *, vote: int = 0) -> Request:
        """Return the request that asks a task."""
        system, user = render(task, self.prompts)
        return Request(
            task=task.prompt,
            kind=self.kind,
            model=self.model,
            messages=(ChatMessage(role="system", content=system), ChatMessage(role="user", content=user)),
            schema=task.schema(),
            parameters=self.parameters | self.varied if vote else self.parameters,
            vote=vote,
        )

    async def ask(self, task: Task[A], *, vote: int = 0, desk: Transport) -> Answered[A]:
        """Return the answer to a task; a reply that does not fit is repaired once, then ``UnscoredError``."""
        request = self.request(task, vote=vote)
        desk = desk if self.is_lasting else DirectTransport()
        try:
            kept = await desk.obtain(request, lambda: self._fetch(task, request))
        except RagMetricsError as error:
            spent = CachedReply(reply=error.spent, cached=False) if isinstance(error, UnreadableReplyError) else None
            self._note(request, spent)
            if isinstance(error, UnreadableReplyError) and spent is not None:
                error.usage = self._usage(spent)
            raise
        self._note(request, kept)
        try:
            answer = task.read(parse_json(kept.reply.text))
        except InvalidAnswer as error:
            # Not from _fetch, which has read it: a record that was edited, or made by another version.
            msg = f"{self.name}, {task.prompt}: the recorded reply does not fit: {error}; {_shown(kept.reply.text)}"
            raise UnscoredError(msg) from error
        return Answered(answer=answer, usage=self._usage(kept))

    def _note(self, request: Request, kept: CachedReply | None) -> None:
        exchange = Exchange(
            task=request.task,
            vote=request.vote,
            prompt=request.messages[-1]["content"],
            reply=None if kept is None else kept.reply.text,
            cached=kept is not None and kept.cached,
        )
        note(exchange)

    async def _fetch(self, task: Task[Any], request: Request) -> Reply:
        first = await self._paid(request)
        try:
            return replace(first, text=_readable(task, first.text))
        except InvalidAnswer as error:
            repair = replace(request, messages=(*request.messages, *_repair(first.text, error)))
        second = await self._paid(repair)
        spent = _together(first, second)
        try:
            return replace(spent, text=_readable(task, second.text))
        except InvalidAnswer as error:
            msg = f"{self.name}, {task.prompt}: no usable answer, also after a repair: {error}; {_shown(second.text)}"
            raise UnreadableReplyError(msg, spent=spent) from error

    async def _paid(self, request: Request) -> Reply:
        """Complete a request within the budget of the run, if it has one."""
        if self.budget is None:
            return await self.complete(request)
        with self.budget.request(self.name, kind=self.kind, model=self.model) as receipt:
            reply = await self.complete(request)
            asked = (message["content"] for message in request.messages)
            # A provider that counts no tokens takes some all the same.
            receipt.took(
                reply.prompt_tokens or estimated_tokens(*asked),
                reply.completion_tokens or estimated_tokens(reply.text),
            )
        return reply

    def _usage(self, kept: CachedReply) -> Usage:
        reply = kept.reply
        cost = price(self.kind, self.model, reply.prompt_tokens, reply.completion_tokens)
        if kept.cached:
            return Usage(cached_calls=1, saved=cost)
        return Usage(
            calls=reply.calls,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost=cost,
        )


def _readable(task: Task[Any], text: str) -> str:
    found = extract_json(text)
    task.read(parse_json(found))
    return found


def _repair(reply: str, error: InvalidAnswer) -> tuple[ChatMessage, ChatMessage]:
    wanted = f"Your answer cannot be used: {error}. Answer the task again, completely, as one JSON object alone."
    return ChatMessage(role="assistant", content=reply), ChatMessage(role="user", content=wanted)


def _together(first: Reply, second: Reply) -> Reply:
    return Reply(
        text=second.text,
        prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        completion_tokens=first.completion_tokens + second.completion_tokens,
        calls=first.calls + second.calls,
    )


def _shown(reply: str) -> str:
    return f"it replied {shortened(printable(reply), _SHOWN)!r}"


class BudgetedJudge(Judge):
    """A judge that knows of no budget, each of whose answers is a call, or as many as its usage says.

    Whether an answer will be found in a cache is known only afterwards: none is asked for once the budget is reached.
    Tokens that the usage leaves out are estimated from the texts of the task.
    """

    def __init__(self, judge: Judge, budget: Budget) -> None:
        self.name = judge.name
        self.is_varied = judge.is_varied
        self._judge = judge
        self._budget = budget

    async def ask(self, task: Task[A], *, vote: int = 0, desk: Transport) -> Answered[A]:
        """Return what the judge answers; raise ``BudgetExceededError`` instead of asking it where nothing is left."""
        with self._budget.request(self.name, kind="custom", model=self.name) as receipt:
            try:
                answered = await self._judge.ask(task, vote=vote, desk=desk)
            except UnscoredError as error:
                _tell(receipt, error.usage, task)
                raise
            _tell(receipt, answered.usage, task)
        return answered

    async def aclose(self) -> None:
        """Close the judge."""
        await self._judge.aclose()


def _tell(receipt: Receipt, usage: Usage | None, task: Task[Any]) -> None:
    """Tell a receipt what an answer took, or the vain attempt at one; without a usage it stays a call."""
    if usage is None:
        return
    if usage.cached_calls and not usage.calls:
        receipt.took(0, calls=0)
        return
    prompt = usage.prompt_tokens or estimated_tokens(*(block.text for block in task.blocks()))
    receipt.took(prompt, usage.completion_tokens, calls=max(usage.calls, 1))
