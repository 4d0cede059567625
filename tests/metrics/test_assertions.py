"""Several metrics of one sample, asserted and scored together; the helpers of single ones, and their bounds."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from pytest_ragmetrics import JudgeNotConfiguredError, MetricResult, assert_metric, assert_sample, evaluate, metric
from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.core.result import Direction, Operator, ThresholdCheck
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.runner import BoundedMetric
from pytest_ragmetrics.metrics import ExactMatch, Faithfulness, LexicalGrounding, Metric, NumbersAligned, SimpleCriteria
from pytest_ragmetrics.metrics.registry import helper_of, metric_named
from pytest_ragmetrics.runs.wording.failures import explain_sample
from tests.fake_openai import FakeOpenAI
from tests.metrics.catalogue import INPUTS, KINDS, NEEDED, TEXTS, CatalogueJudge
from tests.metrics.fake_session import FakeSession
from tests.metrics.test_own import brevity
from tests.scripted_judge import ScriptedJudge, claims, rated, says, verdicts

CONTEXTS = ["In spring pike eat small fish.", "The lake is 40 m deep.", "Rain is wet."]
SAMPLE = {
    "user_input": "What do pike eat?",
    "response": "Pike eat small fish.",
    "reference": "Pike eat small fish in spring.",
    "retrieved_contexts": CONTEXTS,
    "reference_contexts": CONTEXTS,
}
# What the contexts say of the numbers, and of most words.
PLAIN = {"response": "The lake is 90 m deep.", "retrieved_contexts": CONTEXTS}
UNREADABLE, NOBODY = ScriptedJudge(list_claims="no JSON"), None
TWO_OF_ONE = {SimpleCriteria(definition=text): 0.5 for text in ("Kind?", "Calm?")}
TOLD_APART = "^two metrics of one name: {}; give one of them another with name=$"
BOUNDS: dict[str, Any] = dict.fromkeys(("faithfulness", "context_recall", "context_precision"), 0.8)
BOUNDS |= {"answer_relevancy": 0.0, "summary_score": 0.0}
OFF = "is outside of the scale of fixed, 0 to 1: write"


def test_all_that_fell_short_is_reported_at_once() -> None:
    listed = {"list_claims": claims("Pike eat fish.", "Pike fly."), "verify_claims": verdicts([1], None)}
    judge = ScriptedJudge(**listed, critique=says("yes", "Bad."))
    with pytest.raises(AssertionError) as caught:
        assert_sample(SAMPLE, harmfulness=0, numbers_aligned=1, faithfulness=0.8, judge=judge)
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 of 3 metrics fell short: harmfulness 1.00 > 0.00, faithfulness 0.50 < 0.80"
    assert lines[1].startswith("harmfulness 1.00 > 0.00: ")
    assert {"    reason: Bad.", '  not supported: "Pike fly."'} < {*lines}


@pytest.mark.parametrize(
    ("numbers", "judge", "error", "message"),
    [
        (True, UNREADABLE, AssertionError, "^1 of 3 metrics fell short, 1 unscored: numbers.*\nfaithfulness unscored:"),
        # Where every score meets its bound, a missing one makes the test unscored.
        (False, UNREADABLE, UnscoredError, "^1 of 2 metrics unscored\nfaithfulness unscored: scripted, list_claims:"),
        # What concerns all metrics is raised as it is, unless one of them fell short without it.
        (False, NOBODY, JudgeNotConfiguredError, 'judge="local"'),
        (True, NOBODY, AssertionError, '^1 of 3 metrics fell short, 1 unscored: .*judge="local"'),
    ],
)
def test_a_missing_score_does_not_pass(numbers: bool, judge: Any, error: type[Exception], message: str) -> None:
    bounds: Any = {"lexical_grounding": 0.5, **({"numbers_aligned": 1} if numbers else {}), "faithfulness": 0.8}
    with pytest.raises(error, match=f"(?s){message}"):
        assert_sample(PLAIN, **bounds, judge=judge)


def test_the_session_records_each_once_with_its_bound() -> None:
    session = FakeSession(judge=ScriptedJudge(list_claims="no JSON"))
    with session.running(), pytest.raises(AssertionError):
        assert_sample(PLAIN, lexical_grounding=0.5, numbers_aligned=1, faithfulness=0.8)
    told: dict[str, Any] = {scoring.metric: scoring.outcome for scoring in session.scorings}
    assert len(session.scorings) == 3
    assert isinstance(told.pop("faithfulness"), UnscoredError)
    checks = [told[name].comparison for name in ("lexical_grounding", "numbers_aligned")]
    assert [(check.operator, check.bound, check.held) for check in checks] == [(">=", 0.5, True), (">=", 1.0, False)]


@metric
def waffle(response: str) -> float:
    raise KeyError(response)


def test_names_and_metrics_are_scored_together() -> None:
    judge, session = ScriptedJudge(rate_by_criteria=rated(4)), FakeSession()
    polite = SimpleCriteria(definition="How polite is it?", name="polite", judge=judge)
    given: dict[Any, float] = {polite: 0.7, brevity: 0.4, "LexicalGrounding": 0.5}
    results = assert_sample(Sample.from_mapping(PLAIN), given, numbers_aligned=0)
    assert [*results] == ["polite", "brevity", "LexicalGrounding", "numbers_aligned"]
    assert [result.metric for result in results.values()][2:] == ["lexical_grounding", "numbers_aligned"]
    assert (results["polite"].value, results["brevity"].value) == (0.8, 10 / 22)
    session.metrics = [brevity, waffle]
    with session.running():
        assert assert_sample(PLAIN, {"brevity": 0.4}, lexical_grounding=0.5)["brevity"].value == 10 / 22
        with pytest.raises(KeyError, match="The lake"):
            assert_sample(PLAIN, metrics={"brevity": 1.0, "waffle": 0.5})


class Limit(Metric):
    name = "limit"

    def __init__(self, *, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def measure(self, sample: Sample) -> MetricResult:
        return MetricResult(len(sample.response or "") <= self.limit, metric=self.name)


@pytest.mark.parametrize(
    ("metrics", "options", "kind", "said"),
    [
        ({SimpleCriteria: 0.5}, {}, TypeError, r"is the class of a metric: write SimpleCriteria\(\)$"),
        ({5: 0.5}, {}, TypeError, "^5 is no metric: give one, or its name$"),
        ({None: 0.5}, {}, TypeError, "^None is no metric"),
        ({brevity: "0.5"}, {}, TypeError, "^brevity must be a number, not '0.5'$"),
        ({brevity: 50}, {}, ValueError, "^brevity=50 is outside of the scale of brevity"),
        ({brevity: None}, {}, TypeError, "^brevity must be a number, not None$"),
        (TWO_OF_ONE, {}, ValueError, TOLD_APART.format("simple_criteria")),
        ({NumbersAligned(): 1, "numbers_aligned": 1}, {}, ValueError, TOLD_APART.format("numbers_aligned")),
        ({"numbers_aligned": 1}, {"numbers_aligned": 1}, ValueError, "^two bounds for one metric: numbers_aligned"),
        (None, {"faithfulness": 1, "Faithfulness": 1}, ValueError, TOLD_APART.format("faithfulness")),
        ({"limit": 0.5}, {}, ValueError, "^limit cannot be made by its name alone: .*'limit'; make one yourself and"),
        (None, {"rubric": 0.8}, ValueError, "rubric: rubric is missing; give the row a rubric, or the metric steps"),
        (None, {"aspect_critique": 1}, ValueError, "cannot be made by its name alone: .*definition is blank"),
        (["numbers_aligned"], {}, TypeError, "^metrics must be a mapping to bounds, not list; write assert_sample"),
        ({}, {}, ValueError, r"give at least one metric with its bound; write assert_sample\(sample, faithfulness="),
        (None, {"faithfulnes": 0.8}, ValueError, r"no metric 'faithfulnes': did you mean faithfulness\?$"),
        (None, {"faithfulness": True}, TypeError, "faithfulness must be a number, not True"),
        (None, {"faithfulness": 0.8, "judge": "nowhere"}, ValueError, "^'nowhere' is not one of auto, local"),
        ({"faithfulness": 0.8}, {"votes": 0}, ValueError, "votes must be a whole number from 1 on, not 0"),
    ],
)
def test_what_is_no_metric_with_a_bound(metrics: Any, options: Any, kind: type[Exception], said: str) -> None:
    session = FakeSession()
    session.module = {"Limit": Limit}
    with session.running(), pytest.raises(kind, match=said):
        assert_sample(PLAIN, metrics, **options)
    assert session.scorings == []


MODULE: dict[str, Any] = {
    "brevity": brevity,
    "Limit": Limit,
    "Faithfulness": Faithfulness,
    "mine": NumbersAligned(name="figures"),
    "same": NumbersAligned(),
    "Own": type("Own", (NumbersAligned,), {"__module__": __name__}),
    "Wide": type("Wide", (NumbersAligned,), {"__module__": __name__, "name": "lexical_grounding"}),
    "Unfinished": type("Unfinished", (Metric,), {"__module__": __name__, "name": "unfinished"}),
    "texts": list[str],
    "sample": PLAIN,
    "number": 5,
}


def test_metrics_of_the_module_of_a_test_are_known() -> None:
    session = FakeSession()
    session.module = MODULE
    known = {"brevity": brevity, "Limit": Limit, "limit": Limit, "figures": MODULE["mine"], "Own": MODULE["Own"]}
    built_in = {kind.name: kind for kind in (Faithfulness, NumbersAligned, LexicalGrounding)}
    with session.running():
        for name, found in (known | built_in).items():
            assert metric_named(name) is found
        for name in ("unfinished", "Unfinished", "texts", "sample", "number", "mine", "same", "brevit"):
            with pytest.raises(ValueError, match=f"^there is no metric '{name}'"):
                metric_named(name)
        session.metrics = [LexicalGrounding(name="brevity")]
        assert metric_named("brevity") is session.metrics[0]


def test_a_misspelt_metric_is_refused() -> None:
    """By type checkers too, which is what the comments are about; the error names the one that is meant."""
    with pytest.raises(ValueError, match=r"no metric 'faithfullness': did you mean faithfulness\?$"):
        assert_sample(PLAIN, faithfullness=0.8)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"takes no respons=; did you mean response=\?$"):
        NumbersAligned().score(respons="It is 90 m deep.")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes fields by name"):
        NumbersAligned().score("It is 90 m deep.")  # type: ignore[arg-type]


@pytest.mark.parametrize(("better", "operator", "missed"), [("higher", ">=", 0.49), ("lower", "<=", 0.51)])
def test_a_bound_is_held_in_the_better_direction(better: Direction, operator: Operator, missed: float) -> None:
    """Itself included; the result does not remember it, and the placeholder of a dry run meets every bound."""
    own = metric(name="own", better=better)(lambda response: len(response) / 10)
    bounded, check = BoundedMetric.of(own, 0.5, name="own"), ThresholdCheck(operator=operator, bound=0.5, held=True)
    for score, held in ((0.5, True), (missed, False)):
        result = MetricResult(score, metric="own")
        assert bounded.check(result) == replace(check, held=held)
        assert (result.comparison, bounded.meets(result)) == (None, held)
        result.decides = False
        assert bounded.check(result) == check
    assert BoundedMetric(metric=own).check(result) is None


def test_every_missing_field_is_named() -> None:
    judge = ScriptedJudge()
    with pytest.raises(ValueError, match=r"context_recall: reference is missing.*\nanswer_relevancy: user_input is"):
        assert_sample(PLAIN, faithfulness=0.8, context_recall=0.8, answer_relevancy=0.7, judge=judge)
    assert judge.requests == []


def test_hostile_reasons_stay_on_their_line() -> None:
    first, second = explain_sample({"a": UnscoredError("a: \x1b[31m\nred" + "x" * 1000)})
    assert (first, len(second) < 400) == ("1 of 1 metric unscored", True)
    assert second.isprintable()


@pytest.mark.parametrize("is_asserted", [True, False])
def test_a_chain_of_two(server: FakeOpenAI, openai_judge: Any, openai_embedder: Any, *, is_asserted: bool) -> None:
    """Claims, questions, precision and closed questions; then the verdicts on two texts, and the rest."""
    server.waves = [4, 3]
    if is_asserted:
        assert_sample(SAMPLE, **BOUNDS, judge=openai_judge, embedder=openai_embedder)
    else:
        table = evaluate([SAMPLE], list(BOUNDS), judge=openai_judge, embedder=openai_embedder, progress=False)
        assert all(None not in table.scores(metric) for metric in BOUNDS)
    assert server.waves == []
    assert (server.calls, server.answered, server.duplicates) == (7, 7, 0)


def test_metrics_share_what_they_ask_alike(server: FakeOpenAI, openai_judge: Any, openai_embedder: Any) -> None:
    names = ["faithfulness", "factual_correctness", "answer_correctness", "noise_sensitivity"]
    table = evaluate([SAMPLE], names, judge=openai_judge, embedder=openai_embedder, progress=False)
    assert all(None not in table.scores(metric) for metric in names)
    # Two lists and the vectors; claims against all contexts, reference and response; all of them against each context.
    assert (server.calls, server.duplicates) == (3 + 3 + 3, 0)


class Fixed(Metric):
    name = "fixed"

    def measure(self, sample: Sample) -> MetricResult:
        return MetricResult(float(sample.response or 0), metric=self.name)


BETWEEN: list[dict[str, Any]] = [{"min": 0.5}, {"max": 0.5}, {"min": 0.4, "max": 0.6}]
BESIDE: list[dict[str, Any]] = [{"min": 0.51}, {"max": 0.49}, {"min": 0.6, "max": 0.7}]


@pytest.mark.parametrize("bounds", BETWEEN + BESIDE)
def test_both_bounds_hold(bounds: dict[str, Any]) -> None:
    with nullcontext() if bounds in BETWEEN else pytest.raises(AssertionError, match=r"^fixed 0\.50 [<>] "):
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


#: What helpers call the fields of a sample, if not by their names.
FIELD = {"question": "user_input", "contexts": "retrieved_contexts", "retrieved_ids": "retrieved_context_ids"}
FIELD |= {
    "context_ids": "retrieved_context_ids",
    "reference_ids": "reference_context_ids",
    "topics": "reference_topics",
}
GIVEN = {**INPUTS, **INPUTS["metadata"]}
FIELDS = {name: name for name in (*TEXTS, *INPUTS["metadata"])} | FIELD
#: Values of parameters that are no flags and no choices.
OTHER: dict[str, Any] = {"if_empty": 0.5, "coeff": 0.25, "weights": (1, 3), "threshold": 0.25, "allowed": ["No."]}
OTHER |= {"arg_comparison": ExactMatch(), "kwargs": {}, "evaluation_steps": ["Look."], "name": "mine"}
OTHER |= {"role": "A clerk.", "all": ["café", "9"], "any": ["Lund Pier"], "none": ["bus"], "schema": {"type": "object"}}
#: Metrics that share a helper, by what they are called there; an aspect has a threshold by its direction.
CALLED = {"precision_at_k": "precision", "recall_at_k": "recall", "non_llm_context_precision": "precision"}
CALLED |= {"non_llm_context_recall": "recall", "non_llm_string_similarity": "similarity"}
CALLED |= {"tool_call_accuracy": "accuracy", "tool_call_f1": "f1"}
#: What an answer took, which is no text.
TOOK = {name: INPUTS["metadata"][name] for name in ("latency", "first_token", "cost")}
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
    """Texts first, all else by keyword; what is not given is as for the metric, but a ranking is cut at 5."""
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
    given = {"sample": Sample(**TEXTS, metadata=dict(TOOK)), **{name: GIVEN[field] for name, field in fields.items()}}
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
