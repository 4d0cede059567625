"""What is wrong with a call says what to write instead."""

from __future__ import annotations

import asyncio
import gc
import pickle
import traceback
import warnings
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import pytest_ragmetrics
from pytest_ragmetrics import JudgeNotConfiguredError, Sample, aevaluate, evaluate, metric, metrics
from pytest_ragmetrics.judges.tasks import RateRelevance
from pytest_ragmetrics.metrics import QuotedSpansAlignment

ROW = {"question": "How?", "answer": "Slowly.", "contexts": ["Open the valve slowly."]}
#: The package and its metrics, of which type checkers know nothing here: they refuse most of these calls.
RAG: Any = pytest_ragmetrics
METRICS: Any = metrics
GIVEN: dict[str, Any] = {"response": "Slowly.", "retrieved_contexts": ["Open the valve slowly."]}
QUOTES: Any = QuotedSpansAlignment()
AWAIT = "is not awaited: write await"


def own(function: Callable[..., Any]) -> Callable[[], Any]:
    """Return the call that scores by a metric of a function, with a judge that rates."""
    made: Any = metric(function)
    made = made.asking(judge=lambda _: '{"reason": "Kind.", "rating": 4}')
    return lambda: made.score(response="Hello.")


async def _text(response: str, ask: Any) -> Any:
    return await ask("Is it kind?")


async def _class(response: str, ask: Any) -> Any:
    return await ask(RateRelevance)


async def _forgotten(response: str, ask: Any) -> Any:
    return ask(RateRelevance(question="?", response=response)).value


async def _returned(response: str, ask: Any) -> Any:
    return ask(RateRelevance(question="?", response=response))


async def _rating(response: str, ask: Any) -> Any:
    return await ask(RateRelevance(question="?", response=response))


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        # A forgotten await.
        (lambda: QUOTES.ascore(**GIVEN) >= 0.8, TypeError, rf"^ascore\(...\) {AWAIT} ascore\(...\)$"),
        (lambda: 0.8 < QUOTES.ascore(**GIVEN), TypeError, AWAIT),
        (lambda: QUOTES.ascore(**GIVEN) == 1.0, TypeError, AWAIT),
        (lambda: bool(QUOTES.ascore_sample(Sample(**GIVEN))), TypeError, rf"^ascore_sample\(...\) {AWAIT}"),
        (lambda: float(QUOTES.ascore(**GIVEN)), TypeError, AWAIT),
        (lambda: round(QUOTES.ascore(**GIVEN), 2), TypeError, AWAIT),
        (lambda: f"{QUOTES.ascore(**GIVEN):.2f}", TypeError, AWAIT),
        (lambda: QUOTES.ascore(**GIVEN).reason, AttributeError, AWAIT),
        (lambda: RAG.aevaluate([ROW], [QUOTES]).mean("x"), AttributeError, rf"^aevaluate\(...\) {AWAIT} aevaluate"),
        (lambda: RAG.assert_mean(aevaluate([ROW], [QUOTES]), min=0.5), TypeError, AWAIT),
        (lambda: RAG.evaluate(aevaluate([ROW], [QUOTES]), [QUOTES]), TypeError, "a coroutine: await it first"),
        (lambda: QUOTES.score(response=asyncio.sleep(0), retrieved_contexts=""), TypeError, "await it first"),
        # What a metric of one's own asks.
        (
            own(_text),
            TypeError,
            r"^_text: ask\(\) takes a task, not str: write await ask\(Critique\(definition='Is it k",
        ),
        (own(_class), TypeError, r"not its class: write ask\(RateRelevance\(question=..., response=...\)\)$"),
        (own(_forgotten), AttributeError, rf"^ask\(...\) {AWAIT} ask"),
        (own(_returned), TypeError, "^metric _returned returned a coroutine: await it"),
        (own(_rating), TypeError, r"return its \.value$"),
        # Names and numbers of arguments.
        (
            lambda: RAG.assert_faithful("a", [""], minimum=0.8),
            TypeError,
            r"^assert_faithful\(\) takes no minimum=: write min=$",
        ),
        (lambda: RAG.assert_faithful("a", [""], threshold=0.8), TypeError, "write min=$"),
        (lambda: RAG.assert_faithful(answer="a", contexts=[]), TypeError, "takes no answer=: write response=$"),
        (lambda: RAG.assert_faithful("a", retrieved_contexts=[]), TypeError, "write contexts=$"),
        (
            lambda: RAG.assert_faithful("a", [""], xyz=1),
            TypeError,
            "it takes response, contexts, .*min=.*judge=",
        ),
        (lambda: RAG.assert_pass_rate([1.0], min=0.5), TypeError, "write min_score= or min_rate=$"),
        (
            lambda: RAG.evaluate([ROW], [QUOTES], judges="local"),
            TypeError,
            r"^evaluate\(\) takes no judges=: write judge=$",
        ),
        (
            lambda: asyncio.run(RAG.aevaluate([ROW], [QUOTES], judges="local")),
            TypeError,
            r"^aevaluate\(\) takes no judges=: write judge=",
        ),
        (lambda: RAG.evaluate([ROW]), TypeError, r"^write evaluate\(samples, metrics\)$"),
        (
            lambda: RAG.rag_calibrated("faithfulness", "x"),
            TypeError,
            r"^write rag_calibrated\(metric, labels, min_kappa\)$",
        ),
        (RAG.assert_sample, TypeError, r"^write assert_sample\(sample, metric=bound, ...\)$"),
        (lambda: METRICS.Faithfulness(juge="local"), TypeError, "did you mean judge="),
        # Order and types.
        (
            lambda: RAG.assert_faithful(["b"], "a"),
            TypeError,
            "^response must be a str, not list; a list is for the con",
        ),
        (
            lambda: RAG.assert_metric(METRICS.Faithfulness, ROW, min=0.5),
            TypeError,
            r"write assert_metric\(Faithfulness\(\), sample",
        ),
        (
            lambda: RAG.assert_metric("faithfulness", ROW, min=0.5),
            TypeError,
            r"assert_sample\(sample, faithfulness=",
        ),
        (
            lambda: RAG.assert_metric(ROW, QUOTES, min=0.5),
            TypeError,
            "^a metric comes first, not dict: write assert_metric",
        ),
        (lambda: METRICS.Faithfulness(judge=5), TypeError, "a judge is a spec such as 'openai:MODEL', a callable or"),
        (lambda: RAG.find_quotations(5), TypeError, "^text must be a text, not int$"),
        (lambda: RAG.align(["a"], "b"), TypeError, "^span must be a text, not list$"),
        (
            lambda: RAG.evaluate([ROW], [QUOTES], concurrency="8"),
            TypeError,
            r"^evaluate\(\): concurrency must be int, not",
        ),
        (
            lambda: RAG.evaluate([ROW], [QUOTES], cache_dir=5),
            TypeError,
            r"cache_dir must be str \| Path \| None, not int$",
        ),
        (lambda: RAG.evaluate([ROW], 5), TypeError, "^metrics must be a list of metrics or of their names, not int$"),
        (lambda: RAG.scorer(None), TypeError, "^metrics must be a list"),
        (lambda: RAG.load_scores(["a"]), TypeError, r"^load_scores\(\): path must be str \| Path, not list$"),
        (lambda: RAG.rag_calibrated("faithfulness", [], 0.6, label_scale=5), ValueError, r"such as \(0, 1\), not 5$"),
        (lambda: RAG.assert_criteria(ROW, definition=5, min=1), TypeError, "^definition must be a text, not int$"),
        (lambda: RAG.assert_bleu("a", "b", min=0, kwargs=5), TypeError, "^kwargs must map the names"),
        (lambda: METRICS.RagasScore(metrics="ab"), TypeError, "^ragas_score takes metrics, not 'a': write RagasScore"),
        (lambda: METRICS.ragas_score([5, 6]), TypeError, "^ragas_score: 5 is no result: give results"),
        # Names that there are not.
        (lambda: RAG.assert_faithfull, AttributeError, r"did you mean assert_faithful\?$"),
        (lambda: METRICS.Faithfullness, AttributeError, r"did you mean Faithfulness\?$"),
        (
            lambda: RAG.evaluate([ROW], [QUOTES]).mean("quoted_span_alignment"),
            KeyError,
            r"did you mean 'quoted_spans_alignment'\?$",
        ),
    ],
)
def test_a_wrong_call_says_what_to_write(call: Callable[[], object], kind: type[Exception], said: str) -> None:
    """Before anything is asked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that the coroutine was never awaited
        with pytest.raises(kind, match=said):
            call()
        gc.collect()


def _forget(_: object) -> None:
    gc.collect()


def test_an_awaited_call_is_a_coroutine() -> None:
    """For loops, tasks and groups; what is never awaited has Python's own warning."""

    async def run() -> list[Any]:
        task = asyncio.create_task(QUOTES.ascore(**GIVEN))
        return [await task, *await asyncio.gather(QUOTES.ascore(**GIVEN), QUOTES.ascore_sample(Sample(**GIVEN)))]

    assert asyncio.run(run()) == [1.0] * 3
    assert asyncio.run(aevaluate([ROW], [QUOTES])).scores(QUOTES.name) == [1.0]
    with pytest.warns(RuntimeWarning, match="never awaited"):
        _forget(QUOTES.ascore(**GIVEN))


def test_an_error_of_this_package_has_no_frames_of_it() -> None:
    """The message is complete; an error of other code keeps its own."""
    with pytest.raises(JudgeNotConfiguredError) as caught:
        evaluate([ROW], ["faithfulness"], judge="openai:m")
    files = [Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files == ["test_calls.py", "public_names.py"]

    def broken(done: int, total: int) -> None:
        raise OSError(f"{done} of {total}")

    with pytest.raises(OSError, match="1 of 1") as kept:
        evaluate([ROW], [QUOTES], progress=broken)
    assert traceback.extract_tb(kept.value.__traceback__)[-1].name == "broken"


def test_public_functions_stay_what_they_are() -> None:
    """Each has its name, signature and text, is the same each time, and can be sent to another process."""
    for name in RAG.__all__:
        found = getattr(pytest_ragmetrics, name)
        assert getattr(pytest_ragmetrics, name) is found
        if isinstance(found, FunctionType):
            assert (found.__name__, found.__module__) == (name, "pytest_ragmetrics")
            assert found.__doc__
            assert signature(found).parameters
            assert pickle.loads(pickle.dumps(found)) is found
