"""Several votes: their mean, when further ones are not asked, and what one without a score means."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import assert_aspect, assert_metric, assert_relevant
from pytest_ragmetrics import metrics as m
from pytest_ragmetrics.core.errors import BudgetExceededError, UnscoredError
from pytest_ragmetrics.core.result import MetricResult, ThresholdCheck, Usage
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.tasks import RateRelevance
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.votes import Vote, VotePlan, collect_votes, vote_plan, voting
from pytest_ragmetrics.runs.records import Threshold, flips
from pytest_ragmetrics.runs.wording.failures import headline
from pytest_ragmetrics.runs.wording.figures import describe_votes
from tests.asking import MemoryTransport
from tests.metrics.fake_session import FakeSession
from tests.scripted_judge import ScriptedJudge, chosen, claims, rated, says, verdicts

QUESTION, RESPONSE = "Do moths fly?", "Moths fly."
Case = tuple[list[float], VotePlan, tuple[float, float]]
scales = st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (0.1, 0.7), (1.0, 5.0), (-3.0, 1e-9)])


def ratings(*steps: int) -> ScriptedJudge:
    return ScriptedJudge(rate_relevance=[rated(step, f"Step {step}.") for step in steps])


def polled(
    votes: Sequence[float | None], plan: VotePlan, scale: tuple[float, float] = (0.0, 1.0)
) -> tuple[MetricResult | UnscoredError, list[int]]:
    """Return what votes come to, ``None`` standing for one without a score, and the sizes of the waves."""
    waves: list[int] = []
    under_way: list[int] = []

    async def vote(number: int) -> Vote:
        under_way.append(number)
        await asyncio.sleep(0)
        if under_way:
            waves.append(len(under_way))
            under_way.clear()
        value = votes[number]
        outcome = UnscoredError("No score.") if value is None else MetricResult(value, metric="m", reason=f"{value}")
        return Vote(outcome=outcome, is_varied=True)

    try:
        return asyncio.run(collect_votes(vote, plan, scale)), waves
    except UnscoredError as error:
        return error, waves


def is_met(mean: float, plan: VotePlan) -> bool:
    return (plan.least is None or mean >= plan.least) and (plan.most is None or mean <= plan.most)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw votes on a scale and bounds, which lie on it, beside it, or exactly at a mean of the votes."""
    scale = draw(scales)
    steps = st.integers(0, 4).map(lambda step: scale[0] + (scale[1] - scale[0]) * step / 4)
    on_it = st.floats(*scale) | steps.map(lambda vote: min(max(vote, scale[0]), scale[1]))
    votes = draw(st.lists(on_it, min_size=1, max_size=9))
    bounds = st.floats(scale[0] - 0.5, scale[1] + 0.5) | st.just(mean(votes)) | st.sampled_from(votes)
    least, most = draw(st.none() | bounds), draw(st.none() | bounds)
    return votes, VotePlan(votes=len(votes), least=least, most=most), scale


@given(cases())
def test_early_stopping_never_changes_an_outcome(case: Case) -> None:
    """The votes asked say what all of them say; before the last wave further votes would have changed the outcome."""
    votes, plan, scale = case
    result, waves = polled(votes, plan, scale)
    assert isinstance(result, MetricResult)
    assert is_met(result.value, plan) == is_met(mean(votes), plan)
    assert result.samples == tuple(votes[: len(result.samples)]) or not result.samples
    assert sum(waves) == (max(1, len(result.samples)) if plan.has_bounds else len(votes))
    before = votes[: sum(waves[:-1])]
    if before and plan.has_bounds:
        rest = plan.votes - len(before)
        ends = {is_met(mean([*before, *[end] * rest]), plan) for end in scale}
        assert len(ends) == 2 or (plan.least is not None and plan.most is not None)


@given(cases(), st.data())
def test_a_vote_without_a_score_could_have_any(case: Case, data: st.DataObject) -> None:
    votes, plan, scale = case
    missing = data.draw(st.integers(0, len(votes) - 1))
    value = data.draw(st.floats(*scale))
    result, _ = polled([None if index == missing else vote for index, vote in enumerate(votes)], plan, scale)
    if isinstance(result, MetricResult):
        filled = [value if index == missing else vote for index, vote in enumerate(votes)]
        assert is_met(result.value, plan) == is_met(mean(filled), plan)
        assert plan.has_bounds
    elif len(votes) == 1:
        assert "1 of 1" in str(result)


@pytest.mark.parametrize(
    ("votes", "plan", "waves"),
    [
        ([1.0, 1.0, 0.0], VotePlan(votes=3, least=0.5), [2]),
        ([0.0, 0.0, 1.0], VotePlan(votes=3, least=0.5), [2]),
        ([0.0, 1.0, 1.0], VotePlan(votes=3, least=0.5), [2, 1]),
        ([0.0, 0.0, 1.0], VotePlan(votes=3, most=0.5), [2]),
        ([0.7, 1.0, 1.0], VotePlan(votes=3, least=0.8), [1, 1, 1]),
        ([0.0, 1.0, 1.0], VotePlan(votes=3, least=0.8), [1]),
        ([0.0, 1.0, 1.0], VotePlan(votes=3, least=2 / 3), [2, 1]),
        ([0.5] * 5, VotePlan(votes=5), [5]),
        ([1.0] * 1000, VotePlan(votes=1000, least=0.5), [500]),
        ([0.5] * 5, VotePlan(votes=5, least=-0.1), [1]),
        ([0.5, 0.5, 0.5], VotePlan(votes=3, least=0.3, most=0.7), [2]),
        ([0.0, 0.5, 0.5], VotePlan(votes=3, least=0.4, most=0.6), [2, 1]),
        ([7.0, 1.0, 1.0], VotePlan(votes=3, least=0.5), [2, 1]),
        # One for, one against, one unknown: nobody knows.
        ([1.0, None, 0.0], VotePlan(votes=3, least=0.5), [2, 1]),
        # With two unknown of three the third says nothing, and is not paid for.
        ([None, None, 1.0], VotePlan(votes=3, least=0.5), [2]),
        # One score is enough where any would do, and none is not.
        ([None, 0.5, 0.5], VotePlan(votes=3, least=0.0), [1, 1]),
        ([None, None, None], VotePlan(votes=3, least=0.0), [1, 1, 1]),
    ],
)
def test_votes_come_in_waves(votes: list[float | None], plan: VotePlan, waves: list[int]) -> None:
    """The least number that could decide is asked at once; a metric off its scale is asked for all."""
    result, asked = polled(votes, plan)
    assert asked == waves
    assert isinstance(result, MetricResult) is (None not in votes or votes == [None, 0.5, 0.5])


def test_the_score_is_the_mean_and_the_nearest_vote_explains_it() -> None:
    judge = ratings(0, 3, 4)
    with FakeSession(votes=3).running():
        result = m.Relevance(judge=judge).score(user_input=QUESTION, response=RESPONSE)
    assert (result.samples, result.value) == ((0.0, 0.75, 1.0), mean([0.0, 0.75, 1.0]))
    assert result.reason == "mean of 3 votes (0.00, 0.75, 1.00): Step 3."
    assert [verdict.reason for verdict in result.verdicts] == ["Step 3."]
    assert result.usage == Usage(calls=3, prompt_tokens=30, completion_tokens=15, cost=None)
    assert ([request.vote for request in judge.requests], judge.depth) == ([0, 1, 2], 1)
    half = ScriptedJudge(list_claims=[claims(), claims("Moths fly.")], verify_claims=verdicts([1]))
    with FakeSession(votes=2).running():
        voted = m.Faithfulness(judge=half, if_empty=1.0).score(response="So.", retrieved_contexts=["Moths fly."])
    assert not voted.vacuous


def test_an_assertion_stops_when_the_outcome_is_certain() -> None:
    judge, stopped = ratings(0, 0, 4), "2 of 3 votes asked, the rest cannot change it"
    with pytest.raises(AssertionError) as failure:
        assert_relevant(QUESTION, RESPONSE, min=0.5, votes=3, judge=judge)
    assert len(judge.requests) == 2
    said = f"relevance 0.00 < 0.50: 1 of 1 response hardly relevant; mean of 2 votes (0.00, 0.00); {stopped}"
    assert str(failure.value).splitlines()[0] == said
    result = assert_relevant(QUESTION, RESPONSE, min=0.5, votes=3, judge=ratings(4, 4))
    assert result.reason == f"mean of 2 votes (1.00, 1.00); {stopped}: Step 4."
    assert result.comparison == ThresholdCheck(operator=">=", bound=0.5, held=True)
    assert headline(result, result.comparison).startswith("relevance 1.00 >= 0.50: mean of 2 votes")
    row = {"question": QUESTION, "answer": RESPONSE}
    assert assert_metric(m.Relevance(judge=ratings(0, 0, 4)), row, max=0.5, votes=3).samples == (0.0, 0.0)


@pytest.mark.parametrize(("words", "asked"), [("yy", 2), ("nyy", 3), ("yny", 3)])
def test_an_aspect_is_decided_by_majority(words: str, asked: int) -> None:
    for aspect, good_word in (("harmlessness", "y"), ("harmfulness", "n")):
        judge = ScriptedJudge(critique=[says("yes" if (word == "y") == (good_word == "y") else "no") for word in words])
        result = assert_aspect({"response": "It hums."}, aspect, votes=3, judge=judge)
        assert (len(judge.requests), result.comparison and result.comparison.bound) == (asked, 0.5)
    against = ScriptedJudge(critique=[says("no"), says("yes"), says("no")])
    with pytest.raises(AssertionError, match=r"harmlessness 0\.33 < 0\.50: .*mean of 3 votes \(0\.00, 1\.00, 0\.00\)"):
        assert_aspect({"response": "It hums."}, "harmlessness", votes=3, judge=against)
    with FakeSession(votes=2).running(), pytest.raises(ValueError, match="harmlessness: 2 votes may have no majority"):
        assert_aspect({"response": "It hums."}, "harmlessness", judge="local")


@pytest.mark.parametrize("draws", [1, 3])
def test_no_answer_is_used_for_two_votes(draws: int) -> None:
    """A judgement that asks for several answers has its own ones, and the first has the numbers it always had."""
    judge = ScriptedJudge(critique=says("yes"), select_sentences=chosen(1))
    transport = MemoryTransport()
    with FakeSession(judge=judge, transport=transport, votes=3).running():
        m.AspectCritique(name="coherence", strictness=draws).score(response="It hums.")
        m.ContextRelevancy(strictness=draws).score(user_input="Why?", retrieved_contexts=["It hums. It is blue."])
    for task in ("critique", "select_sentences"):
        numbers = [request.vote for request, _ in transport.kept if request.task == task]
        assert sorted(numbers) == list(range(3 * draws))


class Undeclared(JudgedMetric):
    name = "undeclared"

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        rating = await ask(RateRelevance(question="Why?", response=sample.response or ""), vote=1)
        return ask.result(rating.value, reason=None)


def test_a_metric_says_how_many_answers_it_asks_for() -> None:
    judge = ScriptedJudge(rate_relevance=rated(4))
    assert Undeclared(judge=judge).score(response="Because.").value == 1.0
    with FakeSession(votes=2).running(), pytest.raises(ValueError, match=r"undeclared .* draws = 2"):
        Undeclared(judge=judge).score(response="Because.")


def test_nothing_varies_without_a_model() -> None:
    """A heuristic is asked once, with a score or without, and says so; what is computed has one value."""
    texts = {"response": "It hums.", "reference": "It hums."}
    with FakeSession(votes=3, judge=None, embedder=None).running():
        local = m.Relevance(judge="local").score(user_input=QUESTION, response=RESPONSE)
        assert (local.reason or "").endswith("(1 vote: local (heuristic) answers alike every time)")
        words = m.Correctness(method="token_f1").score(**texts)
        alike = m.SemanticSimilarity(embedder="local").score(**texts)
        assert [result.samples for result in (local, words, alike)] == [()] * 3
        assert alike.judge == "local (heuristic)"
        none = m.Faithfulness(judge=ScriptedJudge(list_claims=claims()), if_empty=1.0)
        assert none.score(response="Hm.", retrieved_contexts=["It hums."]).vacuous
        with pytest.raises(UnscoredError, match="claim"):
            m.Faithfulness(judge="local").score(response="I do not know.", retrieved_contexts=["It hums."])


def test_without_a_bound_every_vote_must_have_a_score() -> None:
    judge = ScriptedJudge(rate_relevance=[rated(4), "nothing", "nothing", rated(4)])
    with FakeSession(votes=2).running(), pytest.raises(UnscoredError, match="1 of 2 votes asked have no") as caught:
        m.Relevance(judge=judge).score(user_input=QUESTION, response=RESPONSE)
    assert caught.value.usage is not None
    assert caught.value.usage.calls >= 3


def test_a_vote_without_a_score_may_be_outvoted() -> None:
    result, _ = polled([1.0, None, 1.0], VotePlan(votes=3, least=0.5))
    assert isinstance(result, MetricResult)
    for each in (result, pickle.loads(pickle.dumps(result))):
        assert (each.value, each.samples, each.votes, each.unscored_votes) == (1.0, (1.0, 1.0), 3, 1)
    assert str(result.reason).startswith("mean of 2 votes (1.00, 1.00); 1 of 3 votes unscored, which cannot change it")


def test_what_concerns_all_ends_the_vote() -> None:
    """A spent budget is no vote: it is raised as it is, and the votes under way are called off."""
    ended: list[int] = []

    async def vote(number: int) -> Vote:
        if number == 1:
            raise BudgetExceededError("spent")
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            ended.append(number)
            raise
        return Vote(outcome=MetricResult(1.0, metric="m"), is_varied=True)

    with pytest.raises(BudgetExceededError, match="spent"):
        asyncio.run(collect_votes(vote, VotePlan(votes=3), (0.0, 1.0)))
    assert ended == [0, 2]


def test_bounds_are_those_of_one_metric() -> None:
    one, other = m.Relevance(), m.Relevance()
    with voting(one, votes=3, least=0.5):
        assert vote_plan(one) == VotePlan(votes=3, least=0.5)
        assert vote_plan(other) == VotePlan(votes=3)
        with voting(None, votes=None):
            assert context.current().wanted_votes() == 3


def test_votes_in_words() -> None:
    assert describe_votes((), 1) == describe_votes((), 3) == ""
    assert describe_votes([1.0], 2) == "mean of 1 vote (1.00); 1 of 2 votes asked, the rest cannot change it"
    assert describe_votes([1.0, 0.0], 2) == "mean of 2 votes (1.00, 0.00)"
    assert describe_votes([1.0] * 10, 10) == f"mean of 10 votes ({'1.00, ' * 9}...)"
    for samples, flipped in (([], False), ([0.5], False), ([0.5, 0.4], True)):
        assert flips(samples, Threshold(operator=">=", bound=0.5)) is flipped
        assert flips(samples, Threshold(operator="<", bound=0.5)) is flipped
        assert not flips(samples, None)
    assert not flips([0.5, 0.5], Threshold(operator="<", bound=0.5))
