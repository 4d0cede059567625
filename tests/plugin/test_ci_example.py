"""The workflow to copy is one that GitHub can read, and its commands do what it says."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_ragmetrics.cli import main
from tests.plugin.conftest import write_files

EXAMPLES = Path(__file__).parents[2] / "conftest_examples"
RETRIEVAL = "def test_the_source_is_quoted(): assert_quoted_spans_aligned(TRUE, SOURCE)"
Step = dict[str, Any]


@pytest.fixture
def workflow() -> dict[str, Any]:
    """Return the workflow as it is read by GitHub."""
    read: dict[str, Any] = yaml.safe_load((EXAMPLES / "ci" / "rag.yml").read_text("utf-8"))
    return read


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a project as the README of the example takes it for granted, and a page for the summary."""
    answers = pytester.path / "tests" / "rag" / "answers"
    left_out = shutil.ignore_patterns("__pycache__", ".*", "*.ini", "*.jsonl")
    shutil.copytree(EXAMPLES / "openai", answers, ignore=left_out)
    shutil.copy(EXAMPLES / "openai" / "judge.jsonl", answers.parent)
    write_files(answers.parent / "retrieval", test_retrieval=RETRIEVAL)
    readme = (EXAMPLES / "ci" / "README.md").read_text("utf-8")
    (ini,) = re.findall(r"^```ini\n(.*?)^```$", readme, flags=re.DOTALL | re.MULTILINE)
    pytester.makeini(f"{ini}rag_embedder = openai:text-embedding-3-small\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    return pytester.path


def steps(job: dict[str, Any], event: str) -> list[Step]:
    """Return the steps that run on an event where none fails."""
    wanted = {
        "github.event_name == 'pull_request'": event == "pull_request",
        "github.event_name != 'pull_request'": event != "pull_request",
        "${{ !cancelled() && github.event_name != 'pull_request' }}": event != "pull_request",
        "${{ !cancelled() }}": True,
    }
    return [step for step in job["steps"] if "if" not in step or wanted[step["if"]]]


def commands(job: dict[str, Any], event: str, shard: str = "") -> list[list[str]]:
    """Return the commands of a job, in the words that the shell makes of them."""
    lines = [step["run"].replace("${{ matrix.shard }}", shard) for step in steps(job, event) if "run" in step]
    return [shlex.split(line) for line in lines]


def pytest_arguments(command: list[str]) -> list[str] | None:
    """Return the arguments of a command that calls pytest."""
    return command[3:] if command[:3] == ["python", "-m", "pytest"] else None


def test_every_option_of_the_workflow_exists(pytester: pytest.Pytester, workflow: dict[str, Any]) -> None:
    known = pytester.runpytest_inprocess("-p", "ragmetrics", "--help").stdout.str()
    for event in ("pull_request", "push"):
        for job in workflow["jobs"].values():
            for command in commands(job, event, "answers"):
                arguments = pytest_arguments(command)
                assert arguments or command[:4] == ["python", "-m", "pip", "install"] or command[0] == "ragmetrics"
                for option in arguments or ():
                    assert not option.startswith("-") or re.search(rf"^  {option.split('=')[0]}\b", known, re.MULTILINE)


def test_what_a_job_may_ask(workflow: dict[str, Any]) -> None:
    for job in workflow["jobs"].values():
        assert "secrets" not in str(steps(job, "pull_request"))
    ran = [pytest_arguments(command) for command in commands(workflow["jobs"]["test"], "pull_request", "answers")]
    assert [("--rag-cache=replay" in arguments) for arguments in ran if arguments] == [True]
    pushed = steps(workflow["jobs"]["test"], "push")
    (asking,) = [step for step in pushed if "secrets" in str(step)]
    assert "--rag-max-cost=" in asking["run"]
    restored, saved = (step for step in pushed if "actions/cache" in step.get("uses", ""))
    assert restored["with"]["path"] == saved["with"]["path"] == ".ragmetrics"
    assert restored["with"]["key"] == saved["with"]["key"]
    assert saved["with"]["key"].startswith(restored["with"]["restore-keys"])
    assert saved["if"].startswith("${{ !cancelled()")


def test_the_commands_of_a_pull_request_make_one_report(
    pytester: pytest.Pytester, project: Path, workflow: dict[str, Any]
) -> None:
    test, report = workflow["jobs"]["test"], workflow["jobs"]["report"]
    for shard, outcomes in {"retrieval": {"passed": 1}, "answers": {"passed": 4, "xfailed": 1}}.items():
        assert shard in test["strategy"]["matrix"]["shard"]
        (arguments,) = filter(None, map(pytest_arguments, commands(test, "pull_request", shard)))
        result = pytester.runpytest_inprocess("-p", "ragmetrics", *arguments)
        result.assert_outcomes(**outcomes)
        assert result.ret == pytest.ExitCode.OK
        (uploaded,) = (step["with"] for step in steps(test, "pull_request") if "upload" in step.get("uses", ""))
        assert (project / uploaded["path"].replace("${{ matrix.shard }}", shard)).exists()
    summary = (project / "summary.md").read_text("utf-8")
    assert "faithfulness" in summary
    assert "quoted_spans_alignment" in summary
    (merging,) = [command for command in commands(report, "pull_request") if command[0] == "ragmetrics"]
    files = [file for word in merging[1:] for file in [*map(str, sorted(project.glob(word)))] or [word]]
    assert main(files) == 0
    page = (project / report["steps"][-1]["with"]["path"]).read_text("utf-8")
    assert "test_the_source_is_quoted" in page
    assert "faithfulness" in page
