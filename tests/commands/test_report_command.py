"""The `ragmetrics report` command."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.report.markdown import render_markdown
from pytest_ragmetrics.report.page import render_html
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.merge import merge_documents
from pytest_ragmetrics.runs.records import Document, document_schema, read_document, render_json
from tests.documents import document, record, row
from tests.unit.conftest import Call


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ragmetrics: Call) -> Call:
    monkeypatch.chdir(tmp_path)
    return partial(ragmetrics, "report")


def keep(folder: Path, name: str, **scores: float | None) -> Document:
    made = document(*(row(test, scored(score)) for test, score in scores.items()), exit_status=0)
    (folder / name).write_text(render_json(made), encoding="utf-8")
    return made


def scored(score: float | None, judge: str = "openai:one") -> Any:
    return record("faithfulness", score, outcome="unscored" if score is None else "passed", judge=judge)


def test_a_page_and_a_summary_are_those_of_the_run(call: Call, tmp_path: Path) -> None:
    old, new = keep(tmp_path, "old.json", test_a=0.95), keep(tmp_path, "new.json", test_a=0.91)
    changes = compare_documents(new, old)
    assert call("html", "new.json") == (0, "rag-report.html: written, 1 test\n", "")
    assert call("html", "new.json", "-o", "deep/page.html", "--baseline=old.json")[0] == 0
    assert call("markdown", "new.json", "-o", "a.md") == (0, "a.md: written, 1 test\n", "")
    for name, text in (
        ("rag-report.html", render_html(new)),
        ("deep/page.html", render_html(new, comparison=changes)),
        ("a.md", render_markdown(new)),
    ):
        assert (tmp_path / name).read_text("utf-8") == text
    assert call("markdown", "new.json") == (0, render_markdown(new), "")
    summary = call("markdown", "new.json", "--baseline=old.json")[1]
    assert summary == render_markdown(new, comparison=changes)
    assert "0 better, 1 worse" in summary


def test_runs_are_merged_into_all_kinds_of_files(call: Call, tmp_path: Path) -> None:
    parts = [keep(tmp_path, "a.json", test_a=0.95), keep(tmp_path, "b.json", test_b=0.5)]
    status, out, err = call("merge", "a.json", "b.json", "-o", "all.json", "--html", "all.html", "--markdown", "all.md")
    assert (status, err) == (0, "")
    assert out.splitlines() == [f"all.{kind}: written, 2 tests" for kind in ("json", "html", "md")]
    merged = merge_documents(parts)
    assert read_document(tmp_path / "all.json") == merged
    assert (tmp_path / "all.html").read_text("utf-8") == render_html(merged)
    assert (tmp_path / "all.md").read_text("utf-8") == render_markdown(merged)
    assert call("merge", "a.json", "b.json") == (0, render_json(merged), "")


@pytest.mark.parametrize(
    ("options", "status"), [([], 0), (["--fail-on-worse"], 1), (["--fail-on-worse", "--margin=0.6"], 1)]
)
def test_a_comparison_says_what_changed(call: Call, tmp_path: Path, options: list[str], status: int) -> None:
    """All changes are told, the worst first; only with --fail-on-worse is it an error that something became worse."""
    keep(tmp_path, "old.json", test_a=0.9, test_b=0.2, test_c=0.7, test_lost=0.5, test_gone=0.1)
    keep(tmp_path, "new.json", test_a=0.4, test_b=0.3, test_c=0.7, test_lost=None, test_new=0.6)
    found, out, err = call("diff", "old.json", "new.json", *options)
    assert (found, err) == (status, "")
    place = "tests/test_assistant.py::test"
    assert out.splitlines() == [
        "against the baseline: 1 better, 1 worse, 1 the same, 1 no longer scored, 1 new, 1 gone",
        f"  unscored: {place}_lost: faithfulness 0.500 -> unscored",
        f"  worse: {place}_a: faithfulness 0.900 -> 0.400 (-0.500)",
        f"  better: {place}_b: faithfulness 0.200 -> 0.300 (+0.100)",
        f"  new: {place}_new: faithfulness 0.600",
        f"  gone: {place}_gone: faithfulness 0.100",
        "faithfulness: mean 0.600 -> 0.467 over 3",
    ]


@pytest.mark.parametrize(("margin", "status"), [("0.05", 0), ("0.01", 1)])
def test_a_margin_lets_small_losses_pass(call: Call, tmp_path: Path, margin: str, status: int) -> None:
    keep(tmp_path, "old.json", test_a=0.9)
    keep(tmp_path, "new.json", test_a=0.875)
    assert call("diff", "old.json", "new.json", "--fail-on-worse", f"--margin={margin}")[0] == status


def test_runs_that_cannot_be_compared_do_not_pass(call: Call, tmp_path: Path) -> None:
    keep(tmp_path, "old.json", test_a=0.9)
    (tmp_path / "new.json").write_text(render_json(document(row("test_a", scored(0.1, "openai:two")))), "utf-8")
    status, out, err = call("diff", "old.json", "new.json", "--fail-on-worse")
    assert (status, out) == (1, "")
    assert err.splitlines()[0] == "ragmetrics: old.json and new.json have no scores that can be compared"
    assert "not compared: 1 of faithfulness: judged by openai:two now, by openai:one in the baseline" in err
    assert call("diff", "old.json", "new.json")[0] == 0


def test_the_schema_is_printed(call: Call) -> None:
    status, out, _ = call("schema")
    assert (status, json.loads(out)) == (0, document_schema())
    assert document_schema()["$id"] == "urn:pytest-ragmetrics:document:1"
