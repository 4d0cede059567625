"""The models that providers say answered: where those of one judge differ in a run, or from the baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from pytest_ragmetrics.judges.schema import listed
from pytest_ragmetrics.runs.wording.figures import counted, named

#: How many replies of each judge name which model, with its fingerprint behind a blank.
Served: TypeAlias = Mapping[str, Mapping[str, int]]

# How many models or fingerprints a line lists.
_LISTED = 4


def joined(parts: Iterable[Served]) -> dict[str, dict[str, int]]:
    """Return the counts of several metrics or runs together.

    >>> joined([{"openai:m": {"m-1": 2}}, {"openai:m": {"m-1": 1, "m-2": 4}}])
    {'openai:m': {'m-1': 3, 'm-2': 4}}
    """
    found: dict[str, Counter[str]] = {}
    for part in parts:
        for judge, counts in part.items():
            found.setdefault(judge, Counter()).update(counts)
    return {judge: dict(found[judge]) for judge in sorted(found)}


def served_warnings(served: Served) -> list[str]:
    """Return a line for each judge whose replies in one run are of several models."""
    return [
        f"the judge {named(judge)} answered as {len(models)} models: {_list(models)}; their scores are mixed: ask all "
        "anew with --rag-cache=refresh, and name a dated model as the judge"
        for judge, counts in served.items()
        if len(models := _models(counts)) > 1
    ]


def served_notes(served: Served, before: Served) -> Iterator[str]:
    """Yield a line for each judge of several fingerprints, or of another model or fingerprint than in the baseline.

    A provider that spreads requests over its machines answers with several fingerprints of one model: that is a note.
    """
    for judge, counts in served.items():
        then, models = before.get(judge, {}), _models(counts)
        for what, now, old in (("model", models, _models(then)), ("fingerprint", counts, then)):
            if now and old and now.keys().isdisjoint(old):
                yield f"another {what} of {named(judge)}: {_names(now)} now, {_names(old)} in the baseline"
                break
        if len(models) == 1 < len(counts):
            yield f"{named(judge)} answered with {len(counts)} fingerprints: {_list(counts)}"


def served_change(served: Served, before: Served) -> str:
    """Return which judge answers as another model than before, or with other fingerprints alone, "" if none does.

    >>> served_change({"openai:m": {"m-1": 3, "m-2": 1}}, {"openai:m": {"m-1": 4}})
    'openai:m answers as m-1 and m-2 now, as m-1 in the baseline'
    """
    for judge, now in served.items():
        then = before.get(judge, {})
        if then and (_models(now).keys() - _models(then).keys() or now.keys().isdisjoint(then)):
            return f"{named(judge)} answers as {_names(now)} now, as {_names(then)} in the baseline"
    return ""


def _models(counts: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in counts.items():
        found[name.partition(" ")[0]] += count
    return found


def _names(counts: Iterable[str]) -> str:
    return listed([*map(named, sorted(counts))], _LISTED)


def _list(counts: Mapping[str, int]) -> str:
    shown = [f"{named(name)} ({counted(count, 'reply|replies')})" for name, count in sorted(counts.items())]
    return listed(shown, _LISTED)
