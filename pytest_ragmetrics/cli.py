"""The `ragmetrics` command: what is done with the plugin's files outside of a test run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from pytest_ragmetrics.commands.cache import CACHE
from pytest_ragmetrics.commands.calibrate import CALIBRATE
from pytest_ragmetrics.commands.command import Command, CommandResult
from pytest_ragmetrics.commands.doctor import DOCTOR
from pytest_ragmetrics.commands.generate import GENERATE
from pytest_ragmetrics.commands.init import INIT
from pytest_ragmetrics.commands.metrics import METRICS_COMMAND
from pytest_ragmetrics.commands.probe import PROBE
from pytest_ragmetrics.commands.report import REPORT
from pytest_ragmetrics.errors import RagMetricsError

#: Every command there is.
COMMANDS = (INIT, DOCTOR, PROBE, CACHE, GENERATE, CALIBRATE, METRICS_COMMAND, REPORT)

# As a shell has it after SIGINT.
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0, 1 after an error, which is written to standard error, 130 after Ctrl-C.

    A command that looks for something returns 1 where it finds it, as its help says.
    Raises ``SystemExit`` with status 2 for arguments that are wrong.
    """
    parser = argparse.ArgumentParser(prog="ragmetrics", description="Tend what pytest-ragmetrics keeps and compares.")
    _add(parser, COMMANDS)
    arguments = parser.parse_args(argv)
    try:
        said = arguments.run(arguments)
    except (RagMetricsError, OSError) as error:
        _write(sys.stderr, f"ragmetrics: {error}\n")
        return 1
    except KeyboardInterrupt:
        _write(sys.stderr, "\nragmetrics: interrupted\n")
        return _INTERRUPTED
    finding = said if isinstance(said, CommandResult) else CommandResult(lines=said, status=0)
    return finding.status if _printed(finding.lines) else 1


def _printed(lines: Sequence[str]) -> bool:
    """Print lines; say whether they went out."""
    try:
        _write(sys.stdout, "".join(f"{line}\n" for line in lines))
    except OSError as error:
        # What could not be written now would not be at the end of the process either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A reader who went away has seen enough.
        if not isinstance(error, BrokenPipeError):
            _write(sys.stderr, f"ragmetrics: standard output: {error}\n")
        return False
    return True


def _write(stream: TextIO, text: str) -> None:
    """Write a text; what the stream has no characters for is spelled out, and nothing is lost over it."""
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _add(parser: argparse.ArgumentParser, commands: Sequence[Command]) -> None:
    choices = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in commands:
        chosen = choices.add_parser(command.name, help=command.help, description=command.help)
        command.configure(chosen)
        if command.run is not None:
            chosen.set_defaults(run=command.run)
        if command.commands:
            _add(chosen, command.commands)


if __name__ == "__main__":
    raise SystemExit(main())
