"""The metrics: each a class that scores one sample."""

from __future__ import annotations

from pytest_ragmetrics.metrics.agents import AgentGoalAccuracy, ToolCallAccuracy, ToolCallF1, TopicAdherence
from pytest_ragmetrics.metrics.answers import AnswerCorrectness, AnswerRelevancy, RefusalCorrectness, SemanticSimilarity
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.citations import CitationPrecision, CitationRecall, CitationValidity
from pytest_ragmetrics.metrics.claims import FactualCorrectness, Faithfulness, Hallucination, NoiseSensitivity
from pytest_ragmetrics.metrics.contexts import (
    ContextEntityRecall,
    ContextPrecision,
    ContextRecall,
    ContextRelevancy,
    ContextUtilization,
)
from pytest_ragmetrics.metrics.critiques import (
    AspectCritique,
    Coherence,
    Conciseness,
    CorrectnessAspect,
    Harmfulness,
    Harmlessness,
    Maliciousness,
    Rubric,
    SimpleCriteria,
)
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall, LexicalGrounding, NamesAligned, NumbersAligned
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.quotes import QuotedSpansAlignment, quoted_spans_alignment
from pytest_ragmetrics.metrics.ragas_score import RagasScore, ragas_score
from pytest_ragmetrics.metrics.ratings import (
    AnswerAccuracy,
    ContextPrecisionProportion,
    ContextRelevance,
    Correctness,
    Relevance,
    ResponseGroundedness,
)
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.metrics.retrieval import (
    MAP,
    MRR,
    NDCG,
    HitRate,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    NonLLMContextPrecision,
    NonLLMContextRecall,
    PrecisionAtK,
    RecallAtK,
)
from pytest_ragmetrics.metrics.strings import (
    BleuScore,
    CHRFScore,
    ExactMatch,
    NonLLMStringSimilarity,
    RougeScore,
    StringPresence,
    TokenF1,
)
from pytest_ragmetrics.metrics.summary import SummaryScore

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
