"""Which runs leave files behind, and that one which cannot be written harms no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ragmetrics import records as shapes
from pytest_ragmetrics.report.files import RENDERERS, write_files
from tests.documents import document, gate, record, row


def files_in(folder: Path) -> dict[str, Path]:
    """Return a path for each kind of file."""
    return {name: folder / f"out.{name}" for name in RENDERERS}


@pytest.mark.parametrize(
    "test",
    [row("test_a", record()), row("test_gate", gate=gate()), row("test_gate", gate=gate(outcome="failed"))],
    ids=["score", "gate", "failed gate"],
)
def test_a_score_or_a_decided_gate_is_worth_a_file(tmp_path: Path, test: shapes.TestRecord) -> None:
    """A gate that was decided elsewhere has no records beside it, and stands in all files."""
    files = files_in(tmp_path)
    written = write_files(document(test), files)
    assert not written.failed
    assert all(path.stat().st_size for path in files.values())
    assert written.lines == tuple(f"{path}: written" for path in files.values())


@pytest.mark.parametrize(
    "test", [row("test_a", outcome="error"), row("test_gate", gate=gate(outcome="skipped"))], ids=["error", "skipped"]
)
def test_without_either_the_old_files_stay(tmp_path: Path, test: shapes.TestRecord) -> None:
    """A gate that was skipped, because its set did not run, says nothing that an old report does not say better."""
    files = files_in(tmp_path)
    for path in files.values():
        path.write_text("old", "utf-8")
    written = write_files(document(test), files)
    assert not written.failed
    assert [path.read_text("utf-8") for path in files.values()] == ["old"] * len(files)
    assert all(line.endswith("not written, no test scored anything") for line in written.lines)


def test_what_cannot_be_written_or_made_harms_nothing_else(tmp_path: Path) -> None:
    """A folder in the way, and a document that a page cannot be made of, are named each in its line."""
    files = files_in(tmp_path)
    files["json"].mkdir()
    broken = document(row("test_a", record(metric=None)))  # type: ignore[arg-type]
    written = write_files(broken, files)
    assert written.failed
    html, json, _ = written.lines
    assert "out.report: NOT written, " in html
    assert "out.json: NOT written, " in json
