"""Suites of Ragas and DeepEval, each in its form and moved by what the two pages say: the moved ones run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_ragmetrics
from pytest_ragmetrics.core.other_tools import equivalent_of
from pytest_ragmetrics.metrics import metric_named
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunPytest

SUITES = sorted((Path(__file__).parents[1] / "moving").glob("*/*.md"))
PAGES = {
    tool: (Path(pytest_ragmetrics.__file__).parent / "docs/how-to" / f"from-{tool}.md").read_text("utf-8")
    for tool in ("ragas", "deepeval")
}
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_BEFORE = ("Ragas", "DeepEval")
_NAMES = re.compile(r"`([^`]+)`")


def files_of(suite: Path) -> Iterator[tuple[str, str]]:
    """Yield the files of a moved suite; the block without a name is its tests."""
    for _, title, code in _BLOCK.findall(suite.read_text("utf-8")):
        if title not in _BEFORE:
            yield title or f"test_{suite.stem}.py", code


def imported(code: str, *packages: str) -> set[str]:
    """Return the names that code imports from packages."""
    found = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom))
    return {it.name for node in found if (node.module or "").partition(".")[0] in packages for it in node.names}


def test_all_moved_suites_pass(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    del server
    assert len(SUITES) == 31
    tests = 0
    for suite in SUITES:
        for name, code in files_of(suite):
            file = pytester.path / suite.parent.name / suite.stem / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(code, "utf-8")
            tests += code.count("def test_") if name.startswith("test_") else 0
    result = run("-q", "--import-mode=importlib", "--rag-json=out.json")
    outcomes = result.parseoutcomes()
    assert set(outcomes) == {"passed"}, result.stdout.str()
    assert outcomes["passed"] >= tests
    ran = {tuple(test.split("/")[:2]) for test in result.tests}
    assert ran == {(suite.parent.name, suite.stem) for suite in SUITES}


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: f"{suite.parent.name}-{suite.stem}")
def test_a_suite_is_moved_by_the_page_alone(suite: Path) -> None:
    tool = suite.parent.name
    page = PAGES[tool]
    (before,) = (code for _, title, code in _BLOCK.findall(suite.read_text("utf-8")) if title in _BEFORE)
    theirs = imported(before, tool)
    assert theirs
    ours = {name for _, code in files_of(suite) if "import" in code for name in imported(code, "pytest_ragmetrics")}
    # Metrics of Ragas are there whatever their case.
    told = {*re.findall(r"\w+", page), *re.findall(r"\w+", page.casefold())}
    assert not [name for name in theirs | ours if not {name, name.replace("_", ""), name.casefold()} & told]


def rows_of_metrics(page: str) -> Iterator[tuple[list[str], str]]:
    """Yield the names of theirs and the text on ours of each row below the heading "Metrics"."""
    table = page.partition("## Metrics")[2].partition("\n## ")[0]
    for line in table.splitlines():
        cells = line.split(" | ")
        if line.startswith("| `"):
            yield _NAMES.findall(cells[0]), cells[1]


@pytest.mark.parametrize("tool", PAGES)
def test_the_errors_say_what_the_table_of_a_page_says(tool: str) -> None:
    rows = [(name, ours) for names, ours in rows_of_metrics(PAGES[tool]) for name in names]
    assert len(rows) == len({name for name, _ in rows})
    for name, ours in rows:
        if re.fullmatch(r"`[A-Z]\w+`", ours):
            assert ours == f"`{getattr(metric_named(name), '__name__', None)}`"
        else:
            error = equivalent_of(name) or ""
            assert ours.removeprefix("none").removeprefix("; ").strip("`") in error
            assert ("no equivalent here" in error) == ours.startswith("none")
