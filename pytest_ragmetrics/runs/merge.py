"""Several documents as one, such as those of the shards of a CI job, given in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, TypeAlias

from pytest_ragmetrics.runs.compare import judging_changes
from pytest_ragmetrics.runs.origin import short_commit
from pytest_ragmetrics.runs.records import (
    Document,
    Judging,
    RunRecord,
    SentinelRecord,
    Setting,
    TestRecord,
    held_to_bounds,
    position,
)
from pytest_ragmetrics.runs.tables import Baseline
from pytest_ragmetrics.runs.wording.figures import agreeing, counted, named
from pytest_ragmetrics.runs.wording.runs import by_metric
from pytest_ragmetrics.runs.wording.served import joined, served_warnings

#: Exit statuses of pytest from the best to the worst; a shard without tests (5) does not count.
_STATUSES = (5, 0, 1, 2, 4, 3)
_VERSIONS = ("python", "pytest", "ragmetrics")
#: Where a run comes from: what shards have in common.
_ORIGIN = ("project", "branch", "message", "author", "ci", "ci_number", "repository", "folder", "selection")
#: Returns by name the records of gates that one run over all tests would have left otherwise.
Decide: TypeAlias = "Callable[[Sequence[TestRecord], Baseline | None, Mapping[str, Judging]], Mapping[str, TestRecord]]"


def merge_documents(
    documents: Sequence[Document], baseline: Baseline | None = None, *, decide: Decide | None = None
) -> Document:
    """Return all tests of several runs as one document; raises ``ValueError`` without any.

    Shards of one run give the tests of the whole run. ``run`` has the earliest start, the sum of the durations and the
    worst exit status. A test in several documents, as after a rerun of failed tests, has the record of the run
    that started last. A gate that no run decided, because each had only a part of its set, is decided by ``decide``
    if the documents together have the whole set, a regression gate against the ``baseline``. All regression gates are
    tested together: one that failed beside those of its own run may pass beside all, and with it a run of which nothing
    else failed. The notes name this, and the differences between the runs.
    """
    if not documents:
        raise ValueError("there is nothing to merge")
    if len(documents) == 1:
        return documents[0]
    # Runs that started in the same second may have any order that is always the same.
    documents = sorted(documents, key=lambda document: (document.run.started, repr(document)))
    tests: dict[str, TestRecord] = {}
    repeated: dict[str, bool] = {}
    for test in (test for document in documents for test in document.tests):
        before = tests.setdefault(test.id, test)
        if before is test:
            continue
        if not _is_undecided(test):
            tests[test.id] = test
        if before.gate is None:
            repeated[test.id] = repeated.get(test.id, False) or before.outcome != test.outcome
    runs = [document.run for document in documents]
    ordered, judging = sorted(tests.values(), key=position), _judging(runs)
    found = decide(ordered, baseline, judging) if decide else {}
    decided = [name for name in found if _is_undecided(tests[name])]
    freed = {name for name, test in found.items() if test.outcome == "passed" and tests[name].outcome == "failed"}
    merged = held_to_bounds(sorted({**tests, **found}.values(), key=position))
    status = max((_status(document, freed) for document in documents), key=_badness)
    if any(found[name].outcome == "failed" for name in decided):
        status = max(status, 1, key=_badness)
    notes = tuple(_notes(runs, merged, repeated, decided=len(decided), freed=len(freed)))
    return Document(run=_merged_run(runs, status, notes), tests=merged)


def _status(document: Document, freed: AbstractSet[str]) -> int:
    """Return the exit status of a run, 0 where nothing failed but gates that pass now."""
    failed = {test.id for test in document.tests if test.outcome in ("failed", "error")}
    return 0 if document.run.exit_status == 1 and failed and failed <= freed else document.run.exit_status


def _merged_run(runs: Sequence[RunRecord], status: int, notes: tuple[str, ...]) -> RunRecord:
    def setting(name: str) -> Setting:
        values = [run.settings.get(name) for run in runs]
        return values[0] if len(set(map(repr, values))) == 1 else _joined(map(str, values))

    texts: dict[str, Any] = {name: _joined(getattr(run, name) for run in runs) for name in _VERSIONS}
    texts |= {name: _only(getattr(run, name) for run in runs) for name in _ORIGIN}
    return RunRecord(
        started=runs[0].started,
        duration=round(sum(run.duration for run in runs), 3),
        exit_status=status,
        settings={name: setting(name) for run in runs for name in run.settings},
        notes=notes,
        **texts,
        commit=_only(run.commit.removesuffix("+") for run in runs)
        + ("+" if any(run.commit.endswith("+") for run in runs) else ""),
        partial=", ".join(dict.fromkeys(run.partial for run in runs if run.partial)),
        judging=_judging(runs),
        skipped=_sums(run.skipped for run in runs),
        not_needed=_sums(run.not_needed for run in runs),
        warnings=tuple(_warnings(runs)),
        sentinels=_sentinels(runs),
        mutants=tuple(it for run in runs for it in run.mutants),
    )


def _warnings(runs: Sequence[RunRecord]) -> dict[str, None]:
    """Return the warnings of all runs, those on the models of a judge over all of them together."""
    served = [joined(it.served for it in run.judging.values()) for run in runs]
    kept = (
        text for run, own in zip(runs, served, strict=True) for text in run.warnings if text not in served_warnings(own)
    )
    return dict.fromkeys([*kept, *served_warnings(joined(served))])


def _sentinels(runs: Sequence[RunRecord]) -> dict[str, SentinelRecord]:
    found: dict[str, SentinelRecord] = {}
    for judge, new in (item for run in runs for item in run.sentinels.items()):
        found[judge] = found.get(judge, SentinelRecord()) + new
    return found


def _is_undecided(test: TestRecord) -> bool:
    return test.gate is not None and test.gate.outcome == "skipped"


def waiting_gates(tests: Iterable[TestRecord]) -> dict[str, str]:
    """Return the regression gates that wait for a baseline or tests of their set, with what is made of that."""
    return {it.id: it.gate.inconclusive for it in tests if it.gate and it.gate.regression and _is_undecided(it)}


def _badness(status: int) -> int:
    return _STATUSES.index(status) if status in _STATUSES else len(_STATUSES)


def _only(texts: Iterable[str]) -> str:
    found = set(texts)
    return found.pop() if len(found) == 1 else ""


def _sums(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, counts), Counter[str]()))


def _judging(runs: Sequence[RunRecord]) -> dict[str, Judging]:
    """Return what judged the metrics of all runs; of a metric that two runs judged differently nothing is known."""
    found: dict[str, Judging] = {}
    differing: set[str] = set()
    for name, new in (item for run in runs for item in run.judging.items()):
        old = found.setdefault(name, new)
        if any(judging_changes(old, new)):
            differing.add(name)
        served = new.served if old is new else joined((old.served, new.served))
        found[name] = replace(old, prompts={**old.prompts, **new.prompts}, served=served)
    return {name: it for name, it in found.items() if name not in differing}


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(sorted(set(texts)))


def _notes(
    runs: Sequence[RunRecord], tests: Sequence[TestRecord], repeated: Mapping[str, bool], *, decided: int, freed: int
) -> Iterator[str]:
    yield f"merged from {len(runs)} runs"
    yield from dict.fromkeys(note for run in runs for note in run.notes)
    if repeated:
        changed = f"; {sum(repeated.values())} of them came out differently before" if any(repeated.values()) else ""
        ran = f"{counted(len(repeated), 'test')} {agreeing(len(repeated), 'was')} run more than once"
        yield f"{ran}, and the run that started last counts{changed}"
    if decided:
        were = agreeing(decided, "was")
        yield f"{counted(decided, 'gate')} that no single run could decide {were} decided over all of them"
    if freed:
        which = f"{counted(freed, 'regression gate')} that failed in one run {agreeing(freed, 'was')} passed"
        yield f"{which}: the gates of all runs share the limit"
    if waiting := len(waiting_gates(tests)):
        which = f"{counted(waiting, 'regression gate')} {agreeing(waiting, 'is')} not decided"
        yield f"{which}: that takes all tests of the set, and --baseline=FILE"
    differing = {
        "the runs differ in their version of pytest-ragmetrics": {run.ragmetrics for run in runs},
        "the runs differ in their judge": {str(run.settings.get("judge")) for run in runs},
        "the runs differ in their commit": {short_commit(run.commit.removesuffix("+")) or "unknown" for run in runs},
        "the runs differ in their embedder": {str(run.settings.get("embedder")) for run in runs},
    }
    for metric, records in by_metric(record for test in tests for record in test.records).items():
        differing[f"{named(metric)} was scored by different judges"] = {
            it.judge for it in records if it.judge is not None
        }
    for what, values in differing.items():
        if len(values) > 1:
            yield f"{what}: {', '.join(map(named, sorted(values)))}"
