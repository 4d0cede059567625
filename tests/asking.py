"""Asking judges and embedders from a test, and a transport that shows what would be stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, Protocol

import pytest

from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.providers.anthropic import AnthropicJudge
from pytest_ragmetrics.judges.providers.connection import ApiJudge
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import Answered, AnyRequest, Reply, Request, Transport
from tests.fake_server import FakeServer

KEY = "sk-ant-fake-0123456789"
KINDS: dict[str, type[ApiJudge[Any]]] = {"openai": OpenAIJudge, "anthropic": AnthropicJudge}
BOTH = pytest.mark.parametrize("kind", KINDS)


class Closing(Protocol):
    """What is closed after use."""

    async def aclose(self) -> None:
        pass


def judge_at(server: FakeServer, kind: str = "openai", model: str = "fake-1", **options: Any) -> ApiJudge[Any]:
    """Return a judge that asks a server, without retries unless they are wanted."""
    url = server.base_url if kind == "openai" else server.root_url
    return KINDS[kind](model, **{"base_url": url, "api_key": KEY, "retries": 0, "timeout": 5, **options})


class MemoryTransport:
    """Keeps replies of judges by request."""

    def __init__(self) -> None:
        self.kept: list[tuple[Request, Reply]] = []

    async def send(self, request: AnyRequest) -> Reply:
        for known, reply in self.kept:
            if known == request:
                return replace(reply, cached=True)
        reply = await DIRECT.send(request)
        if isinstance(request, Request) and request.provider is not None and request.provider.is_kept:
            self.kept.append((request, reply))
        return reply


def use(used: Closing, *awaited: Awaitable[Any]) -> list[Any]:
    """Wait for what uses a judge or an embedder, one after the other, and close it in the same loop."""

    async def run() -> list[Any]:
        try:
            return [await each for each in awaited]
        finally:
            await used.aclose()

    return asyncio.run(run())


def ask(judge: Judge, *tasks: Task[Any], transport: Transport = DIRECT, votes: int = 1) -> list[Answered[Any]]:
    """Ask all tasks at once, close the judge, and return the answers in order."""

    async def together() -> list[Answered[Any]]:
        asked = (judge.ask(task, vote=vote, transport=transport) for task in tasks for vote in range(votes))
        return await asyncio.gather(*asked)

    (answers,) = use(judge, together())
    return list(answers)
