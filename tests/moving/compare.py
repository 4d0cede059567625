"""Run suites of Ragas and DeepEval with the real packages, then as moved, and print the scores beside each other.

    python -m tests.moving.compare

``.ci/moving`` runs it in an environment with both packages. One server judges all, by the same rule: see
``their_judge``. The scores of a suite are in ascending order. Exits with 1 if a test fails, or if scores differ and
``_WHY`` does not say why.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from functools import partial
from math import isclose
from pathlib import Path

from pytest_ragmetrics.runs.records import read_document
from tests.fake_openai import FakeOpenAI
from tests.moving.their_judge import judge

Scores = dict[str, list[float]]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_BEFORE = ("Ragas", "DeepEval")
#: The suites that run with the versions of today and need no application.
SUITES = (
    "ragas/agent",
    "ragas/collections_of_metrics",
    "ragas/column_map",
    "ragas/conversation",
    "ragas/csv_file",
    "ragas/without_a_model",
    "deepeval/csv_and_json_goldens",
    "deepeval/g_eval_steps",
    "deepeval/multi_turn",
    "deepeval/rag_triad",
    "deepeval/without_a_model",
)
#: Names of theirs that are others here, in results.
_OURS = {
    "Contextual Precision": "context_precision",
    "Contextual Recall": "context_recall",
    "Contextual Relevancy": "context_relevancy",
    "Correctness [GEval]": "correctness",
    "Json Correctness": "valid_json",
    "Tool Correctness": "tool_call_f1",
    "Turn Faithfulness": "faithfulness",
    "non_llm_context_precision_with_reference": "non_llm_context_precision",
    "string_present": "string_presence",
}
#: What the pages say of a metric whose score is another here.
_WHY = {
    "Answer Relevancy": "statements about the question there, questions made from the answer here",
    "Faithfulness": "a claim that the contexts do not mention passes there",
    "Tool Correctness": "the share of the expected calls there, F1 here",
    "Turn Faithfulness": "a score of the conversation there, of each answer here",
    "answer_relevancy": "three questions of three requests there, of one here",
}


def main() -> int:
    """Run all suites and print the table."""
    faults, rows = [], [("suite", "metric of theirs", "theirs", "ours", "why they differ")]
    with tempfile.TemporaryDirectory() as folder, FakeOpenAI(answer=judge) as server:
        for suite in SUITES:
            blocks = _BLOCK.findall((HERE / f"{suite}.md").read_text("utf-8"))
            theirs, ours = (Path(folder, side, suite) for side in ("theirs", "ours"))
            environment = {**os.environ, **_environment(server), "THEIR_TOOL": suite.partition("/")[0]}
            for side, before in ((theirs, True), (ours, False)):
                if _fails(side, blocks, environment, before=before):
                    faults.append(f"{suite}: tests of {side.parts[-3]} fail")
            found = scores_of_ours(ours)
            for name, scores in scores_of_theirs(theirs).items():
                mine = found.get(_OURS.get(name) or name.lower().replace(" ", "_"), [])
                equal = len(mine) == len(scores) and all(map(partial(isclose, abs_tol=1e-9), scores, mine))
                why = "" if equal else _WHY.get(name, "")
                rows.append((suite, name, written(scores), written(mine), why))
                if not equal and not why:
                    faults.append(f"{suite}: {name} is {scores} there and {mine} here")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print("\n".join(faults) or "All scores are equal, or differ as the pages say.")
    return 1 if faults else 0


def written(scores: list[float]) -> str:
    return " ".join(f"{score:.3f}" for score in scores) or "none"


def _environment(server: FakeOpenAI) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "sk-fake",
        "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
        "DEEPEVAL_DISABLE_PROGRESS_BAR": "1",
        "RAGAS_DO_NOT_TRACK": "true",
    }


def _fails(folder: Path, blocks: list[tuple[str, str, str]], environment: dict[str, str], *, before: bool) -> bool:
    """Write one side of a suite and run it; return whether a test fails, with the output printed."""
    folder.mkdir(parents=True)
    for language, title, code in blocks:
        if before == (title in _BEFORE) or (before and language != "python"):
            (folder / ("test_suite.py" if title in ("", *_BEFORE) else title)).write_text(code, "utf-8")
    ours = ["--rag-json=out.json", "--rag-judge=openai:judge", "--rag-embedder=openai:embedder"]
    options = ["-p", "tests.moving.their_scores"] if before else ours
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir=.", "-p", "no:cacheprovider", *options]
    if before:  # ours runs from the wheel
        environment = {**environment, "PYTHONPATH": str(ROOT), "THEIR_SCORES": str(folder / "scores.jsonl")}
    ran = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)
    if ran.returncode:
        print(ran.stdout[-6000:], ran.stderr[-2000:])
    return bool(ran.returncode)


def scores_of_theirs(folder: Path) -> Scores:
    found: Scores = defaultdict(list)
    file = folder / "scores.jsonl"
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        name, score = json.loads(line)
        found[name].append(score)
    return {name: sorted(scores) for name, scores in found.items()}


def scores_of_ours(folder: Path) -> Scores:
    found: Scores = defaultdict(list)
    for test in read_document(folder / "out.json").tests:
        for record in test.records:
            if record.score is not None:
                found[record.metric].append(record.score)
    return {name: sorted(scores) for name, scores in found.items()}


if __name__ == "__main__":
    sys.exit(main())
