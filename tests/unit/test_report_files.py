"""Which runs leave files behind, and that one which cannot be written harms no other."""

from __future__ import annotations

from pathlib import Path

from pytest_ragmetrics.report.files import write_files
from tests.documents import document, gate, record, row


def files_in(folder: Path) -> dict[str, Path]:
    return {name: folder / f"out.{name}" for name in ("report", "json", "markdown")}


def test_a_score_or_a_decided_gate_is_worth_a_file(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    none = [row("test_a", outcome="error"), row("test_gate", gate=gate(outcome="skipped"))]
    some = [row("test_a", record()), *(row("test_gate", gate=gate(outcome=it)) for it in ("passed", "failed"))]
    for test in none + some:
        for path in files.values():
            path.write_text("old", "utf-8")
        written = write_files(document(test), files)
        said = "not written, no test scored anything" if test in none else "written"
        assert (written.failed, written.lines) == (False, tuple(f"{path}: {said}" for path in files.values()))
        assert {path.read_text("utf-8") == "old" for path in files.values()} == {test in none}


def test_what_cannot_be_written_or_made_harms_nothing_else(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    files["json"].mkdir()
    broken = document(row("test_a", record(metric=None)))  # type: ignore[arg-type]
    written = write_files(broken, files)
    assert written.failed
    html, json, _ = written.lines
    assert "out.report: NOT written, " in html
    assert "out.json: NOT written, " in json
