"""The `ragmetrics` command: runs one of the commands, prints its lines, and maps errors to exit statuses."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_ragmetrics import __version__
from pytest_ragmetrics.cli.cache import CACHE
from pytest_ragmetrics.cli.calibrate import CALIBRATE
from pytest_ragmetrics.cli.command import Command, CommandResult, write
from pytest_ragmetrics.cli.docs import DOCS
from pytest_ragmetrics.cli.doctor import DOCTOR
from pytest_ragmetrics.cli.generate.command import GENERATE
from pytest_ragmetrics.cli.init import INIT
from pytest_ragmetrics.cli.label import LABEL
from pytest_ragmetrics.cli.metrics import METRICS_COMMAND
from pytest_ragmetrics.cli.probe import PROBE
from pytest_ragmetrics.cli.report import REPORT
from pytest_ragmetrics.cli.score import SCORE
from pytest_ragmetrics.core.errors import ArgumentError, RagMetricsError

#: Every command there is.
COMMANDS = (INIT, DOCS, DOCTOR, PROBE, CACHE, GENERATE, LABEL, CALIBRATE, METRICS_COMMAND, SCORE, REPORT)

# The status of a shell after SIGINT.
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None, *, prog: str = "ragmetrics") -> int:
    """Run a command; return the exit status: 0, 1 after an error, which is written to standard error, 130 after Ctrl-C.

    A command that checks something returns 1 if the check fails, as its help says. Raises ``SystemExit`` with status 2
    for wrong arguments.
    """
    if sys.stdout is None:  # closed by who started the command; its exit status is still wanted
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    parser = argparse.ArgumentParser(prog=prog, description="Tend what pytest-ragmetrics keeps and compares.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    _add(parser, COMMANDS)
    arguments = parser.parse_args(argv)
    try:
        found = arguments.run(arguments)
    except ArgumentError as error:
        arguments.refuse(str(error))  # raises SystemExit
    except (RagMetricsError, OSError) as error:
        write(sys.stderr, f"ragmetrics: {error}\n")
        return 1
    except KeyboardInterrupt:
        write(sys.stderr, "\nragmetrics: interrupted\n")
        return _INTERRUPTED
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


def _add(parser: argparse.ArgumentParser, commands: Sequence[Command]) -> None:
    choices = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in commands:
        chosen = choices.add_parser(command.name, help=command.help, description=command.help)
        command.configure(chosen)
        if command.run is not None:
            chosen.set_defaults(run=command.run, refuse=chosen.error)
        if command.commands:
            _add(chosen, command.commands)
