"""The metrics by name, as settings and markers call them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from inspect import signature

from pytest_ragmetrics import session
from pytest_ragmetrics.metrics.agents import AgentGoalAccuracy, TopicAdherence
from pytest_ragmetrics.metrics.answer_correctness import AnswerCorrectness
from pytest_ragmetrics.metrics.answer_relevancy import AnswerRelevancy
from pytest_ragmetrics.metrics.citation_validity import CitationValidity
from pytest_ragmetrics.metrics.citations import CitationPrecision, CitationRecall
from pytest_ragmetrics.metrics.context_ids import IDBasedContextPrecision, IDBasedContextRecall
from pytest_ragmetrics.metrics.context_precision import ContextPrecision, ContextUtilization
from pytest_ragmetrics.metrics.context_recall import ContextRecall
from pytest_ragmetrics.metrics.context_relevancy import ContextRelevancy
from pytest_ragmetrics.metrics.critique import ASPECTS, AspectCritique
from pytest_ragmetrics.metrics.dual_ratings import AnswerAccuracy, ContextRelevance, ResponseGroundedness
from pytest_ragmetrics.metrics.entity_recall import ContextEntityRecall
from pytest_ragmetrics.metrics.factual_correctness import FactualCorrectness
from pytest_ragmetrics.metrics.faithfulness import Faithfulness
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall, LexicalGrounding, NamesAligned, NumbersAligned
from pytest_ragmetrics.metrics.hallucination import Hallucination
from pytest_ragmetrics.metrics.judged import JudgedMetric
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.metrics.noise_sensitivity import NoiseSensitivity
from pytest_ragmetrics.metrics.non_llm_contexts import NonLLMContextPrecision, NonLLMContextRecall
from pytest_ragmetrics.metrics.overlap import BleuScore, CHRFScore, RougeScore
from pytest_ragmetrics.metrics.provided import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.quoted_spans import QuotedSpansAlignment
from pytest_ragmetrics.metrics.ratings import ContextPrecisionProportion, Correctness, Relevance
from pytest_ragmetrics.metrics.refusal import RefusalCorrectness
from pytest_ragmetrics.metrics.retrieval import MAP, MRR, NDCG, HitRate, PrecisionAtK, RecallAtK
from pytest_ragmetrics.metrics.rubric import Rubric, SimpleCriteria
from pytest_ragmetrics.metrics.similarity import SemanticSimilarity
from pytest_ragmetrics.metrics.strings import ExactMatch, NonLLMStringSimilarity, StringPresence, TokenF1
from pytest_ragmetrics.metrics.summary import SummaryScore
from pytest_ragmetrics.metrics.tool_calls import ToolCallAccuracy, ToolCallF1

#: Every metric of this package.
METRICS: tuple[type[Metric], ...] = (
    QuotedSpansAlignment,
    Faithfulness,
    AnswerRelevancy,
    SummaryScore,
    ContextRelevancy,
    ContextRecall,
    AspectCritique,
    *ASPECTS,
    Relevance,
    Correctness,
    ContextPrecisionProportion,
    ContextPrecision,
    ContextUtilization,
    NoiseSensitivity,
    FactualCorrectness,
    AnswerCorrectness,
    AgentGoalAccuracy,
    TopicAdherence,
    CitationPrecision,
    CitationRecall,
    RefusalCorrectness,
    Rubric,
    SimpleCriteria,
    AnswerAccuracy,
    ContextRelevance,
    ResponseGroundedness,
    Hallucination,
    ContextEntityRecall,
    LexicalGrounding,
    LexicalContextRecall,
    NumbersAligned,
    NamesAligned,
    CitationValidity,
    RecallAtK,
    PrecisionAtK,
    HitRate,
    MRR,
    MAP,
    NDCG,
    IDBasedContextRecall,
    IDBasedContextPrecision,
    NonLLMContextRecall,
    NonLLMContextPrecision,
    ExactMatch,
    StringPresence,
    NonLLMStringSimilarity,
    TokenF1,
    BleuScore,
    CHRFScore,
    RougeScore,
    ToolCallAccuracy,
    ToolCallF1,
    SemanticSimilarity,
)


def metric_named(name: str, *, also: Iterable[Metric | type[Metric]] = ()) -> Metric | type[Metric]:
    """Return the metric of a name, an alias or a class name.

    Those that the hook ``pytest_ragmetrics_register_metrics`` of the running session registers are known as well, and
    those in ``also``. A metric that comes later takes its name over, and with it what else the other was known by.
    Raises ``ValueError`` that lists the names closest to an unknown one.

    >>> metric_named("ResponseRelevancy")
    <class 'pytest_ragmetrics.metrics.answer_relevancy.AnswerRelevancy'>
    """
    running = session.current()
    known = _by_name((*METRICS, *(() if running is None else running.metrics), *also))
    if name in known:
        return known[known[name].name]
    near = get_close_matches(name, known, n=3)
    names = sorted({metric.name for metric in known.values()})
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
    msg = f"there is no metric {name!r}: {hint}"
    raise ValueError(msg)


def metric_for(metric: str | Metric, *, judge: JudgeLike | None = None, embedder: EmbedderLike | None = None) -> Metric:
    """Return a metric as it is, or one of that name with this judge and embedder where it takes them.

    >>> metric_for("faithfulness", judge="local").name
    'faithfulness'
    """
    if isinstance(metric, Metric):
        return metric
    found = metric_named(metric)
    if isinstance(found, JudgedMetric):
        return found if judge is None and embedder is None else found.asking(judge=judge, embedder=embedder)
    if isinstance(found, Metric):
        return found
    taken = signature(found).parameters
    return found(**{name: given for name, given in (("judge", judge), ("embedder", embedder)) if name in taken})


def _by_name(metrics: Iterable[Metric | type[Metric]]) -> dict[str, Metric | type[Metric]]:
    """Map names to metrics; a metric that comes later may take a name over."""
    known: dict[str, Metric | type[Metric]] = {}
    for metric in metrics:
        kind = metric if isinstance(metric, type) else type(metric)
        # Not the inherited aliases, nor the class of one that is called otherwise: they are those of another metric.
        others = (*vars(kind).get("aliases", ()), kind.__name__) if metric.name == kind.name else ()
        for name in (*others, metric.name):
            known[name] = metric
    return known
