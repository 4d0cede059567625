"""A failing test shows which quotation is wrong, however pytest treats assertions."""

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
    def test_left(): assert QuotedSpansAlignment().score(response=FALSE, retrieved_contexts=[SOURCE]) >= 0.9
    def test_right(): assert 0.9 <= QuotedSpansAlignment().score(response=FALSE, retrieved_contexts=[SOURCE])
"""
HELPER = "def test_helper(): assert_quoted_spans_aligned(FALSE, [SOURCE])"
MANY = """
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    def test_foreign(): assert [1, 2] == [1, 3]
    def test_it():
        response = " ".join(f'"the pump needs {n} hours to fill"' for n in range(3, 8))
        assert QuotedSpansAlignment().score(response=response, retrieved_contexts=[SOURCE]) >= 0.9
"""


def test_a_plain_assert_explains_itself(run: RunPytest) -> None:
    """Pytest cuts long comparisons; a section of the report has all of it."""
    result = run(test_plain=PLAIN, test_many=MANY)
    explained = [f"E *{HEADLINE.replace('[', '[[]')}", *(f"E {line}" for line in EVIDENCE)]
    many = ["E *5 of 5 quoted spans not found", "*- RAG metrics -*", "*5 of 5 quoted spans not found"]
    foreign = ["E *assert [[]1, 2] == [[]1, 3]", "E *At index 1 diff: 2 != 3"]
    result.shows(*foreign, *many, *explained, *explained)
    assert result.stdout.str().count('differs: "nine" where the source has') == 2
    assert all(f'"{n}' in result.stdout.str() for n in range(3, 8))


@pytest.mark.parametrize("option", ["--assert=plain", "--assert=rewrite", "--tb=short", "--tb=native"])
def test_a_helper_explains_once_in_every_mode(run: RunPytest, option: str) -> None:
    result = run(option, test_helper=HELPER)
    result.shows(f"*{HEADLINE}", *EVIDENCE)
    assert result.stdout.str().count("where the source has") == 1
    if option != "--tb=native":
        result.stdout.no_fnmatch_line("*pytest_ragmetrics*assertions.py*")


def test_a_helper_asserts_under_optimisation() -> None:
    program = "import pytest_ragmetrics as it; it.assert_quoted_spans_aligned('“Moths sing at noon.”', ['Moths fly.'])"
    ended = subprocess.run([sys.executable, "-O", "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "AssertionError: quoted_spans_alignment 0.00 < 0.90" in ended.stderr


HOSTILE = r"""
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    def answer():
        return 'It says "delete ' + chr(27) + '[2J every ' + chr(0x202e) + 'single file"'
    def test_helper():
        assert_quoted_spans_aligned(answer(), ["keep " + chr(27) + "[31m every single file"])
    def test_plain():
        result = QuotedSpansAlignment().score(response=answer(), retrieved_contexts=["nothing"])
        assert result > 0.5
"""


def test_without_rewriting_a_section_explains(run_once: RunPytest) -> None:
    # Not in-process: there the comparison hook of the outer pytest would still be at work.
    out = run_once("-pno:assertion", "--color=no", test_hostile=HOSTILE, test_plain=PLAIN).stdout
    out.fnmatch_lines(["*- RAG metrics -*", HEADLINE, *EVIDENCE])
    assert out.str().count("delete [2J every single file") == 2
    assert "\x1b" not in out.str()
    assert "\u202e" not in out.str()
