"""Public functions are plain functions: a wrong call and a user's own error say what is wrong, and score nothing."""

from __future__ import annotations

import asyncio
import functools
import gc
import math
import pickle
import traceback
import warnings
from collections.abc import Callable
from fractions import Fraction
from inspect import iscoroutinefunction, signature, unwrap
from types import FunctionType
from typing import Any

import pytest

import pytest_ragmetrics
from pytest_ragmetrics import JudgeNotConfiguredError, MetricResult, Sample, aevaluate, evaluate, metric, metrics
from pytest_ragmetrics.judges.tasks import RateRelevance
from pytest_ragmetrics.metrics import Metric, QuotedSpansAlignment

ROW = {"question": "How?", "answer": "Slowly.", "contexts": ["Open the valve slowly."]}
#: The package and its metrics, of which type checkers know nothing here: they refuse most of these calls.
RAG: Any = pytest_ragmetrics
METRICS: Any = metrics
GIVEN: dict[str, Any] = {"response": "Slowly.", "retrieved_contexts": ["Open the valve slowly."]}
QUOTES: Any = QuotedSpansAlignment()


def own(function: Callable[..., Any]) -> Callable[[], Any]:
    """Return the call that scores by a metric of a function, with a judge that rates."""
    made: Any = metric(function)
    made = made.asking(judge=lambda _: '{"reason": "Kind.", "rating": 4}')
    return lambda: made.score(response="Hello.")


def rating(response: str) -> RateRelevance:
    return RateRelevance(question="?", response=response)


async def _text(response: str, ask: Any) -> Any:
    return await ask("Is it kind?")


async def _class(response: str, ask: Any) -> Any:
    return await ask(RateRelevance)


async def _true(response: str, ask: Any) -> Any:
    return bool(ask(rating(response)))


async def _second(response: str, ask: Any) -> Any:
    return (await ask(rating(response))).value if ask(rating("!")) else 0.0


async def _returned(response: str, ask: Any) -> Any:
    return ask(rating(response))


async def _rating(response: str, ask: Any) -> Any:
    return await ask(rating(response))


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        # A forgotten await: Python's own errors, and those of what takes the result.
        (lambda: QUOTES.ascore(**GIVEN) >= 0.8, TypeError, "'coroutine' and 'float'$"),
        (lambda: RAG.aevaluate([ROW], [QUOTES]).mean("x"), AttributeError, "'coroutine' object has no attribute"),
        (lambda: QUOTES.score(response=asyncio.sleep(0), retrieved_contexts=""), TypeError, "await it first"),
        # What a metric of one's own asks.
        (own(_text), TypeError, r"^_text: ask\(\) takes a task, not str: write await ask\(Critique\(definition='Is"),
        (own(_class), TypeError, r"not its class: write ask\(RateRelevance\(question=..., response=...\)\)$"),
        (own(_true), TypeError, r"^_true: ask\(...\) is not awaited: write await ask\(...\)$"),
        (own(_second), TypeError, r"^_second: ask\(...\) is not awaited"),
        (own(_returned), TypeError, "^metric _returned returned a coroutine: await it"),
        (own(_rating), TypeError, r"return its \.value$"),
        # Bounds.
        (lambda: RAG.assert_faithful("a", [""], min=80), ValueError, "^min=80 is outside of the scale of faithfulness"),
        (lambda: RAG.assert_mean([1.0, math.nan], min=0.5), ValueError, "nan"),
        # Texts.
        (lambda: RAG.assert_quoted_spans_aligned(Sample(**GIVEN), ["a"]), TypeError, "^response must be a str, not Sa"),
        (lambda: RAG.assert_quoted_spans_aligned("a", None), TypeError, "^contexts must be a text, .* not NoneType$"),
        (lambda: RAG.assert_answer_relevant(None, "a"), ValueError, "user_input is missing"),
        (lambda: METRICS.ExactMatch().score(response=" ", reference="a", id=5), TypeError, "^id must be a str, not i"),
        # Order and types.
        (lambda: RAG.assert_faithful(["b"], "a"), TypeError, "^response must be a str, not list; a list is for the c"),
        (lambda: RAG.assert_metric(METRICS.Faithfulness, ROW, min=0), TypeError, r"assert_metric\(Faithfulness\(\), s"),
        (lambda: RAG.assert_metric("faithfulness", ROW, min=0), TypeError, r"assert_sample\(sample, faithfulness="),
        (lambda: RAG.assert_metric(ROW, QUOTES, min=0), TypeError, "^a metric comes first, not dict: write assert_met"),
        (lambda: METRICS.Faithfulness(judge=5), TypeError, "a judge is a spec such as 'openai:MODEL', a callable or"),
        (lambda: RAG.find_quotations(5), TypeError, "^text must be a text, not int$"),
        (lambda: RAG.align(["a"], "b"), TypeError, "^span must be a text, not list$"),
        *(
            (lambda width=width: RAG.evaluate([ROW], [QUOTES], concurrency=width), ValueError, "concurrency must be")
            for width in ("8", 1.5, 0, True)
        ),
        (lambda: RAG.load_scores(["a"]), TypeError, "not '?list'?$"),
        (lambda: RAG.evaluate([ROW], 5), TypeError, "^metrics must be a list of metrics or of their names, not int$"),
        (
            lambda: RAG.scorer("faithfulness"),
            TypeError,
            r"metrics or of their names, not str: write \['faithfulness'\]$",
        ),
        (
            lambda: RAG.evaluate([ROW], [QUOTES]).compare("old.json"),
            TypeError,
            r"^compare\(\) takes an earlier Evaluation, not str;",
        ),
        (lambda: RAG.rag_calibrated("faithfulness", [], 0.6, label_scale=5), ValueError, r"such as \(0, 1\), not 5$"),
        (lambda: RAG.assert_criteria(ROW, definition=5, min=1), TypeError, "^definition must be a text, not int$"),
        (lambda: RAG.assert_bleu("a", "b", min=0, kwargs=5), TypeError, "^kwargs must map the names"),
        (lambda: METRICS.RagasScore(metrics=["ab"]), TypeError, "^ragas_score takes metrics, not 'ab': write Ragas"),
        (lambda: METRICS.ragas_score([5, 6]), TypeError, "^ragas_score: 5 is no result: give results"),
        # Names that there are not.
        (lambda: RAG.assert_faithfull, AttributeError, r"did you mean assert_faithful\?$"),
        (lambda: METRICS.Faithfullness, AttributeError, r"did you mean Faithfulness\?$"),
        (lambda: RAG.evaluate([ROW], [QUOTES]).mean("quoted_span_alignment"), KeyError, r"mean 'quoted_spans_al"),
    ],
)
def test_a_wrong_call_scores_nothing(call: Callable[[], object], kind: type[Exception], said: str) -> None:
    gc.freeze()  # what was there before need not be searched, nor ever again
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that the coroutine was never awaited
        with pytest.raises(kind, match=said):
            call()
        gc.collect()


def test_an_awaited_call_is_a_coroutine() -> None:
    async def run() -> list[Any]:
        task = asyncio.create_task(QUOTES.ascore(**GIVEN))
        return [await task, *await asyncio.gather(QUOTES.ascore(**GIVEN), QUOTES.ascore_sample(Sample(**GIVEN)))]

    assert asyncio.run(run()) == [1.0] * 3
    assert asyncio.run(aevaluate([ROW], [QUOTES])).scores(QUOTES.name) == [1.0]
    with pytest.warns(RuntimeWarning, match="never awaited"):
        iscoroutinefunction(QUOTES.ascore(**GIVEN))
    assert all(map(iscoroutinefunction, (aevaluate, QUOTES.ascore, QUOTES.ascore_sample)))


class Broken(Metric):
    """Raises what it is given."""

    name = "broken"

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def measure(self, sample: Sample) -> MetricResult:
        raise self.error


@pytest.mark.parametrize(
    "call",
    [
        lambda broken: RAG.assert_metric(broken, ROW, min=Fraction(1, 2)),
        lambda broken: RAG.assert_metric(broken, ROW, max=0, votes=None),
        lambda broken: RAG.evaluate([ROW], [QUOTES], progress=lambda done, total: broken.measure(None)),
        lambda broken: RAG.evaluate(map(broken.measure, [None]), [QUOTES]),
        lambda broken: broken.score(response="a"),
        lambda broken: RAG.assert_sample(ROW, {broken: 0.5}),
        lambda broken: asyncio.run(broken.ascore(response="a")),
        lambda broken: broken.measure(None),
    ],
)
def test_an_error_of_the_users_code_is_raised_as_it_is(call: Callable[[Broken], object]) -> None:
    error: Exception
    for error in (
        ValueError("database not reachable"),
        TypeError("unsupported operand"),
        AttributeError("'NoneType' object has no attribute 'execute'"),
        KeyError("min"),
        OSError(5, "metrics"),
        RecursionError("response"),
    ):
        with pytest.raises(type(error)) as caught:
            call(Broken(error))
        assert caught.value is error
        assert traceback.extract_tb(error.__traceback__)[-1].name == "measure"
        assert error.__cause__ is None


def test_an_error_of_this_package_keeps_its_frames() -> None:
    """As every error of Python does; in a test run the plugin hides them."""
    with pytest.raises(JudgeNotConfiguredError) as caught:
        evaluate([ROW], ["faithfulness"], judge="openai:m")
    assert "evaluate" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_public_functions_are_those_of_their_modules() -> None:
    """What debuggers, ``pickle``, ``inspect`` and ``functools`` look at is the function that runs."""
    functions = [found for name in RAG.__all__ if isinstance(found := getattr(RAG, name), FunctionType)]
    assert len(functions) > 50
    for found in functions:
        assert unwrap(found) is found
        assert found.__module__.startswith("pytest_ragmetrics.")
        assert found.__code__.co_filename.endswith(found.__module__.replace(".", "/") + ".py")
        assert found.__code__.co_varnames[: len(signature(found).parameters)] == tuple(signature(found).parameters)
        assert pickle.loads(pickle.dumps(found)) is found
        assert pickle.loads(pickle.dumps(functools.partial(found, votes=1))).func is found


def test_a_users_measure_is_the_function_they_wrote() -> None:
    assert Broken.measure is vars(Broken)["measure"]
    assert Broken.measure.__code__.co_filename == __file__
    assert unwrap(Broken.measure) is Broken.measure
    assert list(signature(Broken).parameters) == ["error"]
    assert pickle.loads(pickle.dumps(QUOTES)).score(**GIVEN) == 1.0
