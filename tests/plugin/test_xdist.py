"""Under xdist the controller reports what the workers scored."""

from __future__ import annotations

from dataclasses import replace

from pytest_ragmetrics.records import read_document
from pytest_ragmetrics.report.html import render_html
from tests.documents import document as made_document
from tests.plugin.conftest import MANY, SERIAL, RunOnce, RunPytest, Scored

#: How a run describes itself, its times among it.
RUN = made_document().run

SUITE = """
    import pytest
    from pytest_ragmetrics import assert_quoted_spans_aligned
    from texts import SOURCE, TRUE, FALSE
    @pytest.mark.parametrize("number", range(20))
    def test_row(number):
        assert_quoted_spans_aligned(TRUE if number % 5 else FALSE, [SOURCE, f"page {number}"])
"""
NUMPY = """
    import numpy
    from pytest_ragmetrics import MetricResult, Sample, Verdict, assert_metric
    from pytest_ragmetrics.metrics import Metric
    class Share(Metric):
        name = "share"
        def measure(self, sample):
            return MetricResult(
                numpy.float64(0.25),
                metric=self.name,
                vacuous=numpy.bool_(False),
                samples=[numpy.float32(0.25)],
                verdicts=[Verdict(text="t", ok=numpy.bool_(True), start=numpy.int64(0), end=numpy.int64(1))],
            )
    def test_it():
        assert_metric(Share(), Sample(response="r"), min=numpy.float64(0.2))
"""


def test_workers_and_one_process_leave_the_same_rows(run_once: RunOnce) -> None:
    """The rows are the same but for their durations, in the same order; they make the same page, written once."""
    rows, pages = [], []
    for how in (MANY, SERIAL):
        run = run_once(*how, "--rag-json=out.json", "--rag-report=out.html", test_suite=SUITE, test_numpy=NUMPY)
        run.result.assert_outcomes(passed=17, failed=4)
        run.result.stdout.fnmatch_lines(["quoted_spans_alignment * 20 *0.800 *0.000 *4 *0", "*out.html: written"])
        assert run.result.stdout.str().count("out.html: written") == 1
        rows.append([{**row, "duration": 0.0} for row in run.tests.values()])
        document = read_document(run.folder / "out.json")
        tests = tuple(replace(test, duration=0.0) for test in document.tests)
        pages.append(render_html(replace(document, run=RUN, tests=tests)))
        assert all(f"test_row[{n}]" in run.text("out.html") for n in range(20))
    assert rows[0] == rows[1]
    assert pages[0] == pages[1]
    first, *rest = rows[0]
    assert [row["id"] for row in rest] == [f"test_suite.py::test_row[{n}]" for n in range(20)]
    # A score that a numpy or other float subclass went into does not end the worker: exact builtins are sent.
    (record,) = first["records"]
    assert (record["score"], record["samples"], record["threshold"]["bound"]) == (0.25, [0.25], 0.2)
    assert (record["verdicts"][0]["ok"], record["verdicts"][0]["start"]) == (True, 0)


def test_a_crashed_worker_loses_its_own_test_only(run: RunPytest, scored: Scored) -> None:
    """When a worker dies, the other rows are there and the test that killed it is shown as failed."""
    run(
        *MANY,
        "--max-worker-restart=2",
        "--rag-json=out.json",
        test_crash="""
            import os
            import signal
            import pytest
            from pytest_ragmetrics import assert_quoted_spans_aligned
            from texts import SOURCE, TRUE
            @pytest.mark.parametrize("number", range(6))
            def test_row(number):
                assert_quoted_spans_aligned(TRUE, SOURCE)
                if number == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    rows = scored()
    assert {row["outcome"] for row in rows.values()} == {"passed", "failed"}
    assert [test for test, row in rows.items() if row["outcome"] == "failed"] == ["test_crash.py::test_row[3]"]
    assert sum(len(row["records"]) for row in rows.values()) == 5
