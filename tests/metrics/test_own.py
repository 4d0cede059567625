"""A metric made of a function: what it may take, what it may return, and what is said where it is wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import pytest_ragmetrics
from pytest_ragmetrics import MetricResult, Sample, UnscoredError, Usage, Verdict, assert_metric, evaluate, metric
from pytest_ragmetrics.judges.tasks import Critique
from pytest_ragmetrics.metrics import Ask, Faithfulness, JudgedMetric, Metric, NumbersAligned
from tests.metrics.fake_session import FakeSession
from tests.scripted_judge import ScriptedJudge, says, verdicts

FIELDS = (("response", "Moss grows."),)
POLITE = Critique(definition="Is it polite?", fields=FIELDS)
NO_SCORE = r"metric made returned .*: return a number, a bool, verdicts or a Met"


@metric
def brevity(response: str) -> float:
    """Return how near a response is to ten characters."""
    return min(1.0, 10 / len(response))


@metric
async def politeness(response: str, ask: Ask) -> list[Verdict]:
    """Ask once."""
    judgement = await ask(Critique(definition="Is it polite?", fields=(("response", response),)))
    return [Verdict(text=response, ok=judgement.ok, reason=judgement.reason)]


def called(function: Callable[..., float]) -> Callable[..., float]:
    """Return a lambda as a function with a name."""
    function.__name__ = "taking"
    return function


def returning(value: Any) -> Metric:
    """Return a metric whose function returns a value."""
    return metric(name="made")(lambda response: value)


def test_a_function_is_a_metric() -> None:
    """It has the name of the function, its docstring and its module, and needs the fields that it takes."""
    assert (brevity.name, brevity.better, brevity.scale, brevity.requires, type(brevity).__module__) == (
        *("brevity", "higher", (0.0, 1.0)),
        *(("response",), __name__),
    )
    assert brevity.__doc__ == "Return how near a response is to ten characters."
    with pytest.raises(AssertionError, match=r"^brevity 0\.50 < 0\.90$"):
        assert_metric(brevity, Sample(response="x" * 20), min=0.9)
    table = evaluate([{"response": "x" * 20}, {"response": " "}], [brevity, NumbersAligned()], progress=False)
    assert table.scores("brevity") == [0.5, None]
    assert table.rows[1].unscored["brevity"].endswith("brevity: response is blank; it needs response")


def test_what_is_not_given_is_left_to_the_default() -> None:
    """A field with a default may be missing, or empty; the whole sample is there for those who want it."""

    @metric
    def count(sample: Sample, retrieved_contexts: Any = ("default",), *, metadata: Any = None) -> float:
        assert isinstance(sample, Sample)
        return len(retrieved_contexts) + len(metadata)

    assert count.requires == ()
    assert count.score().value == 1
    assert count.score(retrieved_contexts=[], metadata={"a": 1}).value == 1
    assert count.score(retrieved_contexts=["one", "two"]).value == 2


PAIR = (Verdict(text="a", ok=True), Verdict(text="b", ok=False))


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        *((given, MetricResult(1.0, metric="made")) for given in (True, 1, np.float32(1), np.bool_(1), Fraction(2, 2))),
        ([*PAIR], MetricResult(0.5, metric="made", verdicts=PAIR, reason="1 of 2 verdicts ok")),
        # A function may end in another metric: all else of its result is kept.
        (
            MetricResult(0.5, metric="other", reason="So it is.", vacuous=True),
            MetricResult(0.5, metric="made", reason="So it is.", vacuous=True),
        ),
    ],
    ids=repr,
)
def test_numbers_verdicts_and_results_are_scores(returned: Any, expected: MetricResult) -> None:
    """Of verdicts the score is the share of those that are ok."""
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
    """The error names the metric, as where its function forgets to return."""
    with pytest.raises(error, match=message):
        returning(returned).score(response="Moss.")


def test_it_asks_the_judge() -> None:
    """The result carries the judge and what it cost, the scoring what was asked; votes are as many judgements."""
    judge = ScriptedJudge(critique=[says("yes"), says("no"), says("no")])
    waffle = metric(name="waffle", better="lower", scale=(0, 100))(lambda response: float(len(response)))
    session = FakeSession(judge=judge)
    with session.running():
        result = politeness.score(response="Moss grows.")
        assert waffle.score(response="Moss.") == 5.0
    assert (result.value, result.judge, result.usage.calls) == (1.0, "scripted", 1)
    assert [(it.metric, it.better, len(it.exchanges)) for it in session.scorings] == [
        ("politeness", "higher", 1),
        ("waffle", "lower", 0),
    ]
    assert waffle.scale == (0.0, 100.0)
    assert isinstance(politeness, JudgedMetric)
    voted = assert_metric(politeness.asking(judge=judge), {"response": "Moss grows."}, max=0.5, votes=3)
    assert (voted.value, voted.samples) == (0.0, (0.0, 0.0))


def test_a_plain_function_may_ask_too() -> None:
    """A function that is no coroutine may return one, or the result of ``ask`` itself."""

    async def answer(ask: Ask) -> MetricResult:
        return ask.result(float((await ask(POLITE)).ok), reason="Asked.")

    direct = metric(name="direct")(lambda sample, ask: ask.result(0.5, reason="Half."))
    late = metric(name="late")(lambda response, ask: answer(ask))
    with FakeSession(judge=ScriptedJudge(critique=says("yes"))).running():
        results = [own.score(response="Moss.") for own in (direct, late)]
    assert [(it.value, it.reason, it.judge) for it in results] == [(0.5, "Half.", None), (1.0, "Asked.", "scripted")]


PASSAGES = {"response": "Moss grows.", "retrieved_contexts": ["Moss grows on stones."]}


def total(session: FakeSession) -> int:
    """Return how many calls all scorings of a session made."""
    return sum(scoring.usage.calls for scoring in session.scorings)


@metric
def grounded_and_polite(sample: Sample) -> MetricResult:
    """Score by two other metrics, and say what both cost."""
    parts = [Faithfulness(unit="sentences").score_sample(sample), politeness.score_sample(sample)]
    usage = sum((part.usage for part in parts), Usage())
    return MetricResult(min(parts), metric="grounded_and_polite", usage=usage)


@metric
def plain(sample: Sample) -> float:
    """Return the result of another metric."""
    return Faithfulness(unit="sentences").score_sample(sample)


@metric
async def asking_as_well(sample: Sample, ask: Ask) -> MetricResult:
    """Ask twice, and score by another metric in between."""
    await ask(POLITE)
    grounded = await Faithfulness(unit="sentences").ascore_sample(sample)
    answer = await ask(Critique(definition="Is it green?", fields=FIELDS))
    return ask.result(min(float(answer.ok), grounded), reason="Both.")


@pytest.mark.parametrize(
    ("own", "calls", "of_itself"),
    [(grounded_and_polite, 2, 0), (plain, 1, 0), (asking_as_well, 3, 2)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_what_it_scores_by_is_counted_once(own: Metric, calls: int, of_itself: int) -> None:
    """The scorings of the parts have what those cost; that of the whole has what it asked besides."""
    session = FakeSession(judge=ScriptedJudge(critique=says("yes"), verify_claims=verdicts([1])))
    with session.running():
        assert own.score(**PASSAGES) == 1.0
    assert (total(session), session.scorings[-1].usage.calls) == (calls, of_itself)


def test_what_it_scores_by_is_counted_once_where_it_fails() -> None:
    """The scoring of a part has its cost also without a score; requests before it belong to the whole."""
    session = FakeSession(judge=ScriptedJudge(critique=says("yes"), verify_claims="no JSON"))
    with session.running(), pytest.raises(UnscoredError, match="verify_claims: no usable answer"):
        asking_as_well.score(**PASSAGES)
    part, whole = session.scorings
    assert (part.metric, part.usage.calls, whole.metric, whole.usage.calls) == ("faithfulness", 2, "asking_as_well", 1)


def test_votes_of_parts_are_counted_once() -> None:
    """Each vote of the whole asks and has its parts; no request is counted twice."""
    judge = ScriptedJudge(critique=says("yes"), verify_claims=verdicts([1]))
    session = FakeSession(judge=judge, votes=3)
    with session.running():
        asking_as_well.score(**PASSAGES)
    assert total(session) == len(judge.requests)


async def waits(response: str) -> float:
    """Wait without a judge to wait for."""
    return 1.0


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (called(lambda question: 1.0), "metric taking: parameter question is no field of a sample; write user_input$"),
        (called(lambda *texts: 1.0), r"metric taking: parameter \*texts.* cannot be given by name; take .* or sample"),
        (called(lambda text: 1.0), "text is no field of a sample; there are user_input, .* and ask for a judge"),
        (called(lambda: 1.0), "metric taking takes no field of a sample"),
        (waits, "metric waits: a coroutine is for asking a judge; take the parameter ask, or write def without async"),
        (lambda response: 1.0, r"has no name; write @metric\(name='brevity'\)"),
        (functools.partial(lambda text: 1.0, text=""), "has no name"),
        ("brevity", "metric takes a function, not 'brevity'; write @metric above def brevity"),
        (Sample, "metric takes a function, not <class"),
    ],
)
def test_what_is_no_function_that_scores(function: Any, said: str) -> None:
    """Each mistake is said where the function is written, with what to write instead."""
    with pytest.raises(TypeError, match=said):
        metric(function)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"better": "up"}, ValueError, "metric taking: better must be 'higher' or 'lower', not 'up'"),
        ({"scale": (1, 0)}, ValueError, "scale must be the lowest and the highest score"),
        ({"scale": (0, float("inf"))}, ValueError, "scale must be"),
        ({"scale": 5}, ValueError, "scale must be"),
        ({"name": " "}, TypeError, "has no name"),
        ({"name": 3}, TypeError, "has no name"),
    ],
)
def test_what_is_said_of_it_must_make_sense(given: Any, kind: type[Exception], said: str) -> None:
    """Name, direction and scale are checked."""
    with pytest.raises(kind, match=said):
        metric(**given)(called(lambda response: 1.0))


def test_no_module_has_a_public_name() -> None:
    """Importing a module sets its name in the package, which would replace the function."""
    assert not [name for name in vars(pytest_ragmetrics)["__all__"] if find_spec(f"pytest_ragmetrics.{name}")]
