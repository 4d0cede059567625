"""The metrics by name, as settings and markers call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from inspect import isabstract, signature
from typing import Any, Protocol

from pytest_ragmetrics import context as session
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
from pytest_ragmetrics.metrics.critiques import ASPECTS, AspectCritique, Rubric, SimpleCriteria
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall, LexicalGrounding, NamesAligned, NumbersAligned
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgedMetric, JudgeLike
from pytest_ragmetrics.metrics.quotes import QuotedSpansAlignment
from pytest_ragmetrics.metrics.ratings import (
    AnswerAccuracy,
    ContextPrecisionProportion,
    ContextRelevance,
    Correctness,
    Relevance,
    ResponseGroundedness,
)
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

HOOK = "pytest_ragmetrics_register_metrics"


class Implementation(Protocol):
    """An implementation of the hook, as pluggy describes it: who it belongs to, and what to call."""

    @property
    def plugin_name(self) -> str:
        """The name of the plugin, or the path of the conftest.py."""

    @property
    def function(self) -> Callable[..., Any]:
        """The hook."""


def registered_metrics(implementations: Iterable[Implementation]) -> list[Metric | type[Metric]]:
    """Return the metrics of all implementations; raise ``ValueError`` naming the one that returned anything else.

    Two of one name are refused: which of them is meant would depend on what is loaded already.
    """
    found: dict[str, tuple[str, Metric | type[Metric]]] = {}
    for implementation in implementations:
        owner = implementation.plugin_name
        for metric in _metrics_of(implementation):
            other, known = found.setdefault(metric.name, (owner, metric))
            if known is not metric:
                msg = f"{owner}: {HOOK} returned {metric.name!r}, which is also a metric of {other}; rename one of them"
                raise ValueError(msg)
    return [metric for _, metric in found.values()]


def _metrics_of(implementation: Implementation) -> list[Metric | type[Metric]]:
    try:
        returned = implementation.function()
    except Exception as error:
        msg = f"{implementation.plugin_name}: {HOOK} raised {type(error).__name__}: {error}"
        raise ValueError(msg) from error
    listed = [] if returned is None else returned
    if not isinstance(listed, (list, tuple)):
        msg = f"{implementation.plugin_name}: {HOOK} returned {returned!r:.80}; return a list of metrics"
        raise ValueError(msg)  # noqa: TRY004 - whoever looks up a name expects this one
    for item in listed:
        complaint = _complaint(item)
        if complaint:
            msg = f"{implementation.plugin_name}: {HOOK} returned {item!r:.80}, which {complaint}"
            raise ValueError(msg)
    return list(listed)


def _complaint(item: object) -> str:
    """Return what is wrong with what should be a metric."""
    if not isinstance(item, Metric) and not (isinstance(item, type) and issubclass(item, Metric)):
        hint = "; write @metric above it" if callable(item) and not isinstance(item, type) else ""
        return f"is no metric and no class of metrics{hint}"
    if isabstract(item):
        return "cannot score; implement measure() or judged()"
    name = getattr(item, "name", None)
    return "" if isinstance(name, str) and name.strip() else "has no name; give the class a name"


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
    <class 'pytest_ragmetrics.metrics.answers.AnswerRelevancy'>
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
