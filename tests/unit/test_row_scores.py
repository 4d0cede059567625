"""What a test per row says of names: those of scores, of the columns of a row and of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import evaluate
from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.runner import unscored
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.plugin.rows.dataset_tests import Scores
from pytest_ragmetrics.plugin.rows.jobs import with_answer

THERE = "there are quoted_spans_alignment, coherence;"
ONE = Scores({name: MetricResult(0.5, metric=name) for name in ("quoted_spans_alignment", "coherence")})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("quoted_span_alignment", f"{THERE} did you mean 'quoted_spans_alignment'?"),
        ("coherance", f"{THERE} did you mean 'coherence'?"),
        ("faithfulness", "write @pytest.mark.rag_dataset(..., metrics=['faithfulness'])"),
        ("faithfulnes", "; there is no metric 'faithfulnes': did you mean faithfulness"),
    ],
)
def test_a_score_that_is_not_there(name: str, said: str) -> None:
    with pytest.raises(KeyError) as raised:
        ONE[name]
    text = str(raised.value)
    assert text.startswith(f"{name!r} was not scored: ")
    assert said in text
    assert (f"metrics=[{name!r}]" in text) is (name == "faithfulness")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "rag_respond returned None; it must return a text, "),
        (("So.", ["a"]), "rag_respond returned an object of type tuple; it must return a text, "),
        (3, 'or a Sample, such as {"response": ..., "retrieved_contexts": [...]}'),
        ({"answr": "So."}, "mapping that is no sample: has no field to score, only 'answr'; did you write 'answr' for"),
        ({"answr": "So.", "contexts": ["a"]}, "\"retrieved_contexts\": [...]}; did you write 'answr' for response?"),
        ({"contexts": ["a"]}, "rag_respond returned no response; write return {"),
    ],
)
def test_an_answer_without_a_response(answer: Any, said: str) -> None:
    with pytest.raises(UnscoredError) as raised:
        with_answer(Sample(user_input="Why?"), answer)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("brevity: response is missing"), "brevity: response is missing"),
        (ValueError("too long"), "brevity: ValueError: too long"),
        *((KeyError("q"), "brevity: KeyError: 'q'"), (UnscoredError("the judge failed"), "the judge failed")),
    ],
)
def test_why_a_metric_has_no_score(error: Exception, said: str) -> None:
    class Brevity(Metric):
        name = "brevity"

        def measure(self, sample: Sample) -> MetricResult:
            raise error

    assert str(unscored(Brevity(), error)) == said


def test_a_metric_that_raises_stop_iteration_ends() -> None:
    """A future takes none, so that who awaits it would wait for ever."""

    class Exhausted(Metric):
        name = "exhausted"

        def measure(self, sample: Sample) -> MetricResult:
            return next(iter(()))

    table = evaluate([Sample(response="So.")] * 2, [Exhausted()], progress=False)
    assert table.rows[1].unscored == {"exhausted": "exhausted: RuntimeError: measure() raised StopIteration"}
