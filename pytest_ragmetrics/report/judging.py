"""What decides the scores of each metric of a run besides its answers: judge, prompts and definition."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_ragmetrics.comparison import RULES, rule_changes
from pytest_ragmetrics.explain.phrases import named
from pytest_ragmetrics.explain.runs import by_metric, judges_of
from pytest_ragmetrics.judges.rendering import PromptBook, Reasons, prompt_digest
from pytest_ragmetrics.metrics.base import Metric, code_of
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.records import Judging, Record, RunRecord


def judging_of(
    run: RunRecord, records: Iterable[Record], tasks: Mapping[str, Iterable[str]], *, prompts: Path | None = None
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
    if "embedder" in inspect.signature(made).parameters:
        found["embedder"] = str(run.settings.get("embedder"))
    if code := code_of(made):
        found["code"] = code
    return found


def kind_of(name: str) -> Metric | type[Metric] | None:
    """Return the metric of a name; none where it was made in a test, or has a name of its own."""
    try:
        return metric_named(name)
    except ValueError:
        return None


def judging_changes(old: Judging, new: Judging) -> Iterator[str]:
    """Yield why scores of one metric in two runs cannot be compared; nothing if judge, prompts and rules are the same.

    >>> one = Judging(judge="openai:a", prompts={"verify_claims": "1f"}, definition={"release": "1.0"})
    >>> other = Judging(judge="openai:b", prompts={"verify_claims": "2e"}, definition={"release": "1.0"})
    >>> list(judging_changes(one, other))
    ['judge openai:a, then openai:b', 'the prompt of verify_claims changed']
    """
    if old.judge != new.judge:
        yield f"judge {old.judge or 'none'}, then {new.judge or 'none'}"
    yield from rule_changes(old, new)
    for name in sorted({*old.definition, *new.definition}.difference(RULES)):
        before, after = old.definition.get(name, "none"), new.definition.get(name, "none")
        if before != after:
            yield f"{named(name)} {named(before)}, then {named(after)}"
