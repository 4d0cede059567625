"""The history of runs: one small JSON file a run in a folder, written at its end and read to draw trends.

A file has no answers and no evidence, and no path outside of the project, so that it can be committed. Its name begins
with the time and ends by chance: names sort by time, and files of branches never meet in a merge.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_ragmetrics.core.codec import CodecError, dump, load
from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.core.files import read_json, write_atomically
from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.metrics.base import digest
from pytest_ragmetrics.report.judging import judging_of
from pytest_ragmetrics.runs.compare import cluster_of
from pytest_ragmetrics.runs.records import Document, GateOutcome, Judging, Record, RecordOutcome, Statistic, TestRecord
from pytest_ragmetrics.runs.wording.figures import counted, threshold_text
from pytest_ragmetrics.runs.wording.runs import Status, by_metric, margin, paid_records, status_of, tally
from pytest_ragmetrics.runs.wording.runs import total_usage as total
from pytest_ragmetrics.stats.intervals import mean_interval, whole_clusters
from pytest_ragmetrics.stats.scores import common_scale, score_set

#: Version of the shape of a file.
VERSION: Literal[1] = 1
#: How many runs are shown where nothing else is said.
SHOWN_RUNS = 30
_DIGITS = 12
_ORDER: Mapping[RecordOutcome, int] = {"failed": 0, "unscored": 1, "passed": 2, "measured": 3}

#: A score, its outcome, and what it had to be ("" where nothing was asserted).
ScorePoint = tuple[float | None, RecordOutcome, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricPoint(Judging):
    """A metric over one run: its mean with the 95 % interval, its counts, and what decides how it scores."""

    metric: str
    mean: float | None
    low: float | None
    high: float | None
    better: Direction
    n: int
    failing: int
    unscored: int
    vacuous: int
    cost: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GatePoint:
    """A gate in one run, as its :class:`~pytest_ragmetrics.runs.records.GateRecord` has it."""

    id: str
    metric: str
    statistic: Statistic
    value: float | None
    low: float | None
    high: float | None
    bound: float
    min_score: float | None
    better: Direction
    outcome: GateOutcome


@dataclass(frozen=True, kw_only=True, slots=True)
class TestPoint:
    """A test in one run; ``key`` is a digest of its ``id``, ``answer`` one of the answers and contexts it scored.

    Of several scores of one metric it is the worst.
    """

    __test__ = False  # for pytest, where a test module imports it

    key: str
    id: str
    outcome: Status
    answer: str
    scores: Mapping[str, ScorePoint]


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryRun:
    """One run of a history. ``commit`` ends in "+" where files were changed since, and is "" in no repository."""

    version: Literal[1] = VERSION
    time: str
    commit: str
    branch: str
    selection: str
    partial: str
    cost: float | None
    metrics: tuple[MetricPoint, ...]
    gates: tuple[GatePoint, ...]
    tests: tuple[TestPoint, ...]

    @property
    def label(self) -> str:
        """How a run is called: its time (UTC) and its commit."""
        return f"{self.time[:16].replace('T', ' ')} {self.commit[:7]}{self.commit[_DIGITS:]}".strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """The last runs of a branch, the oldest first, with the lines on files that were left out and on other branches."""

    runs: tuple[HistoryRun, ...]
    branch: str
    left_out: tuple[str, ...] = ()


class HistoryError(RagMetricsError):
    """A folder has no run that can be read."""


def history_run(document: Document) -> HistoryRun:
    """Return what a history keeps of a run."""
    run, records = document.run, [record for test in document.tests for record in test.records]
    unknown = judging_of(run, (record for record in records if record.metric not in run.judging), {})
    judging = {**unknown, **run.judging}
    dirty = "+" if run.commit.endswith("+") else ""
    return HistoryRun(
        time=run.started,
        commit=run.commit.removesuffix("+")[:_DIGITS] + dirty,
        branch=run.branch,
        selection=run.selection,
        partial=run.partial,
        cost=total(paid_records(document.tests)).cost,
        metrics=tuple(_metric_point(name, group, judging[name]) for name, group in by_metric(records).items()),
        gates=tuple(
            GatePoint(id=test.id, **{name: getattr(test.gate, name) for name in GatePoint.__slots__ if name != "id"})
            for test in document.tests
            if test.gate is not None and test.gate.outcome != "skipped"
        ),
        tests=tuple(_test_point(test) for test in document.tests),
    )


def _metric_point(name: str, records: Sequence[Record], judging: Judging) -> MetricPoint:
    found, counts = score_set(records), tally(name, records)
    low = high = None
    if found.scores:
        clusters = whole_clusters(cluster_of(record.sample) for record in found.counted)
        interval = mean_interval(found.scores, clusters=clusters, bounds=common_scale(found.counted))
        if math.isfinite(interval.half_width):
            low, high = round(interval.low, 6), round(interval.high, 6)
    first = next((record for record in records if record.score is not None), records[0])
    return MetricPoint(
        metric=name,
        judge=judging.judge,
        prompts=judging.prompts,
        definition=judging.definition,
        mean=counts.mean,
        low=low,
        high=high,
        better=first.better,
        n=counts.n,
        failing=counts.failing,
        unscored=counts.unscored,
        vacuous=counts.vacuous,
        cost=total(records).cost,
    )


def _test_point(test: TestRecord) -> TestPoint:
    worst = {
        metric: min(records, key=lambda record: (_ORDER[record.outcome], margin(record)))
        for metric, records in by_metric(test.records).items()
    }
    shown = [(record.sample.response, record.sample.retrieved_contexts) for record in test.records]
    return TestPoint(
        key=digest(test.id),
        id=test.id,
        outcome=status_of(test),
        answer=digest(repr(sorted(set(map(repr, shown))))) if shown else "",
        scores={
            metric: (
                None if record.score is None else round(record.score, 6),
                record.outcome,
                "" if record.threshold is None else threshold_text(record.threshold),
            )
            for metric, record in worst.items()
        },
    )


def write_history(folder: Path, run: HistoryRun) -> Path:
    """Write a run into the folder of a history and return the file; raises ``OSError``."""
    stamp = re.sub(r"[^0-9TZ]", "", run.time.replace("+00:00", "Z"))
    file = folder / f"{stamp}-{secrets.token_hex(6)}.json"
    data = dump(run)
    tests = ",\n".join(json.dumps(test, allow_nan=False) for test in data.pop("tests"))
    write_atomically(file, f'{json.dumps(data, allow_nan=False)[:-1]}, "tests": [\n{tests}\n]}}\n')
    return file


def history_of(document: Document, folder: Path, *, last: int = SHOWN_RUNS) -> History:
    """Return the last runs on the branch of a run, of which it is the latest, whether or not its file is in the folder.

    Before the first run of a branch, as of a pull request, come those of the branch that ran last.
    """
    run, found = history_run(document), None
    for branch in (run.branch, None):
        with suppress(HistoryError):
            found = found or read_history(folder, last=last + 1, branch=branch, until=run.time)
    if found is None:
        return History(runs=(run,), branch=run.branch)
    before = [it for it in found.runs if (_second(it.time), it.commit) != (_second(run.time), run.commit)]
    return History(runs=(*before[max(0, len(before) + 1 - last) :], run), branch=found.branch)


def _second(time: str) -> str:
    """Return a time without its zone, which is UTC in all ways to write it."""
    return time[:19]


def read_history(folder: Path, *, last: int, branch: str | None = None, until: str | None = None) -> History:
    """Return the last runs in a folder on a branch, by default that of the latest run, none that started after a time.

    Files that are no runs are left out by name. Raises :class:`HistoryError` where there is no run to show.
    """
    runs: list[HistoryRun] = []
    left_out: list[str] = []
    elsewhere = 0
    for file in _latest_first(folder):
        if branch is not None and _branch_of(file) not in (None, branch):
            elsewhere += 1
            continue
        try:
            run = _read(file)
        except (OSError, ValueError) as error:
            left_out.append(f"{file.name}: left out, {getattr(error, 'strerror', None) or error}")
            continue
        if until is not None and _second(run.time) > _second(until):
            continue
        branch = run.branch if branch is None else branch
        if run.branch != branch:
            elsewhere += 1
        elif len(runs) < last:
            runs.append(run)
        if len(runs) == last:
            break
    if not runs:
        where = f" of branch {branch!r}" if branch is not None else ""
        raise HistoryError("\n".join([f"{folder}: no run{where}; pytest --rag-history={folder} writes one", *left_out]))
    if elsewhere:
        left_out.append(f"{counted(elsewhere, 'run')} of other branches left out; --branch=NAME shows another one")
    runs.sort(key=lambda run: run.time)
    return History(runs=tuple(runs), branch=branch or "", left_out=tuple(left_out))


def _latest_first(folder: Path) -> list[Path]:
    try:
        return sorted((file for file in folder.iterdir() if not file.name.startswith(".")), reverse=True)
    except OSError as error:
        raise HistoryError(f"{folder}: {error.strerror}; give the folder of --rag-history") from error


def _branch_of(file: Path) -> str | None:
    """Return the branch in the first line of a file, which has all but the tests; ``None`` if it has another form."""
    with suppress(OSError, ValueError, AttributeError):
        with file.open("rb") as stream:
            branch = json.loads(stream.readline() + b"]}").get("branch")
        return branch if isinstance(branch, str) else None
    return None


def _read(file: Path) -> HistoryRun:
    """Return the run in a file; raise ``ValueError`` that says what is wrong with it."""
    if file.suffix != ".json":
        raise ValueError("not a file of --rag-history")
    try:
        data = read_json(file)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(data, dict) or not {"version", "selection"} <= data.keys():
        raise ValueError("not a file of --rag-history")
    if data["version"] != VERSION:
        raise ValueError(f"it is of version {data['version']!r:.20}, and this release reads version {VERSION}")
    try:
        return load(HistoryRun, data)
    except CodecError as error:
        raise ValueError(str(error)) from error
