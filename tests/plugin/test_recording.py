"""Every scoring inside a test becomes one record."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from tests.plugin.conftest import RunPytest, Scored

SUITE = """
    import pytest
    from pytest_ragmetrics import assert_quoted_spans_aligned
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    from texts import SOURCE, TRUE, FALSE

    def score(response):
        return QuotedSpansAlignment().score(response=response, retrieved_contexts=[SOURCE])

    def test_passes():
        assert_quoted_spans_aligned(TRUE, SOURCE)

    def test_fails():
        assert score(FALSE) >= 0.9

    @pytest.mark.xfail(strict=True, reason="known to be made up")
    def test_expected():
        assert_quoted_spans_aligned(FALSE, [SOURCE])

    @pytest.mark.xfail(reason="better than feared", strict=False)
    def test_unexpected():
        assert_quoted_spans_aligned(TRUE, [SOURCE])

    def test_measures_twice():
        score(TRUE), score(FALSE)

    def test_skips():
        score(TRUE)
        pytest.skip("enough seen")

    @pytest.fixture
    def breaks_after(request):
        yield
        raise RuntimeError("teardown broke")

    def test_teardown(breaks_after):
        assert score(TRUE) == 1.0

    def test_without_scores():
        pass

    def test_fails_before_it_scores():
        raise RuntimeError("the bot is down")
"""


def test_records_and_outcomes(run: RunPytest, scored: Scored) -> None:
    """Each test that scored is there with its outcome and one record a scoring; so is one that failed before."""
    run("--rag-json=out.json", test_suite=SUITE).assert_outcomes(
        passed=4, failed=2, errors=1, xfailed=1, xpassed=1, skipped=1
    )
    rows = {test.partition("::")[2]: row for test, row in scored().items()}
    assert {name: (row["outcome"], [r["outcome"] for r in row["records"]]) for name, row in rows.items()} == {
        "test_passes": ("passed", ["passed"]),
        "test_fails": ("failed", ["failed"]),
        "test_expected": ("xfailed", ["failed"]),
        "test_unexpected": ("xpassed", ["passed"]),
        "test_measures_twice": ("passed", ["measured", "measured"]),
        "test_skips": ("skipped", ["measured"]),
        "test_teardown": ("error", ["passed"]),
        "test_fails_before_it_scores": ("failed", []),
    }
    assert rows["test_fails"]["records"][0]["threshold"] == {"operator": ">=", "bound": 0.9}
    assert [r["score"] for r in rows["test_measures_twice"]["records"]] == [1.0, 0.0]
    assert rows["test_expected"]["message"].startswith("known to be made up")
    assert rows["test_skips"]["message"] == "Skipped: enough seen"
    assert "teardown broke" in rows["test_teardown"]["message"]
    assert "the bot is down" in rows["test_fails_before_it_scores"]["message"]
    assert rows["test_passes"]["file"] == "test_suite.py"
    assert [row["line"] for row in rows.values()] == sorted(row["line"] for row in rows.values())


def test_a_record_holds_what_the_page_needs(run: RunPytest, scored: Scored) -> None:
    """Response, contexts, verdicts, nearest passage and differences are in the record."""
    run("--rag-json=out.json", "-k", "test_fails", test_suite=SUITE)
    record = scored()["test_suite.py::test_fails"]["records"][0]
    response, context = record["sample"]["response"], record["sample"]["retrieved_contexts"][0]
    (verdict,) = record["verdicts"]
    assert verdict["ok"] is False
    assert response[verdict["start"] : verdict["end"]] == verdict["text"] == "the pump needs nine minutes to fill"
    nearest = verdict["nearest"]
    assert context[nearest["start"] : nearest["end"]] == nearest["text"]
    assert {"kind": "replaced", "said": "nine", "source": "two"} in nearest["changes"]


def test_the_run_is_described(run: RunPytest, pytester: pytest.Pytester) -> None:
    """The document says which version of it this is and what made it."""
    run("--rag-json=out.json", test_suite=SUITE)
    document = json.loads((pytester.path / "out.json").read_text("utf-8"))
    assert document["version"] == 1
    assert document["run"]["exit_status"] == 1
    assert document["run"]["pytest"] == pytest.__version__
    assert document["run"]["duration"] >= 0


def test_scores_are_junit_properties(run: RunPytest, pytester: pytest.Pytester) -> None:
    """The junit file carries rag.<metric> for each scoring, once."""
    run("--junitxml=junit.xml", test_suite=SUITE)
    cases = ET.parse(pytester.path / "junit.xml").iter("testcase")  # noqa: S314 - our own file
    properties = {case.get("name"): [(p.get("name"), p.get("value")) for p in case.iter("property")] for case in cases}
    assert properties["test_fails"] == [("rag.quoted_spans_alignment", "0.0")]
    assert properties["test_measures_twice"] == [
        ("rag.quoted_spans_alignment", "1.0"),
        ("rag.quoted_spans_alignment", "0.0"),
    ]
    assert properties["test_without_scores"] == []


def test_the_terminal_shows_a_line_per_metric(run: RunPytest) -> None:
    """The summary counts scorings, failing and unscored ones, and shows mean and minimum."""
    result = run(test_suite=SUITE)
    result.stdout.fnmatch_lines(
        [
            "*= RAG metrics =*",
            "metric * n *mean *min *failing *unscored",
            "quoted_spans_alignment * 8 *0.625 *0.000 *2 *0",
        ]
    )


def test_a_suite_without_scores_shows_nothing(run: RunPytest) -> None:
    """Where nothing was scored, not a line of ours is printed."""
    result = run(test_plain="def test_plain(): pass")
    result.stdout.no_fnmatch_line("*RAG*")


def test_an_unscored_result_is_a_record_of_its_own_kind(run: RunPytest, scored: Scored) -> None:
    """A metric that finds nothing to score fails the test and is counted as unscored, not as zero."""
    result = run(
        "--rag-json=out.json",
        "--junitxml=junit.xml",
        test_unscored="""
            from pytest_ragmetrics import UnscoredError
            from pytest_ragmetrics.metrics import Metric

            class Silent(Metric):
                name = "silent"
                def measure(self, sample):
                    raise UnscoredError("nothing to judge")

            def test_it():
                Silent().score(response="r")
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["silent * 1 * - * - * 0 * 1"])
    (record,) = scored()["test_unscored.py::test_it"]["records"]
    assert (record["score"], record["outcome"], record["reason"]) == (None, "unscored", "nothing to judge")


def test_reruns_start_over(run: RunPytest, scored: Scored) -> None:
    """A test that passes at its second attempt has the records of that attempt alone, and says how many it took."""
    result = run(
        "-p",
        "rerunfailures",
        "--reruns=2",
        "--rag-json=out.json",
        test_flaky="""
            from pytest_ragmetrics import assert_quoted_spans_aligned
            from texts import SOURCE, TRUE, FALSE
            answers = [FALSE, TRUE]
            def test_it():
                assert_quoted_spans_aligned(answers.pop(0), SOURCE)
        """,
    )
    result.assert_outcomes(passed=1)
    (row,) = scored().values()
    assert (row["outcome"], row["attempts"], [r["score"] for r in row["records"]]) == ("passed", 2, [1.0])
    result.stdout.fnmatch_lines(["quoted_spans_alignment * 1 *1.000 *1.000 *0 *0"])


def test_subtests_are_recorded_once(run: RunPytest, scored: Scored) -> None:
    """Scorings inside subtests are records of their test, none of them twice."""
    run(
        "--rag-json=out.json",
        test_sub="""
            from pytest_ragmetrics import assert_quoted_spans_aligned
            from texts import SOURCE, TRUE, FALSE
            def test_it(subtests):
                for answer in (TRUE, FALSE):
                    with subtests.test(answer):
                        assert_quoted_spans_aligned(answer, SOURCE)
        """,
    )
    (row,) = scored().values()
    assert row["outcome"] == "failed"
    assert [record["score"] for record in row["records"]] == [1.0, 0.0]


def test_what_a_fixture_scores_belongs_to_the_test(run: RunPytest, scored: Scored) -> None:
    """A result made in setup and compared in the test is one record, with the threshold of the test."""
    run(
        "--rag-json=out.json",
        test_fixture="""
            import threading
            import pytest
            from pytest_ragmetrics.metrics import QuotedSpansAlignment
            from texts import SOURCE, TRUE
            @pytest.fixture
            def result():
                results = []
                def work():
                    results.append(QuotedSpansAlignment().score(response=TRUE, retrieved_contexts=SOURCE))
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
                return results[0]
            def test_it(result):
                assert result >= 0.5
        """,
    )
    (row,) = scored().values()
    assert [(r["outcome"], r["threshold"]["bound"]) for r in row["records"]] == [("passed", 0.5)]


def test_anything_in_a_sample_becomes_json(run: RunPytest, scored: Scored) -> None:
    """Metadata of any type and characters no encoding knows neither break a run nor its files."""
    run(
        "--rag-json=out.json",
        "--rag-report=out.html",
        "-p",
        "xdist",
        "-n1",
        test_odd=r"""
            import datetime, decimal, pathlib
            from pytest_ragmetrics import Sample, assert_metric
            from pytest_ragmetrics.metrics import QuotedSpansAlignment
            class Ratio(float):
                pass
            def test_it():
                sample = Sample(
                    response='lone \ud800 "open the valve slowly" \x00 \x1b[31m',
                    retrieved_contexts=["Open the valve\udfff slowly."],
                    metadata={1: decimal.Decimal("1.5"), "day": datetime.date(2026, 1, 2), "nan": float("nan"),
                              "path": pathlib.PurePosixPath("a/b"), "ratio": Ratio(0.5), "set": {1}, "none": None},
                )
                assert_metric(QuotedSpansAlignment(), sample, min=0.0)
        """,
    ).assert_outcomes(passed=1)
    (row,) = scored().values()
    sample = row["records"][0]["sample"]
    assert sample["response"].startswith("lone \ufffd ")
    assert sample["metadata"] == {
        "1": "1.5",
        "day": "2026-01-02",
        "nan": "nan",
        "path": "a/b",
        "ratio": 0.5,
        "set": [1],
        "none": None,
    }


def test_pytest_inside_a_test_keeps_to_itself(run: RunPytest, scored: Scored) -> None:
    """A run inside a test records for itself, and the outer run goes on recording for its own."""
    run(
        "--rag-json=out.json",
        "-p",
        "pytester",
        test_outer="""
            from pytest_ragmetrics import assert_quoted_spans_aligned
            from texts import SOURCE, TRUE
            def test_it(pytester):
                pytester.makepyfile(
                    "from pytest_ragmetrics import assert_quoted_spans_aligned\\n"
                    "def test_inner(): assert_quoted_spans_aligned('no quotes', 'x')"
                )
                pytester.runpytest_inprocess("-p", "ragmetrics").assert_outcomes(passed=1)
                assert_quoted_spans_aligned(TRUE, SOURCE)
        """,
    ).assert_outcomes(passed=1)
    (row,) = scored().values()
    assert [record["vacuous"] for record in row["records"]] == [False]
