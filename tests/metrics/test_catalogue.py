"""What all metrics of the catalogue have in common: names of their own, and errors on parameters of other tools."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import MetricResult, Sample, evaluate, metrics
from pytest_ragmetrics.metrics import Metric
from tests.metrics.catalogue import INPUTS, KINDS, made

ALL = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])


@ALL
def test_an_instance_may_have_a_name_of_its_own(kind: type[Metric]) -> None:
    """Its results and errors have it; everything else, and the other instances, are as without it."""
    mine, usual = made(kind, name="mine"), made(kind)
    assert (mine.name, usual.name, kind.name) == ("mine", kind.name, kind.name)
    found, expected = (metric.score_sample(Sample.from_mapping(INPUTS)) for metric in (mine, usual))
    assert (found.metric, expected.metric) == ("mine", kind.name)
    assert found.replaced(metric=kind.name).__getnewargs_ex__() == expected.__getnewargs_ex__()
    assert (mine.better, mine.scale) == (kind.better, kind.scale)
    with pytest.raises(ValueError, match=r"^mine: "):
        mine.score()


def test_two_instances_of_one_metric_stand_side_by_side() -> None:
    """A table has a column of each name; one name twice is refused with what to do."""
    broad, exact = metrics.RecallAtK(), metrics.RecallAtK(k=1, name="recall_at_1")
    table = evaluate([INPUTS], [broad, exact], progress=False)
    assert {name: stats.mean for name, stats in table.stats().items()} == {"recall_at_k": 0.5, "recall_at_1": 0.0}
    with pytest.raises(ValueError, match="two metrics of one name: recall_at_k; give one of them another with name="):
        evaluate([INPUTS], [broad, metrics.RecallAtK(k=1)], progress=False)


def test_a_metric_of_a_user_has_the_name_of_its_instance() -> None:
    """Also where its result says another."""

    class Brevity(Metric):
        """Short or not."""

        name = "brevity"

        def measure(self, sample: Sample) -> MetricResult:
            """Return 1.0."""
            del sample
            return MetricResult(1.0, metric="brevity", reason="Short.")

    assert repr(Brevity(name="short").score(response="So.")) == "<short 1: Short.>"
    for wrong in ("", " ", 3):
        with pytest.raises(ValueError, match="name must be a text that is not blank, not"):
            Brevity(name=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "parameter", "problem"),
    [
        (metrics.Faithfulness, "llm", r"Faithfulness takes no llm=: write judge=$"),
        (metrics.Faithfulness, "model", r"write judge=$"),
        (metrics.AspectCritique, "llm", r"write judge=$"),
        (metrics.ExactMatch, "llm", "ExactMatch takes no llm=: leave it out, it asks no judge"),
        (metrics.AnswerRelevancy, "embeddings", r"write embedder=$"),
        (metrics.Faithfulness, "embeddings", "leave it out, it compares no vectors"),
        (metrics.ContextRelevancy, "agreement_metric", r"write agreement=$"),
        (metrics.NonLLMStringSimilarity, "distance_measure", r"write measure=$"),
        (metrics.NonLLMContextRecall, "distance_measure", r"write measure=$"),
        (metrics.ToolCallAccuracy, "arg_comparison_metric", r"write arg_comparison=$"),
        (metrics.Rubric, "rubrics", r"write steps=$"),
        (metrics.Rubric, "with_reference", "a reference is judged where the sample has one"),
        (metrics.ContextRecall, "max_retries", "--rag-retries"),
        (metrics.ContextRecall, "context_recall_prompt", "rag_prompts"),
        (metrics.Coherence, "allowed_values", "its scale is fixed"),
        (metrics.Faithfulness, "jugde", r"Faithfulness takes no jugde=: did you mean judge=\?"),
        (metrics.QuotedSpansAlignment, "case_fold", r"did you mean casefold=\?"),
        (metrics.Faithfulness, "treshold", "Faithfulness takes no treshold=: it takes unit, if_empty, name, judge$"),
    ],
)
def test_a_parameter_that_is_not_taken_leads_to_ours(kind: Any, parameter: str, problem: str) -> None:
    """The error says what to write instead, or why there is nothing to write."""
    with pytest.raises(TypeError, match=problem):
        kind(**{parameter: None})


def test_a_parameter_of_a_user_may_have_any_name() -> None:
    """A metric that takes what another tool calls so gets it."""

    class Own(metrics.Faithfulness):
        """With a model of its own."""

        def __init__(self, *, llm: str) -> None:
            super().__init__(judge=llm)

    assert Own(llm="local").score(response="Moths fly.", retrieved_contexts=["Moths fly."]) == 1.0
