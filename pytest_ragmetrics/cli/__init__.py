"""The `ragmetrics` command: runs one of the commands, prints its lines, and maps errors to exit statuses."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from pytest_ragmetrics.cli.command import CommandResult, write
from pytest_ragmetrics.core.errors import RagMetricsError

# The docstrings of the commands: listing all of them imports none.
_SUMMARIES = {
    "init": "Write an example test and its settings; existing files are only added to.",
    "docs": "Show the documentation: a page, or the entry of a metric, an option or another name.",
    "doctor": "Check keys, settings, judge and caches, with one request; exit with 1 if something is wrong.",
    "probe": "Report which planted faults metrics notice, or how a judge answers questions with known answers.",
    "cache": "Maintain the local cache.",
    "generate": "Write a first golden set: questions about documents, with answers and the passages that support them.",
    "label": "Label answers of a run as good (1) or bad (0), for calibrate and Evaluation.corrected_mean().",
    "calibrate": "Measure the agreement of a judge with human labels, and suggest a threshold.",
    "metrics": "Print the table of metrics, cut to the terminal.",
    "score": "Score any number of logged answers into a file, for load_scores() and ragmetrics report.",
    "report": "Make pages, summaries and comparisons of runs.",
}
# The status of a shell after SIGINT.
_INTERRUPTED = 130


class _Commands(click.Group):
    """Commands that are listed without being imported."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command that is run."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load(name), rest


def load(name: str) -> click.Command:
    """Return a command of this package, imported from the module of its name."""
    place = "generate.command" if name == "generate" else name
    found: click.Command = import_module(f"{__name__}.{place}").run
    return found


#: Every command there is.
COMMANDS = _Commands(
    "ragmetrics",
    help="Commands of pytest-ragmetrics.",
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    commands=[click.Command(name, short_help=summary) for name, summary in _SUMMARIES.items()],
)
click.version_option(package_name="pytest-ragmetrics", message="%(prog)s %(version)s")(COMMANDS)


def main(argv: Sequence[str] | None = None, *, prog: str = "ragmetrics") -> int:
    """Run a command; return the exit status: 0, 1 after an error, which is written to standard error, 130 after Ctrl-C.

    A command that checks something returns 1 if the check fails, as its help says. Raises ``SystemExit`` with status 2
    for wrong arguments.
    """
    if sys.stdout is None:  # the parent process closed it, and still reads the exit status
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    try:
        found = COMMANDS.main(argv, prog, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    except click.Abort:
        write(sys.stderr, "ragmetrics: interrupted\n")
        return _INTERRUPTED
    except RagMetricsError as error:
        write(sys.stderr, f"ragmetrics: {error}\n")
        return 1
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        write(sys.stderr, f"ragmetrics: {place}{error.strerror or error}\n")
        return 1
    if isinstance(found, int):  # of --help and --version
        return found
    result = found if isinstance(found, CommandResult) else CommandResult(lines=found, status=0)
    return result.status if _printed(result.lines) else 1


def _printed(lines: Sequence[str]) -> bool:
    """Print lines; return whether they were written."""
    try:
        write(sys.stdout, "".join(f"{line}\n" for line in lines))
    except OSError as error:
        # Python flushes standard output again at exit, and would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A closed pipe, as of head, is no error.
        if not isinstance(error, BrokenPipeError):
            write(sys.stderr, f"ragmetrics: standard output: {error}\n")
        return False
    return True
