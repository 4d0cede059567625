"""What became better and worse since a committed run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


def test_the_summary_says_what_changed(run: RunPytest, baseline: Path) -> None:
    """The end of the run counts what became better and worse and names the worst; no test fails for it."""
    result = run("--rag-baseline=baseline.json", **AFTER)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            "against the baseline: 1 better, 1 worse, 1 the same, 1 new, 1 gone",
            "  worse: test_suite.py::test_row[[]a[]]: quoted_spans_alignment 1.000 -> 0.000 (-1.000)",
        ]
    )


def test_all_files_show_the_changes(run: RunPytest, baseline: Path, pytester: pytest.Pytester) -> None:
    """The page and the summary in Markdown are those of a comparison; the JSON says what it was held against."""
    run("--rag-baseline=baseline.json", "--rag-report=a.html", "--rag-markdown=a.md", "--rag-json=a.json", **AFTER)
    run("--rag-report=b.html", **AFTER)
    assert "1 better, 1 worse" in (pytester.path / "a.md").read_text("utf-8")
    with_it, without = ((pytester.path / name).read_text("utf-8").casefold() for name in ("a.html", "b.html"))
    assert with_it.count("baseline") > without.count("baseline")
    assert json.loads((pytester.path / "a.json").read_text("utf-8"))["run"]["settings"]["baseline"] == "baseline.json"


def test_the_baseline_may_be_written_anew(run: RunPytest, baseline: Path) -> None:
    """The same file may be read first and replaced at the end."""
    result = run("--rag-baseline=baseline.json", "--rag-json=baseline.json", **AFTER)
    result.stdout.fnmatch_lines(["against the baseline: 1 better, 1 worse, *", "*baseline.json: written"])
    run("--rag-baseline=baseline.json", **AFTER).stdout.fnmatch_lines(
        ["against the baseline: 0 better, 0 worse, 4 the same"]
    )


def test_it_works_with_workers(run: RunPytest, baseline: Path) -> None:
    """Under xdist the controller compares."""
    result = run("-p", "xdist", "-n2", "--rag-baseline=baseline.json", **AFTER)
    assert result.stdout.str().count("against the baseline: 1 better, 1 worse") == 1


def test_the_ini_names_it_from_the_rootdir(
    run: RunPytest, baseline: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project commits the name of its baseline once."""
    pytester.makeini("[pytest]\nrag_baseline = baseline.json")
    folder = pytester.mkdir("sub")
    monkeypatch.chdir(folder)
    run("..", **AFTER).stdout.fnmatch_lines(["against the baseline: *"])


def test_a_run_without_scores_compares_nothing(run: RunPytest, baseline: Path) -> None:
    """Where nothing was scored, not all of the baseline is called gone."""
    result = run("--rag-baseline=baseline.json", "-k", "plain", test_plain="def test_plain(): pass", **AFTER)
    result.stdout.no_fnmatch_line("*baseline: *")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "--rag-baseline: 'other.json' does not exist: write it first, with --rag-json=other.json"),
        ("{", "--rag-baseline: *other.json: not JSON: *; give a file that --rag-json wrote"),
        ("[]", "--rag-baseline: *other.json: not the result of a run: *"),
        ('{"version": 99}', "--rag-baseline: *other.json: it is of version 99, and this release reads version 1*"),
        ('{"version": 1, "run": {}, "tests": []}', "--rag-baseline: *other.json: run lacks started"),
    ],
)
def test_a_baseline_that_cannot_be_read_ends_the_run_before_it_begins(
    run: RunPytest, pytester: pytest.Pytester, content: str | None, said: str
) -> None:
    """A missing or broken file is a usage error that names the file and the place in it."""
    if content is not None:
        (pytester.path / "other.json").write_text(content, encoding="utf-8")
    # With workers the controller reads it before it starts them.
    workers = [] if content else ["-p", "xdist", "-n1"]
    result = run("--rag-baseline=other.json", *workers, **AFTER)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])
    result.stdout.no_fnmatch_line("*passed*")
