"""Ids of rows: as they were written, or made from what a row asks; unique, stable and safe to print."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_ragmetrics.datasets.row import DatasetRow, Raw, RowError
from pytest_ragmetrics.datasets.shapes import sample_of, written_id
from pytest_ragmetrics.errors import DatasetError
from pytest_ragmetrics.sample import Sample

# Long enough for a digest or a UUID that somebody uses as an id.
_SAFE = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.]+")
_STEM = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class _Candidate:
    """A row whose id is not settled: the id that was written, and the name that it gets unless another has it."""

    line: int | None
    written: str | None
    sample: Sample | None
    fault: RowError | None
    name: str


def identified(raws: Sequence[Raw], file: str | None) -> list[DatasetRow]:
    """Return the rows with their samples, errors and ids; a row with an id that stands further up has an error."""
    candidates = [_candidate(raw) for raw in raws]
    first: dict[str, int] = {}
    for index, candidate in enumerate(candidates):
        if candidate.written is not None:
            first.setdefault(candidate.written, index)
    names = _names(candidates, set(first.values()))
    return [
        _row(candidate, name, file, _earlier(candidate, index, first, candidates))
        for index, (candidate, name) in enumerate(zip(candidates, names, strict=True))
    ]


def safe_id(written: str) -> str:
    """Return an id that is safe in the name of a test; what had to be changed gets a digest, so that ids stay apart.

    >>> safe_id("q-17"), safe_id("Größe [cm] :: 1")
    ('q-17', 'Groe-cm-1-53d6b66a')
    """
    if _SAFE.fullmatch(written):
        return written
    letters = unicodedata.normalize("NFKD", written[: 4 * _STEM]).encode("ascii", "ignore").decode("ascii")
    stem = _UNSAFE.sub("-", letters)[:_STEM].strip("-.")
    return f"{stem or 'id'}-{_digest(written, 8)}"


def _candidate(raw: Raw) -> _Candidate:
    if isinstance(raw.values, Sample):
        return _sound(raw, raw.values.id if (raw.values.id or "").strip() else None, raw.values)
    written = None
    try:
        written = written_id(raw.values)
        sample = sample_of(raw.values, id=written) if raw.fault is None else None
    except RowError as fault:
        return _broken(raw, written, raw.fault or fault)
    return _broken(raw, written, raw.fault) if sample is None else _sound(raw, written, sample)


def _sound(raw: Raw, written: str | None, sample: Sample) -> _Candidate:
    name = safe_id(written) if written is not None else f"row-{_digest(_asked(sample), 10)}"
    return _Candidate(line=raw.line, written=written, sample=sample, fault=None, name=name)


def _broken(raw: Raw, written: str | None, fault: RowError | None) -> _Candidate:
    text = raw.text or _dumped(raw.values)
    name = safe_id(written) if written is not None else f"broken-{_digest(text, 10)}"
    return _Candidate(line=raw.line, written=written, sample=None, fault=fault, name=name)


def _asked(sample: Sample) -> str:
    """Return what an application is given, so that its answer does not change the id; or all, where that is nothing."""
    asked = (sample.user_input, sample.metadata.get("messages"))
    return _held(sample) if asked == (None, None) else _dumped(asked)


def _held(sample: Sample) -> str:
    return _dumped({**sample.to_mapping(), "id": None})


def _names(candidates: Sequence[_Candidate], firsts: set[int]) -> list[str]:
    """Return a name for each, none twice; ids that were written have the first choice."""
    asked = Counter(candidate.name for candidate in candidates if candidate.written is None)
    names: dict[int, str] = {}
    taken: set[str] = set()
    numbers: Counter[str] = Counter()
    for index in sorted(range(len(candidates)), key=lambda index: index not in firsts):
        candidate = candidates[index]
        name = candidate.name
        if candidate.written is None and candidate.sample is not None and asked[name] > 1:
            name = f"{name}-{_digest(_held(candidate.sample), 6)}"
        free = name
        while free in taken:
            numbers[name] += 1
            free = f"{name}-{numbers[name] + 1}"
        taken.add(free)
        names[index] = free
    return [names[index] for index in range(len(candidates))]


def _earlier(
    candidate: _Candidate, index: int, first: dict[str, int], candidates: Sequence[_Candidate]
) -> RowError | None:
    """Return what is wrong with an id that an earlier row has."""
    if candidate.written is None or first[candidate.written] == index:
        return None
    line = candidates[first[candidate.written]].line
    where = f"in line {line}" if line is not None else f"in rows[{first[candidate.written]}]"
    msg = f"the id {safe_id(candidate.written)!r} stands already {where}: give each row its own, or none"
    return RowError(msg, field="id")


def _row(candidate: _Candidate, name: str, file: str | None, twice: RowError | None) -> DatasetRow:
    fault = candidate.fault or twice
    if fault is not None:
        error = DatasetError(f"row {name}: {fault}", file=file, line=candidate.line, field=fault.field)
        error.__cause__ = fault
        return DatasetRow(sample=None, id=name, file=file, line=candidate.line, error=error)
    sample = candidate.sample
    if sample is not None and candidate.written is None:
        sample = replace(sample, id=name)
    return DatasetRow(sample=sample, id=name, file=file, line=candidate.line)


def _dumped(value: Any) -> str:
    """Return a text of a value that is the same in every process: no address of an object, no order of a set."""
    try:
        return json.dumps(value, skipkeys=True, default=lambda item: type(item).__name__)
    except (ValueError, RecursionError):
        return ""


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
