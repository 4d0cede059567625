"""What one run shares: the judges and embedders it made, and the chain of transports that requests pass."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import EMBEDDING, key_of, redacted_json, request_row
from pytest_ragmetrics.cache.remote import RemoteCache, RemoteMode, open_remote
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cache.transport import CachedTransport, Mode
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import JudgeError, JudgeNotConfiguredError
from pytest_ragmetrics.evaluation.dry_run import DryRun, Forecast
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.batches.ledger import Ledger
from pytest_ragmetrics.judges.batches.queue import Batching, BatchQueue, Noting
from pytest_ragmetrics.judges.embedders.batches import Batches
from pytest_ragmetrics.judges.embedders.embedder import Embedder, as_embedder
from pytest_ragmetrics.judges.embedders.specs import make_embedder
from pytest_ragmetrics.judges.judge import AnsweringJudge, Judge, PromptedJudge, as_judge
from pytest_ragmetrics.judges.panel import Panel
from pytest_ragmetrics.judges.rendering import PromptBook, Reasons
from pytest_ragmetrics.judges.specs import make_judge, panel_members
from pytest_ragmetrics.judges.transports.breaker import CircuitBreakers, ProbingBreaker
from pytest_ragmetrics.judges.transports.budget import Budget, Budgeted
from pytest_ragmetrics.judges.transports.limiter import WIDTH, Limiter, Providers, at_home
from pytest_ragmetrics.judges.transports.pace import Pace
from pytest_ragmetrics.judges.transports.prefixes import Prefixes
from pytest_ragmetrics.judges.transports.values import Repair, Reply, Request, Transport

P = TypeVar("P")


class Engine:
    """Makes the judges and embedders of a run when they are first needed, and closes them at its end.

    ``judge`` and ``embedder`` are specs, ``cache_dir`` and ``cassette`` the places where answers are stored,
    ``concurrency`` bounds the requests in flight, ``width_at_home`` those at first to a server of one's own (4, or
    the former where it is not its default), ``timeout`` is that of one attempt in seconds. ``offer_judge`` and
    ``offer_embedder`` may make something of a spec first, or return ``None``. ``asker`` names the test that is asking,
    ``budget`` is what all requests together may take, ``pace`` how fast they are sent. With a ``forecast`` none is
    made, and nothing is stored. ``cache_url`` is a cache shared with other machines, behind that of ``cache_dir``, used
    as ``cache_url_mode`` says and signed with ``cache_secret``; a run with a cassette leaves it alone: its answers are
    those of the cassette. With ``batching`` requests are answered in batches. The rest is as
    :class:`~pytest_ragmetrics.cache.transport.CachedTransport` has it. All clients live on the background loop.
    """

    def __init__(
        self,
        *,
        judge: str = "auto",
        embedder: str = "auto",
        cache: Mode = "auto",
        cache_dir: Path | None = None,
        cassette: Path | Cassette | None = None,
        cache_url: str | None = None,
        cache_url_mode: RemoteMode = "readwrite",
        cache_secret: str = "",
        salt: str = "",
        concurrency: int = WIDTH,
        width_at_home: int | None = None,
        timeout: float = 60,
        retries: int = 5,
        prompts: Path | None = None,
        reasons: Reasons = "all",
        offer_judge: Callable[[str], Any] = lambda _: None,
        offer_embedder: Callable[[str], Any] = lambda _: None,
        redact: Callable[[str], str] | None = None,
        run: str | None = None,
        asker: Callable[[], str | None] = lambda: None,
        budget: Budget | None = None,
        forecast: Forecast | None = None,
        batching: Batching | None = None,
        pace: Pace | None = None,
        witness: Callable[[str, Request, Reply], None] | None = None,
    ) -> None:
        pace = pace or Pace()
        concurrency = int(min(concurrency, pace.width))
        self._specs = judge, embedder
        self._attempts: dict[str, Any] = {"timeout": timeout, "retries": retries}
        self._prompts = PromptBook(folder=prompts, reasons=reasons)
        self._offers = offer_judge, offer_embedder
        self._judges: dict[str, Judge] = {}
        self._embedders: dict[str, Embedder] = {}
        # Two that ask for the same judge at once must get the same one, with one client.
        self._making = threading.Lock()
        loop.in_child(self, _making=threading.Lock)
        self._store = None if cache_dir is None or cache == "off" else Store(cache_dir)
        self._cassette = Cassette(cassette) if isinstance(cassette, Path) else cassette
        self._is_forecast = forecast is not None
        paying: Transport = Providers() if budget is None else Budgeted(Providers(), budget)
        breaker = ProbingBreaker()
        self.limiter = Limiter(
            concurrency,
            CircuitBreakers(paying, lambda: context.current().breaker or breaker),
            at_home=width_at_home or at_home(concurrency),
            pace=pace,
        )
        self._batches = Batches(self.limiter)
        #: The cache shared with other machines, if there is one.
        self.remote: RemoteCache | None = None
        if cache_url is not None and cassette is None and cache != "off" and forecast is None:
            self.remote = open_remote(cache_url, mode=cache_url_mode, secret=cache_secret)
        #: What holds requests back for batches, if they are wanted.
        self.queue: BatchQueue | None = None
        if batching is not None and forecast is None and cache == "auto" and cache_dir is not None:
            remote, is_busy = self.remote, batching.is_busy
            self.queue = BatchQueue(
                self._batches,
                Ledger(cache_dir),
                batching if remote is None else replace(batching, is_busy=lambda: is_busy() or remote.is_busy),
                key_of=lambda request: key_of(request_row(request), salt=salt, plain=True),
                redact=lambda it: it if redact is None else replace(it, text=redacted_json(it.text, redact)),
                budget=budget,
            )
        self.cache = CachedTransport(
            # Batched requests do not wait for the answer of an equal one.
            Repair(self.queue or Prefixes(self._batches)),
            store=self._store,
            cassette=self._cassette,
            mode=cache,
            salt=salt,
            width=concurrency if self.queue is None else None,
            redact=redact,
            run=run,
            asker=asker,
            remote=self.remote,
            witness=witness,
        )
        self.transport: Transport = self.cache
        if forecast is not None:
            self.transport = DryRun(self.cache, forecast, batched=batching is not None)
        elif self.queue is not None and batching is not None:
            self.transport = Noting(self.cache, batching.note)

    def judge(self, given: Judge | str | None = None) -> Judge:
        """Return the judge of a spec, or of the run; raise ``JudgeNotConfiguredError`` if there is none.

        Replaying a cassette, or without a key, ``auto`` is the model that it was recorded with. A judge that is given
        is asked within the limits of the run, and not closed at its end. It is the one returned, unless it has an
        ``ask`` of its own that costs money: then it is one that sends what it is asked over the transport. The judges
        of a panel are those of their specs.
        """
        judge = given or self._specs[0]
        if isinstance(judge, str):
            # A hook may know specs that this package does not.
            members = panel_members(judge, str)
            judge = Panel(map(self.judge, members)) if members else self._made(self._judges, judge)
        if isinstance(judge, Panel):
            return Panel(map(self.judge, judge.judges))
        return judge if isinstance(judge, PromptedJudge) or not judge.is_paid else AnsweringJudge(judge)

    def embedder(self, given: Embedder | str | None = None) -> Embedder:
        """Return an embedder as :meth:`judge` returns a judge."""
        return given if isinstance(given, Embedder) else self._made(self._embedders, given or self._specs[1])

    def close(self) -> None:
        """Wait for what is being paid for, then close every client and the store; asking again opens them again."""
        loop.run(self.aclose())

    async def aclose(self) -> None:
        """Do as :meth:`close`, on the background loop."""
        self.limiter.is_open = False
        judges, self._judges = self._judges, {}
        embedders, self._embedders = self._embedders, {}
        # One that fails to close must not keep the others open.
        async with AsyncExitStack() as stack:
            if self._store is not None:
                stack.callback(self._store.close)
            if self.remote is not None:
                stack.push_async_callback(self.remote.aclose)
            for judge in judges.values():
                stack.push_async_callback(judge.aclose)
            for embedder in embedders.values():
                stack.push_async_callback(embedder.aclose)
            stack.push_async_callback(self._batches.aclose)
            if self.queue is not None:
                stack.push_async_callback(self.queue.aclose)
            stack.callback(setattr, self.limiter, "is_open", True)  # noqa: FBT003 - of setattr
            stack.callback(self.limiter.pace.close)
            await self.cache.settle()

    def _made(self, made: dict[str, P], spec: str) -> P:
        with self._making:
            if spec not in made:
                made[spec] = self._make(spec, embedding=made is self._embedders)
            return made[spec]

    def _make(self, spec: str, *, embedding: bool) -> Any:
        options: dict[str, Any] = {} if embedding else {"prompts": self._prompts}
        adapt: Callable[..., Any] = as_embedder if embedding else as_judge
        make: Callable[..., Any] = make_embedder if embedding else make_judge
        offered = self._offers[embedding](spec)
        if offered is not None:
            return adapt(offered, name=spec, **options)
        try:
            meant = self._as_recorded(spec, embedding=embedding) if self.cache.mode == "replay" else spec
            return make(meant, **self._attempts, **options)
        except JudgeNotConfiguredError:
            if (recorded := self._as_recorded(spec, embedding=embedding)) != spec:
                return make(recorded, **self._attempts, **options)
            if not self._is_forecast:
                raise
            # Its requests are counted all the same.
            return adapt(_never, name=spec, **options)

    def _as_recorded(self, spec: str, *, embedding: bool) -> str:
        """Return what ``auto`` means to a cassette, if the answers in it are of one model alone."""
        if spec != "auto" or self.cache.mode not in ("replay", "auto") or self._cassette is None:
            return spec
        requests = [e.request for e in self._cassette.entries.values() if (e.task == EMBEDDING) is embedding]
        models = {f"{request['kind']}:{request['model']}" for request in requests}
        return models.pop() if len(models) == 1 else spec


def _never(_: object) -> NoReturn:
    raise JudgeError("a dry run makes no request")
