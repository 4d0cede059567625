"""Files of data sets: what they hold becomes rows, and what is wrong is said with its line."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_ragmetrics.core import running
from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets import DatasetRow, read_dataset
from tests.growth import is_linear

Read = Callable[..., tuple[DatasetRow, ...]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(name: str, content: str | bytes, **options: Any) -> tuple[DatasetRow, ...]:
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        (tmp_path / name).write_bytes(data)
        return read_dataset(name, base=tmp_path, **options)

    return read


def sample(row: DatasetRow) -> Sample:
    assert row.sample is not None, row.error
    return row.sample


def written(*lines: tuple[str, ...], delimiter: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(lines)
    return out.getvalue()


def fault(row: DatasetRow) -> str:
    assert row.sample is None
    return str(row.error).partition("rows.")[2]


def questions(rows: tuple[DatasetRow, ...]) -> list[str | None]:
    return [sample(row).user_input for row in rows]


def test_jsonl_has_one_row_a_line(read: Read, tmp_path: Path) -> None:
    rows = read("rows.jsonl", '{"id": "a", "question": "Why?"}\n\n  \t\r\n{"id": 7, "question": "How?", "lang": "en"}')
    assert questions(rows) == ["Why?", "How?"]
    assert [(row.id, row.line) for row in rows] == [("a", 1), ("7", 4)]
    assert {row.file for row in rows} == {str(tmp_path / "rows.jsonl")}
    assert sample(rows[1]) == Sample(id="7", user_input="How?", metadata={"lang": "en"})


LINES = '{"question": "Why?"}\n{"question": "How?"}\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, LINES) for name in ("rows.jsonl", "rows.ndjson", "ROWS.JSONL", "rows.jsonl.gz")),
        ("rows.jsonl", '\ufeff{"question": "Why?"}\r\n\ufeff{"question": "How?"}\r\n'),
        ("rows.json", '\ufeff[{"question": "Why?"},\r\n{"question": "How?"}]\r\n'),
        ("rows.csv", "\ufeffquestion,answer\r\nWhy?,\r\nHow?,So.\r\n"),
        # Separators of Unicode may stand inside a text of JSON.
        ("rows.jsonl", '{"question": "Why?", "a": "one\u2028two\x85three"}\n{"question": "How?"}\n'),
    ],
)
def test_the_ending_says_the_kind(read: Read, name: str, text: str) -> None:
    data = text.encode()
    assert questions(read(name, gzip.compress(data) if name.endswith(".gz") else data)) == ["Why?", "How?"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"id": "b", "question": }', "no JSON: Expecting value (column 25)"),
        ("question", "no JSON: Expecting value (column 1)"),
        ('{"id": "b", "question": "Why?"} {}', "no JSON: Extra data (column 33)"),
        ("7", "a row is an object {...}, not a number"),
        ("null", "a row is an object {...}, not null"),
        ('"Why?"', "a row is an object {...}, not a text"),
        ("true", "a row is an object {...}, not true or false"),
        ('["Why?"]', "a row is an object {...}, not a list"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": NaN, }', "NaN is no number of JSON: write null or leave the field out"),
        ('{"a": NaN, "b": ' + "[" * 100_000, "NaN is no number of JSON: write null or leave the field out"),
    ],
)
def test_a_broken_line_is_a_broken_row(read: Read, line: str, expected: str) -> None:
    before, broken, after = read("rows.jsonl", f'{{"question": "Why?"}}\n{line}\n{{"question": "How?"}}\n')
    assert questions((before, after)) == ["Why?", "How?"]
    assert (broken.line, broken.id[:7]) == (2, "broken-")
    assert fault(broken) == f"jsonl:2: row {broken.id}: {expected}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("NaN", "NaN is no number of JSON: write null or leave the field out"),
        ("-Infinity", "-Infinity is no number of JSON: write null or leave the field out"),
        ("1e999", "1e999 is no number of JSON: write null or leave the field out"),
        ('1, "a": 2', "the key 'a' occurs twice: keep one"),
        ("9" * 5000, "a whole number is too long: write it as a text"),
    ],
)
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_what_python_alone_reads_is_refused_by_row(read: Read, name: str, value: str, expected: str) -> None:
    """No number that JSON does not have and no lost value gets in; the row keeps its id, and the others are read."""
    lines = ['{"id": "x", "question": "Why?"}', f'{{"id": "y", "question": "How?", "a": {value}}}', '{"question": "q"}']
    rows = read(name, "\n".join(lines) if name == "rows.jsonl" else f"[{','.join(f'{chr(10)}{x}' for x in lines)}]")
    assert [row.id for row in rows[:2]] == ["x", "y"]
    line = 2 if name == "rows.jsonl" else 3
    assert fault(rows[1]).startswith(f"{name[5:]}:{line}: row y: {expected}")
    assert questions((rows[0], rows[2])) == ["Why?", "q"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ('"question": 5', "field 'question': row b: user_input must be a str, not int"),
        ('"user_input": ["Why?"]', "field 'user_input': row b: user_input[0] is of type str: give a message with"),
        ('"contexts": {"a": "b"}', "field 'contexts': row b: retrieved_contexts must be a text, a document or a list"),
        ('"contexts": ["a", null]', "field 'contexts': row b: retrieved_contexts[1] is None: give a str"),
        ('"retrieval_context": ["a"], "context": [3]', "field 'context': row b: reference_contexts[0] is of type int"),
        ('"answer": "a", "retrieved_context_ids": "x"', "field 'retrieved_context_ids': row b: retrieved_context_ids"),
        ('"answer": "a", "metadata": "x"', "field 'metadata': row b: must be an object (a mapping), not str"),
        ('"ground_truths": [1]', "field 'ground_truths': row b: must be a list of texts"),
        ('"ground_truths": {}', "field 'ground_truths': row b: must be a list of texts"),
        ('"qestion": "Why?"', "row b: has no field to score, only 'id', 'qestion'; did you write 'qestion' for "),
    ],
)
def test_a_wrong_type_names_the_field_as_it_was_written(read: Read, values: str, expected: str) -> None:
    _, row = read("rows.jsonl", f'{{"question": "Why?"}}\n{{"id": "b", {values}}}\n')
    assert fault(row).startswith(f"jsonl:2: {expected}")
    assert (row.error and row.error.line, row.id) == (2, "b")


@pytest.mark.parametrize("name", ["samples", "rows", "data", "test_cases", "goldens", "testCases"])
def test_json_may_hold_the_list_by_a_usual_name(read: Read, name: str) -> None:
    other = "data" if name == "rows" else "rows"
    text = f'{{"version": {{"a": [1]}},\n "{other}": [], "{name}": [\n{{"question": "Why?"}}], "n": 1}}'
    (row,) = read("rows.json", text)
    assert (sample(row).user_input, row.line) == ("Why?", 3)


def test_json_is_a_list_of_rows_or_has_columns(read: Read) -> None:
    rows = read("rows.json", '[\n {"question": "Why?"},\n\n {"question":\n  "How?"}, 7]')
    assert (questions(rows[:2]), [row.line for row in rows]) == (["Why?", "How?"], [2, 4, 5])
    assert fault(rows[2]).endswith("a row is an object {...}, not a number")
    rows = read("rows.json", '{"question": ["Why?", "How?"], "contexts": [["a"], ["b", "c"]]}')
    assert [sample(row).retrieved_contexts for row in rows] == [("a",), ("b", "c")]
    assert rows[0].line is None


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("rows.json", "", "json:1: is empty"),
        ("rows.json", "7", "json:1: no list of rows: write [{...}, {...}]"),
        ("rows.json", "[]", "json: there are no rows: give at least one"),
        ("rows.json", '{"samples": []}', "json: there are no rows: give at least one"),
        ("rows.json", "{}", "json: no list of rows: write [{...}, {...}], or the list as one of samples, rows, data,"),
        ("rows.json", '{"question": "Why?"}', "json: no list of rows: write [{...}, {...}]"),
        ("rows.json", '{"question": ["a"], "answer": []}', "json: field 'answer': has 0 values, the first column 1"),
        ("rows.json", '{"question": ["a"], "id": 1}', "json: field 'id': must be a list with a value for each row"),
        ("rows.json", '[{"question": "a"}\n{"question": "b"}]', "json:2: no JSON: expected ',' and a further row"),
        ("rows.json", '[{"question": "a"},\n]', "json:2: no JSON: expected ',' and a further row, or ']'"),
        ("rows.json", '[{"question": "a"},\n {"question": ]', "json:2: no JSON: Expecting value (column 15)"),
        ("rows.json", '[{"question": NaN, "a": }]', "json:1: no JSON: Expecting value (column 25)"),
        ("rows.json", '[{"question": "a"}', "json:1: no JSON: expected ',' and a further row, or ']'"),
        ("rows.json", '[{"question": "a"}]\n[]', "json:2: there is more behind the end of the list"),
        ("rows.json", f"[\n{'[' * 100_000}", "json:2: nested too deeply"),
        ("rows.json", '[{"a": NaN, "b": ' + "[" * 100_000, "json:1: nested too deeply"),
        ("rows.json", '{"rows": [{"input": "a"}], "data": [{"input": "b"}]}', "json: there are rows in rows and in da"),
        ("rows.json", '{"rows": [],\n"rows": []}', "json:2: the key 'rows' occurs twice: keep one"),
        ("rows.json", '{"a": 1 "b": 2}', "json:1: no JSON: expected ',' or '}'"),
        ("rows.json", "{7: 1}", "json:1: no JSON: expected a name in quotation marks and ':'"),
        ("rows.json", '{"a": Infinity}', "json:1: Infinity is no number of JSON"),
        ("rows.jsonl", "\n \n", "jsonl: there are no rows: give at least one"),
        ("rows.jsonl", '[{"question": "a"}]', "jsonl: contains a JSON list: name it .json, or write one object {...}"),
        ("rows.jsonl", b'{"question": "a"}\n{"question": "\xff"}', "jsonl:2: byte 0xff is not UTF-8: save the file as"),
        ("rows.jsonl", '{"question": "a"}'.encode("utf-16"), "jsonl:1: is UTF-16 or UTF-32: save it as UTF-8"),
        ("rows.jsonl", '{"question": "a"}'.encode("utf-16-le"), "jsonl:1: is UTF-16 or UTF-32: save it as UTF-8"),
        ("rows.json", '[{"question": "a"}]'.encode("utf-16-be"), "json:1: is UTF-16 or UTF-32: save it as UTF-8"),
        ("rows.csv", "question\na\n".encode("utf-32"), "csv:1: is UTF-16 or UTF-32: save it as UTF-8"),
        ("rows.jsonl", gzip.compress(b"{}", mtime=0), "jsonl: is packed by gzip: let its name end in .gz"),
        ("rows.jsonl", '{\n  "question": "a"\n}\n', "jsonl:1: contains an object over several lines: write one ob"),
        ("rows.json", '{"question": "a"}\n{"question": "b"}\n', "json:2: there is more behind the first object: name "),
        ("rows.json", '{"question": "a", "contexts": []}', "json: field 'question': must be a list with a value for e"),
        ("rows.jsonl.gz", b"plain", "jsonl.gz: ends in .gz and cannot be unpacked: Not a gzipped file"),
        ("rows.jsonl.gz", gzip.compress(b"{}", mtime=0)[:-9], "jsonl.gz: ends in .gz and cannot be unpacked: "),
        ("rows.txt", "Why?", "txt: a data set is a file that ends in .jsonl, .ndjson, .json, .csv (or these with .gz)"),
        ("rows.gz", "Why?", "gz: a data set is a file that ends in .jsonl"),
        ("rows.csv", "", "csv: there are no rows: write a header with the names of the fields"),
        ("rows.csv", "question\n\n", "csv: there are no rows: give at least one"),
        ("rows.csv", "Why?,So.\nHow?,Thus.\n", "csv:1: the first line is no header with names of fields such as"),
        ("rows.csv", "Questions,Answer\nWhy?,So.\n", "csv:1: the first line is no header with names of fields such as"),
        ("rows.csv", "question,question\na,b\n", "csv:1: field 'question': occurs twice in the header: keep one"),
        ("rows.csv", "question,x;answer\na,b\n", "csv:1: the cells may be divided by ',' or ';': use one of them"),
        ("rows.csv", 'question,answer\na,b\nc,"d\ne,f\n', "csv:3: a quotation mark is opened here and never closed"),
        ("rows.csv", '"question\na,b\n', "csv:1: the header is no CSV: close its quotation marks"),
        ("rows.csv", "\n\n", "csv: there are no rows: write a header with the names of the fields"),
    ],
)
def test_a_file_that_holds_no_rows_says_what_to_write(read: Read, name: str, text: str | bytes, expected: str) -> None:
    with pytest.raises(DatasetError) as caught:
        read(name, text)
    assert str(caught.value).partition("rows.")[2].startswith(expected)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("none.jsonl", r".*/none\.jsonl: there is no such file$"),
        (Path("folder.json"), r"folder\.json: cannot be read: "),
        ("\0.json", ".*cannot be read: "),
        # Who hands over the text itself reads a message of one line.
        ('{"question": "Why?"}\n.json', ""),
        ("x" * 100_000, ""),
    ],
)
def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | Path, said: str
) -> None:
    """Inside the current folder the name is short, elsewhere it is whole; a folder is no file."""
    (tmp_path / "folder.json").mkdir()
    if isinstance(source, Path):
        monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetError, match=f"^{said}") as caught:
        read_dataset(source, base=tmp_path)
    assert len(str(caught.value)) < 1000
    assert str(caught.value).isprintable()


def test_in_a_test_a_missing_file_is_told_where_paths_start(tmp_path: Path) -> None:
    running.enter("a session")
    try:
        with pytest.raises(
            DatasetError, match="no such file; in rag_dataset and rag_evaluate a path starts at the fold"
        ):
            read_dataset("none.jsonl", base=tmp_path)
    finally:
        running.leave("a session")


def test_csv_has_a_header(read: Read) -> None:
    text = (
        "id,question,contexts,answer,year,metadata,retrieved_context_ids\n"
        '007,Why?,"[""a"", ""b""]",,1850,"{""lang"": ""en""}","[1, ""x""]"\n'
        '\n8,"two\nlines, and ""marks""",a single one,So.,,,\n'
    )
    first, second = read("rows.csv", text)
    wanted: dict[str, Any] = {"retrieved_contexts": ("a", "b"), "retrieved_context_ids": [1, "x"]}
    assert sample(first) == Sample(id="007", user_input="Why?", metadata={"year": "1850", "lang": "en"}, **wanted)
    asked, said = 'two\nlines, and "marks"', ("a single one",)
    assert sample(second) == Sample(id="8", user_input=asked, retrieved_contexts=said, response="So.")
    assert [first.line, second.line] == [2, 4]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_header_shows_the_delimiter(read: Read, delimiter: str) -> None:
    text = written(("question", "my, notes; here", "answer"), ("Why?", "", "So.; thus, so."), delimiter=delimiter)
    assert sample(read("rows.csv", text)[0]).response == "So.; thus, so."


def test_what_data_frames_write_is_read(read: Read) -> None:
    first, second = read("rows.csv", ",question,contexts\n0,Why?,\"['it\"\"s', 'b']\"\n1,How?,\"['a' 'b']\"\n")
    assert sample(first) == Sample(id=first.id, user_input="Why?", retrieved_contexts=('it"s', "b"))
    assert fault(second).endswith('field \'contexts\': row broken-50d4b8a7b8: write a list as JSON: ["...", "..."]')
    # Contexts that DeepEval joined are divided, also where they begin with a bracket.
    (row,) = read("rows.csv", "input,retrieval_context\nWhy?,[1] Moths|[2] fly\n")
    assert sample(row).retrieved_contexts == ("[1] Moths", "[2] fly")


@pytest.mark.parametrize(
    ("cell", "contexts"),
    [
        ("[1] Moths fly.", ["[1] Moths fly."]),
        ("[a], [b]", ["[a], [b]"]),
        (' [sic] "they" flew', [' [sic] "they" flew']),
        ("[注] 蛾は飛ぶ", ["[注] 蛾は飛ぶ"]),
        ("[[Moths]] fly", ["[[Moths]] fly"]),
        ("[moths](https://moths.example)", ["[moths](https://moths.example)"]),
        ("[", ["["]),
        ("[]", []),
        ('["[1] Moths", "[2] fly"]', ["[1] Moths", "[2] fly"]),
        ("['[1] Moths']", ["[1] Moths"]),
        ('["Moths", "fly', None),
        ('[ "Moths" "fly" ]', None),
        (" ['Moths' 'fly']", None),
        ("['Moths'\n 'fly']", None),
        ("[{'text': Moths}]", None),
        ("[Document(page_content='Moths')]", None),
    ],
)
def test_a_context_in_brackets_is_a_text_or_a_list(read: Read, cell: str, contexts: list[str] | None) -> None:
    """Only what begins like a list of texts or objects and is none is at fault."""
    (row,) = read("rows.csv", written(("question", "contexts", "ground_truths"), ("Why?", cell, "[1] So.")))
    if contexts is None:
        assert fault(row).endswith('write a list as JSON: ["...", "..."]')
    else:
        assert sample(row).retrieved_contexts == tuple(contexts)
        assert sample(row).reference == "[1] So."


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("b,Why?", "row broken-*: has 2 cells, the header 4: write one for each field, an empty one for a missing v*"),
        ("b,Why?,a,{},more", "row broken-*: has 5 cells, the header 4: put cells with the delimiter in them into quo*"),
        ('b,"Why"?,a,{}', "row broken-*: no CSV: ',' expected after '\"'; write a quotation mark inside a quoted ce*"),
        ("b,Why?,a,lang=en", 'field \'metadata\': row b: write it as a JSON object: {"name": "value"}'),
        ("b,Why?,['a',{}", 'field \'contexts\': row b: write a list as JSON: ["...", "..."]'),
        ("b,Why\0?,[],{}", "row *broken-*NUL*"),
        ("b,,,", "row b: has no field to score, only 'id'; give at least one of *"),
    ],
)
def test_a_broken_line_of_csv_is_a_broken_row(read: Read, line: str, expected: str) -> None:
    before, broken, after = read("rows.csv", f"id,question,contexts,metadata\na,Why?,,,,\n{line}\nc,How?,,\n")
    assert questions((before, after)) == ["Why?", "How?"]
    assert fnmatch(fault(broken), f"csv:3: {expected.replace('[', '[[]')}")


def test_a_long_line_is_a_line(read: Read) -> None:
    """A megabyte in a row or in a cell is read, and the limit of the csv module is what it was."""
    limit = csv.field_size_limit()
    text = "wörd " * 200_000
    assert sample(read("rows.jsonl", json.dumps({"answer": text}))[0]).response == text
    assert sample(read("rows.csv", f"answer,question\n{text},Why?\n")[0]).response == text
    assert csv.field_size_limit() == limit


@pytest.mark.growth
@pytest.mark.parametrize(
    ("name", "head", "row", "tail"),
    [
        ("rows.jsonl", "", '{"question": "Why?", "contexts": ["a", "b"]}\n', ""),
        ("rows.json", '[{"answer": "So."}', ',\n{"question": "Why?", "a": NaN}', "]"),
        ("rows.csv", "question,contexts\n", 'Why?,"[""a"", ""b""]"\n', ""),
        ("rows.jsonl", "", '{"id": "same", "question": "Why?"}\n', ""),
    ],
)
def test_reading_takes_time_in_proportion_to_the_size(read: Read, name: str, head: str, row: str, tail: str) -> None:
    assert is_linear(lambda rows: read(name, head + row * rows + tail), short=1000, long=10_000)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.fixed_dictionaries({"user_input": TEXT, "response": TEXT}), min_size=1, max_size=5))
def test_every_kind_of_file_gives_back_what_was_written(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (tmp_path / "rows.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    plain = [row.sample for row in read_dataset(rows, base=tmp_path)]
    for name in ("rows.jsonl", "rows.json"):
        assert [row.sample for row in read_dataset(name, base=tmp_path)] == plain
    assert [{"user_input": row.user_input, "response": row.response} for row in plain if row] == rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["rows.jsonl", "rows.json", "rows.csv", "rows.json.gz"]), st.binary() | TEXT.map(str.encode))
def test_whatever_a_file_holds_is_rows_or_an_error_that_names_it(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    try:
        rows = read_dataset(name, base=tmp_path)
    except DatasetError as error:
        assert error.file == str(tmp_path / name)  # noqa: PT017 - either outcome is right
    else:
        assert all((row.sample is None) != (row.error is None) for row in rows)
