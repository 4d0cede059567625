"""Reading replies from the local store: a connection for all threads against diskcache, which needs one thread.

``python -m tests.benchmarks.store [ENTRIES]`` prints microseconds a key of both, and their ratio.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import diskcache

from pytest_ragmetrics.cache.entry import CacheEntry, key_of, new_entry
from pytest_ragmetrics.cache.store import Store, text_disk
from pytest_ragmetrics.judges.transports.values import Reply

_REPEAT = 5


def made(count: int) -> list[CacheEntry]:
    """Return so many entries of the size of a judge's reply."""
    requests = [{"task": "verify_claims", "model": "m", "text": f"{n} " + "word " * 400} for n in range(count)]
    reply = Reply(text='{"verdicts": []}', prompt_tokens=900, completion_tokens=80)
    return [new_entry(key_of(request), request, reply, salt="", redact=None) for request in requests]


def timed(read: Callable[[str], object], keys: list[str]) -> float:
    """Return the microseconds a key, the median of several rounds."""
    rounds = []
    for _ in range(_REPEAT):
        start = time.perf_counter()
        for key in keys:
            read(key)
        rounds.append(time.perf_counter() - start)
    return 1e6 * statistics.median(rounds) / len(keys)


def main(count: int) -> None:
    """Print the figures."""
    entries = made(count)
    keys = [entry.key for entry in entries]
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "cache") as store:
        store.put_many(entries)
        # Both without reading the JSON, which costs the same.
        connection = store._connected()
        query = "SELECT mode, filename, value, tag FROM Cache WHERE key = ? AND raw = 1"
        ours = timed(lambda key: connection.execute(query, (key,)).fetchone(), keys)
        # A connection of diskcache can be closed only by the thread that opened it.
        with ThreadPoolExecutor(1) as thread:
            cache = thread.submit(diskcache.Cache, str(store.folder), disk=text_disk()).result()
            theirs = timed(lambda key: thread.submit(cache.get, key, tag=True).result(), keys)
            thread.submit(cache.close).result()
    print(f"{count} entries: {ours:.1f} us a key; diskcache on its thread {theirs:.1f} us; ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
