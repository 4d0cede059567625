"""What running ahead is worth: a data set as one test a row, against one table, and against one test after the other.

    python -m tests.benchmarks.golden [--rows 500] [--alone 20] [--latency 0.1] [--repeat 3] [--deepeval PYTHON]

Three judged metrics a row, against a server of our own in a process of its own. The suite and the table do the same
work with the same concurrency, each in a fresh process with a fresh cache; both are timed from start to end, imports
included. One test after the other is measured on a few rows and multiplied, since all of them would take minutes.
``--deepeval`` names a Python that has deepeval: its own faithfulness metric is then timed on the same server.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from tests.benchmarks.judged import sample, server, taken

METRICS = ("faithfulness", "answer_relevancy", "context_recall")
_SUITE = f"""
import pytest

@pytest.mark.rag_dataset("golden.jsonl", metrics={list(METRICS)!r})
def test_golden(rag_sample, rag_scores):
    for name in rag_scores:
        assert rag_scores[name] >= 0
"""
_ALONE = f"""
import json
import pytest
from pytest_ragmetrics import Sample
from pytest_ragmetrics.metrics.registry import metric_for

ROWS = [json.loads(line) for line in open("golden.jsonl")]

@pytest.mark.parametrize("row", ROWS)
def test_golden(row):
    for name in {METRICS!r}:
        assert metric_for(name).score_sample(Sample.from_mapping(row)) >= 0
"""
_TABLE = f"""
import json
from pytest_ragmetrics import evaluate

rows = [json.loads(line) for line in open("golden.jsonl")]
table = evaluate(rows, {METRICS!r}, cache_dir=".ragmetrics", progress=False)
assert all(found.unscored == 0 for found in table.stats().values())
"""
_DEEPEVAL = """
import json
from deepeval import evaluate
from deepeval.metrics import FaithfulnessMetric
from deepeval.models import GPTModel
from deepeval.test_case import LLMTestCase

rows = [json.loads(line) for line in open("golden.jsonl")]
cases = [
    LLMTestCase(input=r["user_input"], actual_output=r["response"], retrieval_context=r["retrieved_contexts"])
    for r in rows
]
evaluate(cases, [FaithfulnessMetric(model="gpt-4o-mini", async_mode=True)])
"""


def timed(command: list[str], files: dict[str, str], pipe: Connection) -> tuple[float, int]:
    """Run a command in a folder with these files; return its seconds and the requests to the judge it took."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, "utf-8")
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES"}
        taken(pipe)
        started = time.perf_counter()
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - started
    if run.returncode:
        sys.exit(f"{command}: {run.stdout[-3000:]}{run.stderr[-3000:]}")
    # How many texts share a request for vectors is chance.
    return wall, taken(pipe)["calls"]


def pytest_with(*args: str) -> list[str]:
    """Return the command that runs a suite with the plugin."""
    judged = ["--rag-judge=openai:fake", "--rag-embedder=openai:vectors", "-q"]
    return [sys.executable, "-m", "pytest", "-p", "ragmetrics", "-p", "no:cacheprovider", *judged, *args]


def main() -> None:
    """Measure and print, best of several."""
    parser = argparse.ArgumentParser(description="What running ahead is worth.")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--alone", type=int, default=20)
    parser.add_argument("--latency", type=float, default=0.1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--deepeval", metavar="PYTHON")
    asked = parser.parse_args()
    rows = [json.dumps(sample(number).to_mapping()) + "\n" for number in range(1, asked.rows + 1)]
    golden, few = "".join(rows), "".join(rows[: asked.alone])
    with server(asked.latency) as pipe:
        suite: list[float] = []
        table: list[float] = []
        for _ in range(asked.repeat):
            # In turn, so that a busy machine is busy for both.
            wall, calls = timed(pytest_with(), {"golden.jsonl": golden, "test_golden.py": _SUITE}, pipe)
            suite.append(wall)
            wall, same = timed([sys.executable, "-c", _TABLE], {"golden.jsonl": golden}, pipe)
            table.append(wall)
            if calls != same:
                sys.exit(f"the suite made {calls} requests, the table {same}")
        none, _ = timed(pytest_with(), {"test_golden.py": "def test_nothing(): pass"}, pipe)
        alone, _ = timed(pytest_with(), {"golden.jsonl": few, "test_golden.py": _ALONE}, pipe)
        after_another = none + (alone - none) / asked.alone * asked.rows
        ratios = [ours / theirs for ours, theirs in zip(suite, table, strict=True)]
        print(f"{asked.rows} rows by {len(METRICS)} metrics, {calls} requests, {asked.latency:g} s each")
        print(f"  as one test a row  {min(suite):7.2f} s (median {statistics.median(suite):.2f})")
        print(f"  as one table       {min(table):7.2f} s (median {statistics.median(table):.2f})")
        print(f"  one after another  {after_another:7.2f} s (from {asked.alone} rows: {alone:.2f} s)")
        pairs = statistics.median(ratios)
        print(f"  tests to table     {min(suite) / min(table):.2f}, median of pairs {pairs:.2f} (1.25)")
        print(f"  tests to one after another {min(suite) / after_another:.3f} (0.1)")
        if asked.deepeval:
            wall, calls = timed([asked.deepeval, "-c", _DEEPEVAL], {"golden.jsonl": few}, pipe)
            print(f"  deepeval, faithfulness alone, {asked.alone} rows: {wall:.2f} s, {calls} requests", flush=True)


if __name__ == "__main__":
    main()
