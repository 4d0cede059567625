"""The metrics by name, alias and class name."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import metrics
from pytest_ragmetrics.metrics import JudgedMetric, Metric, metric_named
from pytest_ragmetrics.metrics.registry import built_in_metrics, metric_for
from pytest_ragmetrics.sample import Sample
from tests.scripted_judge import ScriptedJudge

#: Names that each metric is known by, besides that of its class.
NAMES = {
    "QuotedSpansAlignment": "quoted_spans_alignment QuotedSpansAlignment",
    "Faithfulness": "faithfulness Faithfulness",
    "AnswerRelevancy": "answer_relevancy ResponseRelevancy response_relevancy",
    "SummaryScore": "summary_score SummarizationScore",
    "ContextRelevancy": "context_relevancy",
    "ContextRecall": "context_recall",
    "Harmfulness": "harmfulness",
    "Maliciousness": "maliciousness",
    "Coherence": "coherence",
    "CorrectnessAspect": "correctness",
    "Conciseness": "conciseness",
    "Harmlessness": "harmlessness",
    "AspectCritique": "AspectCritic AspectCritique",
    "Relevance": "relevance",
    "Correctness": "Correctness correctness_rating",
    "ContextPrecisionProportion": "context_precision_proportion",
    "LexicalGrounding": "lexical_grounding",
    "LexicalContextRecall": "lexical_context_recall",
    "NumbersAligned": "numbers_aligned",
    "ContextPrecision": "context_precision LLMContextPrecisionWithReference ContextualPrecision",
    "ContextUtilization": "context_utilization LLMContextPrecisionWithoutReference",
    "NoiseSensitivity": "noise_sensitivity",
    "FactualCorrectness": "factual_correctness",
    "AnswerCorrectness": "answer_correctness",
    "ContextRelevance": "context_relevance nv_context_relevance",
    "ResponseGroundedness": "response_groundedness nv_response_groundedness",
    "AnswerAccuracy": "answer_accuracy nv_accuracy",
    "Hallucination": "hallucination HallucinationMetric",
    "ContextEntityRecall": "context_entity_recall",
    "CitationRecall": "citation_recall",
    "CitationPrecision": "citation_precision",
    "RefusalCorrectness": "refusal_correctness",
    "Rubric": "rubric RubricsScore",
    "SimpleCriteria": "simple_criteria SimpleCriteriaScore",
    "AgentGoalAccuracy": "agent_goal_accuracy AgentGoalAccuracyWithReference AgentGoalAccuracyWithoutReference",
    "TopicAdherence": "topic_adherence TopicAdherenceScore",
    "NamesAligned": "names_aligned",
    "CitationValidity": "citation_validity",
    "RecallAtK": "recall@k",
    "PrecisionAtK": "PrecisionAtK",
    "HitRate": "hit_rate",
    "MRR": "mean_reciprocal_rank",
    "MAP": "map",
    "NDCG": "NDCG",
    "IDBasedContextRecall": "id_based_context_recall",
    "IDBasedContextPrecision": "IDBasedContextPrecision",
    "NonLLMContextRecall": "non_llm_context_recall",
    "NonLLMContextPrecision": "non_llm_context_precision_with_reference",
    "ExactMatch": "exact_match",
    "StringPresence": "string_present",
    "NonLLMStringSimilarity": "non_llm_string_similarity",
    "TokenF1": "token_f1",
    "BleuScore": "bleu_score",
    "CHRFScore": "chrf",
    "RougeScore": "rouge_score",
    "ToolCallAccuracy": "tool_call_accuracy",
    "ToolCallF1": "tool_call_f1",
    "SemanticSimilarity": "semantic_similarity answer_similarity AnswerSimilarity",
}


@pytest.mark.parametrize(("kind", "names"), NAMES.items())
def test_names_lead_to_metrics(kind: str, names: str) -> None:
    """By name, by class name, and by what other tools say."""
    for name in (kind, *names.split()):
        assert metric_named(name) is getattr(metrics, kind)


def test_every_metric_is_public_and_has_a_name_of_its_own() -> None:
    """What is in the registry can be imported, and no two metrics share a name."""
    assert {kind.__name__ for kind in built_in_metrics()} == NAMES.keys()
    for kind in built_in_metrics():
        assert getattr(metrics, kind.__name__) is metric_named(kind.name) is kind


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
    """A metric of somebody else's, which is not in the catalogue for being defined."""

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
