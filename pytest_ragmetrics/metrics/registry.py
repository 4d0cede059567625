"""The metrics by name, as settings and markers call them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from inspect import signature

from pytest_ragmetrics.metrics.answer_relevancy import AnswerRelevancy
from pytest_ragmetrics.metrics.context_recall import ContextRecall
from pytest_ragmetrics.metrics.context_relevancy import ContextRelevancy
from pytest_ragmetrics.metrics.critique import ASPECTS, AspectCritique
from pytest_ragmetrics.metrics.faithfulness import Faithfulness
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall, LexicalGrounding, NamesAligned, NumbersAligned
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.metrics.provided import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.quoted_spans import QuotedSpansAlignment
from pytest_ragmetrics.metrics.ratings import ContextPrecisionProportion, Correctness, Relevance
from pytest_ragmetrics.metrics.similarity import SemanticSimilarity
from pytest_ragmetrics.metrics.summary import SummaryScore

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
    LexicalGrounding,
    LexicalContextRecall,
    NumbersAligned,
    NamesAligned,
    SemanticSimilarity,
)


def metric_named(name: str, *, also: Iterable[type[Metric]] = ()) -> type[Metric]:
    """Return the metric of a name, an alias or a class name; ``also`` are metrics that others registered.

    Raises ``ValueError`` that lists the names closest to an unknown one.

    >>> metric_named("ResponseRelevancy")
    <class 'pytest_ragmetrics.metrics.answer_relevancy.AnswerRelevancy'>
    """
    known = _by_name((*METRICS, *also))
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(m.name for m in METRICS))}"
    msg = f"there is no metric {name!r}: {hint}"
    raise ValueError(msg)


def metric_for(metric: str | Metric, *, judge: JudgeLike | None = None, embedder: EmbedderLike | None = None) -> Metric:
    """Return a metric as it is, or one of that name with this judge and embedder where it takes them.

    >>> metric_for("faithfulness", judge="local").name
    'faithfulness'
    """
    if isinstance(metric, Metric):
        return metric
    kind = metric_named(metric)
    taken = signature(kind).parameters
    return kind(**{name: given for name, given in (("judge", judge), ("embedder", embedder)) if name in taken})


def _by_name(metrics: Iterable[type[Metric]]) -> dict[str, type[Metric]]:
    """Map names to metrics; a metric that comes later may take a name over."""
    known: dict[str, type[Metric]] = {}
    for metric in metrics:
        # Not the inherited aliases: they are those of the other metric.
        for name in (metric.name, *vars(metric).get("aliases", ()), metric.__name__):
            known[name] = metric
    return known
