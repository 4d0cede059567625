"""What the hook pytest_ragmetrics_redact does to the reports of tests."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.plugin.conftest import RunPytest

HOOK = """
    def pytest_ragmetrics_redact(text):
        return text.replace("Gray", "[name]")
"""
SUITE = """
    import pytest
    from pytest_ragmetrics import UnscoredError, assert_numbers_aligned

    class InvalidAnswerError(ValueError):
        pass

    def test_chained():
        try:
            raise InvalidAnswerError("no answer on Gray")
        except InvalidAnswerError as error:
            raise UnscoredError("nothing on Gray") from error

    def test_asserted():
        print("Gray was here")
        assert_numbers_aligned("Gray waits 7 days.", "Gray waits 8 days.")

    def test_skipped():
        pytest.skip("Gray is away")

    def test_told():
        pytest.fail("Gray is late", pytrace=False)
"""


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n2"]], ids=["alone", "xdist"])
def test_a_redacted_failure_is_named_by_its_own_last_line(
    run: RunPytest, pytester: pytest.Pytester, workers: list[str]
) -> None:
    """The summary of pytest names what was raised, neither its cause nor the source that is shown above it."""
    result = run(
        *workers, "-rA", "--showlocals", "--junitxml=junit.xml", "--rag-json=out.json", conftest=HOOK, test_it=SUITE
    )
    result.assert_outcomes(failed=3, skipped=1)
    result.stdout.fnmatch_lines_random(
        [
            "FAILED test_it.py::test_chained - pytest_ragmetrics.errors.UnscoredError: not*",
            "FAILED test_it.py::test_asserted - AssertionError: numbers_aligned 0.00 < 1.0*",
            "FAILED test_it.py::test_told - Failed: [[]name] is late",
            "SKIPPED [[]1] test_it.py:*: [[]name] is away",
            "*InvalidAnswerError: no answer on [[]name]",
            "E*UnscoredError: nothing on [[]name]",
        ]
    )
    assert "Gray" not in result.stdout.str()
    assert "Gray" not in (pytester.path / "out.json").read_text("utf-8")
    assert "Gray" not in (pytester.path / "junit.xml").read_text("utf-8")


def test_what_runs_over_lines_goes_too(run: RunPytest) -> None:
    """A text that no part of a failure has by itself takes the form along, rather than stay."""
    hook = """
        import re

        def pytest_ragmetrics_redact(text):
            return re.sub(r"begin.*end", "[gone]", text, flags=re.DOTALL)
    """
    suite = """
        def test_it():
            raise ValueError("begin\\nsecret\\nend")
    """
    result = run(conftest=hook, test_it=suite)
    result.assert_outcomes(failed=1)
    assert "secret" not in result.stdout.str()
    result.stdout.fnmatch_lines(["*[[]gone]*"])


def test_what_another_plugin_represents_is_redacted(run: RunPytest) -> None:
    """Also where its parts cannot be changed: then a plain text takes its place."""
    hook = """
        import dataclasses
        import pytest

        @dataclasses.dataclass(frozen=True)
        class Told:
            text: str

            def toterminal(self, writer):
                writer.line(self.text)

            def __str__(self):
                return self.text

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_makereport(item, call):
            report = pytest.TestReport.from_item_and_call(item, call)
            if report.failed:
                report.longrepr = Told("Gray fell")
            return report
    """
    result = run(conftest=dedent(HOOK) + dedent(hook), test_it="def test_it(): raise ValueError")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*[[]name] fell*"])
    assert "Gray" not in result.stdout.str()
