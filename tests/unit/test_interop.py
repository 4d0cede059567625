"""What applications return, read by its shape; the real libraries are in tests/extras/check_interop.py."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ragmetrics import Sample, sample_from


@dataclass
class Case:
    input: str
    actual_output: str
    retrieval_context: list[str]


def document(text: str, given: str | int | None = None) -> Any:
    return SimpleNamespace(page_content=text, id=given)


IVY_ALONE = document("Ivy climbs.")
IVY = document("Ivy climbs.", "d1")
ASKED = Sample(user_input="What climbs?", response="Ivy.", retrieved_contexts=["Ivy climbs."])


@pytest.mark.parametrize(
    "result",
    [
        ASKED,
        {"query": "What climbs?", "result": "Ivy.", "source_documents": [document("Ivy climbs.")]},
        {"input": "What climbs?", "context": [document("Ivy climbs.")], "answer": SimpleNamespace(text="Ivy.")},
        {"question": "What climbs?", "documents": "Ivy climbs.", "generation": "Ivy."},
        {"user_input": "What climbs?", "documents": ["Ivy climbs."], "replies": ["Ivy.", "Moss."]},
        {"retriever": {"documents": ["Moss."]}, "ranker": {"documents": [IVY_ALONE]}, "llm": {"replies": ["Ivy."]}},
        {"builder": {"answers": [SimpleNamespace(data="Ivy.", query="What climbs?", documents=["Ivy climbs."])]}},
        SimpleNamespace(data="Ivy.", query=None, documents=["Ivy climbs."]),
        SimpleNamespace(response="Ivy.", source_nodes=["Ivy climbs."]),
        Case("What climbs?", "Ivy.", ["Ivy climbs."]),
        SimpleNamespace(model_dump=lambda: {"response": "Ivy.", "contexts": "Ivy climbs."}),
    ],
)
def test_the_shapes_of_results(result: Any) -> None:
    assert sample_from(result, question="What climbs?") == ASKED


@pytest.mark.parametrize(
    "result",
    [
        "Ivy.",
        SimpleNamespace(role="assistant", content="Ivy."),
        SimpleNamespace(type="ai", content=[{"type": "text", "text": "Ivy."}]),
        SimpleNamespace(message=SimpleNamespace(role="assistant", text="Ivy.")),
        SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(role="assistant", content="Ivy."))]),
    ],
)
def test_a_text_or_a_message_is_a_response(result: Any) -> None:
    assert sample_from(result) == Sample(response="Ivy.")


def test_a_conversation_ends_with_its_answer() -> None:
    messages = [
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "What climbs?"},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "look", "args": {}}]},
        {"role": "assistant", "content": "Ivy."},
    ]
    sample = sample_from({"messages": messages})
    assert (sample.user_input, sample.response) == ("What climbs?", "Ivy.")
    assert sample.metadata["messages"] == messages
    assert sample_from({"messages": [], "response": "Moss."}).response == "Moss."
    assert sample_from({"messages": messages[:1]}).response is None


@pytest.mark.parametrize(
    ("documents", "ids"),
    [
        ([IVY, document("Moss.", "d2")], ("d1", "d2")),
        ([SimpleNamespace(text="Ivy.", node_id="n1")], ("n1",)),
        ([document("Ivy.", 0), document("Moss.", 7)], (0, 7)),
        ([document("Ivy.", ""), document("Moss.", 7)], None),
        ([IVY, document("Moss.")], None),
        (["Ivy."], None),
        ("Ivy.", None),
        ([], None),
    ],
)
def test_ids_of_documents_are_kept_where_all_have_one(documents: Any, ids: tuple[str, ...] | None) -> None:
    assert sample_from({"answer": "Ivy.", "contexts": documents}).retrieved_context_ids == ids
    given = sample_from({"answer": "Ivy.", "contexts": documents, "retrieved_context_ids": [7]})
    assert given.retrieved_context_ids == (7,)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"response": {"price": 12}}, '{"price": 12}'),
        ({"response": {"price": 12}, "contexts": ["It costs 12."]}, '{"price": 12}'),
        ({"response": {"answer": "Ivy.", "score": 1}}, '{"answer": "Ivy.", "score": 1}'),
        ({"answer": {"items": [{"id": 1}]}, "contexts": ["a"]}, '{"items": [{"id": 1}]}'),
        ({"response": [{"price": 12}, {"price": 13}]}, '[{"price": 12}, {"price": 13}]'),
        ({"response": {"role": "assistant", "content": "Ivy."}}, "Ivy."),
        ({"response": {"replies": ["Ivy."]}}, "Ivy."),
        ({"llm": {"answer": "Ivy."}}, "Ivy."),
        ({"response": ["Ivy.", "Moss."]}, "Ivy."),
    ],
)
def test_a_response_of_names_and_values_is_json(result: Any, text: str) -> None:
    """What components of a pipeline name their outputs, messages and the first of several texts are read as ever."""
    assert sample_from(result).response == text


def test_the_names_of_a_sample_win() -> None:
    sample = sample_from({"response": "Ivy.", "result": 3, "id": "q1", "output": None})
    assert (sample.response, sample.metadata, sample.id) == ("Ivy.", {"result": 3}, "q1")
    assert sample_from({"response": "Ivy.", "id": 7}).id == "7"
    assert sample_from(ASKED, question="Why?") == ASKED
    answer = SimpleNamespace(data="Ivy.", query=None, documents=["Ivy climbs."])
    assert sample_from({"builder": {"query": "What climbs?", "answers": [answer]}}) == ASKED


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "NoneType is no result of an application: give a text"),
        ({1: "Ivy."}, "the names in a mapping must be texts, not 1"),
        (b"Ivy.", "bytes is no result"),
        (["Ivy."], "list is no result"),
        (Case, "type is no result"),
        (SimpleNamespace(role="user", content="What climbs?"), "SimpleNamespace is no result"),
        (SimpleNamespace(choices=[]), "SimpleNamespace is no result"),
        (SimpleNamespace(model_dump=lambda: [1]), "SimpleNamespace is no result"),
        ({}, "has no field to score"),
        ({"a": {"b": 1}}, "has no field to score, only 'b'"),
        ({"llm": {"answers": []}}, "has no field to score"),
        ({"answer": 4}, "response must be a text or a message, not int"),
        ({"replies": []}, "response must be a text or a message, not list"),
        ({"answer": "Ivy.", "context": [4]}, r"retrieved_contexts\[0\] is of type int"),
    ],
)
def test_what_is_no_result(result: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        sample_from(result)
