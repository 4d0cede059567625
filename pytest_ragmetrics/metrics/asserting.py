"""assert_metric scores a sample, compares with a threshold and explains a failure; asserting makes a helper of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature, getdoc, signature
from numbers import Real
from types import SimpleNamespace
from typing import Any, Literal, get_type_hints

from pytest_ragmetrics.core.result import MetricResult, check_on_scale
from pytest_ragmetrics.core.sample import Sample, as_contexts
from pytest_ragmetrics.metrics.base import Metric, joined
from pytest_ragmetrics.metrics.parameters import check_choice, written
from pytest_ragmetrics.metrics.votes import voting
from pytest_ragmetrics.runs.wording.failures import explain


def assert_metric(
    metric: Metric,
    sample: Sample | Mapping[str, Any],
    *,
    min: float | None = None,
    max: float | None = None,
    votes: int | None = None,
) -> MetricResult:
    """Assert that a metric scores a sample at least ``min`` (or at most ``max``) and return the result.

    The score is the mean of ``votes`` independent judgements, by default as many as the session says; votes that cannot
    change the outcome are not requested. Raises ``AssertionError`` with the explanation, :class:`UnscoredError` if
    there is no score, ``ValueError`` without a bound or for one outside of the scale.

    >>> from pytest_ragmetrics.metrics import QuotedSpansAlignment
    >>> sample = Sample(response='It says "open the valve slowly".', retrieved_contexts=["Open the valve slowly."])
    >>> assert_metric(QuotedSpansAlignment(), sample, min=0.9).value
    1.0
    """
    __tracebackhide__ = True
    _check_metric(metric)
    if min is None and max is None:
        raise ValueError("give min= or max=, the score to hold the metric against")
    for name, bound in (("min", min), ("max", max)):
        if bound is not None:
            check_bound(name, bound, metric=metric.name, scale=metric.scale)
    given = sample if isinstance(sample, Sample) else Sample.from_mapping(sample)
    with voting(metric, votes=votes, least=min, most=max):
        result = metric.score_sample(given)
    if (min is not None and not result >= min) or (max is not None and not result <= max):
        comparison = result.comparison
        raise AssertionError("\n".join(explain(result, comparison)) if comparison else repr(result))
    return result


def _check_metric(given: object) -> None:
    """Raise ``TypeError`` that says what to write for what is no metric."""
    __tracebackhide__ = True
    if isinstance(given, Metric):
        return
    if isinstance(given, type) and issubclass(given, Metric):
        raise TypeError(f"{given.__name__} is the class of a metric: write assert_metric({given.__name__}(), sample)")
    name = given if isinstance(given, str) and given.isidentifier() else "faithfulness"
    what = "the name of one" if name is given else type(given).__name__
    form = f"write assert_metric(metric, sample, min=...), or assert_sample(sample, {name}=...)"
    raise TypeError(f"a metric comes first, not {what}: {form}")


def check_bound(
    name: str, bound: object, *, metric: str = "the metric", scale: tuple[float, float] | None = None
) -> float:
    """Return a bound as a float; raise ``TypeError`` unless it is a number, ``ValueError`` unless it is on the scale.

    ``scale`` are the lowest and the highest score of the metric, where they are known.

    >>> check_bound("min", 1)
    1.0
    >>> check_bound("min", 90, metric="faithfulness", scale=(0.0, 1.0))
    Traceback (most recent call last):
    ValueError: min=90 is outside of the scale of faithfulness, 0 to 1: write 0.9, or give your own metric its scale
    """
    if isinstance(bound, bool) or not isinstance(bound, Real):
        raise TypeError(f"{name} must be a number, not {bound!r}")
    number = float(bound)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, not {bound!r}")
    check_on_scale(f"{name}={number:g}", number, metric=metric, scale=scale)
    return number


@dataclass(frozen=True, slots=True)
class _Text:
    """A parameter of helpers that gives a field of the sample."""

    name: str
    field: str
    annotation: str = "str"
    adapt: Callable[[Any], Any] = lambda value: value


_NAMED = Parameter.KEYWORD_ONLY
#: A note on metrics of yes or no.
MAJORITY = "Several ``votes`` decide by majority."
#: The parameters of helpers that metrics lack, by their names in ``takes`` and ``optional``.
_TEXTS = {
    "sample": _Text("sample", "sample", "Sample | Mapping[str, Any]"),
    "question": _Text("question", "user_input"),
    "question or messages": _Text("question", "user_input", "object"),
    "response": _Text("response", "response"),
    "reference": _Text("reference", "reference"),
    "references": _Text("reference", "reference", "str | Sequence[str]", joined),
    "contexts": _Text("contexts", "retrieved_contexts", "object", as_contexts),
    "context_ids": _Text("context_ids", "retrieved_context_ids", "Sequence[str | int]"),
    "reference_contexts": _Text(
        "reference_contexts", "reference_contexts", "object", partial(as_contexts, name="reference_contexts")
    ),
    "source": _Text("contexts", "reference_contexts", "object", as_contexts),
    "messages": _Text("messages", "messages", "object"),
    "topics": _Text("topics", "reference_topics", "Sequence[str]"),
    "reference_tool_calls": _Text("reference_tool_calls", "reference_tool_calls", "object"),
}


def asserting(
    *kinds: type[Metric],
    called: Sequence[str] = (),
    takes: Sequence[str] = (),
    optional: Sequence[str] = (),
    min: float | None = None,
    max: float | None = None,
    example: str = "",
    shows: float = 1.0,
    note: str = "",
) -> Callable[..., MetricResult]:
    """Return the assertion helper of a metric, or of several that are ``called`` so in its parameter ``metric``.

    By position it ``takes`` texts, unless said those that the metric requires, or parameters of the metric; by name
    what is ``optional``, a bound with its default ``min`` or ``max``, the other parameters of the metric, and votes,
    judge and embedder of one that asks them. Its docstring has the first line of that of the metric, a ``note``, and a
    call with the ``example`` of arguments, which ``shows`` a score.
    """
    kind, usual = kinds[0], max if min is None else min
    takes = takes or [next(name for name, it in _TEXTS.items() if it.field == field) for field in kind.requires]
    end = "max" if kind.better == "lower" else "min"
    bound = Parameter(end, _NAMED, annotation="float", default=Parameter.empty if usual is None else usual)
    parameters = [*_parameters(kinds, called, takes, optional, bound)]
    call = Signature(parameters, return_annotation="MetricResult")
    texts = [_TEXTS[each] for each in (*takes, *optional) if each in _TEXTS]
    parameters_of = [[name for name in signature(each).parameters if name in call.parameters] for each in kinds]

    def run(**values: Any) -> MetricResult:
        __tracebackhide__ = True
        made = [each(**{name: values[name] for name in own}) for each, own in zip(kinds, parameters_of, strict=True)]
        metric = made[called.index(check_choice("metric", values["metric"], called)) if called else 0]
        fields = {text.field: text.adapt(values[text.name]) for text in texts}
        sample = fields["sample"] if "sample" in fields else Sample.from_mapping(fields)
        options = {name: values[name] for name in (end, "votes") if name in values}
        return assert_metric(metric, sample, **options)

    roles = " or ".join(f":class:`~pytest_ragmetrics.metrics.{each.__name__}`" for each in kinds)
    summary = (getdoc(kind) or "").partition("\n\n")[0]
    summary = summary if summary[1].isupper() else f"{summary[0].lower()}{summary[1:]}"
    doc = [f"Assert that {kind.__name__} is at {'least' if end == 'min' else 'most'} ``{end}``: {summary}"]
    doc += [f"{note} Parameters and errors are those of {roles}.".strip()]
    doc += [f">>> {kind.helper}({example}).value\n{shows}"] if example else []
    known = {name: hint for each in kinds for name, hint in get_type_hints(each.__init__).items()}
    rest = {it.name: it.annotation for it in parameters if it.name not in known}
    hints = known | get_type_hints(SimpleNamespace(__annotations__=rest), {**globals(), "Literal": Literal})
    helper = written(kind.helper, call, run, hints, sys._getframe(1))  # noqa: SLF001 - as namedtuple does
    helper.__doc__ = "\n\n".join(doc)
    return helper


def _parameters(
    kinds: Sequence[type[Metric]],
    called: Sequence[str],
    takes: Sequence[str],
    optional: Sequence[str],
    bound: Parameter,
) -> Iterator[Parameter]:
    own = {name: it for kind in kinds for name, it in signature(kind).parameters.items()}
    for each in takes:
        text = _TEXTS.get(each) or _Text(each, each, own[each].annotation)
        yield Parameter(text.name, Parameter.POSITIONAL_OR_KEYWORD, annotation=text.annotation)
    for each in optional:
        text = _TEXTS.get(each) or _Text(each, each, own[each].annotation)
        form = text.annotation if text.annotation.endswith(("object", "None")) else f"{text.annotation} | None"
        yield Parameter(text.name, _NAMED, default=None, annotation=form)
    if called:
        yield Parameter("metric", _NAMED, default=called[0], annotation=f"Literal[{', '.join(map(repr, called))}]")
    yield bound
    asks = kinds[0].asks
    yield from (own[name] for name in own if name not in {"name", "judge", "embedder", *takes, *optional})
    if "judge" in asks:
        yield Parameter("votes", _NAMED, default=None, annotation="int | None")
    yield from (own[name] for name in asks)
