"""A server on 127.0.0.1 with the batch routes of OpenAI and Anthropic, and their single requests.

Time stands still until a test moves ``clock``: a batch has ended ``delay`` seconds after it was created, and what has
not been done a day after it has expired. ``holds`` names a step ("create:before", "create:after", ...) at which the
server stops until ``release()``; ``reached`` is set there, so that a test can kill the process that waits.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email import message_from_bytes
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tests.fake_openai import FakeOpenAI, Reply, failing
from tests.fake_server import Recorded

if TYPE_CHECKING:
    import pytest

Body = dict[str, Any]
DAY = 86_400.0
_KEPT = 30 * DAY
#: How a batch is refused by the name of the counter of such refusals.
_FAULTS = {
    "rejects": (400, "The batch is rejected."),
    "fails_before": (500, "Internal error."),
    "early": (400, "Cannot find file."),
}


@dataclass(kw_only=True)
class Batch:
    """A batch: its lines by custom_id, and what came of it."""

    id: str
    vendor: str
    created: float
    requests: list[tuple[str, Body]]
    metadata: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    output: list[Body] = field(default_factory=list)
    errors: list[Body] = field(default_factory=list)
    state: str = "in_progress"


class RefusedError(Exception):
    """An error status and its message."""


@dataclass(kw_only=True)
class FakeBatches(FakeOpenAI):
    """The server; it answers single requests as the one of its base does.

    An ``answer`` with an error fails its line. ``expires`` says which are not done within a day. ``fails_after`` counts
    creations that are accepted and answered with 500, ``fails_before`` those that are not accepted, ``rejects`` those
    that are refused, ``early`` those that do not find their file yet, ``cut`` results that end in the middle of a line,
    ``polls_fail`` looks at a batch that fail, ``slow_polls`` those that find it under way. ``foreign`` lines are in
    every result, and ``spoil`` makes the lines of a row. ``most`` is the limit of requests.
    """

    key: str | None = "sk-fake"
    expires: Callable[[Body], bool] = lambda _: False
    delay: float = 0.0
    most: int = 50_000
    fails_after: int = 0
    fails_before: int = 0
    rejects: int = 0
    early: int = 0
    cut: int = 0
    polls_fail: int = 0
    slow_polls: int = 0
    token_limit: bool = False
    has_batches: bool = True
    empty_error_file: bool = False
    foreign: bool = True
    spoil: Callable[[Body], list[str]] = lambda row: [json.dumps(row)]
    holds: str | None = None
    clock: float = field(default_factory=lambda: datetime.now(timezone.utc).timestamp())
    batches: dict[str, Batch] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    #: How often each request was paid for, in batches and singly.
    paid: Counter[str] = field(default_factory=Counter)
    paid_singly: Counter[str] = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)
    reached: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        self.holds = None
        super().release()

    def name_in(self, environment: pytest.MonkeyPatch) -> None:
        """Have the environment name it as both providers."""
        environment.setenv("OPENAI_BASE_URL", self.base_url)
        environment.setenv("ANTHROPIC_BASE_URL", self.root_url)
        for vendor in ("OPENAI", "ANTHROPIC"):
            environment.setenv(f"{vendor}_API_KEY", "sk-fake")

    @property
    def twice(self) -> int:
        return sum(count - 1 for count in (self.paid + self.paid_singly).values())

    async def respond(self, request: Recorded) -> Reply:
        """Return what a request gets, and stop before and after it where a test wants that."""
        step = _step(request)
        await self._stop_at(f"{step}:before")
        reply = await super().respond(request)
        if reply.error is None:
            self.log.append(step)
            self.paid_singly.update([_name(request.body)] if step == "single" else [])
        await self._stop_at(f"{step}:after")
        return reply

    async def _stop_at(self, step: str) -> None:
        if step == self.holds:
            self.reached.set()
            await self.hold()

    def reply_to(self, request: Recorded) -> Reply:
        """Return what the routes of batches say, and to a single request what ``answer`` does."""
        if _step(request) == "single":
            return super().reply_to(request)
        try:
            made = self._route(_step(request), request)
        except RefusedError as refused:
            return failing(*refused.args)
        if isinstance(made, bytes):
            return Reply(raw=made, headers={"content-type": "text/plain"})
        return Reply(raw=json.dumps(made).encode())

    def _route(self, step: str, request: Recorded) -> Body | bytes:
        url = urlsplit(request.path)
        if not self.has_batches:
            raise RefusedError(404, f"There is no {url.path} here.")
        if step == "upload":
            return self._upload(request.body, request.headers["content-type"])
        vendor = "anthropic" if "messages" in url.path else "openai"
        if step == "create":
            return self._create(request.body, vendor)
        if step == "list":
            return self._list(parse_qs(url.query), vendor)
        if step == "content":
            return self._content(url.path)
        if self._happens("polls_fail"):
            raise RefusedError(503, "Overloaded.")
        return self._shown(self._known(url.path.rsplit("/", 1)[1]), advance=not self._happens("slow_polls"))

    def _happens(self, fault: str) -> bool:
        """Tell whether one of the faults of a kind is left, and count it."""
        left = int(getattr(self, fault))
        setattr(self, fault, max(0, left - 1))
        return left > 0

    def _upload(self, content: bytes, kind: str) -> Body:
        parts: Any = message_from_bytes(b"content-type: " + kind.encode() + b"\r\n\r\n" + content).get_payload()
        fields = {part.get_param("name", header="content-disposition"): part for part in parts}
        if fields["purpose"].get_payload() != "batch":
            raise RefusedError(400, "The purpose must be batch.")
        file = fields["file"]
        if not str(file.get_filename()).endswith(".jsonl"):
            raise RefusedError(400, "Must be .jsonl")
        name = f"file-{len(self.files)}"
        self.files[name] = file.get_payload(decode=True)
        return {"id": name, "object": "file", "bytes": len(content), "created_at": int(self.clock), "purpose": "batch"}

    def _create(self, body: Body, vendor: str) -> Body:
        for fault, refusal in _FAULTS.items():
            if self._happens(fault):
                raise RefusedError(*refusal)
        batch = Batch(id=f"{vendor}_batch_{len(self.batches)}", vendor=vendor, created=self.clock, requests=[])
        if vendor == "openai":
            self._check_openai(batch, body)
        else:
            batch.requests = [(each["custom_id"], each["params"]) for each in body["requests"]]
            if len(batch.requests) > self.most:
                raise RefusedError(413, "Too many requests in the batch.")
        self.batches[batch.id] = batch
        if self._happens("fails_after"):
            raise RefusedError(500, "Internal error.")
        return self._shown(batch, advance=False)

    def _check_openai(self, batch: Batch, body: Body) -> None:
        if body["input_file_id"] not in self.files:
            raise RefusedError(400, "Cannot find file.")
        if body["completion_window"] != "24h":
            raise RefusedError(400, "Invalid completion_window.")
        batch.metadata = body.get("metadata") or {}
        rows = [json.loads(line) for line in self.files[body["input_file_id"]].decode().splitlines()]
        batch.requests = [(row["custom_id"], row["body"]) for row in rows]
        failures = {
            "model_mismatch": len({row["body"]["model"] for row in rows}) > 1,
            "duplicate_custom_id": len({row["custom_id"] for row in rows}) < len(rows),
            "url_mismatch": {row["url"] for row in rows} != {body["endpoint"]},
            "empty_file": not rows,
            "too_many_tasks": len(rows) > self.most,
            "token_limit_exceeded: Enqueued token limit reached for fake.": self.token_limit,
        }
        batch.failure = next((name for name, is_so in failures.items() if is_so), None)

    def _list(self, query: Mapping[str, list[str]], vendor: str) -> Body:
        found = sorted((b for b in self.batches.values() if b.vendor == vendor), key=lambda b: -b.created)
        after = next(iter(query.get("after", query.get("after_id", []))), None)
        names = [batch.id for batch in found]
        start = names.index(after) + 1 if after in names else 0
        page = found[start : start + 2]
        more = len(found) > start + 2
        return {"data": [self._shown(batch, advance=False) for batch in page], "has_more": more, "object": "list"}

    def _known(self, identifier: str) -> Batch:
        batch = self.batches.get(identifier)
        if batch is None or self.clock - batch.created > _KEPT:
            raise RefusedError(404, f"No batch {identifier}.")
        return batch

    def _advance(self, batch: Batch) -> None:
        if batch.state != "in_progress":
            return
        if batch.failure is not None:
            batch.state = "failed"
        elif self.clock >= batch.created + self.delay:
            late = [each for each in batch.requests if self.expires(each[1])]
            if late and self.clock < batch.created + DAY:
                return
            for key, body in batch.requests:
                self._do(batch, key, body, expired=(key, body) in late)
            if self.foreign and (batch.output or batch.vendor == "anthropic"):
                batch.output.append({**(batch.output or [{}])[0], "custom_id": "f" * 64})
                if batch.vendor == "anthropic":
                    batch.output[-1] = {"custom_id": "f" * 64, "result": {"type": "expired"}}
            random.Random(7).shuffle(batch.output)
            batch.state = "expired" if late else "completed"

    def _do(self, batch: Batch, key: str, body: Body, *, expired: bool) -> None:
        url = "/messages" if batch.vendor == "anthropic" else "/chat/completions"
        reply = self.reply_to(Recorded(method="POST", path=url, headers={}, body=body))
        made = self.sent(reply, url, body)
        if batch.vendor == "anthropic":
            result: Body = {"type": "succeeded", "message": made}
            if expired:
                result = {"type": "expired"}
            elif reply.error is not None:
                result = {"type": "errored", "error": made}
            batch.output.append({"custom_id": key, "result": result})
        elif expired:
            error = {"code": "batch_expired", "message": "This request could not be executed in time."}
            batch.errors.append({"id": "r", "custom_id": key, "response": None, "error": error})
        else:
            row = {"status_code": reply.status, "request_id": "q", "body": made}
            rows = batch.output if reply.error is None else batch.errors
            rows.append({"id": "r", "custom_id": key, "response": row, "error": None})
        if reply.error is None and not expired:
            self.paid[_name(body)] += 1

    def _shown(self, batch: Batch, *, advance: bool = True) -> Body:
        if advance:
            self._advance(batch)
        total, ended = len(batch.requests), batch.state != "in_progress"
        if batch.vendor == "anthropic":
            types = Counter(row["result"]["type"] for row in batch.output if row["custom_id"] != "f" * 64)
            counts = {name: types[name] for name in ("succeeded", "errored", "canceled", "expired")}
            return {
                "id": batch.id,
                "type": "message_batch",
                "processing_status": "ended" if ended else "in_progress",
                "created_at": datetime.fromtimestamp(batch.created, timezone.utc).isoformat().replace("+00:00", "Z"),
                "request_counts": {"processing": 0 if ended else total, **counts},
                "results_url": f"{self.root_url}/elsewhere/{batch.id}/results" if ended else None,
            }
        failed = len(batch.errors)
        return {
            "id": batch.id,
            "object": "batch",
            "status": batch.state,
            "created_at": int(batch.created),
            "metadata": dict(batch.metadata),
            "request_counts": {"total": total, "completed": total - failed if ended else 0, "failed": failed},
            "errors": {"data": [{"code": batch.failure, "line": 1, "message": batch.failure}]} if ended else None,
            "output_file_id": f"out-{batch.id}" if batch.output else None,
            "error_file_id": f"err-{batch.id}" if batch.errors else "" if self.empty_error_file else None,
        }

    def _content(self, path: str) -> bytes:
        name = path.split("/")[-2]
        batch = self._known(name.removeprefix("out-").removeprefix("err-"))
        rows = batch.errors if name.startswith("err-") else batch.output
        data = "".join(f"{line}\n" for row in rows for line in self.spoil(row)).encode()
        return data[:-20] if self._happens("cut") else data


def _step(request: Recorded) -> str:
    path = urlsplit(request.path).path
    if request.method == "POST":
        if path.endswith("/files"):
            return "upload"
        return "create" if path.endswith("/batches") else "single"
    if path.endswith("/batches"):
        return "list"
    return "content" if path.endswith(("/content", "/results")) else "retrieve"


def _name(body: Body) -> str:
    return json.dumps({name: body.get(name) for name in ("model", "system", "messages")}, sort_keys=True)
