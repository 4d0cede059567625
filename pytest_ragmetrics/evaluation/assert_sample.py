"""assert_sample: several metrics of one sample, each with a bound, scored at the same time and reported together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.runner import BoundedMetric, Job, Runner, check_distinct
from pytest_ragmetrics.evaluation.session import scoring_session
from pytest_ragmetrics.judges.context import Session
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike, lazy_embedder, lazy_judge
from pytest_ragmetrics.metrics.registry import metric_for, metric_named
from pytest_ragmetrics.runs.wording.failures import explain_sample

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pytest_ragmetrics.core.typed import Bounds

_EXAMPLE = "assert_sample(sample, faithfulness=0.8, noise_sensitivity=0.2)"
#: Keywords of other calls, and what to write: every other name is that of a metric.
_KEYWORDS = {
    **dict.fromkeys(("min", "max", "threshold"), _EXAMPLE),
    **dict.fromkeys(("llm", "model"), "judge="),
    "embeddings": "embedder=",
}


def assert_sample(
    sample: Sample | Mapping[str, Any],
    metrics: Mapping[Any, float] | None = None,
    *,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
    votes: int | None = None,
    **bounds: Unpack[Bounds],
) -> dict[str, MetricResult]:
    """Assert that several metrics score a sample well enough; return their results by the names given.

    Names are keywords, which type checkers know, or the keys of ``metrics``; a key may be a metric itself, whose result
    has its name.

    ``sample`` is a :class:`Sample` or a mapping that :meth:`Sample.from_mapping` takes. A bound is the least score, or
    the greatest where lower is better; a name is any that a metric is known by: an alias, a predefined aspect, a metric
    of your own that the hook registers or the module of the test has. All of them are scored at the same time and share
    what they ask alike. ``judge`` and ``embedder`` are for those given by name.

    Raises ``AssertionError`` that explains every metric that fell short, in the order given, and names those that are
    unscored; ``UnscoredError`` where nothing fell short and not all have a score; and before anything is asked
    ``ValueError`` for an unknown metric, one that its name alone does not make, a bound outside of its scale, and a
    field of the sample that is missing, and ``TypeError`` for a bound that is no number.

    >>> sample = {"response": "Moths fly.", "retrieved_contexts": ["Moths fly at night."]}
    >>> results = assert_sample(sample, lexical_grounding=0.4, numbers_aligned=1.0)
    >>> results["lexical_grounding"].value
    1.0
    """
    __tracebackhide__ = True
    if metrics is not None and not isinstance(metrics, Mapping):
        raise TypeError(f"metrics must be a mapping to bounds, not {type(metrics).__name__}; write {_EXAMPLE}")
    named: dict[Any, Any] = dict(metrics or {})
    if twice := sorted(named.keys() & bounds.keys()):
        raise ValueError(f"two bounds for one metric: {', '.join(twice)}")
    named |= bounds
    if not named:
        raise ValueError(f"give at least one metric with its bound; write {_EXAMPLE}")
    # A wrong spec is an error of its own, and not one of making a metric.
    lazy_judge(judge)
    lazy_embedder(embedder)
    held = [_held_metric(key, bound, judge, embedder) for key, bound in named.items()]
    check_distinct(each.metric for each in held)
    given = sample if isinstance(sample, Sample) else Sample.from_mapping(sample)
    missing = [complaint for each in held for complaint in each.missing(given)]
    if missing:
        raise ValueError("\n".join(missing))
    with scoring_session(None, 32) as session:
        names = [key.name if isinstance(key, Metric) else key for key in named]
        outcomes = dict(
            zip(names, loop.run(_scored(Job(sample=given, metrics=held, votes=votes), session)), strict=True)
        )
    raise_shortfall(outcomes, held)
    return {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, MetricResult)}


def _held_metric(
    name: str | Metric, bound: float, judge: JudgeLike | None, embedder: EmbedderLike | None
) -> BoundedMetric:
    __tracebackhide__ = True
    if not isinstance(name, str):
        return BoundedMetric.of(metric_for(name), bound, name=name.name)
    try:
        metric_named(name)
    except ValueError:
        if name not in _KEYWORDS:
            raise
        raise TypeError(f"assert_sample() takes no {name}=: write {_KEYWORDS[name]}") from None
    try:
        metric = metric_for(name, judge=judge, embedder=embedder)
    except (TypeError, ValueError) as error:
        msg = f"{name} cannot be made by its name alone: {error}; make one yourself and write it in place of its name"
        raise ValueError(msg) from error
    return BoundedMetric.of(metric, bound, name=name)


async def _scored(job: Job, session: Session) -> list[MetricResult | RagMetricsError]:
    """Return the results or why a metric has none; raise other errors when all are done."""
    with closing(Runner(session)) as runner:
        done = await runner.score(job)
    outcomes: list[MetricResult | RagMetricsError] = []
    for score in done.scores.values():
        if not isinstance(score.outcome, (MetricResult, RagMetricsError)):
            raise score.outcome
        outcomes.append(score.outcome)
    return outcomes


def raise_shortfall(outcomes: Mapping[str, MetricResult | Exception], held: Sequence[BoundedMetric]) -> None:
    """Raise ``AssertionError`` or ``UnscoredError`` unless all results meet their bounds."""
    __tracebackhide__ = True
    both = zip(held, outcomes.values(), strict=True)
    # A list and no all(): every result is recorded with the bound that it was compared with.
    fell_short = [each for each, outcome in both if isinstance(outcome, MetricResult) and not each.meets(outcome)]
    errors = [outcome for outcome in outcomes.values() if isinstance(outcome, Exception)]
    if not fell_short and not errors:
        return
    text = "\n".join(explain_sample(outcomes))
    if fell_short:
        raise AssertionError(text)
    for error in errors:
        if not isinstance(error, UnscoredError):
            # No judge, no budget, no cache: it concerns every metric and its message says what to do.
            raise error.with_traceback(None) from error.__cause__
    raise UnscoredError(text) from errors[0].__cause__
