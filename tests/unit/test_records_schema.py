"""The published schema, the types and the reader of documents agree."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.core.codec import dump, load
from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.core.result import MetricResult, VerdictKind
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges.context import Scoring
from pytest_ragmetrics.plugin.recorder import ATTRIBUTE, from_json
from pytest_ragmetrics.runs.records import (
    Document,
    DocumentError,
    RegressionRecord,
    document_schema,
    read_document,
    record_of,
    render_json,
)
from tests.documents import crowd, document, gate, hostile, record, row, verdict
from tests.growth import is_linear
from tests.showcase import showcase

# The default alphabet of hypothesis takes a second to compute.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
Break = Callable[[dict[str, Any]], object]


@cache
def schema() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(document_schema())
    return jsonschema.Draft202012Validator(document_schema())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.json"


def first_record(data: dict[str, Any]) -> Any:
    return data["tests"][0]["records"][0]


def of_each_kind() -> Document:
    verdicts = [verdict("x", ok=kind != "not found", kind=kind) for kind in get_args(VerdictKind)]
    return document(row("test_kinds", record(verdicts=verdicts)))


@pytest.mark.parametrize(
    ("response", "shown"),
    [("The mill turns.", None), ("Die Mühle dreht sich.", None), ("\ud800", "\ufffd"), (f"sk-{'0a' * 9}", "***")],
)
def test_records_share_a_sample_that_is_shown_as_it_is(response: str, shown: str | None) -> None:
    for sample in (Sample(response="".join(response), retrieved_contexts=["Nine".title()]) for _ in range(2)):
        result = MetricResult(0.5, metric="m", judge="".join(response))
        found = record_of(Scoring(metric="m", sample=sample, outcome=result))
        assert (found.sample is sample) == (shown is None)
        assert found.sample.response == found.judge == (shown or response)
        assert found.sample.retrieved_contexts is sample.retrieved_contexts


@pytest.mark.parametrize("make", [showcase, hostile, document, of_each_kind, lambda: crowd(3)])
def test_documents_fit_the_schema_and_come_back(make: Callable[[], Document], file: Path) -> None:
    whole = make()
    text = render_json(whole)
    schema().validate(json.loads(text))
    assert text.isascii()
    assert len(text.splitlines()) == (len(whole.tests) + 4 if whole.tests else 3)
    # With a byte order mark, as editors of Windows write it.
    file.write_text(text, encoding="utf-8-sig")
    # Lone surrogates have no JSON text.
    assert read_document(file) == load(Document, dump(whole))


BREAKS: list[tuple[Break, str]] = [
    (lambda d: d.pop("tests"), "the document lacks tests"),
    (lambda d: d.update(version=2), "it is of version 2, and this release reads version 1: write it anew"),
    (lambda d: d.update(version="1"), "not the result of a run: it has no version"),
    (lambda d: d.update(version=True), "not the result of a run: it has no version"),
    (lambda d: d.update(tests={}), "tests must be a valid array, not {}"),
    (lambda d: d["run"].pop("settings"), "run lacks settings"),
    (lambda d: d["run"]["settings"].update(judge=["a"]), r'run.settings.judge must be .* or .*, not \["a"\]'),
    (lambda d: first_record(d).pop("metric"), r"tests\[0\].records\[0\] lacks metric"),
    (lambda d: first_record(d).update(score="high"), r"records\[0\].score must be a valid number, not \"high\""),
    (
        lambda d: first_record(d)["sample"].update(retrieved_contexts="one"),
        r"_contexts must be a valid array, not \"one",
    ),
    (lambda d: first_record(d)["sample"].update(retrieved_contexts=["", 2]), r"_contexts\[1\] must be a valid string"),
    (lambda d: first_record(d)["sample"].update(metadata=["a"]), r"sample.metadata must be an object, not \[\"a\"\]"),
    (lambda d: first_record(d).update(score=True), r"records\[0\].score must be a valid number, not true"),
    (lambda d: first_record(d).update(outcome="fine"), r"outcome must be 'passed', 'failed', 'unscored' or 'measured'"),
    (lambda d: first_record(d)["usage"].update(calls=1.5), r"usage.calls must be a valid integer, not 1.5"),
    (lambda d: d["tests"][0].update(gate=[]), r"tests\[0\].gate must be an object, not \[\]"),
    (lambda d: first_record(d).update(threshold={"operator": ">"}), r"threshold lacks bound"),
    (lambda d: first_record(d).update(score=10**400), r"score must be a .* number, not 1000+\.\.\."),
    (lambda d: first_record(d).update(score=math.inf), r"records\[0\].score must be a finite number, not Infinity"),
]


@pytest.mark.parametrize(("break_it", "said"), BREAKS)
def test_a_broken_document_is_refused_with_the_place(file: Path, break_it: Break, said: str) -> None:
    data: dict[str, Any] = json.loads(render_json(showcase()))
    break_it(data)
    file.write_text(json.dumps(data).replace("Infinity", "1e999"), encoding="utf-8")
    with pytest.raises(DocumentError, match=f"^{file}: .*{said}"):
        read_document(file)
    if "1000" not in said and "finite" not in said:  # a schema allows what is too large for a float
        with pytest.raises(jsonschema.ValidationError):
            schema().validate(data)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((b"", "not JSON: Expecting value: line 1 column 1"), (b"{", "not JSON: ")),
        *((b"\xff\xfe", "not JSON: .*decode"), (b"[]", "not the result of a run")),
        (b"null", "not the result of a run"),
        (b'{"version": 1, "run": NaN}', "not JSON: NaN is not a JSON number"),
        *((b"[" * 100_000, "not JSON: "), (b"<<<<<<< ours\n{}", "not JSON: ")),
    ],
)
def test_what_is_no_document_is_refused(file: Path, content: bytes, said: str) -> None:
    file.write_bytes(content)
    with pytest.raises(DocumentError, match=f"^{file}: {said}.*give a file that --rag-json wrote"):
        read_document(file)


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    for path, said in ((file, "No such file or directory"), (file.parent, "Is a directory")):
        with pytest.raises(DocumentError, match=f"^{path}: {said}"):
            read_document(path)


@given(st.recursive(st.none() | st.booleans() | st.floats() | TEXT, st.lists, max_leaves=4))
def test_no_value_in_any_place_is_worse_than_an_error(value: object) -> None:
    for key in ("metric", "threshold", "usage", "verdicts", "sample"):
        data: dict[str, Any] = json.loads(render_json(document(row("test_a", record()))))
        first_record(data)[key] = value
        fits = schema().is_valid(data)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "run.json")
            file.write_text(json.dumps(data), encoding="utf-8")
            try:
                read_document(file)
            except DocumentError:
                assert not fits or _has_no_number(value)
            else:
                assert fits


def _has_no_number(value: object) -> bool:
    """Tell whether a value holds what JSON has no word for, wherever in it."""
    if isinstance(value, list):
        return any(map(_has_no_number, value))
    return isinstance(value, float) and not math.isfinite(value)


@pytest.mark.growth
def test_writing_and_reading_grow_with_the_size(file: Path) -> None:
    def work(size: int) -> None:
        file.write_text(render_json(crowd(size, contexts=1, length=100)), encoding="utf-8")
        read_document(file)

    assert is_linear(work, short=100, long=1000)


def test_a_file_of_an_earlier_release_is_read() -> None:
    """What version 0.1.0 wrote before records were values gives the same facts, and is written with the same keys."""
    file = Path(__file__).parents[1] / "data" / "run_version_1.json"
    written = json.loads(file.read_text("utf-8"))
    found = dump(read_document(file))
    unknown = {name: found["run"].pop(name) for name in found["run"].keys() - written["run"].keys()}
    assert {"project", "branch", "commit", "ci", "repository", "judging"} < unknown.keys()
    assert not any(unknown.values())
    for test in found["tests"]:
        assert test.pop("calibration") == []
        for scored in test["records"]:
            assert (scored.pop("noun"), scored.pop("complaint")) == ("verdict", "not ok")
            assert (scored.pop("disagreements"), scored.pop("asserted")) == ([], True)
            assert (scored.pop("used"), scored.pop("scale")) == (True, [0.0, 1.0])
            assert (scored.pop("rule"), scored.pop("blame"), scored.pop("unit")) == (None, None, "")
            tokens = ("cached_prompt_tokens", "cache_write_tokens", "embedding_tokens")
            assert [scored["usage"].pop(name) for name in tokens] == [0, 0, 0]
            assert {exchange.pop("judge") for exchange in scored["exchanges"]} <= {None}
            assert {verdict.pop(name) for verdict in scored["verdicts"] for name in ("kind", "turn")} <= {None}
            assert {piece.pop("turn") for verdict in scored["verdicts"] for piece in verdict["evidence"]} <= {None}
    assert found == written


def test_fields_that_are_not_known_are_read_over(file: Path) -> None:
    """So are those of a later release; further answers of a row, and what these made of a drop, were once there."""
    dropped = RegressionRecord(alpha=0.05, before=1.0, after=0.5, changed=6, worse=6)
    kept = document(row("test_a", record(), gate=replace(gate(), regression=dropped)))
    data = dump(kept)
    (test,) = data["tests"]
    test["again"] = [*test["records"]] * 2
    test["records"][0]["mood"] = "good"
    made = {"answers": 2, "rows": 6, "confirmed": 6, "first_drop": 1.0, "drop": 0.5, "p": 0.1, "adjusted_p": 0.1}
    test["gate"]["regression"] |= {"confirm": 2, "confirmation": made | {"reason": None}}
    file.write_text(json.dumps(data), encoding="utf-8")
    assert read_document(file) == kept


def test_records_of_a_worker_that_cannot_be_read_are_named_and_left_out() -> None:
    test = dump(document(row("test_a", record(verdicts=[verdict("x", ok=False)]))).tests[0])
    test["records"][0]["verdicts"][0]["text"] = None
    data = {"nodeid": "t.py::test_a", ATTRIBUTE: {"records": test["records"]}}
    with pytest.warns(pytest.PytestWarning, match=r"^t.py::test_a: records\[0\].verdicts\[0\].text must be a valid"):
        from_json(data)
    assert ATTRIBUTE not in data


def test_names_in_metadata_are_redacted_and_keys_masked() -> None:
    secret = "sk-proj-" + "a1B2" * 8
    metadata = {"Mrs Meadow": {"Mr Meadow": 1}, "Dr Meadow": ["Mrs Meadow"], secret: secret}
    hidden = re.compile(r"\w+ Meadow|response|metadata")
    redacted = dump(Sample(response="Meadow", metadata=metadata), text=lambda text: masked(hidden.sub("X", text)))
    assert redacted == {"response": "Meadow", "metadata": {"X": {"X": 1}, "X (2)": ["X"], "***": "***"}}
