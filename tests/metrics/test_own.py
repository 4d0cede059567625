"""A metric made of a function: what it may take, what it may return, and what is said where it is wrong."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import pytest_ragmetrics
from pytest_ragmetrics import MetricResult, Sample, UnscoredError, Usage, Verdict, assert_metric, evaluate, metric
from pytest_ragmetrics.judges.tasks import Critique
from pytest_ragmetrics.metrics import Ask, AspectCritique, Faithfulness, JudgedMetric, Metric, NumbersAligned
from tests.metrics.fake_session import FakeSession
from tests.scripted_judge import ScriptedJudge, says, verdicts

FIELDS = (("response", "Moss grows."),)
POLITE = Critique(definition="Is it polite?", fields=FIELDS)
NO_SCORE = r"metric made returned .*: return a number, a bool, verdicts or a Met"
OTHER = MetricResult(0.5, metric="other", reason="So it is.", vacuous=True)
PAIR = (Verdict(text="a", ok=True), Verdict(text="b", ok=False))
PASSAGES = {"response": "Moss grows.", "retrieved_contexts": ["Moss grows on stones."]}


@metric
def brevity(response: str) -> float:
    """Return how near a response is to ten characters."""
    return min(1.0, 10 / len(response))


@metric
async def politeness(response: str, ask: Ask) -> list[Verdict]:
    judgement = await ask(Critique(definition="Is it polite?", fields=(("response", response),)))
    return [Verdict(text=response, ok=judgement.ok, reason=judgement.reason)]


def called(function: Callable[..., float]) -> Callable[..., float]:
    function.__name__ = "taking"
    return function


def returning(value: Any) -> Metric:
    return metric(name="made")(lambda response: value)


def test_a_function_is_a_metric() -> None:
    assert (brevity.name, brevity.better, brevity.scale) == ("brevity", "higher", (0.0, 1.0))
    assert (brevity.requires, type(brevity).__module__) == (("response",), __name__)
    assert brevity.__doc__ == "Return how near a response is to ten characters."
    with pytest.raises(AssertionError, match=r"^brevity 0\.50 < 0\.90$"):
        assert_metric(brevity, Sample(response="x" * 20), min=0.9)
    table = evaluate([{"response": "x" * 20}, {"response": " "}], [brevity, NumbersAligned()], progress=False)
    assert table.scores("brevity") == [0.5, None]
    assert table.rows[1].unscored["brevity"].endswith("brevity: response is blank; it needs response")


def test_what_is_not_given_is_left_to_the_default() -> None:
    @metric
    def count(sample: Sample, retrieved_contexts: Any = ("default",), *, metadata: Any = None) -> float:
        assert isinstance(sample, Sample)
        return len(retrieved_contexts) + len(metadata)

    assert count.requires == ()
    assert count.score().value == 1
    assert count.score(retrieved_contexts=[], metadata={"a": 1}).value == 1
    assert count.score(retrieved_contexts=["one", "two"]).value == 2


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        *((given, MetricResult(1.0, metric="made")) for given in (True, 1, np.float32(1), np.bool_(1), Fraction(2, 2))),
        ([*PAIR], MetricResult(0.5, metric="made", verdicts=PAIR, reason="1 of 2 verdicts ok")),
        # A function may end in another metric: all else of its result is kept.
        (OTHER, OTHER.replaced(metric="made")),
    ],
    ids=repr,
)
def test_numbers_verdicts_and_results_are_scores(returned: Any, expected: MetricResult) -> None:
    result = returning(returned).score(response="Moss.")
    assert (repr(result), result.verdicts) == (repr(expected), expected.verdicts)


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        *((bad, TypeError, NO_SCORE) for bad in (None, "0.5", [0.5], 1j, np.array([1, 2]))),
        *((float(bad), ValueError, "made: a score must be a finite number") for bad in ("nan", "inf")),
        # Nothing to score is unscored, not 0 and not 1.
        ([], UnscoredError, "made: it returned no verdict, so there is nothing to score"),
    ],
    ids=str,
)
def test_what_is_no_score_is_refused(returned: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        returning(returned).score(response="Moss.")


def test_it_asks_the_judge() -> None:
    judge = ScriptedJudge(critique=[says("yes"), says("no"), says("no")])
    waffle = metric(name="waffle", better="lower", scale=(0, 100))(lambda response: float(len(response)))
    session = FakeSession(judge=judge)
    with session.running():
        result = politeness.score(response="Moss grows.")
        assert waffle.score(response="Moss.") == 5.0
    assert (result.value, result.judge, result.usage.calls) == (1.0, "scripted", 1)
    told = [(it.metric, it.better, len(it.exchanges)) for it in session.scorings]
    assert told == [("politeness", "higher", 1), ("waffle", "lower", 0)]
    assert waffle.scale == (0.0, 100.0)
    assert isinstance(politeness, JudgedMetric)
    voted = assert_metric(politeness.asking(judge=judge), {"response": "Moss grows."}, max=0.5, votes=3)
    assert (voted.value, voted.samples) == (0.0, (0.0, 0.0))


def test_a_plain_function_may_ask_too() -> None:
    async def answer(ask: Ask) -> MetricResult:
        return ask.result(float((await ask(POLITE)).ok), reason="Asked.")

    direct = metric(name="direct")(lambda sample, ask: ask.result(0.5, reason="Half."))
    late = metric(name="late")(lambda response, ask: answer(ask))
    with FakeSession(judge=ScriptedJudge(critique=says("yes"))).running():
        results = [own.score(response="Moss.") for own in (direct, late)]
    assert [(it.value, it.reason, it.judge) for it in results] == [(0.5, "Half.", None), (1.0, "Asked.", "scripted")]


@metric
async def asking_as_well(sample: Sample, ask: Ask) -> MetricResult:
    await ask(POLITE)
    grounded = await Faithfulness(unit="sentences").ascore_sample(sample)
    answer = await ask(Critique(definition="Is it green?", fields=FIELDS))
    return ask.result(min(float(answer.ok), grounded), reason="Both.")


@pytest.mark.parametrize(("votes", "calls"), [(1, 3), (3, 15)])
def test_what_it_scores_by_is_counted_once(votes: int, calls: int) -> None:
    """The scorings of the parts have what those cost; that of the whole has what it asked besides."""
    judge = ScriptedJudge(critique=says("yes"), verify_claims=verdicts([1]))
    session = FakeSession(judge=judge, votes=votes)
    with session.running():
        assert asking_as_well.score(**PASSAGES) == 1.0
    assert sum(scoring.usage.calls for scoring in session.scorings) == len(judge.requests) == calls
    assert session.scorings[-1].usage.calls == 2 * votes


def test_what_it_scores_by_is_counted_once_where_it_fails() -> None:
    session = FakeSession(judge=ScriptedJudge(critique=says("yes"), verify_claims="no JSON"))
    with session.running(), pytest.raises(UnscoredError, match="verify_claims: no usable answer"):
        asking_as_well.score(**PASSAGES)
    part, whole = session.scorings
    assert (part.metric, part.usage.calls, whole.metric, whole.usage.calls) == ("faithfulness", 2, "asking_as_well", 1)


async def waits(response: str) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (called(lambda question: 1.0), "metric taking: parameter question is no field of a sample; write user_input$"),
        (called(lambda *texts: 1.0), r"metric taking: parameter \*texts.* cannot be given by name; take .* or sample"),
        (called(lambda text: 1.0), "text is no field of a sample; there are user_input, .* and ask for a judge"),
        (called(lambda: 1.0), "metric taking takes no field of a sample"),
        (waits, "metric waits: a coroutine is for asking a judge; take the parameter ask, or write def without async"),
        (lambda response: 1.0, r"metric of <lambda> has no name; write @metric\(name='brevity'\)"),
        (functools.partial(lambda text: 1.0, text=""), "has no name"),
        ("brevity", "metric takes a function, not 'brevity'; write @metric above def brevity"),
        (Sample, "metric takes a function, not <class"),
    ],
)
def test_what_is_no_function_that_scores(function: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        metric(function)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"better": "up"}, ValueError, "metric taking: better must be 'higher' or 'lower', not 'up'"),
        *(({"scale": scale}, ValueError, "scale must be the lowest and") for scale in ((1, 0), (0, float("inf")), 5)),
        *(({"name": name}, TypeError, "has no name") for name in (" ", 3)),
    ],
)
def test_what_is_said_of_it_must_make_sense(given: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        metric(**given)(called(lambda response: 1.0))


def test_no_module_has_a_public_name() -> None:
    """Importing a module sets its name in the package, which would replace the function."""
    assert not [name for name in vars(pytest_ragmetrics)["__all__"] if find_spec(f"pytest_ragmetrics.{name}")]


PARTS = [AspectCritique(name=name, definition="Does it hum?") for name in "abc"]
HUM = Sample(response="It hums.")
Parts = Callable[[Sample], Iterable[MetricResult]]


def one_by_one(sample: Sample) -> Iterable[MetricResult]:
    return [part.score_sample(sample) for part in PARTS]


def awaited(sample: Sample) -> Iterable[MetricResult]:
    async def together() -> list[MetricResult]:
        return await asyncio.gather(*(part.ascore_sample(sample) for part in PARTS))

    return asyncio.run(together())


def threaded(sample: Sample) -> Iterable[MetricResult]:
    tasks = [(copy_context(), part) for part in PARTS]
    with ThreadPoolExecutor() as pool:
        return [*pool.map(lambda task: task[0].run(task[1].score_sample, sample), tasks)]


def nested(sample: Sample) -> Iterable[MetricResult]:
    return [it.score_sample(sample) for it in (whole(one_by_one), whole(threaded), PARTS[0])]


def whole(parts: Parts) -> Metric:
    """Return a metric that scores a sample by parts, and whose result has the cost of all of them."""

    def summed(sample: Sample) -> MetricResult:
        return MetricResult(1.0, metric="whole", usage=sum((part.usage for part in parts(sample)), start=Usage()))

    return metric(name="whole")(summed)


@pytest.mark.parametrize("votes", [1, 3])
@pytest.mark.parametrize(("parts", "calls"), [(one_by_one, 3), (awaited, 3), (threaded, 3), (nested, 7)])
def test_what_a_metric_of_metrics_spends_is_told_once(parts: Parts, calls: int, votes: int) -> None:
    session = FakeSession(judge=ScriptedJudge(critique={"reason": "It says so.", "verdict": "yes"}), votes=votes)
    with session.running():
        result = whole(parts).score_sample(HUM)
    assert result.usage.calls == calls * votes
    assert sum(scoring.usage.calls for scoring in session.scorings) == calls * votes
    assert (session.scorings[-1].metric, session.scorings[-1].usage) == ("whole", Usage())
