"""The `ragmetrics label` command: its arguments, and the queue in a terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import Sample
from pytest_ragmetrics.core.result import Evidence, Verdict
from pytest_ragmetrics.evaluation.calibration.queue import label_queue
from pytest_ragmetrics.evaluation.calibration.text import queued_lines
from pytest_ragmetrics.runs.records import Document, Threshold, read_document, render_json
from tests.documents import document, record, row
from tests.unit.conftest import Call

pty = pytest.importorskip("pty", reason="there are pseudo-terminals on POSIX alone")
CONTEXT = "Plots are let for one year from the first of March. " * 3
LONG = "\x1b[31m多い" + "x" * 200_000


def made() -> Document:
    found = Evidence(context=0, start=0, end=28, text=CONTEXT[:28])
    right, tests = Verdict(text="Plots are let.", ok=True, evidence=(found,)), []
    for place in range(6):
        wrong = Verdict(text=f"It is {place} years.", ok=False, reason="It says one year.")
        texts: Any = {"user_input": f"How long, {place}?", "response": f"For {place} years."}
        sample = Sample(**texts, retrieved_contexts=[CONTEXT, LONG])
        scored = replace(record("faithfulness", place / 8), sample=sample, verdicts=(wrong, right))
        tests.append(row(f"test[{place}]", scored))
    return document(*tests)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ragmetrics: Call) -> Call:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.json").write_text(render_json(made()), encoding="utf-8")
    return partial(ragmetrics, "label", "run.json")


class Terminal:
    """The command in a pseudo-terminal of 30 columns."""

    def __init__(self, folder: Path, *args: str) -> None:
        ours, theirs = pty.openpty()
        label = ["-m", "pytest_ragmetrics", "label", "run.json", "--metric", "faithfulness"]
        environment = {**os.environ, "COLUMNS": "30"}
        self.process = subprocess.Popen(
            [sys.executable, *label, *args], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
        )
        os.close(theirs)
        self._ours, self._folder, self.said = ours, folder, ""

    def press(self, keys: str) -> None:
        for key in keys:
            self._read_until("quit: ")
            os.write(self._ours, b"\x1b[1~x" + key.encode())

    def wait(self) -> int:
        self._read_until(None)
        return self.process.wait()

    def end(self, number: signal.Signals) -> int:
        self._read_until("quit: ")
        self.labels_before_its_end = labels_in(self._folder)
        self.process.send_signal(number)
        return self.process.wait(60)

    def _read_until(self, end: str | None) -> None:
        text = ""
        while end is None or not text.endswith(end):
            try:
                data = os.read(self._ours, 65536)
            except OSError:  # EIO: the other end is closed
                data = b""
            if not data:
                assert end is None, f"{self.said}{text}"
                break
            text += data.decode("utf-8", "replace")
        self.said += text


@pytest.fixture
def terminal(tmp_path: Path) -> Callable[..., Terminal]:
    (tmp_path / "run.json").write_text(render_json(made()), encoding="utf-8")
    return lambda *args: Terminal(tmp_path, *args)


def labels_in(folder: Path) -> list[int | None]:
    return [json.loads(text)["label"] for text in (folder / "labelled.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_answers_are_labelled_in_a_terminal(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    """Each key is a label at once; Ctrl-C loses none, and the next call goes on. Function keys are no digits."""
    first = terminal()
    first.press("10Su")
    assert first.end(signal.SIGINT) == 130
    assert first.labels_before_its_end == labels_in(tmp_path) == [1, 0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labelled.jsonl", "run.json"]
    second = terminal("--limit", "3")
    second.press("s01")
    assert second.wait() == 0
    assert labels_in(tmp_path) == [1, 0, None, 0, 1]
    assert "labelled.jsonl: 4 labels, 2 good, 1 skipped; 1 of 6 left" in second.said
    assert "good answers: 0.50 (95 % interval" in second.said
    third = terminal("--seed", "1", "-o", "other.jsonl")
    third.press("011\x04")
    assert third.wait() == 0
    assert "good answers: 0.67 (95 % interval" in third.said
    for said in (first.said, second.said, third.said):
        assert ("\x1b" in said, len(said) < 60_000) == (False, True)
    assert max(len(text) for text in second.said.splitlines() if set(text) == {"-"}) == 30


def test_an_answer_is_shown_with_the_words_of_failures() -> None:
    queue = label_queue(made(), "faithfulness")
    shown = queued_lines(next(row_ for row_ in queue if row_.record.score == 0.25))
    assert shown[:3] == ['question: "How long, 2?"', 'answer: "For 2 years."', f'contexts[0]: "{CONTEXT.strip()}"']
    assert shown[4:] == [
        "faithfulness 0.25 < 0.90: 1 of 2 verdicts not ok",
        '  not ok: "It is 2 years."',
        "    reason: It says one year.",
        '  held to be right: "Plots are let."',
        '    by: "Plots are let for one year f" (contexts[0][0:28])',
    ]
    assert len(shown[3]) < 3100
    for threshold, said in ((None, ""), (Threshold(operator="<=", bound=0.9), " <= 0.90")):
        held = replace(queue[0], record=replace(queue[0].record, threshold=threshold, score=0.5))
        assert f"faithfulness 0.50{said}: 1 of 2 verdicts not ok" in queued_lines(held)


def test_a_page_has_the_rows_that_are_left(call: Call, tmp_path: Path) -> None:
    queue = label_queue(read_document(tmp_path / "run.json"), "faithfulness")
    (tmp_path / "other.jsonl").write_text('{"label": 1, ' + queue[0].rest + "\n", encoding="utf-8")
    status, out, _ = call("--metric", "faithfulness", "--import", "other.jsonl", "--html", "page.html", "--limit", "3")
    said = "other.jsonl: 1 new label\npage.html: written, 3 rows to label\nlabelled.jsonl: 1 label, 1 good; 5 of 6 left"
    assert (status, out.startswith(said)) == (0, True), out
    assert labels_in(tmp_path) == [1]
    page = (tmp_path / "page.html").read_text("utf-8")
    assert [place for place in range(1, 7) if f'data-place="{place}"' in page] == [2, 3, 4]
    assert len(page) < 200_000
    assert call("--metric", "faithfulness", "--html", "page.html", "-o", "new.jsonl")[0] == 0
    assert not (tmp_path / "new.jsonl").exists()
