"""Turns of a conversation: which samples are made of it, and what each of them has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import assert_mean, evaluate
from pytest_ragmetrics.core.messages import read_messages
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample, in_turns, turn_of
from pytest_ragmetrics.datasets import read_dataset
from pytest_ragmetrics.datasets.rows import DatasetRow, rows_in_turns
from pytest_ragmetrics.metrics import AnswerRelevancy, Hallucination, LexicalGrounding, NumbersAligned
from pytest_ragmetrics.metrics.base import Metric

ASKS = {"role": "user", "content": "How long does the KX-12 take?"}
SAYS = {"role": "assistant", "content": "It takes 90 minutes."}
MORE = {"role": "user", "content": "And the KX-13?"}
THEN = {"role": "assistant", "content": "It takes 3 minutes."}
BYE = {"role": "user", "content": "Thanks, bye!"}
CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "search", "arguments": "{}"}}]}
CLOCK = {"role": "assistant", "tool_calls": [{"id": "c2", "function": {"name": "clock", "arguments": "{}"}}]}
FOUND = {
    "role": "tool",
    "tool_call_id": "c1",
    "content": '["It takes 3 minutes.", {"page_content": "Open it."}]',
}
NOON = {"role": "tool", "tool_call_id": "c2", "content": "It is noon."}


def turns(*messages: object, contexts_from: Any = None, **fields: Any) -> tuple[Sample, ...]:
    return Sample.from_mapping({"id": "pump", "messages": [*messages], **fields}).turns(contexts_from=contexts_from)


def on(message: dict[str, Any], **given: Any) -> dict[str, Any]:
    return {**message, **given}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([ASKS, SAYS, MORE, THEN, BYE], [(1, ASKS["content"], SAYS["content"]), (2, MORE["content"], THEN["content"])]),
        ([{"role": "system", "content": "Be brief."}, ASKS, SAYS], [(1, ASKS["content"], SAYS["content"])]),
        ([SAYS, MORE, THEN], [(1, None, SAYS["content"]), (2, MORE["content"], THEN["content"])]),
        ([ASKS, MORE, SAYS], [(1, f"{ASKS['content']}\n\n{MORE['content']}", SAYS["content"])]),
        ([ASKS, SAYS, CALL, FOUND, THEN], [(1, ASKS["content"], THEN["content"])]),
        ([ASKS, MORE, CALL, FOUND, BYE, THEN], [(2, BYE["content"], THEN["content"])]),
        ([ASKS, on(SAYS, content=" "), MORE, THEN], [(1, ASKS["content"], " "), (2, MORE["content"], THEN["content"])]),
    ],
    ids=["unanswered end", "instructions", "opening", "two questions", "look first", "calls alone", "blank answer"],
)
def test_each_answered_exchange_is_a_sample(messages: list[Any], expected: list[tuple[int, str, str]]) -> None:
    found = turns(*messages)
    assert [(each.metadata["turn"], each.user_input, each.response) for each in found] == expected
    assert [each.id for each in found] == [f"pump-t{number}" for number, *_ in expected]
    for each in found:
        assert (each.metadata["conversation"], each.metadata["cluster"], each.turns()) == ("pump", "pump", (each,))
        last = read_messages(each.metadata["messages"])[-1]
        assert (last.role, last.text) == ("assistant", each.response)


def test_a_question_and_an_answer_after_the_messages_are_the_last_turn() -> None:
    found = turns(ASKS, SAYS, question="And now?", answer="Three.", contexts=["Three minutes."])
    assert [(each.user_input, each.retrieved_contexts) for each in found] == [
        (ASKS["content"], None),
        ("And now?", ("Three minutes.",)),
    ]
    assert found[1].metadata["messages"] == [ASKS, SAYS]


def test_a_sample_that_is_no_conversation_is_itself() -> None:
    sample = Sample(user_input="Why?", response="So.")
    assert sample.turns() == (sample,) == in_turns(sample, "each", whole=True)


@pytest.mark.parametrize("talk", ["messages", "user_input", "turns", "history", "chat_history", "conversation"])
@pytest.mark.parametrize("name", ["retrieved_contexts", "contexts", "context", "retrieval_context"])
def test_contexts_on_messages_are_read_under_every_name(talk: str, name: str) -> None:
    row = {talk: [ASKS, on(SAYS, **{name: ["90 s.", "90 s."]}), MORE, on(THEN, **{name: [{"text": "3 minutes."}]})]}
    sample = Sample.from_mapping(row)
    assert sample.retrieved_contexts == ("3 minutes.",)
    assert [each.retrieved_contexts for each in sample.turns()] == [("90 s.",), ("3 minutes.",)]
    assert sample.turns()[1].metadata["earlier_contexts"] == ((1, "90 s."),)


def test_contexts_may_be_a_list_for_each_answer() -> None:
    found = turns(ASKS, SAYS, MORE, THEN, retrieved_contexts=[["a"], ["b", "c"]])
    assert [each.retrieved_contexts for each in found] == [("a",), ("b", "c")]
    with pytest.raises(ValueError, match="retrieved_contexts has 3 lists, the conversation 2 answers"):
        turns(ASKS, SAYS, MORE, THEN, retrieved_contexts=[["a"], ["b"], []])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (None, None),
        ("tools", ("It is noon.", "It takes 3 minutes.", "Open it.")),
        (["search"], ("It takes 3 minutes.", "Open it.")),
        (["clock"], ("It is noon.",)),
        (["other"], None),
    ],
)
def test_results_of_tools_may_be_contexts(source: Any, expected: object) -> None:
    """Results come in another order than their calls, and name them by id."""
    assert turns(ASKS, CALL, CLOCK, NOON, FOUND, THEN, contexts_from=source)[0].retrieved_contexts == expected


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ({"result": ["90 s.", {"text": "Open it."}]}, ("90 s.", "Open it.")),
        ({"result": "90 s."}, ('{"result": "90 s."}',)),
        ({"hits": [{"title": "KX-12"}]}, ('{"hits": [{"title": "KX-12"}]}',)),
        ({"a": ["x"], "b": 1}, ('{"a": ["x"], "b": 1}',)),
    ],
)
def test_results_of_gemini_and_bedrock_are_objects(returned: Any, expected: object) -> None:
    ask = {"role": "user", "parts": [{"text": "How long?"}]}
    call = {"role": "model", "parts": [{"functionCall": {"name": "search", "args": {}}}]}
    found = {"role": "user", "parts": [{"functionResponse": {"name": "search", "response": returned}}]}
    say = {"role": "model", "parts": [{"text": "90 s."}]}
    assert turns(ask, call, found, say, contexts_from=["search"])[0].retrieved_contexts == expected
    result = {"toolResult": {"toolUseId": "t1", "content": [{"json": returned}]}}
    call = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "search", "input": {}}}]}
    found, say = {"role": "user", "content": [result]}, {"role": "assistant", "content": [{"text": "90 s."}]}
    assert turns(ASKS, call, found, say, contexts_from=["search"])[0].retrieved_contexts == expected


@pytest.mark.parametrize("source", ["search", 3, [1], {}])
def test_other_sources_of_contexts_are_refused(source: Any) -> None:
    with pytest.raises(ValueError, match='contexts_from must be "tools" or a list of names of tools'):
        turns(ASKS, SAYS, contexts_from=source)


def test_other_fields_come_from_the_message_of_the_answer() -> None:
    """The reference of the row is that of the last turn, unless a message has one."""
    row = {"reference": "three", "retrieved_context_ids": ["d1"]}
    assert [each.reference for each in turns(ASKS, SAYS, MORE, THEN, **row)] == [None, "three"]
    first, last = turns(ASKS, on(SAYS, expected_output="two"), MORE, on(THEN, retrieved_context_ids=["d2"]), **row)
    assert (first.reference, last.reference) == ("two", None)
    assert (first.retrieved_context_ids, last.retrieved_context_ids) == (None, ("d2",))


def test_fields_may_stand_on_any_message_of_a_turn() -> None:
    """A reference beside the question is that of its answer; one of the wrong type is named with its turn."""
    first, last = turns(on(ASKS, reference="two"), SAYS, MORE, on(THEN, expected_output="three"))
    assert (first.reference, last.reference) == ("two", "three")
    with pytest.raises(TypeError, match="turn 2: reference must be a str, not int"):
        turns(ASKS, SAYS, MORE, on(THEN, reference=5))


@pytest.mark.parametrize(
    ("asked", "said", "expected"),
    [
        ({"context": {"user": "u1"}}, {"context": [1, 2]}, None),
        ({"context": "channel: web"}, {"contexts": ["3 minutes."]}, ("3 minutes.",)),
        ({"contexts": ["Hourly."]}, {"contexts": {"text": "3 minutes."}}, ("Hourly.", "3 minutes.")),
        ({}, {"retrieval_context": ["3 minutes."], "context": ["ideal"]}, ("3 minutes.",)),
        ({}, {"contexts": []}, ()),
    ],
)
def test_a_context_that_is_none_is_not_taken(asked: Any, said: Any, expected: object) -> None:
    """What is under one of the other names has to be contexts."""
    assert turns(on(ASKS, **asked), on(SAYS, **said))[0].retrieved_contexts == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], r"messages\[1\]\.contexts\[0\] is of type int"),
        (5, r"messages\[1\]\.contexts must be a text, a document or a list of them, not int"),
        ({"user": "u1"}, r"messages\[1\]\.contexts must be .* not dict, with the keys 'user'"),
    ],
)
def test_contexts_of_the_wrong_type_are_named(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        turns(ASKS, on(SAYS, contexts=value), MORE, THEN)
    (row,) = evaluate(
        [{"messages": [ASKS, on(SAYS, contexts=value), MORE, THEN]}], [NumbersAligned()], turns="each"
    ).rows
    assert row.unscored["numbers_aligned"].startswith("field 'messages': row samples[0]: messages[1].contexts")


def test_what_is_retrieved_after_an_answer_is_not_its_context() -> None:
    """Not even the last one's; what an unanswered question retrieved is known to the next answer."""
    (only,) = turns(ASKS, SAYS, on(BYE, contexts=["It takes 90 minutes."]))
    assert only.retrieved_contexts is None
    first, last = turns(ASKS, SAYS, MORE, CALL, FOUND, BYE, THEN, contexts_from="tools")
    assert (first.metadata["earlier_contexts"], last.metadata["turn"]) == ((), 3)
    assert last.metadata["earlier_contexts"] == ((2, "It takes 3 minutes."), (2, "Open it."))


def test_rows_may_have_a_turn_of_their_own() -> None:
    """Rows of a log, a turn each, are grouped by the conversation they name; none of them is vacuous for that."""
    assert [each.metadata["turn"] for each in turns(ASKS, SAYS, MORE, THEN, turn=7)] == [1, 2]
    logged = [{"question": "Why?", "answer": "3", "contexts": it, "conversation": "c", "turn": 1} for it in ("3", None)]
    table = evaluate(logged, [LexicalGrounding(), NumbersAligned()])
    assert "retrieved_contexts is missing" in table.rows[1].unscored["numbers_aligned"]


def test_conversations_without_ids_are_apart() -> None:
    """They are named by what the user says, whatever the answers are; the second of one name gets a number."""
    talks: list[Any] = [{"messages": [ASKS, on(SAYS, content=text), MORE, THEN]} for text in ("1.", "2.")]
    talks += [{"id": "pump", **talks[0]}] * 2
    table = evaluate(talks, [NumbersAligned()], turns="each")
    names = [*dict.fromkeys(row.sample.metadata["cluster"] for row in table.rows)]
    name = names[0]
    assert names == [name, f"{name}-2", "pump", "pump-2"]
    assert name.startswith("talk-")
    assert [row.sample.id for row in table.rows[:2]] == [f"{name}-t1", f"{name}-t2"]


def test_an_id_of_a_turn_is_no_other_row_s(tmp_path: Path) -> None:
    rows = [{"id": "pump", "messages": [ASKS, SAYS]}, {"id": "pump-t1", "question": "Why?", "answer": "So."}]
    (tmp_path / "talks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    first, second = rows_in_turns(read_dataset("talks.jsonl", base=tmp_path), "each")
    assert (first.id, first.error, second.id, second.sample) == ("pump-t1", None, "pump-t1-2", None)
    assert "row pump-t1: the id 'pump-t1' is that of a turn or of another row too" in str(second.error)


def test_a_thousand_turns_are_read_once() -> None:
    """Every turn refers to the messages before it, and reads none of them again."""
    found = turns(*[ASKS, on(SAYS, contexts=["90 minutes."])] * 1000)
    assert (len(found), len(found[-1].metadata["messages"])) == (1000, 2000)
    assert found[-1].metadata["earlier_contexts"] == ((1, "90 minutes."),)


def test_a_turn_without_what_others_have_is_vacuous() -> None:
    """Where no turn has it, the last one has no score, as a single answer has none."""
    talk = [ASKS, on(SAYS, contexts=["It takes long."]), BYE, THEN]
    first, last = evaluate([{"messages": talk}], [LexicalGrounding()], turns="each").rows
    assert (first.results["lexical_grounding"].value, first.results["lexical_grounding"].vacuous) == (0.5, False)
    assert (last.results["lexical_grounding"].value, last.results["lexical_grounding"].vacuous) == (1.0, True)
    assert last.results["lexical_grounding"].reason == "no contexts in this turn"
    reply = {"verdicts": [{"number": 1, "reason": "Other.", "sentences": [1], "verdict": "contradicted"}]}
    metric = Hallucination(judge=lambda _: json.dumps(reply))
    results = [row.results["hallucination"] for row in evaluate([{"messages": talk}], [metric], turns="each").rows]
    assert [(it.value, it.vacuous) for it in results] == [(1.0, False), (0.0, True)]
    first, last = evaluate([{"messages": [ASKS, SAYS, MORE, THEN]}], [LexicalGrounding()], turns="each").rows
    assert first.results["lexical_grounding"].vacuous
    assert "retrieved_contexts is missing" in last.unscored["lexical_grounding"]


class Length(Metric):
    """A metric of the whole conversation."""

    name, of_conversation, scale = "length", True, (0.0, 10.0)

    def measure(self, sample: Sample) -> MetricResult:
        return MetricResult(len(read_messages(sample.metadata["messages"])), metric=self.name)


def test_figures_are_over_the_rows_that_a_metric_is_for() -> None:
    """Those of answers have no score of the whole conversation, and the reverse: neither is unscored."""
    talk = [ASKS, on(SAYS, contexts=["It takes 90 minutes."]), MORE, on(THEN, contexts=["Nothing."])]
    table = evaluate([{"id": "pump", "messages": talk}], [Length(), NumbersAligned()], turns="each")
    assert [sorted(row.results) for row in table.rows] == [["numbers_aligned"], ["numbers_aligned"], ["length"]]
    assert (table.mean("length"), table.mean("numbers_aligned"), table.overall()) == (4.0, 0.5, 0.45)
    # Turns that no metric scores are no rows.
    assert [row.sample.id for row in evaluate([{"id": "pump", "messages": talk}], [Length()], turns="each").rows] == [
        "pump"
    ]
    assert [assert_mean(rows, metric="length", min=4.0).n for rows in (table, table.rows)] == [1, 1]
    assert assert_mean(table, metric="numbers_aligned", min=0.5).n == table.stats()["numbers_aligned"].n == 2


def test_an_opening_is_vacuous_for_metrics_of_questions() -> None:
    """But not where it is all there is."""
    talk: list[Any] = [SAYS, MORE, THEN]
    metric = AnswerRelevancy(judge=lambda _: "", embedder=lambda texts: [[1.0]] * len(texts))
    first, last = in_turns(Sample(id="a", metadata={"messages": talk}), "each")
    assert repr(metric.score_sample(first)) == "<answer_relevancy 1, vacuous: no user input in this turn>"
    assert "user_input" not in last.metadata["lacking"]
    with pytest.raises(ValueError, match="user_input is missing"):
        metric.score_sample(in_turns(Sample(id="a", metadata={"messages": talk[:2]}), "each")[0])


def test_rows_of_turns_have_ids_and_errors(tmp_path: Path) -> None:
    rows = [{"id": "pump", "messages": [ASKS, SAYS, MORE, THEN]}, {"id": "odd", "messages": [ASKS, 7], "answer": "So."}]
    (tmp_path / "talks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    first, second, broken = rows_in_turns(read_dataset("talks.jsonl", base=tmp_path), "each")
    assert [first.id, second.id, broken.id] == ["pump-t1", "pump-t2", "odd"]
    assert (broken.line, "messages[1]" in str(broken.error)) == (2, True)


@pytest.mark.parametrize("own", [{"turn": 3}, {"turn": "all"}, {"turn": 3, "conversation": "c7"}, {"lacking": None}])
def test_a_row_may_have_a_turn_of_its_own(tmp_path: Path, own: dict[str, Any]) -> None:
    """It is no turn of a conversation in turns: its id stays, and metrics of conversations score it."""
    row = {
        "id": "q",
        "question": "How long?",
        "answer": "It takes 90 minutes.",
        "metadata": {"messages": [ASKS], **own},
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    (kept,) = rows_in_turns(read_dataset("rows.jsonl", base=tmp_path), "last")
    assert (kept.id, turn_of(kept.sample or Sample())) == ("q", None)
    (scored,) = evaluate([kept.sample], [Length(), NumbersAligned()]).rows
    assert (scored.results["length"].value, [*scored.unscored]) == (1.0, ["numbers_aligned"])
    assert "retrieved_contexts is missing" in scored.unscored["numbers_aligned"]
    assert [row.sample.id for row in evaluate([kept.sample], [NumbersAligned()], turns="each").rows] == ["q-t1"]


def test_turns_are_read_again_as_they_are() -> None:
    first, last = turns(ASKS, SAYS, MORE, THEN)
    again = evaluate([first, last], [NumbersAligned()], turns="each").rows
    assert [row.sample.id for row in again] == ["pump-t1", "pump-t2"]
    assert [row.id for row in rows_in_turns([DatasetRow(sample=first, id="pump-t1")], "each")] == ["pump-t1"]


def test_turns_are_last_or_each() -> None:
    with pytest.raises(ValueError, match='turns must be "last" or "each", not \'all\''):
        evaluate([{"messages": [ASKS, SAYS]}], [NumbersAligned()], turns="all")  # type: ignore[arg-type]


def test_a_score_file_has_a_row_for_each_turn_that_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_ragmetrics.cli import main
    from pytest_ragmetrics.evaluation.score_files import load_scores

    talk = [ASKS, CALL, FOUND, on(SAYS, content="It takes 3 minutes."), MORE, THEN]
    (tmp_path / "talks.jsonl").write_text(json.dumps({"id": "pump", "messages": talk}))
    out = tmp_path / "scores.jsonl"
    options = ["--metrics", "numbers_aligned=1", "--turns", "each", "--contexts-from", "search", "-o", str(out)]
    assert main(["score", str(tmp_path / "talks.jsonl"), *options]) == 0
    assert load_scores(out).scores("numbers_aligned") == [1.0, 1.0]
    monkeypatch.setattr(NumbersAligned, "of_conversation", True)
    assert main(["score", str(tmp_path / "talks.jsonl"), *options]) == 0
    assert [row.sample.id for row in load_scores(out).rows] == ["pump"]
