"""assert_sample: several metrics of one sample, each with a bound, scored at the same time and reported together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.core.messages import opened
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import ContextsFrom, Sample, in_turns, is_conversation, turn_of
from pytest_ragmetrics.evaluation.runner import BoundedMetric, Done, Job, Outcome, Runner, check_distinct, metrics_of
from pytest_ragmetrics.evaluation.session import scoring_session
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike, lazy_embedder, lazy_judge
from pytest_ragmetrics.metrics.registry import metric_for, metric_named
from pytest_ragmetrics.runs.wording.failures import explain_conversation, explain_sample

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pytest_ragmetrics.core.typed import Bounds

# What is asserted, and the bounds that errors write as an example.
_SAMPLE, _CONVERSATION = "assert_sample(sample", "assert_conversation(messages"
_BOUNDS = ", faithfulness=0.8, noise_sensitivity=0.2)"
#: Keywords of other calls, and what to write, "" for bounds: every other name is that of a metric.
_KEYWORDS = {
    **dict.fromkeys(("min", "max", "threshold"), ""),
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

    Bounds, the least score (the greatest where lower is better), are keywords by any name of a metric, or the mapping
    ``metrics``, whose keys may be metrics; your own are found if the hook registers them or the test module has them.
    All are scored at once and share equal requests. ``judge`` and ``embedder`` are for those given by name.

    Raises ``AssertionError`` that explains every metric beyond its bound and names the unscored ones;
    :class:`UnscoredError` if only scores are missing; and before any request ``ValueError`` for an unknown metric, one
    that needs parameters, a bound outside of its scale or a missing field, ``TypeError`` for a bound that is no number.

    >>> sample = {"response": "Moths fly.", "retrieved_contexts": ["Moths fly at night."]}
    >>> results = assert_sample(sample, lexical_grounding=0.4, numbers_aligned=1.0)
    >>> results["lexical_grounding"].value
    1.0
    """
    __tracebackhide__ = True
    named = _named_bounds(metrics, bounds, _SAMPLE)
    held = _held_metrics(named, judge, embedder, _SAMPLE)
    given = sample if isinstance(sample, Sample) else Sample.from_mapping(sample)
    (found,) = _scored([Job(sample=given, metrics=held, votes=votes)])
    outcomes = {name: found[each.metric.name] for name, each in zip(_names(named), held, strict=True)}
    raise_shortfall(outcomes, held)
    return {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, MetricResult)}


def assert_conversation(
    conversation: Sample | Mapping[str, Any] | Sequence[Any],
    metrics: Mapping[Any, float] | None = None,
    *,
    contexts_from: ContextsFrom = None,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
    votes: int | None = None,
    **bounds: Unpack[Bounds],
) -> dict[str, dict[int | str, MetricResult]]:
    """Assert that every answer of a conversation, and the conversation as a whole, scores well enough.

    ``conversation`` is a list of messages or its JSON text, a row with one, or a ``Sample``. Names, bounds and errors
    are those of :func:`assert_sample`: a metric of answers must meet its bound in every turn (see ``Sample.turns``,
    also for ``contexts_from``), a metric of conversations once. Returns the results by name and turn, or "all".

    >>> talk = [{"role": "user", "content": "How long?"},
    ...         {"role": "assistant", "content": "3 minutes.", "contexts": ["It takes 3 minutes."]}]
    >>> assert_conversation(talk, numbers_aligned=1.0)
    {'numbers_aligned': {1: <numbers_aligned 1: Found 1 of 1 numbers>}}
    """
    __tracebackhide__ = True
    named = _named_bounds(metrics, bounds, _CONVERSATION)
    held = _held_metrics(named, judge, embedder, _CONVERSATION)
    row: Any = opened(conversation) if isinstance(conversation, str) else conversation
    row = {"messages": row} if is_conversation(row) else row
    given = row if isinstance(row, (Sample, str)) else Sample.from_mapping(row)
    if isinstance(given, str) or given.metadata.get("messages") is None:
        raise ValueError("assert_conversation() takes messages: a list of them, or a row with one; see assert_sample()")
    whole = any(each.metric.of_conversation for each in held)
    turns = in_turns(given, "each", contexts_from=contexts_from, whole=whole)
    jobs = [Job(sample=turn, metrics=metrics_of(turn, held), votes=votes) for turn in turns]
    found = _scored(jobs)
    places = [turn_of(turn) or "all" for turn in turns]
    outcomes = {
        name: {place: it[each.metric.name] for place, it in zip(places, found, strict=True) if each.metric.name in it}
        for name, each in zip(_names(named), held, strict=True)
    }
    both = [(each, it) for each, of in zip(held, outcomes.values(), strict=True) for it in of.values()]
    _raise([it for _, it in both], [each for each, _ in both], lambda: explain_conversation(outcomes))
    return {name: {k: it for k, it in of.items() if isinstance(it, MetricResult)} for name, of in outcomes.items()}


def _named_bounds(metrics: Mapping[Any, float] | None, bounds: Mapping[str, Any], call: str) -> dict[Any, Any]:
    __tracebackhide__ = True
    example = f"{call}{_BOUNDS}"
    if metrics is not None and not isinstance(metrics, Mapping):
        raise TypeError(f"metrics must be a mapping to bounds, not {type(metrics).__name__}; write {example}")
    if twice := sorted((metrics or {}).keys() & bounds.keys()):
        raise ValueError(f"two bounds for one metric: {', '.join(twice)}")
    if not (named := {**(metrics or {}), **bounds}):
        raise ValueError(f"give at least one metric with its bound; write {example}")
    return named


def _held_metrics(
    named: Mapping[Any, Any], judge: JudgeLike | None, embedder: EmbedderLike | None, call: str
) -> list[BoundedMetric]:
    __tracebackhide__ = True
    # A wrong spec is an error of its own, and not one of making a metric.
    lazy_judge(judge)
    lazy_embedder(embedder)
    held = [_held_metric(key, bound, judge, embedder, call) for key, bound in named.items()]
    check_distinct(each.metric for each in held)
    return held


def _names(named: Mapping[Any, Any]) -> list[str]:
    return [key.name if isinstance(key, Metric) else key for key in named]


def _held_metric(
    name: str | Metric, bound: float, judge: JudgeLike | None, embedder: EmbedderLike | None, call: str
) -> BoundedMetric:
    __tracebackhide__ = True
    if not isinstance(name, str):
        return BoundedMetric.of(metric_for(name), bound, name=name.name)
    try:
        metric_named(name)
    except ValueError:
        if name not in _KEYWORDS:
            raise
        instead = _KEYWORDS[name] or f"{call}{_BOUNDS}"
        raise TypeError(f"{call.partition('(')[0]}() takes no {name}=: write {instead}") from None
    try:
        metric = metric_for(name, judge=judge, embedder=embedder)
    except (TypeError, ValueError) as error:
        msg = f"{name} cannot be made by its name alone: {error}; make one yourself and write it in place of its name"
        raise ValueError(msg) from error
    return BoundedMetric.of(metric, bound, name=name)


def _scored(jobs: Sequence[Job]) -> list[dict[str, Outcome]]:
    """Return the results of jobs by metric, or why there is none; raise other errors when all are done."""
    __tracebackhide__ = True
    missing = [complaint for job in jobs for each in job.metrics for complaint in each.missing(job.sample)]
    if missing:
        raise ValueError("\n".join(dict.fromkeys(missing)))
    done: list[Done] = []
    with scoring_session(None, 32) as session, closing(Runner(session)) as runner:
        loop.run(runner.run(jobs, done.append, together=True))
    for outcome in (score.outcome for each in done for score in each.scores.values()):
        if not isinstance(outcome, (MetricResult, RagMetricsError)):
            raise outcome
    return [{name: score.outcome for name, score in each.scores.items()} for each in done]


def raise_shortfall(outcomes: Mapping[str, MetricResult | Exception], held: Sequence[BoundedMetric]) -> None:
    """Raise ``AssertionError`` or ``UnscoredError`` unless all results meet their bounds."""
    __tracebackhide__ = True
    _raise([*outcomes.values()], held, lambda: explain_sample(outcomes))


def _raise(
    outcomes: Sequence[MetricResult | Exception], held: Sequence[BoundedMetric], explain: Callable[[], list[str]]
) -> None:
    __tracebackhide__ = True
    both = zip(held, outcomes, strict=True)
    # A list and no all(): every result is recorded with the bound that it was compared with.
    fell_short = [each for each, outcome in both if isinstance(outcome, MetricResult) and not each.meets(outcome)]
    errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    if not fell_short and not errors:
        return
    text = "\n".join(explain())
    if fell_short:
        raise AssertionError(text)
    for error in errors:
        if not isinstance(error, UnscoredError):
            # No judge, no budget, no cache: it concerns every metric and its message says what to do.
            raise error.with_traceback(None) from error.__cause__
    raise UnscoredError(text) from errors[0].__cause__
