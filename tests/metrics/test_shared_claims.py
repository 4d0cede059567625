"""Metrics that verify claims against the same contexts: in one request where they score a sample together."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pytest_ragmetrics import Evaluation, JudgeError, Sample, assert_ragas_score, assert_sample, context, evaluate, loop
from pytest_ragmetrics.circuit_breaker import CircuitBreaker
from pytest_ragmetrics.datasets.streaming import LoggedRow
from pytest_ragmetrics.judges.tasks import VerifyClaims
from pytest_ragmetrics.logged_answers import RowScorer, bounded_metrics
from pytest_ragmetrics.metrics import ContextRecall
from pytest_ragmetrics.scoring import OwnSession
from tests.scripted_judge import ScriptedJudge, claims, verdicts

ROW: dict[str, Any] = {
    "user_input": "What do pike eat?",
    "response": "Pike eat small fish. The lake is deep.",
    "reference": "The lake is deep. Perch eat snails.",
    "retrieved_contexts": ["In spring pike eat small fish.", "The lake is deep."],
}
BOTH = ("faithfulness", "context_recall")
LISTED = ("Pike eat small fish.", "The lake is deep.")
OF_REFERENCE = ("The lake is deep.", "Perch eat snails.")
MANY = tuple(f"The lake is {number} m deep." for number in range(70))


def judge_of(**script: Any) -> ScriptedJudge:
    """Return a judge to whom every claim is supported by the second sentence, but for those about perch."""

    def verify(prompt: str) -> dict[str, Any]:
        asked = re.findall(r"^\d+\. (.*)$", prompt.partition("<<<claims")[2], re.MULTILINE)
        return verdicts(*(None if "Perch" in claim else [2] for claim in asked))

    return ScriptedJudge(verify_claims=verify, **{"list_claims": claims(*LISTED), **script})


def scored(judge: Any, *metrics: Any, row: dict[str, Any] = ROW, **options: Any) -> Evaluation:
    """Return a table of one row."""
    return evaluate([row], metrics or BOTH, judge=judge, progress=False, **options)


def verified(judge: ScriptedJudge) -> list[tuple[str, ...]]:
    """Return the claims of each request that had some verified, in order."""
    return sorted(request.asked.claims for request in judge.requests if isinstance(request.asked, VerifyClaims))


def test_one_request_for_both() -> None:
    """A claim that both have is asked once; each metric has the verdicts of its own claims, as when asked alone."""
    judge, other = judge_of(), judge_of()
    table = scored(judge)
    assert verified(judge) == [("The lake is deep.", "Perch eat snails.", "Pike eat small fish.")]
    assert judge.tasks == ["list_claims", "verify_claims"]
    for metric in BOTH:
        together, alone = table.rows[0].results[metric], scored(other, metric).rows[0].results[metric]
        assert (together.value, together.reason) == (alone.value, alone.reason)
        assert [verdict.text for verdict in together.verdicts] == [verdict.text for verdict in alone.verdicts]
        assert [verdict.evidence for verdict in together.verdicts] == [verdict.evidence for verdict in alone.verdicts]
    assert sum(result.usage.calls for result in table.rows[0].results.values()) == 2
    assert verified(other) == [LISTED, OF_REFERENCE]


@pytest.mark.parametrize(
    "score",
    [
        lambda judge: assert_sample(ROW, faithfulness=0, context_recall=0, judge=judge),
        lambda judge: assert_ragas_score(ROW, metrics=BOTH, min=0, judge=judge),
        lambda judge: loop.run(logged(judge)),
    ],
    ids=["assert_sample", "assert_ragas_score", "logged answers"],
)
def test_however_a_sample_is_scored(score: Callable[[ScriptedJudge], object]) -> None:
    """By all that score a sample by several metrics; those of data sets are in the tests of the plugin."""
    judge = judge_of()
    with OwnSession(None, 4) as session, context.changed(private=session):
        score(judge)
    assert judge.tasks == ["list_claims", "verify_claims"]


async def logged(judge: ScriptedJudge) -> None:
    """Score a row as ``ragmetrics score`` does."""
    row = LoggedRow(file="x", number=1, line=1, sample=Sample(**ROW))
    scorer = RowScorer(bounded_metrics(BOTH, judge=judge), CircuitBreaker(1), gives_up=True)
    await scorer.score(row)
    scorer.close()


def test_the_order_of_metrics_changes_no_request() -> None:
    """Whoever is named first."""
    judges = judge_of(), judge_of()
    for judge, metrics in zip(judges, (BOTH, BOTH[::-1]), strict=True):
        scored(judge, *metrics)
    assert verified(judges[0]) == verified(judges[1])


@pytest.mark.parametrize(
    ("metrics", "row", "options"),
    [
        pytest.param(BOTH, {}, {"votes": 2}, id="votes"),
        pytest.param(BOTH, {"response": None}, {}, id="no response"),
        pytest.param(("faithfulness", ContextRecall(judge=judge_of())), {}, {}, id="another judge"),
        pytest.param(BOTH, {"reference": " ".join(MANY)}, {}, id="many"),
    ],
)
def test_asked_apart(metrics: tuple[Any, ...], row: dict[str, Any], options: dict[str, Any]) -> None:
    """Where one request would cost more, or not be the same for both."""
    judge = judge_of()
    scored(judge, *metrics, row=ROW | row, **options)
    assert verified(judge)
    assert set(verified(judge)) <= {LISTED, OF_REFERENCE, MANY}


def test_claims_that_cannot_be_listed() -> None:
    """The other metric is scored by what it has itself."""
    table = scored(judge_of(list_claims=JudgeError("no answer")))
    assert table.rows[0].results["context_recall"].value == 0.5
    assert "no answer" in table.rows[0].unscored["faithfulness"]


@pytest.mark.parametrize(("kept", "cache"), [(True, "off"), (False, "auto")])
def test_nothing_is_asked_together_that_would_be_asked_twice(*, kept: bool, cache: Any) -> None:
    """Without a cache, or of a judge whose replies are not kept, each metric would ask for the claims of both."""
    judge = judge_of()
    judge.is_kept = kept
    with OwnSession(None, 4, cache=cache) as session, context.changed(private=session):
        scored(judge)
    assert verified(judge) == [LISTED, OF_REFERENCE]
