"""What one run shares: the judge, the embedder, the desk they are asked at, and how many requests are in flight."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics import loop
from pytest_ragmetrics.budget import Budget
from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.key import EMBEDDING
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cache.transport import CachedTransport, Mode
from pytest_ragmetrics.dry_run import Forecast
from pytest_ragmetrics.embedders.embedder import Embedder, as_embedder
from pytest_ragmetrics.embedders.openai import OpenAIEmbedder
from pytest_ragmetrics.embedders.specs import make_embedder
from pytest_ragmetrics.judges.custom import as_judge
from pytest_ragmetrics.judges.judge import BudgetedJudge, Judge, PromptedJudge
from pytest_ragmetrics.judges.rendering import PromptBook
from pytest_ragmetrics.judges.specs import make_judge

if TYPE_CHECKING:
    from pytest_ragmetrics.dry_run import DryRun

# After a provider said "too many requests": how long nothing is widened again.
_COOL_DOWN = 5.0
# One overload answers many requests at once, and is one reason to narrow.
_ONE_OVERLOAD = 1.0


class Limiter:
    """Bounds the requests in flight; narrows when a provider says that they are too many, and widens again later.

    ``async with limiter:`` around a request; who came first is let in first. Belongs to one event loop. Raises
    ``ValueError`` for a ``width`` below 1.
    """

    def __init__(self, width: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        if width < 1:
            msg = f"at least 1 request must be allowed in flight, not {width}"
            raise ValueError(msg)
        self._full = width
        self._width = width
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._clock = clock
        self._narrowed = -math.inf

    @property
    def width(self) -> int:
        """How many requests may be in flight now."""
        return self._width

    def narrow(self) -> None:
        """Halve what may be in flight, at most once a second."""
        now = self._clock()
        if now - self._narrowed >= _ONE_OVERLOAD:
            self._narrowed = now
            self._width = max(1, self._width // 2)

    async def __aenter__(self) -> None:
        if self._busy < self._width:
            # Then nobody waits: a place that is left is handed on at once.
            self._busy += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                # Whoever left in the meantime may have passed over it already.
                with suppress(ValueError):
                    self._waiting.remove(turn)
            else:
                self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._width < self._full and self._clock() - self._narrowed >= _COOL_DOWN:
            self._width += 1
        self._leave()

    def _leave(self) -> None:
        self._busy -= 1
        while self._waiting and self._busy < self._width:
            turn = self._waiting.popleft()
            if not turn.done():
                self._busy += 1
                turn.set_result(None)


def _rehearsal(desk: CachedTransport, forecast: Forecast) -> DryRun:
    from pytest_ragmetrics.dry_run import DryRun

    return DryRun(desk, forecast)


class Engine:
    """Makes the judge, the embedder and the desk of a run when they are first needed, and closes them at its end.

    ``judge`` and ``embedder`` are specs, ``cache_dir`` and ``cassette`` the places where answers are kept,
    ``concurrency`` bounds the requests in flight, ``timeout`` is that of one attempt in seconds. ``offer_judge`` and
    ``offer_embedder`` may make something of a spec first, or return ``None``. ``asker`` names the test that is asking,
    ``budget`` is what all requests together may take. With a ``forecast`` none is made, and nothing is kept.
    The rest is as :class:`~pytest_ragmetrics.cache.transport.CachedTransport` has it. All clients live on the
    background loop.
    """

    def __init__(
        self,
        *,
        judge: str = "auto",
        embedder: str = "auto",
        cache: Mode = "auto",
        cache_dir: Path | None = None,
        cassette: Path | Cassette | None = None,
        salt: str = "",
        concurrency: int = 32,
        timeout: float = 60,
        retries: int = 5,
        prompts: Path | None = None,
        offer_judge: Callable[[str], Any] = lambda _: None,
        offer_embedder: Callable[[str], Any] = lambda _: None,
        redact: Callable[[str], str] | None = None,
        run: str | None = None,
        asker: Callable[[], str | None] = lambda: None,
        budget: Budget | None = None,
        forecast: Forecast | None = None,
    ) -> None:
        self._specs = judge, embedder
        self._timeout = timeout
        self._retries = retries
        self._prompts = PromptBook(folder=prompts)
        self._offers = offer_judge, offer_embedder
        self._judges: dict[str, Judge] = {}
        self._embedders: dict[str, Embedder] = {}
        # Two that ask for the same judge at once must get the same one, with one client.
        self._making = threading.Lock()
        self._store = None if cache_dir is None or cache == "off" else Store(cache_dir)
        if forecast is not None and self._store is not None and not self._store.exists():
            # Looking into it would make it.
            self._store = None
        self._cassette = Cassette(cassette) if isinstance(cassette, Path) else cassette
        self.concurrency = concurrency
        self.limiter = Limiter(concurrency)
        self.desk = CachedTransport(
            store=self._store,
            cassette=self._cassette,
            mode=cache,
            salt=salt,
            limit=self.limiter,
            width=concurrency,
            redact=redact,
            run=run,
            asker=asker,
            budget=budget,
        )
        self._rehearsal = None if forecast is None else _rehearsal(self.desk, forecast)
        self._budget = budget
        #: The judges and embedders that ask the budget; some of them were made elsewhere, and are used after this run.
        self._charged: list[PromptedJudge | OpenAIEmbedder] = []

    def judge(self, given: Judge | str | None = None) -> Judge:
        """Return the judge of a spec, or of the run; raise ``JudgeNotConfiguredError`` if there is none.

        Replaying a cassette, ``auto`` is the model that it was recorded with, which needs no key. A judge that is given
        is the one returned; it is asked within the limits of the run, and not closed at its end. Only one that would
        know nothing of a budget comes back in a shell that does.
        """
        if isinstance(given, Judge):
            judge = given if self._rehearsal is None else self._rehearsal.judge(given, given.name)
        else:
            spec = given or self._specs[0]
            with self._making:
                if spec not in self._judges:
                    self._judges[spec] = self._make_judge(spec)
                judge = self._judges[spec]
        if isinstance(judge, PromptedJudge):
            judge.on_rate_limit = self.limiter.narrow
            self._charge(judge)
        elif self._budget is not None and self._rehearsal is None and judge.is_paid:
            return judge if isinstance(judge, BudgetedJudge) else BudgetedJudge(judge, self._budget)
        return judge

    def embedder(self, given: Embedder | str | None = None) -> Embedder:
        """Return an embedder as :meth:`judge` returns a judge."""
        if isinstance(given, Embedder):
            embedder = given if self._rehearsal is None else self._rehearsal.embedder(given, given.name)
        else:
            spec = given or self._specs[1]
            with self._making:
                if spec not in self._embedders:
                    self._embedders[spec] = self._make_embedder(spec)
                embedder = self._embedders[spec]
        if isinstance(embedder, OpenAIEmbedder):
            embedder.on_rate_limit = self.limiter.narrow
            embedder.limit = self.limiter
            self._charge(embedder)
        return embedder

    def close(self) -> None:
        """Wait for what is being paid for, then close every client and the store; asking again opens them again."""
        loop.run(self.aclose())

    async def aclose(self) -> None:
        """Do as :meth:`close`, on the background loop."""
        judges, self._judges = self._judges, {}
        embedders, self._embedders = self._embedders, {}
        # The others are to be closed whatever one of them does.
        async with AsyncExitStack() as stack:
            if self._store is not None:
                stack.callback(self._store.close)
            for judge in judges.values():
                stack.push_async_callback(judge.aclose)
            for embedder in embedders.values():
                stack.push_async_callback(embedder.aclose)
            await self.desk.settle()
        while self._charged:
            self._charged.pop().budget = None

    def _charge(self, asked: PromptedJudge | OpenAIEmbedder) -> None:
        """Have a judge or an embedder ask the budget of this run, and no other."""
        if asked.budget is not self._budget:
            asked.budget = self._budget
            self._charged.append(asked)

    def _make_judge(self, spec: str) -> Judge:
        if self._rehearsal is None:
            return self._made_judge(spec)
        return self._rehearsal.judge_of(lambda: self._made_judge(spec), spec)

    def _make_embedder(self, spec: str) -> Embedder:
        if self._rehearsal is None:
            return self._made_embedder(spec)
        return self._rehearsal.embedder_of(lambda: self._made_embedder(spec), spec)

    def _made_judge(self, spec: str) -> Judge:
        offered = self._offers[0](spec)
        if offered is not None:
            return as_judge(offered, name=spec, prompts=self._prompts)
        spec = self._as_recorded(spec, embedding=False)
        return make_judge(spec, timeout=self._timeout, retries=self._retries, prompts=self._prompts)

    def _made_embedder(self, spec: str) -> Embedder:
        offered = self._offers[1](spec)
        if offered is not None:
            return as_embedder(offered, name=spec)
        spec = self._as_recorded(spec, embedding=True)
        return make_embedder(spec, timeout=self._timeout, retries=self._retries)

    def _as_recorded(self, spec: str, *, embedding: bool) -> str:
        """Return what ``auto`` stands for in a replay, if the cassette holds answers of one model alone."""
        if spec != "auto" or self.desk.mode != "replay" or self._cassette is None:
            return spec
        requests = [e.request for e in self._cassette.entries.values() if (e.task == EMBEDDING) is embedding]
        models = {f"{request['kind']}:{request['model']}" for request in requests}
        return models.pop() if len(models) == 1 else spec
