"""The keys of the cache: what determines an answer changes them, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.cache.entry import canonical, embedding_row, key_of, request_row
from pytest_ragmetrics.judges.transports.values import ChatMessage, Request

REQUEST = Request(
    task="list_claims",
    kind="openai",
    model="judge-1",
    messages=(ChatMessage(role="system", content="Be exact."), ChatMessage(role="user", content="Ponds freeze.")),
    schema={"type": "object", "properties": {"claims": {"type": "array"}}},
    parameters={"temperature": 0},
)

# The default alphabet of hypothesis takes a second to compute.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(TEXT, children, max_size=3),
    max_leaves=5,
)


def written_differently(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({name: written_differently(value[name]) for name in reversed(value)})
    if isinstance(value, list):
        return tuple(written_differently(item) for item in value)
    return value


@given(PLAIN, PLAIN)
def test_a_key_depends_on_the_value_alone(value: Any, other: Any) -> None:
    assert (canonical(written_differently(value)), json.loads(canonical(value))) == (canonical(value), value)
    assert (key_of({"a": value}) == key_of({"a": other})) == (canonical(value) == canonical(other))


@pytest.mark.parametrize(
    "change",
    [
        *({"task": "verify_claims"}, {"kind": "anthropic"}, {"model": "judge-2"}, {"vote": 1}),
        *({"schema": {"type": "object"}}, {"parameters": {"temperature": 0.5}}, {"parameters": {}}),
        {"messages": (REQUEST.messages[0], ChatMessage(role="user", content="Ponds freeze!"))},
        {"messages": REQUEST.messages[::-1]},
        {"messages": (ChatMessage(role="user", content="Be exact."), REQUEST.messages[1])},
    ],
    ids="-".join,
)
def test_every_part_of_a_request_changes_its_key(change: Mapping[str, Any]) -> None:
    assert key_of(request_row(replace(REQUEST, **change))) != key_of(request_row(REQUEST))


def test_what_a_key_depends_on() -> None:
    row = request_row(REQUEST)
    assert key_of(request_row(replace(REQUEST, parameters={"temperature": 0.0}))) == key_of(row)
    assert canonical({"n": True}) != canonical({"n": 1})
    assert len({key_of(row), key_of(row, salt="a"), key_of(row, salt="b")}) == 3
    assert len(key_of({"text": "\ud800"})) == 64


def test_the_key_is_that_of_the_schema_as_it_is_now() -> None:
    schema: Any = json.loads(json.dumps(REQUEST.schema))
    request = replace(REQUEST, schema=schema)
    assert key_of(request_row(request)) == key_of(request_row(REQUEST))
    schema["properties"]["claims"]["type"] = "string"
    changed = key_of(request_row(request))
    assert changed == key_of(request_row(replace(REQUEST, schema=json.loads(json.dumps(schema)))))
    assert changed != key_of(request_row(REQUEST))
    values = [1, True, "1", *range(2, 100)]
    assert len({key_of(request_row(replace(REQUEST, schema={"enum": [value]}))) for value in values}) == len(values)


def test_keys_stay_the_same_from_release_to_release() -> None:
    """A change here makes everybody pay again and every cassette miss."""
    assert key_of(request_row(REQUEST)) == "33dae90db2c99672fd3db0482f2cbf2cd7c89109e9ed4146b8cadd81da41fe9f"
    row = embedding_row(kind="openai", model="vectors-1", text="Ponds freeze.")
    assert key_of(row) == "6d1e5af55ad95af4ef3ba1b397bdc12828c200d857b1bb1f0acfba721dea5f7f"


def test_everything_that_determines_a_vector_changes_its_key() -> None:
    given_: dict[str, Any] = {"kind": "openai", "model": "m", "text": "t", "dimensions": 8}
    rows = [given_, *({**given_, name: other} for name, other in zip(given_, ("k", "n", "u", 9), strict=True))]
    assert len({key_of(embedding_row(**row)) for row in rows}) == 5


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), {1, 2}, b"bytes", object()])
def test_a_value_that_is_not_json_is_refused(value: object) -> None:
    error = ValueError if isinstance(value, float) else TypeError
    with pytest.raises(error, match=r"parameters\.stop: .* is not JSON"):
        request_row(replace(REQUEST, parameters={"stop": value}))


def test_a_field_must_be_named_by_a_text() -> None:
    with pytest.raises(TypeError, match="must be a str, not int"):
        key_of({"schema": {1: "x"}})
