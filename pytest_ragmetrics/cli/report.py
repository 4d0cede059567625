"""`ragmetrics report`: pages, summaries and comparisons of files of ``--rag-json`` and of ``ragmetrics score``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ragmetrics.cli.command import (
    Command,
    CommandResult,
    count,
    fitted,
    output,
    terminal_width,
)
from pytest_ragmetrics.cli.comment import comment, take_comment
from pytest_ragmetrics.cli.diff import configure_diff, diff
from pytest_ragmetrics.core.errors import ArgumentError
from pytest_ragmetrics.core.files import write_atomically
from pytest_ragmetrics.text.unicode import printable

if TYPE_CHECKING:
    from pytest_ragmetrics.report.history import History
    from pytest_ragmetrics.runs.compare import RunComparison
    from pytest_ragmetrics.runs.records import Document

_PAGE = Path("rag-report.html")
_RUNS = "files of --rag-json, or of ragmetrics score (.jsonl, .parquet)"


def _markdown(arguments: argparse.Namespace) -> list[str]:
    from pytest_ragmetrics.report.markdown import render_markdown

    document, comparison = _compared(arguments)
    if arguments.output is None:
        return render_markdown(document, comparison=comparison).splitlines()
    return _write(document, comparison, {"markdown": arguments.output})


def _merge(arguments: argparse.Namespace) -> CommandResult:
    from pytest_ragmetrics.runs.merge import waiting_gates
    from pytest_ragmetrics.runs.records import function_name, render_json
    from pytest_ragmetrics.runs.wording.runs import gist

    document, comparison = _compared(arguments)
    outputs = {"json": arguments.output, "report": arguments.html, "markdown": arguments.markdown}
    wanted = {name: path for name, path in outputs.items() if path is not None}
    # No other status says that a gate over several shards failed; one with a skipped test is skipped everywhere.
    found = {test.id: gist(test.message) for test in document.tests if test.gate and test.outcome == "failed"}
    if arguments.baseline:
        waiting = {name for name, then in waiting_gates(document.tests).items() if then == "fail"}
        lost = sorted(name for name in waiting if function_name(name) not in document.run.skipped)
        found.update(dict.fromkeys(lost, "tests of its set are in no file: merge the files of all shards"))
    if not wanted:
        return CommandResult(lines=render_json(document).splitlines(), status=int(bool(found)))
    lines = [f"FAILED {printable(name)} - {why}" for name, why in found.items()]
    return CommandResult(lines=[*_write(document, comparison, wanted), *lines], status=int(bool(found)))


def _html(arguments: argparse.Namespace) -> list[str]:
    from pytest_ragmetrics.report.history import history_of

    document, comparison = _compared(arguments)
    folder: Path | None = arguments.history
    if folder is not None and not folder.is_dir():
        raise ArgumentError(f"--history: {str(folder)!r} is no folder; give the one of --rag-history")
    history = None if folder is None else history_of(document, folder)
    return _write(document, comparison, {"report": arguments.output}, history)


def _write(
    document: Document, comparison: RunComparison | None, files: dict[str, Path], history: History | None = None
) -> list[str]:
    from pytest_ragmetrics.report.files import RENDERERS
    from pytest_ragmetrics.runs.wording.figures import counted

    count = len(document.tests)
    for name, path in files.items():
        write_atomically(path, RENDERERS[name](document, comparison, history))
    return [f"{path}: written, {counted(count, 'test')}" for path in files.values()]


def _history(arguments: argparse.Namespace) -> list[str]:
    from pytest_ragmetrics.report.history import read_history
    from pytest_ragmetrics.report.page import render_history
    from pytest_ragmetrics.report.trends import build_trends, trend_lines
    from pytest_ragmetrics.runs.wording.figures import counted

    history = read_history(arguments.folder, last=arguments.last, branch=arguments.branch)
    if arguments.html is None:
        return fitted(trend_lines(build_trends(history), width=terminal_width()))
    write_atomically(arguments.html, render_history(history))
    return [f"{arguments.html}: written, {counted(len(history.runs), 'run')}", *history.left_out]


def _configure_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder of --rag-history")
    parser.add_argument(
        "--html", type=output(".html"), metavar="FILE.html", help="write a page (default: print a table)"
    )
    parser.add_argument("--last", type=count(), default=30, metavar="N", help="how many runs to show (default: 30)")
    parser.add_argument("--branch", metavar="NAME", help="the branch to show (default: that of the latest run)")


def _schema(_: argparse.Namespace) -> list[str]:
    import json

    from pytest_ragmetrics.runs.records import document_schema

    return json.dumps(document_schema(), indent=2).splitlines()


def _compared(arguments: argparse.Namespace) -> tuple[Document, RunComparison | None]:
    """Return the merged run of the files, and its comparison with the baseline if one is given."""
    from pytest_ragmetrics.evaluation.score_files import read_run
    from pytest_ragmetrics.plugin.gates.decide import evaluate_merged_gate
    from pytest_ragmetrics.runs.compare import compare_documents
    from pytest_ragmetrics.runs.merge import merge_documents

    baseline = None if arguments.baseline is None else read_run(arguments.baseline)
    document = merge_documents([read_run(file) for file in arguments.files], baseline, decide=evaluate_merged_gate)
    return document, None if baseline is None else compare_documents(document, baseline)


def _take_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", type=Path, metavar="RUN.json", nargs="+", help=_RUNS)
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="show what changed since; decide regression gates of shards",
    )


def _configure_html(parser: argparse.ArgumentParser) -> None:
    _take_files(parser)
    parser.add_argument(
        "-o", "--output", type=output(".html"), metavar="FILE.html", default=_PAGE, help=f"default: {_PAGE}"
    )
    parser.add_argument(
        "--history", type=Path, metavar="DIR", help="show the last 30 runs of the branch in a folder of --rag-history"
    )


def _configure_markdown(parser: argparse.ArgumentParser) -> None:
    _take_files(parser)
    parser.add_argument("-o", "--output", type=output(), metavar="FILE", help="default: standard output")


def _configure_comment(parser: argparse.ArgumentParser) -> None:
    _configure_markdown(parser)
    take_comment(parser)


def _configure_merge(parser: argparse.ArgumentParser) -> None:
    _take_files(parser)
    parser.add_argument("-o", "--output", type=output(".json"), metavar="OUT.json", help="write the merged run as JSON")
    parser.add_argument("--html", type=output(".html"), metavar="FILE.html", help="write it as a page")
    parser.add_argument("--markdown", type=output(), metavar="FILE", help="write it as a summary")


REPORT = Command(
    name="report",
    help="Make pages, summaries and comparisons of the JSON files of runs.",
    commands=(
        Command(
            name="html",
            help="Write a page, of several runs as of one.",
            configure=_configure_html,
            run=_html,
        ),
        Command(name="markdown", help="Write a summary in Markdown.", configure=_configure_markdown, run=_markdown),
        Command(
            name="comment",
            help="Write the comment on a pull request in Markdown, for gh or curl to post. Its first line is an HTML "
            "comment, the same for all runs of one --rag-report-title.",
            configure=_configure_comment,
            run=lambda arguments: comment(arguments, *_compared(arguments)),
        ),
        Command(
            name="merge",
            help="Make one run of several, such as shards; without an output it is printed as JSON. "
            "Exits with status 1 if a gate failed.",
            configure=_configure_merge,
            run=_merge,
        ),
        Command(
            name="diff",
            help="Say what became better and worse between two runs, and which of two or three answers better.",
            configure=configure_diff,
            run=diff,
        ),
        Command(
            name="history",
            help="Show the trends of the runs that --rag-history kept: since when, and what is flaky.",
            configure=_configure_history,
            run=_history,
        ),
        Command(name="schema", help="Print the JSON schema of --rag-json files.", run=_schema),
    ),
)
