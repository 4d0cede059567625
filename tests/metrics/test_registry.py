"""The metrics by name, alias and class name."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import metrics
from pytest_ragmetrics.metrics import JudgedMetric, Metric, metric_named
from pytest_ragmetrics.metrics.registry import built_in_metrics, metric_for
from pytest_ragmetrics.sample import Sample
from tests.scripted_judge import ScriptedJudge

NAMES = {
    "quoted_spans_alignment": metrics.QuotedSpansAlignment,
    "QuotedSpansAlignment": metrics.QuotedSpansAlignment,
    "faithfulness": metrics.Faithfulness,
    "Faithfulness": metrics.Faithfulness,
    "answer_relevancy": metrics.AnswerRelevancy,
    "ResponseRelevancy": metrics.AnswerRelevancy,
    "response_relevancy": metrics.AnswerRelevancy,
    "summary_score": metrics.SummaryScore,
    "SummarizationScore": metrics.SummaryScore,
    "context_relevancy": metrics.ContextRelevancy,
    "context_recall": metrics.ContextRecall,
    "harmfulness": metrics.Harmfulness,
    "maliciousness": metrics.Maliciousness,
    "coherence": metrics.Coherence,
    "correctness": metrics.CorrectnessAspect,
    "conciseness": metrics.Conciseness,
    "harmlessness": metrics.Harmlessness,
    "AspectCritic": metrics.AspectCritique,
    "AspectCritique": metrics.AspectCritique,
    "relevance": metrics.Relevance,
    "Correctness": metrics.Correctness,
    "correctness_rating": metrics.Correctness,
    "context_precision_proportion": metrics.ContextPrecisionProportion,
    "lexical_grounding": metrics.LexicalGrounding,
    "lexical_context_recall": metrics.LexicalContextRecall,
    "numbers_aligned": metrics.NumbersAligned,
    "context_precision": metrics.ContextPrecision,
    "LLMContextPrecisionWithReference": metrics.ContextPrecision,
    "ContextualPrecision": metrics.ContextPrecision,
    "context_utilization": metrics.ContextUtilization,
    "LLMContextPrecisionWithoutReference": metrics.ContextUtilization,
    "noise_sensitivity": metrics.NoiseSensitivity,
    "factual_correctness": metrics.FactualCorrectness,
    "answer_correctness": metrics.AnswerCorrectness,
    "context_relevance": metrics.ContextRelevance,
    "nv_context_relevance": metrics.ContextRelevance,
    "response_groundedness": metrics.ResponseGroundedness,
    "nv_response_groundedness": metrics.ResponseGroundedness,
    "answer_accuracy": metrics.AnswerAccuracy,
    "nv_accuracy": metrics.AnswerAccuracy,
    "hallucination": metrics.Hallucination,
    "HallucinationMetric": metrics.Hallucination,
    "context_entity_recall": metrics.ContextEntityRecall,
    "citation_recall": metrics.CitationRecall,
    "citation_precision": metrics.CitationPrecision,
    "refusal_correctness": metrics.RefusalCorrectness,
    "rubric": metrics.Rubric,
    "RubricsScore": metrics.Rubric,
    "simple_criteria": metrics.SimpleCriteria,
    "SimpleCriteriaScore": metrics.SimpleCriteria,
    "agent_goal_accuracy": metrics.AgentGoalAccuracy,
    "AgentGoalAccuracyWithReference": metrics.AgentGoalAccuracy,
    "AgentGoalAccuracyWithoutReference": metrics.AgentGoalAccuracy,
    "topic_adherence": metrics.TopicAdherence,
    "TopicAdherenceScore": metrics.TopicAdherence,
    "names_aligned": metrics.NamesAligned,
    "citation_validity": metrics.CitationValidity,
    "recall@k": metrics.RecallAtK,
    "PrecisionAtK": metrics.PrecisionAtK,
    "hit_rate": metrics.HitRate,
    "mean_reciprocal_rank": metrics.MRR,
    "map": metrics.MAP,
    "NDCG": metrics.NDCG,
    "id_based_context_recall": metrics.IDBasedContextRecall,
    "IDBasedContextPrecision": metrics.IDBasedContextPrecision,
    "non_llm_context_recall": metrics.NonLLMContextRecall,
    "non_llm_context_precision_with_reference": metrics.NonLLMContextPrecision,
    "exact_match": metrics.ExactMatch,
    "string_present": metrics.StringPresence,
    "non_llm_string_similarity": metrics.NonLLMStringSimilarity,
    "token_f1": metrics.TokenF1,
    "bleu_score": metrics.BleuScore,
    "chrf": metrics.CHRFScore,
    "rouge_score": metrics.RougeScore,
    "tool_call_accuracy": metrics.ToolCallAccuracy,
    "tool_call_f1": metrics.ToolCallF1,
}


@pytest.mark.parametrize(("name", "metric"), NAMES.items())
def test_names_lead_to_metrics(name: str, metric: type[Metric]) -> None:
    """By name, by class name, and by what other tools say."""
    assert metric_named(name) is metric


def test_every_metric_is_public_and_has_a_name_of_its_own() -> None:
    """What is in the registry can be imported, and no two metrics share a name."""
    assert len({metric.name for metric in built_in_metrics()}) == len(built_in_metrics())
    for metric in built_in_metrics():
        assert getattr(metrics, metric.__name__) is metric
        assert metric_named(metric.name) is metric


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("faithfullness", "did you mean faithfulness"),
        ("context_recal", "did you mean context_recall"),
        ("answer_relevance", "did you mean answer_relevancy"),
        ("Faithfullness", "did you mean Faithfulness"),
        ("zzz", "there are "),
    ],
)
def test_an_unknown_name_points_to_those_near_it(name: str, hint: str) -> None:
    """A slip costs one look."""
    with pytest.raises(ValueError, match=f"there is no metric '{name}': {hint}"):
        metric_named(name)


class Brevity(Metric):
    """A metric of somebody else's."""

    name = "brevity"

    def measure(self, sample: Sample) -> Any:
        """Return nothing of interest."""


def test_metrics_of_others_are_found_and_take_precedence() -> None:
    """What a project registers may replace a metric of the same name."""

    class Own(metrics.Faithfulness):
        """Another idea of faithfulness."""

    assert metric_named("brevity", also=[Brevity]) is Brevity
    assert metric_named("faithfulness", also=[Own]) is Own
    # It inherits the aliases of a metric, and does not take them.
    assert metric_named("ResponseRelevancy", also=[type("Mine", (metrics.AnswerRelevancy,), {"name": "mine"})]) is (
        metrics.AnswerRelevancy
    )


def test_a_name_is_made_into_a_metric() -> None:
    """Judge and embedder go where they are taken; a metric that is one already stays as it is."""
    judge = ScriptedJudge()
    ready = metrics.NumbersAligned()
    assert metric_for(ready, judge=judge) is ready
    assert isinstance(metric_for("numbers_aligned", judge=judge, embedder="local"), metrics.NumbersAligned)
    made = metric_for("context_recall", judge=judge, embedder="local")
    assert isinstance(made, JudgedMetric)
    assert made.score(reference="Moths fly.", retrieved_contexts=[]) == 0.0
