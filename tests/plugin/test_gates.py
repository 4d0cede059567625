"""Gates from the marker to the reports: their tests, in one process and with workers."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from pytest_ragmetrics.cli import main
from tests.plugin.conftest import MANY, SERIAL, Run, RunOnce, RunPytest, Scored

# What the rows score is decided by their answers; the gates say what becomes of it.
SUITE = """
    import os
    import pytest
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    from texts import SOURCE, TRUE, FALSE
    ROWS = [{"id": f"r{n}", "answer": FALSE if n == 2 else TRUE, "contexts": [SOURCE]} for n in range(4)]
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.7)
    @pytest.mark.rag_gate("quoted_spans_alignment", rate=0.9, min=0.5)
    @pytest.mark.rag_dataset(ROWS, metrics=["quoted_spans_alignment"])
    def test_golden(rag_sample, rag_scores):
        if os.environ.get("DO", "").startswith(rag_sample.id):
            exec(os.environ["DO"].partition(" ")[2])
    def test_other():
        pass
"""
#: One set for each end that a gate may come to.
ENDS = """
    import pytest
    from pytest_ragmetrics import MetricResult
    from pytest_ragmetrics.metrics import Metric, QuotedSpansAlignment
    from texts import SOURCE, TRUE, FALSE
    ROWS = [{"id": f"r{n}", "answer": FALSE if n == 2 else TRUE, "contexts": [SOURCE]} for n in range(4)]
    CARP = [{"answer": "9 carp." if n % 4 else "6 carp.", "contexts": ["9 carp."]} for n in range(12)]
    POOR = [{"id": "sound", "answer": "Moss.", "contexts": ["Moss."]}, {"id": "poor", "answer": "Moss."}]
    class Clutter(Metric):
        name = "clutter"
        better = "lower"
        def measure(self, sample):
            return MetricResult(len(sample.response) / 10, metric=self.name)
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.7)
    @pytest.mark.rag_dataset(ROWS, metrics=["quoted_spans_alignment"])
    def test_skipping(rag_sample):
        if rag_sample.id == "r1":
            pytest.skip("not today")
    @pytest.mark.rag_gate("quoted_spans_alignment", rate=0.9, min=0.5)
    @pytest.mark.rag_dataset(ROWS, metrics=["quoted_spans_alignment"])
    def test_failing(rag_sample):
        assert rag_sample.id != "r1"
    @pytest.mark.rag_gate("Faithfulness", mean=0.1)
    @pytest.mark.rag_dataset(POOR, metrics=["faithfulness"])
    def test_unscored(rag_sample):
        pass
    @pytest.mark.rag_gate("faithfulness", mean=0.1)
    def test_nothing():
        pass
    @pytest.mark.rag_gate("faithfulness", mean=0.1)
    @pytest.mark.rag_dataset([{"id": "broken", "answer": 3}], metrics=["faithfulness"])
    def test_broken(rag_sample):
        pass
    @pytest.mark.rag_gate("numbers_aligned", rate=0.7, min=0.5, confidence=0.9)
    @pytest.mark.rag_dataset(CARP, metrics=["numbers_aligned"])
    def test_open(rag_sample):
        pass
    QUIET = [{"id": f"v{n}", "answer": FALSE if n == 2 else "Wait.", "contexts": [SOURCE]} for n in range(4)]
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.6, vacuous="count")
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.7)
    @pytest.mark.rag_dataset(QUIET, metrics=["quoted_spans_alignment"])
    def test_vacuous(rag_sample, rag_scores):
        assert rag_scores["quoted_spans_alignment"] >= 0.9 or rag_sample.id == "v2"
    @pytest.mark.rag_gate("quoted_spans_alignment", rate=0.0, min=0.0)
    @pytest.mark.rag_dataset(QUIET[:2], metrics=["quoted_spans_alignment"])
    def test_silent(rag_sample):
        pass
    @pytest.mark.rag_gate("clutter", mean=0.35)
    @pytest.mark.rag_gate("clutter", rate=1.0, max=0.4)
    @pytest.mark.rag_gate("clutter", mean=0.1)
    @pytest.mark.rag_dataset([{"answer": "Moss"}, {"answer": "Ox"}], metrics=[Clutter()])
    def test_lower(rag_sample):
        pass
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.5)
    class TestPlain:
        @pytest.mark.parametrize("text", [TRUE, FALSE])
        @pytest.mark.parametrize("again", [1, 2])
        def test_many(self, text, again):
            QuotedSpansAlignment().score(response=text, retrieved_contexts=[SOURCE])
        @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.1)
        def test_single(self):
            QuotedSpansAlignment().score(response=FALSE, retrieved_contexts=[SOURCE])
"""
MEAN = "test_suite.py::test_golden[gate-quoted_spans_alignment-mean-0.7]"
RATE = "test_suite.py::test_golden[gate-quoted_spans_alignment-rate-0.9-min-0.5]"
EVERY = pytest.mark.parametrize("how", [SERIAL, MANY], ids=["one process", "workers"])


@pytest.fixture(scope="module")
def runs(run_once: RunOnce) -> list[Run]:
    """Run both suites in one process and with two workers."""
    asked = ("--rag-judge=local", "--rag-json=out.json", "--junitxml=out.xml", "-rfs", "-v")
    return [run_once(*how, *asked, test_suite=SUITE, test_ends=ENDS) for how in (SERIAL, MANY)]


def gates(run: Run) -> dict[str, tuple[object, ...]]:
    """Return outcome, value and number of scores of the gates of a run, by function and figure."""
    found = {name.partition("::")[2]: test["gate"] for name, test in run.tests.items() if test["gate"]}
    return {
        f"{name.partition('[')[0]} {gate['statistic']} {gate['bound']:g}": (gate["outcome"], gate["value"], gate["n"])
        for name, gate in found.items()
    }


def test_every_gate_comes_to_its_end(runs: list[Run]) -> None:
    """It passes or fails by the scores of its set, however that was run; a set that is not whole decides nothing."""
    rows = []
    for run in runs:
        rows.append([{**test, "duration": 0} for test in run.tests.values() if test["gate"]])
        run.result.assert_outcomes(passed=43, failed=13, skipped=2, errors=1)
        assert gates(run) == {
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
            "test_silent rate 0": ("failed", None, 0),
            "test_lower mean 0.35": ("passed", pytest.approx(0.3), 2),
            "test_lower rate 1": ("passed", 1.0, 2),
            "test_lower mean 0.1": ("failed", pytest.approx(0.3), 2),
            "TestPlain::test_many mean 0.5": ("passed", 0.5, 4),
            "TestPlain::test_single mean 0.5": ("failed", 0.0, 1),
            "TestPlain::test_single mean 0.1": ("failed", 0.0, 1),
        }
    assert rows[0] == rows[1]


def test_a_failed_gate_says_which_rows_are_the_worst(runs: list[Run]) -> None:
    """The failure has the figure, the bound and the rows; unscored rows are named with their reasons."""
    for run in runs:
        run.result.stdout.fnmatch_lines_random(
            [
                "*_ test_golden[[]gate-quoted_spans_alignment-rate-0.9-min-0.5[]] _*",
                "quoted_spans_alignment pass rate 0.75 < 0.90 (3 of 4 scores >= 0.5): failed",
                "  0.00  r2: 1 of 1 quoted span not found: *",
                f"FAILED {RATE.replace('[', '[[]')}*",
                "SKIPPED *test_ends.py:*: 1 of 4 tests of the set were skipped or not selected*",
                "faithfulness: 1 of 2 rows is unscored; a gate is over all of them",
                "  poor: row 'poor': faithfulness: retrieved_contexts is missing; *",
                "faithfulness: 1 of 1 rows is unscored; a gate is over all of them",
                "  *: its test passed without scoring it",
                "  broken: its test was in error: *response must be a str, not int",
                "numbers_aligned pass rate 0.75 >= 0.70 (90 % interval *): inconclusive: too few rows to tell",
            ]
        )


def test_rows_with_nothing_to_check_pass_and_carry_no_gate(runs: list[Run]) -> None:
    """The gate, its line and the table of the summary count them beside the figures; a set of them fails."""
    for run in runs:
        run.result.stdout.fnmatch_lines_random(
            [
                "quoted_spans_alignment mean 0.00 < 0.70 (n=1): failed",
                "  1 of 4 had something to check",
                "  0.00  v2: *",
                'quoted_spans_alignment: 0 of 2 had something to check; vacuous="count" *',
                "quoted_spans_alignment: 18 of 23 had something to check",
                "gate: mean quoted_spans_alignment 0.000, *: failed (n 1, 1 of 4 had something to check), *",
                "gate: mean quoted_spans_alignment 0.750, needed >= 0.6: passed (n 4, vacuous scores count), *",
            ]
        )


def test_a_gate_is_a_case_of_the_junit_file(runs: list[Run]) -> None:
    """It is there once, with its figures as properties."""
    for run in runs:
        cases = list(ET.parse(run.folder / "out.xml").iter("testcase"))
        assert len(cases) == 59
        (case,) = (case for case in cases if case.get("name") == MEAN.partition("::")[2])
        values = {found.get("name"): found.get("value") for found in case.iter("property")}
        assert values["rag.quoted_spans_alignment.mean"] == "0.75"


@EVERY
def test_without_a_terminal(run: RunPytest, scored: Scored, how: list[str]) -> None:
    """Gates are decided where no terminal reports them, however workers share the rows."""
    how = [*how, "--dist=loadscope"] if how else how
    assert run(*how, "-p", "no:terminal", "--rag-json=out.json", test_suite=SUITE).ret == 1
    found = [(test["gate"]["outcome"], test["gate"]["n"]) for test in scored().values() if test["gate"]]
    assert found == [("passed", 4), ("failed", 4)]


def test_gates_come_last_in_any_order(run: RunPytest) -> None:
    """Each gate follows the last test of its set, however the tests are shuffled."""
    result = run("-p", "randomly", "-p", "no:cacheprovider", "-v", test_suite=SUITE)
    order = [line.split()[0] for line in result.outlines if line.startswith("test_suite.py::test_golden")]
    assert order[4:] == [MEAN, RATE] if "rate" not in order[4] else order[4:] == [RATE, MEAN]


def test_gates_are_listed(run: RunPytest) -> None:
    """--collect-only shows them, in the order in which they are written."""
    result = run("--collect-only", "-q", test_suite=SUITE)
    result.stdout.fnmatch_lines(["*[[]r3[]]", MEAN.replace("[", "[[]"), RATE.replace("[", "[[]"), "*::test_other"])


@EVERY
def test_a_part_of_the_set_decides_nothing(
    run: RunPytest, scored: Scored, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    """When some of its tests are not selected the gate is skipped and says how many; -x leaves no verdict either."""
    result = run(*how, "-rs", "-k", "r1", "--rag-json=out.json", test_suite=SUITE)
    result.assert_outcomes(passed=1, skipped=2, deselected=0 if how else 4)
    result.stdout.fnmatch_lines(["SKIPPED *test_suite.py:*: 3 of 4 tests of the set were skipped or not selected*"])
    assert {test["gate"]["outcome"] for test in scored().values() if test["gate"]} == {"skipped"}
    monkeypatch.setenv("DO", "r1 raise ValueError")
    result = run(*how, "-x", "-v")
    assert result.ret != 0
    assert not [line for line in result.outlines if "gate-" in line and ("PASSED" in line or "FAILED" in line)]


def test_a_crashed_worker_leaves_the_gate_incomplete(
    run: RunPytest, scored: Scored, monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester
) -> None:
    """The row that was lost with its worker is named, no figure is made up without it, and the other rows are there."""
    monkeypatch.setenv("DO", "r1 os.kill(os.getpid(), 9)")
    files = ("--rag-json=out.json", "--rag-markdown=out.md")
    result = run(*MANY, "--max-worker-restart=2", "-rf", *files, test_suite=SUITE)
    result.assert_outcomes(passed=4, failed=3)
    result.stdout.fnmatch_lines(
        [
            "quoted_spans_alignment: 1 of 4 rows is unscored; a gate is over all of them",
            "  r1: its test has not run to its end",
        ]
    )
    rows = {name.partition("::")[2]: row for name, row in scored().items()}
    failed = [name for name, row in rows.items() if row["outcome"] == "failed" and not row["gate"]]
    assert failed == ["test_golden[r1]"]
    assert [len(rows[f"test_golden[r{n}]"]["records"]) for n in range(4)] == [1, 0, 1, 1]
    assert "test_suite.py::test_golden[r1]" in (pytester.path / "out.md").read_text("utf-8")


def test_a_gate_without_its_set(run: RunPytest, scored: Scored) -> None:
    """--lf with nothing but a failed gate runs all rows; by its name it says that they are missing; reruns agree."""
    for how in (("-p", "cacheprovider"), ("--lf",), ("-p", "rerunfailures", "--reruns=1", "--rag-json=out.json")):
        run(*how, test_suite=SUITE).assert_outcomes(passed=6, failed=1)
    assert {test["gate"]["n"] for test in scored().values() if test["gate"]} == {4}
    result = run("-rs", RATE)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED *: 4 of 4 tests of the set were skipped or not selected; *"])


#: The first LOST rows lost a metric, and half as many rose in one that should be low.
DROP = """
    import os
    import pytest
    from pytest_ragmetrics import MetricResult
    from pytest_ragmetrics.metrics import Metric
    LOST = int(os.environ.get("LOST", "0"))
    class Points(Metric):
        name = "points"
        def measure(self, sample):
            return MetricResult(float(int(sample.id) >= LOST), metric=self.name)
    class Clutter(Metric):
        name = "clutter"
        better = "lower"
        def measure(self, sample):
            return MetricResult(float(int(sample.id) < LOST / 2), metric=self.name)
    ROWS = [{"id": f"{n}", "answer": "Moss."} for n in range(20)]
    @pytest.mark.rag_gate("points", regression=True)
    @pytest.mark.rag_gate("clutter", regression=True)
    @pytest.mark.rag_dataset(ROWS, metrics=[Points(), Clutter()])
    def test_drop(rag_sample):
        pass
"""
FILES = ("--rag-json=out.json", "--rag-markdown=out.md", "--rag-report=out.html", "--junitxml=out.xml")


@pytest.fixture(scope="module")
def first(run_once: RunOnce) -> Run:
    """Run the suite without a baseline; the file that it leaves behind is one."""
    return run_once("-rs", FILES[0], test_drop=DROP)


@pytest.fixture(scope="module")
def lost(run_once: RunOnce, first: Run) -> list[Run]:
    """Run it against the baseline in one process, with two workers, and in two parts; ten rows have lost."""
    baseline = f"--rag-baseline={first.folder / 'out.json'}"
    parts = ([*SERIAL, *FILES], [*MANY, *FILES], ["-k", "1", FILES[0]], ["-k", "not 1", FILES[0]])
    return [run_once(*how, baseline, env={"LOST": "10"}, test_drop=DROP) for how in parts]


def drops(tests: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tests of the regression gates, without the time that they took."""
    found = [{**tests[f"test_drop.py::test_drop[gate-{metric}-regression]"]} for metric in ("points", "clutter")]
    return [{name: value for name, value in test.items() if name != "duration"} for test in found]


def test_without_a_baseline_a_regression_gate_is_skipped(first: Run) -> None:
    """So that the same suite writes the first one; the reason names the option."""
    first.result.assert_outcomes(passed=20, skipped=2)
    first.result.stdout.fnmatch_lines(
        [
            "gate: points against the baseline: skipped (nothing compared), *",
            "SKIPPED [[]2[]] test_drop.py:*: there is no baseline to compare with: give --rag-baseline=FILE, which *",
        ]
    )
    assert {test["outcome"] for test in drops(first.tests)} == {"skipped"}


@pytest.mark.parametrize("how", [0, 1], ids=["one process", "workers"])
def test_a_proven_drop_fails_its_gate(lost: list[Run], how: int) -> None:
    """Five rows that changed are none while ten changed in another metric; every output says what could be shown."""
    run = lost[how]
    run.result.assert_outcomes(passed=21, failed=1)
    few = "20 rows like these show a drop of 0.4 or more in at least 8 of 10 runs"
    proof = "10 of 20 rows got worse, 0 better; if nothing had changed, so large a drop comes in 0.0977 %*"
    run.result.stdout.fnmatch_lines(
        [
            f"points 1.00 -> 0.50: {proof}",
            "    -1.00  1.00 -> 0.00  0",
            f"gate: clutter (lower is better) against the baseline 0.000 -> 0.250, *: passed (n 20; 5 of 20 *{few}), *",
            f"gate: points against the baseline 1.000 -> 0.500, needed no proven drop: failed (n 20; {proof}",
        ]
    )
    summary, page, junit = (run.text(name) for name in ("out.md", "out.html", "out.xml"))
    assert few in summary
    assert few in page
    assert "no proven drop (alpha 0.05)" in page
    found = {it.get("name"): it.get("value") for it in ET.fromstring(junit).iter("property")}
    assert [found[f"rag.points.regression{name}"] for name in ("", ".outcome")] == ["-0.5", "failed"]
    assert found["rag.clutter.regression.smallest_drop"] == "0.4"


def test_workers_and_shards_decide_as_one_process(
    lost: list[Run], first: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """A part of the set decides nothing; merged with the baseline it does, and fails the command."""
    alone, workers, *shards = lost
    assert drops(alone.tests) == drops(workers.tests)
    for shard in shards:
        shard.result.assert_outcomes(passed=len(shard.tests) - 2, skipped=2, deselected=22 - len(shard.tests))
        assert {test["gate"]["outcome"] for test in drops(shard.tests)} == {"skipped"}
    files = [str(shard.folder / "out.json") for shard in shards]
    merged = shards[0].folder / "merged.json"
    notes = []
    for baseline in ([], ["--baseline", str(first.folder / "out.json")]):
        assert main(["report", "merge", *files, *baseline, "-o", str(merged)]) == bool(baseline)
        document = json.loads(merged.read_text("utf-8"))
        notes.append(document["run"]["notes"][-1])
    assert notes == [
        "2 regression gates are not decided: that takes all tests of the set, and --baseline=FILE",
        "2 gates that no single run could decide were decided over all of them",
    ]
    assert drops({test["id"]: test for test in document["tests"]}) == drops(alone.tests)
    failed = [test["id"] for test in drops(alone.tests) if test["outcome"] == "failed"]
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED ")]
    assert failed
    assert [line.partition(" - ")[0] for line in lines] == [f"FAILED {name}" for name in failed]
    assert main(["report", "merge", *files, "--baseline", str(first.folder / "out.json")]) == 1
    assert json.loads(capsys.readouterr().out)["tests"] == document["tests"]


def test_a_lost_shard_fails_the_merge_with_a_baseline(
    lost: list[Run], first: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its regression gates cannot be decided, and a green command would say that nothing got worse."""
    shard = lost[2]
    against = ["--baseline", str(first.folder / "out.json"), "--markdown", str(shard.folder / "out.md")]
    for files in ([shard], [shard, shard]):
        assert main(["report", "merge", *(str(each.folder / "out.json") for each in files), *against]) == 1
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED ")]
        waiting = [test["id"] for test in drops(shard.tests)]
        why = "tests of its set are in no file: merge the files of all shards"
        assert sorted(lines) == sorted(f"FAILED {name} - {why}" for name in waiting)
        assert waiting
    document = json.loads((shard.folder / "out.json").read_text("utf-8"))
    document["run"]["skipped"] = {"test_drop.py::test_drop": 1}
    (shard.folder / "skipping.json").write_text(json.dumps(document), "utf-8")
    assert main(["report", "merge", str(shard.folder / "skipping.json"), *against]) == 0


def test_the_regression_gates_of_a_function_share_one_alpha(run: RunPytest) -> None:
    """Two are refused before anything is asked."""
    suite = DROP.replace('"points", regression=True', '"points", regression=True, alpha=0.01')
    result = run(test_drop=suite)
    assert result.ret != 0
    assert "share one alpha=, and here it is 0.01 and 0.05; write the same in each" in result.stdout.str()
