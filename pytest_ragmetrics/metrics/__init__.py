"""The metrics: each a class that scores one sample."""

from pytest_ragmetrics.metrics.agents import AgentGoalAccuracy, TopicAdherence
from pytest_ragmetrics.metrics.answer_correctness import AnswerCorrectness
from pytest_ragmetrics.metrics.answer_relevancy import AnswerRelevancy
from pytest_ragmetrics.metrics.citation_validity import CitationValidity
from pytest_ragmetrics.metrics.citations import CitationPrecision, CitationRecall
from pytest_ragmetrics.metrics.context_ids import IDBasedContextPrecision, IDBasedContextRecall
from pytest_ragmetrics.metrics.context_precision import ContextPrecision, ContextUtilization
from pytest_ragmetrics.metrics.context_recall import ContextRecall
from pytest_ragmetrics.metrics.context_relevancy import ContextRelevancy
from pytest_ragmetrics.metrics.critique import (
    AspectCritique,
    Coherence,
    Conciseness,
    CorrectnessAspect,
    Harmfulness,
    Harmlessness,
    Maliciousness,
)
from pytest_ragmetrics.metrics.dual_ratings import AnswerAccuracy, ContextRelevance, ResponseGroundedness
from pytest_ragmetrics.metrics.entity_recall import ContextEntityRecall
from pytest_ragmetrics.metrics.factual_correctness import FactualCorrectness
from pytest_ragmetrics.metrics.faithfulness import Faithfulness
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall, LexicalGrounding, NamesAligned, NumbersAligned
from pytest_ragmetrics.metrics.hallucination import Hallucination
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.metrics.noise_sensitivity import NoiseSensitivity
from pytest_ragmetrics.metrics.non_llm_contexts import NonLLMContextPrecision, NonLLMContextRecall
from pytest_ragmetrics.metrics.overlap import BleuScore, CHRFScore, RougeScore
from pytest_ragmetrics.metrics.quoted_spans import QuotedSpansAlignment, quoted_spans_alignment
from pytest_ragmetrics.metrics.ragas_score import RagasScore, ragas_score
from pytest_ragmetrics.metrics.ratings import ContextPrecisionProportion, Correctness, Relevance
from pytest_ragmetrics.metrics.refusal import RefusalCorrectness
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.metrics.retrieval import MAP, MRR, NDCG, HitRate, PrecisionAtK, RecallAtK
from pytest_ragmetrics.metrics.rubric import Rubric, SimpleCriteria
from pytest_ragmetrics.metrics.similarity import SemanticSimilarity
from pytest_ragmetrics.metrics.strings import ExactMatch, NonLLMStringSimilarity, StringPresence, TokenF1
from pytest_ragmetrics.metrics.summary import SummaryScore
from pytest_ragmetrics.metrics.tool_calls import ToolCallAccuracy, ToolCallF1

# What other tools call them.
ResponseRelevancy = AnswerRelevancy
SummarizationScore = SummaryScore
AspectCritic = AspectCritique
NonLLMContextPrecisionWithReference = NonLLMContextPrecision

__all__ = [
    "MAP",
    "MRR",
    "NDCG",
    "AgentGoalAccuracy",
    "AnswerAccuracy",
    "AnswerCorrectness",
    "AnswerRelevancy",
    "Ask",
    "AspectCritic",
    "AspectCritique",
    "BleuScore",
    "CHRFScore",
    "CitationPrecision",
    "CitationRecall",
    "CitationValidity",
    "Coherence",
    "Conciseness",
    "ContextEntityRecall",
    "ContextPrecision",
    "ContextPrecisionProportion",
    "ContextRecall",
    "ContextRelevance",
    "ContextRelevancy",
    "ContextUtilization",
    "Correctness",
    "CorrectnessAspect",
    "ExactMatch",
    "FactualCorrectness",
    "Faithfulness",
    "Hallucination",
    "Harmfulness",
    "Harmlessness",
    "HitRate",
    "IDBasedContextPrecision",
    "IDBasedContextRecall",
    "JudgedMetric",
    "LexicalContextRecall",
    "LexicalGrounding",
    "Maliciousness",
    "Metric",
    "NamesAligned",
    "NoiseSensitivity",
    "NonLLMContextPrecision",
    "NonLLMContextPrecisionWithReference",
    "NonLLMContextRecall",
    "NonLLMStringSimilarity",
    "NumbersAligned",
    "PrecisionAtK",
    "QuotedSpansAlignment",
    "RagasScore",
    "RecallAtK",
    "RefusalCorrectness",
    "Relevance",
    "ResponseGroundedness",
    "ResponseRelevancy",
    "RougeScore",
    "Rubric",
    "SemanticSimilarity",
    "SimpleCriteria",
    "StringPresence",
    "SummarizationScore",
    "SummaryScore",
    "TokenF1",
    "ToolCallAccuracy",
    "ToolCallF1",
    "TopicAdherence",
    "metric_named",
    "quoted_spans_alignment",
    "ragas_score",
]
