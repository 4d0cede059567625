"""What Ragas and DeepEval call things: what to write here instead of each of their names.

For their metrics the tables of ``docs/how-to/from-ragas.md`` and ``from-deepeval.md`` are read. Their names for a
metric that means the same are aliases of it (see :mod:`~pytest_ragmetrics.metrics.registry`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple, NoReturn

from pytest_ragmetrics.core.files import packaged_text


class Equivalent(NamedTuple):
    """What stands here for a name of another tool.

    ``write`` is an expression for ``metrics=[...]``, empty where nothing comes near; ``differs`` says how its meaning
    differs, or what to do where nothing comes near. ``same`` tells an equivalent from what merely comes nearest.
    """

    tool: str
    write: str
    differs: str
    same: bool


#: The tools by the name that their modules begin with.
_TOOLS = {"ragas": "Ragas", "deepeval": "DeepEval"}
_ROW = re.compile(r"^\| (`.+?) \| (.+?) \| (?:(.+) )?\|$", re.MULTILINE)
_ALIAS = re.compile(r"`[A-Z]\w+`")


@cache
def names_of_metrics() -> Mapping[str, Equivalent]:
    """Return what to write for their names of metrics that are no names of ours, as the tables of the pages have it."""
    found: dict[str, Equivalent] = {}
    for module, tool in _TOOLS.items():
        page = packaged_text(f"docs/how-to/from-{module}.md")
        for names, here, differs in _ROW.findall(page.partition("\n## Metrics")[2].partition("\n## ")[0]):
            if not _ALIAS.fullmatch(here):
                write = here.removeprefix("none").removeprefix("; ").strip("`")
                equivalent = Equivalent(tool, write, differs.replace("`", ""), same=not here.startswith("none"))
                found.update(dict.fromkeys(re.findall("`([^`]+)`", names), equivalent))
    return found


@cache
def _folded_names() -> Mapping[str, str]:
    # The first of names that differ in case and separators: a class comes before the decorator that is called like it.
    return {folded(name): name for name in reversed(tuple(names_of_metrics()))}


@cache
def written_instead(of: Literal["names", "marker"]) -> Mapping[str, str]:
    """Return what to write for their other public names, or for their parameters that ``rag_dataset`` does not have."""
    listed = json.loads(packaged_text("core/other_tools.json"))[of]
    return {name: write for write, names in listed.items() for name in names}


def folded(name: str) -> str:
    """Return a name without the differences between class, function, display name and constant.

    >>> folded("Answer Relevancy") == folded("ANSWER_RELEVANCY") == folded("AnswerRelevancy")
    True
    """
    return re.sub(r"[\W_]+", "", name).lower()


def equivalent_of(name: str) -> str | None:
    """Return what to write for a name of a metric of Ragas or DeepEval, ``None`` for any other name.

    Case and separators do not matter, and a name that DeepEval shows lacks the "Metric" of its class.

    >>> print(equivalent_of("RAGAS Faithfulness"))
    'RAGAS Faithfulness' is of DeepEval: write "faithfulness" (ragmetrics docs from-deepeval)
    """
    wanted = folded(name)
    listed, names = names_of_metrics(), _folded_names()
    known = name if name in listed else names.get(wanted) or names.get(wanted + "metric")
    if known is None:
        return None
    tool, write, differs, same = listed[known]
    page = f"(ragmetrics docs from-{tool.lower()})"
    if same:
        return f"{name!r} is of {tool}: write {write}" + (f"; {differs} {page}" if differs else f" {page}")
    nearest = f": the nearest is {write}; {differs}" if write else f": {differs}"
    return f"{name!r} is of {tool} and has no equivalent here{nearest} {page}"


def class_of_theirs(thing: object) -> tuple[str, str] | None:
    """Return the tool and the name of the class of theirs that an object or a class is, or is derived from.

    >>> class_of_theirs(dict) is None
    True
    """
    kind = thing if isinstance(thing, type) else type(thing)
    for base in kind.__mro__:
        tool = _TOOLS.get(base.__module__.partition(".")[0])
        if tool is not None:
            return tool, base.__name__.lstrip("_")
    return None


class TableNames:
    """What a table of scores answers to names of Ragas and DeepEval."""

    __slots__ = ()

    def __getitem__(self, metric: object) -> NoReturn:
        """Raise ``TypeError``: in Ragas 0.1 it is the mean, later the scores of all rows."""
        if not isinstance(metric, str):
            raise TypeError("a table has no places: write table.rows for the rows, each with its sample and results")
        raise TypeError(
            f"a table has no keys: write table.mean({metric!r}), or table.scores({metric!r}) for the score of every row"
        )
