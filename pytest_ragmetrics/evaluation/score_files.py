"""Files of scores that ``ragmetrics score`` writes, JSON lines or Parquet: as a table, or as the record of a run."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.core.codec import CodecError, dump, load
from pytest_ragmetrics.core.errors import optional
from pytest_ragmetrics.core.files import writing_atomically
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets.streaming import PARQUET
from pytest_ragmetrics.evaluation.table import Evaluation, Row
from pytest_ragmetrics.runs.records import (
    Document,
    DocumentError,
    Record,
    RunRecord,
    TestRecord,
    read_document,
    result_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".jsonl", PARQUET)
_ROWS_OF_BATCH = 1000
_SAME = Sample()
#: The columns of one metric, behind its name and ``_``, and what they hold.
COLUMNS: Mapping[str, type] = {
    "score": float,
    "passed": bool,
    "reason": str,
    "judge": str,
    "cost": float,
    "vacuous": bool,
    "unscored": str,
}


def score_columns(test: TestRecord) -> dict[str, Any]:
    """Return the scores of a row as flat columns, ``METRIC_score`` and so on."""
    columns: dict[str, Any] = {}
    for record in test.records:
        passed = {"passed": True, "failed": False}.get(record.outcome)
        scored, unscored = (record.reason, None) if record.score is not None else (None, record.reason)
        vacuous = None if record.score is None else record.vacuous
        values = (record.score, passed, scored, record.judge, record.usage.cost, vacuous, unscored)
        columns |= {f"{record.metric}_{name}": value for name, value in zip(COLUMNS, values, strict=True)}
    return columns


def load_scores(path: str | Path) -> Evaluation:
    r"""Return the table of a file that ``ragmetrics score`` wrote, for gates in a suite: ``assert_mean(table, 0.8)``.

    ``path`` ends in ``.jsonl``, or in ``.parquet``, which needs pyarrow. Raises ``DocumentError`` naming file and row.

    >>> from contextlib import redirect_stdout
    >>> from io import StringIO
    >>> from tempfile import TemporaryDirectory
    >>> from pytest_ragmetrics.cli import main
    >>> with TemporaryDirectory() as folder, redirect_stdout(StringIO()):
    ...     rows, scores = Path(folder, "log.jsonl"), Path(folder, "scores.jsonl")
    ...     _ = rows.write_text('{"response": "So \\"it rains all day\\".", "contexts": ["It rains all day."]}')
    ...     _ = main(["score", str(rows), "--metrics", "exact_match,quoted_spans_alignment", "-o", str(scores)])
    ...     table = load_scores(scores)
    >>> table.mean("quoted_spans_alignment"), list(table.rows[0].unscored)
    (1.0, ['exact_match'])
    """
    rows: list[Row] = []
    records: dict[str, Record] = {}
    for test in read_scores(Path(path)):
        for record in test.records:
            if record.score is not None or record.metric not in records:
                records[record.metric] = record
        results = {record.metric: result_of(record) for record in test.records if record.score is not None}
        unscored = {record.metric: record.reason or "" for record in test.records if record.score is None}
        rows.append(Row(sample=test.records[0].sample, results=results, unscored=unscored))
    better = {metric: record.better for metric, record in records.items()}
    scales = {metric: record.scale for metric, record in records.items() if record.scale is not None}
    return Evaluation(metrics=tuple(records), rows=tuple(rows), better=better, scales=scales)


def read_run(path: Path) -> Document:
    """Return the record of a run in a file of ``--rag-json`` or of ``ragmetrics score``; raise ``DocumentError``."""
    if path.suffix not in ENDINGS:
        return read_document(path)
    tests = tuple(read_scores(path))
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(path.stat().st_mtime))
    judges = sorted({record.judge for test in tests for record in test.records if record.judge is not None})
    run = RunRecord(
        started=started,
        duration=0.0,
        exit_status=int(any(test.outcome == "failed" for test in tests)),
        python=platform.python_version(),
        pytest=version("pytest"),
        ragmetrics=version("pytest-ragmetrics"),
        settings={"judge": ", ".join(judges) or None},
        notes=(f"logged answers, scored by ragmetrics score into {path.name}",),
    )
    return Document(run=run, tests=tests)


def scored_row(file: str, number: int, line: int | None, records: Sequence[Record]) -> TestRecord:
    """Return a row of a file with its scores, as a test; rows are counted from 1."""
    sample = records[0].sample
    return TestRecord(
        id=f"{file}[{number}]" if sample.id is None else f"{file}[{number}-{sample.id}]",
        file=file,
        line=line,
        outcome="failed" if any(record.outcome in ("failed", "unscored") for record in records) else "passed",
        duration=0.0,
        attempts=1,
        message=None,
        records=tuple(records),
        gate=None,
    )


def row_data(row: TestRecord) -> dict[str, Any]:
    """Return a row as JSON builtins; only its first record has the sample, which is that of all."""
    first, *others = row.records
    records = (first, *(replace(record, sample=_SAME) for record in others))
    return {**dump(replace(row, records=())), "records": dump(records)}


def _row(data: Any) -> TestRecord:
    """Return a row that :func:`row_data` gave, or an early version wrote; raise ``CodecError``."""
    if isinstance(data, dict) and "scores" in data:
        scores = load(tuple[Record, ...], data["scores"], place="scores")
        sample = load(Sample, data.get("sample"), place="sample")
        records = [replace(record, sample=sample) for record in scores]
        return scored_row(data["file"], data["number"], data["line"], records)
    row = load(TestRecord, data)
    if not row.records:
        raise CodecError("it has no records")
    return replace(row, records=tuple(replace(record, sample=row.records[0].sample) for record in row.records))


def read_scores(path: Path) -> Iterator[TestRecord]:
    """Yield the rows of a file of scores one by one; raise ``DocumentError``."""
    if path.suffix not in ENDINGS:
        raise DocumentError(f"scores are in files that end in {' or '.join(ENDINGS)}", file=path)
    number = 0
    try:
        is_parquet = path.suffix == PARQUET
        with nullcontext(_parquet_lines(path)) if is_parquet else path.open(encoding="utf-8") as lines:
            for line in lines:
                number += 1
                yield _row(json.loads(line))
    except OSError as error:
        raise DocumentError(error.strerror or str(error), file=path) from error
    except (CodecError, LookupError, ValueError, RecursionError) as error:
        raise DocumentError(f"row {number} is not one that ragmetrics score wrote: {error}", file=path) from error
    if not number:
        raise DocumentError("it has no rows; give a file that ragmetrics score wrote", file=path)


def _parquet_lines(path: Path) -> Iterator[str]:
    pq = _parquet(path)
    try:
        with pq.ParquetFile(path, pre_buffer=False) as table:
            for batch in table.iter_batches(batch_size=_ROWS_OF_BATCH, columns=["row"]):
                yield from batch.column("row").to_pylist()
    except (KeyError, ValueError) as error:
        raise DocumentError(f"not Parquet that ragmetrics score wrote: {error}", file=path) from error


def write_scores(path: Path, lines: Iterable[str], metrics: Sequence[str]) -> None:
    """Write the rows, each the JSON of :func:`row_data`, so that readers see all of them or the old file.

    Parquet has columns ``id``, ``user_input`` and ``response``, those of :func:`score_columns`, and the text.
    """
    with writing_atomically(path) as part:
        if path.suffix == PARQUET:
            _write_parquet(part, lines, metrics)
            return
        with part.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{line}\n" for line in lines)


def _write_parquet(part: Path, lines: Iterable[str], metrics: Sequence[str]) -> None:
    pq = _parquet(part)
    import pyarrow as pa

    shape = arrow_schema(dict.fromkeys(("id", "user_input", "response"), str), metrics, {"row": str})
    waiting = iter(lines)
    with pq.ParquetWriter(part, shape, compression="zstd") as writer:
        while batch := list(islice(waiting, _ROWS_OF_BATCH)):
            rows = []
            for line in batch:
                row = _row(json.loads(line))
                sample = row.records[0].sample
                texts = {"id": sample.id, "user_input": sample.user_input, "response": sample.response, "row": line}
                rows.append({**texts, **score_columns(row)})
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=shape))


def arrow_schema(before: Mapping[str, type], metrics: Iterable[str], after: Mapping[str, type]) -> pa.Schema:
    """Return the schema of the columns of metrics, with others before and after them."""
    import pyarrow as pa

    kinds = {float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    flat = {f"{metric}_{name}": kind for metric in metrics for name, kind in COLUMNS.items()}
    return pa.schema([(name, kinds[kind]) for name, kind in {**before, **flat, **after}.items()])


def check_output(path: Path) -> None:
    """Raise ``RagMetricsError`` where pyarrow is needed to write a file, and missing."""
    if path.suffix == PARQUET:
        _parquet(path)


def _parquet(path: Path) -> Any:
    return optional("pyarrow.parquet", f"{path}: Parquet", "parquet")
