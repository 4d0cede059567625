"""The history of runs: one small JSON file a run in a folder, written at its end and read to draw trends.

A file has no answers and no evidence, and no path outside of the project, so that it can be committed. Its name begins
with the time and ends by chance: names sort by time, and files of branches never meet in a merge.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from pytest_ragmetrics.core.codec import CodecError, dump, load
from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.core.files import read_json, write_atomically
from pytest_ragmetrics.core.result import Direction, Usage
from pytest_ragmetrics.core.sample import answer_of
from pytest_ragmetrics.judges.rendering import PromptBook, prompt_digest
from pytest_ragmetrics.metrics.base import digest
from pytest_ragmetrics.report.judging import judging_of
from pytest_ragmetrics.runs.compare import cluster_of, question_digest
from pytest_ragmetrics.runs.records import (
    Document,
    GateRecord,
    Judging,
    Record,
    RecordOutcome,
    RunRecord,
    SentinelRecord,
    TestRecord,
    function_name,
)
from pytest_ragmetrics.runs.wording.figures import counted, threshold_text
from pytest_ragmetrics.runs.wording.runs import (
    MetricTally,
    Status,
    badness,
    by_metric,
    paid_usages,
    status_of,
    tally,
)
from pytest_ragmetrics.stats.intervals import mean_interval, whole_clusters
from pytest_ragmetrics.stats.scores import common_scale, score_set

#: Version of the shape of a file.
VERSION: Literal[2] = 2
#: How many runs are shown where nothing else is said.
SHOWN_RUNS = 30
_DIGITS = 12
#: How the line ends that counts the runs of other branches.
ELSEWHERE = "; --branch=NAME shows another one"
# What a history does not keep of a run: texts, and what names a person or a machine.
_NOT_KEPT: Mapping[str, Any] = dict.fromkeys(
    ("project", "message", "author", "ci", "ci_number", "repository", "folder"), ""
) | {"settings": {}, "skipped": {}, "not_needed": {}, "notes": (), "warnings": (), "mutants": ()}

#: A score, its outcome, and what it had to be ("" where nothing was asserted).
ScorePoint = tuple[float | None, RecordOutcome, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricPoint(MetricTally):
    """A metric over one run with the 95 % interval of its mean, which takes too long to be found again."""

    low: float | None
    high: float | None
    cost: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RowPoint:
    """A sample that a test scored: its ``id``, a digest of its ``question``, and which ``answer`` to its row it is.

    ``id`` is ``None`` where it is in the brackets of the test, "" where it has none. ``scores`` are those of the test
    where there are none; ``vacuous`` names those that had nothing to check.
    """

    id: str | None = None
    question: str = ""
    answer: int | None = None
    vacuous: tuple[str, ...] = ()
    scores: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What made the scores of a metric, of some ``functions`` or of all others: the fields of their records."""

    metric: str
    judge: str | None
    rule: str | None
    better: Direction
    noun: str
    scale: tuple[float, float] | None
    functions: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TestPoint:
    """A test in one run; ``answer`` is a digest of the answers and contexts it scored.

    Of several scores of one metric it is the worst; the ``rows``, which files of early versions lack, have each.
    Records instead, even those without texts, would make a file twice as large and the time to read it eight times as
    long.
    """

    __test__ = False  # for pytest, where a test module imports it

    id: str
    outcome: Status
    answer: str
    scores: Mapping[str, ScorePoint]
    rows: tuple[RowPoint, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryRun:
    """One run of a history; ``gates`` are by the id of their test.

    The ``commit`` of the ``run`` is short. It ends in "+" where files were changed since, and is "" in no repository.
    """

    version: Literal[2] = VERSION
    run: RunRecord
    cost: float | None
    metrics: tuple[MetricPoint, ...]
    gates: Mapping[str, GateRecord]
    tests: tuple[TestPoint, ...]
    rules: tuple[Rule, ...] = ()

    @property
    def label(self) -> str:
        """How a run is called: its time (UTC) and its commit."""
        commit = self.run.commit
        return f"{self.run.started[:16].replace('T', ' ')} {commit[:7]}{commit[_DIGITS:]}".strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """The last runs of a branch, the oldest first, with the lines on files that were left out and on other branches."""

    runs: tuple[HistoryRun, ...]
    branch: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _PastRun:
    """What of an earlier run counts for its sentinels."""

    partial: str = ""
    judging: Mapping[str, Judging]
    sentinels: Mapping[str, SentinelRecord]


class HistoryError(RagMetricsError):
    """A folder has no run that can be read."""


def history_run(document: Document) -> HistoryRun:
    """Return what a history keeps of a run."""
    run, groups = document.run, by_metric(record for test in document.tests for record in test.records)
    gates = ((test.id, test.gate) for test in document.tests)
    unknown = [record for name, group in groups.items() if name not in run.judging for record in group]
    judging = {**judging_of(run, unknown, {}), **run.judging}
    commit = run.commit.removesuffix("+")[:_DIGITS] + ("+" if run.commit.endswith("+") else "")
    return HistoryRun(
        run=replace(run, **_NOT_KEPT, commit=commit, judging={name: judging[name] for name in groups}),
        cost=sum(paid_usages(document), Usage()).cost,
        metrics=tuple(_metric_point(name, group) for name, group in groups.items()),
        # A regression gate, which is skipped before the first run, says how many tests its set has.
        gates={key: it for key, it in gates if it and (it.outcome != "skipped" or it.regression)},
        tests=tuple(map(_test_point, document.tests)),
        rules=_rules(document.tests),
    )


def _rules(tests: Iterable[TestRecord]) -> tuple[Rule, ...]:
    """Return what made the scores of each metric: that of the most functions, and of which functions another one is."""
    records: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
    for test in tests:
        for record in test.records:
            if record.score is not None:
                records[record.metric, function_name(test.id)].append(record)
    functions: defaultdict[str, defaultdict[Rule, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (metric, function), found in records.items():
        # What differs in one function is equal to nothing.
        judge, rule = (
            ", ".join(sorted({text for text in texts if text})) or None
            for texts in ([it.judge for it in found], [it.rule for it in found])
        )
        first: dict[str, Any] = {name: getattr(found[0], name) for name in ("better", "noun", "scale", "unit")}
        made = Rule(metric=metric, judge=judge, rule=rule, **first)
        functions[metric][made].append(function)
    ordered = (sorted(made.items(), key=lambda it: -len(it[1])) for made in functions.values())
    return tuple(
        replace(rule, functions=tuple(names) if at else ()) for made in ordered for at, (rule, names) in enumerate(made)
    )


def _metric_point(name: str, records: Sequence[Record]) -> MetricPoint:
    found, counts = score_set(records), tally(name, records)
    low = high = None
    if found.scores:
        clusters = whole_clusters(cluster_of(record.sample) for record in found.counted)
        interval = mean_interval(found.scores, clusters=clusters, bounds=common_scale(found.counted))
        if math.isfinite(interval.half_width):
            low, high = round(interval.low, 6), round(interval.high, 6)
    figures = {field.name: getattr(counts, field.name) for field in fields(counts)}
    return MetricPoint(**figures, low=low, high=high, cost=sum((it.usage for it in records), Usage()).cost)


def _test_point(test: TestRecord) -> TestPoint:
    worst = {metric: min(records, key=badness) for metric, records in by_metric(test.records).items()}
    shown = [(record.sample.response, record.sample.retrieved_contexts) for record in test.records]
    return TestPoint(
        id=test.id,
        outcome=status_of(test),
        answer=digest(repr(sorted(set(map(repr, shown))))) if shown else "",
        scores={
            metric: (
                record.score,
                record.outcome,
                "" if record.threshold is None else threshold_text(record.threshold, record.unit),
            )
            for metric, record in worst.items()
        },
        rows=tuple(_row_points(test)),
    )


def _row_points(test: TestRecord) -> Iterator[RowPoint]:
    groups: list[list[Record]] = []
    for record in test.records:
        known = groups[-1] if groups else []
        if not known or _row_of(known[0]) != _row_of(record) or record.metric in {it.metric for it in known}:
            groups.append(known := [])
        known.append(record)
    for group in groups:
        sample = group[0].sample
        yield RowPoint(
            id=None if (sample.id or "") == brackets(test.id) else sample.id or "",
            question=question_digest(sample.user_input).rpartition(" ")[2] if sample.user_input else "",
            answer=answer_of(sample),
            vacuous=tuple(record.metric for record in group if record.vacuous),
            scores={record.metric: record.score for record in group} if len(groups) > 1 else {},
        )


def _row_of(record: Record) -> tuple[str | None, str | None, int | None]:
    return record.sample.id, record.sample.user_input, answer_of(record.sample)


def brackets(test: str) -> str:
    """Return the text in the brackets of a test, "" if it has none."""
    return test.removeprefix(function_name(test))[1:-1]


def write_history(folder: Path, run: HistoryRun) -> Path:
    """Write a run into the folder of a history and return the file; raises ``OSError``."""
    stamp = re.sub(r"[^0-9TZ]", "", run.run.started.replace("+00:00", "Z"))
    file = folder / f"{stamp}-{secrets.token_hex(6)}.json"
    data, blank = dump(run), dump(RowPoint())
    for test in data["tests"]:
        test["rows"] = [{name: it for name, it in row.items() if it != blank[name]} for row in test["rows"]]
    tests = ",\n".join(json.dumps(test, allow_nan=False) for test in data.pop("tests"))
    write_atomically(file, f'{json.dumps(data, allow_nan=False)[:-1]}, "tests": [\n{tests}\n]}}\n')
    return file


def history_of(document: Document, folder: Path, *, last: int = SHOWN_RUNS) -> History:
    """Return the last runs on the branch of a run, of which it is the latest, whether or not its file is in the folder.

    Before the first run of a branch, as of a pull request, come those of the branch that ran last.
    """
    latest, found = history_run(document), None
    now = latest.run
    for branch in (now.branch, None):
        with suppress(HistoryError):
            found = found or read_history(folder, last=last + 1, branch=branch, until=now.started)
    if found is None:
        return History(runs=(latest,), branch=now.branch)
    itself = second(now.started), now.commit
    before = [it for it in found.runs if (second(it.run.started), it.run.commit) != itself]
    return History(runs=(*before[max(0, len(before) + 1 - last) :], latest), branch=found.branch)


def second(time: str) -> str:
    """Return a time without its zone, which is UTC in all ways to write it."""
    return time[:19]


def read_history(
    folder: Path,
    *,
    last: int,
    branch: str | None = None,
    until: str | None = None,
    counts: Callable[[HistoryRun], bool] = lambda _: True,
) -> History:
    """Return the last runs in a folder on a branch, by default that of the latest run, none that started after a time.

    Between them are the latest runs that do not count, no more than ``last`` of them.
    Files that are no runs are left out by name. Raises :class:`HistoryError` where there is no run to show.
    """
    runs: list[HistoryRun] = []
    left_out: list[str] = []
    taken: dict[bool, int] = {True: 0, False: 0}
    elsewhere = 0
    for file in _latest_first(folder):
        if branch is not None and _head(file).get("branch") not in (None, branch):
            elsewhere += 1
            continue
        try:
            run = _read(file)
        except (OSError, ValueError) as error:
            left_out.append(f"{file.name}: left out, {getattr(error, 'strerror', None) or error}")
            continue
        if until is not None and second(run.run.started) > second(until):
            continue
        branch = run.run.branch if branch is None else branch
        if run.run.branch != branch:
            elsewhere += 1
        elif taken[whether := counts(run)] < last:
            runs.append(run)
            taken[whether] += 1
        if taken[True] == last:
            break
    if not runs:
        where = f" of branch {branch!r}" if branch is not None else ""
        raise HistoryError("\n".join([f"{folder}: no run{where}; pytest --rag-history={folder} writes one", *left_out]))
    if elsewhere:
        left_out.append(f"{counted(elsewhere, 'run')} of other branches left out{ELSEWHERE}")
    runs.sort(key=lambda run: run.run.started)
    return History(runs=tuple(runs), branch=branch or "", left_out=tuple(left_out))


def _latest_first(folder: Path) -> list[Path]:
    try:
        return sorted((file for file in folder.iterdir() if not file.name.startswith(".")), reverse=True)
    except OSError as error:
        raise HistoryError(f"{folder}: {error.strerror}; give the folder of --rag-history") from error


def _head(file: Path) -> Mapping[str, Any]:
    """Return the run in the first line of a file, which has all but the tests; empty if it has another form."""
    with suppress(OSError, ValueError, AttributeError), file.open("rb") as stream:
        data = json.loads(stream.readline() + b"]}")
        found: Mapping[str, Any] = data.get("run", data)
        return found
    return {}


def past_sentinels(folder: Path, prompts: PromptBook) -> dict[str, list[tuple[int, float]]]:
    """Return how many stored answers each judge was asked again in the runs of all branches, and how many changed.

    The oldest run comes first. Those before a prompt changed are left out, and so are those before a whole run that
    found no stored answer of a judge: its answers were all made anew.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    ended: set[str] = set()
    with suppress(HistoryError):
        for file in _latest_first(folder):
            try:
                run = load(_PastRun, _head(file))
            except CodecError:
                continue
            digests = {task: it for judging in run.judging.values() for task, it in judging.prompts.items()}
            if any(it and prompt_digest(task, prompts) not in ("", it) for task, it in digests.items()):
                break
            for judge, it in run.sentinels.items():
                if not it.asked and not run.partial:
                    ended.add(judge)
                if it.asked and judge not in ended:
                    found.setdefault(judge, []).insert(0, (it.asked, it.changed))
    return found


def _read(file: Path) -> HistoryRun:
    """Return the run in a file; raise ``ValueError`` that says what is wrong with it."""
    if file.suffix != ".json":
        raise ValueError("not a file of --rag-history")
    try:
        data = read_json(file)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(data, dict) or not {"version", "metrics"} <= data.keys():
        raise ValueError("not a file of --rag-history")
    if data["version"] not in (1, VERSION):
        raise ValueError(f"it is of version {data['version']!r:.20}, and this release reads version {VERSION}")
    try:
        run = load(HistoryRun, data if data["version"] == VERSION else _upgraded(data))
    except (KeyError, TypeError) as error:
        raise ValueError("not a file of --rag-history") from error
    if lost := {point.metric for point in run.metrics} - run.run.judging.keys():
        raise ValueError(f"run.judging lacks {min(lost)}")
    return run


def _upgraded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a file of version 1 as of today's: it had fields of its own for a run and its gates."""
    run = {"duration": 0.0, "exit_status": 0, "settings": {}, "notes": [], "started": data["time"]}
    run |= dict.fromkeys(("python", "pytest", "ragmetrics"), "")
    run |= {name: data[name] for name in ("branch", "commit", "selection", "partial")}
    return {
        **data,
        "version": VERSION,
        "run": {**run, "judging": {it["metric"]: it for it in data["metrics"]}},
        "metrics": [{"lowest": None, **it} for it in data["metrics"]],
        "gates": {it["id"]: {"n": 0, "unscored": 0, "total": 0, **it} for it in data["gates"]},
    }
