"""`ragmetrics metrics`: which metrics there are, as a table of Markdown, as one of the terminal, or as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import getdoc, signature

from pytest_ragmetrics.commands.command import Command, as_json, terminal_width
from pytest_ragmetrics.explain.phrases import text_table
from pytest_ragmetrics.metrics.base import Metric, parameters_of
from pytest_ragmetrics.metrics.registry import built_in_metrics, helper_of

_ONE_BY_ONE = ("metric", "name", "also called", "needs", "helper", "asks", "rounds", "better", "what it says")
_BY_NEEDS = ("needs", "asks", "metrics", "helpers")
_NO_MODEL = "no model"


def metric_table(metrics: Iterable[type[Metric]] = ()) -> list[str]:
    """Return the lines of a Markdown table with a row for each metric, by default all of this package.

    >>> from pytest_ragmetrics.metrics import HitRate
    >>> print(metric_table([HitRate])[-1].rpartition(" | ")[0])
    | `HitRate` | `hit_rate` | `hit_rate@k`, `hit_at_k`, `hit@k` | `retrieved_context_ids`, `reference_context_ids` | \
`assert_retrieved(retrieved_ids, reference_ids)` | no model | 0 | higher
    """
    rows = (
        (
            _code(kind.__name__),
            _code(kind.name),
            _code(*vars(kind).get("aliases", ())),
            _needs(kind),
            _code(f"{helper_of(kind).__name__}({', '.join(_positional(helper_of(kind)))})"),
            _asked(kind),
            str(kind.rounds),
            kind.better,
            _summary(kind),
        )
        for kind in metrics or built_in_metrics()
    )
    return list(_table(_ONE_BY_ONE, rows))


def table_by_needs(metrics: Iterable[type[Metric]] = ()) -> list[str]:
    """Return the lines of a Markdown table that groups the metrics by what they need, and by whom they ask.

    >>> from pytest_ragmetrics.metrics import ExactMatch, TokenF1
    >>> print(table_by_needs([ExactMatch, TokenF1])[-1])
    | `response`, `reference` | no model | `ExactMatch`, `TokenF1` | `assert_exact_match`, `assert_text_alike` |
    """
    groups: dict[tuple[str, str], list[type[Metric]]] = {}
    for kind in metrics or built_in_metrics():
        groups.setdefault((_needs(kind), _asked(kind)), []).append(kind)
    rows = (
        (
            needs,
            asks,
            ", ".join(
                _code(kind.__name__) + (" (lower is better)" if kind.better == "lower" else "") for kind in kinds
            ),
            _code(*dict.fromkeys(helper_of(kind).__name__ for kind in kinds)),
        )
        for (needs, asks), kinds in sorted(groups.items(), key=lambda group: group[0][1] != _NO_MODEL)
    )
    return list(_table(_BY_NEEDS, rows))


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    heads = tuple(heads)
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _positional(helper: Callable[..., object]) -> list[str]:
    return [name for name, it in signature(helper).parameters.items() if it.kind is not it.KEYWORD_ONLY]


def metrics_json() -> list[str]:
    """Return the lines of a JSON object on the metrics: its ``version``, and of each in ``metrics`` these fields.

    ``name``, ``aliases`` and ``class`` are its names in settings and code; ``needs`` the fields of a sample, ``takes``
    what else it takes; ``asks`` has "judge", "embedder", both or nothing, ``rounds`` how many requests wait for one
    another; ``scale`` the lowest and the highest score, ``better`` "higher" or "lower"; ``helper`` the assertion and
    ``arguments`` what it takes first; ``summary`` a sentence, ``blind_spots`` what a good score does not say.
    """
    described = (
        {
            "name": kind.name,
            "aliases": list(vars(kind).get("aliases", ())),
            "class": kind.__name__,
            "needs": list(kind.requires),
            "takes": list(kind.extra_inputs),
            "asks": _asks(kind),
            "rounds": kind.rounds,
            "scale": list(kind.scale),
            "better": kind.better,
            "helper": helper_of(kind).__name__,
            "arguments": _positional(helper_of(kind)),
            "summary": _summary(kind),
            "blind_spots": kind.blind_spots,
        }
        for kind in built_in_metrics()
    )
    return as_json(metrics=list(described))


def _terminal_table(width: int) -> list[str]:
    rows = ((kind.name, _asked(kind), _summary(kind)) for kind in built_in_metrics())
    return text_table([("name", "asks", "what it says"), *rows], width=width, left=3)


def _terminal_needs(width: int) -> list[str]:
    rows = [line.replace("`", "").strip("| ").split(" | ")[:3] for line in table_by_needs()]
    return text_table([rows[0], *rows[2:]], width=width, left=3)


def _asks(kind: type[Metric]) -> list[str]:
    taken = parameters_of(kind)
    # Every judged metric takes an embedder; the ones that use it say so themselves.
    own = "embedder" in taken and "__init__" in vars(kind)
    return ["judge"] * ("judge" in taken) + ["embedder"] * own


def _asked(kind: type[Metric]) -> str:
    return ", ".join({"judge": "a judge", "embedder": "an embedder"}[who] for who in _asks(kind)) or _NO_MODEL


def _summary(kind: type[Metric]) -> str:
    return (getdoc(kind) or "").partition("\n")[0]


def _needs(kind: type[Metric]) -> str:
    return _code(*kind.requires) or "see its docstring"


def _code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _metrics(arguments: argparse.Namespace) -> Sequence[str]:
    if arguments.json:
        return metrics_json()
    width = terminal_width()
    if width is None:
        return table_by_needs() if arguments.by_needs else metric_table()
    return _terminal_table(width) if not arguments.by_needs else _terminal_needs(width)


def _configure(parser: argparse.ArgumentParser) -> None:
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--by-needs", action="store_true", help="group them by the fields of a sample that they need")
    forms.add_argument("--json", action="store_true", help="print JSON for programs")


METRICS_COMMAND = Command(
    "metrics", "Print the table of metrics as Markdown, in a terminal as much of it as fits.", _metrics, _configure
)
