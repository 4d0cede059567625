"""Judges that users write: an object with ``complete(messages, schema)``, or a function from prompt to answer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Protocol, runtime_checkable

from pytest_ragmetrics.errors import JudgeError, RagMetricsError
from pytest_ragmetrics.judges.judge import Judge, PromptedJudge
from pytest_ragmetrics.judges.rendering import PromptBook
from pytest_ragmetrics.judges.transport import ChatMessage, Reply, Request


@runtime_checkable
class Completes(Protocol):
    """An object that :class:`CustomJudge` can ask."""

    async def complete(self, messages: list[ChatMessage], schema: Mapping[str, Any]) -> str:
        """Return the answer to the messages: one JSON object of the form of the schema, as text."""


class CustomJudge(PromptedJudge):
    """A judge made of an object with ``async complete(messages, schema) -> str`` or a callable ``str -> str``.

    A callable is run in a thread, unless it is asynchronous. ``name``, or the target's own attribute ``name``, is
    shown in results and determines, with the prompt, which recorded reply is used: change it when the model behind it
    changes. Without a name two judges cannot be distinguished, so replies are not recorded.

    >>> import asyncio
    >>> from pytest_ragmetrics.judges.tasks import ListClaims
    >>> judge = CustomJudge(lambda prompt: '{"claims": ["Ivy climbs."]}', name="mine")
    >>> asyncio.run(judge.ask(ListClaims(text="It climbs."))).answer
    ('Ivy climbs.',)
    """

    kind: ClassVar[str] = "custom"

    def __init__(
        self,
        target: Completes | Callable[[str], str | Awaitable[str]],
        *,
        name: str | None = None,
        prompts: PromptBook | None = None,
    ) -> None:
        """Name the judge after its target, unless a ``name`` is given."""
        if not isinstance(target, Completes) and not callable(target):
            msg = f"a judge is an object with complete(messages, schema) or a callable, not {type(target).__name__}"
            raise TypeError(msg)
        given = name or getattr(target, "name", None)
        shown = name or f"custom:{given or getattr(target, '__qualname__', None) or type(target).__qualname__}"
        super().__init__(name=shown, model=shown, prompts=prompts)
        self.is_kept = bool(given)
        self._target = target

    async def complete(self, request: Request) -> Reply:
        """Return the reply of the target; raise ``JudgeError`` if it fails or answers with anything but text."""
        try:
            text = await self._answer(request)
        except RagMetricsError:
            raise
        except Exception as error:
            msg = f"{self.name} failed: {type(error).__name__}: {error}"
            raise JudgeError(msg) from error
        if not isinstance(text, str) or not text.strip():
            what = "nothing" if isinstance(text, str) else f"{type(text).__name__} where a str is wanted"
            msg = f"{self.name} replied with {what}"
            raise JudgeError(msg)
        return Reply(text=text)

    async def aclose(self) -> None:
        """Close the target, if it has an ``aclose`` of its own."""
        close = getattr(self._target, "aclose", None)
        if close is not None:
            await close()

    async def _answer(self, request: Request) -> object:
        answer: object
        if isinstance(self._target, Completes):
            # Copies: the target may change them.
            messages, schema = deepcopy((list(request.messages), dict(request.schema)))
            answer = self._target.complete(messages, schema)
        elif inspect.iscoroutinefunction(self._target):
            answer = self._target(_as_prompt(request))
        else:
            answer = await asyncio.to_thread(self._target, _as_prompt(request))
        return await answer if inspect.isawaitable(answer) else answer


def as_judge(target: Any, *, name: str | None = None, prompts: PromptBook | None = None) -> Judge:
    """Return a judge, or the judge made of an object; raise ``TypeError`` for another object."""
    return target if isinstance(target, Judge) else CustomJudge(target, name=name, prompts=prompts)


def _as_prompt(request: Request) -> str:
    parts = [
        f"You answered:\n{message['content']}" if message["role"] == "assistant" else message["content"]
        for message in request.spelled_out()
    ]
    return "\n\n".join(parts)
