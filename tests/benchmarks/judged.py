"""What judging costs beside the judge: time, processor, memory and prompt tokens, against a server of our own.

    python -m tests.benchmarks.judged [--samples 50 500] [--concurrency 16 64] [--latency 0.1] [--repeat 3]

Five metrics make seven requests a sample, two of them in a row. The floor of a cold run is the longer of that chain
and of all requests shared out evenly over those allowed in flight. The server runs in a process of its own, each case
in a fresh one. Beside it stands what loops over bare clients take for as many requests: ``create()`` of the SDK, its
``post()`` without types, both over httpx; ``post()`` over aiohttp, which the judges call; and aiohttp alone.
No tool built on a client can take less; the same goes for a machine that is busy with other things.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pytest_ragmetrics import evaluate
from pytest_ragmetrics.cache.entry import key_of, request_row
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cache.transport import CachedTransport
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges.providers.attempts import http_client
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.tasks import ListClaims, VerifyClaims
from pytest_ragmetrics.judges.transports.breaker import CircuitBreakers
from pytest_ragmetrics.judges.transports.limiter import Limiter, Providers
from pytest_ragmetrics.judges.transports.values import Repair, Reply, Request, Transport
from tests.fake_openai import FakeOpenAI

METRICS = ("faithfulness", "answer_relevancy", "context_recall", "summary_score", "context_precision")
CHAIN = 2  # claims or questions, then the verdicts on them


def sample(number: int, *, contexts: int = 3, size: int = 600) -> Sample:
    """Return a sample with so many contexts of ``size`` characters that no other sample has."""
    passages = [_context(number, part, size) for part in range(contexts)]
    mill, wheel = f"The mill of valley {number}", "Its wheel turns nine times a minute."
    family = f"In winter {number} the miller's family moves into the upper rooms."
    return Sample(
        id=f"mill-{number}",
        user_input=f"Where does the mill of valley {number} stand, and how fast does its wheel turn?",
        response=f"{mill} was built beside the northern ford. {wheel} {family}",
        reference=f"{mill} stands beside the northern ford. {wheel}",
        retrieved_contexts=passages,
        reference_contexts=passages,
    )


def _context(number: int, part: int, size: int) -> str:
    text = (
        f"Record {number}.{part} of the valley tells of a mill beside the northern ford, built of grey stone. "
        "Its wheel turns nine times a minute when the river is high, and stands still in a dry August. "
        "The miller's family keeps to the upper rooms in winter, since the lower ones are damp until the thaw. "
        "Farmers from both banks bring barley and rye, and pay with one sack in twelve, as was agreed long ago. "
        f"A second channel, dug in the year the bridge of valley {number} fell, leads the water past the sluice. "
    )
    text += "Nobody remembers who carved the heron over the door, though many have asked about it. " * 3
    return (text * (size // len(text) + 1))[:size]


def serve(latency: float, pipe: Connection) -> None:
    """Run the server until the pipe closes; answer each message with what was asked for since the one before."""
    with FakeOpenAI(latency=latency) as server, suppress(EOFError):
        pipe.send(server.base_url)
        while True:
            pipe.recv()
            judged = ["messages" in request.body for request in server.requests]
            server.requests.clear()
            pipe.send({"calls": sum(judged), "embeddings": len(judged) - sum(judged)})


@contextmanager
def server(latency: float) -> Iterator[Connection]:
    """Run the server in a process of its own, with the environment that leads to it."""
    ours, its = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(latency, its), daemon=True)
    process.start()
    its.close()
    os.environ.update(OPENAI_BASE_URL=ours.recv(), OPENAI_API_KEY="sk-fake")
    try:
        yield ours
    finally:
        ours.close()
        process.join()


def taken(pipe: Connection) -> dict[str, int]:
    pipe.send(None)
    found: dict[str, int] = pipe.recv()
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Clocked:
    """What a block took: seconds on the wall, and of the processor."""

    wall: float
    cpu: float


@contextmanager
def clock(into: list[Clocked]) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    into.append(Clocked(wall=time.perf_counter() - wall, cpu=time.process_time() - cpu))


def load() -> None:
    """Import all that judging needs, and no more than that."""
    for name in ("diskcache", "filelock", "numpy", "pytest_ragmetrics.judges.embedders.openai"):
        import_module(name)
    # The first client of a process imports what makes connections.
    http_client(import_module("openai"), "http://127.0.0.1")
    genai_prices: Any = import_module("genai_prices")
    genai_prices.calc_price(genai_prices.Usage(input_tokens=1), "gpt-5.4-mini", provider_id="openai")
    evaluate([sample(0)], METRICS, judge="local", embedder="local")


def peak() -> float:
    """Return the most memory this process ever held, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


Send = Callable[[dict[str, Any]], Awaitable[object]]


@asynccontextmanager
async def _sdk(*, on_aiohttp: bool, typed: bool) -> AsyncIterator[Send]:
    openai: Any = import_module("openai")
    http = openai.DefaultAioHttpClient() if on_aiohttp else openai.DefaultAsyncHttpxClient()
    async with openai.AsyncOpenAI(http_client=http) as client:
        if typed:
            yield lambda body: client.chat.completions.create(**body)
        else:
            yield lambda body: client.post("/chat/completions", body=body, cast_to=object)


@asynccontextmanager
async def _aiohttp() -> AsyncIterator[Send]:
    aiohttp: Any = import_module("aiohttp")
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0)) as session:

        async def send(body: dict[str, Any]) -> object:
            async with session.post(url, json=body) as response:
                return await response.json()

        yield send


BARE: dict[str, Callable[[], AbstractAsyncContextManager[Send]]] = {
    "create": partial(_sdk, on_aiohttp=False, typed=True),
    "post": partial(_sdk, on_aiohttp=False, typed=False),
    "post, aiohttp": partial(_sdk, on_aiohttp=True, typed=False),
    "aiohttp": _aiohttp,
}


async def bare(client: str, count: int, concurrency: int) -> Clocked:
    bodies = iter([_body(number) for number in range(count)])
    taken: list[Clocked] = []

    async def work(send: Send) -> None:
        for body in bodies:
            await send(body)

    with clock(taken):
        async with BARE[client]() as send:
            await asyncio.gather(*(work(send) for _ in range(concurrency)))
    return taken[0]


def _body(number: int) -> dict[str, Any]:
    contexts = tuple(sample(number).retrieved_contexts or ())
    task = VerifyClaims(claims=(f"The mill of valley {number} is old.",), contexts=contexts)
    request = OpenAIJudge("fake").request(task)
    schema = {"name": request.task, "strict": True, "schema": request.schema}
    form = {"type": "json_schema", "json_schema": schema}
    return {"model": request.model, "messages": [*request.messages], "response_format": form, "temperature": 0}


def case(count: int, concurrency: int, latency: float) -> dict[str, Any]:
    samples = [sample(number) for number in range(1, count + 1)]
    clocked: list[Clocked] = []
    with server(latency) as pipe, tempfile.TemporaryDirectory() as folder:
        load()
        before = peak()
        tables, requests = [], []
        for _ in range(4):
            with clock(clocked):
                tables.append(evaluate(samples, METRICS, cache_dir=Path(folder) / "cache", concurrency=concurrency))
            requests.append(taken(pipe))
        memory = peak() - before
        calls = requests[0]["calls"]
        alone = {client: asyncio.run(bare(client, calls, concurrency)) for client in BARE}
    if [tables[0].scores(name) for name in METRICS] != [tables[-1].scores(name) for name in METRICS]:
        sys.exit("the warm table is another than the cold one")
    results = count * len(METRICS)
    return {
        **requests[0],
        "floor": max(CHAIN * latency, calls * latency / concurrency),
        "again": sum(sum(each.values()) for each in requests[1:]),
        "took": {
            name: (found.wall, found.cpu / calls * 1000)
            for name, found in {"evaluate()": clocked[0], **{f"bare {it}": alone[it] for it in BARE}}.items()
        },
        "memory": memory,
        "warm": min(found.wall for found in clocked[1:]) / results * 1000,
        "warm_first": clocked[1].wall / results * 1000,
    }


class _Instant:
    """A provider that answers at once."""

    name = kind = "instant"
    is_paid, is_kept = False, True

    async def complete(self, _: Request) -> Reply:
        return Reply(text='{"claims": ["The mill is old."]}')


def links(count: int = 400) -> None:
    """Print what a request costs beside the wire: its own processor, each chain of links with those before it."""
    judge, provider = OpenAIJudge("fake"), _Instant()
    tasks = [ListClaims(text=f"The mill of valley {number} is old.") for number in range(count)]
    took: dict[str, float] = {}

    @contextmanager
    def each(name: str) -> Iterator[None]:
        into: list[Clocked] = []
        with clock(into):
            yield
        took[name] = into[0].cpu / count * 1e6

    async def send(transport: Transport, requests: Sequence[Request]) -> None:
        await asyncio.gather(*(transport.send(request) for request in requests))

    with each("rendering"):
        requests = [replace(judge.request(task), provider=provider) for task in tasks]
    with each("keys"):
        keys = [key_of(request_row(request), plain=True) for request in requests]
    chain = Repair(Limiter(64, CircuitBreakers(Providers(), lambda: None)))
    with each("limiter, breaker, reading"):
        asyncio.run(send(chain, requests))
    with each("and single flight"):
        asyncio.run(send(CachedTransport(chain, width=64), requests))
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "cache") as store:
        asyncio.run(send(CachedTransport(chain, store=store), [replace(requests[0], vote=1)]))
        with each("and locks and the store"):
            asyncio.run(send(CachedTransport(chain, store=store, width=64), requests))
        with each("look-ups"):
            for key in keys:
                store.get(key)
    print("  " + "; ".join(f"{name} {taken:.0f}" for name, taken in took.items()) + " microseconds a request")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what judging costs beside the judge.")
    parser.add_argument("--samples", type=int, nargs="+", default=[50, 500])
    parser.add_argument("--concurrency", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--latency", type=float, default=0.1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--case", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        print(json.dumps(case(asked.samples[0], asked.concurrency[0], asked.latency)))
        return
    for count, concurrency in product(asked.samples, asked.concurrency):
        # Each in a process of its own.
        figures = [f"--samples={count}", f"--concurrency={concurrency}", f"--latency={asked.latency}"]
        command = [sys.executable, "-m", "tests.benchmarks.judged", "--case", *figures]
        runs = [subprocess.run(command, check=True, capture_output=True).stdout for _ in range(asked.repeat)]
        _show(count, concurrency, list(map(json.loads, runs)))


def _show(count: int, concurrency: int, runs: list[dict[str, Any]]) -> None:
    best = min(runs, key=lambda run: run["took"]["evaluate()"])
    floor = best["floor"]
    print(f"{count} samples, {concurrency} in flight: {best['calls']} calls, {best['embeddings']} for vectors")
    print(f"  cold, floor {floor:.2f} s          of the floor (median)   ms of processor a call (median)  of create()")
    created = min(run["took"]["bare create"][1] for run in runs)
    for name in best["took"]:
        walls, cpus = zip(*(run["took"][name] for run in runs), strict=True)
        wall, cpu = min(walls) / floor, min(cpus)
        print(
            f"  {name:25} {wall:8.2f} ({statistics.median(walls) / floor:.2f})"
            f" {cpu:20.2f} ({statistics.median(cpus):.2f}) {cpu / created:19.2f}"
        )
    warm, first = min(run["warm"] for run in runs), min(run["warm_first"] for run in runs)
    print(f"  warm {warm:.2f} ms a result (first time {first:.2f}), {max(run['again'] for run in runs)} calls")
    print(f"  {max(run['memory'] for run in runs):.0f} MB above the imports", flush=True)


if __name__ == "__main__":
    main()
