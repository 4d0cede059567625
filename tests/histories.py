"""Histories of runs, made of documents: what trends are tested with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pytest_ragmetrics.report.history import History, HistoryRun, history_run
from pytest_ragmetrics.runs.records import Judging, Record
from tests.documents import HOSTILE, document, gate, record, row

#: A score, or a test that has more to say: its score and its answer.
Answers = Mapping[str, float | tuple[float | None, str] | None]


def kept(
    day: int, answers: Answers, *, judge: str | None = "openai:one", gates: Sequence[Any] = (), **fields: Any
) -> HistoryRun:
    """Return the run of a day: faithfulness of tests by name, which needs 0.8; ``fields`` are those of the run."""
    rows = []
    for name, given in answers.items():
        score, answer = given if isinstance(given, tuple) else (given, "It is.")
        outcome: Any = "unscored" if score is None else "passed" if score >= 0.8 else "failed"
        fine = "passed" if outcome == "passed" else "failed"
        rows.append(row(name, scored(score, answer, judge=judge, outcome=outcome), outcome=fine))
    rows += [row(f"test_gate_{at}", gate=found) for at, found in enumerate(gates)]
    run = document(*rows)
    start, commit = f"2026-10-{day:02}T08:14:00Z", f"{day:02}c0ffee0123"
    made = history_run(replace(run, run=replace(run.run, started=start, commit=commit, branch="main")))
    return replace(made, run=replace(made.run, **fields))


def scored(score: float | None, answer: str, **fields: Any) -> Record:
    return record("faithfulness", score, at_least=0.8, sample={"response": answer}, **fields)


@lru_cache
def month() -> History:
    """Return a month in which a judge is changed, a gate falls, a test fails since, and another one is flaky."""
    runs = []
    for day in range(1, 29):
        low = 0.55 if day > 24 else 0.0
        mean = 0.91 - 0.004 * (day % 4) - (0.07 if day > 24 else 0.0)
        answers: dict[str, Any] = {f"test_bot[{n}]": (0.85 + 0.01 * ((n + day) % 10), f"{n} {day}") for n in range(20)}
        answers["test_deposit"] = (0.5 if day > 24 else 0.9, f"deposit {day}")
        answers["test_noise"] = (0.7 if day in (9, 17, 21) else 0.9, "the same")
        answers["test_pets"] = (None if day in (13, 28) else 0.95, f"pets {day}")
        outcome: Any = "failed" if low else "passed"
        rate = gate(
            value=mean, bound=0.85, statistic="rate", min_score=0.8, between=(mean - 0.04, mean + 0.03), outcome=outcome
        )
        judge = "openai:gpt-5-mini" if day > 12 else "openai:gpt-4.1-mini"
        runs.append(kept(day, answers, judge=judge, gates=[rate], partial="-k pets" if day == 20 else ""))
    return History(runs=tuple(runs), branch="main", left_out=("notes.txt: left out, not a file of --rag-history",))


def hostile() -> History:
    days = [kept(day, {text[:500]: (0.5 if day > 1 else 0.9, "one") for text in HOSTILE}) for day in (1, 2, 3)]
    runs = []
    for run, text in zip(days, HOSTILE, strict=False):
        judging = {text: Judging(judge=text, prompts={}, definition={text: text})}
        named = replace(run.run, selection=text, commit=text, judging=judging)
        runs.append(replace(run, run=named, metrics=tuple(replace(it, metric=text) for it in run.metrics)))
    return History(runs=tuple(runs), branch=HOSTILE[0], left_out=HOSTILE)
