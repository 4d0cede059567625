"""A drop that is confirmed by further answers of the application, however the set is run."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.cli import main
from tests.fake_openai import Body, FakeOpenAI
from tests.plugin.conftest import MANY, SERIAL, Run, RunOnce

#: The answers of each row, in the order in which it is asked, are in SCRIPT; all that were asked are in asked.txt.
SUITE = """
    import os
    from pathlib import Path
    import pytest
    from texts import SOURCE, TRUE, FALSE
    LOG = Path(__file__).with_name("asked.txt")
    ROWS = [{"id": f"r{n}", "question": f"{n}?", "contexts": [SOURCE]} for n in range(9)]
    @pytest.fixture(scope=os.environ.get("SCOPE", "session"))
    def rag_respond():
        is_open = [True]
        def respond(sample):
            assert is_open
            with LOG.open("a") as log:
                log.write(f"{sample.id}\\n")
            asked = LOG.read_text().split().count(sample.id)
            answers = os.environ["SCRIPT"].split()[int(sample.id[1:])]
            answer = answers[min(asked, len(answers)) - 1]
            if answer == "E":
                raise RuntimeError("out of order")
            return TRUE if answer == "P" else FALSE
        yield respond
        is_open.clear()
    @pytest.mark.rag_gate("quoted_spans_alignment", regression=True, confirm=2)
    @pytest.mark.rag_dataset(ROWS, metrics=["quoted_spans_alignment"])
    def test_golden(rag_sample):
        pass
"""
#: Workers that find no folder to share rows in.
NOWHERE = """
    import pytest
    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_configure_node(node):
        node.workerinput["ragmetrics"]["folder"] = "/dev/null/nowhere"
"""
#: Rows that have an answer, so that only their judge may change its mind.
JUDGED = """
    import pytest
    ROWS = [{"id": f"r{n}", "question": f"Is pool {n} blue?", "answer": f"Pool {n} is."} for n in range(8)]
    @pytest.mark.rag_gate("relevance", regression=True, confirm=2)
    @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
    def test_golden(rag_sample):
        pass
"""
GATE = "test_suite.py::test_golden[gate-quoted_spans_alignment-regression-confirm-2]"
BEFORE = f"{'P ' * 8} F"
STEADY, SOFT = f"{'F ' * 8} F", f"{'FPP ' * 8} P"
NONE = "not confirmed: none of 8 changed rows was answered anew"
CLEARED = (
    "would have been red; cleared by 2 more answers of 9 changed rows: "
    "mean drop 0.19 a row, by the first answers 0.78 (p=0.020)"
)
CONFIRMED = "confirmed by 2 more answers of 8 changed rows: mean drop 1.00 a row, by the first answers 1.00 (p=0.004)"
JSON = "--rag-json=out.json"
RunScript = Callable[..., Run]


@pytest.fixture(scope="module")
def baseline(run_once: RunOnce) -> Path:
    """Run the suite with eight of nine good answers, and return the file of it."""
    first = run_once(JSON, env={"SCRIPT": BEFORE}, test_suite=SUITE)
    first.result.assert_outcomes(passed=9, skipped=1)
    return first.folder / "out.json"


@pytest.fixture(scope="module")
def play(run_once: RunOnce, baseline: Path) -> RunScript:
    """Run the suite with the answers of a script, against the baseline."""

    def run(script: str, *args: str, **env: str) -> Run:
        return run_once(f"--rag-baseline={baseline}", *args, env={"SCRIPT": script, **env}, test_suite=SUITE)

    return run


def asked(run: Run) -> int:
    """Return how many answers the application gave."""
    return len(run.text("asked.txt").split())


def gate(run: Run) -> dict[str, Any]:
    """Return the record of the gate."""
    return dict(run.tests[GATE]["gate"])


@pytest.fixture(scope="module")
def cleared(play: RunScript) -> list[Run]:
    """Run rows that fail once and pass twice, in one process and with workers."""
    files = (JSON, "--rag-report=out.html", "--rag-markdown=out.md", "--junitxml=out.xml")
    return [play(SOFT, *SERIAL, *files, SCOPE="function"), play(SOFT, *MANY, *files)]


def test_a_drop_that_further_answers_do_not_show_is_cleared(cleared: list[Run]) -> None:
    """The gate passes, and every report says why; only rows that changed are asked again, each twice."""
    for run in cleared:
        run.result.assert_outcomes(passed=10)
        assert asked(run) == 9 + 2 * 9
        run.result.stdout.fnmatch_lines([f"gate: quoted_spans_alignment against the baseline *{CLEARED}*"])
        assert CLEARED in unescape(run.text("out.md"))
        assert CLEARED in unescape(run.text("out.html"))
        assert "answered again, to confirm a gate: quoted_spans_alignment 1.00, 1.00" in run.text("out.html")
        assert 'name="rag.quoted_spans_alignment.regression.confirmed" value="9"' in run.text("out.xml")
        assert {len(test["again"]) for test in run.tests.values() if not test["gate"]} == {2}
    assert gate(cleared[0]) == gate(cleared[1])


@pytest.mark.parametrize("last", ["P", "EP"], ids=["first attempt", "second attempt"])
def test_reruns_confirm_as_well(play: RunScript, cleared: list[Run], last: str) -> None:
    """They report the last test of the set behind its teardown, and its first attempt before the next one."""
    run = play(f"{'FPP ' * 8} {last}", "-p", "rerunfailures", "--reruns=1", JSON)
    run.result.assert_outcomes(passed=10)
    assert gate(run) == gate(cleared[0])


@pytest.mark.parametrize("how", [SERIAL, [*MANY, "--dist=worksteal"]], ids=["one process", "workers"])
def test_a_drop_that_stays_is_red(play: RunScript, how: list[str]) -> None:
    """It says how many answers confirm it."""
    run = play(STEADY, *how)
    run.result.assert_outcomes(passed=9, failed=1)
    assert asked(run) == 9 + 2 * 8
    run.result.stdout.fnmatch_lines(["*  the scores dropped (p=0.004)", f"*  {CONFIRMED}", "*regressed: 8"])


@pytest.mark.parametrize(
    ("script", "args", "answers", "said"),
    [
        (f"{'P ' * 5} {'FPP ' * 4}", (), 9, "no drop is shown (p=0.125)*"),
        (STEADY, ("--rag-cache=replay",), 9, f"{NONE}: a replay asks nothing anew"),
        (f"{'FEE ' * 8} F", (), 25, f"{NONE}: rag_respond raised RuntimeError: out of order"),
        (f"{'FFF ' * 7} FEE F", (), 25, "confirmed by 2 more answers of 7 of 8 changed rows (rag_respond raised *"),
        (f"{'F ' * 8} E", (), 9, "1 of 9 rows is unscored; a gate is over all of them"),
        (STEADY, ("--deselect=test_suite.py::test_golden[r0]",), 8, "1 of 9 tests of the set were skipped or not *"),
    ],
)  # fmt: skip
def test_what_is_not_confirmed(play: RunScript, script: str, args: tuple[str, ...], answers: int, said: str) -> None:
    """Nothing is asked again where it cannot change the outcome; a row that has not all answers keeps its first."""
    run = play(script, *args, "-rs")
    run.result.stdout.fnmatch_lines([f"*{said}"])
    assert asked(run) == answers


def test_shards_confirm_their_rows(play: RunScript, cleared: list[Run], baseline: Path, tmp_path: Path) -> None:
    """Merged, they come to the outcome of one run."""
    names = [f"test_suite.py::test_golden[r{n}]" for n in range(9)]
    parts = [play(SOFT, JSON, *(f"--deselect={name}" for name in left_out)) for left_out in (names[:4], names[4:])]
    assert [asked(part) for part in parts] == [5 + 2 * 5, 4 + 2 * 4]
    merged = tmp_path / "merged.json"
    files = [str(part.folder / "out.json") for part in parts]
    assert main(["report", "merge", *files, "--baseline", str(baseline), "-o", str(merged)]) == 0
    tests = {row["id"]: row for row in json.loads(merged.read_text("utf-8"))["tests"]}
    assert (tests[GATE]["gate"], tests[GATE]["outcome"]) == (gate(cleared[0]), "passed")


def test_workers_that_share_no_rows_confirm_nothing(play: RunScript, run_once: RunOnce, baseline: Path) -> None:
    """None of them knows the scores of all rows, so the gate stays red and says so."""
    env = {"SCRIPT": SOFT, "PYTHONPATH": "."}
    args = (*MANY, "-p", "nowhere", f"--rag-baseline={baseline}")
    run = run_once(*args, env=env, test_suite=SUITE, nowhere=NOWHERE)
    run.result.assert_outcomes(passed=9, failed=1)
    run.result.stdout.fnmatch_lines(["*none of 9 changed rows was answered anew: the workers share no rows"])


def test_judgements_that_confirm_are_kept_nowhere(run_once: RunOnce, tmp_path: Path) -> None:
    """They are paid for, also where the same was judged before, and counted; the next run finds the first ones."""
    seen: dict[str, int] = {}

    def rate(body: Body) -> str:
        """Rate the first answers of the second run 0, all others 4."""
        prompt = str(body["messages"])
        seen[prompt] = seen.get(prompt, 0) + 1
        return json.dumps({"reason": "So it seems.", "rating": 0 if seen[prompt] == 2 else 4})

    settings = ("-o", "rag_cassette=answers.jsonl", "--rag-judge=openai:gpt-mine", "-rf")
    with FakeOpenAI(answer=rate) as server:
        first = run_once(*settings, "--rag-json=first.json", provider=server, test_suite=JUDGED)
        again = (*settings, "--rag-baseline=first.json", JSON)
        runs = [
            run_once(*again, *how, provider=server, folder=first.folder)
            for how in (["--rag-cache=refresh"], ["--rag-max-calls=13"], ["--rag-cache=replay"])
        ]
        assert server.calls == 8 + 8 + 16 + 13
    confirmed = "confirmed by 2 more answers of {}: mean drop {} a row, by the first answers 1.00 (p=0.004)"
    budget = "[56] of 8 changed rows (*--rag-max-calls=13 is reached*)"
    said = [
        confirmed.format("8 changed rows", "0.33"),
        confirmed.format(budget, "0.5?"),
        "not confirmed: none of 8 changed rows was answered anew: a replay asks nothing anew",
    ]
    for run, text in zip(runs, said, strict=True):
        run.result.assert_outcomes(passed=8, failed=1)
        run.result.stdout.fnmatch_lines([f"*{text}"])
    runs[0].result.stdout.fnmatch_lines(["judge calls: 24 made *", "*answers.jsonl: written, 8 answers, *"])
    kept = first.text("answers.jsonl").splitlines()
    assert [json.loads(json.loads(line)["reply"]["text"])["rating"] for line in kept] == [0] * 8
