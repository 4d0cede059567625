"""Judges: the base class, judges that read prompts and write JSON, and the adapter of judges that users write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from pytest_ragmetrics.errors import UnscoredError
from pytest_ragmetrics.judges.rendering import PromptBook, render
from pytest_ragmetrics.judges.schema import InvalidAnswer, parse_json
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.judges.transport import DIRECT, Answered, ChatMessage, Reply, Request, Transport, shown

A = TypeVar("A")


class Judge(ABC):
    """Answers tasks. ``name`` appears in every result: ``openai:gpt-5.4-mini``, ``local (heuristic)``."""

    name: str
    #: Whether the answers to one task may differ; if not, one vote is enough.
    is_varied: bool = True
    #: Whether a request to it costs money.
    is_paid: bool = True

    @abstractmethod
    async def ask(self, task: Task[A], *, vote: int = 0, transport: Transport = DIRECT) -> Answered[A]:
        """Return the answer to a task; raise ``UnscoredError`` or ``JudgeError`` if there is none."""

    async def aclose(self) -> None:  # noqa: B027 - many judges have nothing to close
        """Close the client; the judge must not be asked again."""


class PromptedJudge(Judge):
    """A judge that reads prompts; a provider implements :meth:`complete`."""

    #: The kind of provider, part of what determines a reply.
    kind: ClassVar[str] = "custom"
    #: Whether the name and the request determine the reply, so that it may be stored and used again.
    is_kept: bool = True

    def __init__(
        self,
        *,
        name: str,
        model: str,
        parameters: Mapping[str, Any] = MappingProxyType({}),
        prompts: PromptBook | None = None,
    ) -> None:
        """Ask the provider's ``model`` with sampling ``parameters`` and ``prompts``."""
        self.name = name
        self.model = model
        self.parameters = dict(parameters)
        #: The parameters of further samples of one request that differ from those of the first.
        self.varied: dict[str, Any] = {}
        self.prompts = prompts or PromptBook()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @abstractmethod
    async def complete(self, request: Request) -> Reply:
        """Return the reply of the model; raise ``JudgeError`` if the provider fails, refuses or cuts it short."""

    def request(self, task: Task[Any], *, vote: int = 0) -> Request:
        """Return the request that asks a task."""
        return Request(
            task=task.prompt,
            kind=self.kind,
            model=self.model,
            messages=self.messages(task),
            schema=task.schema(),
            parameters=self.parameters | self.varied if vote else self.parameters,
            vote=vote,
            provider=self,
            asked=task,
        )

    def messages(self, task: Task[Any]) -> tuple[ChatMessage, ...]:
        """Return the messages that ask a task; reports show the last of them."""
        system, user = render(task, self.prompts)
        return ChatMessage(role="system", content=system), ChatMessage(role="user", content=user)

    async def ask(self, task: Task[A], *, vote: int = 0, transport: Transport = DIRECT) -> Answered[A]:
        """Return the answer to a task; a reply that does not fit is repaired once, then ``UnscoredError``."""
        request = self.request(task, vote=vote)
        reply = await transport.send(request)
        if reply.answered is not None:
            return reply.answered
        try:
            answer = task.read(parse_json(reply.text))
        except InvalidAnswer as error:
            # A fresh reply was validated on its way: this one was edited, or recorded by another version.
            msg = f"{self.name}, {task.prompt}: the recorded reply does not fit: {error}; {shown(reply.text)}"
            raise UnscoredError(msg) from error
        return Answered(answer=answer, usage=reply.usage(request))


class AnsweringJudge(PromptedJudge):
    """Sends a judge with an ``ask`` of its own over a transport, which counts and bounds what it is asked.

    Its answers are not stored. A cache of its own is known only afterwards, so nothing is asked once a budget is
    reached. Tokens that its usage leaves out are estimated from the texts of the task.
    """

    is_kept = False

    def __init__(self, judge: Judge) -> None:
        super().__init__(name=judge.name, model=judge.name)
        self.is_varied = judge.is_varied
        self.is_paid = judge.is_paid
        self._judge = judge

    def messages(self, task: Task[Any]) -> tuple[ChatMessage, ...]:
        """Return the texts of a task: its judge has no prompt that could be shown."""
        return tuple(ChatMessage(role="user", content=block.text) for block in task.blocks())

    async def complete(self, request: Request) -> Reply:
        """Return the judge's answer with its usage; without a usage it is one call."""
        task: Any = request.asked
        answered = await self._judge.ask(task, vote=request.vote, transport=DIRECT)
        usage = answered.usage
        return Reply(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            calls=usage.calls or int(not usage.cached_calls),
            answered=answered,
        )

    async def aclose(self) -> None:
        """Close the judge."""
        await self._judge.aclose()
