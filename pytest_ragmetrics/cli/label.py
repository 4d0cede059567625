"""`ragmetrics label`: a queue of the answers of a run, to be labelled by a person in the terminal or in a browser."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_ragmetrics.cli.command import (
    PATH,
    WHOLE,
    Arguments,
    CommandResult,
    Count,
    argument,
    command,
    html_option,
    option,
    output,
    write,
)
from pytest_ragmetrics.core.files import write_atomically
from pytest_ragmetrics.evaluation.calibration.marks import read_labelled
from pytest_ragmetrics.evaluation.calibration.queue import LabelFile, QueuedRow, label_file, label_queue, labelled_mean
from pytest_ragmetrics.evaluation.calibration.result import CalibrationError
from pytest_ragmetrics.evaluation.calibration.text import queued_lines
from pytest_ragmetrics.evaluation.score_files import read_run
from pytest_ragmetrics.runs.compare import key_of
from pytest_ragmetrics.runs.wording.figures import counted, format_interval, named

_LABELS = {"1": 1, "0": 0, "s": None}
_KEYS = "1 good, 0 bad, s skip, u undo, q quit: "
_SAID = {"1": "good", "0": "bad", "s": "skipped", "u": "undone", "q": "quit"}
# Ctrl-D.
_END = "\x04"
# Arrow and function keys send sequences with digits. click.getchar() drops what is typed between two calls.
_ESCAPES = re.compile(rb"\x1b[\[O][0-9;]*[ -/]*[@-~]|\x1b")
_RULE = 72
# Labelling this number of rows takes hours, and a page of more opens slowly.
_ROWS_OF_PAGE = 200


@command("label")
@argument("document RUN.json", "a file of --rag-json")
@option("--metric NAME", str, "the metric to calibrate", required=True)
@option(
    "-o, --output FILE.jsonl",
    output(".jsonl"),
    "the labels, one JSON line each; rows in it are skipped",
    default="labelled.jsonl",
)
@option("--seed N", WHOLE, "random order", default=0)
@option("--limit N", Count(1), f"label N rows (default: all; a page: {_ROWS_OF_PAGE})")
@html_option(help="write a page for labelling in a browser")
@option(
    "--import FILE.jsonl",
    PATH,
    "add labels exported from a page, or another person's of the same queue",
    name="imported",
)
def run(arguments: Arguments) -> CommandResult | list[str]:
    """Label answers of a run as good (1) or bad (0), for calibrate and Evaluation.corrected_mean()."""
    document = read_run(arguments.document)
    try:
        queue = label_queue(document, arguments.metric, seed=arguments.seed)
    except CalibrationError as error:
        raise CalibrationError(f"{arguments.document}: {error}") from error
    in_terminal = arguments.html is None and arguments.imported is None
    if in_terminal and not sys.stdin.isatty():
        to_do = "write a page, with --html FILE.html"
        raise CalibrationError(f"label reads single keys from a terminal, and there is none: {to_do}")
    with label_file(arguments.output, queue) as file:
        lines = []
        if arguments.imported is not None:
            lines.append(f"{arguments.imported}: {counted(file.take(arguments.imported), 'new label')}")
            if marks := len(read_labelled(arguments.imported, base=Path.cwd())[1]):
                lines.append(f"{counted(marks, 'mark')} of findings passed over: ragmetrics calibrate reads them")
        if arguments.html is not None:
            lines += _page(arguments, queue, file)
        if in_terminal:
            with _keys() as keys:
                _ask(file, len(queue), keys, arguments.limit)
        return [*lines, *_state(arguments, queue, file.labels)]


def _page(arguments: Arguments, queue: Sequence[QueuedRow], file: LabelFile) -> Iterator[str]:
    from pytest_ragmetrics.report.page import render_labels

    left = [row for row in queue if row.labelling.place not in file.labels]
    rows = left[: arguments.limit or _ROWS_OF_PAGE]
    write_atomically(arguments.html, render_labels(rows, total=len(queue)))
    more = f" of {len(left):,}; --limit N for more" if len(left) > len(rows) and arguments.limit is None else ""
    yield f"{arguments.html}: written, {counted(len(rows), 'row')} to label{more}"


def _ask(file: LabelFile, total: int, keys: Iterator[str], limit: int | None) -> None:
    """Show rows and take their labels, until there is none left, ``limit`` are labelled, or the keys end."""
    done = 0
    while (row := file.next()) and (limit is None or done < limit):
        rule = "-" * min(shutil.get_terminal_size().columns, _RULE)
        head = f"{row.labelling.place:,} of {total:,}: {named(key_of(row.record.sample))}"
        write(sys.stdout, "\n".join(["", rule, head, *queued_lines(row), _KEYS]))
        key = next((key for key in map(str.lower, keys) if key in _SAID or key == _END), _END)
        write(sys.stdout, f"{_SAID.get(key, 'quit')}\n")
        if key in _LABELS:
            file.add(row, _LABELS[key])
            done += 1
        elif key == "u":
            done -= file.undo()
        else:
            return


@contextmanager
def _keys() -> Iterator[Iterator[str]]:
    """Read the terminal key by key; what was typed before is dropped."""
    if sys.platform == "win32":
        yield _windows_keys()
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        typed = iter(lambda: os.read(terminal, 1024), b"")
        yield (key for keys in typed for key in _ESCAPES.sub(b"", keys).decode("utf-8", "ignore"))
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _windows_keys() -> Iterator[str]:
    import msvcrt

    getwch: Callable[[], str] = getattr(msvcrt, "getwch")  # noqa: B009 - type checkers know it on Windows alone
    while (key := getwch()) != "\x03":
        if key in "\x00\xe0":
            getwch()  # the second half of an arrow or a function key
        else:
            yield key
    raise KeyboardInterrupt


def _state(arguments: Arguments, queue: Sequence[QueuedRow], labels: Mapping[int, int | None]) -> Iterable[str]:
    """Yield the lines that say how many labels there are and what they show."""
    given = [label for label in labels.values() if label is not None]
    skipped = f", {len(labels) - len(given):,} skipped" if len(labels) > len(given) else ""
    left = f"{len(queue) - len(labels):,} of {len(queue):,} left"
    found = f"{counted(len(given), 'label')}, {sum(given):,} good{skipped}; {left}"
    yield f"{arguments.output}: {found}"
    if not given:
        return
    try:
        mean = labelled_mean(queue, labels)
    except ValueError as error:
        yield str(error)
    else:
        yield f"good answers: {mean.estimate:.2f} ({format_interval(mean)}), if the labels are right"
    yield f"how good the judge is: ragmetrics calibrate {arguments.output} --metric {arguments.metric}"
