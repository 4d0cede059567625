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
names = {"input": "user_input", "actual_output": "response", "retrieval_context": "retrieved_contexts"}
cases = [LLMTestCase(**{name: row[field] for name, field in names.items()}) for row in rows]
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


_JUDGED = ["--rag-judge=openai:fake", "--rag-embedder=openai:vectors", "-q"]
_PYTEST = [sys.executable, "-m", "pytest", "-p", "ragmetrics", "-p", "no:cacheprovider", *_JUDGED]


def main() -> None:
    parser = argparse.ArgumentParser(description="What running ahead is worth.")
    for name, default in (("--rows", 500), ("--alone", 20), ("--latency", 0.1), ("--repeat", 3)):
        parser.add_argument(name, type=type(default), default=default)
    parser.add_argument("--deepeval", metavar="PYTHON")
    asked = parser.parse_args()
    rows = [json.dumps(sample(number).to_mapping()) + "\n" for number in range(1, asked.rows + 1)]
    golden, few = "".join(rows), "".join(rows[: asked.alone])
    with server(asked.latency) as pipe:
        suite, table = [], []
        for _ in range(asked.repeat):
            # In turn, so that a busy machine is busy for both.
            suite.append(timed(_PYTEST, {"golden.jsonl": golden, "test_golden.py": _SUITE}, pipe))
            table.append(timed([sys.executable, "-c", _TABLE], {"golden.jsonl": golden}, pipe))
            if suite[-1][1] != table[-1][1]:
                sys.exit(f"the suite made {suite[-1][1]} requests, the table {table[-1][1]}")
        none, _ = timed(_PYTEST, {"test_golden.py": "def test_nothing(): pass"}, pipe)
        alone, _ = timed(_PYTEST, {"golden.jsonl": few, "test_golden.py": _ALONE}, pipe)
        after_another = none + (alone - none) / asked.alone * asked.rows
        walls = [[wall for wall, _ in runs] for runs in (suite, table)]
        print(f"{asked.rows} rows by {len(METRICS)} metrics, {suite[0][1]} requests, {asked.latency:g} s each")
        for name, found in zip(("as one test a row", "as one table"), walls, strict=True):
            print(f"  {name:18} {min(found):7.2f} s (median {statistics.median(found):.2f})")
        print(f"  one after another  {after_another:7.2f} s (from {asked.alone} rows: {alone:.2f} s)")
        pairs = statistics.median(ours / theirs for ours, theirs in zip(*walls, strict=True))
        print(f"  tests to table     {min(walls[0]) / min(walls[1]):.2f}, median of pairs {pairs:.2f} (1.25)")
        print(f"  tests to one after another {min(walls[0]) / after_another:.3f} (0.1)")
        if asked.deepeval:
            wall, calls = timed([asked.deepeval, "-c", _DEEPEVAL], {"golden.jsonl": few}, pipe)
            print(f"  deepeval, faithfulness alone, {asked.alone} rows: {wall:.2f} s, {calls} requests", flush=True)


if __name__ == "__main__":
    main()
