"""`ragmetrics report`: pages, summaries and comparisons of files of ``--rag-json`` and of ``ragmetrics score``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from click import group

from pytest_ragmetrics.cli.command import (
    A_FOLDER,
    Arguments,
    Checked,
    CommandResult,
    Count,
    argument,
    command,
    fitted,
    html_option,
    option,
    output,
    terminal_width,
    together,
)
from pytest_ragmetrics.cli.diff import diff
from pytest_ragmetrics.core.errors import ArgumentError
from pytest_ragmetrics.core.files import write_atomically
from pytest_ragmetrics.text.unicode import printable

if TYPE_CHECKING:
    from pytest_ragmetrics.report.history import History
    from pytest_ragmetrics.runs.compare import RunComparison
    from pytest_ragmetrics.runs.records import Document
    from pytest_ragmetrics.runs.tables import Baseline


def _baseline(text: str) -> Path | str:
    from pytest_ragmetrics.plugin.settings import HISTORY, baseline_of

    return baseline_of(text, Path()) if text.startswith(HISTORY) else Path(text)


_FILES = together(
    argument("files RUN.json...", "files of --rag-json or ragmetrics score (.jsonl, .parquet)"),
    option(
        "--baseline FILE|history:N",
        Checked(_baseline),
        "the run to compare with, for regression gates of shards; history:5: the last 5 runs in --history",
    ),
    option("--history DIR", A_FOLDER, "folder of --rag-history, for the last 30 runs on a page, and for history:N"),
)
_TEXT = option("-o, --output FILE", output(), "the file to write (default: standard output)")


@group("report", no_args_is_help=False)
def run() -> None:
    """Make pages, summaries and comparisons of runs."""


@run.add_command
@command("html")
@_FILES
@option("-o, --output FILE.html", output(".html"), "the page to write", default="rag-report.html")
def _html(arguments: Arguments) -> list[str]:
    """Write an HTML page, of several runs as of one."""
    from pytest_ragmetrics.report.history import history_of

    document, comparison, _ = _compared(arguments)
    folder: Path | None = arguments.history
    if folder is not None and not folder.is_dir():
        raise ArgumentError(f"--history: {str(folder)!r} is no folder; give the one of --rag-history")
    history = None if folder is None else history_of(document, folder)
    return _write(document, comparison, {"report": arguments.output}, history)


@run.add_command
@command("markdown")
@_FILES
@_TEXT
def _markdown(arguments: Arguments) -> list[str]:
    """Write a summary in Markdown."""
    from pytest_ragmetrics.report.markdown import render_markdown

    document, comparison, _ = _compared(arguments)
    if arguments.output is None:
        return render_markdown(document, comparison=comparison).splitlines()
    return _write(document, comparison, {"markdown": arguments.output})


def _page(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.fragment:
        raise ValueError(f"{text!r} is no address of a page: write https://..., without #")
    # Parentheses, brackets and blanks would end the link in Markdown, a bar the row of a table.
    return quote(text, safe=":/?@!$&*+,;=%~")


@run.add_command
@command("comment")
@_FILES
@_TEXT
@option("--page URL", Checked(_page), "the address of the page, for links")
@option("--annotations", help="with -o: print GitHub annotations of the 10 worst tests")
def _comment(arguments: Arguments) -> list[str]:
    """Write the comment on a pull request in Markdown, for gh or curl to post.

    Its first line is an HTML comment, by --rag-report-title the same for all runs.
    """
    from pytest_ragmetrics.report.comment import annotation_lines, render_comment

    document, comparison, _ = _compared(arguments)
    body = render_comment(document, comparison=comparison, page=arguments.page)
    if arguments.output is None:
        if arguments.annotations:
            raise ArgumentError("--annotations: standard output is the comment: write that to a file, -o FILE")
        return body.splitlines()
    write_atomically(arguments.output, body)
    annotations = annotation_lines(document) if arguments.annotations else ()
    return [*annotations, f"{arguments.output}: written"]


@run.add_command
@command("merge")
@_FILES
@option("-o, --output OUT.json", output(".json"), "write the merged run as JSON")
@html_option(help="write it as a page")
@option("--markdown FILE", output(), "write it as a summary")
def _merge(arguments: Arguments) -> CommandResult:
    """Merge several runs, such as shards; without an output, print JSON.

    With --history the run is added to the folder. Exits with 1 if a gate failed.
    """
    from pytest_ragmetrics.runs.merge import waiting_gates
    from pytest_ragmetrics.runs.records import function_name, render_json
    from pytest_ragmetrics.runs.wording.runs import gist

    document, comparison, baseline = _compared(arguments)
    outputs = {"json": arguments.output, "report": arguments.html, "markdown": arguments.markdown}
    wanted = {name: path for name, path in outputs.items() if path is not None}
    # This status alone reports a gate over several shards; the gate of a set with a skipped test is skipped.
    found = {test.id: gist(test.message) for test in document.tests if test.gate and test.outcome == "failed"}
    if baseline is not None:
        known = {function_name(test.id) for run in baseline.runs for test in run.tests if baseline.is_history}
        waiting = {name for name, then in waiting_gates(document.tests).items() if then == "fail"}
        waiting -= {name for name in waiting if baseline.is_history and function_name(name) not in known}
        lost = sorted(name for name in waiting if function_name(name) not in document.run.skipped)
        found.update(dict.fromkeys(lost, "tests of its set are in no file: merge the files of all shards"))
    if arguments.history is not None:
        from pytest_ragmetrics.report.history import history_run, write_history

        write_history(arguments.history, history_run(document))
    if not wanted:
        return CommandResult(lines=render_json(document).splitlines(), status=int(bool(found)))
    lines = [] if arguments.history is None else [f"{arguments.history}: written"]
    lines += [f"FAILED {printable(name)} - {why}" for name, why in found.items()]
    return CommandResult(lines=[*_write(document, comparison, wanted), *lines], status=int(bool(found)))


def _write(
    document: Document, comparison: RunComparison | None, files: dict[str, Path], history: History | None = None
) -> list[str]:
    from pytest_ragmetrics.report.files import render
    from pytest_ragmetrics.runs.wording.figures import counted

    for name, path in files.items():
        write_atomically(path, render(name, document, comparison, history))
    return [f"{path}: written, {counted(len(document.tests), 'test')}" for path in files.values()]


run.add_command(diff)


@run.add_command
@command("history")
@argument("folder DIR", "the folder of --rag-history")
@html_option(help="write a page (default: print a table)")
@option("--last N", Count(1), "how many runs to show", default=30)
@option("--branch NAME", str, "the branch to show (default: that of the latest run)")
@option("--bounds", help="print bounds for gates that an unchanged application breaks in 1 of 100 runs")
def _history(arguments: Arguments) -> list[str]:
    """Show the trends of a --rag-history folder: what changed when, and what is flaky."""
    from pytest_ragmetrics.report.bounds import bound_lines
    from pytest_ragmetrics.report.history import read_history
    from pytest_ragmetrics.report.page import render_history
    from pytest_ragmetrics.report.trends import build_trends, trend_lines
    from pytest_ragmetrics.runs.wording.figures import counted

    if arguments.bounds and arguments.html is not None:
        raise ArgumentError("--bounds: it prints lines to paste, and there is no page of them; leave out --html")
    history = read_history(arguments.folder, last=arguments.last, branch=arguments.branch)
    if arguments.bounds:
        return bound_lines(history)
    if arguments.html is None:
        return fitted(trend_lines(build_trends(history), width=terminal_width()))
    write_atomically(arguments.html, render_history(history))
    return [f"{arguments.html}: written, {counted(len(history.runs), 'run')}", *history.left_out]


@run.add_command
@command("schema")
def _schema(_: Arguments) -> list[str]:
    """Print the JSON schema of --rag-json files."""
    import json

    from pytest_ragmetrics.runs.records import document_schema

    return json.dumps(document_schema(), indent=2).splitlines()


def _compared(arguments: Arguments) -> tuple[Document, RunComparison | None, Baseline | None]:
    """Return the merged run of the files, and its comparison with the baseline if one is given."""
    from pytest_ragmetrics.evaluation.score_files import read_run
    from pytest_ragmetrics.plugin.gates.merged import merged_gates
    from pytest_ragmetrics.runs.compare import compare_documents
    from pytest_ragmetrics.runs.merge import merge_documents
    from pytest_ragmetrics.runs.tables import Baseline

    documents, given, baseline = [read_run(file) for file in arguments.files], arguments.baseline, None
    lines: tuple[str, ...] = ()
    if isinstance(given, str):
        from pytest_ragmetrics.plugin.settings import last_runs
        from pytest_ragmetrics.report.earlier import past_runs

        if arguments.history is None:
            raise ArgumentError(f"--baseline: {given} reads the folder of --rag-history: give --history DIR too")
        last, branch = last_runs(given)
        now = [document.run for document in documents]
        baseline, lines = past_runs(arguments.history, last=last, branch=branch, before=now)
    elif given is not None:
        baseline = Baseline(runs=(read_run(given),))
    document = merge_documents(documents, baseline, decide=merged_gates)
    document = replace(document, run=replace(document.run, notes=tuple(dict.fromkeys((*document.run.notes, *lines)))))
    if baseline is None or baseline.is_history:
        return document, None, baseline
    return document, compare_documents(document, baseline.runs[-1]), baseline
