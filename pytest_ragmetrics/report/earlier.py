"""The last runs of a history as a baseline: their scores as documents without texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.report.history import (
    ELSEWHERE,
    HistoryError,
    HistoryRun,
    RowPoint,
    Rule,
    TestPoint,
    brackets,
    read_history,
    second,
)
from pytest_ragmetrics.runs.records import Document, Record, RunRecord, TestRecord, function_name
from pytest_ragmetrics.runs.tables import Baseline, earlier_run, runs_text
from pytest_ragmetrics.runs.wording.figures import counted, named

# The fields of a record that a rule has.
_RULE = ("judge", "rule", "better", "noun", "scale", "unit")


class PastRuns(NamedTuple):
    """The last runs of a branch, ``None`` before the first, and the ``lines`` that say which, and what is left out."""

    baseline: Baseline | None
    lines: tuple[str, ...]


def past_runs(folder: Path, *, last: int, branch: str = "", before: Sequence[RunRecord] = ()) -> PastRuns:
    """Return the last runs in a folder of ``--rag-history`` that started before some others, which may be in it too.

    They are those of a ``branch``, by default of main, else of master, else of that of the latest run. Runs of a part
    do not count among them, so that they displace no whole one; the latest are there to be named. Runs of the same
    answers and scores count once: of an application without chance five copies of one run would tell of no chance, and
    one that answers in other words, no worse on average, was red in 18 % of simulated runs of 200 rows instead of 3 %.
    """
    until = min((run.started for run in before), default=None)
    for name in (branch,) if branch else ("main", "master", None):
        with suppress(HistoryError):
            found = read_history(folder, last=last + len(before), branch=name, until=until, counts=_is_whole)
            runs = [it for it in found.runs if until is None or second(it.run.started) != second(until)]
            while sum(map(_is_whole, runs)) > last or len(runs) > 2 * last:
                del runs[0]
            scored = [[(at.id, at.answer, at.scores, at.rows) for at in it.tests if at.scores] for it in runs]
            own = [it for at, it in enumerate(runs) if scored[at] not in scored[at + 1 :]]
            if own:
                text = runs_text([earlier_run(it.run, {}) for it in own])
                if copies := len(runs) - len(own):
                    text += f", and {counted(copies, 'run')} of the same answers and scores, which count once"
                line = f"baseline: {text}, in {folder}; a FILE of --rag-json shows what changed test by test, too"
                left_out = (it for it in found.left_out if not it.endswith(ELSEWHERE))
                return PastRuns(Baseline(runs=tuple(map(past_document, own)), is_history=True), (line, *left_out))
    which = f" of {named(branch)}" if branch else ""
    return PastRuns(None, (f"baseline: there is no run{which} in {folder} yet",))


def _is_whole(run: HistoryRun) -> bool:
    """Return whether a run has all rows of a set at least; without one it can be compared with nothing."""
    if not run.run.partial:
        return True
    ran = Counter(function_name(test.id) for test in run.tests if test.scores)
    return any(ran[function_name(test)] >= gate.total for test, gate in run.gates.items())


def past_document(run: HistoryRun) -> Document:
    """Return a run of a history as a document: scores, and what they are paired by, without a text."""
    rules: dict[tuple[str, str], Rule] = {}
    for rule in run.rules:
        rules |= {(rule.metric, function): rule for function in rule.functions or ("",)}
    tests = []
    for test in run.tests:
        gate = run.gates.get(test.id)
        if gate is None and not test.scores and "[gate-" in test.id:
            continue  # one that was skipped
        records = tuple(record for row in test.rows or (RowPoint(id=""),) for record in _records(test, row, rules))
        about: dict[str, Any] = {"line": None, "duration": 0.0, "attempts": 1, "message": None, "gate": gate}
        outcome: Any = "passed" if test.outcome == "passed" else "failed"
        file = test.id.partition("::")[0]
        tests.append(TestRecord(id=test.id, file=file, outcome=outcome, records=records, **about))
    return Document(run=run.run, tests=tuple(tests))


def _records(test: TestPoint, row: RowPoint, rules: Mapping[tuple[str, str], Rule]) -> Iterator[Record]:
    sample = Sample(
        id=(brackets(test.id) if row.id is None else row.id) or None,
        user_input=f"question {row.question}" if row.question else None,
        metadata={} if row.answer is None else {"answer": row.answer},
    )
    none: dict[str, Any] = {"threshold": None, "reason": None, "usage": Usage(), "samples": (), "verdicts": ()}
    for metric, score in (row.scores or {name: point[0] for name, point in test.scores.items()}).items():
        rule = rules.get((metric, function_name(test.id))) or rules.get((metric, ""))
        made: dict[str, Any] = {} if rule is None else {name: getattr(rule, name) for name in _RULE}
        yield Record(
            metric=metric,
            score=score,
            outcome="unscored" if score is None else "measured",
            vacuous=metric in row.vacuous,
            sample=sample,
            exchanges=(),
            **{"better": "higher", "judge": None, **none, **made},
        )
