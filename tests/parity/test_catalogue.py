"""Every metric of Ragas 0.4 and of eval-ruby has an answer here, or a reason why it has none."""

from __future__ import annotations

import pytest

from pytest_ragmetrics import metrics
from pytest_ragmetrics.metrics import metric_named
from pytest_ragmetrics.metrics.registry import built_in_metrics

#: What their packages export.
RAGAS = """
AgentGoalAccuracy AnswerAccuracy AnswerCorrectness AnswerRelevancy AspectCritic BleuScore CHRFScore ContextEntityRecall
ContextPrecision ContextPrecisionWithReference ContextPrecisionWithoutReference ContextRecall ContextRelevance
ContextUtilization DataCompyScore DomainSpecificRubrics ExactMatch FactualCorrectness Faithfulness
IDBasedContextPrecision IDBasedContextRecall InstanceSpecificRubrics MultiModalFaithfulness MultiModalRelevance
NoiseSensitivity NonLLMContextPrecisionWithReference NonLLMContextRecall NonLLMStringSimilarity QuotedSpansAlignment
ResponseGroundedness RougeScore SQLSemanticEquivalence SemanticSimilarity SimpleCriteriaScore StringPresence
SummaryScore ToolCallAccuracy ToolCallF1 TopicAdherence
"""
EVAL_RUBY = "Faithfulness Relevance Correctness ContextRecall SemanticSimilarity PrecisionAtK RecallAtK MRR NDCG"
#: What is not answered, and why.
UNANSWERED = {
    "DataCompyScore": "compares tables, not texts",
    "MultiModalFaithfulness": "texts only",
    "MultiModalRelevance": "texts only",
    "SQLSemanticEquivalence": "compares queries, not answers",
}
#: Scales that are given here when a rubric is made.
RUBRICS = {"DomainSpecificRubrics", "InstanceSpecificRubrics"}
#: Names of theirs that are not those of our classes.
OTHERWISE = {
    "AspectCritic": "AspectCritique",
    "ContextPrecisionWithReference": "ContextPrecision",
    "ContextPrecisionWithoutReference": "ContextUtilization",
    "NonLLMContextPrecisionWithReference": "NonLLMContextPrecision",
    "SimpleCriteriaScore": "SimpleCriteria",
}


@pytest.mark.parametrize("name", sorted({*RAGAS.split(), *EVAL_RUBY.split()} - UNANSWERED.keys() - RUBRICS))
def test_a_metric_of_theirs_is_in_the_catalogue(name: str) -> None:
    """A class that can be imported and is known by name, and by theirs."""
    kind = getattr(metrics, OTHERWISE.get(name, name))
    assert kind in built_in_metrics()
    assert metric_named(name) is kind
