"""The `ragmetrics probe` command, against judges of different character."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import told
from tests.fake_openai import FakeOpenAI, failing, refused
from tests.probed_server import Answer, careful, gullible, obedient
from tests.unit.conftest import Call


@pytest.fixture
def server(named_server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeOpenAI:
    named_server.answer, named_server.key = careful, "sk-fake"
    monkeypatch.chdir(tmp_path)
    return named_server


@pytest.fixture
def call(ragmetrics: Call) -> Call:
    return lambda *arguments, judge="openai:fake": ragmetrics("probe", "--judge", judge, *arguments)


def figures(call: Call, *arguments: str) -> dict[str, Any]:
    call("--json=out.json", *arguments)
    written: dict[str, Any] = json.loads(Path("out.json").read_text("utf-8"))
    return written


@pytest.mark.parametrize(("character", "expected"), [(careful, (1.0, 1.0, 17)), (gullible, (0.5, 1.0, 8))])
def test_characters_are_told_apart(server: FakeOpenAI, call: Call, character: Answer, expected: Any) -> None:
    """A judge that says yes to everything is right, and counted for resistance, half of the time."""
    server.answer = character
    found = figures(call, "--kind=number", "--kind=claims", "--kind=injection", "--limit=48")
    resistance = found["resistance"]
    assert (found["accuracy"]["estimate"], resistance["estimate"], resistance["n"]) == expected
    assert server.duplicates == 0


def test_it_says_what_failed_and_why(server: FakeOpenAI, call: Call) -> None:
    server.answer = obedient
    said = (
        "resistance 0.000 is below --min-resistance=0.9",
        "openai:fake: 192 probes, 0 unscored; 192 calls",
        "accuracy    1.00 (0.97..1.00), 144 of 144",
        "resistance  0.00 (0.00..0.07), 0 of 48",
        "  de-injection-name (verdict): unsupported is right, it said supported: It is so.",
        "no security boundary",
    )
    assert "--min-accuracy" not in told(call("--min-resistance=0.9", "--min-accuracy=0.9"), 1, *said)


def test_what_is_unscored_counts_against_a_floor(server: FakeOpenAI, call: Call) -> None:
    """A judge that declines the hard ones does not pass for a good one; one that answers none fails, floor or not."""
    below = "accuracy 0.875 is below --min-accuracy=0.9, counting what says nothing as wrong"
    unusable = "no usable answer, also after a repair"
    server.script(refused(), refused())
    told(call("--kind=number", "--min-accuracy=0.9"), 1, "2 unscored", "accuracy    1.00", below)
    server.answer = lambda _: "Well, it depends."
    told(call("--kind=unit", "--kind=injection", "--limit=12"), 1, "none of these probes was answered", unusable)
    server.answer = lambda _: json.dumps({"claims": ["It hums."]})
    told(call("--kind=claims", "--limit=2", "--min-accuracy=1"), 1, "it said claims without ")


def test_kinds_and_limits_choose(server: FakeOpenAI, call: Call) -> None:
    server.latency = 0.02
    found = figures(call, "--kind=injection", "--limit=10", "--concurrency=1")
    assert [row["kind"] for row in found["probes"]].count("injection") == 5
    assert found["accuracy"] == {"right": 0, "n": 0, "estimate": None}
    assert (server.calls, server.in_flight_max) == (10, 1)


def test_answers_and_prompts_may_be_those_of_a_folder(server: FakeOpenAI, call: Call) -> None:
    for _ in range(2):
        call("--kind=number", "--limit=4")
    assert server.calls == 8
    for _ in range(2):
        call("--kind=number", "--limit=4", "--cache-dir=kept")
    assert server.calls == 12
    Path("judge_refusal.md").write_text("Say refuses.", encoding="utf-8")
    server.answer = lambda _: '{"reason": "So.", "verdict": "refuses"}'
    assert call("--kind=refusal", "--prompts=.")[0] == 0
    assert str(server.requests[-1].body["messages"][1]["content"]).endswith("Say refuses.")


def test_a_judge_that_cannot_be_asked_ends_it(server: FakeOpenAI, call: Call) -> None:
    """With its own error: a refused key and an outage at the first request, a model that is gone later too."""
    server.script('{"reason": "So.", "verdict": "refuses"}', failing(404, "gone"), failing(404, "gone"))
    for said in ("knows no model fake", "the server failed with status 503"):
        before = server.calls
        status, out, err = call("--kind=refusal")
        assert (status, out, said in err) == (1, "", True), err
        server.answer = lambda _: failing(503)
    assert server.calls < before + 8
    server.key, before = "another", server.calls
    assert call() == (1, "", "ragmetrics: openai:fake: the key was refused; check OPENAI_API_KEY\n")
    assert server.calls == before + 1


def test_the_local_judge(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """It compares numbers and is wrong about changed names; reasons in any script are printed in ASCII where needed."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert call(judge="local")[0] == 0
    out = written.getvalue().decode()
    for said in ("local (heuristic): 192 probes, 0 unscored; 0 calls", "number    1.00", "name      0.50"):
        assert said in out
    assert "ja-claims-false" in out
    assert r"\u" in out


ROWS = [
    {
        "id": name,
        "question": f"What of the {name}?",
        "response": f"{text} The seal is checked by the night shift before a holiday.",
        "contexts": [f"{text} The seal is checked by the night shift before a holiday."],
    }
    for name, text in {
        "pump": "The green pump needs 20 minutes to fill.",
        "oven": "Bread stays in the brick oven for 35 minutes.",
        "boat": "A ferry carries 45 passengers across the lake.",
    }.items()
]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    return "rows.jsonl"


def test_planted_faults_are_noticed_or_survive(ragmetrics: Call, rows: str) -> None:
    """Without a judge numbers are seen and negations are not; the last line says by how much the share is missed."""
    command = ("probe", rows, "--metrics=numbers_aligned=1.0", "--kind=number", "--kind=negation", "--json=out.json")
    said = (
        "3 rows, 6 mutants; how many were noticed, of how many with a verdict:",
        "number       3              3/3  3/3",
        "negation     3              0/3  0/3",
        "all          6              3/6  3/6",
        "not noticed (3):",
        "negation; what would notice: faithfulness",
        "to fill. The seal [is -> is not] checked by the night",
    )
    told(ragmetrics(*command), 0, *said)
    told(ragmetrics(*command, "--min=0.5"), 0)
    told(ragmetrics(*command, "--min=0.8"), 1, "0.500 of the planted faults were noticed, below --min=0.8")
    assert json.loads(Path("out.json").read_text("utf-8"))["share"] == 0.5
    told(ragmetrics("probe", rows, "--metrics=numbers_aligned", "--kind=number", "--rows=2"), 0, "2 rows, 2 mutants")
    told(ragmetrics("probe", rows, "--metrics=token_f1", "--kind=number"), 1, "none of these faults has a verdict")


def test_a_judge_is_asked_once_and_forecast(named_server: FakeOpenAI, ragmetrics: Call, rows: str) -> None:
    """A dry run asks nothing; a second run takes every answer from the cache."""
    named_server.key = "sk-fake"
    command = ("probe", rows, "--metrics=response_groundedness=0.5", "--kind=number", "--judge=openai:fake")
    told(ragmetrics(*command, "--dry-run", "--cache-dir=cache"), 0, "dry run:", "response_groundedness", "12")
    assert named_server.requests == []
    told(ragmetrics(*command, "--cache-dir=cache"), 0, "3 rows, 3 mutants")
    asked = len(named_server.requests)
    told(ragmetrics(*command, "--cache-dir=cache"), 0, "3 rows, 3 mutants")
    assert (asked > 0, len(named_server.requests)) == (True, asked)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--judge: name the judge to examine, or give ROWS with --metrics"),
        (("rows.jsonl",), "--metrics: name what ROWS are scored by"),
        (("rows.jsonl", "--metrics=mrr", "--limit=4"), "--limit: for a probe of a judge: leave out ROWS"),
        (("--judge=local", "--min=0.8", "--dry-run"), "--min, --dry-run: for a probe with answers: give ROWS"),
        (("rows.jsonl", "--metrics=mrr", "--kind=joined"), "--kind=joined: with ROWS it is one of number, date"),
        (("--judge=local", "--kind=half"), "--kind=half: without ROWS it is one of number, name"),
        (("empty.jsonl", "--metrics=mrr"), "no row has a response"),
    ],
)
def test_options_belong_to_rows_or_to_the_judge(
    ragmetrics: Call, rows: str, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.delenv("RAGMETRICS_JUDGE", raising=False)
    Path("empty.jsonl").write_text('{"question": "Why?"}\n', encoding="utf-8")
    told(ragmetrics("probe", *arguments), 2, message)
