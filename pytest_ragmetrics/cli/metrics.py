"""`ragmetrics metrics`: which metrics there are, as a table or as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from inspect import getdoc, signature

from pytest_ragmetrics.cli.command import Arguments, as_json, command, option, terminal_width
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.registry import built_in_metrics, helper_of
from pytest_ragmetrics.runs.wording.figures import text_table

#: Where a sentence of a docstring ends.
SENTENCE_END = re.compile(r'(?<=[."])\s+(?=[A-Z`])')


def metrics_json() -> list[str]:
    """Return the lines of a JSON object on the metrics: its ``version``, and of each in ``metrics`` these fields.

    ``name``, ``aliases`` and ``class`` are its names in settings and code; ``needs`` the fields of a sample, ``takes``
    what else it takes; ``asks`` has "judge", "embedder", both or nothing, ``rounds`` how many requests wait for one
    another; ``scale`` the lowest and the highest score, ``better`` "higher" or "lower"; ``helper`` the assertion and
    ``arguments`` what it takes first; ``summary`` a sentence, ``use`` when to use it, ``blind_spots`` what a good score
    does not say.
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
            "arguments": [
                n for n, it in signature(helper_of(kind)).parameters.items() if it.kind is not it.KEYWORD_ONLY
            ],
            "summary": _summary(kind),
            "use": use_of(kind),
            "blind_spots": kind.blind_spots,
        }
        for kind in built_in_metrics()
    )
    return as_json(metrics=list(described))


def metric_table(*, width: int | None = None) -> list[str]:
    """Return the lines of a table: the name of each metric, whom it asks, and what it says, cut at a ``width``."""
    who = {"judge": "a judge", "embedder": "an embedder"}
    rows = (
        (kind.name, ", ".join(who[each] for each in _asks(kind)) or "no model", _summary(kind).replace("``", ""))
        for kind in built_in_metrics()
    )
    return [line.rstrip() for line in text_table([("name", "asks", "what it says"), *rows], width=width, left=3)]


def _asks(kind: type[Metric]) -> list[str]:
    taken = signature(kind).parameters
    # Every judged metric takes an embedder; the ones that use it say so themselves.
    own = "embedder" in taken and "__init__" in vars(kind)
    return ["judge"] * ("judge" in taken) + ["embedder"] * own


def _summary(kind: type[Metric]) -> str:
    return (getdoc(kind) or "").partition("\n")[0]


def use_of(kind: type[Metric]) -> str:
    """Return when to use a metric: the first sentence of the second paragraph of its docstring, "" without one."""
    paragraphs = [" ".join(part.split()) for part in (getdoc(kind) or "").split("\n\n")]
    return SENTENCE_END.split(paragraphs[1], maxsplit=1)[0] if len(paragraphs) > 1 else ""


@command("metrics")
@option("--json", help="print JSON with every fact")
def run(arguments: Arguments) -> Sequence[str]:
    """Print the table of metrics, cut to the terminal."""
    return metrics_json() if arguments.json else metric_table(width=terminal_width())
