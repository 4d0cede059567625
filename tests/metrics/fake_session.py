"""A session as the metrics see it, without pytest around it, and a scope without any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_ragmetrics.core import running
from pytest_ragmetrics.core.errors import JudgeNotConfiguredError
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.embedders.embedder import as_embedder
from pytest_ragmetrics.judges.embedders.specs import make_embedder
from pytest_ragmetrics.judges.specs import make_judge
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import AnyRequest, EmbeddingRequest, Reply, Transport

if TYPE_CHECKING:
    from pytest_ragmetrics.judges.embedders.embedder import Embedder
    from pytest_ragmetrics.judges.judge import Judge
    from pytest_ragmetrics.metrics.base import Metric


class FakeSession:
    """Offers a judge, an embedder and a transport, and keeps what was scored."""

    def __init__(
        self, *, judge: Judge | None = None, embedder: object = None, transport: Transport = DIRECT, votes: int = 1
    ) -> None:
        self.transport: Transport = self
        self._transport = transport
        self.concurrency = 8
        self.votes = votes
        self.batched = False
        self.asks_once = False
        self.answering = 0
        self.dry_run = False
        self.metrics: Sequence[Metric | type[Metric]] = ()
        self.module: Mapping[str, object] = {}
        self.baseline: Path | None = None
        self.clusters: Literal["passages", "named"] = "passages"
        self.columns = ""
        self.scorings: list[context.Scoring] = []
        self.embedded: list[Sequence[str]] = []
        self._judge = judge
        self._embedder = embedder

    @contextmanager
    def running(self) -> Iterator[None]:
        running.enter(self)
        try:
            yield
        finally:
            running.leave(self)

    def used(self, metric: object, scoring: context.Scoring) -> None:
        """Note nothing."""

    def scored(self, scoring: context.Scoring) -> None:
        self.scorings.append(scoring)

    async def send(self, request: AnyRequest) -> Reply:
        """Note texts to embed, and pass the request on."""
        if isinstance(request, EmbeddingRequest):
            self.embedded.append(list(request.texts))
        return await self._transport.send(request)

    def judge(self, given: Judge | str | None = None) -> Judge:
        if isinstance(given, str):
            return make_judge(given)
        judge = given or self._judge
        if judge is None:
            msg = "this session has no judge"
            raise JudgeNotConfiguredError(msg)
        return judge

    def embedder(self, given: Embedder | str | None = None) -> Embedder:
        return make_embedder(given) if isinstance(given, str) else given or as_embedder(self._embedder)


@contextmanager
def outside_sessions() -> Iterator[None]:
    """Score as a script does, without the session that runs these tests."""
    around = []
    while (session := context.current().session) is not None:
        running.leave(session)
        around.append(session)
    yield
    for session in reversed(around):
        running.enter(session)
