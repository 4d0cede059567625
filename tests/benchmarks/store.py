"""Reading replies from the local store, against a connection of the thread that reads.

``python -m tests.benchmarks.store [ENTRIES]`` prints microseconds a key of both, and their ratio.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from pytest_ragmetrics.cache.entry import CacheEntry, key_of, new_entry
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.judges.transports.values import Reply
from tests.benchmarks.datasets import timings


def made(count: int) -> list[CacheEntry]:
    """Return so many entries of the size of a judge's reply."""
    requests = [{"task": "verify_claims", "model": "m", "text": f"{n} " + "word " * 400} for n in range(count)]
    reply = Reply(text='{"verdicts": []}', prompt_tokens=900, completion_tokens=80)
    return [new_entry(key_of(request), request, reply, salt="", redact=None) for request in requests]


def timed(read: Callable[[str], object], keys: list[str]) -> float:
    """Return the microseconds a key, the median of several rounds."""
    return 1e6 * statistics.median(timings(lambda: [read(key) for key in keys], 5)) / len(keys)


def main(count: int) -> None:
    entries = made(count)
    keys = [entry.key for entry in entries]
    query = "SELECT mode, filename, value, tag FROM Cache WHERE key = ? AND raw = 1"
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "cache") as store:
        store.put_many(entries)
        ours = timed(store.get, keys)
        with closing(sqlite3.connect(store.database)) as connection:
            bare = timed(lambda key: json.loads(connection.execute(query, (key,)).fetchone()[2]), keys)
    print(f"{count} entries: {ours:.1f} us a key; a connection and json.loads {bare:.1f} us; ratio {ours / bare:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
