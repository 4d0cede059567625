"""Whoever implements the observer sees every record, and can do no harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.plugin.conftest import RunPytest, Scored

SUITE = """
    import pytest
    from pytest_ragmetrics import assert_quoted_spans_aligned
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    from texts import SOURCE, TRUE, FALSE

    @pytest.fixture
    def bot():
        yield
        print("torn down")

    def test_passes(bot):
        assert_quoted_spans_aligned(TRUE, SOURCE)

    def test_fails_after_two():
        QuotedSpansAlignment().score(response=TRUE, retrieved_contexts=[SOURCE])
        assert_quoted_spans_aligned(FALSE, SOURCE)

    def test_plain():
        pass
"""
OBSERVER = """
    import json
    def pytest_ragmetrics_result(item, record):
        with open(item.config.rootpath / "seen.jsonl", "a") as file:
            row = dict(test=item.nodeid, record=record, in_worker=hasattr(item.config, "workerinput"))
            file.write(json.dumps(row) + "\\n")
        record.clear()
"""


@pytest.fixture
def seen(pytester: pytest.Pytester) -> Callable[[], list[dict[str, Any]]]:
    """Return what the observer saw."""

    def read() -> list[dict[str, Any]]:
        lines = (pytester.path / "seen.jsonl").read_text("utf-8").splitlines()
        return sorted(map(json.loads, lines), key=lambda row: str(row["test"]))

    return read


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n2"]])
def test_it_sees_each_record_once_as_the_report_has_it(
    run: RunPytest, scored: Scored, seen: Callable[[], list[dict[str, Any]]], workers: list[str]
) -> None:
    """Every record comes once, in the process that ran the test; changing it changes no report."""
    result = run("--rag-json=out.json", *workers, test_suite=SUITE, conftest=OBSERVER)
    result.assert_outcomes(passed=2, failed=1)
    rows = seen()
    written = [
        record for test in sorted(scored().values(), key=lambda row: str(row["id"])) for record in test["records"]
    ]
    assert [row["record"] for row in rows] == written
    assert [row["record"]["outcome"] for row in rows] == ["measured", "failed", "passed"]
    assert all(row["in_worker"] is bool(workers) for row in rows)


def test_it_is_called_after_teardown(run: RunPytest) -> None:
    """The test is over when its records are shown."""
    result = run(
        "-s", test_suite=SUITE, conftest="def pytest_ragmetrics_result(record): print('SAW', record['metric'])"
    )
    result.stdout.fnmatch_lines(["*torn down", "SAW quoted_spans_alignment"])


def test_of_a_test_that_is_repeated_the_last_attempt_is_seen(
    run: RunPytest, seen: Callable[[], list[dict[str, Any]]]
) -> None:
    """Attempts that were repeated are no results."""
    suite = """
        from pytest_ragmetrics import assert_quoted_spans_aligned
        from texts import SOURCE, TRUE, FALSE
        tries = []
        def test_at_last():
            tries.append(1)
            assert_quoted_spans_aligned(TRUE if len(tries) == 3 else FALSE, SOURCE)
    """
    run("-p", "rerunfailures", "--reruns=5", test_suite=suite, conftest=OBSERVER).assert_outcomes(passed=1)
    assert [row["record"]["outcome"] for row in seen()] == ["passed"]


@pytest.mark.parametrize(
    ("args", "raises", "said"),
    [
        *((args, "RuntimeError('the board is down')", "RuntimeError: the board is down") for args in ([], ["-Werror"])),
        ([], "pytest.fail.Exception('no')", "Failed: no"),
        (["-p", "xdist", "-n1"], "pytest.skip.Exception('later')", "Skipped: later"),
    ],
)
def test_an_observer_that_raises_is_named_once(
    run: RunPytest, seen: Callable[[], list[dict[str, Any]]], args: list[str], raises: str, said: str
) -> None:
    """The tests come out as they would, the other observers see everything, and one warning names the culprit."""
    result = run(
        *args,
        test_suite=SUITE,
        conftest=OBSERVER,
        **{
            "sub/conftest": f"""
                import pytest
                def pytest_ragmetrics_result(record):
                    raise {raises}
            """,
            "sub/test_below": SUITE,
        },
    )
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines([f"*sub?conftest.py: pytest_ragmetrics_result raised {said}"])
    assert result.stdout.str().count("pytest_ragmetrics_result raised") == 1
    assert len(seen()) == 6


def test_an_observer_may_end_the_run(run: RunPytest) -> None:
    """pytest.exit() ends it as from any hook."""
    result = run(
        test_suite=SUITE,
        conftest="""
            import pytest
            def pytest_ragmetrics_result(record):
                pytest.exit("enough", returncode=7)
        """,
    )
    assert result.ret == 7
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_run_without_scores_is_not_observed(run: RunPytest, pytester: pytest.Pytester) -> None:
    """Tests that score nothing show nothing."""
    run(test_plain="def test_plain(): pass", conftest=OBSERVER).assert_outcomes(passed=1)
    assert not (pytester.path / "seen.jsonl").exists()
