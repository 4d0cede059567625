"""The batch routes of a provider: how a batch is posted, found again, followed and read."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar

from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.judges.batches.ledger import Batch
from pytest_ragmetrics.judges.providers.connection import ApiJudge, field_of, said_by
from pytest_ragmetrics.judges.transports.values import JudgeOutageError, JudgeUnavailableError, Provider

T = TypeVar("T")
#: Waits for seconds, as ``asyncio.sleep`` does.
Pause = Callable[[float], Awaitable[object]]
#: The bodies of requests by their keys.
Bodies = Mapping[str, Mapping[str, Any]]

# How far the clocks of provider and this machine may differ.
_SKEW = timedelta(minutes=2)
# Seconds before results that are cut off are fetched again.
_FETCHING = (1.0, 5.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchProgress:
    """How far a batch is; ``failure`` is why all of it failed."""

    ended: bool
    state: str
    done: int = 0
    total: int = 0
    failure: str | None = None


#: The key of a request, and the body of its reply, or the error in its place. A line that names no request has no key.
Line = tuple[str, Any, Any]


class Routes(ABC):
    """The batch routes of the provider of a ``judge``; ``pause`` waits before something is tried again."""

    #: The most requests and bytes of a batch.
    limits: ClassVar[tuple[int, int]]
    #: Where the batches are, and the parameter that has a page begin after one of them.
    path: ClassVar[str]
    after: ClassVar[str]

    def __init__(self, judge: ApiJudge[Any], pause: Pause) -> None:
        self.judge = judge
        self._pause = pause

    async def post(self, name: str, bodies: Bodies) -> str:
        """Post a batch once, and return its ID; raise ``JudgeOutageError`` if it may have been accepted."""
        made = await self._posted(name, bodies)
        if identifier := field_of(made, "id"):
            return str(identifier)
        raise JudgeError(f"{self.judge.name}: {self._none_here}: it answered {made!r:.80}")

    async def look(self, batch: Batch, known: frozenset[str]) -> list[str]:
        """Return the IDs that a batch may have which was posted, if it was; ``known`` are those of others."""
        found: list[str] = []
        path = f"{self.path}?limit=100"
        while True:
            page = await self._reach(lambda client: client.get(path, cast_to=object))  # noqa: B023 - awaited here
            # The newest is first.
            for item in page["data"]:
                if self._created(item) < batch.created_at - _SKEW:
                    return found
                if item["id"] not in known and self._is_like(item, batch):
                    found.append(item["id"])
            if not page.get("has_more") or not page["data"]:
                return found
            path = f"{self.path}?limit=100&{self.after}={page['data'][-1]['id']}"

    async def progress(self, identifier: str) -> BatchProgress:
        """Return how far a batch is."""
        return self._progress(await self._batch(identifier))

    async def lines(self, identifier: str) -> list[Line]:
        """Return what a batch that has ended says, in any order."""
        files = self._files(await self._batch(identifier))
        rows = [row for file in files for row in await self._rows(file, identifier)]
        keyed = ((field_of(row, "custom_id"), row) for row in rows)
        # Nobody waits for the error of a line that names no request.
        return [(key, *self._read(row)) if isinstance(key, str) else ("", None, {}) for key, row in keyed]

    # What each provider does in its own way: posts a batch, once; tells of a batch in its list when it was posted and
    # whether it may be ours; and how far a batch is, the paths of its results, and the body or the error of a row.
    @abstractmethod
    async def _posted(self, name: str, bodies: Bodies) -> Any: ...
    @abstractmethod
    def _created(self, item: Any) -> datetime: ...
    @abstractmethod
    def _is_like(self, item: Any, batch: Batch) -> bool: ...
    @abstractmethod
    def _progress(self, batch: Any) -> BatchProgress: ...
    @abstractmethod
    def _files(self, batch: Any) -> list[str]: ...
    @abstractmethod
    def _read(self, row: Any) -> tuple[Any, Any]: ...

    @property
    def _none_here(self) -> str:
        return f"the server has no batches; run without --rag-batch, or check {self.judge.vendor.url_variable}"

    async def _reach(self, send: Callable[[Any], Awaitable[T]], missing: str = "", *, single: bool = False) -> T:
        """Return the result of ``send(client)``; ``missing`` is the error where there is no such route."""

        async def sent(client: Any, _: Any) -> T:
            try:
                return await send(client)
            except Exception as error:
                if getattr(error, "status_code", None) in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
                    fault = f"{missing or self._none_here} ({said_by(error)})"
                    raise JudgeUnavailableError(f"{self.judge.name}: {fault}") from None
                raise

        return await self.judge.reach(sent, single=single)

    async def _batch(self, identifier: str) -> Any:
        gone = f"batch {identifier} is not there: it is of another account or workspace, or too old"
        return await self._reach(lambda client: client.get(f"{self.path}/{identifier}", cast_to=object), gone)

    async def _rows(self, path: str, identifier: str) -> list[Any]:
        """Return what is in a file of JSON lines, of a line that is no JSON the line; one cut off is fetched again."""
        for pause in (*_FETCHING, None):
            gone = f"the results of batch {identifier} are not there"
            text = await self._reach(lambda client: client.get(path, cast_to=str), gone)
            rows = [_read_line(line) for line in text.split("\n") if line.strip()]
            if text.endswith("\n") or not rows or not isinstance(rows[-1], str):
                break
            if pause is None:
                msg = f"{self.judge.name}: the results of batch {identifier} are cut off; collect them again later"
                raise JudgeOutageError(msg)
            await self._pause(pause)
        return rows


def _read_line(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line


def as_error(body: object) -> SimpleNamespace:
    """Return the error of a line with the fields of an SDK error that tell what a server refuses."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    return SimpleNamespace(body=body, param=inner.get("param") if isinstance(inner, dict) else None)


def has_routes(provider: Provider[Any] | None) -> bool:
    """Tell whether a judge has batch routes."""
    return isinstance(provider, ApiJudge) and "batches" in provider.vendor.kinds


def routes_of(judge: ApiJudge[Any], pause: Pause = asyncio.sleep) -> Routes:
    """Return the batch routes of a judge that has some."""
    routes: Routes = judge.vendor.kind("batches")(judge, pause)
    return routes
