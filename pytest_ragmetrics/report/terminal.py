"""The summary at the end of a run: a line per metric, and where the files are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from pytest_ragmetrics.comparison import RunComparison
    from pytest_ragmetrics.records import Document, Record
    from pytest_ragmetrics.settings import Settings

#: The local judge is a heuristic, and every mention of it says so.
_LABELS = {"local": "local (heuristic)"}


def header(settings: Settings) -> str:
    """Return the one line at the start of a run: judge, embedder, cache."""
    judge, embedder = (_LABELS.get(spec, spec) for spec in (settings.judge, settings.embedder))
    dry = ", dry run: nothing is asked" if settings.dry_run else ""
    return f"ragmetrics: judge {judge}, embedder {embedder}, cache {settings.cache}{dry}"


def write_summary(
    reporter: pytest.TerminalReporter,
    document: Document,
    notes: Sequence[str],
    *,
    comparison: RunComparison | None = None,
) -> None:
    """Write the table of metrics, the gates, the changes and the notes; nothing, not even a heading, without any."""
    lines = [*_found(document, comparison), *notes]
    if lines:
        reporter.section("RAG metrics", sep="=")
    for line in lines:
        reporter.write_line(line)


def _found(document: Document, comparison: RunComparison | None) -> Iterator[str]:
    """Yield the lines on scores and gates; ``explain`` is imported only if there are some, to keep start-up short."""
    records = [record for row in document.tests for record in row.records]
    if records:
        yield from _table(records)
    yield from _gates(document)
    if records:
        yield from (*_costs(records), *_judges(records), *_flaky(document))
    if records and comparison is not None:
        from pytest_ragmetrics.explain.runs import change_lines

        yield from change_lines(comparison)


def _table(records: Sequence[Record]) -> list[str]:
    from pytest_ragmetrics.explain.runs import TALLY_HEAD, checked_lines, tallies

    found = tallies(records)
    rows = [TALLY_HEAD, *(tally.cells for tally in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(TALLY_HEAD))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    return [*lines, *checked_lines(found)]


def _gates(document: Document) -> Iterator[str]:
    gated = [(row.gate, row.id) for row in document.tests if row.gate is not None]
    if gated:
        from pytest_ragmetrics.explain.phrases import named
        from pytest_ragmetrics.explain.runs import gate_line

        yield from (f"gate: {gate_line(gate)}, {named(test)}" for gate, test in gated)


def _flaky(document: Document) -> list[str]:
    from pytest_ragmetrics.explain.runs import flaky_lines

    return flaky_lines(document.tests)


def _costs(records: Sequence[Record]) -> list[str]:
    """Return the line on calls, tokens and cost; nothing without calls."""
    rows = [record.usage for record in records]
    calls, cached = sum(usage.calls for usage in rows), sum(usage.cached_calls for usage in rows)
    if not calls + cached:
        return []
    tokens = sum(usage.prompt_tokens + usage.completion_tokens for usage in rows)
    cost, saved = _money([usage.cost for usage in rows]), _money([usage.saved for usage in rows])
    return [f"judge calls: {calls} made ({tokens} tokens, {cost}), {cached} saved by the cache ({saved})"]


def _money(amounts: Sequence[float | None]) -> str:
    known = sum(amount for amount in amounts if amount is not None)
    unknown = sum(amount is None for amount in amounts)
    if unknown == len(amounts) or (unknown and not known):
        return "price unknown"
    return f"${known:.4f}" + (f" and {unknown} of unknown price" if unknown else "")


def _judges(records: Sequence[Record]) -> list[str]:
    from pytest_ragmetrics.explain.runs import judges_of

    names = judges_of(records)
    return [f"judged by: {', '.join(names)}"] if names else []
