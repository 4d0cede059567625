"""Gates from the marker to the reports: their tests, in one process and with workers."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from pytest_ragmetrics.cli import main
from tests.plugin.conftest import HOW, MANY, ONE, SERIAL, RunPytest

# What the rows score is decided by their answers; the gates say what becomes of it.
SUITE = """
    import os
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    ROWS = [{"id": f"r{n}", "answer": FALSE if n == 2 else TRUE, "contexts": [SOURCE]} for n in range(4)]
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.7)
    @pytest.mark.rag_gate("quoted_spans_alignment", rate=0.9, min=0.5)
    @pytest.mark.rag_dataset(ROWS, metrics=["quoted_spans_alignment"])
    def test_golden(rag_sample, rag_scores):
        if os.environ.get("DO", "").startswith(rag_sample.id):
            exec(os.environ["DO"].partition(" ")[2])
    def test_other(): pass
"""
#: One set for each end that a gate may come to.
ENDS = """
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    ROWS = [{"id": f"r{n}", "answer": FALSE if n == 2 else TRUE, "contexts": [SOURCE]} for n in range(4)]
    CARP = [{"answer": "9 carp." if n % 4 else "6 carp.", "contexts": ["9 carp."]} for n in range(12)]
    POOR = [{"id": "sound", "answer": "Moss.", "contexts": ["Moss."]}, {"id": "poor", "answer": "Moss."}]
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.7)
    @pytest.mark.rag_dataset(ROWS, metrics=["quoted_spans_alignment"])
    def test_skipping(rag_sample):
        if rag_sample.id == "r1":
            pytest.skip("not today")
    @pytest.mark.rag_gate("quoted_spans_alignment", rate=0.9, min=0.5)
    @pytest.mark.rag_dataset(ROWS, metrics=["quoted_spans_alignment"])
    def test_failing(rag_sample): assert rag_sample.id != "r1"
    @pytest.mark.rag_gate("Faithfulness", mean=0.1)
    @pytest.mark.rag_dataset(POOR, metrics=["faithfulness"])
    def test_unscored(rag_sample): pass
    @pytest.mark.rag_gate("faithfulness", mean=0.1)
    def test_nothing(): pass
    @pytest.mark.rag_gate("faithfulness", mean=0.1)
    @pytest.mark.rag_dataset([{"id": "broken", "answer": 3}], metrics=["faithfulness"])
    def test_broken(rag_sample): pass
    @pytest.mark.rag_gate("numbers_aligned", rate=0.7, min=0.5, confidence=0.9)
    @pytest.mark.rag_dataset(CARP, metrics=["numbers_aligned"])
    def test_open(rag_sample): pass
    QUIET = [{"id": f"v{n}", "answer": FALSE if n == 2 else "Wait.", "contexts": [SOURCE]} for n in range(4)]
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.6, vacuous="count")
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.7)
    @pytest.mark.rag_dataset(QUIET, metrics=["quoted_spans_alignment"])
    def test_vacuous(rag_sample, rag_scores):
        assert rag_scores["quoted_spans_alignment"] >= 0.9 or rag_sample.id == "v2"
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.5)
    class TestPlain:
        @pytest.mark.parametrize("text", [TRUE, FALSE])
        @pytest.mark.parametrize("again", [1, 2])
        def test_many(self, text, again):
            QuotedSpansAlignment().score(response=text, retrieved_contexts=[SOURCE])
        @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.1)
        def test_single(self): QuotedSpansAlignment().score(response=FALSE, retrieved_contexts=[SOURCE])
"""
#: The first LOST rows lost a metric, and half as many rose in one that should be low.
DROP = """
    import os
    LOST = int(os.environ.get("LOST", "0"))
    @metric
    def points(sample): return float(int(sample.id) >= LOST)
    @metric(better="lower")
    def clutter(sample): return float(int(sample.id) < LOST / 2)
    ROWS = [{"id": f"{n}", "answer": "Moss."} for n in range(20)]
    @pytest.mark.rag_gate("points", regression=True)
    @pytest.mark.rag_gate("clutter", regression=True)
    @pytest.mark.rag_dataset(ROWS, metrics=[points, clutter])
    def test_drop(rag_sample): pass
"""
#: A set that lost LOST rows since the run before, with OLD set, and gained as many as make eight.
LOSING = """
    import os
    @metric
    def points(sample):
        row = int(sample.id)
        return float(row < LOST or row >= 8 if "OLD" in os.environ else row >= LOST)
    ROWS = [{"id": f"{n}", "answer": "Moss."} for n in range(20)]
    @pytest.mark.rag_gate("points", regression=True)
    @pytest.mark.rag_gate("points", mean=0.1)
    @pytest.mark.rag_dataset(ROWS, metrics=[points])
    def test_losing(rag_sample): pass
"""
MEAN = "test_suite.py::test_golden[gate-quoted_spans_alignment-mean-0.7]"
RATE = "test_suite.py::test_golden[gate-quoted_spans_alignment-rate-0.9-min-0.5]"


#: Outcome, value and number of scores of each gate, by function and figure.
FOUND = {
    "test_golden mean 0.7": ("passed", 0.75, 4),
    "test_golden rate 0.9": ("failed", 0.75, 4),
    "test_skipping mean 0.7": ("skipped", None, 3),
    "test_failing rate 0.9": ("failed", 0.75, 4),
    "test_unscored mean 0.1": ("failed", 1.0, 1),
    "test_nothing mean 0.1": ("failed", None, 0),
    "test_broken mean 0.1": ("failed", None, 0),
    "test_open rate 0.7": ("inconclusive", 0.75, 12),
    "test_vacuous mean 0.6": ("passed", 0.75, 4),
    "test_vacuous mean 0.7": ("failed", 0.0, 1),
    "TestPlain::test_many mean 0.5": ("passed", 0.5, 4),
    "TestPlain::test_single mean 0.5": ("failed", 0.0, 1),
    "TestPlain::test_single mean 0.1": ("failed", 0.0, 1),
}


def test_every_gate_comes_to_its_end(run: RunPytest, run_once: RunPytest) -> None:
    asked = ("--rag-judge=local", "--rag-json=out.json", "--junitxml=out.xml", "-rfs", "-v")
    files = {"test_suite": SUITE, "test_ends": ENDS}
    alone, many = run(*asked, **files), run_once(*MANY, *asked, **files)
    for ran in (alone, many):
        ran.assert_outcomes(passed=37, failed=11, skipped=2, errors=1)
        by_figure = {
            f"{name.partition('[')[0]} {it['statistic']} {it['bound']:g}": it for name, it in ran.gates.items()
        }
        assert {name: (it["outcome"], it["value"], it["n"]) for name, it in by_figure.items()} == FOUND
        ran.shows_all(
            "*_ test_golden[[]gate-quoted_spans_alignment-rate-0.9-min-0.5[]] _*",
            "quoted_spans_alignment pass rate 0.75 < 0.90 (3 of 4 scores >= 0.5): failed",
            "  0.00  r2: 1 of 1 quoted span not found: *",
            f"FAILED {RATE.replace('[', '[[]')}*",
            "SKIPPED *test_ends.py:*: 1 of 4 tests of the set were skipped or not selected*",
            "faithfulness: 1 of 2 rows is unscored; a gate is over all of them",
            "  poor: row 'poor': faithfulness: retrieved_contexts is missing; *",
            "faithfulness: 1 of 1 row is unscored; a gate is over all of them",
            "  *: its test passed without scoring it",
            "  broken: its test was in error: *response must be a str, not int",
            "numbers_aligned pass rate 0.75 >= 0.70 (90 % interval *): inconclusive: too few rows to tell",
            "  1 of 4 had something to check",
            "quoted_spans_alignment: 18 of 21 had something to check",
        )
        cases = list(ET.parse(ran.folder / "out.xml").iter("testcase"))
        assert len(cases) == 51
        (case,) = (case for case in cases if case.get("name") == MEAN.partition("::")[2])
        values = {found.get("name"): found.get("value") for found in case.iter("property")}
        assert values["rag.quoted_spans_alignment.mean"] == "0.75"
    one, other = ([{**test, "duration": 0} for test in ran.tests.values() if test["gate"]] for ran in (alone, many))
    assert one == other


def test_without_a_terminal(run: RunPytest) -> None:
    ran = run("-p", "no:terminal", "--rag-json=out.json", test_suite=SUITE)
    assert ran.ret == 1
    assert [(gate["outcome"], gate["n"]) for gate in ran.gates.values()] == [("passed", 4), ("failed", 4)]


def test_gates_come_last_in_any_order(run: RunPytest) -> None:
    result = run("-p", "randomly", "-p", "no:cacheprovider", "-v", test_suite=SUITE)
    order = [line.split()[0] for line in result.outlines if line.startswith("test_suite.py::test_golden")]
    assert order[4:] == [MEAN, RATE] if "rate" not in order[4] else order[4:] == [RATE, MEAN]


def test_gates_are_listed(run: RunPytest) -> None:
    result = run("--collect-only", "-q", test_suite=SUITE)
    result.shows("*[[]r3[]]", MEAN.replace("[", "[[]"), RATE.replace("[", "[[]"), "*::test_other")
    named = run("--collect-only", "-q", "test_suite.py::test_golden").outlines
    assert [line for line in named if "gate-" in line] == [MEAN, RATE]


@HOW
def test_gates_stop_a_run_as_tests_do(run: RunPytest, how: list[str]) -> None:
    two = SUITE.replace("mean=0.7", "mean=0.8")
    stopping = """
        def pytest_runtest_logreport(report):
            if "gate-" in report.nodeid and report.when == "teardown":
                SESSION[0].shouldstop = "enough gates"
        def pytest_sessionstart(session): SESSION.append(session)
        SESSION = []
    """
    ends = {"passed": 4, "failed": 1, "deselected": 0 if how else 1}
    run(*how, "-x", "-k", "golden", test_suite=two).assert_outcomes(**ends)
    run(*how, "-k", "golden", conftest=stopping).shows("*Interrupted: enough gates*", **ends)


@HOW
def test_gates_are_collected_and_selected_as_tests(run: RunPytest, how: list[str]) -> None:
    raising = """
    ROWS = [{"id": f"r{n}", "answer": FALSE if n == 2 else TRUE, "contexts": [SOURCE]} for n in range(4)]
    @pytest.fixture(scope="module")
    def source():
        yield
        raise OSError("closed twice")
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.7)
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.8)
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.9)
    @pytest.mark.rag_dataset(ROWS, metrics=["quoted_spans_alignment"])
    def test_raising(rag_sample, source): pass
    """
    result = run(*how, "-v", "--deselect", RATE, test_suite=SUITE, test_raising=raising)
    counted = "1 worker [[]13 items[]]" if how else "*collected 14 items / 1 deselected / 13 selected"
    result.shows(counted, "*OSError: closed twice", "*ERROR *gate-quoted_spans_alignment-mean-0.9*")
    result.assert_outcomes(passed=11, failed=2, errors=1, deselected=0 if how else 1)
    assert not [line for line in result.outlines if RATE in line]
    if not how:
        result = run("--maxfail=2", "-k", "test_raising and not r1")
        result.assert_outcomes(passed=3, skipped=3, errors=1, deselected=8)


def test_a_part_of_the_set_decides_nothing(run: RunPytest) -> None:
    result = run("-rs", "-k", "r1", "--rag-json=out.json", test_suite=SUITE)
    skipped = "SKIPPED *test_suite.py:*: 3 of 4 tests of the set were skipped or not selected*"
    result.shows(skipped, passed=1, skipped=2, deselected=4)
    assert {gate["outcome"] for gate in result.gates.values()} == {"skipped"}
    result = run("-x", "-v", env={"DO": "r1 raise ValueError"})
    assert result.ret != 0
    assert not [line for line in result.outlines if "gate-" in line and ("PASSED" in line or "FAILED" in line)]


@pytest.mark.slow
def test_a_crashed_worker_leaves_the_gate_incomplete(run: RunPytest) -> None:
    run("--rag-json=before.json", test_drop=DROP)
    env = {"DO": "r1 import time; time.sleep(1); os.kill(os.getpid(), 9)", "LOST": "10"}
    files = ("--rag-baseline=before.json", "--rag-json=out.json")
    result = run(*ONE, "--max-worker-restart=2", "-rf", *files, env=env, test_suite=SUITE)
    unscored = "quoted_spans_alignment: 1 of 4 rows is unscored; a gate is over all of them"
    result.shows(unscored, "  r1: its test has not run to its end", passed=25, failed=4)
    rows = result.named
    failed = [name for name, row in rows.items() if row["outcome"] == "failed" and not row["gate"]]
    assert failed == ["test_golden[r1]"]
    assert [len(rows[f"test_golden[r{n}]"]["records"]) for n in range(4)] == [1, 0, 1, 1]
    assert [test["outcome"] for test in drops(result.tests)] == ["failed", "passed"]


def test_a_gate_without_its_set(run: RunPytest) -> None:
    """--lf with nothing but a failed gate runs all rows; by its name it says that they are missing; reruns agree."""
    for how in (("-p", "cacheprovider"), ("--lf",), ("-p", "rerunfailures", "--reruns=1", "--rag-json=out.json")):
        ran = run(*how, test_suite=SUITE)
        ran.assert_outcomes(passed=6, failed=1)
    assert {gate["n"] for gate in ran.gates.values()} == {4}
    run("-rs", RATE).shows("SKIPPED *: 4 of 4 tests of the set were skipped or not selected; *", skipped=1)


def drops(tests: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tests of the regression gates, without their time and place."""
    found = [tests[f"test_drop.py::test_drop[gate-{metric}-regression]"] for metric in ("points", "clutter")]
    return [{**test, "duration": 0, "line": 0} for test in found]


def test_a_proven_drop_fails_its_gate(run: RunPytest) -> None:
    result = run("-rs", "--rag-json=before.json", test_drop=DROP)
    result.assert_outcomes(passed=20, skipped=2)
    result.shows(
        "gate: points against the baseline: skipped (no baseline has its scores yet: --rag-json=FILE writes *",
        "SKIPPED [[]2[]] test_drop.py:*: there is no baseline to compare with: give --rag-baseline=FILE, which *",
    )
    files = ("--rag-markdown=out.md", "--rag-report=out.html", "--junitxml=out.xml")
    result = run("--rag-baseline=before.json", *files, env={"LOST": "10"})
    result.assert_outcomes(passed=21, failed=1)
    few = "20 rows like these show a drop of 0.4 or more in at least 8 of 10 runs, 100 rows one of 0.1"
    proof = "10 of 20 rows got worse, 0 better; if nothing had changed, so large a drop comes in 0.0977 %*"
    result.shows(
        f"points 1.00 -> 0.50: {proof}",
        "    -1.00  1.00 -> 0.00  0",
        f"gate: clutter (lower is better) against the baseline 0.000 -> 0.250, *: passed (n 20; 5 of 20 *{few}), *",
        f"gate: points against the baseline 1.000 -> 0.500, needed no proven drop: failed (n 20; {proof}",
    )
    assert few in result.text("out.md")
    assert few in result.text("out.html")
    assert "alpha 0.05" in result.text("out.html")
    found = {it.get("name"): it.get("value") for it in ET.fromstring(result.text("out.xml")).iter("property")}
    assert [found[f"rag.points.regression{name}"] for name in ("", ".outcome")] == ["-0.5", "failed"]
    assert found["rag.clutter.regression.smallest_drop"] == "0.4"


def test_a_group_that_got_worse_is_named(run: RunPytest) -> None:
    suite = DROP.replace('"points", regression=True', '"points", regression=True, by="language"').replace(
        '"answer": "Moss."', '"answer": "Moss.", **({"language": "de"} if n < 8 else {})'
    )
    run("--rag-json=before.json", test_drop=suite)
    files = ("--rag-json=out.json", "--rag-report=out.html", "--rag-markdown=out.md", "--rag-history=history")
    found = run("--rag-baseline=before.json", *files, env={"LOST": "7"})
    text = (
        "language=de: 7 of 8 rows got worse, 0 better; if nothing had changed, so large a drop in one of the 2 gates of"
    )
    found.shows(f"gate: points against the baseline, by language *{text} the run*", passed=21, failed=1)
    assert all(text in found.text(name) for name in ("out.html", "out.md"))
    gate = found.named["test_drop[gate-points-regression-by-language]"]["gate"]["regression"]
    groups = [(it["name"], it["n"], it["worse"], it["p"]) for it in gate["by_group"]]
    assert groups == [("language=de", 8, 7, 2**-7), ("without language", 12, 0, 1.0)]
    (kept,) = (found.folder / "history").glob("*.json")
    assert json.loads(kept.read_text("utf-8"))["gates"].keys() == {
        name for name, it in found.tests.items() if it["gate"]
    }


def test_shards_decide_as_one_process(run: RunPytest, capsys: pytest.CaptureFixture[str]) -> None:
    def document(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(before.text(name))
        return found

    def decided(name: str) -> list[dict[str, Any]]:
        return drops({test["id"]: test for test in document(name)["tests"]})

    def merge(*arguments: str) -> tuple[int, list[str]]:
        capsys.readouterr()
        ended = main(["report", "merge", *arguments])
        return ended, [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED ")]

    against = ("--baseline", "before.json")
    before = run("--rag-json=before.json", test_drop=DROP)
    for name, part in (("all.json", ()), ("one.json", ("-k", "1")), ("two.json", ("-k", "not 1"))):
        run("--rag-baseline=before.json", f"--rag-json={name}", *part, env={"LOST": "10"})
    assert {test["gate"]["outcome"] for test in decided("one.json") + decided("two.json")} == {"skipped"}
    assert merge("one.json", "two.json", "-o", "open.json") == (0, [])
    note = "2 regression gates are not decided: that takes all tests of the set, and --baseline=FILE"
    assert document("open.json")["run"]["notes"][-1] == note
    ended, lines = merge("one.json", "two.json", *against, "-o", "merged.json")
    note = "2 gates that no single run could decide were decided over all of them"
    assert (ended, document("merged.json")["run"]["notes"][-1]) == (1, note)
    assert decided("merged.json") == decided("all.json")
    [failed] = [test["id"] for test in decided("all.json") if test["outcome"] == "failed"]
    assert [line.partition(" - ")[0] for line in lines] == [f"FAILED {failed}"]
    assert main(["report", "merge", "one.json", "two.json", *against]) == 1
    assert json.loads(capsys.readouterr().out)["tests"] == document("merged.json")["tests"]
    why = "tests of its set are in no file: merge the files of all shards"
    waiting = [f"FAILED {test['id']} - {why}" for test in decided("one.json")]
    for files in (["one.json"], ["one.json"] * 2):
        ended, lines = merge(*files, *against, "--markdown", "out.md")
        assert (ended, sorted(lines)) == (1, sorted(waiting))
    skipping = document("one.json")
    skipping["run"]["skipped"] = {"test_drop.py::test_drop": 1}
    (before.folder / "skipping.json").write_text(json.dumps(skipping), "utf-8")
    assert merge("skipping.json", *against, "--markdown", "out.md")[0] == 0


def test_the_regression_gates_of_a_run_share_one_alpha(run: RunPytest) -> None:
    """Seven rows lost of eight that changed (3.5 %) are proof by themselves, and none beside another set."""
    suites = {f"test_{name}": LOSING.replace("LOST", lost) for name, lost in (("a", "7"), ("b", "4"))}
    run("--rag-json=before.json", env={"OLD": "1"}, **suites)
    files = ("--rag-baseline=before.json", "--rag-json=out.json")
    text = "7 of 20 rows got worse, 1 better; if nothing had changed, so large a drop in one of the 2 gates of the run"
    for how in (ONE, SERIAL):
        found = run(*how, "-v", *files)
        found.shows(f"gate: points against *{text} comes in 7.03 % of runs (limit 5 %)*", passed=44)
        gates = {name: test["gate"] for name, test in found.tests.items() if test["gate"]}
        drops = {name: gate["regression"]["adjusted_p"] for name, gate in gates.items() if gate["regression"]}
        assert [*drops.values()] == [9 / 128, 163 / 256]
    order = [line.split()[0] for line in found.outlines if "gate-" in line and "PASSED" in line and "::" in line]
    assert order == [*(name for name in gates if name not in drops), *drops]
    run(*files, "--rag-alpha=0.1").shows("*comes in 7.03 % of runs (limit 10 %)*", failed=1, passed=43)
    assert [run(*files[:1], f"--rag-json={name}.json", f"test_{name}.py").ret for name in "ab"] == [1, 0]
    assert main(["report", "merge", "a.json", "b.json", "-o", "merged.json"]) == 0
    merged = json.loads(found.text("merged.json"))
    assert {test["id"]: test["gate"] for test in merged["tests"] if test["gate"]} == gates
    note = "1 regression gate that failed in one run was passed: the gates of all runs share the limit"
    assert (merged["run"]["exit_status"], merged["run"]["notes"][-1]) == (0, note)


def test_a_metric_of_the_suite_has_its_own_scale(run: RunPytest) -> None:
    suite = """
        @metric(scale=(0.0, 10.0))
        def stars(response): return 9.0
        @pytest.mark.rag_gate("stars", mean=7, confidence=0.9)
        @pytest.mark.rag_dataset([{"response": f"{n}"} for n in range(30)], metrics=[stars])
        def test_stars(rag_sample): pass
    """
    (gate,) = run("--rag-json=out.json", test_suite=suite).gates.values()
    assert 7.0 < gate["low"] < 9.0 < gate["high"] < 10.0
