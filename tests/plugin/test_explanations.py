"""A failing test shows which quotation is wrong, however pytest was told to treat assertions."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.plugin.conftest import RunPytest

HEADLINE = "quoted_spans_alignment 0.00 < 0.90: 1 of 1 quoted span not found"
EVIDENCE = [
    '*not found: "the pump needs nine minutes to fill" (response[[]9:44])',
    '*nearest: "The pump needs two minutes to fill." (contexts[[]0][[]23:58], *% alike)',
    '*differs: "nine" where the source has "two"',
]
PLAIN = """
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    from texts import SOURCE, FALSE
    def test_left():
        assert QuotedSpansAlignment().score(response=FALSE, retrieved_contexts=[SOURCE]) >= 0.9
    def test_right():
        assert 0.9 <= QuotedSpansAlignment().score(response=FALSE, retrieved_contexts=[SOURCE])
"""
HELPER = """
    from pytest_ragmetrics import assert_quoted_spans_aligned
    from texts import SOURCE, FALSE
    def test_helper():
        assert_quoted_spans_aligned(FALSE, [SOURCE])
"""


@pytest.mark.parametrize("name", ["test_left", "test_right"])
def test_a_plain_assert_explains_itself(run: RunPytest, name: str) -> None:
    """The comparison is replaced by the explanation, whichever side the result stands on, and said once."""
    result = run("-k", name, test_plain=PLAIN)
    result.stdout.fnmatch_lines([f"E *{HEADLINE.replace('[', '[[]')}", *(f"E {line}" for line in EVIDENCE)])
    assert result.stdout.str().count("where the source has") == 1


@pytest.mark.parametrize("option", ["--assert=plain", "-pno:assertion"])
def test_without_rewriting_a_section_explains(pytester: pytest.Pytester, run: RunPytest, option: str) -> None:
    """Where pytest cannot show the comparison, the same text stands in a section of the report."""
    del run
    pytester.makepyfile(test_plain=PLAIN)
    # Not in-process: there the comparison hook of the outer pytest would still be at work.
    result = pytester.runpytest_subprocess("-p", "ragmetrics", option, "-k", "test_left")
    result.stdout.fnmatch_lines(["*- RAG metrics -*", HEADLINE, *EVIDENCE])


def test_a_long_explanation_is_whole_in_its_section(run: RunPytest) -> None:
    """Long comparisons are cut by pytest; the section has all of it."""
    result = run(
        test_many="""
            from pytest_ragmetrics.metrics import QuotedSpansAlignment
            from texts import SOURCE
            def test_it():
                response = " ".join(f'"the pump needs {n} hours to fill"' for n in range(3, 8))
                assert QuotedSpansAlignment().score(response=response, retrieved_contexts=[SOURCE]) >= 0.9
        """
    )
    result.stdout.fnmatch_lines(
        ["E *5 of 5 quoted spans not found", "*- RAG metrics -*", "*5 of 5 quoted spans not found"]
    )
    assert all(f'"{n}' in result.stdout.str() for n in range(3, 8))


@pytest.mark.parametrize("option", ["--assert=plain", "--assert=rewrite", "--tb=short", "--tb=native"])
def test_a_helper_explains_once_in_every_mode(run: RunPytest, option: str) -> None:
    """A helper carries its explanation in the error and points at the line of the user's test."""
    result = run(option, test_helper=HELPER)
    result.stdout.fnmatch_lines([f"*{HEADLINE}", *EVIDENCE])
    assert result.stdout.str().count("where the source has") == 1
    if option != "--tb=native":
        result.stdout.no_fnmatch_line("*pytest_ragmetrics*assertions.py*")


def test_a_helper_asserts_under_optimisation(pytester: pytest.Pytester, run: RunPytest) -> None:
    """PytestSession with -O strips assert statements, not the helpers."""
    del run
    pytester.makepyfile(test_helper=HELPER)
    result = pytester.run(sys.executable, "-O", "-m", "pytest", "-p", "ragmetrics", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{HEADLINE}", *EVIDENCE])


def test_foreign_comparisons_are_untouched(run: RunPytest) -> None:
    """Other values are explained by pytest as ever."""
    result = run(test_foreign="def test_it():\n    assert [1, 2] == [1, 3]")
    result.stdout.fnmatch_lines(["E *assert [[]1, 2] == [[]1, 3]", "E *At index 1 diff: 2 != 3"])


def test_hostile_text_cannot_steer_the_terminal(pytester: pytest.Pytester, run: RunPytest) -> None:
    """Escape sequences and direction overrides in an answer reach the terminal neither by us nor by our sections."""
    del run
    pytester.makepyfile(
        test_hostile=r"""
            from pytest_ragmetrics import assert_quoted_spans_aligned
            from pytest_ragmetrics.metrics import QuotedSpansAlignment
            def answer():
                return 'It says "delete ' + chr(27) + '[2J every ' + chr(0x202e) + 'single file"'
            def test_helper():
                assert_quoted_spans_aligned(answer(), ["keep " + chr(27) + "[31m every single file"])
            def test_plain():
                result = QuotedSpansAlignment().score(response=answer(), retrieved_contexts=["nothing"])
                assert result > 0.5
        """
    )
    out = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "ragmetrics", "-p", "no:cacheprovider", "--color=no"],
        capture_output=True,
        cwd=pytester.path,
        check=False,
    ).stdout
    assert out.count(b"delete [2J every single file") == 2
    assert b"\x1b" not in out
    assert "\u202e".encode() not in out
