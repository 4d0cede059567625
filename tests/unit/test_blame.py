"""Which part of an application is blamed for scores that became worse."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.evaluation.blame import blame_worse
from pytest_ragmetrics.evaluation.session import OwnSession
from pytest_ragmetrics.runs.blame import Blame
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.records import RegressionRecord
from tests.benchmarks.blame import bases, blamed, ours, planted, unchanged
from tests.documents import document, gate, record, row

ROWS = bases(ours())
TEXTS = {"id": "q1", "user_input": "Who?", "response": "Ann.", "reference": "Ann.", "retrieved_contexts": ["Ann did."]}


def told(fields: dict[str, Any], sample: dict[str, Any], *tests: Any, before: Any = None) -> list[Blame]:
    """Return what is blamed for a score that fell from 1 to 0, of an answer whose texts changed so."""
    score, old = fields.pop("score", 0.0), {**TEXTS, **(before or {})}
    was = row("test_bot[q1]", record(score=1.0, sample=old, at_least=0.5, **fields))
    now = row("test_bot[q1]", record(score=score, sample={**TEXTS, **sample}, at_least=0.5, outcome="failed", **fields))
    comparison = compare_documents(document(now, *tests), document(was))
    found: dict[int, Blame] = {}
    with OwnSession(None, 4) as session:
        loop.run(blame_worse(comparison, session, found))
    return [*found.values()]


def test_planted_faults_are_blamed_right() -> None:
    faults, judge = planted(ROWS, 44, seed=1)
    found, most = blamed(faults, judge)
    wrong = [
        (fault.kind, blame)
        for fault, blame in zip(faults, found, strict=True)
        if blame is None or (blame.part, blame.should_refuse) != (fault.part, fault.should_refuse)
    ]
    assert len(wrong) <= 2, wrong
    assert most <= 4


def test_an_unchanged_application_is_hardly_blamed() -> None:
    worse, wrong = unchanged(ROWS, 100, seed=1, flips=0.1, same=0.0)
    assert worse >= 5
    assert wrong <= 2


def chance(*, outcome: Any = "passed", metric: str = "faithfulness") -> Any:
    """Return the test of a regression gate."""
    found = gate(metric, outcome=outcome, statistic="regression", bound=0.0, regression=RegressionRecord(alpha=0.05))
    return row("test_bot[gate-it]", gate=found)


@pytest.mark.parametrize(
    ("tests", "part"),
    [
        ([chance()], "chance"),
        ([chance(outcome="failed")], "unknown"),
        ([chance(), chance(outcome="inconclusive")], "unknown"),
        ([chance(metric="other")], "unknown"),
    ],
)
def test_where_no_drop_is_proven_it_is_chance(tests: Any, part: str) -> None:
    """The metric of these records is not known here: without a gate nothing can be told."""
    (found,) = told({"metric": "faithfulness", "rule": "x/"}, {}, *tests)
    assert found.part == part
    assert found.usage.calls == 0
