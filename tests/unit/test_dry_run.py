"""Who stands in for judge and embedder in a dry run, and what is counted."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from typing import Any

import pytest

from pytest_ragmetrics.cache.transport import CachedTransport
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import JudgeError, UnscoredError
from pytest_ragmetrics.core.result import MetricResult, Usage
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.dry_run import ASSUMPTIONS, DryRun, Forecast, ForecastLine
from pytest_ragmetrics.evaluation.engine import Engine
from pytest_ragmetrics.judges.context import Scoring
from pytest_ragmetrics.judges.embedders.embedder import CustomEmbedder
from pytest_ragmetrics.judges.judge import CustomJudge, Judge
from pytest_ragmetrics.judges.local import LocalJudge
from pytest_ragmetrics.judges.nli import NliJudge
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.schema import InvalidAnswer
from pytest_ragmetrics.judges.tasks import ListTopics, MatchTopics, RateRelevance, Task, VerifyClaims
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from tests.every_task import EVERY_TASK
from tests.word_scorer import WordScorer

TASK = RateRelevance(question="Does it hum?", response="It hums.")


def dry_run() -> tuple[DryRun, Forecast]:
    forecast = Forecast()
    return DryRun(CachedTransport(DIRECT), forecast), forecast


def scoring(metric: str, usage: Usage) -> Scoring:
    return Scoring(metric=metric, sample=Sample(), outcome=MetricResult(0.5, metric=metric, usage=usage))


def asked(made: DryRun, judge: Judge, task: Task[Any], *, vote: int = 0) -> tuple[Any, Usage]:
    answered = asyncio.run(judge.ask(task, vote=vote, transport=made))
    return answered.answer, answered.usage


@pytest.mark.parametrize("task", EVERY_TASK, ids=lambda task: task.prompt)
def test_every_task_has_an_answer(task: Any) -> None:
    """By the local judge's rule, and where it has none as small as the task takes it."""
    made, forecast = dry_run()
    _, usage = asked(made, OpenAIJudge("gpt-4o-mini"), task)
    assert (usage.calls, usage.prompt_tokens > 100, usage.completion_tokens > 0) == (1, True, True)
    assert usage.cost
    kind = type(task)
    unknown = type(kind.__name__, (kind,), {"__slots__": (), "__module__": __name__, "by_rule": Task.by_rule})
    own = unknown(**{field.name: getattr(task, field.name) for field in fields(task)})
    with pytest.raises(JudgeError):
        asked(made, LocalJudge(), own)
    asked(made, OpenAIJudge("gpt-4o-mini"), own)
    assert forecast.judged.requests + forecast.judged.cached == 2


def test_prices_and_tokens_are_estimated() -> None:
    """Of a service tier as it is asked for: what answers report nobody knows, nor what the provider's cache serves."""
    parameters: tuple[dict[str, Any] | None, ...] = (None, {"service_tier": "flex"}, {"service_tier": "default"})
    judges = (OpenAIJudge("gpt-5.4-mini", parameters=given) for given in parameters)
    full, half, ordinary = (asked(dry_run()[0], judge, TASK)[1] for judge in judges)
    assert half.cost == pytest.approx((full.cost or 0) / 2)
    assert (ordinary, full.cached_prompt_tokens) == (full, 0)
    # Four letters make a token; so do somewhat more than one Chinese character.
    latin, chinese = (
        asked(dry_run()[0], OpenAIJudge("m"), replace(TASK, response=text * 1000))[1].prompt_tokens
        for text in ("hums", "慢慢来了")
    )
    assert chinese - latin == 2000


def test_a_stand_in_for_a_list_has_something_in_it() -> None:
    """From an empty list nothing would follow, and what is asked about its items would be forgotten."""
    made, _ = dry_run()
    topics, _ = asked(made, OpenAIJudge("m"), ListTopics(turns=("user: How deep is it?",)))
    matches, _ = asked(made, OpenAIJudge("m"), MatchTopics(topics=("a", "b"), allowed=("c",)))
    assert (len(topics), len(matches)) == (1, 2)


class Impossible(RateRelevance):
    """A task that takes no answer."""

    __slots__ = ()

    def read(self, data: object) -> Any:
        raise InvalidAnswer


def test_a_task_without_an_answer_is_unscored() -> None:
    made, forecast = dry_run()
    with pytest.raises(UnscoredError, match="dry run: nothing stands in for an answer to rate_relevance"):
        asked(made, OpenAIJudge("gpt-4o-mini"), Impossible(question="Why?", response="So."))
    assert forecast.judged.requests == 1


def test_what_is_asked_twice_is_counted_once() -> None:
    made, forecast = dry_run()
    named = CustomJudge(_fails, name="mine")
    usages = [asked(made, named, TASK, vote=vote)[1] for vote in (0, 0, 1)]
    assert [(usage.calls, usage.cached_calls) for usage in usages] == [(1, 0), (0, 1), (1, 0)]
    nameless = CustomJudge(_fails)
    assert [asked(made, nameless, TASK)[1].calls for _ in range(2)] == [1, 1]
    assert (forecast.judged.requests, forecast.judged.unpriced) == (4, 4)


def _fails(prompt: object) -> Any:
    raise AssertionError(prompt)


def test_who_costs_nothing_is_asked() -> None:
    forecast = Forecast()
    model = NliJudge("words", scorer=WordScorer())
    engine = Engine(cache="off", forecast=forecast)
    task = VerifyClaims(claims=("Mint spreads.",), contexts=("Mint spreads.",))
    assert loop.run(model.ask(task, transport=engine.transport)).answer[0].ok
    assert forecast.judged.requests == 0
    judge = engine.judge("openai:gpt-4o-mini")
    assert engine.judge(judge) is judge
    assert engine.judge().name == engine.embedder().name == "auto"
    loop.run(engine.judge().ask(TASK, transport=engine.transport))
    assert forecast.judged.requests == 1
    engine.close()


def test_vectors_by_rule_stand_in_for_all_of_a_request() -> None:
    """They are not mixed with others, which may have another length."""
    made, forecast = dry_run()
    request = CustomEmbedder(_fails, name="mine").request(["It hums.", "It hums.", "It sings."])
    vectors: Any = asyncio.run(made.send(request)).vectors
    assert (vectors.shape, (vectors[0] == vectors[1]).all()) == ((3, 512), True)
    assert forecast.lines["(embeddings)"] == ForecastLine(samples=3, requests=1, prompt_tokens=5, tokens=5, unpriced=1)


def test_the_table_adds_up() -> None:
    """By metric; a harmonic mean takes nothing of its own; what no metric asked stands in a line of its own."""
    forecast = Forecast()
    usage = Usage(calls=2, cached_calls=1, prompt_tokens=300, cost=0.5)
    forecast.scored("test", scoring("faithfulness", usage))
    forecast.scored("test", replace(scoring("ragas_score", usage), own_usage=Usage()))
    forecast.asked("a", usage)
    forecast.asked("b", Usage(calls=1, prompt_tokens=7, cost=None))
    other = Forecast()
    other.scored("other", scoring("faithfulness", usage))
    other.asked("c", usage)
    forecast.add(other.to_row())
    assert [" ".join(line.split()) for line in forecast.summary(lost=1)] == [
        "dry run:",
        "metric samples requests cached prompt tokens cost",
        "faithfulness 2 4 2 600 $1.0000",
        "ragas_score 1 0 0 0 $0.0000",
        "(asked by no metric) 0 1 0 7 unknown",
        "total 5 2 607 $1.0000 + 1 unpriced",
        *ASSUMPTIONS,
        "1 worker crashed: requests of tests there are not counted",
    ]
    assert (forecast.requests_of("test"), forecast.requests_of("other")) == (2, None)


def test_scores_of_a_dry_run_decide_nothing() -> None:
    told = scoring("faithfulness", Usage())
    result = told.outcome
    assert isinstance(result, MetricResult)
    assert not result > 0.5
    Forecast().scored(None, told)
    assert (result > 0.5, result < 0.5, result == 7) == (True, True, True)
    assert result.comparison is not None
    assert (result.comparison.held, float(result)) == (True, 0.5)
    Forecast().scored("test", Scoring(metric="m", sample=Sample(), outcome=UnscoredError("No score.")))
