"""Judges behind a provider's API: connection, errors, and the capabilities of a server."""

from __future__ import annotations

import asyncio
import json
import math
import os
import platform
import re
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypedDict, TypeVar
from urllib.request import getproxies

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.core.errors import JudgeError, JudgeNotConfiguredError, RagMetricsError, optional, warn_once
from pytest_ragmetrics.judges.judge import PromptedJudge
from pytest_ragmetrics.judges.prices import priced_tier
from pytest_ragmetrics.judges.providers.addresses import (
    is_here,
    is_private,
    secrets_of,
    shown_address,
    split_account,
    without,
)
from pytest_ragmetrics.judges.providers.attempts import (
    ASKED,
    MOST,
    ApiKey,
    Call,
    current,
    http_client,
    within,
)
from pytest_ragmetrics.judges.providers.errors import Problem, said_in
from pytest_ragmetrics.judges.providers.limits import pause_of
from pytest_ragmetrics.judges.providers.vendor import Vendor, check_parameters
from pytest_ragmetrics.judges.rendering import PromptBook
from pytest_ragmetrics.judges.transports.limiter import current_place
from pytest_ragmetrics.judges.transports.values import (
    SERVICE_TIER,
    JudgeOutageError,
    JudgeUnavailableError,
    Reply,
    Request,
    UnusableReplyError,
    result_of,
    shown,
)
from pytest_ragmetrics.text.unicode import printable, shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
#: The form of output and the parameters that a server accepts, in the type of its judge or embedder.
Terms = TypeVar("Terms")

# The longest pause that the SDK makes by itself.
_PAUSE = 8.0
#: The tier of half the price, whose answers may take minutes: the seconds that its provider advises to wait.
FLEX = "flex"
_FLEX_TIMEOUT = 900
#: What servers that need no key are sent.
_NO_KEY = "none"
# The HTTP library shows a key with any other character in its error.
_KEY = re.compile(r"[!-~]+")
# A reply may have a key such as "ollama" as a word.
_LONG_KEY = re.compile(r"(?=.*\d).{16}")
# aiohttp shows addresses whole; what follows the path may be a token.
_QUERY = re.compile(r"(://[^\s?]*)\?[^\s'\"]*")
_PASSWORD = re.compile(r"//[^/@\s]*@")
_SHOWN = 400
# How many of the keys that were used are looked for in what a server says.
_SECRETS = 8
# What OpenAI says of its tier "flex", as a code and in words.
_NO_CAPACITY = re.compile(r"resource[_ ]unavailable", re.IGNORECASE)
# What llama.cpp says of a text that is longer than its batch, which it calls a failure of its own.
_TOO_LARGE = re.compile(r"too large to process")
_REJECTED = frozenset(map(HTTPStatus, (400, 413, 422)))
_REFUSING = re.compile(
    r"(?i)support|unknown|unrecogni|unexpected|(?:may|is) not |not (?:allowed|permitted)|cannot be (?:used|specified)"
    r"|not (?:a )?(?:valid|recogni|known|available|implemented)|invalid (?:\w+ )?(?:parameter|argument|field|option)"
    r"|deprecated|extra|forbid|disallow|only (?:the )?(?:default|1\b)|不支持|未知|サポートされ|지원(?:하|되)지"
    r"|nicht (?:unterst|erlaubt)|pas (?:pris|support|autoris)|no (?:es compatible|se admite)",
)


class ConnectionOptions(TypedDict, total=False):
    """The options of a :class:`Connection`, for judges and embedders that have one."""

    api_key: ApiKey | None
    base_url: str | None
    timeout: float
    retries: int
    deadline: float | None


class Connection(Generic[Terms]):
    """One account at a provider, asked for one model; connects when it is first used, inside the running loop.

    ``api_key`` and ``base_url`` default to the vendor's environment variables. A key that changes is a function or a
    coroutine function, asked for it before every attempt; a plain function runs in a thread. ``timeout`` is the limit
    of each of ``retries`` + 1 attempts in seconds, from sending to the last byte, and ``deadline`` that of all together
    (by default enough for every attempt and the SDK's pauses). ``terms`` are what the server was found to accept so
    far. Failures are ``JudgeError`` with a remedy; no message contains the key.
    """

    def __init__(
        self,
        vendor: Vendor,
        terms: Terms,
        *,
        model: str,
        api_key: ApiKey | None = None,
        base_url: str | None = None,
        timeout: float = 60,
        retries: int = 5,
        deadline: float | None = None,
    ) -> None:
        given_url = base_url or os.environ.get(vendor.url_variable, "").strip()
        self.terms = terms
        self._vendor = vendor
        #: Whether it is the vendor itself, and no other server that speaks so.
        self.is_direct = not given_url or given_url.rstrip("/") == vendor.url
        self._model = model
        self._url, self._account = split_account(given_url or vendor.url)
        # Errors are in reports: without the password that an address may contain.
        self._shown_url = shown_address(given_url or vendor.url)
        self._passwords = secrets_of((given_url, *getproxies().values()))
        #: The address, without account and query, if it is not the vendor's own.
        self.elsewhere = self._url.partition("?")[0] if given_url else None
        self._is_private = is_private(self._url)
        # A server of this machine that is down is most often not started, one that answered before is starting again.
        self._is_missing = is_here(self._url)
        #: What is asked for the key, where it changes.
        self._asked_for = api_key if callable(api_key) else None
        given = (ASKED if callable(api_key) else api_key) or os.environ.get(vendor.key_variable, "")
        self._key = given.strip() or (_NO_KEY if given_url else "")
        # Those that may be in what a server says.
        self._secrets: deque[str] = deque([] if self._key in {_NO_KEY, ASKED, ""} else [self._key], maxlen=_SECRETS)
        self._timeout = timeout
        self._retries = retries
        self._deadline = (timeout + _PAUSE) * (retries + 1) if deadline is None else deadline
        self._client: Any = None
        self._in_flight: set[Call] = set()
        loop.in_child(self, _client=lambda: None, _in_flight=set)

    def __repr__(self) -> str:
        return f"<Connection {self._vendor.label} {self._model}>"

    async def call(
        self,
        send: Callable[[Any, Terms], Awaitable[T]],
        concede: Callable[[Terms, Any], Terms | None],
        *,
        most: int | None = MOST,
        single: bool = False,
        steady: bool = False,
    ) -> T:
        """Return the result of ``send(client, terms)``; raise ``JudgeError`` for a failure of provider or network.

        ``concede(terms, error)`` returns the terms to try after a rejection, or ``None`` if there are none.
        ``most`` limits a reply in bytes; ``None`` also lifts the limit of time of an attempt. A ``single`` call is not
        tried again, and one that is answered alike each time, a ``steady`` one, not where a server still writes.
        """
        sdk = optional(self._vendor.name, self._who, self._vendor.extra, error=JudgeNotConfiguredError)
        if self._client is None:
            self._client = self._connect(sdk)
            # A judge that a test was given is often closed by nobody, of which aiohttp complains.
            loop.on_stop_here(self.aclose)
        call = Call(
            timeout=None if most is None else self._timeout,
            most=most,
            key=None if self._asked_for is None else self._current_key,
            tell=_check_answer,
            steady=steady and self._is_private,
            missing=self._is_missing,
            in_flight=self._in_flight,
        )
        client = self._client.with_options(max_retries=0) if single else self._client
        before = current.set(call)
        # The SDK's own errors are not chained: their frames and headers contain the key.
        try:
            return await within(self._deadline, self._reach(client, send, concede))
        except RagMetricsError:
            raise
        except Exception as error:
            meaning = self._meaning(sdk, error, call)
            if meaning is error:
                raise
            raise meaning from None
        finally:
            current.reset(before)
            self._is_missing &= call.missing

    async def _reach(
        self, client: Any, send: Callable[[Any, Terms], Awaitable[T]], concede: Callable[[Terms, Any], Terms | None]
    ) -> T:
        is_renewed = self._asked_for is None
        while True:
            terms = self.terms
            try:
                return await send(client, terms)
            except Exception as error:
                status = getattr(error, "status_code", None)
                if status == HTTPStatus.UNAUTHORIZED and not is_renewed:
                    # It may have run out on the way; a new one is asked for.
                    is_renewed = True
                    continue
                if status not in _REJECTED:
                    raise
                # Another request may have changed the terms meanwhile.
                if self.terms == terms:
                    conceded = concede(terms, error)
                    if conceded is None:
                        raise
                    self.terms = conceded

    async def aclose(self) -> None:
        """Close the client, if there is one."""
        client, self._client = self._client, None
        if client is not None:
            loop.closed_here(self.aclose)
            await client.close()

    @property
    def _who(self) -> str:
        return f"{self._vendor.name}:{self._model}"

    def _connect(self, sdk: Any) -> Any:
        if not self._key:
            own = f"{self._vendor.url_variable} for a server that needs none"
            raise JudgeNotConfiguredError(f"{self._who} needs a key: set {self._vendor.key_variable}, or {own}")
        if not _KEY.fullmatch(self._key):
            msg = f"{self._who}: {self._vendor.key_variable} contains characters that no key has"
            raise JudgeNotConfiguredError(msg)
        if not self._url.startswith(("http://", "https://")):
            variable = self._vendor.url_variable
            msg = f"{self._who}: {variable} must begin with http:// or https://, not {self._shown_url!r}"
            raise JudgeNotConfiguredError(msg)
        # The SDK asks for it in a thread; a fork meanwhile would leave a lock of Python's behind.
        platform.platform()
        options: dict[str, Any] = {"timeout": self._timeout, "max_retries": self._retries}
        make = getattr(sdk, f"Async{self._vendor.label}")
        try:
            http = http_client(sdk, self._url, account=self._account)
            return make(api_key=self._key, base_url=self._url, http_client=http, **options)
        except Exception as error:  # noqa: BLE001 - of the HTTP library, about the address or a proxy
            # Not chained: its frames have the password of a proxy.
            msg = f"{self._who}: no connection to {self._shown_url} can be made ({self._clean(_said(error))})"
            raise JudgeNotConfiguredError(f"{msg}; check {self._vendor.url_variable} and the proxies") from None

    async def _current_key(self) -> str:
        """Return the key of this moment; raise ``JudgeNotConfiguredError``."""
        name = f"{self._who}: api_key()"
        try:
            key = await result_of(self._asked_for)  # type: ignore[arg-type] # there is one where this is called
        except Exception as error:  # noqa: BLE001 - of any library of credentials
            fault = f"{type(error).__name__}: {error}"
            raise JudgeNotConfiguredError(f"{name} failed with {self._clean(fault)}") from None
        if not isinstance(key, str) or not _KEY.fullmatch(key.strip()):
            what = "contains characters that no key has" if isinstance(key, str) and key.strip() else "is no key"
            raise JudgeNotConfiguredError(f"{name} returned what {what}; it must return a text")
        key = key.strip()
        if key not in self._secrets:
            self._secrets.append(key)
        return key

    def _ended(self, error: RagMetricsError, call: Call) -> RagMetricsError:
        if isinstance(error, UnusableReplyError):
            return UnusableReplyError(f"{self._who} {self._clean(str(error))}")
        if isinstance(error, JudgeOutageError):
            return self._unreached(str(error), call) if str(error) else self._late(call)
        if isinstance(error, JudgeUnavailableError):
            fault = f"{self._shown_url} {self._clean(str(error))}"
            return JudgeUnavailableError(f"{self._who}: {fault}; check {self._vendor.url_variable}")
        return error

    def _unreadable(self, error: ValueError) -> JudgeError:
        if not isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
            # The name of the host or a parameter cannot be written.
            msg = f"{self._who} cannot be asked at {self._shown_url}: {self._clean(_said(error))}"
            return JudgeError(f"{msg}; check {self._vendor.url_variable} and the parameters")
        sent = error.doc if isinstance(error, json.JSONDecodeError) else error.object
        text = sent[:1000].decode("utf-8", "replace") if isinstance(sent, bytes) else sent[:1000]
        return UnusableReplyError(f"{self._who} sent what is no answer to the request: {shown(self._clean(text))}")

    def _late(self, call: Call) -> JudgeOutageError:
        advice = "see --rag-timeout, --rag-retries and --rag-concurrency"
        if call.steady and not call.is_crowded:
            why = "nothing else was in flight, so the server was still writing, or answers nothing"
            bound = f"bound the reply ('{self._who}?max_tokens=N')"
            advice = f"see --rag-timeout: {why}; {bound}, or check {self._vendor.url_variable}"
        return JudgeOutageError(f"{self._who}: no answer within {self._timeout:g} s{_tried(call.made)}; {advice}")

    def _unreached(self, cause: str, call: Call) -> JudgeOutageError:
        msg = f"{self._who}: {self._shown_url} cannot be reached{_tried(call.made)} ({self._clean(cause)})"
        proxies = " and the proxies" if getproxies().keys() - {"no"} else ""
        started = "start the server, or " if self._is_private else ""
        raised = f"{msg}; {started}check the network and {self._vendor.url_variable}{proxies}"
        return JudgeOutageError(raised, attempts=call.made)

    def _meaning(self, sdk: Any, error: Any, call: Call) -> Exception:
        """Return the error of ours for what ended a call; what is a fault of ours as it is."""
        attempts, tried = call.made, _tried(call.made)
        if call.final is not None:
            return self._ended(call.final, call)
        if isinstance(error, asyncio.TimeoutError):
            msg = f"{self._who}: no answer within {self._deadline:g} s in all; see --rag-timeout and --rag-retries"
            return JudgeOutageError(msg)
        if isinstance(error, sdk.APITimeoutError):
            return self._late(call)
        if isinstance(error, sdk.APIConnectionError):
            return self._unreached(_said(error.__cause__ or error), call)
        if isinstance(error, sdk.APIStatusError):
            kind, text = self._status(error.status_code, error, tried)
            found = kind(f"{self._who}: {text}")
            if isinstance(found, JudgeOutageError) and error.status_code != HTTPStatus.TOO_MANY_REQUESTS:
                found.attempts = attempts
            return found
        if isinstance(error, sdk.APIError):
            return JudgeError(f"{self._who} failed: {self._clean(_said(error))}")
        return self._unreadable(error) if isinstance(error, ValueError) else error

    def _status(self, status: int, error: Any, tried: str) -> tuple[type[JudgeError], str]:
        said = self._clean(said_by(error))
        key, url, model = self._vendor.key_variable, self._vendor.url_variable, self._model
        marks = f"{getattr(error, 'code', '')} {getattr(error, 'type', '')} {error.body}"
        if "insufficient_quota" in marks or "credit balance is too low" in said:
            return JudgeUnavailableError, f"the account has no credit left ({said}); see the provider's billing page"
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            # What no server can do, and a text that is too long for it, are no outage.
            lasting = JudgeUnavailableError if status == HTTPStatus.NOT_IMPLEMENTED else JudgeError
            kind = lasting if status == HTTPStatus.NOT_IMPLEMENTED or _TOO_LARGE.search(said) else JudgeOutageError
            return kind, f"the server failed with status {status}{tried} ({said})"
        gone, busy = JudgeUnavailableError, JudgeOutageError
        meant: dict[int, tuple[type[JudgeError], str]] = {
            401: (gone, f"the key was refused; check {key}"),
            403: (gone, f"the key may not use the model {model} ({said}); check {key}"),
            404: (gone, f"{self._shown_url} knows no model {model} ({said}); check its name and {url}"),
            429: (busy, f"asked too fast{tried} ({said}); lower --rag-concurrency or raise --rag-retries"),
        }
        return meant.get(status, (JudgeError, f"the request was rejected with status {status} ({said})"))

    def _clean(self, text: str) -> str:
        text = _QUERY.sub(r"\1", without(text, (*self._secrets, *self._passwords)))
        return shortened(printable(masked(_PASSWORD.sub("//***@", text))), _SHOWN)

    def without_secrets(self, said: T) -> T:
        """Return what a server said, JSON builtins, without the passwords and the long keys in use: it may echo."""
        return without(said, (*self._passwords, *filter(_LONG_KEY.search, self._secrets)))


def _check_answer(response: Any) -> None:
    """Report "too many requests", and keep the SDK from retrying without credit or what a server can never do."""
    status, said = response.status_code, response.content.decode("utf-8", "replace")
    is_limited = status == HTTPStatus.TOO_MANY_REQUESTS
    if (
        (is_limited and ("insufficient_quota" in said or _NO_CAPACITY.search(said)))
        or status == HTTPStatus.NOT_IMPLEMENTED
        or (status >= HTTPStatus.INTERNAL_SERVER_ERROR and _TOO_LARGE.search(said))
    ):
        response.headers["x-should-retry"] = "false"
    elif is_limited and (place := current_place.get()) and place.too_many(pause_of(response.headers)):
        # The next attempt waits for its place, not in the SDK.
        response.headers["retry-after-ms"] = "1"


def _tried(attempts: int) -> str:
    retries = attempts - 1
    return f", after {retries} {'retry' if retries == 1 else 'retries'}" if retries > 0 else ""


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__


def lacks_capacity(error: Any) -> bool:
    """Tell whether a tier has no capacity just now, which says nothing of the account's limits."""
    is_limited = getattr(error, "status_code", None) == HTTPStatus.TOO_MANY_REQUESTS
    return is_limited and _NO_CAPACITY.search(str(error.body)) is not None


def said_by(error: Any) -> str:
    """Return the message of the server behind an SDK error."""
    return said_in(error.body) or str(error)


def refused_parameter(error: Any, names: Iterable[str]) -> str | None:
    """Return the parameter for which a request was rejected, ``None`` if it is not one of these."""
    said = said_by(error)
    refusing = _REFUSING.search(said) is not None
    candidates = tuple(names)
    # The SDK of Anthropic reads no such field.
    param = getattr(error, "param", None) or field_of(field_of(error.body, "error"), "param")
    if isinstance(param, str) and param in candidates:
        return param
    return next((name for name in candidates if refusing and re.search(rf"\b{re.escape(name)}\b", said)), None)


def field_of(value: object, name: str) -> Any:
    """Return a field of an answer, ``None`` where it has none or is no object."""
    return value.get(name) if isinstance(value, Mapping) else None


def served_by(answer: object, asked: str) -> str:
    """Return the model and the fingerprint that an answer names, "" where that is the model ``asked`` for alone.

    >>> served_by({"model": "m-2026-01-31", "system_fingerprint": "fp_1"}, "m"), served_by({"model": "m"}, "m")
    ('m-2026-01-31 fp_1', '')
    """
    names = [field_of(answer, name) for name in ("model", "system_fingerprint")]
    told = " ".join(name for name in names if isinstance(name, str) and name)
    return "" if told == asked else shortened(printable(masked(told)), _SHOWN)


def counted_reply(
    who: str,
    *,
    prompt: object,
    completion: object = 0,
    cached: object = 0,
    written: object = 0,
    written_1h: object = 0,
    tier: object = None,
    billed: object = None,
) -> Reply:
    """Return a reply without text with the counts of an answer, 0 for what is no count.

    More tokens from the provider's cache than the prompt has are cut to it, with one warning that names ``who``.
    """
    tokens = token_count(prompt)
    read = min(token_count(cached), tokens)
    kept = min(token_count(written), tokens - read)
    if read + kept < token_count(cached) + token_count(written):
        warn_once(f"{who} reports more cached tokens than the prompt has: the prompt's are counted")
    known = isinstance(billed, (int, float)) and not isinstance(billed, bool) and 0 <= billed < math.inf
    return Reply(
        prompt_tokens=tokens,
        completion_tokens=token_count(completion),
        cached_prompt_tokens=read,
        cache_write_tokens=kept,
        cache_write_1h_tokens=min(token_count(written_1h), kept),
        tier=priced_tier(tier),
        billed=float(billed) if known else None,  # type: ignore[arg-type] # a number, looked at above
    )


def parts(text: str, marks: Sequence[int], mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a message as parts that end at the marks, which have the field that marks them, and the rest.

    >>> parts("abc", [2], {"cached": True})
    [{'type': 'text', 'text': 'ab', 'cached': True}, {'type': 'text', 'text': 'c'}]
    """
    ends = [0, *marks]
    cut = [{"type": "text", "text": text[start:end], **mark} for start, end in pairwise(ends)]
    return [*cut, {"type": "text", "text": text[ends[-1] :]}] if ends[-1] < len(text) else cut


def token_count(value: object) -> int:
    """Return a number of tokens as an answer states it, 0 for anything else."""
    return value if type(value) is int and value > 0 else 0


#: The name of a schema that several tasks share.
SHARED_NAME = "answer"
#: The sampling parameters of the first sample of a request, and of further ones.
STEADY = {"temperature": 0}
VARIED = {"temperature": 1}


class ApiJudge(PromptedJudge, Generic[Terms]):
    """A judge behind the API of a ``vendor``."""

    vendor: ClassVar[Vendor]
    #: The terms to begin with.
    offer: ClassVar[Any]
    #: What the API needs besides the sampling parameters.
    needed: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __init__(
        self,
        model: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        prompts: PromptBook | None = None,
        **connection: Unpack[ConnectionOptions],
    ) -> None:
        check_parameters(parameters or ())
        given = dict(parameters or {})
        # The tier is no sampling parameter, and replaces none.
        if parameters is None or given.keys() == {SERVICE_TIER}:
            given = {**STEADY, **given}
        if given.get(SERVICE_TIER) == FLEX:
            connection["timeout"] = max(connection.get("timeout", 0), _FLEX_TIMEOUT)
        super().__init__(name=f"{self.kind}:{model}", model=model, parameters={**self.needed, **given}, prompts=prompts)
        self.varied = {} if (parameters or {}).keys() - {SERVICE_TIER} else dict(VARIED)
        self._connection = Connection[Terms](self.vendor, self.offer, model=model, **connection)
        self.url = self._connection.elsewhere

    @property
    def cached_from(self) -> int | None:
        """From how many tokens on the provider caches what it is told to; ``None`` where it cannot be told."""
        return self._cached_from(self._connection.terms) if self._connection.is_direct else None

    @property
    def terms(self) -> Terms:
        """What the server was found to accept so far."""
        return self._connection.terms

    @terms.setter
    def terms(self, terms: Terms) -> None:
        self._connection.terms = terms

    async def complete(self, request: Request) -> Reply:
        """Return what the model writes; raise ``JudgeError`` if the provider fails, refuses or cuts it short."""
        answer = await self._connection.call(
            lambda client, terms: self._send(client, request, terms),
            lambda terms, error: self._concede(terms, request, error),
            single=request.is_single,
            steady=request.parameters.get("temperature") == 0,
        )
        # An error shows the variables of its frames.
        answer = self._connection.without_secrets(answer)
        return self.read(answer, request)

    async def reach(self, send: Callable[[Any, Terms], Awaitable[T]], *, single: bool = False) -> T:
        """Return the result of ``send(client, terms)`` with the SDK's client; raise as :meth:`complete`."""
        return await self._connection.call(send, lambda _terms, _error: None, most=None, single=single)

    def wire(self, request: Request) -> dict[str, Any]:
        """Return the body of a request in a batch, which is a tier of its own, as JSON builtins."""
        body = self._body(request, self._connection.terms)
        return {name: value for name, value in body.items() if name != SERVICE_TIER}

    def concede(self, request: Request, error: Any, terms: Terms) -> bool:
        """Leave out from now on what the server refused under ``terms``; tell whether that was anything optional."""
        conceded = self._concede(terms, request, error)
        if conceded is not None and self._connection.terms == terms:
            self._connection.terms = conceded
        return conceded is not None

    def read(self, answer: Any, request: Request) -> Reply:
        """Return the reply of an answer of the API, as JSON builtins; raise as :meth:`complete`."""
        spent = self._spent(answer)
        if (problem := self._problem(answer)) is not None:
            is_counted = spent.prompt_tokens or spent.completion_tokens
            message, usage = f"{self.name} {problem.text}", spent.usage(request) if is_counted else None
            if not problem.passing:
                raise JudgeError(message, usage=usage)
            raise UnusableReplyError(message, spent=spent if usage else None, usage=usage, is_cut=problem.is_cut)
        return replace(spent, text=self._text(answer), served=served_by(answer, self.model))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    # What each API has of its own: from how many tokens on it caches, None where it refused to be told what; the body
    # of a request as JSON builtins, and its answer; terms without what it refused, None if that is nothing optional;
    # why an answer has no reply, None if it has one; what it took, see counted_reply(); its text if it has a reply.
    @abstractmethod
    def _cached_from(self, terms: Terms) -> int | None: ...
    @abstractmethod
    def _body(self, request: Request, terms: Terms) -> dict[str, Any]: ...
    @abstractmethod
    async def _send(self, client: Any, request: Request, terms: Terms) -> Any: ...
    @abstractmethod
    def _concede(self, terms: Terms, request: Request, error: Any) -> Terms | None: ...
    @abstractmethod
    def _problem(self, answer: Any) -> Problem | None: ...
    @abstractmethod
    def _spent(self, answer: Any) -> Reply: ...
    @abstractmethod
    def _text(self, answer: Any) -> str: ...
