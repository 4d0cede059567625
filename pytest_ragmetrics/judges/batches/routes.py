"""The batch routes of the providers: how a batch is posted, found again, followed and read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.judges.batches.ledger import Batch
from pytest_ragmetrics.judges.providers.connection import ApiJudge, field_of, said_by
from pytest_ragmetrics.judges.transports.values import JudgeOutageError, JudgeUnavailableError, Provider

T = TypeVar("T")
#: Waits for seconds, as ``asyncio.sleep`` does.
Pause = Callable[[float], Awaitable[object]]

# How far the clocks of provider and this machine may differ.
_SKEW = timedelta(minutes=2)
# Seconds before the file of a batch is looked for again, which is not always found at once.
_UPLOADING = (0.5, 2.0, 5.0)
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


class Routes(Protocol):
    """The batch routes of a provider."""

    #: The most requests and bytes of a batch.
    limits: tuple[int, int]

    async def post(self, judge: ApiJudge[Any], name: str, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        """Post a batch once, and return its ID; raise ``JudgeOutageError`` if it may have been accepted."""

    async def look(self, judge: ApiJudge[Any], batch: Batch, known: frozenset[str]) -> list[str]:
        """Return the IDs that a batch may have which was posted, if it was; ``known`` are those of others."""

    async def progress(self, judge: ApiJudge[Any], identifier: str) -> BatchProgress:
        """Return how far a batch is."""

    async def lines(self, judge: ApiJudge[Any], identifier: str) -> list[Line]:
        """Return what a batch that has ended says, in any order."""


async def _reached(
    judge: ApiJudge[Any], send: Callable[[Any], Awaitable[T]], missing: str, *, single: bool = False
) -> T:
    """Return the result of ``send(client)``; ``missing`` is said where there is no such route."""

    async def sent(client: Any, _: Any) -> T:
        try:
            return await send(client)
        except Exception as error:
            if getattr(error, "status_code", None) in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
                raise JudgeUnavailableError(f"{judge.name}: {missing} ({said_by(error)})") from None
            raise

    return await judge.reach(sent, single=single)


def _no_batches(judge: ApiJudge[Any]) -> str:
    return f"the server has no batches; run without --rag-batch, or check {judge.vendor.url_variable}"


async def _get(judge: ApiJudge[Any], path: str, missing: str, *, cast_to: Any = object) -> Any:
    return await _reached(judge, lambda client: client.get(path, cast_to=cast_to), missing)


def _gone(identifier: str) -> str:
    return f"batch {identifier} is not there: it is of another account or workspace, or too old"


async def _text(judge: ApiJudge[Any], path: str, identifier: str, wait: Pause) -> list[Any]:
    """Return what is in a file of JSON lines, of a line that is no JSON the line; one cut off is fetched again."""
    for pause in (*_FETCHING, None):
        text = await _get(judge, path, f"the results of batch {identifier} are not there", cast_to=str)
        rows = [_read_line(line) for line in text.split("\n") if line.strip()]
        if text.endswith("\n") or not rows or not isinstance(rows[-1], str):
            break
        if pause is None:
            msg = f"{judge.name}: the results of batch {identifier} are cut off; collect them again later"
            raise JudgeOutageError(msg)
        await wait(pause)
    return rows


def _read_line(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line


def _keyed(rows: Sequence[Any], read: Callable[[Any], tuple[Any, Any]]) -> list[Line]:
    """Return lines of results; ``read`` returns the body of a row, or ``None`` and an error."""
    keys = [field_of(row, "custom_id") for row in rows]
    nameless = (None, {"message": "a line of the results names no request"})
    return [(key, *read(row)) if isinstance(key, str) else ("", *nameless) for key, row in zip(keys, rows, strict=True)]


async def _pages(judge: ApiJudge[Any], path: str, after: str) -> Any:
    """Yield the batches of an account, the newest first."""
    cursor = ""
    while True:
        page = await _get(judge, f"{path}?limit=100{cursor}", _no_batches(judge))
        for item in page["data"]:
            yield item
        if not page.get("has_more") or not page["data"]:
            return
        cursor = f"&{after}={page['data'][-1]['id']}"


class OpenAIRoutes:
    """``/v1/files`` and ``/v1/batches``; the name of a batch is in its metadata."""

    limits = (50_000, 190_000_000)
    _ENDPOINT = "/v1/chat/completions"
    _ENDED = frozenset(("completed", "failed", "expired", "cancelled"))

    def __init__(self, pause: Pause) -> None:
        self._pause = pause

    async def post(self, judge: ApiJudge[Any], name: str, bodies: Mapping[str, Mapping[str, Any]]) -> str:
        """Post a batch once, as the protocol says."""
        lines = (
            {"custom_id": key, "method": "POST", "url": self._ENDPOINT, "body": body} for key, body in bodies.items()
        )
        content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
        # A file is not paid for: it may be uploaded twice.
        upload = {"file": (f"{name}.jsonl", content), "purpose": "batch"}
        file = await _reached(judge, lambda client: client.files.create(**upload), _no_batches(judge))
        body = {
            "input_file_id": file.id,
            "endpoint": self._ENDPOINT,
            "completion_window": "24h",
            "metadata": {"ragmetrics": name},
        }

        async def create(client: Any) -> Any:
            for pause in _UPLOADING:
                try:
                    return await client.post("/batches", body=body, cast_to=object)
                except Exception as error:
                    is_early = getattr(error, "status_code", None) == HTTPStatus.BAD_REQUEST
                    if not is_early or "find file" not in said_by(error).lower():
                        raise
                    await self._pause(pause)
            return await client.post("/batches", body=body, cast_to=object)

        return _identifier(judge, await _reached(judge, create, _no_batches(judge), single=True))

    async def look(self, judge: ApiJudge[Any], batch: Batch, known: frozenset[str]) -> list[str]:
        """Return the IDs that a batch may have."""
        oldest = (batch.created_at - _SKEW).timestamp()
        found = []
        async for item in _pages(judge, "/batches", "after"):
            if (item.get("metadata") or {}).get("ragmetrics") == batch.name and item["id"] not in known:
                found.append(item["id"])
            if item.get("created_at", oldest) < oldest:
                break
        return found

    async def progress(self, judge: ApiJudge[Any], identifier: str) -> BatchProgress:
        """Return how far a batch is."""
        batch = await _get(judge, f"/batches/{identifier}", _gone(identifier))
        counts, state = batch.get("request_counts") or {}, str(batch.get("status"))
        failure = None
        if state == "failed":
            errors = (batch.get("errors") or {}).get("data") or [{"message": "no reason given"}]
            said = (f"line {e['line']}: {e.get('message')}" if e.get("line") else e.get("message") for e in errors[:3])
            failure = "; ".join(map(str, said))
        done = (counts.get("completed") or 0) + (counts.get("failed") or 0)
        return BatchProgress(
            ended=state in self._ENDED, state=state, done=done, total=counts.get("total") or 0, failure=failure
        )

    async def lines(self, judge: ApiJudge[Any], identifier: str) -> list[Line]:
        """Return what a batch that has ended says."""
        batch = await _get(judge, f"/batches/{identifier}", _gone(identifier))
        # One is null where all lines failed or none did, and may be empty.
        files = [file for file in (batch.get("output_file_id"), batch.get("error_file_id")) if file]
        rows = [row for file in files for row in await _text(judge, f"/files/{file}/content", identifier, self._pause)]
        return _keyed(rows, self._read)

    def _read(self, row: Any) -> tuple[Any, Any]:
        response = field_of(row, "response")
        body = field_of(response, "body")
        if field_of(response, "status_code") == HTTPStatus.OK and isinstance(body, dict):
            return body, None
        return None, field_of(row, "error") or body or {"message": "no reply and no reason"}


class AnthropicRoutes:
    """``/v1/messages/batches``; it keeps no name, so a batch is found again by its time and size."""

    limits = (100_000, 240_000_000)

    def __init__(self, pause: Pause) -> None:
        self._pause = pause

    async def post(self, judge: ApiJudge[Any], name: str, bodies: Mapping[str, Mapping[str, Any]]) -> str:  # noqa: ARG002 - there is no place for the name
        """Post a batch once, as the protocol says."""
        requests = [{"custom_id": key, "params": body} for key, body in bodies.items()]

        async def create(client: Any) -> Any:
            return await client.post("/v1/messages/batches", body={"requests": requests}, cast_to=object)

        return _identifier(judge, await _reached(judge, create, _no_batches(judge), single=True))

    async def look(self, judge: ApiJudge[Any], batch: Batch, known: frozenset[str]) -> list[str]:
        """Return the IDs that a batch may have."""
        oldest = batch.created_at - _SKEW
        found = []
        async for item in _pages(judge, "/v1/messages/batches", "after_id"):
            if datetime.fromisoformat(item["created_at"].replace("Z", "+00:00")).astimezone(timezone.utc) < oldest:
                break
            if item["id"] not in known and sum(item["request_counts"].values()) == len(batch.keys):
                found.append(item["id"])
        return found

    async def progress(self, judge: ApiJudge[Any], identifier: str) -> BatchProgress:
        """Return how far a batch is."""
        batch = await _get(judge, f"/v1/messages/batches/{identifier}", _gone(identifier))
        counts, state = batch["request_counts"], str(batch["processing_status"])
        total = sum(counts.values())
        ended = state == "ended" and bool(batch.get("results_url"))
        return BatchProgress(ended=ended, state=state, done=total - counts.get("processing", 0), total=total)

    async def lines(self, judge: ApiJudge[Any], identifier: str) -> list[Line]:
        """Return what a batch that has ended says."""
        batch = await _get(judge, f"/v1/messages/batches/{identifier}", _gone(identifier))
        return _keyed(await _text(judge, batch["results_url"], identifier, self._pause), self._read)

    def _read(self, row: Any) -> tuple[Any, Any]:
        result = field_of(row, "result")
        if field_of(result, "type") == "succeeded":
            return field_of(result, "message"), None
        error = field_of(field_of(result, "error"), "error")
        return None, error or {"message": f"the request is {field_of(result, 'type') or 'without a result'}"}


def _identifier(judge: ApiJudge[Any], made: Any) -> str:
    identifier = made.get("id") if isinstance(made, dict) else None
    if not identifier:
        raise JudgeError(f"{judge.name}: {_no_batches(judge)}: it answered {made!r:.80}")
    return str(identifier)


def as_error(said: object) -> SimpleNamespace:
    """Return the error of a line with the fields of an SDK error that tell what a server refuses."""
    inner = said.get("error", said) if isinstance(said, dict) else None
    return SimpleNamespace(body=said, param=inner.get("param") if isinstance(inner, dict) else None)


def routes_of(provider: Provider[Any] | None, pause: Pause = asyncio.sleep) -> Routes | None:
    """Return the batch routes of a judge, ``None`` for one that has none; ``pause`` waits before it tries again."""
    if not isinstance(provider, ApiJudge) or "batches" not in provider.vendor.kinds:
        return None
    routes: Routes = provider.vendor.kind("batches")(pause)
    return routes
