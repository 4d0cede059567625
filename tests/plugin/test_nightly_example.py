"""The two jobs of the nightly workflow, against a provider with batches."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fake_batches import FakeBatches

EXAMPLE = Path(__file__).parents[2] / "conftest_examples" / "nightly"


def test_both_jobs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLE, pytester.path / "tests" / "nightly", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    pytester.makeini("[pytest]\n")
    jobs: dict[str, Any] = yaml.safe_load((EXAMPLE / "nightly.yml").read_text("utf-8"))["jobs"]
    lines = {name: [s["run"] for s in job["steps"] if "pytest " in s.get("run", "")] for name, job in jobs.items()}
    with FakeBatches() as server:
        server.name_in(monkeypatch)
        for job, outcomes in (("submit", 0), ("collect", 0), ("collect", 5), ("collect", 5)):
            (command,) = (line for line in lines[job] if "--rag-batch" in line)
            result = pytester.runpytest_inprocess("-p", "ragmetrics", *shlex.split(command)[3:])
            result.assert_outcomes(passed=outcomes, skipped=5 - outcomes)
            assert result.ret == pytest.ExitCode.OK
        assert [len(batch.requests) for batch in server.batches.values()] == [4, 4]
        assert (server.twice, sum(server.paid_singly.values())) == (0, 0)
