"""`ragmetrics cache`: maintains the answers kept on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_ragmetrics.cache import maintenance
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.commands.command import Command, Work, checked


def _on_store(work: Callable[[Store, argparse.Namespace], Sequence[str]]) -> Work:
    def run(arguments: argparse.Namespace) -> Sequence[str]:
        with Store(arguments.dir or maintenance.default_folder()) as store:
            return work(store, arguments)

    return run


_DIR = f"the folder of the cache (default: ${maintenance.VARIABLE}, else {maintenance.FOLDER} here or above)"
_COMMANDS = (
    Command(
        name="stats", help="Say what the cache contains.", run=_on_store(lambda store, _: maintenance.describe(store))
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
        configure=lambda parser: parser.add_argument(
            "--older-than",
            type=checked(maintenance.read_age),
            required=True,
            metavar="AGE",
            help="such as 12h, 30d or 8w",
        ),
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
    Command(name="clear", help="Drop everything.", run=_on_store(lambda store, _: maintenance.clear(store))),
)

CACHE = Command(
    name="cache",
    help="Tend the answers kept on this machine.",
    configure=lambda parser: parser.add_argument("--dir", type=Path, help=_DIR),
    commands=_COMMANDS,
)
