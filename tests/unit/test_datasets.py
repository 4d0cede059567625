"""Rows of data sets: their shapes, their ids, and which of them are taken."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets import DatasetRow, read_dataset
from pytest_ragmetrics.datasets.rows import safe_id

BASE = Path(__file__).parent


def read(source: Any, **options: Any) -> tuple[DatasetRow, ...]:
    return read_dataset(source, base=BASE, **options)


def sample(row: Any) -> Sample:
    """Return the sample of one row of another tool, without the id that was made for it."""
    (only,) = read([row])
    assert only.sample is not None, only.error
    assert only.sample.id == only.id
    return replace(only.sample, id=None)


def ids(source: Any, **options: Any) -> list[str]:
    return [row.id for row in read(source, **options)]


def asked(rows: tuple[DatasetRow, ...]) -> list[str | None]:
    return [row.sample.user_input if row.sample else None for row in rows]


OLD = {"question": "Why?", "contexts": ["a"], "answer": "So."}
TURNS = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
DEEPEVAL: dict[str, Any] = {"input": "Why?", "actual_output": "So.", "expected_output": "So.", "name": "first"}
DEEPEVAL |= {
    "retrieval_context": ["found"],
    "context": ["ideal"],
    "additional_metadata": {"lang": "en"},
    "comments": None,
}
SOURCED = "deepeval_source=u=1,2,deepeval_context=a, b|c"
MARKDOWN = "| a | b |\n| --- | --- |\n| c | d |"
TALK = [*TURNS[:1], {**TURNS[1], "retrieval_context": ["a"]}]
OF_A_RUN: dict[str, Any] = {"input": "Why?", "actualOutput": "So.", "expectedOutput": "So.", "retrievalContext": ["a"]}
OF_A_RUN |= {"context": ["b"], "toolsCalled": [], "additionalMetadata": {"lang": "en"}, "metricsData": []}
GOLDEN = {"input": "Why?", "actual_output": None, "expected_output": "So.", "context": "a|b", "source_file": "f.md"}
TO_COME = {"scenario": "s", "turns": None, "expected_outcome": "Calm.", "context": ["a"]}
CALM: dict[str, Any] = {"user_input": "Why?", "response": "So.", "reference": "Calm.", "reference_contexts": ("a", "b")}
CALM |= {"retrieved_contexts": None, "metadata": {"scenario": "s", "messages": TURNS}}
RAGAS_0 = {"question": "Why?", "ground_truth_context": ["a"], "ground_truth": ["b", "c"], "episode_done": True}
RAGAS_1 = {"question": "Why?", "contexts": ["a"], "ground_truth": "b", "metadata": [{"source": "a.md"}]}
RAGAS_2 = {"eval_sample": {"user_input": "Why?", "reference_contexts": ["a"]}, "synthesizer_name": "single"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"response": "So.", "retrieved_contexts": ["a"], "rubrics": {}}, {"metadata": {"rubrics": {}}}),
        ({**OLD, "ground_truth": "b"}, {"reference": "b"}),
        ({**OLD, "ground_truths": ["b"]}, {"reference": "b"}),
        ({**OLD, "ground_truths": "b"}, {"reference": "b"}),
        ({**OLD, "ground_truths": ["b", "c"]}, {"reference": "b\nc"}),
        ({**OLD, "ground_truths": []}, {"reference": None, "metadata": {}}),
        ({**OLD, "ground_truths": ["b"], "reference": "a"}, {"reference": "a", "metadata": {"ground_truths": ["b"]}}),
        (DEEPEVAL, {"user_input": "Why?", "response": "So.", "reference": "So."}),
        (DEEPEVAL, {"retrieved_contexts": ("found",), "reference_contexts": ("ideal",)}),
        (DEEPEVAL, {"metadata": {"name": "first", "lang": "en"}}),
        # Where there may be a retrieval_context, context is the ideal one; elsewhere it is what was retrieved.
        ({**DEEPEVAL, "retrieval_context": None}, {"retrieved_contexts": None, "reference_contexts": ("ideal",)}),
        ({"input": "Why?", "context": ["found"]}, {"retrieved_contexts": ("found",), "reference_contexts": None}),
        ({**DEEPEVAL, "reference_contexts": ["c"], "name": None}, {"metadata": {"context": ["ideal"], "lang": "en"}}),
        # DeepEval's save_as() joins lists in CSV and JSON Lines, and writes the source of a context in front of it.
        ({**DEEPEVAL, "retrieval_context": "a|b c|d", "context": ""}, {"retrieved_contexts": ("a", "b c", "d")}),
        ({**DEEPEVAL, "retrieval_context": "a", "context": ""}, {"reference_contexts": ()}),
        ({**DEEPEVAL, "context": "a|b"}, {"retrieved_contexts": ("found",), "reference_contexts": ("a", "b")}),
        ({**DEEPEVAL, "retrieval_context": SOURCED}, {"retrieved_contexts": ("a, b", "c")}),
        ({**DEEPEVAL, "retrieval_context": MARKDOWN}, {"retrieved_contexts": (MARKDOWN,)}),
        ({"question": "Why?", "contexts": "a|b"}, {"retrieved_contexts": ("a|b",)}),
        # a conversation of its own, whose context is the ideal one
        ({**TO_COME, "turns": TURNS, "context": ["a", "b"], "input": None}, CALM),
        ({**TO_COME, "turns": json.dumps(TURNS), "context": "a|b", "input": None}, CALM),
        ({"question": "Why?", "turns": 3, "context": "a|b"}, {"retrieved_contexts": ("a|b",)}),
        ({"question": "Why?", "turns": TURNS, "context": "a|b"}, {"retrieved_contexts": ("a|b",)}),
        ({"input": "Why?", "context": "a|b"}, {"retrieved_contexts": ("a|b",)}),
        # goldens of DeepEval before 2, which have no retrieval_context, and of conversations that are still to come
        (GOLDEN, {"retrieved_contexts": None, "reference_contexts": ("a", "b"), "reference": "So.", "response": None}),
        (TO_COME, {"retrieved_contexts": None, "reference_contexts": ("a",), "reference": "Calm."}),
        ({"scenario": "s", "answer": "So.", "context": ["a"]}, {"retrieved_contexts": ("a",)}),
        # the files of its runs
        (OF_A_RUN, {"user_input": "Why?", "response": "So.", "reference": "So.", "retrieved_contexts": ("a",)}),
        (OF_A_RUN, {"reference_contexts": ("b",)}),
        (OF_A_RUN, {"metadata": {"tools_called": [], "lang": "en", "metricsData": []}}),
        ({"input": "Why?", "actual_output": "So.", "actualOutput": "No."}, {"response": "So."}),
        # the contexts of the last turn, unless the row has its own
        ({"turns": TALK}, {"response": "So.", "retrieved_contexts": ("a",)}),
        ({"turns": TALK, "retrieval_context": ["b"]}, {"retrieved_contexts": ("b",)}),
        # turns that are test cases
        (
            {"turns": [{**DEEPEVAL, "input": "Who?"}, DEEPEVAL]},
            {"user_input": "Why?", "retrieved_contexts": ("found",)},
        ),
        ({"messages": [{"llm_test_case": DEEPEVAL}]}, {"user_input": "Why?", "response": "So."}),
        # test sets of Ragas before 0.1, in 0.1 and since
        (RAGAS_0, {"reference_contexts": ("a",), "reference": "b\nc", "metadata": {"episode_done": True}}),
        (RAGAS_1, {"retrieved_contexts": ("a",), "metadata": {"metadata": [{"source": "a.md"}]}}),
        (RAGAS_2, {"user_input": "Why?", "reference_contexts": ("a",), "metadata": {"synthesizer_name": "single"}}),
    ],
)
def test_rows_of_other_tools_are_samples(row: dict[str, Any], expected: dict[str, Any]) -> None:
    read_sample = sample(row)
    assert {name: getattr(read_sample, name) for name in expected} == expected


def test_a_conversation_is_kept_for_metrics_that_take_one() -> None:
    assert sample({"user_input": TURNS}) == Sample(user_input="Why?", metadata={"messages": TURNS})
    for name in ("user_input", "messages"):
        assert ids([{name: TURNS}]) != ids([{name: TURNS[:1]}])
    # As they were before a row of messages had a question: reports are compared by id.
    assert ids([{"messages": TURNS}, {"user_input": TURNS}]) == ["row-a39b45fb90", "row-ae9954a550"]


@dataclass
class Case:
    input: str
    retrieval_context: list[str] | None = None
    context: list[str] | None = field(default_factory=lambda: ["ideal"])


FRAME = pd.DataFrame({"question": ["Why?"]})


@pytest.mark.parametrize(
    "source",
    [
        [{"question": "Why?"}],
        ({"question": "Why?"},),
        [Sample(user_input="Why?")],
        {"question": ["Why?"]},
        {"data": [{"question": "Why?"}]},
        SimpleNamespace(to_list=lambda: [{"question": "Why?"}]),
        SimpleNamespace(test_cases=[], goldens=[Case("Why?")]),
        SimpleNamespace(samples=(SimpleNamespace(model_dump=lambda: {"user_input": "Why?"}),)),
        SimpleNamespace(to_pandas=lambda: FRAME),
        FRAME,
        np.array([{"question": "Why?"}]),
        (row for row in [{"question": "Why?"}]),
        [SimpleNamespace(model_dump=lambda: {"input": "Why?"})],
        [Case("Why?")],
    ],
    ids=lambda source: type(source).__name__,
)
def test_a_data_set_may_be_an_object(source: Any) -> None:
    (row,) = read(source)
    assert (asked((row,)), row.file, row.line) == (["Why?"], None, None)


def not_of_pandas(frame: pd.DataFrame) -> Any:
    return SimpleNamespace(columns=(), to_dicts=lambda: frame.to_dict("records"))


@pytest.mark.parametrize("table", [lambda frame: frame, not_of_pandas], ids=["pandas", "another"])
@pytest.mark.parametrize(
    ("name", "cell", "expected"),
    [
        ("contexts", '["a", "b"]', {"retrieved_contexts": ["a", "b"]}),
        ("reference_contexts", "['a', 'b']", {"reference_contexts": ["a", "b"]}),
        ("contexts", "[1] a", {"retrieved_contexts": ["[1] a"]}),
        ("contexts", "a", {"retrieved_contexts": ["a"]}),
        ("contexts", ["[1]", '["b"]'], {"retrieved_contexts": ["[1]", '["b"]']}),
        ("retrieved_context_ids", "[1, 2]", {"retrieved_context_ids": [1, 2]}),
        ("metadata", "{'lang': 'en'}", {"metadata": {"lang": "en"}}),
        ("additional_metadata", '{"lang": "en"}', {"metadata": {"lang": "en"}}),
        ("metadata", "", {}),
        ("metadata", "[{'source': 'a.md'}]", {"metadata": {"metadata": [{"source": "a.md"}]}}),
        ("tools_called", '[{"name": "f"}]', {"metadata": {"tools_called": [{"name": "f"}]}}),
        ("tools_called", "", {}),
        ("history", json.dumps(TURNS), {"metadata": {"messages": TURNS}}),
        ("history", repr(TURNS), {"metadata": {"messages": TURNS}}),
        ("turns", "3", {"metadata": {"turns": "3"}}),
        ("note", '["a"]', {"metadata": {"note": '["a"]'}}),
        ("answer", '["a"]', {"response": '["a"]'}),
        ("answer", "", {"response": ""}),
    ],
)
def test_texts_in_a_frame_are_read_as_cells_of_csv(table: Any, name: str, cell: object, expected: Any) -> None:
    """A frame may have been read from a file; only its empty texts stay what they are."""
    (row,) = read(table(pd.DataFrame({"question": ["Why?"], name: [cell]})))
    assert row.sample == Sample(id=row.id, user_input="Why?", **expected)


@pytest.mark.parametrize("column", ["user_input", "question", "input"])
@pytest.mark.parametrize("write", [json.dumps, repr])
def test_a_question_in_a_table_may_be_a_conversation(
    tmp_path: Path, column: str, write: Callable[[object], str]
) -> None:
    """As JSON or as Python writes it, which Ragas does; other texts in brackets are questions."""
    talk = [{"content": "Is it open?", "type": "human"}, {"content": "It's “shut”.", "type": "ai", "tool_calls": None}]
    asked = [write(talk), "[1] Is it open?", "[]", write(["Is it open?"]), write([{"city": "Oslo"}]), write(talk[1:])]
    frame = pd.DataFrame({column: asked, "reference_topics": write(["doors"])})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for source in (tmp_path / "rows.csv", frame):
        first, *others = (row.sample for row in read_dataset(source, base=tmp_path) if row.sample is not None)
        assert (first.user_input, first.response) == ("Is it open?", "It's “shut”.")
        assert first.metadata == {"messages": talk, "reference_topics": ["doors"]}
        assert [sample.user_input for sample in others] == asked[1:]


@pytest.mark.parametrize(("name", "cell"), [("contexts", '["a"'), ("messages", "Why?"), ("metadata", "lang=en")])
def test_a_broken_text_in_a_frame_is_a_broken_row(name: str, cell: str) -> None:
    rows = read(pd.DataFrame({"question": ["Why?", "How?"], name: [cell, None]}))
    assert str(rows[0].error).startswith(f"field '{name}': row broken-")
    assert asked(rows) == [None, "How?"]


def test_a_frame_has_no_numbers_that_are_none() -> None:
    table = pd.DataFrame(
        {
            "question": ["Why?", None],
            "answer": ["So.", "Thus."],
            "contexts": [np.array(["a", "b"]), ["c"]],
            "retrieved_context_ids": [np.array([1, 2]), None],
            "score": [float("nan"), 0.5],
            "year": pd.array([1850, None], dtype="Int64"),
            "when": [pd.NaT, pd.NaT],
        }
    )
    first, second = (row.sample.to_mapping() for row in read(table) if row.sample)
    assert type(first["retrieved_context_ids"][0]) is int
    wanted = {"user_input": "Why?", "response": "So.", "retrieved_contexts": ["a", "b"], "metadata": {"year": 1850}}
    assert first == {"id": first["id"], "retrieved_context_ids": [1, 2], **wanted}
    wanted = {"response": "Thus.", "retrieved_contexts": ["c"], "metadata": {"score": 0.5}}
    assert second == {"id": second["id"], **wanted}
    assert sample({"question": "Why?", "score": np.float64("nan")}) == Sample(user_input="Why?")


NO_DATA: list[tuple[Any, str]] = [(7, "int"), (None, "NoneType"), (b"rows.jsonl", "bytes"), (Sample(), "Sample")]
NO_DATA += [(Case, "class Case"), (SimpleNamespace(to_pandas=list), "SimpleNamespace")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        *((it, f"a data set is the path of a file or a list of samples or rows, not {kind}") for it, kind in NO_DATA),
        ([], "there are no rows: give at least one"),
        (SimpleNamespace(samples=[]), "there are no rows"),
        ({"question": "Why?"}, "no list of rows"),
    ],
)
def test_what_is_no_data_set_says_what_one_is(source: Any, expected: str) -> None:
    with pytest.raises(DatasetError) as caught:
        read(source)
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (7, "a row is a Sample or a mapping, not int"),
        (Case, "a row is a Sample or a mapping, not type"),
        (SimpleNamespace(model_dump=lambda: 7), "a row is a Sample or a mapping, not SimpleNamespace"),
        ({1: "Why?"}, "the names of fields must be texts"),
        ({}, "has no field to score; give at least one of user_input, response, "),
    ],
)
def test_a_broken_row_of_a_list_harms_no_other(row: Any, expected: str) -> None:
    rows = read([{"question": "Why?"}, row, Sample(user_input="How?")])
    assert asked(rows) == ["Why?", None, "How?"]
    assert str(rows[1].error).startswith(f"row {rows[1].id}: {expected}")


@pytest.mark.parametrize("value", [1.5, True, ["a"], {"a": 1}, 10**5000], ids=lambda value: type(value).__name__)
def test_an_id_is_a_text_or_a_whole_number(value: object) -> None:
    (row,) = read([{"id": value, "question": "Why?"}])
    kind = "one this long" if type(value) is int else type(value).__name__
    assert str(row.error) == f"field 'id': row {row.id}: must be a text or a whole number, not {kind}"


def test_an_id_that_stands_twice_is_an_error_of_the_second_row(tmp_path: Path) -> None:
    rows = read([{"id": "7", "answer": "a"}, {"id": 7, "answer": "b"}, {"id": "7-2", "answer": "c"}])
    assert [(row.id, row.error is None) for row in rows] == [("7", True), ("7-3", False), ("7-2", True)]
    (_, wrong) = read([{"id": "7", "answer": "a"}, {"id": 7, "answer": 4}])
    assert str(wrong.error).startswith("field 'answer': row 7-2: ")
    message = "field 'id': row 7-3: the id '7' is already used in rows[0]: give each row its own, or none"
    assert str(rows[1].error) == message
    (tmp_path / "rows.jsonl").write_text('{"id": "a b", "answer": "1"}\n\n{"id": "a b", "answer": "2", "x": 0}\n')
    (first, second) = read_dataset("rows.jsonl", base=tmp_path)
    said = f"rows.jsonl:3: field 'id': row {second.id}: the id '{first.id}' is already used in line 1: "
    assert said in str(second.error)
    with pytest.raises(DatasetError, match=r"rows\.jsonl:1: row a-b-\w+: where raised ZeroDivisionError: "):
        read_dataset("rows.jsonl", base=tmp_path, where=lambda sample: 1 / 0 > 0)


@pytest.mark.parametrize("value", [None, "", "  "])
def test_without_an_id_it_is_made_of_what_is_asked(value: str | None) -> None:
    rows = [{"id": value, "question": f"Which {number}?"} for number in range(20)]
    made = ids(rows)
    assert (len(set(made)), {bool(re.fullmatch(r"row-[0-9a-f]{10}", one)) for one in made}) == (20, {True})
    shuffled = [7 * number % 20 for number in range(20)]
    others = [{**rows[number], "answer": "So.", "contexts": ["a"]} for number in shuffled]
    assert ids(others) == [made[number] for number in shuffled]
    assert ids([Sample(id=value, user_input="Which 7?")]) == [made[7]]
    # Who wrote an id has it, wherever the row stands.
    assert ids([rows[0], {"id": made[0], "question": "How?"}]) == [f"{made[0]}-2", made[0]]
    # Rows that ask the same are told apart by what they hold, then counted.
    same = [{"question": "Why?", "answer": answer} for answer in ("a", "b", "b")]
    first, second, third = ids(same)
    assert re.fullmatch(r"row-[0-9a-f]{10}-[0-9a-f]{6}", first)
    assert third == f"{second}-2"
    assert ids([same[1], same[0], same[2]]) == [second, first, third]
    assert ids([{"answer": "a"}, {"answer": "b"}]) == ids([{"answer": "a", "id": value}, {"answer": "b"}])


def test_made_ids_are_the_same_in_every_process() -> None:
    """Workers of a distributed run collect the same tests, whatever the metadata holds."""
    program = (
        "from pathlib import Path; from pytest_ragmetrics.datasets import read_dataset\n"
        "class Thing: pass\n"
        "loop = []; loop.append(loop)\n"
        "rows = [{'answer': 'a', 'thing': Thing(), 'set': {'a', 'b', 'c'}, (1,): 2}, {'answer': 'a', 'loop': loop},"
        " {'answer': 'c', 'thing': Thing(), 'set': {'a', 'b', 'c'}}]\n"
        "print([row.id for row in read_dataset(rows, base=Path())])"
    )
    command, seeds = [sys.executable, "-c", program], [{**os.environ, "PYTHONHASHSEED": seed} for seed in "12"]
    runs = {subprocess.run(command, check=True, capture_output=True, env=seed).stdout for seed in seeds}
    assert len(runs) == 1


SIGNS = ["a::b", "[x]", "-x", " ", "..", "a/b\\c", "tab\t", "\x1b[31mred", "\u202egnp", "größe", "日本", "\ud800"]


@pytest.mark.parametrize("written", [*SIGNS, "x" * 65], ids=ascii)
def test_an_id_is_safe_in_the_name_of_a_test(written: str) -> None:
    (row,) = read([{"id": written, "question": "Why?"}])
    assert re.fullmatch(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}", row.id)
    assert row.sample is not None
    assert row.sample.id == (written if written.strip() else row.id)


SOME_ID = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(["a", "a-2", "a b", "1"])


@given(st.lists(SOME_ID, max_size=8))
def test_ids_are_unique_safe_and_stable(written: list[str]) -> None:
    rows = [{"id": one, "answer": str(index)} for index, one in enumerate(written)] or [{"answer": "a"}]
    made = ids(rows)
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,80}", one) for one in made)
    if len(set(written)) == len(written) and not any(safe_id(one) != one for one in written):
        assert ids(rows[::-1]) == made[::-1]


ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "Why?", "lang": "en", "year": 1},
    {"id": "b", "question": 5, "lang": "de"},
    {"id": "c", "question": "Warum?", "lang": "de", "year": None},
    {"id": "d", "question": "Pourquoi ?", "lang": "fr"},
]


@pytest.mark.parametrize(
    ("where", "limit", "expected"),
    [
        (None, 2, ["a", "b"]),
        (None, 9, ["a", "b", "c", "d"]),
        ({"lang": "de"}, None, ["b", "c"]),
        ({"lang": "fr"}, 1, ["b"]),
        ({"lang": ["de", "fr"]}, None, ["b", "c", "d"]),
        ({"lang": {"de", "fr"}, "user_input": "Pourquoi ?"}, None, ["b", "d"]),
        ({"year": None}, None, ["b", "c", "d"]),
        (lambda sample: sample.metadata["lang"] != "de", None, ["a", "b", "d"]),
        (lambda sample: "?" in sample.user_input, 3, ["a", "b", "c"]),
    ],
)
def test_the_first_of_those_wanted_are_taken(where: Any, limit: int | None, expected: list[str]) -> None:
    """Order is kept, and a broken row is always taken: nobody can know whether it is wanted."""
    assert ids(ROWS, where=where, limit=limit) == expected


async def wanted(sample: Sample) -> bool:
    """Return what is always true, unless it is awaited."""
    return False


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"limit": 0}, "limit is 0: give the number of rows to take, at least 1"),
        *(({"limit": limit}, f"limit is {limit!r}: ") for limit in (-1, True, "3")),
        (
            {"where": "lang == 'de'"},
            "where is of type str: give a function of the sample, or a mapping from fields to valu",
        ),
        ({"where": wanted}, "where is of type function: give a function of the sample"),
        ({"where": {"language": "de"}}, "where asks for the field 'language', which no row has"),
        ({"where": {"lang": "it"}}, "where takes no row of 3; lang is 'en', 'de', 'fr'"),
        ({"where": lambda sample: False}, "where takes no row of 3"),
        ({"where": lambda sample: sample.metadata["x"]}, "row a: where raised KeyError: \"'x'\""),
    ],
)
def test_a_selection_that_cannot_be_is_an_error(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(DatasetError) as caught:
        read([row for row in ROWS if row["question"] != 5], **options)
    assert str(caught.value).startswith(expected)
