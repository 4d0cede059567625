"""What decides the scores of each metric of a run besides its answers: judge, prompts and definition."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from pytest_ragmetrics.explain.phrases import named
from pytest_ragmetrics.explain.runs import by_metric, judges_of
from pytest_ragmetrics.judges.rendering import PromptBook, Reasons, prompt_digest
from pytest_ragmetrics.metrics.base import Metric, parameters_of
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.records import Judging, Record, RunRecord

_DIGITS = 12


class Judged(Protocol):
    """What has the fields of :class:`~pytest_ragmetrics.records.Judging`."""

    @property
    def judge(self) -> str:
        """All judges."""

    @property
    def prompts(self) -> Mapping[str, str]:
        """Digests by task."""

    @property
    def definition(self) -> Mapping[str, str]:
        """What else matters."""


def judging_of(
    run: RunRecord, records: Iterable[Record], tasks: Mapping[str, Sequence[str]], *, prompts: Path | None = None
) -> dict[str, Judging]:
    """Return by metric what decides the scores of these records of a run.

    ``tasks`` are those that each metric asked a judge, ``prompts`` is the folder of prompts that replace the package's.
    """
    reasons: Reasons = "negative" if run.settings.get("reasons") == "negative" else "all"
    book = PromptBook(folder=prompts, reasons=reasons)
    return {
        name: Judging(
            judge=", ".join(judges_of(group)),
            prompts={task: prompt_digest(task, book) for task in tasks.get(name, ())},
            definition=_definition(run, name, group),
        )
        for name, group in by_metric(records).items()
    }


def _definition(run: RunRecord, name: str, records: Sequence[Record]) -> dict[str, str]:
    """Return the release, whose rules score; the embedder of a metric that takes one; the code of a user's metric."""
    kind = kind_of(name)
    first = next((record for record in records if record.score is not None), records[0])
    found = {"better": first.better, "verdicts": first.noun, "release": run.ragmetrics}
    if kind is None:
        return found
    made = kind if isinstance(kind, type) else type(kind)
    if "embedder" in parameters_of(made):
        found["embedder"] = str(run.settings.get("embedder"))
    if not made.__module__.startswith("pytest_ragmetrics."):
        own = getattr(getattr(made, "call", None), "function", made)
        with suppress(OSError, TypeError):  # it was made where there is no source
            found["code"] = digest(inspect.getsource(own))
    return found


def kind_of(name: str) -> Metric | type[Metric] | None:
    """Return the metric of a name; none where it was made in a test, or has a name of its own."""
    try:
        return metric_named(name)
    except ValueError:
        return None


def digest(text: str) -> str:
    """Return the beginning of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def judging_changes(old: Judged, new: Judged) -> Iterator[str]:
    """Yield why scores of one metric in two runs cannot be compared; nothing if judge, prompts and rules are the same.

    >>> one = Judging(judge="openai:a", prompts={"verify_claims": "1f"}, definition={"release": "1.0"})
    >>> other = Judging(judge="openai:b", prompts={"verify_claims": "2e"}, definition={"release": "1.0"})
    >>> list(judging_changes(one, other))
    ['judge openai:a, then openai:b', 'another prompt of verify_claims']
    """
    if old.judge != new.judge:
        yield f"judge {old.judge or 'none'}, then {new.judge or 'none'}"
    changed = [task for task in old.prompts if task in new.prompts and old.prompts[task] != new.prompts[task]]
    if changed:
        yield f"another prompt of {', '.join(map(named, changed))}"
    for name in sorted({*old.definition, *new.definition}):
        before, after = old.definition.get(name, "none"), new.definition.get(name, "none")
        if before != after:
            differs = f"{named(name)} {named(before)}, then {named(after)}"
            yield "another definition, its code changed" if name == "code" else differs
