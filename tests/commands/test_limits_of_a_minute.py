"""Commands keep the limits of a minute, and say how long they waited."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from pytest_ragmetrics.judges.transports import pace
from tests.commands.conftest import told
from tests.fake_openai import FakeOpenAI
from tests.unit.conftest import Call

ROWS = [
    {
        "question": f"Does it hum {turn}?",
        "response": f"It hums in May, for {turn + 2} minutes.",
        "contexts": [f"It hums in May, for {turn + 2} minutes."],
        "label": turn,
    }
    for turn in (0, 1)
]
JUDGE = "--judge=openai:gpt-5.4-mini"


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "score rows.jsonl -o scores.jsonl --metrics=relevance",
        "calibrate rows.jsonl --metric=relevance --threshold=0.5 --label-scale 0 1",
        "probe rows.jsonl --metrics=relevance=0.5 --rows=1 --kind=number",
        "generate docs -o golden.jsonl --questions=1",
    ],
)
def test_commands_keep_the_limits_of_a_minute(
    line: str, ragmetrics: Call, server: FakeOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one request a minute, which takes five seconds here."""
    import_module("openai")  # takes as long
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pace, "_MINUTE", 5.0)
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), "utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pump.md").write_text("The pump needs two minutes to fill. Open the valve slowly.\n" * 9)
    found = ragmetrics(*line.split(), JUDGE, "--rpm=1", "--cache-dir=store")
    told(found, found[0], "waited ", " s for the limit of 1 request a minute")
    assert server.in_flight_max == 1
