"""Samples take what other tools and libraries call the same things."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from datetime import date
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_ragmetrics import Sample
from pytest_ragmetrics.core.sample import as_contexts


class Node:
    """A document that hands out its text by a method, and has a field of another type by the same name."""

    text = 7

    def get_content(self) -> str:
        return "from a node"


class Markup(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("document", "text"),
    [
        *(("a string", "a string"), (Markup("safe"), "safe")),
        (SimpleNamespace(page_content="from a page", metadata={}), "from a page"),
        (SimpleNamespace(content="from content", page_content=None), "from content"),
        *((SimpleNamespace(text="from text"), "from text"), (Node(), "from a node")),
    ],
)
def test_documents_of_other_libraries_are_texts(document: object, text: str) -> None:
    assert as_contexts(document) == (text,)
    assert as_contexts([document, "next"]) == (text, "next")
    assert type(as_contexts(document)[0]) is str


NESTED: dict[str, Any] = {}
NESTED["itself"] = NESTED


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"price": 12, "unit": "€"}, '{"price": 12, "unit": "€"}'),
        ({}, "{}"),
        ([1, None, "a"], '[1, null, "a"]'),
        ([{"answer": "a"}], '[{"answer": "a"}]'),
        ({"answer": "So.", "score": 1}, '{"answer": "So.", "score": 1}'),
        (MappingProxyType({"when": date(2026, 3, 1)}), '{"when": "2026-03-01"}'),
        ({"vector": np.array([1, 2]), "share": np.float64(0.5)}, '{"vector": [1, 2], "share": 0.5}'),
    ],
)
def test_a_response_of_names_and_values_is_json(response: Any, text: str) -> None:
    assert Sample(response=response).response == text
    sample = Sample.from_mapping({"answer": response})
    assert replace(sample, id="again").response == sample.response == text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"retrieved_contexts": 5}, "retrieved_contexts must be a text.*not int"),
        ({"retrieved_contexts": b"bytes"}, "retrieved_contexts must be a text.*not bytes"),
        ({"reference_contexts": {"a": 1}}, "reference_contexts must be a text.*not dict"),
        ({"retrieved_contexts": ["fine", None]}, r"retrieved_contexts\[1\] is None.*page_content"),
        ({"reference_contexts": ["fine", 3]}, r"reference_contexts\[1\] is of type int.*page_content"),
        ({"retrieved_contexts": ["a", SimpleNamespace(text=None)]}, r"retrieved_contexts\[1\] is .*SimpleNamespace.*p"),
        *(({name: 5}, f"{name} must be a str, not int") for name in ("user_input", "response", "reference", "id")),
        ({"response": ["Moths fly."]}, "response must be a str, not list; a list is for the contexts"),
        ({"response": []}, "response must be a str, not list"),
        ({"response": [{"page_content": "Moths."}]}, "response must be a str, not list"),
        ({"response": {"question": "Why?", "answer": "So."}}, "response must be a str, not dict.* takes a whole row"),
        ({"response": {"response": "So."}}, "response must be a str, not dict"),
        ({"response": {"role": "assistant", "content": "So."}}, "response must be a str, not dict"),
        ({"response": [{"type": "ai", "content": "So."}]}, "response must be a str, not list"),
        ({"response": [SimpleNamespace(a=1)]}, "response must be a str, not list"),
        ({"response": {"price": float("nan")}}, "response is no value of JSON: "),
        ({"response": {("a", "b"): 1}}, "response is no value of JSON: keys must be str"),
        ({"response": NESTED}, "response is no value of JSON: "),
        ({"reference": {"price": 12}}, "reference must be a str, not dict"),
        ({"retrieved_context_ids": "abc"}, "retrieved_context_ids must be a list of ids, not str"),
        ({"reference_context_ids": [1.5]}, r"reference_context_ids\[0\] is of type float"),
        ({"metadata": []}, "metadata must be a mapping, not list"),
        # A field that is not known is named with the one it stands for.
        ({"contexts": ["a"]}, "Sample takes no contexts=; did you mean retrieved_contexts="),
        ({"answr": "a"}, "Sample takes no answr=; did you mean response="),
        ({"response": "a", "Question": "b"}, "Sample takes no Question=; did you mean user_input="),
        ({"zzz": 1}, "Sample takes no zzz=; it takes user_input, response, .*; put others into metadata="),
    ],
)
def test_fields_that_make_no_sample_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=f"^{said}"):
        Sample(**given)


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        *(({name: "x"}, "user_input", "x") for name in ("question", "input")),
        *(({name: "x"}, "response", "x") for name in ("answer", "actual_output")),
        *(({name: "x"}, "reference", "x") for name in ("ground_truth", "expected_output")),
        *(({name: "x"}, "retrieved_contexts", ("x",)) for name in ("contexts", "context", "retrieval_context")),
        ({"relevant_contexts": ["x"]}, "reference_contexts", ("x",)),
        ({"contexts": {"page_content": "x"}}, "retrieved_contexts", ("x",)),
        ({"contexts": [{"text": "x"}, {"content": "y", "score": 0.5}, "z"]}, "retrieved_contexts", ("x", "y", "z")),
        ({"reference_contexts": iter(["a", "b"])}, "reference_contexts", ("a", "b")),
        # A field's own name takes precedence over its alias, and nothing of the row is lost.
        ({"response": "ours", "answer": "theirs"}, "response", "ours"),
        ({"response": "ours", "answer": "theirs"}, "metadata", {"answer": "theirs"}),
        ({"topic": "pumps", "metadata": {"tier": 1}}, "metadata", {"topic": "pumps", "tier": 1}),
        # As DeepEval writes it.
        ({"retrieval_context": ["a"], "context": ["b"]}, "reference_contexts", ("b",)),
        ({"retrieval_context": ["a"], "context": ["b"]}, "retrieved_contexts", ("a",)),
    ],
)
def test_the_names_of_other_tools_are_understood(row: dict[str, Any], field: str, value: object) -> None:
    before = dict(row)
    assert getattr(Sample.from_mapping(row), field) == value
    assert row == before


def test_a_sample_is_a_frozen_value() -> None:
    one, two = (Sample(response="r", retrieved_contexts=["c"], metadata={"k": []}) for _ in range(2))
    assert (one, hash(one)) == (two, hash(two))
    with pytest.raises(FrozenInstanceError):
        one.response = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Sample("positional")  # type: ignore[call-arg]
    assert one.to_mapping() == {"response": "r", "retrieved_contexts": ["c"], "metadata": {"k": []}}
    assert Sample.from_mapping(one.to_mapping()) == one
    # Ids may be strings or integers, those of numpy too.
    assert Sample(retrieved_context_ids=["a", 2]).retrieved_context_ids == ("a", 2)
    given: dict[str, Any] = {"retrieved_context_ids": np.array([7, 8]), "reference_context_ids": np.array(["a"])}
    of_numpy = Sample(**given).to_mapping()
    assert of_numpy == {"retrieved_context_ids": [7, 8], "reference_context_ids": ["a"]}
    assert [type(value) for values in of_numpy.values() for value in values] == [int, int, str]


class Coming:
    def __await__(self) -> Iterator[None]:
        return iter(())


TEXTS = "its texts are sample.user_input and sample.response"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([{"response": "So."}], "not list; give one row, or score a list of them by evaluate"),
        *(("So.", "not str$"), (None, "not NoneType$"), (Coming(), "not Coming; await it first")),
    ],
)
def test_a_row_is_a_mapping(row: Any, said: str) -> None:
    with pytest.raises(TypeError, match=f"^a row is a mapping of fields, {said}"):
        Sample.from_mapping(row)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        *((name, TEXTS) for name in ("lower", "split", "strip", "encode", "colour")),
        ("question", "did you mean sample.user_input?"),
        *((name, "did you mean sample.response?") for name in ("answer", "respnse")),
        ("contexts", "did you mean sample.retrieved_contexts?"),
    ],
)
def test_an_attribute_that_a_sample_lacks_says_where_its_texts_are(name: str, hint: str) -> None:
    sample = Sample(user_input="Why?", metadata={"lang": "en"})
    with pytest.raises(AttributeError) as raised:
        getattr(sample, name)
    assert str(raised.value) == f"a Sample has no attribute {name!r}; {hint}"
    assert not hasattr(sample, name)
    assert copy.deepcopy(sample) == copy.copy(sample) == pickle.loads(pickle.dumps(sample)) == sample
