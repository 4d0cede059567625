"""`ragmetrics report diff`: two runs against each other, or answers to the same rows in two or three columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ragmetrics.cli.command import (
    Arguments,
    CommandResult,
    Count,
    Number,
    argument,
    asking_options,
    budget_options,
    command,
    fitted,
    html_option,
    option,
)
from pytest_ragmetrics.core.errors import ArgumentError, RagMetricsError
from pytest_ragmetrics.core.files import write_atomically

if TYPE_CHECKING:
    from pytest_ragmetrics.report.columns import ComparedColumns, MetricColumns
    from pytest_ragmetrics.runs.blame import Blame
    from pytest_ragmetrics.runs.compare import MetricChange
    from pytest_ragmetrics.runs.records import Document


class NothingComparedError(RagMetricsError):
    """Two runs have no scores that can be compared."""


@command("diff")
@argument(
    "files RUN.json...",
    "two or three files of --rag-json or ragmetrics score, the oldest first",
)
@html_option(help="write a page of answers side by side")
@option("--by KEY", str, "compare values of a metadata key, such as model, in one file")
@option("--value V", str, "a value of --by, two or three times", multiple=True)
@option(
    "--fail-on-worse",
    help="exit with 1 if a score became worse or was lost, against the first file or value",
)
@option(
    "--blame",
    help="say of scores that became worse whether retriever, generator or judge made them so, with at most 4 "
    "judgements for each: the old answer is scored on the new passages and the other way round",
)
@option(
    "--blame-rows N", Count(1), "most scores that --blame looks at, the largest change first (default: 50)", default=50
)
@asking_options()
@budget_options(then=": scores that are left have no part to blame")
@option("--margin X", Number(0), "the allowed loss (default: 0)", default=0.0)
def diff(arguments: Arguments) -> CommandResult:
    """Compare two runs, or the answers of two or three."""
    from pytest_ragmetrics.evaluation.score_files import read_run
    from pytest_ragmetrics.report.columns import COLUMNS

    files: list[Path] = arguments.files
    if arguments.by is None and (len(files) not in COLUMNS or arguments.value):
        raise ArgumentError("give two or three files, or one with --by KEY to compare values of its metadata")
    if arguments.by is not None and len(files) > 1:
        raise ArgumentError(f"--by={arguments.by} compares values of one run: give one file")
    if arguments.blame and (arguments.by is not None or len(files) != COLUMNS[0]):
        raise ArgumentError("--blame compares two runs: give two files")
    runs = [read_run(file) for file in files]
    if arguments.blame:
        runs[1] = _blamed(arguments, *runs)
    compared = None if len(runs) == COLUMNS[0] else _compared(arguments, runs)
    lines, worse = _found(arguments, runs, compared)
    if arguments.html is not None:
        from pytest_ragmetrics.report.page import render_columns
        from pytest_ragmetrics.runs.wording.figures import counted

        compared = compared or _compared(arguments, runs)
        write_atomically(arguments.html, render_columns(compared))
        lines = [*lines, f"{arguments.html}: written, {counted(len(compared.rows), 'row')}"]
    return CommandResult(lines=fitted(lines), status=int(arguments.fail_on_worse and worse))


def _blamed(arguments: Arguments, base: Document, now: Document) -> Document:
    """Return a run with the parts that made its scores worse."""
    from pytest_ragmetrics.cli.cache import session_options
    from pytest_ragmetrics.core import loop
    from pytest_ragmetrics.evaluation.blame import blame_worse, with_blame
    from pytest_ragmetrics.evaluation.session import OwnSession
    from pytest_ragmetrics.judges.context import changed
    from pytest_ragmetrics.runs.compare import compare_documents

    found: dict[int, Blame] = {}
    options = {"budget": arguments.budget, **session_options(arguments, "report diff")}
    options |= {name: getattr(arguments, name) or "auto" for name in ("judge", "embedder")}
    comparison = compare_documents(now, base)
    with closing(arguments.budget), OwnSession(**options) as session, changed(private=session):
        loop.run(blame_worse(comparison, session, found, rows=arguments.blame_rows))
    return with_blame(now, found)


def _found(
    arguments: Arguments, runs: Sequence[Document], compared: ComparedColumns | None
) -> tuple[Sequence[str], bool]:
    """Return what the comparison says, and whether a score is lost or worse by more than the margin."""
    from pytest_ragmetrics.report.columns import column_lines, has_worse
    from pytest_ragmetrics.runs.compare import compare_documents
    from pytest_ragmetrics.runs.wording.comparisons import change_lines

    metrics: Sequence[MetricChange | MetricColumns]
    if compared is None:
        comparison = compare_documents(runs[1], runs[0])
        lines, metrics = change_lines(comparison, shown=None), comparison.metrics
        lost = any(-(it.change or 0.0) > arguments.margin for it in comparison.of("worse"))
        worse, files = lost or bool(comparison.of("unscored")), f"{' and '.join(map(str, arguments.files))} have"
    else:
        lines, metrics = column_lines(compared), compared.metrics
        worse, files = has_worse(compared, arguments.margin), "there are"
    if arguments.fail_on_worse and not any(metric.pairs for metric in metrics):
        raise NothingComparedError("\n".join([f"{files} no scores that can be compared", *lines]))
    for metric in metrics:
        _check_margin(arguments.margin, metric.metric)
    return lines, worse


def _compared(arguments: Arguments, runs: Sequence[Document]) -> ComparedColumns:
    from pytest_ragmetrics.report.columns import compare_runs, compare_values

    if arguments.by is not None:
        return compare_values(runs[0], arguments.by, arguments.value)
    # A column has the name of its file, or its path where two files have one name.
    stems = Counter(file.stem for file in arguments.files)
    names = [file.stem if stems[file.stem] == 1 else str(file) for file in arguments.files]
    return compare_runs(list(zip(names, runs, strict=True)))


def _check_margin(margin: float, metric: str) -> None:
    """Raise ``ArgumentError`` for a margin longer than the scale of a metric: no loss would be beyond it."""
    from pytest_ragmetrics.metrics.asserting import check_bound
    from pytest_ragmetrics.metrics.registry import scale_of

    low, high = scale_of(metric) or (-math.inf, math.inf)
    try:
        check_bound("--margin", margin, metric=metric, scale=(0.0, high - low))
    except ValueError as error:
        raise ArgumentError(str(error)) from error
