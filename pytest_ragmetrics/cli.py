"""The `ragmetrics` command: what is done with the plugin's files outside of a test run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pytest_ragmetrics.cache import maintenance
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.errors import RagMetricsError

Work = Callable[[argparse.Namespace], Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One command: how it is called, and the work that returns the lines to print."""

    name: str
    help: str
    run: Work | None = None
    configure: Callable[[argparse.ArgumentParser], object] = lambda _: None
    commands: tuple[Command, ...] = ()


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0, or 1 after an error, which is written to standard error.

    Raises ``SystemExit`` with status 2 for arguments that are wrong.
    """
    parser = argparse.ArgumentParser(prog="ragmetrics", description="Tend what pytest-ragmetrics keeps and compares.")
    _add(parser, COMMANDS)
    arguments = parser.parse_args(argv)
    try:
        lines = arguments.run(arguments)
    except (RagMetricsError, OSError) as error:
        sys.stderr.write(f"ragmetrics: {error}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _add(parser: argparse.ArgumentParser, commands: Sequence[Command]) -> None:
    choices = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in commands:
        chosen = choices.add_parser(command.name, help=command.help, description=command.help)
        command.configure(chosen)
        if command.run is not None:
            chosen.set_defaults(run=command.run)
        if command.commands:
            _add(chosen, command.commands)


def _on_store(work: Callable[[Store, argparse.Namespace], Sequence[str]]) -> Work:
    def run(arguments: argparse.Namespace) -> Sequence[str]:
        with Store(arguments.dir or maintenance.default_folder()) as store:
            return work(store, arguments)

    return run


def _configure_cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir",
        type=Path,
        help=f"the folder of the cache (default: ${maintenance.VARIABLE}, else {maintenance.FOLDER} here or above)",
    )


def _age(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--older-than", type=_read_age, required=True, metavar="AGE", help="such as 12h, 30d or 8w")


def _read_age(text: str) -> timedelta:
    try:
        return maintenance.read_age(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


CACHE_COMMANDS = (
    Command(
        name="stats",
        help="Say what the cache holds.",
        run=_on_store(lambda store, _: maintenance.describe(store)),
    ),
    Command(
        name="verify",
        help="Check the database and every entry.",
        configure=lambda parser: parser.add_argument("--remove", action="store_true", help="drop what is unsound"),
        run=_on_store(lambda store, arguments: maintenance.verify(store, remove=arguments.remove)),
    ),
    Command(
        name="prune",
        help="Drop the entries made longer ago than an age.",
        configure=_age,
        run=_on_store(lambda store, arguments: maintenance.prune(store, arguments.older_than)),
    ),
    Command(
        name="export",
        help="Write all entries into a cassette.",
        configure=lambda parser: parser.add_argument("file", type=Path, metavar="FILE"),
        run=_on_store(lambda store, arguments: maintenance.export(store, arguments.file)),
    ),
    Command(
        name="import",
        help="Take over the entries of cassettes.",
        configure=lambda parser: parser.add_argument("files", type=Path, metavar="FILE", nargs="+"),
        run=_on_store(lambda store, arguments: maintenance.import_(store, arguments.files)),
    ),
    Command(
        name="clear",
        help="Drop everything.",
        run=_on_store(lambda store, _: maintenance.clear(store)),
    ),
)

#: Every command there is.
COMMANDS = (
    Command(
        name="cache",
        help="Tend the answers kept on this machine.",
        configure=_configure_cache,
        commands=CACHE_COMMANDS,
    ),
)


if __name__ == "__main__":
    raise SystemExit(main())
