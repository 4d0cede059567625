"""Asking a judge from a test, and a desk that shows what would be stored."""

from __future__ import annotations

import asyncio
from typing import Any

from pytest_ragmetrics.judges.judge import (
    Answered,
    CachedReply,
    DirectTransport,
    Fetch,
    Judge,
    Reply,
    Request,
    Transport,
)
from pytest_ragmetrics.judges.tasks import Task


class MemoryDesk:
    """A desk that keeps replies by request."""

    def __init__(self) -> None:
        self.kept: list[tuple[Request, Reply]] = []

    async def obtain(self, request: Request, fetch: Fetch) -> CachedReply:
        """Return the reply kept for an equal request, or fetch it."""
        for known, reply in self.kept:
            if known == request:
                return CachedReply(reply=reply, cached=True)
        reply = await fetch()
        self.kept.append((request, reply))
        return CachedReply(reply=reply, cached=False)


def ask(judge: Judge, *tasks: Task[Any], desk: Transport | None = None, votes: int = 1) -> list[Answered[Any]]:
    """Ask all tasks at once, close the judge, and return the answers in order."""

    async def all_of_them() -> list[Answered[Any]]:
        used = desk or DirectTransport()
        try:
            return await asyncio.gather(
                *(judge.ask(task, vote=vote, desk=used) for task in tasks for vote in range(votes))
            )
        finally:
            await judge.aclose()

    return asyncio.run(all_of_them())
