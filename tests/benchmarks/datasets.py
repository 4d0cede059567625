"""How long it takes to read a data set, against ``json.loads`` on each of its lines alone.

Run with ``python tests/benchmarks/datasets.py [ROWS]``; it prints seconds and their ratio, the best of five.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pytest_ragmetrics.datasets import read_dataset


def line(number: int, *, named: bool) -> str:
    """Return a row of about a kilobyte."""
    row = {
        "user_input": f"Which boat of the harbour carries the number {number}?",
        "response": f"The boat with the number {number} lies at pier {number % 40}.",
        "retrieved_contexts": [f"Pier {number % 40} is {word}. " * 8 for word in ("long", "old", "closed")],
        "reference": f"Boat {number}.",
        "language": "en",
    }
    return json.dumps({"id": f"boat-{number}", **row} if named else row)


def timings(work: Callable[[], object], times: int) -> list[float]:
    """Return the seconds of several attempts."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


def parsed(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    for named in (True, False):
        text = "".join(f"{line(number, named=named)}\n" for number in range(rows))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "rows.jsonl")
            file.write_text(text, encoding="utf-8")
            loads = min(timings(partial(parsed, file), 5))
            reading = min(timings(partial(read_dataset, "rows.jsonl", base=Path(folder)), 5))
        kind = f"{rows} rows {'with' if named else 'without'} ids ({len(text) / 1e6:.1f} MB)"
        print(f"{kind}: read {reading:.2f} s, json.loads {loads:.2f} s, {reading / loads:.1f}x")


if __name__ == "__main__":
    main()
