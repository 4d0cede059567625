"""Rows as the readers return them -> rows with a sample or an error, each with an id for its test.

An id is the one that was written, or made from what the row asks; it is unique, stable and safe to print.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, cast

from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.sample import (
    ALIASES,
    CAMEL_CASE,
    MEASURED,
    ContextsFrom,
    Sample,
    Turns,
    check_turns,
    fields_written,
    in_turns,
    is_conversation_row,
    is_deepeval_row,
    row_of_theirs,
    turn_of,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetRow:
    """One row of a data set: its sample, or the error that fails the test of this row and of no other.

    ``id`` is unique in its data set, does not change when rows are reordered, and is safe as a test id: short, of ASCII
    letters, digits, ``.``, ``_`` and ``-``. ``sample.id`` is the id as it was written, or this one where none was.
    ``file`` and ``line`` (from 1; where the row begins) are its place; both are ``None`` for rows that were given as a
    list, and ``line`` for a file of columns.
    """

    sample: Sample | None
    id: str
    file: str | None = None
    line: int | None = None
    error: DatasetError | None = None


def rows_in_turns(
    rows: Iterable[DatasetRow], turns: Turns, *, contexts_from: ContextsFrom = None, whole: bool = False
) -> Iterator[DatasetRow]:
    """Yield the rows that are scored: of a conversation each turn, as :func:`~pytest_ragmetrics.core.sample.in_turns`.

    A row with messages that cannot be read has an error, and so has one with the id of a turn. Of several conversations
    with one id, as rows that are no file may have, the later ones get a number.

    >>> talk = [{"role": role, "content": "Rain?"} for role in ("user", "assistant") * 2]
    >>> rows = [DatasetRow(sample=Sample(metadata={"messages": talk}), id="rain")]
    >>> [row.id for row in rows_in_turns(rows, "each", whole=True)]
    ['rain-t1', 'rain-t2', 'rain']
    """
    check_turns(turns, contexts_from)
    taken, ids = Counter[str](), dict[str, str]()
    for row in rows:
        if row.sample is None:
            yield row
            continue
        try:
            samples = in_turns(row.sample, turns, contexts_from=contexts_from, whole=whole, taken=taken)
        except (TypeError, ValueError) as error:
            fault = DatasetError(f"row {row.id}: {error}", file=row.file, line=row.line, field="messages")
            yield replace(row, sample=None, error=fault)
            continue
        for sample in samples:
            number = None if sample is row.sample else turn_of(sample)
            each = replace(row, sample=sample, id=f"{row.id}-t{number}" if isinstance(number, int) else row.id)
            if ids.setdefault(each.id, row.id) != row.id:
                msg = f"row {row.id}: the id {each.id!r} is that of a turn or of another row too: give this row another"
                fault = DatasetError(msg, file=row.file, line=row.line, field="id")
                each = replace(each, sample=None, id=f"{each.id}-2", error=fault)
            yield each


class RowError(ValueError):
    """A row has no sample; ``field`` is the name under which the value at fault was written."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """A row as it was read; with a ``fault`` the values are those that could be read, and ``text`` is its source."""

    values: Mapping[str, Any] | Sample = field(default_factory=dict)
    line: int | None = None
    fault: RowError | None = None
    text: str = ""


#: The older name of ragas for a list of references.
_REFERENCES = "ground_truths"
_METADATA = ("metadata", "additional_metadata")
_CONTENT = tuple(f.name for f in fields(Sample) if f.name not in ("id", "metadata"))
#: A conversation, and the calls of tools under our names and DeepEval's, which metrics find in the metadata.
CONVERSATION = ("messages", "turns", "tool_calls", "tools_called", "reference_tool_calls", "expected_tools")
#: A row has at least one of these names.
KNOWN = frozenset(
    [*_CONTENT, _REFERENCES, *CONVERSATION, *(alias for aliases in ALIASES.values() for alias in aliases), *CAMEL_CASE]
)
# Python refuses to write integers of more than about 14,000 bits in decimal.
_BITS = 1000
_NAMED_FIRST = re.compile(r"[a-z_]+")
_SOURCE = re.compile(r"\Adeepeval_source=.*?,deepeval_context=")
# What separates the header of a Markdown table from its body.
_TABLE_LINE = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*\|[-:| \t]*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """Which fields columns stand for, by column; some row has each, where they are ``required``."""

    fields: Mapping[str, str] = field(default_factory=dict)
    required: bool = True

    @classmethod
    def of(cls, given: object, *, required: bool = True) -> Columns:
        """Return what a mapping from fields to columns says, or a text of ``FIELD=COLUMN`` between commas or lines.

        Raises ``ValueError`` for an unknown field, and for a field or a column that is there twice.

        >>> Columns.of("question = query, contexts = passages").fields
        {'query': 'user_input', 'passages': 'retrieved_contexts'}
        """
        fields: dict[str, str] = {}
        if isinstance(given, str):
            pairs = [part.partition("=")[::2] for part in re.split(r"[,\n]", given) if part.strip()]
        else:
            pairs = [*given.items()] if isinstance(given, Mapping) else [(given, "")]
        for name, column in ((str(name).strip(), str(column).strip()) for name, column in pairs):
            if name not in (*KNOWN, "id", "metadata") or not column:
                pair, known = f"{name}={column}" if column else name, ", ".join(_CONTENT[:4])
                raise ValueError(f"columns: {pair!r:.80} is not FIELD=COLUMN with a field such as {known}")
            meant = next((known for known, aliases in ALIASES.items() if name in aliases), name)
            if column in fields or meant in fields.values():
                raise ValueError(f"columns: {name}={column} is the second for its field or its column: keep one")
            fields[column] = meant
        return cls(fields=fields, required=required)

    def renamed(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with columns under the names of their fields, which no other column is read for."""
        found = {name: row[column] for column, name in self.fields.items() if column in row}
        taken = {*self.fields.values()} if self.required else {*found}
        taken.update(alias for name in tuple(taken) for alias in ALIASES.get(name, ()))
        return {**{name: value for name, value in row.items() if name not in {*taken, *self.fields}}, **found}


NO_COLUMNS = Columns()


def sample_of(row: Mapping[str, Any], *, id: str | None = None, may_be_empty: bool = False) -> Sample:
    """Return the sample of a row; raise ``RowError`` naming the value at fault as it was written.

    Takes the fields of :meth:`Sample.from_mapping`, ``ground_truths`` (several are joined by line breaks) and
    ``additional_metadata``. ``None`` is a missing value, and only a row that ``may_be_empty`` has no other; a field
    with an unknown name is metadata. A text in ``retrieval_context``, or beside it or ``turns`` in ``context``, is a
    list as DeepEval saves it in CSV and JSON Lines, with ``|`` between the contexts; one with a Markdown table is one
    context.

    >>> sample_of({"input": "Why?", "retrieval_context": None, "context": ["So."]}).reference_contexts
    ('So.',)
    """
    given = row_of_theirs(row)
    values = {name: value for name, value in given.items() if value is not None or name == "retrieval_context"}
    if KNOWN.isdisjoint(given if may_be_empty else values):
        listed = f", only {', '.join(map(repr, values))}"[:200] if values else ""
        hint = fields_written(values) or f"give at least one of {', '.join(_CONTENT)}"
        raise RowError(f"has no field to score{listed}; {hint}")
    values["id"] = id
    values["metadata"] = _metadata(values)
    _take_references(values)
    _take_deepeval_contexts(values)
    try:
        return Sample.from_mapping(values)
    except (TypeError, ValueError) as error:
        # The message begins with the field; the row has it under one of its names.
        found = _NAMED_FIRST.match(str(error))
        name = found.group() if found else ""
        names = (name, *ALIASES.get(name, ()), *(["context"] if name == "reference_contexts" else []))
        raise RowError(str(error), field=next((n for n in names if values.get(n) is not None), None)) from error


def values_of(row: Any) -> Mapping[str, Any] | None:
    """Return the values of a mapping, a model of pydantic or a data class by name, ``None`` of anything else."""
    if isinstance(row, (Mapping, type)):
        return row if isinstance(row, Mapping) else None
    if callable(dump := getattr(row, "model_dump", None)):
        values = dump()
        return values if isinstance(values, Mapping) else None
    return {f.name: getattr(row, f.name) for f in fields(row)} if is_dataclass(row) else None


def written_id(row: Mapping[str, Any]) -> str | None:
    """Return the id of a row as text, ``None`` if it has none; raise ``RowError`` for another type than text or int."""
    value = row.get("id")
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < _BITS:
        return str(value)
    if value is None:
        return None
    kind = "one this long" if type(value) is int else type(value).__name__
    raise RowError(f"must be a text or a whole number, not {kind}", field="id")


def _metadata(values: dict[str, Any]) -> dict[str, Any]:
    collected: dict[str, Any] = {}
    for name in _METADATA:
        value = values.pop(name, {})
        if name == "metadata" and isinstance(value, (list, tuple)):
            # Test sets of Ragas 0.1 list the metadata of the documents.
            value = {name: value}
        if not isinstance(value, Mapping):
            raise RowError(f"must be an object (a mapping), not {type(value).__name__}", field=name)
        collected.update(value)
    # It was measured in the run that wrote the row.
    collected.pop(MEASURED, None)
    return collected


def _take_references(values: dict[str, Any]) -> None:
    name = "ground_truth" if isinstance(values.get("ground_truth"), (list, tuple)) else _REFERENCES
    has_one = values.get("reference") is not None or (name == _REFERENCES and values.get("ground_truth") is not None)
    if has_one or name not in values:
        return
    references = values.pop(name)
    if isinstance(references, str):
        references = [references]
    if not isinstance(references, (list, tuple)) or not all(isinstance(text, str) for text in references):
        raise RowError("must be a list of texts", field=name)
    values["reference"] = "\n".join(references) or None


def _take_deepeval_contexts(values: dict[str, Any]) -> None:
    if not (is_conversation_row(values) or (is_deepeval_row(values) and "input" in values)):
        return
    for name in ("retrieval_context", "context"):
        text = values.get(name)
        if isinstance(text, str):
            text = values[name] = [text] if _TABLE_LINE.search(text) else text.split("|") if text else []
        if isinstance(text, (list, tuple)):
            # A context of DeepEval's with a source is saved as one text.
            values[name] = [_SOURCE.sub("", item, 1) if isinstance(item, str) else item for item in text]


#: The names under which other tools keep the list of rows in an object.
WRAPPERS = ("samples", "rows", "data", "test_cases", "goldens", "testCases", "conversationalTestCases")


def rows_of_mapping(values: Mapping[str, Any], columns: Columns) -> Sequence[Any]:
    """Return the rows of ``{"samples": [...]}``, or of the columns ``{"question": [...], "answer": [...]}``.

    Raises ``RowError`` naming the column at fault.
    """
    lists = {name: values[name] for name in WRAPPERS if isinstance(values.get(name), (list, tuple))}
    filled = [name for name, rows in lists.items() if rows]
    if len(filled) > 1:
        raise RowError(f"there are rows in {' and in '.join(filled)}: keep one of these lists")
    if lists:
        return cast("Sequence[Any]", lists[filled[0]] if filled else [])
    if not KNOWN.intersection(columns.renamed(values)) or not any(
        isinstance(column, (list, tuple)) for column in values.values()
    ):
        raise RowError(f"no list of rows: write [{{...}}, {{...}}], or the list as one of {', '.join(WRAPPERS)}")
    length: int | None = None
    for name, column in values.items():
        if not isinstance(column, (list, tuple)):
            kind = type(column).__name__
            msg = f"must be a list with a value for each row, not {kind}; or write a list of rows [{{...}}, {{...}}]"
            raise RowError(msg, field=name)
        length = len(column) if length is None else length
        if len(column) != length:
            msg = f"has {len(column)} values, the first column {length}: give one for each row (null for none)"
            raise RowError(msg, field=name)
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


# Long enough for a digest or a UUID.
_SAFE = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.]+")
_STEM = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class _Candidate:
    """A row before ids are unique: the id that was written, and the id that it gets unless another row has it."""

    line: int | None
    written: str | None
    sample: Sample | None
    fault: RowError | None
    name: str


def identified(raws: Sequence[Raw], file: str | None) -> list[DatasetRow]:
    """Return the rows with their samples, errors and ids; a row with the id of an earlier row has an error."""
    candidates = [_candidate(raw) for raw in raws]
    first: dict[str | None, int] = {}
    for index, candidate in enumerate(candidates):
        if candidate.written is not None:
            first.setdefault(candidate.written, index)
    names = _names(candidates, set(first.values()))
    rows = []
    for index, (candidate, name) in enumerate(zip(candidates, names, strict=True)):
        sample, fault, line, error = candidate.sample, candidate.fault, candidate.line, None
        earlier = first.get(candidate.written, index)
        if fault is None and earlier != index:
            there = candidates[earlier].line
            where = f"rows[{earlier}]" if there is None else f"line {there}"
            msg = f"the id {candidate.name!r} is already used in {where}: give each row its own, or none"
            fault = RowError(msg, field="id")
        if fault is not None:
            sample, error = None, DatasetError(f"row {name}: {fault}", file=file, line=line, field=fault.field)
            error.__cause__ = fault
        elif candidate.written is None and sample is not None:
            sample = replace(sample, id=name)
        rows.append(DatasetRow(sample=sample, id=name, file=file, line=line, error=error))
    return rows


def safe_id(written: str) -> str:
    """Return an id that is safe in the name of a test; one that had to be changed ends in a digest, to stay unique.

    >>> safe_id("q-17"), safe_id("Größe [cm] :: 1")
    ('q-17', 'Groe-cm-1-53d6b66a')
    """
    if _SAFE.fullmatch(written):
        return written
    letters = unicodedata.normalize("NFKD", written[: 4 * _STEM]).encode("ascii", "ignore").decode("ascii")
    stem = _UNSAFE.sub("-", letters)[:_STEM].strip("-.")
    return f"{stem or 'id'}-{_digest(written, 8)}"


def _candidate(raw: Raw) -> _Candidate:
    sample, fault, written = None, raw.fault, None
    if isinstance(raw.values, Sample):
        sample = raw.values
        written = sample.id if (sample.id or "").strip() else None
    else:
        try:
            written = written_id(raw.values)
            sample = sample_of(raw.values, id=written) if fault is None else None
        except RowError as error:
            fault = fault or error
    if written is not None:
        name = safe_id(written)
    elif sample is not None:
        name = f"row-{_digest(_question(sample, raw.values), 10)}"
    else:
        name = f"broken-{_digest(raw.text or _dumped(raw.values), 10)}"
    return _Candidate(line=raw.line, written=written, sample=sample, fault=fault, name=name)


def _question(sample: Sample, row: Mapping[str, Any] | Sample) -> str:
    """Return what an application is given, so that its answer does not change the id; else the whole sample.

    A row of ``messages`` has no other question, also where its sample has the last one of them.
    """
    messages = sample.metadata.get("messages")
    names = {"user_input", *ALIASES["user_input"]}
    is_last = messages is not None and isinstance(row, Mapping) and names.isdisjoint(row)
    question = (None if is_last else sample.user_input, messages)
    return _content(sample) if question == (None, None) else _dumped(question)


def _content(sample: Sample) -> str:
    return _dumped({**sample.to_mapping(), "id": None})


def _names(candidates: Sequence[_Candidate], firsts: set[int]) -> list[str]:
    """Return a unique name for each; ids that were written keep theirs first."""
    counts = Counter(candidate.name for candidate in candidates if candidate.written is None)
    names: dict[int, str] = {}
    taken: set[str] = set()
    numbers: Counter[str] = Counter()
    for index in sorted(range(len(candidates)), key=lambda index: index not in firsts):
        candidate = candidates[index]
        name = candidate.name
        if candidate.written is None and candidate.sample is not None and counts[name] > 1:
            name = f"{name}-{_digest(_content(candidate.sample), 6)}"
        free = name
        while free in taken:
            numbers[name] += 1
            free = f"{name}-{numbers[name] + 1}"
        taken.add(free)
        names[index] = free
    return [names[index] for index in range(len(candidates))]


def _dumped(value: Any) -> str:
    """Return a text of a value that is the same in every process: no address of an object, no order of a set."""
    try:
        return json.dumps(value, skipkeys=True, default=lambda item: type(item).__name__)
    except (ValueError, RecursionError):
        return ""


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
