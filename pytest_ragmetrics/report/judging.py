"""What decides the scores of each metric of a run besides its answers: judge, prompts and definition."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pytest_ragmetrics.judges.rendering import PromptBook, Reasons, prompt_digest
from pytest_ragmetrics.metrics.base import Metric, code_of
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.runs.records import Judging, Record, RunRecord
from pytest_ragmetrics.runs.wording.runs import by_metric, judges_of
from pytest_ragmetrics.runs.wording.served import Served


def judging_of(
    run: RunRecord,
    records: Iterable[Record],
    tasks: Mapping[str, Iterable[str]],
    *,
    prompts: Path | None = None,
    served: Mapping[str, Served] = MappingProxyType({}),
) -> dict[str, Judging]:
    """Return by metric what decides the scores of these records of a run.

    ``tasks`` are those that each metric asked a judge, ``served`` the models that answered it; ``prompts`` is the
    folder of prompts that replace the package's.
    """
    reasons: Reasons = "negative" if run.settings.get("reasons") == "negative" else "all"
    book = PromptBook(folder=prompts, reasons=reasons)
    return {
        name: Judging(
            judge=", ".join(judges_of(group)),
            prompts={task: prompt_digest(task, book) for task in tasks.get(name, ())},
            definition=_definition(run, name, group),
            served=served.get(name, {}),
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
