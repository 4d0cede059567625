"""A server on 127.0.0.1 with the batch routes of OpenAI and Anthropic, and their single requests.

    with FakeBatches() as server:
        judge = OpenAIJudge("fake", base_url=server.openai_url, api_key="sk-fake")

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
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tests.fake_answers import answer_sensibly
from tests.fake_openai import Reply, _completion, _message

if TYPE_CHECKING:
    import pytest
    from typing_extensions import Self

Body = dict[str, Any]
DAY = 86_400.0
_KEPT = 30 * DAY


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
    """An error status with its message."""

    def __init__(self, status: int, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"message": message, "type": "invalid_request_error", **details}


@dataclass(kw_only=True)
class FakeBatches:
    """The server; a context manager.

    ``answer`` answers each body; a :class:`~tests.fake_openai.Reply` with an error fails its line. ``expires`` says
    which are not done within a day. ``fails_after`` counts creations that are accepted and answered with 500,
    ``fails_before`` those that are not accepted, ``rejects`` those that are refused, ``early`` those that do not find
    their file yet, ``cut`` results that end in the middle of a line, ``polls_fail`` looks at a batch that fail,
    ``slow_polls`` those that find it under way. ``foreign`` lines are in every result, and ``spoil`` makes the lines of
    a row. ``refuses`` are parameters that no model takes. ``most`` is the limit of requests.
    """

    answer: Callable[[Body], str | Reply] = answer_sensibly
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
    refuses: frozenset[str] = frozenset()
    holds: str | None = None
    clock: float = 1_800_000_000.0
    batches: dict[str, Batch] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    #: How often each request was paid for, in batches and singly.
    paid: Counter[str] = field(default_factory=Counter)
    paid_singly: Counter[str] = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the parts that are not given."""
        self.reached = threading.Event()
        self._released = threading.Event()
        self._turn = threading.RLock()
        self.clock = datetime.now(timezone.utc).timestamp()

    def release(self) -> None:
        """Go on, and stop nowhere any more."""
        self.holds = None
        self._released.set()

    @property
    def openai_url(self) -> str:
        """The address to give to an OpenAI client."""
        return f"{self.anthropic_url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The address to give to an Anthropic client."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def name_in(self, environment: pytest.MonkeyPatch) -> None:
        """Have the environment name it as both providers."""
        environment.setenv("OPENAI_BASE_URL", self.openai_url)
        environment.setenv("ANTHROPIC_BASE_URL", self.anthropic_url)
        for vendor in ("OPENAI", "ANTHROPIC"):
            environment.setenv(f"{vendor}_API_KEY", "sk-fake")

    @property
    def twice(self) -> int:
        """How many requests were paid for more than once."""
        return sum(count - 1 for count in (self.paid + self.paid_singly).values())

    def __enter__(self) -> Self:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Else a body waits for the client to acknowledge the headers: 40 ms.
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                server.exchange(self, b"")

            def do_POST(self) -> None:
                server.exchange(self, self.rfile.read(int(self.headers["content-length"])))

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._http.shutdown()
        self._http.server_close()

    def exchange(self, handler: BaseHTTPRequestHandler, content: bytes) -> None:
        """Serve one request."""
        url = urlsplit(handler.path)
        step = _step(handler.command, url.path)
        self._stop_at(f"{step}:before")
        try:
            if not (handler.headers.get("authorization") or handler.headers.get("x-api-key")):
                raise RefusedError(401, "There is no key.")  # noqa: TRY301 - answered below
            with self._turn:
                made = self._route(step, url.path, parse_qs(url.query), content, handler.headers)
                self.log.append(step)
            status = 200
        except RefusedError as refused:
            made, status = {"type": "error", "error": refused.error}, refused.status
        self._stop_at(f"{step}:after")
        data = made if isinstance(made, bytes) else json.dumps(made).encode()
        try:
            handler.send_response(status)
            handler.send_header("content-type", "application/json" if not isinstance(made, bytes) else "text/plain")
            handler.send_header("content-length", str(len(data)))
            handler.send_header("retry-after-ms", "5")
            handler.end_headers()
            handler.wfile.write(data)
        except OSError:
            handler.close_connection = True  # the client was killed

    def _stop_at(self, step: str) -> None:
        if step == self.holds:
            self.reached.set()
            self._released.wait(60)

    def _route(self, step: str, path: str, query: Mapping[str, list[str]], content: bytes, headers: Any) -> Any:
        if step == "single":
            return self._single(path, json.loads(content))
        if not self.has_batches:
            raise RefusedError(404, f"There is no {path} here.")
        if step == "upload":
            return self._upload(content, headers["content-type"])
        if step == "create":
            return self._create(json.loads(content), "anthropic" if "messages" in path else "openai")
        if step == "list":
            return self._list(query, "anthropic" if "messages" in path else "openai")
        if step == "retrieve" and self.polls_fail:
            self.polls_fail -= 1
            raise RefusedError(503, "Overloaded.")
        if step == "retrieve" and self.slow_polls:
            self.slow_polls -= 1
            return self._shown(self._known(path.rsplit("/", 1)[1]), advance=False)
        if step == "retrieve":
            return self._shown(self._known(path.rsplit("/", 1)[1]))
        return self._content(path)

    def _single(self, path: str, body: Body) -> Body:
        reply = self._reply(body)
        if reply.error is not None:
            raise RefusedError(reply.status, **reply.error)
        self.paid_singly[_name(body)] += 1
        return _message(reply, body) if path.endswith("/messages") else _completion(reply, body)

    def _reply(self, body: Body) -> Reply:
        for name in sorted(self.refuses & body.keys()):
            message = f"Unsupported value: '{name}' does not support this value with this model."
            return Reply(status=400, error={"message": message, "param": name, "code": "unsupported_value"})
        made = self.answer(body)
        return Reply(text=made) if isinstance(made, str) else made

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
        if self.rejects:
            self.rejects -= 1
            raise RefusedError(400, "The batch is rejected.")
        if self.fails_before:
            self.fails_before -= 1
            raise RefusedError(500, "Internal error.")
        if self.early:
            self.early -= 1
            raise RefusedError(400, "Cannot find file.")
        batch = Batch(id=f"{vendor}_batch_{len(self.batches)}", vendor=vendor, created=self.clock, requests=[])
        if vendor == "openai":
            self._check_openai(batch, body)
        else:
            batch.requests = [(each["custom_id"], each["params"]) for each in body["requests"]]
            if len(batch.requests) > self.most:
                raise RefusedError(413, "Too many requests in the batch.")
        self.batches[batch.id] = batch
        if self.fails_after:
            self.fails_after -= 1
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
        if len({row["body"]["model"] for row in rows}) > 1:
            batch.failure = "model_mismatch"
        elif len({row["custom_id"] for row in rows}) < len(rows):
            batch.failure = "duplicate_custom_id"
        elif {row["url"] for row in rows} != {body["endpoint"]}:
            batch.failure = "url_mismatch"
        elif not rows:
            batch.failure = "empty_file"
        elif len(rows) > self.most:
            batch.failure = "too_many_tasks"
        elif self.token_limit:
            batch.failure = "token_limit_exceeded: Enqueued token limit reached for fake."

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
        if batch.vendor == "openai":
            if expired:
                error = {"code": "batch_expired", "message": "This request could not be executed in time."}
                batch.errors.append({"id": "r", "custom_id": key, "response": None, "error": error})
                return
            reply = self._reply(body)
            made = {"error": dict(reply.error)} if reply.error is not None else _completion(reply, body)
            row = {"status_code": reply.status, "request_id": "q", "body": made}
            (batch.output if reply.error is None else batch.errors).append(
                {"id": "r", "custom_id": key, "response": row, "error": None}
            )
        else:
            reply = self._reply(body)
            if expired:
                result: Body = {"type": "expired"}
            elif reply.error is not None:
                result = {"type": "errored", "error": {"type": "error", "error": dict(reply.error)}}
            else:
                result = {"type": "succeeded", "message": _message(reply, body)}
            batch.output.append({"custom_id": key, "result": result})
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
                "results_url": f"{self.anthropic_url}/elsewhere/{batch.id}/results" if ended else None,
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
        if self.cut:
            self.cut -= 1
            return data[:-20]
        return data


def _step(command: str, path: str) -> str:
    if command == "POST":
        if path.endswith("/files"):
            return "upload"
        return "create" if path.endswith("/batches") else "single"
    if path.endswith("/batches"):
        return "list"
    return "content" if path.endswith(("/content", "/results")) else "retrieve"


def _name(body: Body) -> str:
    return json.dumps({name: body.get(name) for name in ("model", "system", "messages")}, sort_keys=True)
