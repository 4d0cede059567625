"""Asking a judge from a test, and a transport that shows what would be stored."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.judges.transport import DIRECT, Answered, AnyRequest, Reply, Request, Transport


class MemoryTransport:
    """Keeps replies of judges by request."""

    def __init__(self) -> None:
        self.kept: list[tuple[Request, Reply]] = []

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply kept for an equal request, or ask for it."""
        for known, reply in self.kept:
            if known == request:
                return replace(reply, cached=True)
        reply = await DIRECT.send(request)
        if isinstance(request, Request) and request.provider is not None and request.provider.is_kept:
            self.kept.append((request, reply))
        return reply


def ask(judge: Judge, *tasks: Task[Any], transport: Transport = DIRECT, votes: int = 1) -> list[Answered[Any]]:
    """Ask all tasks at once, close the judge, and return the answers in order."""

    async def all_of_them() -> list[Answered[Any]]:
        try:
            return await asyncio.gather(
                *(judge.ask(task, vote=vote, transport=transport) for task in tasks for vote in range(votes))
            )
        finally:
            await judge.aclose()

    return asyncio.run(all_of_them())
