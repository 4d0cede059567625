"""The last runs of main as the baseline of gates and assertions: in a run, under xdist, and for merged shards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_ragmetrics.cli import main
from tests.plugin.conftest import ONE, SERIAL, RunPytest

#: Rows of which some fail each day, and more of them once the application has become worse.
SUITE = """
    import os
    BAD = [int(row) for row in os.environ["BAD"].split()]
    ROWS = [{"id": f"q{n}", "question": f"What is {n}?", "answer": FALSE if n in BAD else TRUE, "contexts": [SOURCE]}
            for n in range(12)]
    @pytest.mark.rag_gate("quoted_spans_alignment", regression=True)
    @pytest.mark.rag_dataset(ROWS, metrics=["quoted_spans_alignment"])
    def test_bot(rag_scores): pass
    def test_table(): assert_no_regression(evaluate(ROWS, ["quoted_spans_alignment"]))
"""
TREND = ("--rag-history=trend", "--rag-baseline=history:5")
GATE = "gate: quoted_spans_alignment against"


def on(branch: str, bad: str) -> dict[str, str]:
    return {"GITHUB_SHA": "4f2c91a0d7e5b8c3", "GITHUB_REF_NAME": branch, "BAD": bad}


def test_gates_and_assertions_take_the_last_runs_of_main(run: RunPytest) -> None:
    """Four rows that fail are no proof against one run of which one row fails, and one against three."""
    first = run(*TREND, env=on("main", "1"), test_it=SUITE)
    first.shows("baseline: there is no run in *trend yet", passed=12, skipped=2)
    for bad in ("2", "3", ""):
        run(*TREND, env=on("main", bad)).shows(f"{GATE} * of main, *", passed=14)
    run(*TREND, "-k", "q1 or table", env=on("main", "")).assert_outcomes(passed=4, skipped=1)
    for how in (SERIAL, ONE):
        red = run(*TREND, *how, "--rag-report=out.html", "--rag-json=out.json", env=on("fix", "1 2 3 4 5"))
        red.assert_outcomes(passed=12, failed=2)
        red.shows_all(
            "*  baseline: 4 runs of main, 20*; 1 left out: 20* is not whole (-k)",
            "E*AssertionError: quoted_spans_alignment 0.94 -> 0.58: 5 of 12 rows got worse, * better; *",
            f"{GATE} 4 runs of main, 20* 0.938 -> 0.583, needed no proven drop: failed (n 12, runs 1 left out: 20*",
            "baseline: 5 runs of main, 20*, in *trend; a FILE of --rag-json shows what changed test by test, too",
        )
        red.stdout.no_fnmatch_line("against the baseline: *")
        (gate,) = (test["gate"] for test in red.tests.values() if test["gate"])
        assert (gate["regression"]["runs"], gate["regression"]["p"] < 0.01) == (4, True)
        assert "runs of main" in red.text("out.html")


def test_merged_shards_take_the_last_runs_and_add_theirs(run: RunPytest, capsys: pytest.CaptureFixture[str]) -> None:
    suite = SUITE.partition("    def test_table")[0]
    shards = ["q0 or q1 or q2", "not (q0 or q1 or q2)"]

    def merged(branch: str, bad: str, *more: str) -> tuple[int, str]:
        for number, part in enumerate(shards):
            run(f"--rag-json={number}.json", "-k", part, env=on(branch, bad), test_it=suite)
        capsys.readouterr()
        args = ("report", "merge", "0.json", "1.json", "--baseline=history:5", "--history=trend", "-o", "all.json")
        status = main([*args, *more])
        for file in Path("trend").iterdir():  # runs of one second may be those that are merged
            file.write_text(re.sub(r'"started": "20\d\d', '"started": "2019', file.read_text("utf-8")), "utf-8")
        return status, capsys.readouterr().out

    assert merged("main", "1")[0] == 0
    assert [merged("main", bad)[0] for bad in ("2", "3")] == [0, 0]
    status, said = merged("fix", "1 2 3 4 5", "--markdown=all.md")
    assert status == 1
    assert "FAILED test_it.py::test_bot[gate-quoted_spans_alignment-regression] - quoted_spans_alignment 0." in said
    assert "trend: written" in said
    assert "against 3 runs of main, " in Path("all.md").read_text("utf-8")
    assert '"baseline: 3 runs of main, ' in Path("all.json").read_text("utf-8")
    assert len([*Path("trend").iterdir()]) == 4
    for args, said in (
        (["--baseline=history:5"], "--baseline: history:5 reads the folder of --rag-history: give --history DIR too"),
        (["--baseline=history:"], "'history:': write history:5 for the last 5 runs"),
    ):
        with pytest.raises(SystemExit):
            main(["report", "merge", "0.json", "1.json", *args])
        assert said in capsys.readouterr().err
