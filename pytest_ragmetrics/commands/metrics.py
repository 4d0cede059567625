"""`ragmetrics metrics`: which metrics there are."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import getclosurevars, getdoc, signature

from pytest_ragmetrics import assertions
from pytest_ragmetrics.commands.command import Command
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.registry import METRICS

_ONE_BY_ONE = ("metric", "name", "also called", "needs", "helper", "asks", "rounds", "better", "what it says")
_BY_NEEDS = ("needs", "asks", "metrics", "helpers")
_NOBODY = "nobody"


def metric_table(metrics: Iterable[type[Metric]] = METRICS) -> list[str]:
    """Return the lines of a Markdown table with a row for each metric.

    >>> from pytest_ragmetrics.metrics import HitRate
    >>> print(metric_table([HitRate])[-1].rpartition(" | ")[0])
    | `HitRate` | `hit_rate` | `hit_rate@k`, `hit_at_k`, `hit@k` | `retrieved_context_ids`, `reference_context_ids` | \
`assert_retrieved(retrieved_ids, reference_ids)` | nobody | 0 | higher
    """
    helpers = _helpers()
    rows = (
        (
            _code(kind.__name__),
            _code(kind.name),
            _code(*vars(kind).get("aliases", ())),
            _needs(kind),
            _code(*(_call(helper) for helper in _helpers_of(kind, helpers))),
            _asks(kind),
            str(kind.rounds),
            kind.better,
            _says(kind),
        )
        for kind in metrics
    )
    return list(_table(_ONE_BY_ONE, rows))


def table_by_needs(metrics: Iterable[type[Metric]] = METRICS) -> list[str]:
    """Return the lines of a Markdown table that groups the metrics by what they need, and by whom they ask.

    >>> from pytest_ragmetrics.metrics import ExactMatch, TokenF1
    >>> print(table_by_needs([ExactMatch, TokenF1])[-1])
    | `response`, `reference` | nobody | `ExactMatch`, `TokenF1` | `assert_exact_match`, `assert_text_alike` |
    """
    helpers = _helpers()
    groups: dict[tuple[str, str], list[type[Metric]]] = {}
    for kind in metrics:
        groups.setdefault((_needs(kind), _asks(kind)), []).append(kind)
    rows = (
        (
            needs,
            asks,
            ", ".join(
                _code(kind.__name__) + (" (lower is better)" if kind.better == "lower" else "") for kind in kinds
            ),
            _code(*dict.fromkeys(helper.__name__ for kind in kinds for helper in _helpers_of(kind, helpers))),
        )
        for (needs, asks), kinds in sorted(groups.items(), key=lambda group: group[0][1] != _NOBODY)
    )
    return list(_table(_BY_NEEDS, rows))


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    heads = tuple(heads)
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _helpers() -> dict[type, list[Callable[..., object]]]:
    """Return the assertion helpers by the metrics that they make."""
    found: dict[type, list[Callable[..., object]]] = {}
    for name in assertions.__all__:
        helper: Callable[..., object] = getattr(assertions, name)
        for value in getclosurevars(helper).globals.values():
            for kind in value.values() if isinstance(value, Mapping) else (value,):
                if isinstance(kind, type) and issubclass(kind, Metric) and kind is not Metric:
                    found.setdefault(kind, []).append(helper)
    return found


def _helpers_of(kind: type[Metric], helpers: Mapping[type, list[Callable[..., object]]]) -> list[Callable[..., object]]:
    """Return the helpers of a metric, else those of what it is a kind of, else the one for every metric."""
    return next((helpers[base] for base in kind.__mro__ if base in helpers), [assertions.assert_metric])


def _call(helper: Callable[..., object]) -> str:
    positional = [name for name, it in signature(helper).parameters.items() if it.kind is not it.KEYWORD_ONLY]
    return f"{helper.__name__}({', '.join(positional)})"


def _asks(kind: type[Metric]) -> str:
    taken = signature(kind).parameters
    # Every judged metric takes an embedder; the ones that use it say so themselves.
    own = "embedder" in taken and "__init__" in vars(kind)
    return ", ".join(["a judge"] * ("judge" in taken) + ["an embedder"] * own) or _NOBODY


def _needs(kind: type[Metric]) -> str:
    return _code(*kind.requires) or "see its docstring"


def _says(kind: type[Metric]) -> str:
    return (getdoc(kind) or "").partition("\n")[0]


def _code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _print(arguments: argparse.Namespace) -> list[str]:

    return table_by_needs() if arguments.by_needs else metric_table()


METRICS_COMMAND = Command(
    name="metrics",
    help="Print the table of metrics as Markdown.",
    configure=lambda parser: parser.add_argument(
        "--by-needs", action="store_true", help="group them by the fields of a sample that they need"
    ),
    run=_print,
)
