"""The first screen of a report: how it came out in one sentence, what to look at, and each metric in a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_ragmetrics.comparison import RunComparison
from pytest_ragmetrics.explain.phrases import counted, duration_text, usage_text
from pytest_ragmetrics.explain.runs import STATUSES, WORDS, Status, headline, is_cut_short, judges_of, total_usage
from pytest_ragmetrics.records import Document, Record, RunRecord
from pytest_ragmetrics.report.page.changes import ChangesView, lay_out_changes
from pytest_ragmetrics.report.page.entries import Flag, TestView
from pytest_ragmetrics.report.page.gates import GateView
from pytest_ragmetrics.report.page.metric_lines import MetricLine, metric_lines

_TILES: tuple[Status, ...] = ("failed", "error", "unscored", "passed")
_FLAGGED: Mapping[Flag, str] = {
    "flaky": "votes on both sides of the threshold",
    "suspicious": "a verdict its evidence does not bear out",
}
_EXITS = ("all passed", "tests failed", "interrupted", "internal error", "usage error", "no tests")
#: How many metrics a tile names.
_NAMED = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A number that matters; ``query`` shows the tests behind it, ``anchor`` is the first of them."""

    figure: str
    label: str
    notes: tuple[str, ...]
    kind: str
    query: Mapping[str, str]
    anchor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """What a reader sees first, and the facts of the run at the end."""

    headline: str
    judges: tuple[str, ...]
    warnings: tuple[str, ...]
    tiles: tuple[Tile, ...]
    others: tuple[Tile, ...]
    bill: tuple[Tile, ...]
    gates: tuple[tuple[str, GateView], ...]
    changes: ChangesView | None
    metrics: tuple[MetricLine, ...]
    facts: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def build_overview(
    document: Document, entries: Sequence[TestView], comparison: RunComparison | None = None
) -> Overview:
    """Return the overview of a document whose tests are these entries."""
    run = document.run
    records = [record for test in document.tests for record in test.records]
    tiles = {status: _status_tile(status, entries) for status in STATUSES}
    return Overview(
        headline=headline(Counter(entry.status for entry in entries), cut_short=is_cut_short(run)),
        judges=tuple(judges_of(records)),
        warnings=tuple(_warnings(run, records)),
        tiles=(
            *(tiles[status] for status in _TILES if tiles[status].anchor or status != "error"),
            *_flag_tiles(entries),
        ),
        bill=tuple(_bill(run, records, entries)),
        others=tuple(tile for status, tile in tiles.items() if status not in _TILES and tile.anchor),
        gates=tuple((entry.anchor, entry.gate) for entry in entries if entry.gate),
        changes=lay_out_changes(comparison, entries) if comparison else None,
        metrics=metric_lines(records, entries, comparison),
        facts=tuple(_facts(run, records, entries)),
        settings=tuple((name, _setting(value)) for name, value in sorted(run.settings.items())),
        notes=tuple(run.notes),
    )


def _status_tile(status: Status, entries: Sequence[TestView]) -> Tile:
    counted_entries = [entry for entry in entries if entry.status == status]
    return Tile(
        figure=f"{len(counted_entries):,}",
        label=WORDS[status] if status != "error" or len(counted_entries) == 1 else "errors",
        notes=tuple(_blame(counted_entries, status)),
        kind=status,
        query={"outcome": status},
        anchor=_first(counted_entries),
    )


def _blame(entries: Sequence[TestView], status: Status) -> Iterator[str]:
    """Yield the metrics that made the tests come out so, the most frequent first."""
    outcome = {"failed": "failed", "unscored": "unscored"}.get(status)
    blamed = Counter(m for entry in entries for m in {c.metric for c in entry.chips if c.outcome == outcome})
    for metric, number in sorted(blamed.items(), key=lambda item: (-item[1], item[0]))[:_NAMED]:
        yield f"{number:,} {metric}"
    if len(blamed) > _NAMED:
        yield f"{counted(len(blamed) - _NAMED, 'more metric')}"


def _flag_tiles(entries: Sequence[TestView]) -> Iterator[Tile]:
    for flag, note in _FLAGGED.items():
        flagged = [entry for entry in entries if flag in entry.flags]
        if flagged:
            figure, query = f"{len(flagged):,}", {"mark": flag}
            yield Tile(figure=figure, label=flag, notes=(note,), kind=flag, query=query, anchor=_first(flagged))


def _bill(run: RunRecord, records: Sequence[Record], entries: Sequence[TestView]) -> Iterator[Tile]:
    """Yield what the run took; behind it are the dearest and the slowest tests."""
    if usage := usage_text(total_usage(records)):
        dearest = sorted(entries, key=lambda entry: (-entry.cost, -entry.tokens))
        query = {"sort": "dearest"}
        yield Tile(figure=usage, label="dearest first", notes=(), kind="cost", query=query, anchor=_first(dearest))
    slowest = sorted(entries, key=lambda entry: -entry.duration)
    took, query = duration_text(run.duration), {"sort": "slowest"}
    yield Tile(figure=took, label="slowest first", notes=(), kind="time", query=query, anchor=_first(slowest))


def _first(entries: Sequence[TestView]) -> str | None:
    return entries[0].anchor if entries else None


def _warnings(run: RunRecord, records: Sequence[Record]) -> Iterator[str]:
    if is_cut_short(run):
        reason = _exit_text(run.exit_status)
        yield f"The run stopped early ({reason}). Tests that had not run by then are missing here."
    for judge in judges_of(records):
        if "heuristic" in judge:
            yield f"Scored by {judge}, not by a model: good for trying things out, no measure of real answers."


def _facts(run: RunRecord, records: Sequence[Record], entries: Sequence[TestView]) -> Iterator[tuple[str, str]]:
    yield "Started", _started(run)
    yield "Took", duration_text(run.duration)
    yield "Exit status", f"{run.exit_status} ({_exit_text(run.exit_status)})"
    if scores := [record.metric for record in records if record.score is not None]:
        tests = sum(any(chip.value is not None for chip in entry.chips) for entry in entries)
        several = f"{counted(len(scores), 'score')} of {counted(len(set(scores)), 'metric')}"
        yield "Scored", f"{several} in {counted(tests, 'test')}"
    if judges := judges_of(records):
        yield "Judge", ", ".join(judges)
    if usage := usage_text(total_usage(records)):
        yield "Judging", usage
    yield "Made with", f"ragmetrics {run.ragmetrics}, pytest {run.pytest}, Python {run.python}"


def _started(run: RunRecord) -> str:
    return run.started.replace("T", " ").replace("+00:00", " UTC").replace("Z", " UTC")


def _setting(value: object) -> str:
    if value is None:
        return "not set"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _exit_text(status: int) -> str:
    return _EXITS[status] if 0 <= status < len(_EXITS) else "unknown"
