"""Gates: thresholds over a whole set of tests, each of them one more test, in one process and in many."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import pytest

RunPytest = Callable[..., pytest.RunResult]
Scored = Callable[[], dict[str, dict[str, Any]]]

#: Four tests, of which one scores 0.0 and three score 1.0; what they are told to do they do to one row.
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
MEAN = "test_suite.py::test_golden[gate-quoted_spans_alignment-mean-0.7]"
RATE = "test_suite.py::test_golden[gate-quoted_spans_alignment-rate-0.9-min-0.5]"
SERIAL: list[str] = []
MANY = ["-p", "xdist", "-n2"]
EVERY = pytest.mark.parametrize("how", [SERIAL, MANY], ids=["one process", "workers"])


@EVERY
def test_a_gate_is_a_test(run: RunPytest, scored: Scored, pytester: pytest.Pytester, how: list[str]) -> None:
    """It passes or fails by the scores of its set, says which rows are the worst, and is in every report."""
    result = run(*how, "--rag-json=out.json", "--junitxml=out.xml", "-rf", "-v", test_suite=SUITE)
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_golden[[]gate-quoted_spans_alignment-rate-0.9-min-0.5[]] _*",
            "quoted_spans_alignment pass rate 0.75 < 0.90 (3 of 4 scores >= 0.5): failed",
            "  0.00  r2: 1 of 1 quoted span not found: *",
            f"FAILED {RATE.replace('[', '[[]')}*",
        ]
    )
    gates = {name: test["gate"] for name, test in scored().items() if test["gate"]}
    assert {name: (gate["value"], gate["outcome"], gate["n"]) for name, gate in gates.items()} == {
        MEAN: (0.75, "passed", 4),
        RATE: (0.75, "failed", 4),
    }
    cases = {case.get("name"): case for case in ET.parse(pytester.path / "out.xml").iter("testcase")}  # noqa: S314 - our own
    assert len(cases) == 7
    case = cases[MEAN.partition("::")[2]]
    values = {found.get("name"): found.get("value") for found in case.iter("property")}
    assert values["rag.quoted_spans_alignment.mean"] == "0.75"


@pytest.mark.parametrize("dist", ["load", "loadfile", "loadscope", "loadgroup", "worksteal"])
def test_every_way_to_share_out_tests(run: RunPytest, scored: Scored, dist: str) -> None:
    """However workers share the rows, the gate is over all of them."""
    run(*MANY, f"--dist={dist}", "--rag-json=out.json", test_suite=SUITE).assert_outcomes(passed=6, failed=1)
    assert [test["gate"]["n"] for test in scored().values() if test["gate"]] == [4, 4]


def test_gates_come_last_in_any_order(run: RunPytest) -> None:
    """Each gate stands behind the last test of its set, however the tests are shuffled."""
    result = run("-p", "randomly", "-p", "no:cacheprovider", "-v", test_suite=SUITE)
    order = [line.split()[0] for line in result.outlines if line.startswith("test_suite.py::test_golden")]
    assert order[4:] == [MEAN, RATE] if "rate" not in order[4] else order[4:] == [RATE, MEAN]


def test_gates_are_listed(run: RunPytest) -> None:
    """--collect-only shows them, in the order in which they are written."""
    result = run("--collect-only", "-q", test_suite=SUITE)
    result.stdout.fnmatch_lines(["*[[]r3[]]", MEAN.replace("[", "[[]"), RATE.replace("[", "[[]"), "*::test_other"])


@EVERY
def test_a_part_of_the_set_decides_nothing(run: RunPytest, scored: Scored, how: list[str]) -> None:
    """When some of its tests are not selected the gate is skipped, and says how many are missing."""
    result = run(*how, "-rs", "-k", "r1", "--rag-json=out.json", test_suite=SUITE)
    result.assert_outcomes(passed=1, skipped=2, deselected=0 if how else 4)
    result.stdout.fnmatch_lines(["SKIPPED *test_suite.py:*: 3 of 4 tests of the set were skipped or not selected*"])
    assert {test["gate"]["outcome"] for test in scored().values() if test["gate"]} == {"skipped"}


@EVERY
def test_a_skipped_row_makes_the_set_partial(run: RunPytest, monkeypatch: pytest.MonkeyPatch, how: list[str]) -> None:
    """A row that was skipped leaves the gate undecided, even if it had been scored."""
    monkeypatch.setenv("DO", "r1 pytest.skip('not today')")
    run(*how, test_suite=SUITE).assert_outcomes(passed=4, skipped=3)


@EVERY
def test_a_failed_row_counts_with_its_score(run: RunPytest, monkeypatch: pytest.MonkeyPatch, how: list[str]) -> None:
    """A test that failed was scored all the same."""
    monkeypatch.setenv("DO", "r1 raise ValueError")
    result = run(*how, test_suite=SUITE)
    result.assert_outcomes(passed=5, failed=2)
    result.stdout.fnmatch_lines(["quoted_spans_alignment pass rate 0.75 < 0.90 (3 of 4 scores >= 0.5): failed"])


def test_a_crashed_worker_leaves_the_gate_incomplete(run: RunPytest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row that was lost with its worker is named, and no figure is made up without it."""
    monkeypatch.setenv("DO", "r1 os._exit(3)")
    result = run(*MANY, "-rf", test_suite=SUITE)
    result.assert_outcomes(passed=4, failed=3)
    result.stdout.fnmatch_lines(
        [
            "quoted_spans_alignment: 1 of 4 rows is unscored; a gate is over all of them",
            "  r1: its test has not run to its end",
        ]
    )


@EVERY
def test_an_unscored_row_fails_the_gate(run: RunPytest, how: list[str]) -> None:
    """A row without a score is named with its reason; so is a test that scored nothing."""
    result = run(
        *how,
        "--rag-judge=local",
        test_suite="""
            import pytest
            ROWS = [{"id": "sound", "answer": "Moss.", "contexts": ["Moss."]}, {"id": "poor", "answer": "Moss."}]
            @pytest.mark.rag_gate("Faithfulness", mean=0.1)
            @pytest.mark.rag_dataset(ROWS, metrics=["faithfulness"])
            def test_golden(rag_sample):
                pass
            @pytest.mark.rag_gate("faithfulness", mean=0.1)
            def test_nothing():
                pass
            @pytest.mark.rag_gate("faithfulness", mean=0.1)
            @pytest.mark.rag_dataset([{"id": "broken", "answer": 3}], metrics=["faithfulness"])
            def test_broken(rag_sample):
                pass
        """,
    )
    result.assert_outcomes(passed=3, failed=3, errors=1)
    result.stdout.fnmatch_lines(
        [
            "faithfulness: 1 of 2 rows is unscored; a gate is over all of them",
            "  poor: row 'poor': faithfulness: retrieved_contexts is missing; *",
            "faithfulness: 1 of 1 rows is unscored; a gate is over all of them",
            "  *: its test passed without scoring it",
            "  broken: its test was in error: *response must be a str, not int",
        ],
        consecutive=False,
    )


def test_a_gate_over_plain_tests(run: RunPytest) -> None:
    """Tests that score for themselves have gates as well, on functions, classes and modules."""
    result = run(
        "-v",
        test_suite="""
            import pytest
            from pytest_ragmetrics.metrics import QuotedSpansAlignment
            from texts import SOURCE, TRUE, FALSE
            pytestmark = pytest.mark.rag_gate("quoted_spans_alignment", mean=0.5)
            class TestIt:
                @pytest.mark.parametrize("text", [TRUE, FALSE])
                @pytest.mark.parametrize("again", [1, 2])
                def test_plain(self, text, again):
                    QuotedSpansAlignment().score(response=text, retrieved_contexts=[SOURCE])
            def test_single():
                QuotedSpansAlignment().score(response=FALSE, retrieved_contexts=[SOURCE])
        """,
    )
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*::TestIt::test_plain[[]gate-quoted_spans_alignment-mean-0.5[]] PASSED*",
            "*::test_single[[]gate-quoted_spans_alignment-mean-0.5[]] FAILED*",
        ]
    )


def test_an_interval_may_leave_it_open(run: RunPytest, scored: Scored) -> None:
    """With a confidence the bound must be outside of the interval; what is undecided fails and says so."""
    result = run(
        "--rag-json=out.json",
        test_suite="""
            import pytest
            ROWS = [{"answer": "9 carp." if n % 4 else "6 carp.", "contexts": ["9 carp."]} for n in range(12)]
            @pytest.mark.rag_gate("numbers_aligned", rate=0.7, min=0.5, confidence=0.9)
            @pytest.mark.rag_dataset(ROWS, metrics=["numbers_aligned"])
            def test_golden(rag_sample):
                pass
        """,
    )
    result.assert_outcomes(passed=12, failed=1)
    result.stdout.fnmatch_lines(["numbers_aligned pass rate 0.75 >= 0.70 (90 % interval *): inconclusive", "  about *"])
    (gate,) = [test["gate"] for test in scored().values() if test["gate"]]
    assert gate["outcome"] == "inconclusive"
    assert gate["low"] < 0.7 < gate["high"]


def test_lower_may_be_better(run: RunPytest) -> None:
    """For a metric whose low scores are the good ones, mean= is an upper bound and max= what a score may reach."""
    run(
        test_suite="""
            import pytest
            from pytest_ragmetrics import MetricResult
            from pytest_ragmetrics.metrics import Metric
            class Clutter(Metric):
                name = "clutter"
                better = "lower"
                def measure(self, sample):
                    return MetricResult(len(sample.response) / 10, metric=self.name)
            @pytest.mark.rag_gate("clutter", mean=0.35)
            @pytest.mark.rag_gate("clutter", rate=1.0, max=0.4)
            @pytest.mark.rag_gate("clutter", mean=0.1)
            @pytest.mark.rag_dataset([{"answer": "Moss"}, {"answer": "Ox"}], metrics=[Clutter()])
            def test_golden(rag_sample):
                pass
        """
    ).assert_outcomes(passed=4, failed=1)


def test_after_a_gate_failed_the_whole_set_runs_again(run: RunPytest) -> None:
    """--lf with nothing but a failed gate runs all rows, since the gate alone could decide nothing."""
    run("-p", "cacheprovider", test_suite=SUITE).assert_outcomes(passed=6, failed=1)
    run("--lf").assert_outcomes(passed=6, failed=1)


def test_a_gate_by_its_name(run: RunPytest) -> None:
    """The id that a failure shows can be given to pytest; alone it says that its rows are missing."""
    result = run("-rs", RATE, test_suite=SUITE)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED *: 4 of 4 tests of the set were skipped or not selected; *"])


@EVERY
def test_a_run_that_stops_early_decides_no_gate(
    run: RunPytest, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    """After -x there is no verdict on the set."""
    monkeypatch.setenv("DO", "r1 raise ValueError")
    result = run(*how, "-x", "-v", test_suite=SUITE)
    assert result.ret != 0
    result.stdout.no_fnmatch_line("*gate-*PASSED*")
    result.stdout.no_fnmatch_line("*gate-*FAILED*")


def test_reruns_do_not_disturb(run: RunPytest, scored: Scored) -> None:
    """A gate that is run again comes to the same end, and counts no row twice."""
    run("-p", "rerunfailures", "--reruns=1", "--rag-json=out.json", test_suite=SUITE)
    assert {test["gate"]["n"] for test in scored().values() if test["gate"]} == {4}


@pytest.mark.parametrize("how", [SERIAL, MANY], ids=["one process", "workers"])
def test_without_a_terminal(run: RunPytest, scored: Scored, how: list[str]) -> None:
    """Gates are decided where no terminal reports them."""
    assert run(*how, "-p", "no:terminal", "--rag-json=out.json", test_suite=SUITE).ret == 1
    assert {test["gate"]["outcome"] for test in scored().values() if test["gate"]} == {"passed", "failed"}


@EVERY
@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("", "it takes the name of one metric; write *"),
        ("'faithfulness'", "give one of mean= and rate=; write *"),
        ("'faithfulness', mean=0.5, rate=0.5", "give one of mean= and rate=; *"),
        ("'faithfulness', rate=0.5", "rate= needs the score that counts as good: min=, *"),
    ],
)
def test_a_wrong_marker_is_told_before_any_test(run: RunPytest, how: list[str], marker: str, said: str) -> None:
    """A gate that says nothing ends the run, and names the function."""
    result = run(
        *how,
        test_wrong=f"""
            import pytest
            @pytest.mark.rag_gate({marker})
            @pytest.mark.parametrize("n", [1, 2])
            def test_it(n):
                pass
        """,
    )
    (result.stdout if how else result.stderr).fnmatch_lines([f"ERROR: test_wrong.py::test_it: marker rag_gate: {said}"])
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if how else pytest.ExitCode.USAGE_ERROR) or how
    result.stdout.no_fnmatch_line("*passed*")


def test_the_methods_of_a_class_have_gates(run: RunPytest, no_provider: None) -> None:
    """A marker on a method is of its rows, one on the class of the rows of each method."""
    result = run(
        test_it="""
            import pytest
            ROWS = [{"id": str(n), "response": "Built in 1932.", "contexts": ["It dates from 1932."]} for n in range(2)]
            @pytest.mark.rag_gate("numbers_aligned", mean=0.5)
            @pytest.mark.rag_dataset(ROWS, metrics=["numbers_aligned"])
            class TestBoth:
                def test_one(self, rag_scores):
                    pass
                @pytest.mark.rag_gate("numbers_aligned", mean=0.9)
                def test_two(self, rag_scores):
                    pass
        """,
    )
    result.assert_outcomes(passed=7)


@EVERY
def test_a_method_of_unittest_has_no_gates(run: RunPytest, how: list[str]) -> None:
    """Pytest does not show what it makes of these: the marker ends the run instead of meaning nothing."""
    result = run(
        *how,
        test_wrong="""
            import pytest, unittest
            class TestIt(unittest.TestCase):
                @pytest.mark.rag_gate("faithfulness", mean=0.5)
                def test_it(self):
                    pass
        """,
    )
    said = "ERROR: test_wrong.py::TestIt::test_it: marker rag_gate: it means nothing on a method of unittest.*"
    (result.stdout if how else result.stderr).fnmatch_lines([said])
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if how else pytest.ExitCode.USAGE_ERROR)
    result.stdout.no_fnmatch_line("*passed*")


def test_the_same_figures_from_one_process_and_from_many(run: RunPytest, pytester: pytest.Pytester) -> None:
    """What the report says of gates does not depend on who ran the rows."""
    found = []
    for how in (SERIAL, MANY):
        run(*how, "--rag-json=out.json", test_suite=SUITE)
        tests = json.loads((pytester.path / "out.json").read_text("utf-8"))["tests"]
        found.append([{**test, "duration": 0} for test in tests if test["gate"]])
    assert found[0] == found[1]
