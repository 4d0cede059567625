"""Which part of an application is blamed for scores that became worse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.evaluation.blame import blame_worse
from pytest_ragmetrics.evaluation.session import OwnSession
from pytest_ragmetrics.judges.context import changed
from pytest_ragmetrics.report.columns import compare_runs
from pytest_ragmetrics.report.outcomes import paired_tests
from pytest_ragmetrics.report.page import environment, render_columns, render_html
from pytest_ragmetrics.report.tests_view import build_report_view
from pytest_ragmetrics.runs.blame import Blame
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.records import RegressionRecord, read_document, render_json
from pytest_ragmetrics.runs.wording.blame import blame_lines, blame_text
from tests.benchmarks.blame import bases, blamed, ours, ours_of_five, planted, unchanged
from tests.documents import HOSTILE, document, gate, record, row

ROWS = bases(ours())
TEXTS = {"id": "q1", "user_input": "Who?", "response": "Ann.", "reference": "Ann.", "retrieved_contexts": ["Ann did."]}


def told(fields: dict[str, Any], sample: dict[str, Any], *tests: Any, before: Any = None) -> list[Blame]:
    """Return what is blamed for a score that fell from 1 to 0, of an answer whose texts changed so."""
    score, old = fields.pop("score", 0.0), {**TEXTS, **(before or {})}
    fields = {"at_least": 0.5, **fields}
    was = row("test_bot[q1]", record(score=1.0, sample=old, **fields))
    now = row("test_bot[q1]", record(score=score, sample={**TEXTS, **sample}, outcome="failed", **fields))
    comparison = compare_documents(document(now, *tests), document(was))
    found: dict[int, Blame] = {}
    with OwnSession(None, 4, judge="local", embedder="local") as session, changed(private=session):
        loop.run(blame_worse(comparison, session, found))
    return [*found.values()]


def test_nothing_is_to_blame_for_seconds() -> None:
    assert told({"metric": "speed", "score": 0.1, "unit": "m/s"}, {}) == []
    assert told({"metric": "speed", "score": 0.1}, {}) != []


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


def test_errors_about_single_claims_are_no_fault_of_the_application() -> None:
    """An answer of five claims is judged bad in 4 of 10 judgements, seldom for the same claim."""
    worse, wrong = unchanged(bases(ours_of_five()), 100, seed=1, flips=0.1, same=0.0, by_claim=True, moved=True)
    assert worse >= 15
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


LOCAL: dict[str, Any] = {"metric": "faithfulness", "rule": "/", "judge": "local (heuristic)"}
GREEN, BLUE, FERN = "Moss grows on wet stone.", "Moss eats seven small houses.", "Ferns are tall in June."
SAID = {"response": GREEN, "retrieved_contexts": [GREEN, FERN]}
LOST, MADE_UP = {"retrieved_contexts": [FERN]}, {"response": BLUE}
EARLIER = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
CONTEXTS = {"metric": "context_recall", "rule": "/", "judge": "local (heuristic)"}
EXACT = {"metric": "exact_match", "rule": "/"}


@pytest.mark.parametrize(
    ("fields", "now", "part", "reason"),
    [
        (LOCAL, LOST, "retriever", ""),
        (LOCAL, MADE_UP, "generator", ""),
        (LOCAL, {**LOST, **MADE_UP}, "retriever", ""),
        ({**LOCAL, "at_least": None}, {**LOST, **MADE_UP}, "retriever", ""),
        ({**LOCAL, "at_least": None}, {**MADE_UP, "retrieved_contexts": [FERN, GREEN]}, "generator", ""),
        (LOCAL, {"retrieved_contexts": [GREEN.replace(" ", "\n"), FERN]}, "judge", ""),
        (LOCAL, {"reference": "Another.", **LOST}, "retriever", ""),
        (LOCAL, {"metadata": {"messages": EARLIER, "turn": 2}}, "unknown", "only earlier turns are others than in the"),
        ({**LOCAL, "judge": "openai:m"}, LOST, "unknown", "openai:m judged it, and local (heuristic) would judge here"),
        ({**LOCAL, "metric": "gone"}, LOST, "unknown", "gone is not known here with the code and the arguments"),
        ({**LOCAL, "rule": None}, LOST, "unknown", "faithfulness is not known here with the code and the arguments"),
        (LOCAL, {"response": None}, "unknown", "this run has no texts of it: faithfulness: response is missing"),
        (LOCAL, {"response": "!", "retrieved_contexts": [GREEN]}, "unknown", "faithfulness: the response has no"),
        (LOCAL, {"response": "!", **LOST}, "retriever", ""),
        (CONTEXTS, LOST, "retriever", ""),
        (CONTEXTS, {"reference": "Another."}, "unknown", "the reference is another one than in the baseline"),
        (EXACT, LOST, "unknown", "answer and passages are those of the baseline, and no judge decided"),
        (EXACT, MADE_UP, "generator", ""),
        (EXACT, {**LOST, **MADE_UP}, "retriever", ""),
        (EXACT, {**MADE_UP, "retrieved_contexts": [FERN, GREEN]}, "generator", ""),
        (EXACT, {**MADE_UP, "retrieved_contexts": None}, "unknown", "it has no retrieved_contexts, which could"),
        ({"metric": "semantic_similarity", "rule": "/", "judge": "local words"}, {**LOST, **MADE_UP}, "retriever", ""),
        ({**LOCAL, "metric": "goal_accuracy"}, {"metadata": {"messages": []}}, "unknown", ""),
    ],
)  # fmt: skip
def test_each_case_has_its_part_or_a_reason(fields: Any, now: Any, part: str, reason: str) -> None:
    before = {"reference": GREEN, **SAID}
    (found,) = told(dict(fields), {**before, **now}, before=before)
    assert (found.part, found.reason[: len(reason)]) == (part, reason), found
    assert bool(found.reason) == (part == "unknown")


@pytest.mark.parametrize(
    ("fields", "count"),
    [({"score": 1.0}, 0), ({"score": None}, 0), ({"score": 0.5}, 0), ({"score": 0.4}, 1), ({"vacuous": True}, 0)],
)
def test_only_scores_that_fell_below_their_bound_are_looked_at(fields: Any, count: int) -> None:
    assert len(told({**LOCAL, **fields}, {**SAID, **LOST}, before=SAID)) == count


@pytest.mark.parametrize("most", [1, 2])
def test_the_largest_changes_are_looked_at(most: int) -> None:
    scores = {"test_a[q1]": 0.4, "test_b[q1]": 0.0, "test_c[q1]": 0.2}

    def ran(changes: dict[str, Any], scores: dict[str, float]) -> Any:
        sample = {**TEXTS, **SAID, **changes}
        return document(*(row(it, record(score=n, sample=sample, at_least=0.5, **LOCAL)) for it, n in scores.items()))

    comparison = compare_documents(ran(LOST, scores), ran({}, dict.fromkeys(scores, 1.0)))
    found: dict[int, Blame] = {}
    with OwnSession(None, 4, judge="local", embedder="local") as session, changed(private=session):
        loop.run(blame_worse(comparison, session, found, rows=most))
    looked = [test.id for test in comparison.document.tests if id(test.records[0]) in found]
    assert [it.partition("::")[2] for it in looked] == ["test_b[q1]", "test_c[q1]"][:most]


@pytest.mark.parametrize(
    ("part", "cause"),
    [("retriever", "retrieval"), ("generator", "answer"), ("judge", "judge"), ("interplay", "interplay"),
     ("chance", "chance"), ("unknown", "answer")],
)  # fmt: skip
def test_the_page_sorts_by_the_part_and_files_keep_it(part: Any, cause: str, tmp_path: Path) -> None:
    """A part that is unknown leaves the cause to the rules; hostile texts do nothing on the page."""
    blame = Blame(part=part, cells=(1.0, 0.0, None, 0.0), again=(0.0,), recalls=(0.9, 0.4), reason=HOSTILE[0])
    was = row("test_bot[q1]", record(sample={**TEXTS, **SAID}))
    now = record(score=0.0, outcome="failed", sample={**TEXTS, **SAID, **MADE_UP}, blame=blame)
    made = document(row("test_bot[q1]", now, outcome="failed"))
    (tmp_path / "run.json").write_text(render_json(made), "utf-8")
    read = read_document(tmp_path / "run.json")
    assert read == made
    comparison = compare_documents(read, document(was))
    (pair,) = paired_tests(read, comparison)
    assert pair.cause == cause
    first, *others = blame_lines(comparison)
    assert first == f"1 worse: 1 {part}"
    assert others == ([f"  unknown, 1: {HOSTILE[0]}"] if part == "unknown" else [])
    page = render_html(read, comparison=comparison)
    assert HOSTILE[0] not in page
    # In the view of a test, in what changed in it, and on the page of two runs.
    view = build_report_view(read, comparison)
    bodies: Any = [environment().get_template(f"{name}.html.jinja").module for name in ("test", "compare")]
    pages = [bodies[0].body(view.tests[0]), bodies[1].body(view.tests[0], None)]
    pages.append(render_columns(compare_runs([("then", document(was)), ("now", read)])))
    said = f"Cause of the drop in <bdi>quoted_spans_alignment</bdi>: <bdi>{part}: "
    assert [it.count(said) for it in pages] == [1, 1, 1]
    assert "judged again 0.00; of the reference the old passages have 0.90, the new ones 0.40" in blame_text(blame)
