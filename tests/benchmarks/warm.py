"""What the plugin costs a suite where no provider is asked: at the start, in a replay, in a data set without scores.

    python -m tests.benchmarks.warm [--rows 150] [--plain-rows 20000] [--entries 10000] [--repeat 5]

Processes are measured in pairs, with and without, in turn: processor time, of the fastest of each. The places of claims
are compared with a search for a pattern a claim, reading a cassette with ``json.loads`` of each of its lines.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pytest_ragmetrics.cache.cassette import Cassette, line_of
from pytest_ragmetrics.metrics.verdicts import place_in
from tests.benchmarks.datasets import line, parsed, timings
from tests.benchmarks.judged import sample, server
from tests.benchmarks.store import made

METRICS = ("faithfulness", "answer_relevancy", "context_recall", "context_precision", "hallucination")
_PLUGIN = ("-p", "pytest_ragmetrics.plugin")
_JUDGE = ("--rag-judge=openai:fake", "--rag-embedder=openai:fake", "--rag-cassette=judge.jsonl")
_ROWS = """
import pytest
@pytest.mark.rag_dataset("rows.jsonl"{metrics})
def test_row(rag_sample{scores}):
    assert rag_sample
"""
_BARE = """
import json
import pytest
ROWS = [json.loads(line) for line in open("rows.jsonl", encoding="utf-8")]
@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_row(row):
    assert row
"""


def processor(folder: Path, *options: str) -> float:
    """Return the seconds of processor of a run of pytest that passes, without the plugins that happen to be there.

    Bytecode is kept, whatever this environment says: pytest's own is there, and compiling ours would count every time.
    """
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stdout + run.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pair(repeat: int, one: Callable[[], float], other: Callable[[], float]) -> tuple[float, float]:
    """Return the least of both, measured in turn; the first of each writes the bytecode."""
    one(), other()
    found = [(one(), other()) for _ in range(repeat)]
    return min(first for first, _ in found), min(second for _, second in found)


def start(folder: Path, repeat: int) -> None:
    (folder / "test_plain.py").write_text("def test_plain():\n    pass\n")
    ours, bare = pair(repeat, lambda: processor(folder, *_PLUGIN), lambda: processor(folder))
    print(f"start: {1000 * (ours - bare):.1f} ms over {1000 * bare:.0f} ms of pytest alone, ratio {ours / bare:.2f}")


def plain_rows(folder: Path, rows: int, repeat: int) -> None:
    (folder / "rows.jsonl").write_text("".join(f"{line(number, named=True)}\n" for number in range(rows)))
    (folder / "test_bare.py").write_text(_BARE)
    (folder / "test_rows.py").write_text(_ROWS.format(metrics="", scores=""))
    ours, bare = pair(
        repeat, lambda: processor(folder, *_PLUGIN, "test_rows.py"), lambda: processor(folder, "test_bare.py")
    )
    each = [1000 * seconds / rows for seconds in (ours - bare, bare)]
    print(f"{rows} rows: {each[0]:.2f} ms a test over {each[1]:.2f} of pytest alone, ratio {ours / bare:.2f}")


def replay(folder: Path, rows: int, repeat: int) -> None:
    data = [replace(sample(number), reference_contexts=None).to_mapping() for number in range(1, rows + 1)]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in data))
    (folder / "test_scored.py").write_text(_ROWS.format(metrics=f", metrics={[*METRICS]}", scores=", rag_scores"))
    (folder / "test_rows.py").write_text(_ROWS.format(metrics="", scores=""))
    with server(0.0):
        processor(folder, *_PLUGIN, *_JUDGE, "test_scored.py")
    scored, bare = pair(
        repeat,
        lambda: processor(folder, *_PLUGIN, *_JUDGE, "--rag-cache=replay", "test_scored.py"),
        lambda: processor(folder, *_PLUGIN, "test_rows.py"),
    )
    each = 1000 * (scored - bare) / (rows * len(METRICS))
    print(f"replay of {rows} x {len(METRICS)}: {scored:.2f} s, {scored / bare:.2f} of {bare:.2f} s without scores"
          f" ({each:.2f} ms a score, imports among it)")  # fmt: skip


def cassette(folder: Path, entries: int) -> None:
    """Print what it takes to open a cassette and use a hundredth of it, and to save it unchanged."""
    kept = {entry.key: entry for entry in made(entries)}
    file = folder / "judge.jsonl"
    file.write_text("".join(f"{line_of(kept[key])}\n" for key in sorted(kept)), encoding="utf-8")
    some = [*kept][::100]
    used = Cassette(file).pick(some)
    loads = min(timings(lambda: parsed(file), 3))
    reading = min(timings(lambda: Cassette(file).pick(some), 3))
    saving = min(timings(lambda: Cassette(file).save(used, complete=False), 3))
    print(f"cassette of {entries}: opened {reading:.3f} s, saved unchanged {saving:.3f} s;"
          f" json.loads of all lines {loads:.3f} s, ratios {reading / loads:.2f} and {saving / loads:.2f}")  # fmt: skip


def claims(count: int) -> None:
    response = " ".join(f"Mill {number} turns {number} times a day." for number in range(count))
    texts = [f"Mill {n} turns {n} times a day." if n % 2 else f"Mill {n} stands still." for n in range(count)]
    ours = min(timings(lambda: [place_in(response, text) for text in texts], 3))
    patterns = [rf"(?<!\w){re.escape(text)}(?!\w)" for text in texts]
    (pattern,) = timings(lambda: [re.search(each, response) for each in patterns], 1)
    print(f"places of {count} claims, {count // 2} of them there: {ours:.3f} s,"
          f" a pattern each {pattern:.3f} s, ratio {ours / pattern:.3f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what the plugin costs where no provider is asked.")
    for name, default in (("--rows", 150), ("--plain-rows", 20_000), ("--entries", 10_000), ("--repeat", 5)):
        parser.add_argument(name, type=int, default=default)
    asked = parser.parse_args()
    claims(3_000)
    measures: list[tuple[Callable[..., None], tuple[int, ...]]] = [
        *((cassette, (asked.entries,)), (start, (3 * asked.repeat,))),
        *((replay, (asked.rows, asked.repeat)), (plain_rows, (asked.plain_rows, asked.repeat))),
    ]
    for measure, sizes in measures:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), *sizes)


if __name__ == "__main__":
    main()
