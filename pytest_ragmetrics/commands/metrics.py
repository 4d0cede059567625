"""`ragmetrics metrics`: which metrics there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from inspect import getdoc, signature

from pytest_ragmetrics.commands.command import Command
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
            _asks(kind),
            str(kind.rounds),
            kind.better,
            (getdoc(kind) or "").partition("\n")[0],
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
        groups.setdefault((_needs(kind), _asks(kind)), []).append(kind)
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


def _asks(kind: type[Metric]) -> str:
    taken = parameters_of(kind)
    # Every judged metric takes an embedder; the ones that use it say so themselves.
    own = "embedder" in taken and "__init__" in vars(kind)
    return ", ".join(["a judge"] * ("judge" in taken) + ["an embedder"] * own) or _NO_MODEL


def _needs(kind: type[Metric]) -> str:
    return _code(*kind.requires) or "see its docstring"


def _code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words)


METRICS_COMMAND = Command(
    "metrics",
    "Print the table of metrics as Markdown.",
    lambda arguments: table_by_needs() if arguments.by_needs else metric_table(),
    lambda parser: parser.add_argument(
        "--by-needs", action="store_true", help="group them by the fields of a sample that they need"
    ),
)
