"""The chain of transports from a rendered request to a reply: its values, and the link that validates replies.

An engine composes ``CachedTransport > Repair > Prefixes > Batches > Limiter > CircuitBreakers > Budgeted > Providers``,
each an object with one method; with ``--rag-batch`` a ``BatchQueue`` takes the place of ``Prefixes``. The limiter comes
before breaker and budget, so that these decide about a request when its turn comes.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypedDict, TypeVar

from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.core.errors import JudgeError, RagMetricsError, UnscoredError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges.examples import own_part
from pytest_ragmetrics.judges.prices import known_sum, price
from pytest_ragmetrics.judges.schema import InvalidAnswer, extract_object, parse_json
from pytest_ragmetrics.text.unicode import printable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_ragmetrics.judges.tasks import Task

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)

#: The parameter of a judge that sets price and speed of a reply, and not what it says.
SERVICE_TIER = "service_tier"

# How much of an unusable reply an error shows, and how much of it is searched for keys.
_SHOWN = 200
_MASKED = 4 * _SHOWN


class JudgeUnavailableError(JudgeError):
    """No further request to this judge can succeed (no credit, wrong key, no such model): a run should stop asking."""


class JudgeOutageError(JudgeError):
    """The provider answers no request at all: too many of them, out of order, or out of reach.

    ``attempts`` is how many it left unanswered whatever they asked; one that took too long is one with its retries.
    """

    def __init__(self, message: str = "", *, usage: Usage | None = None, attempts: int = 1) -> None:
        super().__init__(message, usage=usage)
        self.attempts = attempts


class UnusableReplyError(JudgeError):
    """What came is no reply to the request, and a second question may be answered; ``spent`` is what it took.

    ``is_cut`` tells whether it met a limit of its length.
    """

    def __init__(
        self, message: str, *, spent: Reply | None = None, usage: Usage | None = None, is_cut: bool = False
    ) -> None:
        super().__init__(message, usage=usage)
        self.spent = spent
        self.is_cut = is_cut


class UnreadableReplyError(UnscoredError):
    """Neither of two replies of a judge fits the task; ``reply`` is the last, with the tokens of both."""

    def __init__(self, message: str, *, reply: Reply, usage: Usage | None = None) -> None:
        super().__init__(message, usage=usage)
        self.reply = reply


async def result_of(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a coroutine function returns, or another one, which is called in a thread."""
    call = getattr(function, "__call__", function)  # noqa: B004 - its own, to see whether it is asynchronous
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        return await function(*arguments)
    made = await asyncio.to_thread(function, *arguments)
    return await made if inspect.isawaitable(made) else made


@contextmanager
def failures_of(name: str) -> Iterator[None]:
    """Raise what fails inside as a ``JudgeError`` of the judge or embedder ``name``, except our own errors."""
    try:
        yield
    except RagMetricsError:
        raise
    except Exception as error:
        raise JudgeError(f"{name} failed: {type(error).__name__}: {error}") from error


class ChatMessage(TypedDict):
    """One turn of a conversation with a judge."""

    role: str
    content: str


def _nothing() -> None:
    pass


class Provider(Protocol[R_contra]):
    """A judge or an embedder, as the links see it."""

    @property
    def name(self) -> str:
        """Its name in results."""

    @property
    def is_paid(self) -> bool:
        """Whether a request costs money."""

    @property
    def is_kept(self) -> bool:
        """Whether its replies are determined by the request and worth storing."""

    async def complete(self, request: R_contra) -> Reply:
        """Return the reply to a request; raise ``JudgeError`` if the provider fails."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request to a judge; the fields up to ``vote`` alone determine its reply.

    ``parameters`` may include some that the server refuses; ``vote`` numbers independent samples of the same question.
    """

    task: str
    kind: str
    model: str
    messages: tuple[ChatMessage, ...]
    schema: Mapping[str, Any]
    parameters: Mapping[str, Any]
    vote: int = 0
    provider: Provider[Request] | None = field(default=None, compare=False, repr=False)
    #: The address it goes to where that is not the provider's own.
    url: str | None = field(default=None, compare=False, repr=False)
    #: The task that reads the reply; a request without one is not validated.
    asked: Task[Any] | None = field(default=None, compare=False, repr=False)
    #: What the task read in replies on their way, by their text, so that none is read twice.
    answers: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    #: Whether the first reply to it was cut off, so that this one may be longer.
    is_longer: bool = field(default=False, compare=False, repr=False)
    #: Whether it is tried only once.
    is_single: bool = field(default=False, compare=False, repr=False)
    #: Called once the request costs something.
    started: Callable[[], None] = field(default=_nothing, compare=False, repr=False)
    #: A task over the same contexts as the one that is asked next, without its other texts.
    then: Task[Any] | None = field(default=None, compare=False, repr=False)
    #: Called when it is sent: after which characters of the second message the provider's cache is to end, if at all.
    marks: Callable[[], tuple[int, ...]] = field(default=tuple, compare=False, repr=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """What is sent."""
        return tuple(message["content"] for message in self.messages)

    @property
    def shared_schema(self) -> Mapping[str, Any]:
        """The schema that other requests have too, with which providers keep a beginning; its own if there is none."""
        return self.schema if self.asked is None else self.asked.envelope or self.schema

    def read(self, text: str, value: object = None) -> Any:
        """Return the answer to the task in a JSON text, whose ``value`` may be known; raise :class:`InvalidAnswer`."""
        if text not in self.answers:
            task: Task[Any] = self.asked  # type: ignore[assignment] # there is one where a reply is read
            value = parse_json(text) if value is None else value
            own = own_part(value, self.schema, self.messages[-1]["content"], task.fill().values())
            self.answers[text] = task.read(own)
        return self.answers[text]

    def spelled_out(self) -> list[ChatMessage]:
        """Return the messages with the schema in the last of them, for a judge that takes no schema."""
        *earlier, last = self.messages
        form = json.dumps(self.schema, separators=(",", ":"))
        stated = f"{last['content']}\n\nThe form of the JSON object: {form}"
        return [*earlier, ChatMessage(role=last["role"], content=stated)]


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingRequest:
    """Texts to turn into vectors; the fields below ``dimensions`` are those of :class:`Request`."""

    kind: str
    model: str
    texts: tuple[str, ...]
    dimensions: int | None = None
    provider: Provider[EmbeddingRequest] | None = field(default=None, compare=False, repr=False)
    url: str | None = field(default=None, compare=False, repr=False)
    is_single: bool = field(default=False, compare=False, repr=False)
    started: Callable[[], None] = field(default=_nothing, compare=False, repr=False)


AnyRequest: TypeAlias = "Request | EmbeddingRequest"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered(Generic[A_co]):
    """The answer to a task and what it cost; ``disagreements`` are those of the judges of a panel, in words."""

    answer: A_co
    usage: Usage
    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """The text of a judge, or an embedder's vectors of shape (n, d), and the tokens; a ``cached`` one cost nothing now.

    ``prompt_tokens`` are all of them: ``cached_prompt_tokens`` came from the provider's cache, ``cache_write_tokens``
    went into it, ``cache_write_1h_tokens`` of these for an hour. ``tier`` is the one that the answer reports, ``None``
    for the ordinary one and ``batch`` for an answer out of a batch. ``billed`` are the dollars that the server says it
    bills. The counts of a repaired reply are sums, and its ``parts`` those of each request. ``served`` is the model
    that the provider says answered, with its fingerprint, "" where it says no more than was asked for.

    Behind the link that validates, ``text`` is JSON that fits the task. ``answered`` is the answer of a judge that
    writes no JSON.
    """

    text: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_prompt_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    tier: str | None = None
    billed: float | None = None
    calls: int = 1
    parts: tuple[Reply, ...] = ()
    served: str = ""
    cached: bool = False
    vectors: npt.NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    answered: Answered[Any] | None = None

    def cost(self, request: AnyRequest) -> float | None:
        """Return what it costs as the reply to a request, in dollars; ``None`` where that is not known."""
        if request.provider is not None and not request.provider.is_paid:
            return 0.0
        if self.parts:
            return known_sum(part.cost(request) for part in self.parts)
        if self.billed is not None:
            return self.billed
        return price(
            request.kind,
            request.model,
            self.prompt_tokens,
            self.completion_tokens,
            cached=self.cached_prompt_tokens,
            written=self.cache_write_tokens,
            written_1h=self.cache_write_1h_tokens,
            tier=self.tier,
            url=request.url,
        )

    def usage(self, request: AnyRequest) -> Usage:
        """Return its usage as the reply to a request; an embedder that counts no tokens has none."""
        if isinstance(request, EmbeddingRequest):
            is_counted = self.prompt_tokens or self.billed
            return Usage(embedding_tokens=self.prompt_tokens, cost=self.cost(request) if is_counted else 0.0)
        cost = self.cost(request)
        if self.cached:
            return Usage(cached_calls=1, saved=cost)
        return Usage(
            calls=self.calls,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            cost=cost,
            cached_prompt_tokens=self.cached_prompt_tokens,
            cache_write_tokens=self.cache_write_tokens,
        )

    def counts(self) -> Reply:
        """Return it without what it says."""
        return replace(self, text="", served="", vectors=None, answered=None)


#: The counts of a reply that a repair sums.
_SUMMED = (
    *("prompt_tokens", "completion_tokens", "calls"),
    *("cached_prompt_tokens", "cache_write_tokens", "cache_write_1h_tokens"),
)


def together(first: Reply, second: Reply) -> Reply:
    """Return the second reply with the counts of both, each priced by itself."""
    sums: dict[str, Any] = {name: getattr(first, name) + getattr(second, name) for name in _SUMMED}
    return replace(second, **sums, tier=None, billed=None, parts=(first.counts(), second.counts()))


class Transport(Protocol):
    """A link of the chain."""

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply to a request; raise ``JudgeError`` or ``UnscoredError`` if there is none."""


class Repair:
    """Asks a second time where there is no reply that fits the task, and not a third time.

    A reply that does not fit is repaired: the judge gets it with the fault. Where what came is no reply, the same is
    asked again, with more room where the reply was cut off.
    """

    def __init__(self, following: Transport) -> None:
        self._following = following

    async def send(self, request: AnyRequest) -> Reply:
        """Return a reply whose text is JSON that fits the task.

        Raises ``UnreadableReplyError`` if the second reply does not fit, ``UnusableReplyError`` if it is none.
        """
        try:
            first = await self._following.send(request)
        except UnusableReplyError as fault:
            return _checked(request, await self._again(request, fault), f"after {fault}")
        if isinstance(request, EmbeddingRequest):
            return first
        try:
            return fitting(request, first)
        except InvalidAnswer as error:
            wanted = (
                f"Your answer cannot be used: {error}. Answer the task again, completely, as one JSON object alone."
            )
        turns = ChatMessage(role="assistant", content=first.text), ChatMessage(role="user", content=wanted)
        second = await self._following.send(replace(request, messages=(*request.messages, *turns)))
        return _checked(request, together(first, second), "also after a repair")

    async def _again(self, request: AnyRequest, fault: UnusableReplyError) -> Reply:
        is_longer = fault.is_cut and isinstance(request, Request)
        again = replace(request, is_longer=is_longer) if isinstance(request, Request) else request
        try:
            second = await self._following.send(again)
        except JudgeError as error:
            # The other failures of a provider say more than the fault.
            if type(error) is not UnusableReplyError and not (is_longer and type(error) is JudgeError):
                raise
            how = "asked once more with more room" if is_longer else "asked once more"
            found = "the same" if str(error) == str(fault) else str(error)
            used = [usage for usage in (fault.usage, error.usage) if usage is not None]
            usage = sum(used[1:], start=used[0]) if used else None
            raise UnusableReplyError(f"{fault}; {how}: {found}", usage=usage, is_cut=fault.is_cut) from None
        return second if fault.spent is None else together(fault.spent, second)


def fitting(request: Request, reply: Reply) -> Reply:
    """Return a reply with the JSON that fits the task as its text; raise ``InvalidAnswer`` if it has none."""
    if request.asked is None or reply.answered is not None:
        return reply
    text, value = extract_object(reply.text)
    request.read(text, value)
    return reply if text == reply.text else replace(reply, text=text)


def _checked(request: AnyRequest, reply: Reply, when: str) -> Reply:
    """Return the reply to a second question as :func:`fitting`; ``when`` says which one that is."""
    if isinstance(request, EmbeddingRequest):
        return reply
    try:
        return fitting(request, reply)
    except InvalidAnswer as error:
        name = "" if request.provider is None else request.provider.name
        msg = f"{name}, {request.task}: no usable answer, {when}: {error.explained}; it replied {shown(reply.text)}"
        raise UnreadableReplyError(msg, reply=reply, usage=reply.usage(request)) from error


def shown(reply: str) -> str:
    r"""Return the beginning of an unusable reply for an error message, without what looks like a key.

    >>> shown("<html>" + "\n" * 9 + "Bad gateway")
    "'<html> Bad gateway'"
    """
    text = masked(printable(reply[:_MASKED]))
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def full_name(spec: str | None, made: object) -> str | None:
    """Return what the replies of an object are kept under: its spec, with the ``name`` of its own if it has one."""
    own = getattr(made, "name", None)
    return f"{spec}:{own}" if spec and own and own != spec else spec
