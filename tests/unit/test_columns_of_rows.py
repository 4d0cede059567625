"""Data sets whose columns have names of their own: ``columns=``, and the columns that look like fields."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pytest_ragmetrics import Sample, aevaluate, evaluate, rag_calibrated
from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.sample import meant_field
from pytest_ragmetrics.datasets import read_dataset
from pytest_ragmetrics.datasets.rows import Columns
from tests.unit.conftest import Call

MAPPED = {"question": "ask", "contexts": "passages", "response": "said", "reference": "answer"}
ROWS: list[dict[str, Any]] = [
    {"ask": "How long?", "passages": ["Two minutes.", "[1] Open it."], "said": "Two minutes.", "answer": "2"},
    {"ask": "Why?", "passages": ["Sand."], "said": "Moss grows.", "answer": None},
]
SAMPLES = [
    Sample(user_input=row["ask"], retrieved_contexts=row["passages"], response=row["said"], reference=row["answer"])
    for row in ROWS
]


#: The rows as a table whose lists are JSON in a cell, and as lines of JSON.
CELLS = pd.DataFrame([{**row, "passages": json.dumps(row["passages"])} for row in ROWS])
LINES = "".join(f"{json.dumps(row)}\n" for row in ROWS)
WRITERS: dict[str, Callable[[Path], object]] = {
    "a.csv": lambda path: CELLS.to_csv(path, index=False),
    "b.csv": lambda path: CELLS.to_csv(path, index=False, sep=";"),
    "a.csv.gz": lambda path: CELLS.to_csv(path, index=False),
    "a.jsonl": lambda path: path.write_text(LINES, "utf-8"),
    "a.ndjson.gz": lambda path: path.write_bytes(gzip.compress(LINES.encode())),
    "a.json": lambda path: path.write_text(json.dumps(ROWS), "utf-8"),
    "rows.json": lambda path: path.write_text(json.dumps({"samples": ROWS}), "utf-8"),
    "columns.json": lambda path: path.write_text(json.dumps({name: [it[name] for it in ROWS] for name in ROWS[0]})),
}


def without_id(samples: Any) -> list[Sample]:
    return [Sample(**{**sample.to_mapping(), "id": None}) for sample in samples]


@pytest.mark.parametrize("name", WRITERS)
def test_evaluate_reads_a_file_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    WRITERS[name](tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for source in (name, Path(name)):
        table = evaluate(source, "lexical_grounding", columns=MAPPED)
        assert without_id(row.sample for row in table.rows) == SAMPLES
        assert table.scores("lexical_grounding") == [1.0, 0.0]
    found = asyncio.run(aevaluate(tmp_path / name, ["exact_match"], columns=MAPPED))
    assert [row.unscored.keys() for row in found.rows] == [set(), {"exact_match"}]


@pytest.mark.parametrize(
    "rows", [ROWS, pd.DataFrame(ROWS), CELLS, iter(ROWS)], ids=["list", "frame", "cells", "iterator"]
)
def test_objects_are_read_by_columns(rows: Any) -> None:
    table = evaluate(rows, ["lexical_grounding"], columns=MAPPED)
    assert without_id(row.sample for row in table.rows) == SAMPLES


ONE = {"question": "Q?", "answer": "gold", "llm": "A.", "docs": "D.", "response": "old"}


@pytest.mark.parametrize(
    ("columns", "row", "expected"),
    [
        ({"response": "llm"}, ONE, {"response": "A.", "user_input": "Q?"}),
        ({"answer": "llm", "reference": "answer"}, ONE, {"response": "A.", "reference": "gold"}),
        ({"response": "llm"}, {**ONE, "llm": None}, {"response": None}),
        ({"response": "reference", "reference": "response"}, {"response": "r", "reference": "s"}, {"response": "s"}),
        ({"actual_output": "llm"}, {"llm": "A.", "answer": "gold"}, {"response": "A."}),
        ({"retrieval_context": "docs"}, ONE, {"retrieved_contexts": ("D.",)}),
        ({"context": "docs"}, {"docs": '["a", "b"]'}, {"retrieved_contexts": ("a", "b")}),
        ({"id": "nr"}, {"nr": 7, "question": "Q?"}, {"id": "7"}),
        ({"messages": "talk"}, {"talk": [{"role": "user", "content": "Q?"}]}, {"user_input": "Q?"}),
        ({"retrieved_context_ids": "hits"}, {"hits": ["a", 2], "question": "Q?"}, {"retrieved_context_ids": ("a", 2)}),
        ({"question": "question"}, ONE, {"user_input": "Q?", "response": "old"}),
        ({}, {"query": "Q?"}, {"user_input": "Q?"}),
        ({}, {"query": "rewritten", "question": "Q?"}, {"user_input": "Q?", "metadata": {"query": "rewritten"}}),
    ],
)
def test_a_field_is_read_from_its_column_alone(columns: Any, row: Mapping[str, Any], expected: Any) -> None:
    [read] = read_dataset([row], base=Path(), columns=Columns.of(columns))
    assert read.sample is not None
    assert {name: getattr(read.sample, name) for name in expected} == expected


WRONG: list[tuple[Any, str]] = [
    ({"qestion": "ask"}, r"'qestion=ask' is not FIELD=COLUMN with a field such as user_input, "),
    ({"ask": "question"}, "'ask=question' is not FIELD=COLUMN"),
    ({"question": ""}, "'question' is not FIELD=COLUMN"),
    ({"": "ask"}, "'=ask' is not FIELD=COLUMN"),
    ({"question": "ask", "input": "answer"}, "input=answer is the second for its field or its column: keep one"),
    ({"question": "ask", "response": "ask"}, "response=ask is the second"),
    (["question"], r"\"\['question'\]\" is not FIELD=COLUMN"),
    ("question", "'question' is not FIELD=COLUMN"),
    (5, "'5' is not FIELD=COLUMN"),
]


@pytest.mark.parametrize(("columns", "said"), WRONG)
def test_a_mapping_that_says_nothing_is_refused(columns: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        evaluate(ROWS, ["exact_match"], columns=columns)


@pytest.mark.parametrize("name", WRITERS)
def test_a_column_that_no_row_has_is_named(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    said = r"columns names 'pasages', which no row has; there are 'ask', 'passages', 'said', 'answer'"
    with pytest.raises(DatasetError, match=said):
        evaluate(tmp_path / name, ["exact_match"], columns={"question": "ask", "contexts": "pasages"})


def test_the_commands_take_columns(tmp_path: Path, ragmetrics: Call) -> None:
    rows, scores = tmp_path / "a.csv", tmp_path / "scores.jsonl"
    CELLS.assign(label=[1, 0]).to_csv(rows, index=False)
    columns = "--columns=response=said, contexts=passages"
    assert ragmetrics("score", rows, "--metrics=lexical_grounding", "-o", scores, columns)[0] == 0
    assert [json.loads(line)["records"][0]["score"] for line in scores.read_text("utf-8").splitlines()] == [1.0, 0.0]
    status, out, _ = ragmetrics("calibrate", rows, "--metric=lexical_grounding", "--threshold=0.5", columns)
    assert (status, "against 2 human labels" in out) == (0, True), out
    refused = ["score", rows, "--metrics=exact_match", "-o", tmp_path / "b.jsonl"]
    status, _, err = ragmetrics(*refused, "--columns=passages=contexts")
    assert (status, "'--columns': columns: 'passages=contexts' is not FIELD=COLUMN" in err) == (2, True), err
    assert "columns names 'nr', which no row has" in ragmetrics(*refused, "--columns=id=nr")[2]


def test_labelled_answers_have_columns() -> None:
    rows = [{"said": "Moss.", "docs": "Moss.", "label": 1}, {"said": "Sand.", "docs": "Moss.", "label": 0}] * 10
    columns = {"response": "said", "contexts": "docs"}
    assert len(rag_calibrated("lexical_grounding", rows, 0.5, threshold=0.4, columns=columns).rows) == 20


LOOK = {
    "retrieved_contexts": "passages ctx ctxs docs documents chunks retrieved_docs source_documents retrievedChunks "
    "Contexts text_chunks top_k_passages search_context doc_texts snippets kb_paragraphs contexts_v1 evidence_texts",
    "user_input": "Question_Text query_text user_question Prompt userQuery QUESTION customer_question input_text "
    "questions utterance rewritten_query question_body NL_question",
    "response": "answer_text model_answer llm_output output completion prediction generatedAnswer bot_reply AnswerText "
    "assistant_response predicted_answer model_response system_output final_answer candidate_answer answr "
    "result result_text",
    "reference": "gold gold_answer expected_answer target_text correct_answer ideal_answer ground_truth_answer "
    "expectedAnswer GoldAnswer true_answer ref_answer gold_standard",
    "reference_contexts": "gold_context gold_passages reference_docs expected_contexts ground_truth_chunks",
}
ABOUT = (
    "question_id doc_ids answer_length question_type context_count answer_relevancy context_precision lang topic "
    "source url created_at model latency_ms prompt_tokens score is_correct label split user_id n_contexts doc_title "
    "cluster answer_correctness group notes chunk_size content chunk_id response_time promptTokens answerId golden_id "
    "reviewer expected_score intent prompt_version has_context is_answered query_embedding answer_url question_lang"
)


@pytest.mark.parametrize(("field", "names"), [*LOOK.items(), (None, ABOUT)])
def test_a_column_that_looks_like_a_field_is_named(field: str | None, names: str) -> None:
    """By its words or its spelling, where the field is missing; its id, its length, its score are not taken for it."""
    assert {name: meant_field(name) for name in names.split()} == dict.fromkeys(names.split(), field)


YOU = "did you write"


@pytest.mark.parametrize(
    ("rows", "metric", "said"),
    [
        ([{"answer": "A.", "passages": ["A."]}], "lexical_grounding", f"{YOU} 'passages' for retrieved_contexts? In a"),
        ([{"question": "Q?", "answer_text": "A."}], "exact_match", f"{YOU} 'answer_text' for response?"),
        ([{"answer": "A.", "gold": "A."}], "exact_match", f"{YOU} 'gold' for reference?"),
    ],
)
def test_a_missing_field_names_the_column_that_looks_like_it(rows: Any, metric: str, said: str) -> None:
    """In the reason of the row without a score; numbers are taken for no text."""
    [row] = evaluate(rows, [metric]).rows
    assert said in row.unscored[metric]
    field = said.partition("for ")[2].partition("?")[0]
    numbers = [{name: 0.5 if meant_field(name) == field else value for name, value in it.items()} for it in rows]
    [row] = evaluate(numbers, [metric]).rows
    assert "did you write" not in row.unscored[metric]


def test_a_header_of_unknown_names_says_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Question_Text,ctx,Answer_Text,lang\nQ?,C.,A.,en\n", "utf-8")
    columns = "{'user_input': 'Question_Text', 'retrieved_contexts': 'ctx', 'response': 'Answer_Text'}"
    with pytest.raises(DatasetError) as raised:
        evaluate(tmp_path / "a.csv", ["lexical_grounding"])
    written = "user_input=Question_Text,retrieved_contexts=ctx,response=Answer_Text"
    assert f"In a data set columns={columns} says so, in a command --columns {written}" in str(raised.value)
    assert evaluate(tmp_path / "a.csv", ["lexical_grounding"], columns=eval(columns)).rows[0].sample.user_input == "Q?"
