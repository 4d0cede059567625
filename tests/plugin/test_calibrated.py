"""Holding a judge to human labels in a suite."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.runs.merge import merge_documents
from pytest_ragmetrics.runs.records import render_json
from pytest_ragmetrics.runs.wording.runs import tallies
from tests.documents import document
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import ONE, RunPytest

MANUAL = "Open the valve slowly. The pump needs two minutes to fill. Never run the pump dry."
ANSWERS = {
    "Open the valve slowly.": 1,
    "The pump needs two minutes to fill.": 1,
    "Never run the pump dry.": 1,
    "The warranty covers broken hoses for eleven years.": 0,
    "Paint the casing with blue enamel every spring.": 0,
    "Call the dealer in Rotterdam about spare filters.": 0,
    # People see this one otherwise than the judge.
    "Never run the pump dry, and open the valve slowly.": 0,
}

SUITE = """
from pathlib import Path
LABELS = Path(__file__).parent / "labels.jsonl"
def test_the_judge(rag_judge):
    found = rag_calibrated("faithfulness", LABELS, min_kappa={floor}, threshold=0.5, by="estimate")
    run = evaluate([{{"response": "Open the valve slowly.", "contexts": [{manual!r}]}}] * 4, "faithfulness")
    print("corrected", run.corrected_mean("faithfulness", calibration=found).estimate)
"""


@pytest.fixture(autouse=True)
def labels(pytester: pytest.Pytester) -> None:
    """Write labelled answers beside the suite."""
    numbered = enumerate(ANSWERS.items())
    rows = [{"id": f"q{n}", "response": text, "contexts": [MANUAL], "label": label} for n, (text, label) in numbered]
    pytester.path.joinpath("labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def test_a_judge_passes_that_agrees_enough(run: RunPytest) -> None:
    fails = SUITE.format(floor=0.9, manual=MANUAL)
    options = ("--rag-judge=local", "-s", "--assert=plain")
    result = run(*options, test_it=SUITE.format(floor=0.6, manual=MANUAL), test_more=fails)
    result.assert_outcomes(passed=1, failed=1)
    result.shows(
        "*corrected 1.0*",
        "E*AssertionError: kappa 0.72 < 0.90 (95 % interval *, n=7)",
        "E*faithfulness by local (heuristic) against 7 human labels: 3 good, 4 bad",
        "E*q6: people say bad (label 0), the judge passed it",
    )


def test_a_judge_is_not_skipped_for_want_of_one(run: RunPytest) -> None:
    result = run(test_it=SUITE.format(floor=0.6, manual=MANUAL).replace("rag_judge", ""))
    result.shows("*this metric needs a judge*", failed=1)
    suite = SUITE.format(floor=1.0, manual=MANUAL).partition("    run =")[0]
    run("--rag-judge=openai:gpt-5.4-mini", "--rag-dry-run", "-rs", test_it=suite).assert_outcomes(skipped=1)


HELD = """
from pathlib import Path
from pytest_ragmetrics.metrics import Faithfulness
LABELS = Path(__file__).parent / "labels.jsonl"
@pytest.fixture(scope="module")
def held(): return rag_calibrated("faithfulness", LABELS, min_kappa=-1, threshold=0.5)
@pytest.mark.rag_gate("faithfulness", mean=1.0)
@pytest.mark.parametrize("n", range(3))
def test_app(n, held, rag_judge):
    assert Faithfulness().score(response="Open the valve slowly.", retrieved_contexts=[{manual!r}]) == 1.0
    rag_calibrated("faithfulness", LABELS, min_kappa=-1, threshold=0.5)
def test_judge(rag_judge): rag_calibrated("faithfulness", LABELS, min_kappa=-1, threshold=0.5)
"""


def test_labelled_answers_are_in_no_figure_of_the_application(run: RunPytest, tmp_path: Path) -> None:
    files = ("--rag-json=out.json", "--rag-markdown=out.md", "--rag-report=out.html", "--junitxml=out.xml")
    (before := tmp_path / "before.json").write_text(render_json(document()), "utf-8")
    options = ("--rag-judge=local", f"--rag-history={tmp_path / 'history'}", f"--rag-baseline={before}", *files, *ONE)
    result = run(*options, test_it=HELD.format(manual=MANUAL))
    line = "calibration: 35 labelled rows of faithfulness by local (heuristic), in no figure of the application"
    result.shows("faithfulness  3  1.000  1.000        0         0", line, passed=5)
    result.shows("against the baseline: 0 better, 0 worse, 3 new")
    markdown, page, junit = (result.text(f"out.{kind}") for kind in ("md", "html", "xml"))
    assert "| faithfulness | 3 | 1.000 | 1.000 | 0 | 0 |" in markdown
    assert line in markdown
    assert line in page
    assert "3 scores of 1 metric in 3 tests" in page
    assert junit.count('name="rag.faithfulness" value') == 3
    assert 'name="rag.faithfulness.n" value="3"' in junit
    [history] = (tmp_path / "history").iterdir()
    assert '"mean": 1.0,' in history.read_text("utf-8")
    merged = merge_documents([result.document] * 2)
    [tally] = tallies(merged)
    assert (tally.n, tally.mean) == (3, 1.0)
    assert sum(len(test.calibration) for test in merged.tests) == 35


def test_the_age_of_the_replies_is_told_and_fresh_asks_anew(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    asked = """
        from pathlib import Path
        @pytest.mark.parametrize("again", [1, 2])
        def test_the_judge(again):
            found = rag_calibrated("relevance", ROWS, min_kappa=-1, threshold=0.5{fresh})
            print("days", found.reply_days, found.to_json())
            rag_calibrated("relevance", ROWS, min_kappa=1, threshold=0.5{fresh})
        ROWS = [{{"question": f"Question {{n}}?", "answer": "A.", "label": n % 2}} for n in range(10)]
    """
    server.answer = lambda body: json.dumps({"reason": "So.", "rating": 4 if "Question 3?" in str(body) else 0})
    options = ("--rag-judge=openai:m", "-s")
    run(*options, test_it=asked.format(fresh="")).shows("*days (0, 0)*", "*its replies are from today", failed=2)
    assert len(server.requests) == 10
    with Store(pytester.path / ".ragmetrics") as store:
        for days, entry in enumerate([*store]):
            made = datetime.now(timezone.utc) - timedelta(days=days, hours=1)
            store.put(replace(entry, created=made.isoformat(timespec="seconds")))
    older = run(*options)
    older.shows("*days (0, 9)*", '*"reply_days": *', "*its replies are 0 to 9 days old", failed=2)
    assert len(server.requests) == 10
    # Once a run, and stored for later runs.
    fresh = asked.format(fresh=", fresh=True")
    run(*options, "--rag-dry-run", test_it=fresh).shows("relevance * 40 *10 *30 *")
    run(*options, "--rag-cache=replay").shows("*days (0, 9)*", failed=2)
    assert len(server.requests) == 10
    run(*options).shows("*days (0, 0)*", failed=2)
    assert len(server.requests) == 20
    run(*options, test_it=asked.format(fresh="")).shows("*days (0, 0)*", failed=2)
    assert len(server.requests) == 20
