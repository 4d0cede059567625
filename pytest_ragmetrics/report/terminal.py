"""The summary at the end of a run: a line per metric, and where the files are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from pytest_ragmetrics.report.records import Document, Record
    from pytest_ragmetrics.settings import Settings

#: The judge that is a heuristic is never called anything else.
_LABELS = {"local": "local (heuristic)"}
_HEAD = ("metric", "n", "mean", "min", "failing", "unscored")


def header(settings: Settings) -> str:
    """Return the one line at the start of a run: judge, embedder, cache."""
    judge, embedder = (_LABELS.get(spec, spec) for spec in (settings.judge, settings.embedder))
    return f"ragmetrics: judge {judge}, embedder {embedder}, cache {settings.cache}"


def write_summary(reporter: pytest.TerminalReporter, document: Document, notes: Sequence[str]) -> None:
    """Write the table of metrics and the notes; nothing at all when there is neither."""
    records = [record for row in document["tests"] for record in row["records"]]
    if not records and not notes:
        return
    reporter.section("RAG metrics", sep="=")
    if records:
        for line in (*_table(records), *_costs(records), *_judges(records)):
            reporter.write_line(line)
    for note in notes:
        reporter.write_line(note)


def _table(records: Sequence[Record]) -> list[str]:
    names = sorted({record["metric"] for record in records})
    rows = [_HEAD, *(_row(name, [r for r in records if r["metric"] == name]) for name in names)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def _row(name: str, records: Sequence[Record]) -> tuple[str, ...]:
    scores = [record["score"] for record in records if record["score"] is not None]
    mean, lowest = (f"{sum(scores) / len(scores):.3f}", f"{min(scores):.3f}") if scores else ("-", "-")
    counts = [sum(record["outcome"] == outcome for record in records) for outcome in ("failed", "unscored")]
    return (name, str(len(records)), mean, lowest, *map(str, counts))


def _costs(records: Sequence[Record]) -> list[str]:
    """Return what judging took and what the cache saved; nothing where nothing was asked."""
    usages = [record["usage"] for record in records]
    calls, cached = sum(usage["calls"] for usage in usages), sum(usage["cached_calls"] for usage in usages)
    if not calls + cached:
        return []
    tokens = sum(usage["prompt_tokens"] + usage["completion_tokens"] for usage in usages)
    cost, saved = (_money([usage[name] for usage in usages]) for name in ("cost", "saved"))
    return [f"judge calls: {calls} made ({tokens} tokens, {cost}), {cached} saved by the cache ({saved})"]


def _money(amounts: Sequence[float | None]) -> str:
    known = sum(amount for amount in amounts if amount is not None)
    unknown = sum(amount is None for amount in amounts)
    if unknown == len(amounts) or (unknown and not known):
        return "price unknown"
    return f"${known:.4f}" + (f" and {unknown} of unknown price" if unknown else "")


def _judges(records: Sequence[Record]) -> list[str]:
    """Return who judged, which matters most where it was a heuristic."""
    names = sorted({name for record in records if record["judge"] for name in record["judge"].split(", ")})
    return [f"judged by: {', '.join(names)}"] if names else []
