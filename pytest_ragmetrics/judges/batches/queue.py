"""The link that holds requests back until nothing can go on without a reply, and has them answered in batches."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from pytest_ragmetrics.core.codec import dump, load
from pytest_ragmetrics.core.errors import BatchPendingError, JudgeError, RagMetricsError
from pytest_ragmetrics.core.loop import in_child
from pytest_ragmetrics.judges.batches.ledger import Batch, BatchAnswer, Failed, Ledger, new_name
from pytest_ragmetrics.judges.batches.routes import BatchProgress, Line, Pause, Routes, as_error, has_routes, routes_of
from pytest_ragmetrics.judges.embedders.batches import split
from pytest_ragmetrics.judges.prices import estimated_tokens, price
from pytest_ragmetrics.judges.providers.connection import ApiJudge, said_by
from pytest_ragmetrics.judges.transports.budget import Budget
from pytest_ragmetrics.judges.transports.pace import ANSWER_TOKENS
from pytest_ragmetrics.judges.transports.values import AnyRequest, JudgeOutageError, Reply, Request, Transport
from pytest_ragmetrics.text.unicode import printable

#: ``wait`` polls until replies are there; ``submit`` posts and ends; ``collect`` looks once, and posts what follows.
BatchMode = Literal["wait", "submit", "collect"]

# Seconds without a new request, a reply or an answer of the application after which nothing can go on. Too short a time
# costs a further batch, never a wrong reply.
_QUIET = 0.1
# An application that asks the judge itself waits for the batch that waits for it: after so long the batch goes.
_STALLED = 600.0
# Seconds between two looks at a batch; the last is repeated.
_POLL = (1.0, 5.0, 15.0, 60.0)
_JITTER = 0.1
# Seconds until a batch that a provider accepted stands in its list, whoever was killed meanwhile.
_LISTED = 5.0
_ATTEMPTS = 3
# Bytes of a line besides the body.
_LINE = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Batching:
    """How the requests of a run are answered in batches.

    ``is_busy`` tells whether something else may still lead to requests. With ``fallback`` a request whose line failed
    is sent on by itself. ``note`` is told what a request waits for, where it is made. ``pause`` waits for seconds.
    """

    mode: BatchMode
    fallback: bool = False
    is_busy: Callable[[], bool] = lambda: False
    note: Callable[[str], None] = lambda _: None
    pause: Pause = asyncio.sleep


@dataclass(eq=False, kw_only=True, slots=True)
class _Held:
    """A request that waits for a batch, and how many wait for it."""

    request: Request
    future: asyncio.Future[BatchAnswer]
    callers: int = 0

    @property
    def judge(self) -> ApiJudge[Any]:
        return cast("ApiJudge[Any]", self.request.provider)


class BatchQueue:
    """Sends requests to judges with batch routes in batches, all others on at once.

    ``key_of`` names a request, the same in every run; ``redact`` is applied to the replies that are kept. ``budget`` is
    charged with an estimate when a batch is posted, and with the difference when this run reads its replies.
    Belongs to one event loop.
    """

    def __init__(
        self,
        following: Transport,
        ledger: Ledger,
        batching: Batching,
        *,
        key_of: Callable[[Request], str],
        redact: Callable[[Reply], Reply] = lambda reply: reply,
        budget: Budget | None = None,
    ) -> None:
        #: How far the batches are that are waited for, in words.
        self.state = ""
        self._following = following
        self._ledger = ledger
        self._batching = batching
        self._key_of = key_of
        self._redact = redact
        self._budget = budget
        self._held: dict[str, _Held] = {}
        #: What is posted at the end of the run, by key.
        self._wave: dict[str, _Held] = {}
        self._names: dict[ApiJudge[Any], str] = {}
        self._driver: asyncio.Task[None] | None = None
        self._changes = 0
        self._live = 0
        self._seen: dict[str, str] = {}
        #: The tokens and dollars that the budget was charged with when a request was posted.
        self._charged: dict[str, tuple[int, float]] = {}
        in_child(self, _held=dict, _wave=dict, _driver=lambda: None, _live=int)

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply; raise ``BatchPendingError`` where it is not there, and why a line of a batch failed."""
        if not isinstance(request, Request) or not has_routes(request.provider):
            return await self._sent_on(request)
        key = self._key_of(request)
        answer = self._ledger.answer(key) or await self._answer(key, request)
        if isinstance(answer, Reply):
            self._charge(key, request, answer)
            return answer
        if self._batching.fallback:
            return await self._sent_on(request)
        raise JudgeError(f"{request.provider.name if request.provider else request.model}: {answer.reason}")

    async def post(self) -> None:
        """Post what was held back to the end of the run; raise ``JudgeError`` where a provider refuses it."""
        wave, self._wave = self._wave, {}
        if errors := await self._post(wave):
            raise errors[0]

    def summary(self, is_stored: Callable[[Sequence[str]], bool]) -> list[str]:
        """Return what to say of the batches at the end of the run, and forget those whose replies are all used."""
        self._ledger.clear_used(is_stored)
        lines = []
        for batch in self._ledger:
            state = self._seen.get(batch.name) or ("ended" if batch.ended else "submitted" if batch.ids else "unknown")
            requests = "1 request" if len(batch.keys) == 1 else f"{len(batch.keys):,} requests"
            lines.append(f"batch {batch.shown}: {batch.judge}, {requests}, {state}")
        if any(not batch.ended for batch in self._ledger):
            lines.append("collect them later with --rag-batch=collect and the same cache folder")
        return lines

    async def aclose(self) -> None:
        """Stop waiting; what was submitted stays in the ledger."""
        if self._driver is not None:
            self._driver.cancel()
            await asyncio.gather(self._driver, return_exceptions=True)
        self._ledger.close()

    async def _sent_on(self, request: AnyRequest) -> Reply:
        self._live += 1
        try:
            return await self._following.send(request)
        finally:
            self._live -= 1
            self._changes += 1

    async def _answer(self, key: str, request: Request) -> BatchAnswer:
        held = self._held.get(key)
        if held is None:
            future = asyncio.get_running_loop().create_future()
            held = self._held[key] = _Held(request=request, future=future)
        self._changes += 1
        if self._driver is None or self._driver.done():
            self._driver = asyncio.ensure_future(self._drive())
        held.callers += 1
        try:
            # Unlike awaiting the future, this does not cancel it for others.
            await asyncio.wait((held.future,))
        finally:
            held.callers -= 1
            if not held.callers and self._held.get(key) is held:
                del self._held[key]
        return held.future.result()

    def _charge(self, key: str, request: Request, reply: Reply) -> None:
        """Charge the budget with what a reply took, instead of what was expected when this run posted its request."""
        charged = self._charged.pop(key, None)
        if charged is not None and self._budget is not None:
            tokens, cost = reply.prompt_tokens + reply.completion_tokens, reply.cost(request) or 0.0
            self._budget.settle(tokens=tokens - charged[0], cost=cost - charged[1])

    async def _drive(self) -> None:
        """Do one wave after another, until nobody waits."""
        while self._held:
            await self._quiet()
            wave, self._held = self._held, {}
            try:
                await (self._waited(wave) if self._batching.mode == "wait" else self._looked(wave))
            except asyncio.CancelledError:
                for held in wave.values():
                    held.future.cancel()
                raise
            except Exception as error:  # noqa: BLE001 - it is raised where the replies are awaited
                _fail(wave.values(), error)
            finally:
                self.state = ""

    async def _quiet(self) -> None:
        """Wait until everything that is under way waits for a reply."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _STALLED
        while True:
            changes, start = self._changes, loop.time()
            await self._batching.pause(_QUIET)
            # On a loop that computes the pause takes longer than it should.
            is_idle = loop.time() - start < 2 * _QUIET and changes == self._changes and not self._live
            if changes != self._changes:
                deadline = loop.time() + _STALLED
            if is_idle and (not self._batching.is_busy() or loop.time() >= deadline):
                return

    async def _waited(self, wave: dict[str, _Held]) -> None:
        """Answer a wave when all of its batches have ended: then what follows is one wave as well."""
        while wave:
            await self._each(wave, self._settle)
            await self._post({key: held for key, held in wave.items() if self._ledger.batch_of(key) is None})
            pauses = iter(_POLL)
            pause = 0.0
            while under_way := self._under_way(wave):
                await self._batching.pause(pause * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311 - no secret
                pause = next(pauses, _POLL[-1])
                await self._each(wave, self._look)
                self.state = "; ".join(f"{batch.shown}: {self._seen.get(batch.name)}" for batch in under_way)
            self._deliver(wave)
            # What was refused for a parameter is posted again without it.
            wave = {key: held for key, held in wave.items() if not held.future.done()}

    async def _looked(self, wave: dict[str, _Held]) -> None:
        """Answer what is there, and hold the rest back."""
        await self._each(wave, self._settle)
        if self._batching.mode == "collect":
            await self._each(wave, self._look)
        self._deliver(wave)
        for key, held in wave.items():
            if held.future.done():
                continue
            known = self._ledger.batch_of(key)
            if known is None:
                self._wave[key] = held
                name = self._names.setdefault(held.judge, new_name())
            else:
                name = known.shown
            _fail([held], BatchPendingError(f"waits for batch {name}"))

    async def _each(self, wave: Mapping[str, _Held], do: Callable[[Batch, Routes, Mapping[str, _Held]], Any]) -> None:
        """Do something with each batch under way, its routes and those that wait for it; they get what it raises."""
        for batch in self._under_way(wave):
            waiting = {key: wave[key] for key in batch.keys if key in wave}
            with _failing(waiting.values()):
                judge = next(iter(waiting.values())).judge
                await do(batch, routes_of(judge, self._batching.pause), waiting)

    def _under_way(self, wave: Mapping[str, _Held]) -> list[Batch]:
        """Return the batches that somebody waits for."""
        found = [self._ledger.batch_of(key) for key, held in wave.items() if not held.future.done()]
        return list({batch.name: batch for batch in found if batch is not None and not batch.ended}.values())

    def _deliver(self, wave: Mapping[str, _Held]) -> None:
        for key, held in wave.items():
            answer = self._ledger.answer(key)
            if answer is not None and not held.future.done():
                self._changes += 1
                held.future.set_result(answer)

    async def _settle(self, batch: Batch, routes: Routes, _: Mapping[str, _Held]) -> None:
        """Find a batch that was about to be posted when its run was killed, or forget it if it was not."""
        if not batch.ids:
            await self._is_found(batch, routes)

    async def _is_found(self, batch: Batch, routes: Routes) -> bool:
        """Note the IDs that a batch may have, or forget it if the provider does not have it; tell which."""
        known = frozenset(identifier for other in self._ledger for identifier in other.ids)
        for pause in (0.0, _LISTED):
            await self._batching.pause(pause)
            if found := await routes.look(batch, known):
                self._ledger.write(replace(batch, ids=tuple(found), found=True))
                return True
        self._ledger.remove(batch)
        return False

    async def _look(self, batch: Batch, routes: Routes, waiting: Mapping[str, _Held]) -> None:
        """Look at a batch once, and keep its replies if it has ended."""
        for identifier in batch.ids:
            try:
                progress = await routes.progress(identifier)
            except JudgeOutageError as error:
                # Not to be reached is no verdict on a batch.
                self._seen[batch.name] = str(error)
                return
            self._seen[batch.name] = f"{progress.state}, {progress.done:,} of {progress.total:,} done"
            if not progress.ended:
                continue
            lines = [] if progress.failure else await routes.lines(identifier)
            named = frozenset(key for key, _, _ in lines if key)
            is_other = named.isdisjoint(batch.keys)
            if len(batch.ids) > 1 and is_other:
                self._ledger.write(replace(batch, ids=tuple(other for other in batch.ids if other != identifier)))
            elif batch.found and named and is_other:
                # Found by its size and time, it was somebody else's: ours was never accepted.
                self._ledger.remove(batch)
            else:
                self._ledger.end(batch, self._read(batch, identifier, progress, lines, waiting))
            return

    def _read(
        self, batch: Batch, identifier: str, progress: BatchProgress, lines: list[Line], waiting: Mapping[str, _Held]
    ) -> dict[str, BatchAnswer]:
        """Return what a batch says about its requests, without those that are refused for an optional parameter."""
        nameless = sum(not key for key, _, _ in lines)
        lost = f"; {nameless:,} of its {len(lines):,} lines name no request" if nameless else ""
        missing = progress.failure or f"there is no line for it, and the batch is {progress.state}{lost}"
        answers: dict[str, BatchAnswer] = dict.fromkeys(batch.keys, Failed(reason=f"batch {identifier}: {missing}"))
        sample = next(iter(waiting.values()))
        judge, terms, again = sample.judge, sample.judge.terms, set()
        for key, body, error in lines:
            if key not in answers or isinstance(answers[key], Reply):
                continue
            request = waiting.get(key, sample).request
            if error is None:
                try:
                    answers[key] = self._redact(replace(judge.read(body, request), tier="batch"))
                except JudgeError as fault:
                    answers[key] = Failed(reason=f"batch {identifier}: {printable(str(fault))}")
            elif judge.concede(request, as_error(error), terms):
                again.add(key)
            else:
                answers[key] = Failed(reason=f"batch {identifier}: {printable(said_by(as_error(error))):.400}")
        return {key: it for key, it in answers.items() if key not in again or isinstance(it, Reply)}

    async def _post(self, wave: Mapping[str, _Held]) -> list[Exception]:
        """Post requests in as few batches as the provider takes; return why some could not be posted."""
        errors: list[Exception] = []
        by_judge: defaultdict[ApiJudge[Any], dict[str, _Held]] = defaultdict(dict)
        for key, held in wave.items():
            by_judge[held.judge][key] = held
        for judge, asked in by_judge.items():
            rows = [(batch.created, batch.terms) for batch in self._ledger if batch.judge == judge.name and batch.terms]
            if rows and judge.terms == judge.offer:
                # What an earlier run found the server to accept: a batch tells only when it has ended.
                judge.terms = load(type(judge.offer), max(rows, key=lambda row: row[0])[1])
            routes = routes_of(judge, self._batching.pause)
            bodies = {key: judge.wire(held.request) for key, held in asked.items() if self._may_be_asked(key, held)}
            sizes = {key: len(json.dumps(body)) + _LINE for key, body in bodies.items()}
            for keys in split(bodies, *routes.limits, size=sizes.__getitem__):
                with _failing((asked[key] for key in keys), errors):
                    name = self._names.pop(judge, None) or new_name()
                    await self._posted(routes, name, {key: bodies[key] for key in keys})
        return errors

    async def _posted(self, routes: Routes, name: str, bodies: Mapping[str, Mapping[str, Any]]) -> None:
        """Post one batch; where it is not known whether it was accepted, look before posting it again."""
        for attempt in range(_ATTEMPTS):
            batch = self._ledger.begin(name, routes.judge.name, bodies, dump(routes.judge.terms))
            try:
                identifier = await routes.post(name, bodies)
            except JudgeOutageError:
                if await self._is_found(batch, routes):
                    return
                if attempt == _ATTEMPTS - 1:
                    raise
            except RagMetricsError:
                self._ledger.remove(batch)
                raise
            else:
                self._ledger.write(replace(batch, ids=(identifier,)))
                return

    def _may_be_asked(self, key: str, held: _Held) -> bool:
        """Charge the budget with what a request will take; tell whether it allows that."""
        if self._budget is None:
            return True
        request, prompt = held.request, estimated_tokens(*held.request.texts)
        kind, model, url = request.kind, request.model, request.url
        cost = price(kind, model, prompt, ANSWER_TOKENS, tier="batch", url=url)
        try:
            with self._budget.request(held.judge.name, kind=kind, model=model, url=url) as receipt:
                receipt.took(prompt, ANSWER_TOKENS, cost=cost)
        except RagMetricsError as error:
            _fail([held], error)
            return False
        self._charged[key] = prompt + ANSWER_TOKENS, cost or 0.0
        return True


@contextmanager
def _failing(waiting: Iterable[_Held], errors: list[Exception] | None = None) -> Iterator[None]:
    """Raise what is raised inside where the replies are awaited that it concerns, and nowhere else."""
    try:
        yield
    except RagMetricsError as error:
        _fail(waiting, error)
        if errors is not None:
            errors.append(error)


def _fail(waiting: Iterable[_Held], error: Exception) -> None:
    for held in waiting:
        if not held.future.done():
            held.future.set_exception(error)
            held.future.exception()  # retrieved: asyncio logs errors that are not


class Noting:
    """The first link of a run with batches: ``note`` is told what a request waits for, where it is made."""

    def __init__(self, following: Transport, note: Callable[[str], None]) -> None:
        self._following = following
        self._note = note

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply; raise what the links below raise."""
        try:
            return await self._following.send(request)
        except BatchPendingError as error:
            self._note(str(error))
            raise
