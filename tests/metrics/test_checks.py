"""Plain facts of a response: texts that it contains, JSON by a schema, and secrets, with other programs as oracles."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pytest_ragmetrics import RagMetricsError, Sample, assert_contains, assert_json, assert_no_secrets, evaluate
from pytest_ragmetrics.metrics import Contains, NoSecrets, ValidJSON
from tests.growth import is_linear

RESPONSE = "Open the valve and wait 2\u00a0minutes; it costs $30 or 12.5 %, and 'don’t' run it."
KEY = "sk-proj-0123456789abcdefghij"


@pytest.mark.parametrize(
    ("text", "response", "found"),
    [
        ("2 minutes", RESPONSE, "2\u00a0minutes"),
        ("OPEN THE VALVE", RESPONSE, "Open the valve"),
        ("don't", RESPONSE, "don’t"),
        ("30", RESPONSE, "30"),
        ("$30", RESPONSE, "30"),
        ("12.5", RESPONSE, "12.5"),
        ("12.5 %", RESPONSE, "12.5"),
        *((number, RESPONSE, None) for number in ("3", "12", "5", "2.5", "0")),
        *(("12", said, None) for said in ("112", "1.12", "-12", "12.5", "1,120", "a12", "12th")),
        *(("12", said, "12") for said in ("12.", "$12", "12€", "12 °C", "(12)", "**12**", "第12章", "12–14")),
        ("cat", "category, Cat5, concat", None),
        ("can", "It can't.", None),
        ("toxic", "non-toxic", None),
        ("C", "C++ and C#", None),
        ("C", "C++ and C.", "C"),
        ("5 MW", "a plant of 5 mW", None),
        ("ＡＢＣ", "abc", "abc"),
        ("well-known", "well\u2013known", "well\u2013known"),
        ("straße", "STRASSE", "STRASSE"),
        ("café", "cafe\u0301", "cafe\u0301"),
        ("cafe", "café", None),
        ("山", "火山です", "山"),
        ("三", "三十", None),
        ("กรุงเทพ", "ไปกรุงเทพมา", "กรุงเทพ"),
        ("서울", "서울에서", "서울"),
        ("שלום", "הוא אמר שלום.", "שלום"),
        ("الحديقة", "ذهب إلى الحديقة.", "الحديقة"),
        ("%", "12 %", "%"),
        ("👍", "Yes 👍", "👍"),
        # Alone once, behind more places inside other words than a search for quotations follows.
        ("12", "112 " * 999 + "12", "12"),
        ("He", "the " * 999 + "he", "he"),
    ],
)
def test_a_text_in_a_response(text: str, response: str, found: str | None) -> None:
    wanted, banned = Contains(all=[text]).score(response=response), Contains(none=[text]).score(response=response)
    assert (wanted.value, banned.value) == (float(found is not None), float(found is None))
    for result in (wanted, banned):
        (verdict,) = result.verdicts
        assert verdict.text == (text if found is None else found)
        place = (verdict.start, verdict.end)
        assert place == (None, None) if found is None else response[slice(*place)] == found


WORDS = st.text(alphabet="abAB1 .", min_size=1, max_size=3).map(str.strip).filter(str.isalnum)


@given(WORDS, st.text(alphabet="abAB12 ,;", max_size=12).map(lambda text: f"x {text} x"))
def test_words_are_those_of_a_regular_expression(text: str, response: str) -> None:
    """Where nothing is folded but case, and no sign stands before a digit; of several places any may be told."""
    response = re.sub(r"[ ,;]+(?=\d)", " a ", response)
    places: list[Any] = [found.span() for found in re.finditer(rf"\b{text}\b", response, re.IGNORECASE)]
    (verdict,) = Contains(all=[text]).score(response=response).verdicts
    assert (verdict.start, verdict.end) in (places or [(None, None)])


def test_the_share_of_conditions() -> None:
    """Those of the metric and of the row together, each once; a list asks for one of its texts."""
    row = {"response": RESPONSE, "must_contain": ["valve", "30", ["3 minutes", "2 minutes"]], "must_not_contain": "run"}
    result = Contains(all=["valve", "valve", "31"], any=["tap", "it costs"], none=["AI"]).score(**row)
    assert result.value == pytest.approx(5 / 7)
    assert result.reason == "5 of 7 texts as they should be"
    told = [(verdict.text, verdict.ok, verdict.reason) for verdict in result.verdicts]
    assert told == [
        ("valve", True, "found"),
        ("31", False, "missing"),
        ("it costs", True, "found"),
        ("30", True, "found"),
        ("2\u00a0minutes", True, 'found, asked for as "2 minutes"'),
        ("AI", True, "not there"),
        ("run", False, "it must not be there"),
    ]
    with pytest.raises(AssertionError) as failure:
        assert_contains("Wait three minutes.", all=[["two minutes", "2 minutes"]], none=["three"])
    assert str(failure.value).splitlines() == [
        "contains 0.00 < 1.00: 2 of 2 texts missing or not allowed",
        '  missing or not allowed: "two minutes or 2 minutes"',
        '    reason: missing; the nearest is "three minutes."',
        '  missing or not allowed: "three" (response[5:10])',
        "    reason: it must not be there",
    ]


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({}, ValueError, r"^contains: must_contain is missing; give the row must_contain or must_not_contain, \[\] wh"),
        ({"must_contain": 5}, TypeError, "^must_contain must be a text or a list of texts, not int$"),
        ({"must_contain": {"a": 1}}, TypeError, "^must_contain must be a text or a list of texts, not dict$"),
        ({"must_contain": ["a", 12]}, TypeError, r"^must_contain\[1\] must be a text or a list .* enough, not int$"),
        ({"must_contain": ["a", ["b", None]]}, TypeError, r"^must_contain\[1\] must be .*, not NoneType$"),
        ({"must_contain": [[]]}, TypeError, r"^must_contain\[0\] must be .*, not an empty list$"),
        ({"must_contain": " "}, ValueError, "^must_contain is blank"),
        ({"must_not_contain": ["a", ["b"]]}, TypeError, r"^must_not_contain\[1\] must be a text, not list$"),
        ({"must_not_contain": [""]}, ValueError, r"^must_not_contain\[0\] is blank"),
    ],
)
def test_conditions_that_are_none(fields: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Contains().score(response="Yes.", **fields)


def test_a_row_without_conditions_is_vacuous() -> None:
    rows: list[dict[str, Any]] = [{"must_contain": []}, {"must_not_contain": [], "must_contain": None}]
    for fields in rows:
        assert Contains().score(response="Yes.", **fields).vacuous
    table = evaluate([{"answer": "a", "must_contain": []}, {"answer": "b"}], ["contains"], progress=False)
    assert "must_contain is missing" in table.rows[1].unscored["contains"]


@pytest.mark.growth
@pytest.mark.parametrize("text", ["lorem ipsum 112 ", "12" * 8, "a " * 8, "山" * 16])
def test_long_responses_are_searched_in_time_that_grows_with_them(text: str) -> None:
    metric = Contains(all=["12", "dolor sit amet", ["x", "y"]], none=["he"])
    assert metric.score(response=text * 62_500).value == 0.25
    assert is_linear(lambda size: metric.score(response=text * size), short=2_000, long=16_000)


class Price(BaseModel):
    price: float
    unit: str


PRICE = {"type": "object", "properties": {"price": {"type": "number"}, "items": {"items": {"type": "string"}}}}
FENCED = 'Here it is:\n\n```json\n{"price": 12}\n```\nAnything else?'


@pytest.mark.parametrize(
    ("response", "schema", "faults"),
    [
        ('{"price": 12}', None, []),
        (" [1, 2]\n", None, []),
        ("12", None, []),
        (FENCED, None, []),
        (FENCED.replace("`", "~"), PRICE, []),
        ("```\r\n[1]\r\n```\r\n", None, []),
        ("```json\n[1]", None, []),
        ('{"price": "12", "items": ["a", 1]}', PRICE, ["$.items[1]", "$.price"]),
        ('{"price": 12}', Price, ["$"]),
        ('{"price": 12}', json.dumps(PRICE), []),
        ("1", False, ["$"]),
        ("1", True, []),
    ],
)
def test_json_by_its_schema(response: str, schema: Any, faults: list[str]) -> None:
    result = ValidJSON(schema=schema).score(response=response)
    assert [verdict.text for verdict in result.verdicts if not verdict.ok] == faults
    assert result.value == float(not faults)
    plain = Price.model_json_schema() if schema is Price else schema
    own = {} if schema is None else {"json_schema": plain}
    # Of the row it takes the place of the metric's, and is as good as the validator says.
    assert ValidJSON(schema={"type": "null"} if own else None).score(response=response, **own).value == result.value


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        ("It costs 12.", "no JSON: Expecting value: line 1 column 1 (char 0)"),
        ('{"price": 12,}', "no JSON: "),
        ('{"price": NaN}', "no JSON: NaN is no value of JSON"),
        ("[" * 100_000, "no JSON: it is nested too deep"),
        ("9" * 5000, "no JSON: Exceeds the limit"),
        (FENCED * 2, "no JSON: there are several fences; give one"),
        ("```a\n" * 200_000, "no JSON: Expecting value"),
    ],
)
def test_what_is_no_json(response: str, fault: str) -> None:
    result = ValidJSON().score(response=response)
    assert (result.value, len(result.verdicts)) == (0.0, 1)
    assert str(result.reason).startswith(fault)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pq"), inner, max_size=2),
    max_leaves=6,
)
SCHEMAS: list[Any] = [
    {"type": ["object", "array"]},
    {"properties": {"p": {"type": "integer", "minimum": 0}}, "required": ["p"]},
    {"items": {"enum": [0, "a", None]}, "maxItems": 2},
    {"$defs": {"t": {"type": "string"}}, "additionalProperties": {"$ref": "#/$defs/t"}},
]


@given(VALUES, st.sampled_from(SCHEMAS))
def test_the_score_is_that_of_the_validator(value: Any, schema: Any) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    result = ValidJSON(schema=schema).score(response=json.dumps(value, indent=1))
    assert (result == 1.0) is validator.is_valid(value)
    faults = sorted((error.json_path, error.message) for error in validator.iter_errors(value))
    assert [(verdict.text, verdict.reason) for verdict in result.verdicts if not verdict.ok] == faults


def test_a_schema_that_is_none() -> None:
    for schema, message in (
        ({"type": "numeral"}, "^valid_json: the schema is invalid: 'numeral' is not valid"),
        ({"$ref": "https://example.com/price.json"}, "refers to 'https://example.com/price.json', which is not in it"),
        ({"$ref": "#/$defs/price"}, "which is not in it"),
    ):
        with pytest.raises(ValueError, match=message):
            ValidJSON(schema=schema).score(response="1")
    with pytest.raises(TypeError, match=r"^json_schema must be a JSON schema or a model of pydantic, not int$"):
        ValidJSON().score(response="1", json_schema=5)


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema.validators", None)
    assert assert_json("[1]") == 1.0
    with pytest.raises(RagMetricsError, match=r'needs jsonschema: pip install "pytest-ragmetrics\[json\]"$'):
        assert_json("[1]", schema={})


def test_many_faults_are_cut_short() -> None:
    response = json.dumps([{"text": "a" * 9999}] * 5000)
    result = ValidJSON(schema={"items": {"type": "null"}}).score(response=response)
    assert (len(result.verdicts), max(len(str(it.reason)) for it in result.verdicts) <= 300) == (100, True)


def test_values_of_a_response_are_json() -> None:
    value: Any = {"city": "Málaga", "lines": [1, 2.5, None]}
    assert ValidJSON(schema={"required": ["city"]}).score(response=value) == 1.0
    assert Sample(response=value).response == '{"city": "Málaga", "lines": [1, 2.5, null]}'


HOSTILE = ["a" * 1_000_000, *(text * 20_000 for text in ("sk-", "eyJ-", "hf_", "Bearer ", "-----BEGIN A"))]
SECRETS = {
    "an API key": KEY,
    "a GitHub token": "ghp_" + "a1" * 18,
    "an AWS key": "AKIA" + "A1" * 8,
    "a private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END",
    "a JSON web token": "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.dozjgNryP4J3jVmN",
    "the value of OPENAI_API_KEY": "my-gateway-has-keys-of-its-own",
}


def test_secrets_are_found_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRETS["the value of OPENAI_API_KEY"])
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    response = "Keys:\n" + "\n".join(f"and {secret}." for secret in SECRETS.values())
    result = NoSecrets().score(response=response)
    assert result == 0.0
    for verdict, (kind, secret) in zip(result.verdicts, SECRETS.items(), strict=True):
        at = response.index(secret)
        line = response.count("\n", 0, at) + 1
        said = f"{kind} of {len(secret)} characters at [{at}:{at + len(secret)}], in line {line}"
        assert (verdict.text, verdict.reason, verdict.start) == (f"{secret[:6]}...", said, None)
    with pytest.raises(AssertionError) as failure:
        assert_no_secrets(response)
    shown = f"{failure.value}{result!r}{result.verdicts}"
    assert not [secret for secret in SECRETS.values() if secret[7:] in shown]
    for plain in ("a risk-based, task-oriented-and-well-tested-approach", "sk-", "Bearer of news", *HOSTILE):
        assert NoSecrets().score(response=plain) == 1.0
