"""Rows of files of any size, one at a time: logged answers, of which memory never holds more than a few."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_ragmetrics.core.errors import DatasetError, optional
from pytest_ragmetrics.core.files import exists, lines_of
from pytest_ragmetrics.core.sample import ContextsFrom, Sample, Turns, check_turns, in_turns
from pytest_ragmetrics.datasets.csv import iterate_csv
from pytest_ragmetrics.datasets.json import iterate_jsonl
from pytest_ragmetrics.datasets.reading import check_start, read_file, renamed, row_of_cells, shown_path
from pytest_ragmetrics.datasets.rows import NO_COLUMNS, Columns, Raw, RowError, sample_of, written_id
from pytest_ragmetrics.datasets.traces import rows_of_traces

PARQUET = ".parquet"
#: The endings of files that are read row by row; ``.json`` is read whole.
ENDINGS = (".jsonl", ".ndjson", ".csv", PARQUET, ".json")
_ROWS_OF_BATCH = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class LoggedRow:
    """A row of a file: its ``number`` from 1, and the ``line`` where it begins (of Parquet its number too).

    The sample has the id that was written, if any; ``error`` says why there is none, or why it is not to be scored.
    """

    file: str
    number: int
    line: int | None
    sample: Sample | None
    error: str | None = None


def stream_rows(
    files: Sequence[Path], *, limit: int | None = None, columns: Columns = NO_COLUMNS
) -> Iterator[LoggedRow]:
    """Return the rows of files one after the other, the first ``limit`` of all; each file is opened in its turn.

    Takes JSON lines, CSV (both also with ``.gz``) and Parquet, in constant memory, and JSON, which is read whole. Of
    spans the texts that rows need are kept until all are read: those of a trace may be anywhere in the file.
    Rows have the names that :func:`~pytest_ragmetrics.datasets.reading.read_dataset` takes; ids may occur again.
    Raises ``DatasetError``, at once for a file that is missing or of another kind.
    """
    for file in files:
        if _ending(file) not in ENDINGS:
            msg = f"rows are read from files that end in {', '.join(ENDINGS)} (or, but for Parquet, these with .gz)"
            raise DatasetError(msg, file=shown_path(file))
        try:
            is_there = exists(file)
        except OSError as error:
            raise DatasetError(f"cannot be read: {error.strerror}", file=shown_path(file)) from error
        if not (is_there and file.is_file()):
            why = "is a device or a pipe: name a file" if is_there else "there is no such file"
            raise DatasetError(why, file=shown_path(file))
    names = ((file, shown_path(file)) for file in files)
    return islice((row for file, name in names for row in logged_rows(_raws(file, name, columns), name)), limit)


def logged_in_turns(
    rows: Iterable[LoggedRow], turns: Turns, *, contexts_from: ContextsFrom = None, whole: bool = False
) -> Iterator[LoggedRow]:
    """Yield the rows that are scored: of a conversation each turn, as :func:`~pytest_ragmetrics.core.sample.in_turns`.

    A row with messages that cannot be read has an error.
    """
    check_turns(turns, contexts_from)
    for row in rows:
        try:
            scored = in_turns(row.sample or Sample(), turns, contexts_from=contexts_from, whole=whole)
        except (TypeError, ValueError) as error:
            yield replace(row, sample=None, error=str(DatasetError(str(error), file=row.file, line=row.line)))
        else:
            yield from (replace(row, sample=sample) for sample in scored) if row.sample else (row,)


def _ending(file: Path) -> str:
    name = file.name.lower()
    return Path(name.removesuffix(".gz")).suffix if not name.endswith(f"{PARQUET}.gz") else ".gz"


def logged_rows(raws: Iterable[Raw], file: str) -> Iterator[LoggedRow]:
    """Yield rows as they were read with their samples or errors; raise ``DatasetError`` where there is none."""
    number = 0
    for number, raw in enumerate(raws, 1):
        values: Any = raw.values
        try:
            if raw.fault is not None:
                raise raw.fault
            sample = sample_of(values, id=written_id(values))
        except RowError as error:
            reason = str(DatasetError(str(error), file=file, line=raw.line, field=error.field))
            yield LoggedRow(file=file, number=number, line=raw.line, sample=None, error=reason)
        else:
            yield LoggedRow(file=file, number=number, line=raw.line, sample=sample)
    if not number:
        raise DatasetError("there are no rows: give at least one", file=file)


def _raws(path: Path, file: str, columns: Columns) -> Iterable[Raw]:
    ending = _ending(path)
    if ending == ".json":
        return read_file(path, file, columns)
    rows = _parquet(path, file) if ending == PARQUET else _text_rows(path, file, ending, columns)
    return renamed(rows_of_traces(rows), columns, file)


def _text_rows(path: Path, file: str, ending: str, columns: Columns) -> Iterator[Raw]:
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as stream:
            check_start(stream.read(4), file)
            stream.seek(0)
            if ending == ".csv":
                # Bytes that are not UTF-8 become lone surrogates, which are a fault of their row alone.
                text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
                yield from map(_in_utf8, iterate_csv(text, file, columns))
            else:
                yield from iterate_jsonl(lines_of(stream), file)
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=file) from error


def _in_utf8(row: Raw) -> Raw:
    try:
        row.text.encode()
    except UnicodeEncodeError:
        return replace(row, values={}, fault=RowError("a byte is not UTF-8: save the file as UTF-8"))
    return row


def _parquet(path: Path, file: str) -> Iterator[Raw]:
    pq = optional("pyarrow.parquet", f"{file}: Parquet", "parquet")
    import pyarrow as pa

    try:
        with pq.ParquetFile(path, pre_buffer=False) as table:
            batches = table.iter_batches(batch_size=_ROWS_OF_BATCH, use_threads=False)
            rows = (row for batch in batches for row in batch.to_pylist())
            for number, row in enumerate(rows, 1):
                yield replace(row_of_cells(row), line=number)
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(f"cannot be read as Parquet: {error}", file=file) from error
