"""The one JSON object of a reply is found, and nothing is guessed where there is none or more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.judges.schema import InvalidAnswer, extract_object

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
THOUGHTS = [
    *(("<think>", "</think>"), ("<thinking>", "</thinking>"), ("\n<reasoning>", "</reasoning>")),
    *(("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷")),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|channel|>analysis<|message|>", "<|channel|>final <|constrain|>json<|message|>"),
]
FOUND = '{"claims": ["A } in a \\"text\\"", "```"]}'


@pytest.mark.parametrize(
    "reply",
    [
        *(FOUND, f"\n {FOUND}\n", f"```json\n{FOUND}\n```", f"Sure {{as you asked}}: {FOUND}"),
        *(f"{FOUND}\n{FOUND}", f"\ufeff{FOUND}"),
        f"Here is the answer:\n\n```\n{FOUND}\n```\nTell me if you need more.",
        *(f'{opening}Perhaps {{"claims": []}}, or not.{closing}\n{FOUND}' for opening, closing in THOUGHTS),
    ],
)
def test_the_object_is_found_in_what_surrounds_it(reply: str) -> None:
    assert extract_object(reply)[0] == FOUND


@pytest.mark.parametrize(
    "reply",
    [
        *("", "  ", "I cannot judge this.", "[1, 2]", '"yes"'),
        *('{"claims": [', "{'claims': []}", '{"claims": NaN}', "{}}{{ {"[3:], '{"verdict": "no", "verdict": "yes"}'),
    ],
)
def test_a_reply_without_an_object_is_refused(reply: str) -> None:
    with pytest.raises(InvalidAnswer, match="is not a JSON object"):
        extract_object(reply)


@pytest.mark.parametrize("between", [", so: ", "</think>", "</reasoning>\n", "[/THINK]", "<|channel|>final<|message|>"])
def test_a_reply_with_two_objects_is_refused(between: str) -> None:
    """One of them may be quoted from the text under test, a mark before it too, so neither is taken."""
    with pytest.raises(InvalidAnswer, match="several JSON objects"):
        extract_object(f'The text says {{"claims": []}}{between}{{"claims": ["It does."]}}')


@pytest.mark.parametrize(
    "text", ['{"a":' * 200_000 + "1" + "}" * 200_000, '{"a":' * 20000, "{" * 200_000, '{"n": ' + "9" * 6000 + "}"]
)
def test_a_reply_made_to_exhaust_is_refused(text: str) -> None:
    with pytest.raises(InvalidAnswer):
        extract_object(text)


@given(st.dictionaries(TEXT, TEXT | st.integers() | st.lists(st.booleans())))
def test_any_object_survives(value: dict[str, Any]) -> None:
    assert extract_object(f"My answer is: {json.dumps(value, ensure_ascii=False)} .")[1] == value
