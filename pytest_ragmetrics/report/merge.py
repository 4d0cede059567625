"""One document out of those of several runs, such as the shards of a CI job, whatever order they are given in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ragmetrics.explain.phrases import counted, named
from pytest_ragmetrics.records import Document, RunRecord, Setting, TestRecord
from pytest_ragmetrics.reporting import position

if TYPE_CHECKING:
    from collections.abc import Callable

#: Exit statuses of pytest from the best to the worst; a shard without tests is no flaw of the others.
_STATUSES = (5, 0, 1, 2, 4, 3)


def merge_documents(documents: Sequence[Document]) -> Document:
    """Return all tests of several runs as one document; raises ``ValueError`` without any.

    Shards of one run give what the run would have given, apart from ``run``: that starts with the earliest, takes as
    long as all together, and ends as the worst. Where a test stands in several documents, as after a second run of
    what had failed, the row of the run that started last counts. A gate that no run decided, because each had only a
    part of its set, is decided over all of them if they have it whole. The notes say so, and in what the runs differ.
    """
    if not documents:
        msg = "there is nothing to merge"
        raise ValueError(msg)
    if len(documents) == 1:
        return documents[0]
    runs = sorted(documents, key=_age)
    rows: dict[str, TestRecord] = {}
    doubled: dict[str, bool] = {}
    for row in (row for document in runs for row in document.tests):
        before = rows.setdefault(row.id, row)
        if before is row:
            continue
        if not _is_skipped_gate(row):
            rows[row.id] = row
        if before.gate is None:
            doubled[row.id] = doubled.get(row.id, False) or before.outcome != row.outcome
    decided = _decided(rows)
    tests = sorted({**rows, **decided}.values(), key=position)
    notes = [*_notes(runs), *_doubled(doubled), *_gates(decided), *_differences(runs), *_judges(tests)]
    run = _run([document.run for document in runs], notes)
    if any(row.outcome == "failed" for row in decided.values()):
        run = replace(run, exit_status=max(run.exit_status, 1, key=_badness))
    return Document(run=run, tests=tuple(tests))


def _is_skipped_gate(row: TestRecord) -> bool:
    return row.gate is not None and row.gate.outcome == "skipped"


def _decided(rows: Mapping[str, TestRecord]) -> dict[str, TestRecord]:
    """Return the gates that can be decided now: all tests of their sets are there."""
    skipped = [row for row in rows.values() if _is_skipped_gate(row)]
    if not skipped:
        return {}
    from pytest_ragmetrics.gates import evaluate_merged_gate

    tests = sorted((row for row in rows.values() if row.gate is None), key=position)
    found = (evaluate_merged_gate(row, tests) for row in skipped)
    return {row.id: row for row in found if row is not None}


def _age(document: Document) -> tuple[str, str]:
    # Of runs that started at the same second the order does not matter, as long as it is always the same one.
    return document.run.started, repr(document)


def _run(runs: Sequence[RunRecord], notes: list[str]) -> RunRecord:
    return RunRecord(
        started=runs[0].started,
        duration=round(sum(run.duration for run in runs), 3),
        exit_status=max((run.exit_status for run in runs), key=_badness),
        python=", ".join(_distinct(run.python for run in runs)),
        pytest=", ".join(_distinct(run.pytest for run in runs)),
        ragmetrics=", ".join(_distinct(run.ragmetrics for run in runs)),
        settings={name: _setting(name, runs) for name in _names(runs)},
        notes=tuple(notes),
    )


def _badness(status: int) -> int:
    return _STATUSES.index(status) if status in _STATUSES else len(_STATUSES)


def _names(runs: Sequence[RunRecord]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run.settings))


def _setting(name: str, runs: Sequence[RunRecord]) -> Setting:
    values = [run.settings.get(name) for run in runs]
    return values[0] if len(set(map(repr, values))) == 1 else ", ".join(_distinct(map(str, values)))


def _distinct(texts: Iterable[str]) -> list[str]:
    return sorted(set(texts))


def _notes(runs: Sequence[Document]) -> Iterator[str]:
    yield f"merged from {len(runs)} runs"
    yield from dict.fromkeys(note for document in runs for note in document.run.notes)


def _doubled(doubled: dict[str, bool]) -> Iterator[str]:
    if doubled:
        changed = f"; {sum(doubled.values())} of them came out differently before" if any(doubled.values()) else ""
        ran = f"{counted(len(doubled), 'test')} {'was' if len(doubled) == 1 else 'were'} run more than once"
        yield f"{ran}, and the run that started last counts{changed}"


def _gates(decided: Mapping[str, TestRecord]) -> Iterator[str]:
    if decided:
        were = "was" if len(decided) == 1 else "were"
        yield f"{counted(len(decided), 'gate')} that no single run could decide {were} decided over all of them"


def _differences(runs: Sequence[Document]) -> Iterator[str]:
    """Yield in what the runs differ that has a bearing on their scores."""
    told: tuple[tuple[str, Callable[[RunRecord], object]], ...] = (
        ("version of pytest-ragmetrics", lambda run: run.ragmetrics),
        ("judge", lambda run: run.settings.get("judge")),
        ("embedder", lambda run: run.settings.get("embedder")),
    )
    for what, read in told:
        values = _distinct(str(read(document.run)) for document in runs)
        if len(values) > 1:
            yield f"the runs differ in their {what}: {', '.join(map(named, values))}"


def _judges(tests: Sequence[TestRecord]) -> Iterator[str]:
    judges: dict[str, set[str]] = {}
    for record in (record for test in tests for record in test.records):
        if record.judge is not None:
            judges.setdefault(record.metric, set()).add(record.judge)
    for metric in sorted(metric for metric, names in judges.items() if len(names) > 1):
        names = ", ".join(map(named, sorted(judges[metric])))
        yield f"{named(metric)} was scored by different judges: {names}"
