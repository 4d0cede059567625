"""The file that a run adds to a history, and the runs that add none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ragmetrics.report.history import HistoryRun, history_run, read_history
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import ONE, RunPytest

SUITE = """
    def test_true(): assert_quoted_spans_aligned(response=TRUE, contexts=[SOURCE])
    def test_false(): assert_quoted_spans_aligned(response=FALSE, contexts=[SOURCE])
    def test_judged(): assert_faithful(response="The pump hums.", contexts=[SOURCE], min=0)
"""


def only(folder: Path) -> HistoryRun:
    (run,) = read_history(folder, last=9).runs
    return run


def test_workers_leave_one_file(run_once: RunPytest, shared_server: FakeOpenAI) -> None:
    args = (*ONE, "--rag-judge=openai:gpt-5.4-mini", "-k", "test_", "--rag-json=out.json", "--rag-report-title=Bot")
    env = {"RAGMETRICS_HISTORY": "kept", "GITHUB_SHA": "4f2c91a0d7e5b8c3", "GITHUB_HEAD_REF": "sk-0123456789abcdefghij"}
    done = run_once(*args, provider=shared_server, env=env, test_suite=SUITE)
    done.shows("*kept: written")
    run = only(done.folder / "kept")
    assert (run.run.selection, run.run.partial) == ("", "-k")
    outcomes = {test.id.partition("::")[2]: test.outcome for test in run.tests}
    assert outcomes == {"test_false": "failed", "test_judged": "passed", "test_true": "passed"}
    faithful, quoted = (run.run.judging[it.metric] for it in run.metrics)
    assert faithful.judge == "openai:gpt-5.4-mini"
    assert {"list_claims", "verify_claims"} >= faithful.prompts.keys() > set()
    assert quoted.prompts == {}
    told = done.document.run
    assert history_run(done.document) == run
    assert (told.project, told.branch, told.commit) == ("Bot", "***", "4f2c91a0d7e5b8c3")
    assert (run.run.branch, run.run.commit) == ("***", "4f2c91a0d7e5")
    assert "report_title" not in told.settings


@pytest.mark.parametrize(
    ("args", "said"), [(["--rag-dry-run"], "this was a dry run"), (["-k", "plain"], "no test scored anything")]
)
def test_a_run_without_scores_leaves_none(run: RunPytest, args: list[str], said: str) -> None:
    ran = run("-o", "rag_history=kept", *args, test_suite=SUITE + "\n    def test_plain(): pass\n")
    assert [line.rpartition("kept: ")[2] for line in ran.outlines if "kept: " in line] == [f"not written, {said}"]
    assert not (ran.folder / "kept").exists()


DESELECTS = """
    def pytest_collection_modifyitems(config, items): config.hook.pytest_deselected(items=[items.pop(0)])
"""


@pytest.mark.parametrize(
    ("args", "conftest", "said"), [(["-x"], "", "the run stopped early"), ([], DESELECTS, "1 deselected")]
)
def test_a_run_that_leaves_tests_out_is_partial(run: RunPytest, args: list[str], conftest: str, said: str) -> None:
    ran = run("--rag-history=kept", "--rag-judge=local", *args, test_suite=SUITE, conftest=conftest)
    assert only(ran.folder / "kept").run.partial == said
