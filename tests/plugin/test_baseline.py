"""What became better and worse since a committed run: the option, and the assertion over a whole set."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import pytest

from pytest_ragmetrics.reporting import read_baseline
from tests.plugin.conftest import RunPytest

SUITE = """
    import pytest
    from pytest_ragmetrics import assert_quoted_spans_aligned
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    from texts import SOURCE, TRUE, FALSE

    ANSWERS = {answers}

    @pytest.mark.parametrize("name", sorted(ANSWERS))
    def test_row(name):
        QuotedSpansAlignment().score(response=ANSWERS[name], retrieved_contexts=[SOURCE])
"""
BEFORE = {"test_suite": SUITE.replace("{answers}", "dict(a=TRUE, b=FALSE, c=TRUE, gone=TRUE)")}
AFTER = {"test_suite": SUITE.replace("{answers}", "dict(a=FALSE, b=TRUE, c=TRUE, new=TRUE)")}


@pytest.fixture
def baseline(run: RunPytest, pytester: pytest.Pytester) -> Path:
    """Return the file that an earlier run left behind."""
    run("--rag-json=baseline.json", **BEFORE).assert_outcomes(passed=4)
    return pytester.path / "baseline.json"


def test_what_changed_is_in_every_output(run: RunPytest, baseline: Path, pytester: pytest.Pytester) -> None:
    """The summary counts what became better and worse and names the worst; no test fails for it.

    Under xdist the controller compares. The page and the summary in Markdown are those of a comparison; the JSON names
    the baseline.
    """
    files = ("--rag-report=a.html", "--rag-markdown=a.md", "--rag-json=a.json")
    result = run("-p", "xdist", "-n2", "--rag-baseline=baseline.json", *files, **AFTER)
    result.assert_outcomes(passed=4)
    said = "against the baseline: 1 better, 1 worse, 1 the same, 1 new, 1 gone"
    result.stdout.fnmatch_lines(
        [said, "  worse: test_suite.py::test_row[[]a[]]: quoted_spans_alignment 1.000 -> 0.000 (-1.000)"]
    )
    assert result.stdout.str().count(said) == 1
    run("--rag-report=b.html", **AFTER)
    assert "1 better, 1 worse" in (pytester.path / "a.md").read_text("utf-8")
    with_it, without = ((pytester.path / name).read_text("utf-8").casefold() for name in ("a.html", "b.html"))
    assert with_it.count("baseline") > without.count("baseline")
    assert json.loads((pytester.path / "a.json").read_text("utf-8"))["run"]["settings"]["baseline"] == "baseline.json"


def test_the_baseline_may_be_written_anew(
    run: RunPytest, baseline: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file may be read first and replaced at the end; the ini names it from the rootdir.

    Where nothing was scored, not all of the baseline is called gone.
    """
    result = run("--rag-baseline=baseline.json", "--rag-json=baseline.json", **AFTER)
    result.stdout.fnmatch_lines(["against the baseline: 1 better, 1 worse, *", "*baseline.json: written"])
    pytester.makeini("[pytest]\nrag_baseline = baseline.json")
    monkeypatch.chdir(pytester.mkdir("sub"))
    run("..").stdout.fnmatch_lines(["against the baseline: 0 better, 0 worse, 4 the same"])
    pytester.makepyfile(test_plain="def test_plain(): pass")
    run("test_plain.py").stdout.no_fnmatch_line("*baseline: *")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON: .*; give a file that --rag-json wrote"),
        ("[]", "not the result of a run: "),
        ('{"version": 99}', "it is of version 99, and this release reads version 1"),
        ('{"version": 1, "run": {}, "tests": []}', "run lacks started"),
    ],
)
def test_a_baseline_that_cannot_be_read_is_named(tmp_path: Path, content: str, said: str) -> None:
    """The error names the file and the place in it."""
    (tmp_path / "other.json").write_text(content, encoding="utf-8")
    with pytest.raises(pytest.UsageError, match=rf"^--rag-baseline: .*other\.json: {said}"):
        read_baseline(tmp_path / "other.json")


def test_a_baseline_that_cannot_be_read_ends_the_run_before_it_begins(run: RunPytest) -> None:
    """With workers the controller reads it before it starts them."""
    result = run("--rag-baseline=texts.py", "-p", "xdist", "-n1", **AFTER)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --rag-baseline: *texts.py: not JSON: *"])
    result.stdout.no_fnmatch_line("*passed*")


GOLDEN = """
    from pytest_ragmetrics import assert_mean, assert_no_regression, evaluate
    from texts import FALSE, SOURCE, TRUE

    ANSWERS = [TRUE, *[{second}] * 5, TRUE]

    def test_golden(request):
        rows = [{{"id": f"q{{n}}", "answer": answer, "contexts": [SOURCE]}} for n, answer in enumerate(ANSWERS)]
        table = evaluate(rows, ["quoted_spans_alignment"])
        assert_mean(table, 0.25)
        if request.config.getoption("--rag-baseline"):
            assert_no_regression(table)
"""


def test_a_run_is_held_against_the_file_of_an_earlier_one(run: RunPytest, pytester: pytest.Pytester) -> None:
    """The same scores pass; a quotation that became wrong fails the test and is named."""
    run("--rag-json=main.json", test_it=GOLDEN.format(second="TRUE")).assert_outcomes(passed=1)
    run("--rag-baseline=main.json").assert_outcomes(passed=1)
    result = run("--rag-baseline=main.json", test_it=GOLDEN.format(second="FALSE"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: quoted_spans_alignment 1.00 -> 0.29: -0.714 (95 % interval *n=7*)",
            "E*the scores dropped (p=0.031)",
            "E*regressed: 5",
            "E*-1.00  1.00 -> 0.00  q1",
        ]
    )
    # The frames of the package say nothing that the message does not.
    result.stdout.no_fnmatch_line("*suites.py*")


def test_a_baseline_that_is_none_fails_with_the_place(run: RunPytest, pytester: pytest.Pytester) -> None:
    """Naming the file."""
    pytester.path.joinpath("main.json").write_text('{"rows": 1, "metrics": []}', encoding="utf-8")
    suite = """
        from pytest_ragmetrics import assert_not_worse, evaluate

        def test_golden():
            table = evaluate([{"id": "q", "answer": "Moss.", "contexts": []}], ["quoted_spans_alignment"])
            assert_not_worse(table, "main.json")
    """
    result = run(test_it=suite)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*DocumentError: main.json: rows must be a valid array, not 1"])
    result.stdout.no_fnmatch_line("*pydantic_core*")


def test_the_answers_of_a_baseline_are_redacted(run: RunPytest, baseline: Path, pytester: pytest.Pytester) -> None:
    """The page shows former answers; what the hook redacts today is in none of them, whatever the file says."""
    word = "SECRET"
    baseline.write_text(baseline.read_text("utf-8").replace('"response": "', f'"response": "{word} '), "utf-8")
    hook = f"def pytest_ragmetrics_redact(text):\n    return text.replace({word!r}, '[name]')"
    run("--rag-baseline=baseline.json", "--rag-report=a.html", conftest=hook, **AFTER)
    page = (pytester.path / "a.html").read_text("utf-8")
    packed = re.findall(r'<script type="application/octet-stream"[^>]*>([^<]*)</script>', page)
    texts = [zlib.decompress(base64.b64decode(text), -15).decode() for text in packed]
    assert any("[name]" in text for text in texts)
    assert not [text for text in (page, *texts) if word in text]
