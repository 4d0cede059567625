"""A process that asks: ``python worker.py FOLDER URL QUESTIONS SECONDS [KEY=VALUE ...]``; prints what it took as JSON.

Each request takes so many seconds, and adds a line to ``FOLDER/../till``. Options are ``url_mode``, ``secret``,
and ``hasty``. Unless it is hasty, a process waits for the server as long as that takes: a machine that is busy changes
nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from pytest_ragmetrics.cache import remote as remote_module
from pytest_ragmetrics.cache.remote import open_remote
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cache.transport import CachedTransport
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import ChatMessage, Reply, Request


class Judge:
    """Answers with the question, after some seconds."""

    name = "judge"
    is_paid = is_kept = True

    def __init__(self, till: Path, seconds: float) -> None:
        self.till = till
        self.seconds = seconds

    async def complete(self, request: Request) -> Reply:
        with self.till.open("a") as till:
            till.write(f"{request.texts[0]}\n")
        await asyncio.sleep(self.seconds)
        return Reply(text=json.dumps({"said": request.texts[0]}), prompt_tokens=10, completion_tokens=1)


async def run(folder: Path, url: str, count: int, seconds: float, options: dict[str, str]) -> dict[str, Any]:
    warned: list[str] = []
    mode: Any = options.get("url_mode", "readwrite")
    remote = open_remote(url, mode=mode, secret=options.get("secret", ""), warn=warned.append)
    if "hasty" not in options:
        remote_module._SLOW = remote_module._DEADLINE = sys.maxsize
    judge = Judge(folder.parent / "till", seconds)
    with Store(folder) as store:
        cache = CachedTransport(DIRECT, store=store, remote=remote)
        replies = await asyncio.gather(*(cache.send(question(number, judge)) for number in range(count)))
        await remote.aclose()
    right = [json.loads(reply.text)["said"] == text(number) for number, reply in enumerate(replies)]
    counts = {"found": remote.counts.found, "added": remote.counts.added, "refused": remote.counts.refused}
    return {"asked": cache.judged.calls, "right": sum(right), "warned": warned, **counts}


def text(number: int) -> str:
    return f"Question {number}? " + "It was built in 1932, of brick. " * 60


def question(number: int, judge: Any) -> Request:
    messages, schema = (ChatMessage(role="user", content=text(number)),), {"type": "object"}
    return Request(task="t", kind="k", model="m", messages=messages, schema=schema, parameters={}, provider=judge)


if __name__ == "__main__":
    warnings.simplefilter("error")
    place, address, many, pause, *rest = sys.argv[1:]
    given = dict(option.split("=", 1) for option in rest)
    print(json.dumps(asyncio.run(run(Path(place), address, int(many), float(pause), given))))
