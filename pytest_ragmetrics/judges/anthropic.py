"""Judges behind the Anthropic API; needs ``pip install "pytest-ragmetrics[anthropic]"``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.connection import ANTHROPIC, Connection, refused_parameter
from pytest_ragmetrics.judges.judge import VARIED, PromptedJudge, Reply, Request, asked_for
from pytest_ragmetrics.judges.rendering import PromptBook

#: The API wants a limit; no answer to a task of ours comes near it.
_MAX_TOKENS = 8192
#: What forces the form of the answer; a model that always thinks may refuse it, and then answers in text.
_TOOL = "tool_choice"


class AnthropicJudge(PromptedJudge):
    """A model behind the Anthropic API, made to answer in the form of the schema by a tool it must call.

    ``api_key`` and ``base_url`` default to ``ANTHROPIC_API_KEY`` and ``ANTHROPIC_BASE_URL``; the key is needed when
    the first request is made. ``parameters`` as in :class:`~pytest_ragmetrics.judges.openai.OpenAIJudge`.

    >>> AnthropicJudge("claude-haiku-5-5").name
    'anthropic:claude-haiku-5-5'
    """

    kind: ClassVar[str] = "anthropic"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60,
        retries: int = 5,
        deadline: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        prompts: PromptBook | None = None,
    ) -> None:
        """Grant ``timeout`` seconds to each of ``retries`` + 1 attempts, ``deadline`` to all together."""
        asked = {"max_tokens": _MAX_TOKENS, **asked_for(parameters)}
        super().__init__(name=f"anthropic:{model}", model=model, parameters=asked, prompts=prompts)
        self.varied = {} if parameters else dict(VARIED)
        self._refused: frozenset[str] = frozenset()
        self._connection = Connection(
            ANTHROPIC,
            model=model,
            api_key=api_key,
            base_url=base_url,
            timeout=timeout,
            retries=retries,
            deadline=deadline,
            rate_limited=self.rate_limited,
        )

    async def complete(self, request: Request) -> Reply:
        """Return what the model writes; raise ``JudgeError`` if the provider fails, refuses or cuts it short."""
        return self._reply(await self._connection.call(lambda client: self._negotiate(client, request)))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def _negotiate(self, client: Any, request: Request) -> Any:
        """Send a request, giving up what the model refuses, and remember it."""
        import anthropic

        while True:
            refused = self._refused
            try:
                return await client.messages.create(**_wire(request, refused))
            except anthropic.BadRequestError as error:
                # Others may have found out the same while this request was on its way.
                if self._refused == refused:
                    droppable = {_TOOL, *request.parameters} - refused - {"max_tokens"}
                    name = refused_parameter(error, sorted(droppable))
                    if name is None:
                        raise
                    self._refused = refused | {name}

    def _reply(self, message: Any) -> Reply:
        problem = _problem(message)
        if problem is not None:
            msg = f"{self.name} {problem}"
            raise JudgeError(msg)
        usage = message.usage
        cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        return Reply(
            text=_text(message), prompt_tokens=usage.input_tokens + cached, completion_tokens=usage.output_tokens
        )


def _wire(request: Request, refused: frozenset[str]) -> dict[str, Any]:
    """Return the request as the API takes it, the system message apart, without what the model refuses."""
    sent = {name: value for name, value in request.parameters.items() if name not in refused}
    forced = _TOOL not in refused
    messages = list(request.messages) if forced else request.spelled_out()
    wire: dict[str, Any] = {
        "model": request.model,
        "system": "\n\n".join(message["content"] for message in messages if message["role"] == "system"),
        "messages": [message for message in messages if message["role"] != "system"],
        "max_tokens": sent.pop("max_tokens"),
        # The SDK knows no sampling parameter that its newest models lack.
        "extra_body": sent,
    }
    if forced:
        wire["tools"] = [{"name": request.task, "description": "Give the answer.", "input_schema": request.schema}]
        wire[_TOOL] = {"type": "tool", "name": request.task}
    return wire


def _text(message: Any) -> str:
    for block in message.content:
        if block.type == "tool_use":
            return json.dumps(block.input, ensure_ascii=False)
    return "".join(block.text for block in message.content if block.type == "text")


def _problem(message: Any) -> str | None:
    if not isinstance(getattr(message, "content", None), list):
        return "does not answer like the Anthropic API; check ANTHROPIC_BASE_URL"
    if message.stop_reason in ("max_tokens", "model_context_window_exceeded"):
        return "was cut off by its length limit; raise max_tokens, or give it shorter texts"
    if message.stop_reason == "refusal":
        return f"refused to answer: {_text(message)}".rstrip(": ")
    if not _text(message).strip():
        return "replied with nothing"
    return None
