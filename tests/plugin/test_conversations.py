"""Conversations turn by turn in a run: tests of rows, tables, gates, files and a replay, in one process and in two."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_ragmetrics.cli import main
from pytest_ragmetrics.evaluation.score_files import load_scores
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import MANY, SERIAL, Run, RunPytest, unpacked

SUITE = """
    from pytest_ragmetrics.evaluation.assert_sample import assert_conversation
    def user(text): return {"role": "user", "content": text}
    def says(text, *given): return {"role": "assistant", "content": text, **({"contexts": given} if given else {})}
    CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "search", "arguments": "{}"}}]}
    FOUND = {"role": "tool", "tool_call_id": "c1", "content": '["The KX-30 needs 30 minutes."]'}
    ROWS = [
        {"id": "pump", "turn": "mine", "messages": [
            user("I bought it in 1999. How long does the KX-20 need?"),
            says("The KX-20 needs 77 minutes.", "The KX-20 needs 20 minutes."),
            user("And the KX-30?"), CALL, FOUND,
            says("The KX-30 needs 30 minutes and the KX-20 needs 77 minutes."),
            user("Bought when?"), says("You bought it in 1999."), user("Bye"),
        ]},
        {"id": "de", "messages": [
            user("Wie lange braucht die Pumpe?"), user("Und wie teuer ist sie?"),
            says("Die Pumpe braucht 20 Minuten.", "Die Pumpe braucht 20 Minuten."),
        ]},
        {"id": "ja", "messages": [
            says("こんにちは！"), user("何分ですか？"), says("ポンプは20分です。", "ポンプは20分です。"),
        ]},
        {"id": "odd", "messages": [user("Why?"), {"role": "assistant", "content": 7}]},
        {"id": "de-t1", "question": "Why?", "answer": "So.", "contexts": ["So."]},
    ]
    EACH = {"turns": "each", "contexts_from": ["search"]}

    @pytest.mark.rag_dataset(ROWS, metrics=["faithfulness", "numbers_aligned"], **EACH)
    def test_turn(rag_sample, rag_scores):
        assert rag_scores["numbers_aligned"] >= 0.9

    @pytest.mark.rag_dataset(ROWS[1:3], metrics={"numbers_aligned": 0.9}, **EACH)
    @pytest.mark.rag_gate(metric="numbers_aligned", mean=0.9)
    def test_gated(rag_sample, rag_scores): pass

    def test_table(rag_evaluate):
        table = rag_evaluate(ROWS[:3], ["numbers_aligned"], **EACH)
        found = {name: (it.score, it.worst, it.turns) for name, it in table.by_conversation("numbers_aligned").items()}
        assert found == {"pump": (2 / 3, 0.5, 2), "de": (1.0, 1.0, 1), "ja": (1.0, 1.0, 1)}, found
        assert_mean(table, 0.1, metric="numbers_aligned")

    def test_whole(): assert_conversation(ROWS[0], numbers_aligned=0.9, contexts_from=["search"])
"""
OPTIONS = ("--rag-judge=openai:gpt-mine", "--rag-json=out.json", "-o", "rag_cassette=answers.jsonl", "-rfE")


@pytest.fixture(scope="module", params=[SERIAL, MANY], ids=["one process", "two workers"])
def ran(request: pytest.FixtureRequest, run_once: RunPytest, shared_server: FakeOpenAI) -> Run:
    options = (*OPTIONS, *request.param, "--rag-report=out.html")
    return run_once(*options, provider=shared_server, test_talk=SUITE)


def record_of(ran: Run, test: str, metric: str = "numbers_aligned") -> dict[str, Any]:
    """Return the record of a metric in the JSON file."""
    found: dict[str, dict[str, Any]] = {it["metric"]: it for it in ran.named[test]["records"]}
    return found[metric]


def test_each_answer_is_a_test(ran: Run) -> None:
    """The broken row and the one with the id of a turn are the only errors."""
    assert ran.named.keys() >= {f"test_turn[{name}]" for name in ("pump-t1", "pump-t2", "pump-t3", "de-t1", "ja-t2")}
    assert "test_turn[pump]" not in ran.named
    outcomes = {name: test["outcome"] for name, test in ran.named.items()}
    assert {name for name, outcome in outcomes.items() if outcome == "error"} == {
        "test_turn[odd]",
        "test_turn[de-t1-2]",
    }
    failed = {"test_turn[pump-t1]", "test_turn[pump-t2]", "test_whole"}
    assert {name for name, outcome in outcomes.items() if outcome == "failed"} == failed
    ran.shows_all(
        "field 'messages': row odd: messages[[]1].content is of type int: give a text or a list of parts",
        "field 'id': row de-t1: the id 'de-t1' is that of a turn or of another row too: give this row another",
    )


def test_a_failure_names_the_turn(ran: Run) -> None:
    ran.shows_all(
        "E * numbers_aligned 0.50 < 0.90: 1 of 2 numbers in no context",
        "E * turn 1  in no context: *77* (response[[]16:18])",
        "E * numbers_aligned 0.75 < 0.90: 1 of 4 numbers in no context",
        "E * turn 2  repeated from turn 1: *77* (response[[]47:49])",
    )


def test_a_conversation_fails_once(ran: Run) -> None:
    """By all its verdicts, and with every turn that fell short."""
    ran.shows(
        "E * 1 of 1 metric fell short: numbers_aligned 0.67 < 0.90",
        "E * numbers_aligned 0.67 < 0.90: 2 of 6 numbers in no context, in turns 1 and 2 of 3",
        "E * turn 1  in no context: *77*",
        "E * turn 2  repeated from turn 1: *77*",
    )


@pytest.mark.parametrize(
    ("turn", "kinds", "value", "vacuous"),
    [
        ("pump-t1", [None, None], 0.5, False),
        ("pump-t2", [None, None, "found earlier", "repeated"], 0.75, False),
        ("pump-t3", ["told by the user"], 1.0, True),
        ("de-t1", [None], 1.0, False),
        ("ja-t2", [None], 1.0, False),
    ],
)
def test_records_say_where_a_number_is_from(
    ran: Run, turn: str, kinds: list[str | None], value: float, *, vacuous: bool
) -> None:
    record = record_of(ran, f"test_turn[{turn}]")
    assert (record["score"], record["vacuous"]) == (value, vacuous)
    assert [it["kind"] for it in record["verdicts"]] == kinds
    assert {it["turn"] for it in record["verdicts"]} == {int(turn[-1])}


def test_evidence_has_the_offsets_of_its_text(ran: Run) -> None:
    """In the contexts of the turn, or of the earlier turn that it names; places of verdicts are in the response."""
    seen = 0
    for test in ran.document.tests:
        for record in test.records:
            sample = record.sample
            older: dict[int, list[str]] = {}
            for turn, text in sample.metadata.get("earlier_contexts", ()):
                older.setdefault(turn, []).append(text)
            for verdict in record.verdicts:
                assert verdict.start is None or (sample.response or "")[verdict.start : verdict.end] == verdict.text
                for piece in verdict.evidence if verdict.kind != "told by the user" else ():
                    texts = (sample.retrieved_contexts or ()) if piece.turn is None else older[piece.turn]
                    assert texts[piece.context][piece.start : piece.end] == piece.text
                    seen += 1
    assert seen > 10


def test_samples_of_turns_go_through_files(ran: Run) -> None:
    """Read from JSON they are the turns they were: no further turns are made of them."""
    samples = [record.sample for test in ran.document.tests for record in test.records]
    assert {it.metadata["conversation"] for it in samples if "lacking" in it.metadata} == {"pump", "de", "ja"}
    for sample in samples:
        assert sample.turns() == (sample,)
        assert sample.metadata["cluster"] == sample.metadata["conversation"]


def test_a_gate_counts_what_had_something_to_check(ran: Run) -> None:
    ran.shows("gate: mean numbers_aligned 1.000, needed >= 0.9: passed (n 2, 2 of 3 had something to check)*")


def test_the_page_has_all_turns(ran: Run) -> None:
    page = unpacked(ran.text("out.html"))
    assert all(text in page for text in ("pump-t1", "pump-t2", "ja-t2", "The KX-30 needs 30 minutes and the KX-20"))


def test_a_replay_asks_nobody(ran: Run, run: RunPytest, server: FakeOpenAI) -> None:
    """The records are the same but for what they cost, of one process and of workers."""
    answers, before = ran.text("answers.jsonl"), ran.named
    server.requests.clear()
    (Path.cwd() / "answers.jsonl").write_text(answers, "utf-8")
    again = run(*OPTIONS, "--rag-cache=replay", test_talk=SUITE)
    assert server.calls == 0
    again.shows("judge calls: 0 made (0 tokens, *), * saved by the cache (*)")
    free = {"usage": None, "exchanges": None}
    found = [
        {name: [{**it, **free} for it in test["records"]] for name, test in tests.items()}
        for tests in (before, again.named)
    ]
    assert found[0] == found[1]


def test_the_run_before_is_the_baseline(ran: Run, run: RunPytest, server: FakeOpenAI) -> None:
    """Turns are paired by their ids, and whole conversations flip together."""
    (Path.cwd() / "before.json").write_text(ran.text("out.json"), "utf-8")
    worse = SUITE.replace("The KX-30 needs 30 minutes and the", "The KX-30 needs 31 minutes and the")
    again = run(*OPTIONS, "--rag-baseline=before.json", "-k", "test_turn", test_talk=worse)
    again.shows("*numbers_aligned*")
    again.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_budget_leaves_turns_without_a_score(run: RunPytest, server: FakeOpenAI) -> None:
    """And a dry run asks for none."""
    dry = run(*OPTIONS, "--rag-dry-run", "-k", "test_turn and not odd", test_talk=SUITE)
    assert server.calls == 0
    dry.stdout.no_fnmatch_line("*INTERNALERROR*")
    short = run(*OPTIONS, "--rag-max-calls=3", "-k", "test_turn and pump", test_talk=SUITE)
    assert server.calls == 3
    short.stdout.no_fnmatch_line("*INTERNALERROR*")
    assert {it["outcome"] for test in short.named.values() for it in test["records"]} >= {"unscored"}


def test_a_command_scores_each_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of rows in lines; the broken one is named with its line, turns are named by their conversation."""
    values: dict[str, Any] = {}
    exec(dedent(SUITE).split("    @pytest.mark")[0].split("@pytest.mark")[0], values)
    rows = tmp_path / "talks.jsonl"
    rows.write_text("\n".join(json.dumps(row) for row in values["ROWS"][:4]), "utf-8")
    out = tmp_path / "scores.jsonl"
    options = ["--metrics", "numbers_aligned=0.9", "--turns", "each", "--contexts-from", "search", "-o", str(out)]
    assert main(["score", str(rows), *options]) == 0
    table = load_scores(out)
    assert table.scores("numbers_aligned") == [0.5, 0.75, 1.0, 1.0, 1.0, 1.0, None]
    assert {it.worst for it in table.by_conversation("numbers_aligned").values()} == {0.5, 1.0}
    assert "messages[1].content is of type int" in out.read_text("utf-8")
    capsys.readouterr()


GATES = """
    from pytest_ragmetrics.metrics import Metric
    class Length(Metric):
        name, of_conversation, scale, requires = "length", True, (0.0, 10.0), ()
        def measure(self, sample): return MetricResult(4.0, metric=self.name)
    ASKS, SAYS = {"role": "user", "content": "How long?"}, {"role": "assistant", "content": "2 minutes."}
    ROWS = [{"id": f"r{n}", "messages": [ASKS, {**SAYS, "contexts": ["2 minutes."]}] * 2} for n in range(6)]
    @pytest.mark.rag_gate("length", GATE)
    @pytest.mark.rag_gate("numbers_aligned", mean=0.8)
    @pytest.mark.rag_dataset(ROWS, metrics=["numbers_aligned", Length()], turns="each")
    def test_both(rag_scores): pass
"""


def test_gates_of_answers_and_of_the_whole_have_tests_of_their_own(run: RunPytest, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    ran = run(*OPTIONS, f"--rag-json={before}", test_both=GATES.replace("GATE", "mean=3.0"))
    ran.shows("*length 4.000, needed >= 3: passed (n 6)*", "*aligned 1.000, needed >= 0.8: passed (n 12)*", passed=20)
    ran = run(*OPTIONS, f"--rag-baseline={before}", test_both=GATES.replace("GATE", "regression=True"))
    ran.shows("*length against the baseline 4.000 -> 4.000*passed*", passed=20)
