"""The first screen of a report: how it came out in one sentence, what to look at, and each metric in a line."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pytest_ragmetrics.report.page.distribution import Distribution, distribute, mean_text
from pytest_ragmetrics.report.page.entries import STATUSES, Entry, Status
from pytest_ragmetrics.report.page.figures import counted, duration_text, score_text, threshold_text, usage_text
from pytest_ragmetrics.report.records import Document, Record, RecordOutcome, RunRow
from pytest_ragmetrics.result import Usage

#: What the tests of a status did, for one and for several.
_DID: Mapping[Status, tuple[str, str]] = {
    "failed": ("fell short", "fell short"),
    "error": ("broke off with an error", "broke off with an error"),
    "unscored": ("could not be scored", "could not be scored"),
    "xpassed": ("passed against expectation", "passed against expectation"),
    "xfailed": ("fell short as expected", "fell short as expected"),
    "passed": ("passed", "passed"),
    "skipped": ("was skipped", "were skipped"),
}
#: The statuses as labels.
WORDS: Mapping[Status, str] = {
    "failed": "failed",
    "error": "error",
    "unscored": "unscored",
    "xpassed": "passed unexpectedly",
    "xfailed": "failed as expected",
    "passed": "passed",
    "skipped": "skipped",
}
_WRONG: tuple[Status, ...] = ("failed", "error", "unscored")
_FINE: tuple[Status, ...] = ("passed", "xpassed", "xfailed", "skipped")
_TILES: tuple[Status, ...] = ("failed", "error", "unscored", "passed")
_EXITS = ("all passed", "tests failed", "interrupted", "internal error", "usage error", "no tests")
_CUT_SHORT = (2, 3)
#: How many metrics a tile names.
_NAMED = 2
_NONE = "\u2013"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A number that matters; ``query`` shows the tests it counts, ``anchor`` is the first of them."""

    count: int
    label: str
    note: str
    status: Status | None
    query: Mapping[str, str]
    anchor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricLine:
    """A metric over all tests; counts come with the anchor of the first test they count."""

    name: str
    needs: tuple[str, ...]
    number: int
    mean: str
    lowest: str
    failing: int
    first_failing: str | None
    unscored: int
    first_unscored: str | None
    distribution: Distribution | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """What a reader sees first."""

    headline: str
    warnings: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    tiles: tuple[Tile, ...]
    others: tuple[Tile, ...]
    metrics: tuple[MetricLine, ...]


def look_over(document: Document, entries: Sequence[Entry]) -> Overview:
    """Return the overview of a document whose tests are these entries."""
    records = [record for test in document["tests"] for record in test["records"]]
    tiles = [_status_tile(status, entries) for status in STATUSES]
    return Overview(
        headline=headline(Counter(entry.status for entry in entries)),
        warnings=tuple(_warnings(document["run"], records)),
        facts=tuple(_facts(document["run"], records)),
        tiles=(
            *(tile for tile in tiles if tile.status in _TILES and (tile.count or tile.status != "error")),
            _scored_tile(entries),
        ),
        others=tuple(tile for tile in tiles if tile.status not in _TILES and tile.count),
        metrics=tuple(_metric_lines(records, entries)),
    )


def headline(counts: Mapping[Status, int]) -> str:
    """Return the outcome of a run in one sentence.

    >>> headline({"failed": 3, "passed": 23, "unscored": 1})
    '3 of 27 tests fell short, 1 could not be scored'
    >>> headline({"passed": 12, "skipped": 1})
    'No test fell short: 12 passed, 1 was skipped'
    """
    total = sum(counts.values())
    if not total:
        return "No test was recorded"
    wrong = [status for status in _WRONG if counts.get(status)]
    if wrong:
        first, *others = wrong
        start = f"{counts[first]:,} of {counted(total, 'test')} {_did(first, counts[first])}"
        return ", ".join([start, *(f"{counts[status]:,} {_did(status, counts[status])}" for status in others)])
    if counts.get("passed", 0) == total:
        return f"All {total:,} tests passed" if total > 1 else "The test passed"
    told = [status for status in _FINE if counts.get(status)]
    return "No test fell short: " + ", ".join(f"{counts[status]:,} {_did(status, counts[status])}" for status in told)


def _did(status: Status, number: int) -> str:
    return _DID[status][number != 1]


def _status_tile(status: Status, entries: Sequence[Entry]) -> Tile:
    counted_entries = [entry for entry in entries if entry.status == status]
    return Tile(
        count=len(counted_entries),
        label=WORDS[status] if status != "error" or len(counted_entries) == 1 else "errors",
        note=", ".join(_blame(counted_entries, status)),
        status=status,
        query={"outcome": status},
        anchor=_first(counted_entries),
    )


def _blame(entries: Sequence[Entry], status: Status) -> Iterator[str]:
    """Yield the metrics that made the tests come out so, the most frequent first."""
    outcome = {"failed": "failed", "unscored": "unscored"}.get(status)
    blamed = Counter(m for entry in entries for m in {c.metric for c in entry.chips if c.outcome == outcome})
    for metric, number in sorted(blamed.items(), key=lambda item: (-item[1], item[0]))[:_NAMED]:
        yield f"{metric} {number:,}"
    if len(blamed) > _NAMED:
        yield f"{counted(len(blamed) - _NAMED, 'more metric')}"


def _scored_tile(entries: Sequence[Entry]) -> Tile:
    scored = [entry for entry in entries if any(chip.value is not None for chip in entry.chips)]
    scores = [chip.metric for entry in scored for chip in entry.chips if chip.value is not None]
    note = f"{counted(len(scores), 'score')} of {counted(len(set(scores)), 'metric')}" if scores else ""
    return Tile(
        count=len(scored),
        label="with scores",
        note=note,
        status=None,
        query={"outcome": "scored"},
        anchor=_first(scored),
    )


def _first(entries: Sequence[Entry]) -> str | None:
    return entries[0].anchor if entries else None


def _metric_lines(records: Sequence[Record], entries: Sequence[Entry]) -> Iterator[MetricLine]:
    by_metric: dict[str, list[Record]] = {}
    for record in records:
        by_metric.setdefault(record["metric"], []).append(record)
    lines = [_metric_line(name, group, entries) for name, group in by_metric.items()]
    yield from sorted(lines, key=lambda line: (-line.failing, -line.unscored, line.name))


def _metric_line(name: str, records: Sequence[Record], entries: Sequence[Entry]) -> MetricLine:
    scores = [(r["score"], r["outcome"] == "failed") for r in records if r["score"] is not None]
    values = [score for score, _ in scores]
    thresholds = sorted({(t["bound"], t["operator"]): t for r in records if (t := r["threshold"])}.items())
    return MetricLine(
        name=name,
        needs=tuple(threshold_text(threshold) for _, threshold in thresholds),
        number=len(records),
        mean=mean_text(sum(values) / len(values)) if values else _NONE,
        lowest=score_text(min(values)) if values else _NONE,
        failing=sum(record["outcome"] == "failed" for record in records),
        first_failing=_first_with(name, "failed", entries),
        unscored=sum(record["outcome"] == "unscored" for record in records),
        first_unscored=_first_with(name, "unscored", entries),
        distribution=distribute(scores, [bound for (bound, _), _ in thresholds]),
    )


def _first_with(metric: str, outcome: RecordOutcome, entries: Sequence[Entry]) -> str | None:
    return _first([e for e in entries if any(c.metric == metric and c.outcome == outcome for c in e.chips)])


def _warnings(run: RunRow, records: Sequence[Record]) -> Iterator[str]:
    if run["exit_status"] in _CUT_SHORT:
        reason = _exit_text(run["exit_status"])
        yield f"The run stopped early ({reason}). Tests that had not run by then are missing here."
    for judge in _judges(records):
        if "heuristic" in judge:
            yield f"Scored by {judge}, not by a model: good for trying things out, no measure of real answers."


def _facts(run: RunRow, records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    yield "Started", run["started"].replace("T", " ").replace("+00:00", " UTC")
    yield "Took", duration_text(run["duration"])
    yield "Exit status", f"{run['exit_status']} ({_exit_text(run['exit_status'])})"
    if judges := _judges(records):
        yield "Judge", ", ".join(judges)
    if usage := usage_text(reduce(operator.add, (Usage(**record["usage"]) for record in records), Usage())):
        yield "Judging", usage
    yield "Made with", f"ragmetrics {run['ragmetrics']}, pytest {run['pytest']}, Python {run['python']}"


def _exit_text(status: int) -> str:
    return _EXITS[status] if 0 <= status < len(_EXITS) else "unknown"


def _judges(records: Sequence[Record]) -> list[str]:
    return sorted({record["judge"] for record in records if record["judge"]})
