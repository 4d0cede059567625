"""The metrics: each a class that scores one sample."""

from pytest_ragmetrics.metrics.answer_relevancy import AnswerRelevancy
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
from pytest_ragmetrics.metrics.faithfulness import Faithfulness
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall, LexicalGrounding, NamesAligned, NumbersAligned
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.metrics.quoted_spans import QuotedSpansAlignment, quoted_spans_alignment
from pytest_ragmetrics.metrics.ragas_score import RagasScore, ragas_score
from pytest_ragmetrics.metrics.ratings import ContextPrecisionProportion, Correctness, Relevance
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.metrics.similarity import SemanticSimilarity
from pytest_ragmetrics.metrics.summary import SummaryScore

# What other tools call them.
ResponseRelevancy = AnswerRelevancy
SummarizationScore = SummaryScore
AspectCritic = AspectCritique

__all__ = [
    "AnswerRelevancy",
    "Ask",
    "AspectCritic",
    "AspectCritique",
    "Coherence",
    "Conciseness",
    "ContextPrecisionProportion",
    "ContextRecall",
    "ContextRelevancy",
    "Correctness",
    "CorrectnessAspect",
    "Faithfulness",
    "Harmfulness",
    "Harmlessness",
    "JudgedMetric",
    "LexicalContextRecall",
    "LexicalGrounding",
    "Maliciousness",
    "Metric",
    "NamesAligned",
    "NumbersAligned",
    "QuotedSpansAlignment",
    "RagasScore",
    "Relevance",
    "ResponseRelevancy",
    "SemanticSimilarity",
    "SummarizationScore",
    "SummaryScore",
    "metric_named",
    "quoted_spans_alignment",
    "ragas_score",
]
