"""The helpers take texts in the order of speech, pass parameters on, compare with a threshold, and explain failures."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from pytest_ragmetrics import MetricResult, Sample, assert_metric
from pytest_ragmetrics.metrics import ExactMatch, Metric
from pytest_ragmetrics.metrics.registry import helper_of
from tests.metrics.catalogue import INPUTS, KINDS, NEEDED, TEXTS, CatalogueJudge

OFF = "is outside of the scale of fixed, 0 to 1: write"


class Fixed(Metric):
    """A metric that reads its score off the response."""

    name = "fixed"

    def measure(self, sample: Sample) -> MetricResult:
        return MetricResult(float(sample.response or 0), metric=self.name)


@pytest.mark.parametrize(
    ("bounds", "holds"),
    [
        ({"min": 0.5}, True),
        ({"min": 0.51}, False),
        ({"max": 0.5}, True),
        ({"max": 0.49}, False),
        ({"min": 0.4, "max": 0.6}, True),
        ({"min": 0.6, "max": 0.7}, False),
    ],
)
def test_both_bounds_hold(bounds: dict[str, Any], holds: bool) -> None:
    with nullcontext() if holds else pytest.raises(AssertionError, match=r"^fixed 0\.50 [<>] "):
        assert assert_metric(Fixed(), Sample(response="0.5"), **bounds) == 0.5


@pytest.mark.parametrize(
    ("bounds", "error", "said"),
    [
        ({}, ValueError, "give min= or max="),
        ({"max": True}, TypeError, "max must be a number, not True"),
        ({"min": float("-inf")}, ValueError, "min must be a finite number, not -inf"),
        ({"min": 90}, ValueError, f"min=90 {OFF} 0.9, or give your own metric"),
        ({"min": 0.5, "max": 1.01}, ValueError, f"max=1.01 {OFF} a number on"),
        ({"max": -0.1}, ValueError, f"max=-0.1 {OFF} a number on it"),
        ({"min": 101}, ValueError, f"min=101 {OFF} a number on it"),
    ],
)
def test_wrong_bounds_are_refused_before_scoring(bounds: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        assert_metric(Fixed(), Sample(response="not even a number"), **bounds)


# Every helper

#: What helpers call the fields of a sample, if not by their names.
FIELD = {
    "question": "user_input",
    "contexts": "retrieved_contexts",
    "retrieved_ids": "retrieved_context_ids",
    "context_ids": "retrieved_context_ids",
    "reference_ids": "reference_context_ids",
    "topics": "reference_topics",
}
GIVEN = {**INPUTS, **INPUTS["metadata"]}
FIELDS = {name: name for name in (*TEXTS, *INPUTS["metadata"])} | FIELD
#: Values of parameters that are no flags and no choices.
OTHER: dict[str, Any] = {"if_empty": 0.5, "coeff": 0.25, "weights": (1, 3), "threshold": 0.25, "allowed": ["No."]}
OTHER |= {"arg_comparison": ExactMatch(), "kwargs": {}, "evaluation_steps": ["Look."], "name": "mine"}
#: Metrics that share a helper, by what they are called there; an aspect has a threshold by its direction.
CALLED = {"precision_at_k": "precision", "recall_at_k": "recall", "non_llm_context_precision": "precision"}
CALLED |= {"non_llm_context_recall": "recall", "non_llm_string_similarity": "similarity"}
CALLED |= {"tool_call_accuracy": "accuracy", "tool_call_f1": "f1"}
HELPED = [kind for kind in KINDS if kind.helper != "assert_aspect" and not kind.name.startswith("id_based")]


def unusual_parameters(kind: Any, taken: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value that is not the default for each parameter of a metric that its helper takes."""
    found = {name: value for name, value in NEEDED.get(kind.__name__, {}).items() if name in taken}
    hints = get_type_hints(kind.__init__)
    for name, it in inspect.signature(kind).parameters.items():
        if name not in taken or name in {*found, "judge", "embedder"}:
            continue
        if get_origin(hints[name]) is Literal:
            found[name] = next(choice for choice in get_args(hints[name])[::-1] if choice != it.default)
        elif name in OTHER:
            found[name] = OTHER[name]
        else:
            found[name] = not it.default if isinstance(it.default, bool) else (it.default or 0) + 2
    return found


@pytest.mark.parametrize("kind", HELPED, ids=lambda kind: kind.name)
def test_a_helper_does_what_its_metric_does(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts first, everything else by keyword: all reaches the metric and its sample, and so do bounds and votes.

    What is not given is as for the metric, but for a ranking, which is cut at 5.
    """
    calls: list[Any] = []

    def asserting(metric: Metric, sample: Any, **options: Any) -> MetricResult:
        calls.append((metric, sample, options))
        return assert_metric(metric, sample, **options)

    helper: Any = helper_of(kind)
    for module in ("pytest_ragmetrics.metrics.asserting", helper.__module__):
        monkeypatch.setattr(sys.modules[module], "assert_metric", asserting, raising=False)
    taken = inspect.signature(helper).parameters
    fields = {name: FIELDS[name] for name in taken if name in FIELDS}
    if kind.name == "summary_score":
        fields["contexts"] = "reference_contexts"
    given = {"sample": Sample(**TEXTS), **{name: GIVEN[field] for name, field in fields.items()}}
    parameters = unusual_parameters(kind, taken)
    asked = {name: it for name, it in {"judge": CatalogueJudge(), "embedder": "local"}.items() if name in taken}
    options = {name: value for name, value in {"min": 0.0, "max": 1.0, "votes": 1}.items() if name in taken}
    everything = {**given, **parameters, **asked, **options, "metric": CALLED.get(kind.name, kind.name)}
    by_place = [name for name, it in taken.items() if it.kind is not it.KEYWORD_ONLY]
    by_name = {name: everything[name] for name in taken if name in everything and name not in by_place}
    result = helper(*(everything[name] for name in by_place), **by_name)

    usual = {name: it.default for name, it in inspect.signature(kind).parameters.items()} | {"k": 5}
    assert all(taken[name].default in (usual[name], inspect.Parameter.empty) for name in parameters)
    (metric, sample, passed), made = calls[0], kind(**parameters, **asked)
    assert (type(metric), passed) == (kind, options)
    assert public(metric) == public(made)
    assert result == made.score_sample(sample)
    wanted = {field: GIVEN[field] for field in fields.values()}
    extra = {name: wanted.pop(name) for name in INPUTS["metadata"] if name in wanted}
    assert sample == (given["sample"] if "sample" in taken else Sample(**wanted, metadata=extra))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_is_declared_looks_like_what_is_written(kind: Any) -> None:
    """A helper and a class say their own module, pickle by name, and have types for all that their signatures show."""
    helper: Any = helper_of(kind)
    assert getattr(sys.modules[helper.__module__], kind.helper) is pickle.loads(pickle.dumps(helper)) is helper
    assert getattr(sys.modules[kind.__module__], kind.__name__) is pickle.loads(pickle.dumps(kind)) is kind
    for function, shown in ((helper, helper), (kind.__init__, kind)):
        assert get_type_hints(function).keys() - {"return"} == inspect.signature(shown).parameters.keys()
    assert (inspect.getdoc(helper) or "").startswith("Assert that ")


def public(metric: Metric) -> dict[str, Any]:
    return {name: value for name, value in vars(metric).items() if not name.startswith("_")}


@pytest.mark.parametrize("kind", [kind for kind in HELPED if kind.name in {"mrr", *CALLED}], ids=lambda kind: kind.name)
def test_a_helper_of_several_metrics_names_them(kind: Any) -> None:
    with pytest.raises(ValueError, match=f"metric must be .*'{CALLED.get(kind.name, kind.name)}'.*, not 'bert'"):
        helper_of(kind)([], [], metric="bert", min=0.5)
