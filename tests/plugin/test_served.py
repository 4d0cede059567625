"""The models that providers say answered: kept with replies, and named where they differ in a run or since another."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.report.history import read_history
from tests.fake_answers import answer_sensibly
from tests.fake_openai import Body, FakeOpenAI, Reply
from tests.plugin.conftest import MANY, RunPytest

JUDGE = "--rag-judge=openai:m"
SUITE = """
    @pytest.mark.parametrize("n", range(6))
    def test_row(n):
        assert_relevant(f"Question {n}?", f"Answer {n}.", min=0)
"""
OLD, NEW = ("m-2026-01-31", "fp_1"), ("m-2026-08-01", "fp_2")


def serve(server: FakeOpenAI, served: dict[str, tuple[str, str | None]], *, other: tuple[str, str | None]) -> None:
    """Answer as the model of a question, by a word of it, else as another one."""

    def answer(body: Body) -> Reply:
        model = next((served[word] for word in served if word in str(body)), other)
        return Reply(text=str(answer_sensibly(body)), served=model)

    server.answer = answer


def test_two_models_in_a_run_are_a_warning(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    serve(server, {"Question 5": NEW}, other=OLD)
    files = ("--rag-json=out.json", "--rag-report=out.html", "--rag-markdown=out.md", "--rag-history=runs")
    result = run(JUDGE, *files, test_suite=SUITE)
    text = result.document.run.warnings[-1]
    models = "m-2026-01-31 (5 replies) and m-2026-08-01 (1 reply)"
    assert text.startswith(f"the judge openai:m answered as 2 models: {models}; ")
    result.shows(f"warning: {text}", passed=6)
    assert "answered as 2 models" in result.text("out.html")
    assert "answered as 2 models" in result.text("out.md")
    served = {"openai:m": {" ".join(map(str, OLD)): 5, " ".join(map(str, NEW)): 1}}
    assert result.document.run.judging["relevance"].served == served
    (kept,) = read_history(pytester.path / "runs", last=9).runs
    assert kept.run.judging["relevance"].served == served
    with Store(pytester.path / ".ragmetrics") as store:
        assert max(str(entry.reply["served"]) for entry in store) == "m-2026-08-01 fp_2"
    # The cache has it too.
    server.answer = answer_sensibly
    run(JUDGE).shows(f"warning: {text}", passed=6)


def test_another_model_than_the_baseline_is_a_note(run: RunPytest, server: FakeOpenAI) -> None:
    serve(server, {}, other=OLD)
    run(JUDGE, "--rag-json=baseline.json", test_suite=SUITE).assert_outcomes(passed=6)
    serve(server, {"Question 3": (NEW[0], "fp_3")}, other=NEW)
    result = run(JUDGE, "--rag-baseline=baseline.json", "--rag-cache=refresh", *MANY)
    was = "m-2026-08-01 now, m-2026-01-31 in the baseline"
    fingerprints = "m-2026-08-01 fp_2 (5 replies) and m-2026-08-01 fp_3 (1 reply)"
    said = f"openai:m answered with 2 fingerprints: {fingerprints}"
    result.shows(f"another model of openai:m: {was}", said, passed=6)
    result.stdout.no_fnmatch_line("*answered as*")


@pytest.mark.parametrize("served", [None, ("m", None)], ids=["no name", "the name that was asked for"])
def test_a_provider_that_repeats_the_name_says_nothing(
    run: RunPytest, server: FakeOpenAI, tmp_path: Path, served: tuple[str, None] | None
) -> None:
    server.answer = lambda body: Reply(text=str(answer_sensibly(body)), served=served)
    result = run(JUDGE, f"--rag-cache-dir={tmp_path}", "--rag-json=out.json", test_suite=SUITE)
    assert result.document.run.judging["relevance"].served == {}
    with Store(tmp_path) as store:
        assert [entry for entry in store if "served" in entry.reply] == []


def test_workers_that_share_rows_keep_who_answered(run: RunPytest, server: FakeOpenAI) -> None:
    serve(server, {"What is 5?": NEW}, other=OLD)
    suite = """
        ROWS = [{"id": f"q{n}", "question": f"What is {n}?", "answer": TRUE, "contexts": [SOURCE]} for n in range(24)]
        @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
        def test_bot(rag_scores): pass
    """
    result = run(JUDGE, "--rag-json=out.json", *MANY, test_suite=suite)
    result.assert_outcomes(passed=24)
    served = {"openai:m": {" ".join(map(str, OLD)): 23, " ".join(map(str, NEW)): 1}}
    assert result.document.run.judging["relevance"].served == served
