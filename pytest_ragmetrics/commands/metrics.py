"""`ragmetrics metrics`: which metrics there are."""

from __future__ import annotations

import argparse

from pytest_ragmetrics.commands.command import Command


def _print(arguments: argparse.Namespace) -> list[str]:
    from pytest_ragmetrics.commands.metric_table import metric_table, table_by_needs

    return table_by_needs() if arguments.by_needs else metric_table()


METRICS = Command(
    name="metrics",
    help="Print the table of metrics as Markdown.",
    configure=lambda parser: parser.add_argument(
        "--by-needs", action="store_true", help="group them by the fields of a sample that they need"
    ),
    run=_print,
)
