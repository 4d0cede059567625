"""The summary at the end of a run: a line per metric, and where the files are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from pytest_ragmetrics.core.result import Usage
    from pytest_ragmetrics.runs.compare import RunComparison
    from pytest_ragmetrics.runs.records import Document


def write_summary(
    reporter: pytest.TerminalReporter,
    document: Document,
    notes: Sequence[str],
    *,
    comparison: RunComparison | None = None,
) -> None:
    """Write the table of metrics, the gates, changes, warnings and notes; nothing, not even a heading, without any."""
    lines = [*_found(document, comparison), *(f"warning: {text}" for text in document.run.warnings), *notes]
    if not lines:
        return
    from pytest_ragmetrics.text.unicode import printable_lines  # not at start-up

    reporter.write_sep("=", "RAG metrics")
    for line in lines:
        reporter.write_line(printable_lines(line))


def _found(document: Document, comparison: RunComparison | None) -> Iterator[str]:
    """Yield the lines on scores and gates; their wording is imported only if there are some: start-up stays short."""
    records = [record for row in document.tests for record in row.records]
    gated = [(row.gate, row.id) for row in document.tests if row.gate is not None]
    paid = [record for row in document.tests for record in (*row.records, *row.calibration)]
    if not (paid or gated):
        return
    from pytest_ragmetrics.runs.wording import comparisons, runs
    from pytest_ragmetrics.runs.wording.figures import named, text_table

    if records:
        found = runs.tallies(document)
        yield from text_table([runs.TALLY_HEAD, *(tally.cells for tally in found)])
        yield from runs.checked_lines(found)
    yield from (f"gate: {runs.gate_line(gate)}, {named(test)}" for gate, test in gated)
    yield from runs.beside_lines(document.tests)
    if paid:
        yield from cost_lines(runs.paid_usages(document))
        yield from runs.conversation_costs(records)
        if judges := runs.judges_of(records):
            yield f"judged by: {', '.join(judges)}"
        yield from runs.flaky_lines(document.tests)
    if records and comparison is not None:
        yield from comparisons.change_lines(comparison)


def cost_lines(rows: Sequence[Usage]) -> list[str]:
    """Return the line on calls, tokens and cost; nothing where nothing was asked."""
    from pytest_ragmetrics.core.result import Usage
    from pytest_ragmetrics.runs.wording.figures import money_text, provider_parts

    total = sum(rows, Usage())
    calls, cached = total.calls, total.cached_calls
    cost, saved = money_text(usage.cost for usage in rows), money_text(usage.saved for usage in rows)
    if not calls + cached:
        return [f"embedder: {total.embedding_tokens:,} tokens embedded ({cost})"] if total.embedding_tokens else []
    spent = ", ".join([f"{total.prompt_tokens + total.completion_tokens:,} tokens", *provider_parts(total), cost])
    return [f"judge calls: {calls:,} made ({spent}), {cached:,} saved by the cache ({saved})"]
