"""Metrics that verify claims against the same contexts: in one request where they score a sample together."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import Evaluation, JudgeError, Sample, assert_ragas_score, assert_sample, evaluate, metric
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.result import MetricResult, Usage
from pytest_ragmetrics.datasets.streaming import LoggedRow
from pytest_ragmetrics.evaluation.runner import bounded_metrics
from pytest_ragmetrics.evaluation.score import score_rows
from pytest_ragmetrics.evaluation.session import OwnSession
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.tasks import VerifyClaims
from pytest_ragmetrics.judges.transports.breaker import CircuitBreaker
from pytest_ragmetrics.metrics import ContextRecall, Faithfulness, LexicalGrounding, RagasScore
from pytest_ragmetrics.metrics.judged import Ask
from tests.metrics.fake_session import FakeSession
from tests.scripted_judge import Entry, ScriptedJudge, claims, verdicts

ROW: dict[str, Any] = {
    "user_input": "What do pike eat?",
    "response": "Pike eat small fish. The lake is deep.",
    "reference": "The lake is deep. Perch eat snails.",
    "retrieved_contexts": ["In spring pike eat small fish.", "The lake is deep."],
}
BOTH = ("faithfulness", "context_recall")
LISTED = ("Pike eat small fish.", "The lake is deep.")
OF_REFERENCE = ("The lake is deep.", "Perch eat snails.")
REFUSED: Entry = lambda _: JudgeError("refused", usage=Usage(calls=1))  # noqa: E731
MANY = tuple(f"The lake is {number} m deep." for number in range(70))


def judge_of(**script: Any) -> ScriptedJudge:
    def verify(prompt: str) -> dict[str, Any]:
        asked = re.findall(r"^\d+\. (.*)$", prompt.partition("<<<claims")[2], re.MULTILINE)
        return verdicts(*(None if "Perch" in claim else [2] for claim in asked))

    return ScriptedJudge(**{"verify_claims": verify, "list_claims": claims(*LISTED), **script})


SHARED = judge_of()
RECALL = ContextRecall(judge=judge_of())


def scored(judge: Any, *metrics: Any, row: dict[str, Any] = ROW, **options: Any) -> Evaluation:
    return evaluate([row], metrics or BOTH, judge=judge, progress=False, **options)


def verified(judge: ScriptedJudge) -> list[tuple[str, ...]]:
    return sorted(request.asked.claims for request in judge.requests if isinstance(request.asked, VerifyClaims))


TALK: list[Any] = [
    {"role": "user", "content": "Ist der See tief?"},
    {"role": "assistant", "content": "Ja.", "contexts": ["池は深い。", "The lake is deep."], "reference": "Tief."},
    {"role": "user", "content": "What do pike eat?"},
    {"role": "assistant", "content": "Fish.", "contexts": ROW["retrieved_contexts"], "reference": ROW["reference"]},
    {"role": "user", "content": "And perch?"},
    {"role": "assistant", "content": "Fish, too.", "contexts": ROW["retrieved_contexts"]},
    {"role": "user", "content": "Danke!"},
    {"role": "assistant", "content": "Gern.", "reference": ROW["reference"]},
]


@pytest.mark.parametrize("unit", ["claims", "sentences"])
@pytest.mark.parametrize("names", [(0, 1), (1, 0)])
def test_one_request_a_turn_for_both(names: tuple[int, int], unit: Any) -> None:
    """Only where a turn has the fields of both; the one that lacks some asks nothing, and is asked for nothing."""
    listed = {"Ja.": "The lake is deep.", "Tief.": "The lake is deep.", "Fish.": LISTED[0], "Fish, too.": LISTED[0]}

    def of_text(prompt: str) -> dict[str, Any]:
        text = prompt.partition("<<<text")[2].splitlines()[1]
        return claims(*([listed[text]] if text in listed else OF_REFERENCE if text == ROW["reference"] else []))

    judge = judge_of(list_claims=of_text)
    both = [Faithfulness(judge=judge), ContextRecall(judge=judge, unit=unit)]
    table = scored(judge, *(both[name] for name in names), row={"id": "see", "messages": TALK}, turns="each")
    assert not [said for row in table.rows for said in row.unscored.values()]
    of_first = ("The lake is deep.",) if unit == "claims" else ("Tief.", "The lake is deep.")
    assert verified(judge) == sorted([of_first, (*OF_REFERENCE, LISTED[0]), LISTED[:1]])
    assert judge.tasks.count("list_claims") == (6 if unit == "claims" else 4)
    reasons = [row.results["context_recall"].reason for row in table.rows[2:]]
    assert reasons == ["no reference in this turn", "no contexts in this turn"]


class Shortened(Faithfulness):
    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        return await super().judged(replace(sample, response=LISTED[0]), ask)


class Unlisted(Faithfulness):
    async def claims(self, sample: Sample, ask: Ask) -> Sequence[str]:
        raise KeyError(sample.response, ask)


FAITHFUL, SHARING = Faithfulness(judge=SHARED), ContextRecall(judge=SHARED)
MEANT = LexicalGrounding()


@metric
def around(response: str, retrieved_contexts: list[str]) -> float:
    return FAITHFUL.score(response=response, retrieved_contexts=retrieved_contexts)


def test_one_request_for_both() -> None:
    """A claim that both have is asked once, whoever is named first; each has its own verdicts, as when asked alone."""
    judge, turned, other = judge_of(), judge_of(), judge_of()
    table = scored(judge)
    scored(turned, *BOTH[::-1])
    assert verified(judge) == verified(turned) == [("The lake is deep.", "Perch eat snails.", "Pike eat small fish.")]
    assert judge.tasks == ["list_claims", "verify_claims"]
    for name in BOTH:
        together, alone = table.rows[0].results[name], scored(other, name).rows[0].results[name]
        assert (together.value, together.reason) == (alone.value, alone.reason)
        assert [(v.text, v.evidence) for v in together.verdicts] == [(v.text, v.evidence) for v in alone.verdicts]
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
    row = LoggedRow(file="x", number=1, line=1, sample=Sample(**ROW))
    metrics, session = bounded_metrics(BOTH, judge=judge), context.current().session
    assert session is not None
    await score_rows([row], metrics, session, votes=None, take=id, breaker=CircuitBreaker(1), gives_up=True)


@pytest.mark.parametrize(
    ("metrics", "row", "options"),
    [
        pytest.param(BOTH, {}, {"votes": 2}, id="votes"),
        pytest.param(BOTH, {"response": None}, {}, id="no response"),
        pytest.param(("faithfulness", ContextRecall(judge=judge_of())), {}, {}, id="another judge"),
        pytest.param(BOTH, {"reference": " ".join(MANY)}, {}, id="many"),
        pytest.param((Shortened(judge=SHARED), SHARING), {}, {}, id="a subclass of another text"),
        pytest.param((Unlisted(judge=SHARED), SHARING), {}, {}, id="a subclass that fails"),
        pytest.param((around, SHARING), {}, {}, id="a metric inside of another"),
        pytest.param((FAITHFUL, RagasScore(metrics=[FAITHFUL, SHARING])), {}, {}, id="one that a mean has as well"),
        pytest.param((MEANT, RagasScore(metrics=[FAITHFUL, SHARING, MEANT])), {}, {}, id="a mean beside one of its"),
        pytest.param(("context_recall",), {"reference": " ".join(OF_REFERENCE[1:] * 2)}, {}, id="said twice"),
    ],
)
def test_asked_apart(metrics: tuple[Any, ...], row: dict[str, Any], options: dict[str, Any]) -> None:
    """Where one request would cost more, or not be the same for both."""
    judge = judge_of()
    SHARED.requests.clear()
    scored(judge, *metrics, row=ROW | row, **options)
    asked = verified(judge) + verified(SHARED)
    assert asked
    assert set(asked) <= {LISTED, LISTED[:1], OF_REFERENCE, OF_REFERENCE[1:] * 2, MANY}
    assert (judge.tasks + SHARED.tasks).count("list_claims") <= (options.get("votes") or 1)


@pytest.mark.parametrize("metrics", [BOTH, BOTH[::-1]], ids=" ".join)
@pytest.mark.parametrize(
    "script",
    [{}, {"verify_claims": claims()}, {"list_claims": verdicts()}, {"list_claims": REFUSED}],
    ids=["answered", "verified wrongly", "listed wrongly", "refused"],
)
def test_each_request_is_counted_once(metrics: Sequence[str], script: dict[str, Any]) -> None:
    judge, recorder = judge_of(**script), FakeSession()
    with context.changed(recorder=recorder):
        row = scored(judge, *metrics).rows[0]
    assert sum(scoring.usage.calls for scoring in recorder.scorings) == len(judge.requests)
    # Where no claims can be listed the other metric is scored by what it has itself.
    assert ("context_recall" in row.results) is ("verify_claims" not in script)
    assert ("faithfulness" in row.unscored) is bool(script)


def test_another_judge_that_is_not_configured() -> None:
    with OwnSession(None, 4) as session, context.changed(private=session, beside=[Faithfulness(judge="auto"), RECALL]):
        assert RECALL.score(**ROW).value == 0.5


def test_replayed_without_the_claims_of_the_other(tmp_path: Path) -> None:
    for mode, listed in (("auto", JudgeError("refused")), ("replay", claims(*LISTED))):
        judge = judge_of(list_claims=listed)
        with OwnSession(tmp_path, 4, cache=mode) as session, context.changed(private=session):
            assert scored(judge).rows[0].results["context_recall"].value == 0.5
        assert ("verify_claims" in judge.tasks) is (mode == "auto")


@pytest.mark.parametrize(("kept", "cache"), [(True, "off"), (False, "auto")])
def test_nothing_is_asked_together_that_would_be_asked_twice(*, kept: bool, cache: Any) -> None:
    """Without a cache, or of a judge whose replies are not kept, each metric would ask for the claims of both."""
    judge = judge_of()
    judge.is_kept = kept
    with OwnSession(None, 4, cache=cache) as session, context.changed(private=session):
        scored(judge)
    assert verified(judge) == [LISTED, OF_REFERENCE]
