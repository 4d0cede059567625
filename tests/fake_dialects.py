"""Servers that speak the API of OpenAI or Anthropic, each in its dialect: what it takes, refuses and leaves out.

A dialect is a row of :data:`DIALECTS`: paths, headers, fields, limits and shapes as the pages and threads of its makers
give them. :class:`DialectServer` holds requests to the row, and refuses whatever the server of that name refuses.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fake_openai import Body, FakeOpenAI, Reply
from tests.fake_server import Recorded

#: What makes the body of an error of a status, a message and the parameter that it is about.
Fault = Callable[[int, str, "str | None"], Any]

_CHAT = frozenset(
    {"model", "messages", "temperature", "top_p", "max_tokens", "stop", "seed", "response_format", "reasoning_effort"}
)
_OPENAI = _CHAT - {"max_tokens"} | {
    *("max_completion_tokens", "n", "user", "metadata", "store", "service_tier", "frequency_penalty"),
    *("presence_penalty", "logprobs", "prompt_cache_key", "prompt_cache_options"),
}
_CLAUDE = frozenset({"model", "messages", "system", "max_tokens", "temperature", "tools", "tool_choice", "top_p"})
_SCHEMA, _JSON, _TEXT = "json_schema", "json_object", "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """What one server takes, and how it answers.

    ``host`` is a pattern of its addresses, and ``base`` the path behind it. ``headers`` are those that may carry the
    key, none where it wants no key; ``needed`` ones must be there besides. ``takes`` are the fields of a body, ``None``
    where it reads over others, and ``values`` the only value of some. ``most`` is how many texts an embedding request
    may have, 0 where it has none. A token has so many ``uses``. Of a prompt it reads as many tokens as its ``window``
    has, and says nothing. ``usage`` are the counts that it sends. ``message`` is in its messages besides, ``wraps``
    makes their content.
    """

    host: str
    base: str = "/v1"
    headers: tuple[str, ...] = ("authorization",)
    needed: tuple[str, ...] = ()
    model: str = "."
    takes: frozenset[str] | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    forms: frozenset[str] = frozenset({_SCHEMA, _JSON, _TEXT})
    strict: bool = False
    most: int = 2048
    base64: bool = True
    status: int = 400
    fault: Fault
    unknown: str = "Unknown parameter: '{}'."
    unknown_value: str = "Unsupported value: '{}' does not support this value with this model."
    uses: int | None = None
    window: int | None = None
    usage: tuple[str, ...] = ("prompt_tokens", "completion_tokens", "total_tokens")
    message: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    wraps: Callable[[str], Any] = str


def _openai(status: int, message: str, param: str | None) -> Any:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": None}}


def _anthropic(status: int, message: str, _: str | None) -> Any:
    kind = {401: "authentication_error", 404: "not_found_error"}.get(status, "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_fake"}


def _google(status: int, message: str, _: str | None) -> Any:
    kind = {401: "UNAUTHENTICATED", 404: "NOT_FOUND"}.get(status, "INVALID_ARGUMENT")
    return [{"error": {"code": status, "message": message, "status": kind}}]


def _mistral(status: int, message: str, param: str | None) -> Any:
    if status == 401:
        return {"detail": message}
    fault = {"type": "extra_forbidden", "loc": ["body", param], "msg": message, "input": 1}
    said = {"detail": [fault]} if param else message
    return {"object": "error", "message": said, "type": "invalid_request_error", "param": None, "code": None}


def _vllm(status: int, message: str, param: str | None) -> Any:
    if status == 401:
        return {"error": "Unauthorized"}
    place = f"[{{'type': 'extra_forbidden', 'loc': ('body', '{param}'), 'msg': '{message}', 'input': 1}}]"
    said = place if param else message
    return {"object": "error", "message": said, "type": "BadRequestError", "param": None, "code": status}


def _thinking(text: str) -> Any:
    thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": 'Perhaps {"claims": []}.'}]}
    return [thoughts, {"type": "reasoning", "text": '{"claims": []}'}, {"type": "text", "text": text}]


_DETAILS = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details")
_FILTERS = {name: {"filtered": False, "severity": "safe"} for name in ("hate", "self_harm", "sexual", "violence")}
_PYDANTIC = "Extra inputs are not permitted"
_CUT_WORDS = 'Invalid JSON payload received. Unknown name "{}": Cannot find field.'

_HERE, _BY_ARGUMENT = "http://localhost", f"{{}}: {_PYDANTIC}"
_LITELLM = (
    "litellm.UnsupportedParamsError: openai does not support parameters: ['{}'], for model=gpt-5-mini. "
    "To drop these, set `litellm.drop_params=True` or for proxy: `litellm_settings:\n drop_params: true`"
)
_BOTH = ("x-api-key", "authorization")
_PROJECT = "/v1/projects/my-project/locations/us-central1/endpoints/openapi"
_ROUTED = {"provider": {"require_parameters": True, "order": ["deepinfra"], "allow_fallbacks": False}}
_FILTERED = {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": _FILTERS}]}

DIALECTS: Mapping[str, Dialect] = {
    # The models since GPT-5 take the default temperature alone, and another name for the limit of a reply.
    "openai": Dialect(
        host=r"https://api\.openai\.com", takes=_OPENAI, values={"temperature": 1}, strict=True, fault=_openai,
        usage=_DETAILS,
    ),
    "azure": Dialect(
        host=r"https://\w+\.openai\.azure\.com", base="/openai/v1", headers=("authorization", "api-key"),
        takes=_OPENAI - {"prompt_cache_options", "service_tier"}, values={"temperature": 1}, strict=True,
        fault=lambda status, message, param: {"error": {"code": str(status), "message": message, "param": param}},
        uses=3, usage=_DETAILS, answer=_FILTERED,
    ),
    "anthropic": Dialect(
        host=r"https://api\.anthropic\.com", base="", headers=_BOTH, needed=("anthropic-version",), model="claude-",
        takes=_CLAUDE, most=0, fault=_anthropic, unknown=_BY_ARGUMENT,
    ),
    "gemini": Dialect(
        host=r"https://generativelanguage\.googleapis\.com", base="/v1beta/openai", model="gemini-",
        takes=_CHAT | {"n", "service_tier"}, most=100, base64=False, fault=_google, unknown=_CUT_WORDS,
    ),
    "vertex": Dialect(
        host=r"https://[\w-]+-aiplatform\.googleapis\.com", base=_PROJECT, model="google/gemini-", takes=_CHAT | {"n"},
        most=0, fault=_google, unknown=_CUT_WORDS, uses=3,
    ),
    "bedrock": Dialect(
        host=r"https://bedrock-mantle\.[\w-]+\.api\.aws", model="openai\\.gpt-oss-", forms=frozenset({_TEXT}), most=0,
        unknown_value="Invalid 'response_format': this model does not support structured output.", fault=_openai,
        wraps=lambda text: f'<reasoning>Perhaps {{"claims": []}}.</reasoning>{text}',
    ),
    "claude on bedrock": Dialect(
        host=r"https://bedrock-mantle\.[\w-]+\.api\.aws", base="/anthropic", headers=_BOTH,
        needed=("anthropic-version",), model="anthropic\\.claude-", takes=_CLAUDE - {"top_p"}, most=0, fault=_anthropic,
        unknown=_BY_ARGUMENT,
    ),
    "mistral": Dialect(
        host=r"https://api\.mistral\.ai",
        takes=_CHAT - {"seed"} | {"random_seed", "n", "prompt_mode", "safe_prompt", "prompt_cache_key"},
        most=128, base64=False, status=422, fault=_mistral, unknown=_PYDANTIC, wraps=_thinking,
    ),
    "openrouter": Dialect(
        host=r"https://openrouter\.ai", base="/api/v1", model=r"[\w-]+/", takes=_CHAT | {"provider"}, values=_ROUTED,
        fault=lambda status, message, _: {"error": {"code": status, "message": message}},
        unknown="No endpoints found that can handle the requested parameters.", answer={"provider": "DeepInfra"},
    ),
    "litellm": Dialect(
        host=f"{_HERE}:4000", base="", takes=_CHAT - {"temperature"} | {"n", "user", "metadata"}, unknown=_LITELLM,
        fault=lambda status, message, _: {"error": {"message": message, "param": "None", "code": str(status)}},
    ),
    "ollama": Dialect(
        host=f"{_HERE}:11434", headers=(), base64=False, window=4096, fault=_openai,
        message={"reasoning": "Perhaps {}."},
    ),
    "vllm": Dialect(
        host=f"{_HERE}:8000", takes=_CHAT | {"n", "top_k", "min_p", "guided_json"}, most=0, fault=_vllm,
        unknown=_PYDANTIC, usage=_DETAILS, message={"reasoning_content": None, "tool_calls": []},
        answer={"prompt_logprobs": None, "kv_transfer_params": None},
    ),
    "llama.cpp": Dialect(
        host=f"{_HERE}:8080", most=0, message={"reasoning_content": "Perhaps."}, answer={"timings": {}},
        fault=lambda status, message, _: {"error": {"code": status, "message": message, "type": "an_error"}},
    ),
    "lm studio": Dialect(
        host=f"{_HERE}:1234", headers=(), forms=frozenset({_SCHEMA, _TEXT}), base64=False, answer={"stats": {}},
        fault=lambda status, message, _: {"error": message},
        unknown_value="'{}.type' must be 'json_schema' or 'text'",
        message={"reasoning_content": "Perhaps.", "tool_calls": []},
    ),
}  # fmt: skip


@dataclass(kw_only=True)
class DialectServer(FakeOpenAI):
    """A server of one dialect; without a ``key`` one with ``uses`` takes tokens, each so many times."""

    dialect: Dialect = field(default_factory=lambda: DIALECTS["openai"])
    used: Counter[str] = field(default_factory=Counter)

    def speak(self, name: str) -> None:
        self.reset()
        self.dialect = DIALECTS[name]
        self.used.clear()

    def refusal(self, request: Recorded) -> Reply | None:
        """Return what the dialect refuses of a request, in its words."""
        refused = self._refused(request)
        if refused is None:
            return super().refusal(request)
        return Reply(status=refused[0], raw=json.dumps(self.dialect.fault(*refused)).encode())

    def sent(self, reply: Reply, path: str, body: Body) -> Body:
        """Return a reply with what the dialect adds, and without what it leaves out."""
        spoken = self.dialect
        made = super().sent(reply, path, body if spoken.base64 else {**body, "encoding_format": "float"})
        if "choices" not in made:
            return made
        said, usage = made["choices"][0]["message"], made["usage"]
        said.update(spoken.message)
        if isinstance(said["content"], str):
            said["content"] = spoken.wraps(said["content"])
        if spoken.window is not None:
            usage["prompt_tokens"] = min(usage["prompt_tokens"], spoken.window)
        return {**made, **spoken.answer, "usage": {name: usage[name] for name in spoken.usage}}

    def _refused(self, request: Recorded) -> tuple[int, str, str | None] | None:
        spoken, path, body = self.dialect, request.path, request.body
        if not path.startswith(f"{spoken.base}/"):
            return 404, f"There is no {path} here.", None
        if not self._is_known(request.headers):
            return 401, "The key is not valid.", None
        if missing := [name for name in spoken.needed if name not in request.headers]:
            return 400, f"{missing[0]}: header is required", None
        if path.endswith("/embeddings"):
            return self._too_many(body)
        if not re.match(spoken.model, body["model"]):
            return 404, f"There is no model {body['model']}.", None
        return self._of_body(body)

    def _is_known(self, headers: Mapping[str, str]) -> bool:
        spoken = self.dialect
        if not spoken.headers:
            return True
        given = [headers[name].removeprefix("Bearer ") for name in spoken.headers if name in headers]
        if len(given) != 1:
            return False
        if self.key is not None or spoken.uses is None:
            return self.key in (None, given[0])
        self.used[given[0]] += 1
        return self.used[given[0]] <= spoken.uses

    def _too_many(self, body: Body) -> tuple[int, str, str | None] | None:
        most, count = self.dialect.most, len(body["input"])
        if not most:
            return (501 if self.dialect is DIALECTS["llama.cpp"] else 404), "There are no embeddings here.", None
        if count > most:
            said = f"* BatchEmbedContentsRequest.requests: at most {most} requests can be in one batch"
            return 400, "Too many inputs in request, split into more batches." if most == 128 else said, None
        return None

    def _of_body(self, body: Body) -> tuple[int, str, str | None] | None:
        spoken = self.dialect
        unknown = [] if spoken.takes is None else sorted(body.keys() - spoken.takes)
        if unknown:
            return spoken.status, spoken.unknown.format(unknown[0]), unknown[0]
        for name, value in spoken.values.items():
            if body.get(name, value) != value:
                return spoken.status, spoken.unknown_value.format(name), name
        form = body.get("response_format", {"type": _TEXT})
        if form["type"] not in spoken.forms:
            return spoken.status, spoken.unknown_value.format("response_format"), "response_format"
        if spoken.strict and form["type"] == _SCHEMA and not _is_strict(form["json_schema"]["schema"]):
            return 400, "Invalid schema for response_format: 'additionalProperties' must be false.", "response_format"
        if "tools" in body and "max_tokens" not in body:
            return 400, "max_tokens: Field required", None
        return None


def _is_strict(schema: Any) -> bool:
    """Tell whether all objects of a schema have exactly their fields, as strict output demands."""
    if schema.get("type") == "array":
        return _is_strict(schema["items"])
    if schema.get("type") != "object":
        return True
    fields = schema["properties"]
    is_closed = schema.get("additionalProperties") is False and set(schema["required"]) == set(fields)
    return is_closed and all(map(_is_strict, fields.values()))
