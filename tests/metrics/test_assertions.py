"""Several metrics of one sample: asserted together, scored together, what they ask alike asked once."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import (
    JudgeNotConfiguredError,
    MetricResult,
    Sample,
    UnscoredError,
    assert_sample,
    evaluate,
    metric,
)
from pytest_ragmetrics.assertions import BoundedMetric
from pytest_ragmetrics.explain.results import explain_sample
from pytest_ragmetrics.metrics import Faithfulness, LexicalGrounding, Metric, NumbersAligned, SimpleCriteria
from pytest_ragmetrics.metrics.registry import built_in_metrics, metric_named
from pytest_ragmetrics.result import Direction, Operator, ThresholdCheck
from pytest_ragmetrics.sample import FIELDS
from pytest_ragmetrics.typed import Bounds, Fields
from tests.fake_openai import FakeOpenAI
from tests.metrics.fake_session import FakeSession
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


def test_all_hold() -> None:
    """The results come back by the names that were given, in their order."""
    results = assert_sample(Sample.from_mapping(PLAIN), {"LexicalGrounding": 0.5}, numbers_aligned=0.0)
    assert list(results) == ["LexicalGrounding", "numbers_aligned"]
    assert [result.metric for result in results.values()] == ["lexical_grounding", "numbers_aligned"]


def test_all_that_fell_short_is_reported_at_once() -> None:
    """Each of them with its own explanation, in the order given; where lower is better the bound is a maximum."""
    judge = ScriptedJudge(
        list_claims=claims("Pike eat fish.", "Pike fly."),
        verify_claims=verdicts([1], None),
        critique=says("yes", "Bad."),
    )
    with pytest.raises(AssertionError) as caught:
        assert_sample(SAMPLE, harmfulness=0, numbers_aligned=1, faithfulness=0.8, judge=judge)
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 of 3 metrics fell short: harmfulness 1.00 > 0.00, faithfulness 0.50 < 0.80"
    assert lines[1] == "harmfulness 1.00 > 0.00: 1 of 1 judgement against"
    assert "    reason: Bad." in lines
    assert "faithfulness 0.50 < 0.80: 1 of 2 claims not supported" in lines
    assert '  not supported: "Pike fly."' in lines


NO_JSON = {"list_claims": "no JSON"}


@pytest.mark.parametrize(
    ("bounds", "script", "error", "message"),
    [
        (
            *({"lexical_grounding": 0.5, "numbers_aligned": 1, "faithfulness": 0.8}, NO_JSON, AssertionError),
            "(?s)^1 of 3 metrics fell short, 1 unscored: numbers_aligned 0.00 < 1.00, faith.*\nfaithfulness unscored: ",
        ),
        # Where every score meets its bound, a missing one makes the test unscored.
        (
            *({"lexical_grounding": 0.5, "faithfulness": 0.8}, NO_JSON, UnscoredError),
            "^1 of 2 metrics unscored\nfaithfulness unscored: scripted, list_claims: no",
        ),
        # What concerns all metrics is raised as it is, unless one of them fell short without it.
        ({"lexical_grounding": 0.5, "faithfulness": 0.8}, None, JudgeNotConfiguredError, 'judge="local"'),
        (
            *({"numbers_aligned": 1, "faithfulness": 0.8}, None, AssertionError),
            '(?s)^1 of 2 metrics fell short, 1 unscored: .*judge="local"',
        ),
    ],
)
def test_a_missing_score_is_no_failure_and_no_pass(
    bounds: dict[str, Any], script: dict[str, Any] | None, error: type[Exception], message: str
) -> None:
    """It is reported with what fell short."""
    with pytest.raises(error, match=message):
        assert_sample(PLAIN, **bounds, judge=None if script is None else ScriptedJudge(**script))


def test_the_session_records_each_once_with_its_bound() -> None:
    """All results are recorded, also where another metric fails."""
    session = FakeSession(judge=ScriptedJudge(list_claims="no JSON"))
    with session.running(), pytest.raises(AssertionError):
        assert_sample(PLAIN, lexical_grounding=0.5, numbers_aligned=1, faithfulness=0.8)
    told = {scoring.metric: scoring.outcome for scoring in session.scorings}
    assert len(session.scorings) == 3
    assert isinstance(told["faithfulness"], UnscoredError)
    held = {name: result.comparison for name, result in told.items() if isinstance(result, MetricResult)}
    assert {name: (c.operator, c.bound, c.held) for name, c in held.items() if c} == {
        "lexical_grounding": (">=", 0.5, True),
        "numbers_aligned": (">=", 1.0, False),
    }


def test_votes_end_when_they_are_decided() -> None:
    """Of five votes three are asked where the fourth and fifth cannot change it."""
    judge = ScriptedJudge(critique=says("no"))
    results = assert_sample(PLAIN, harmfulness=0.5, votes=5, judge=judge)
    assert (results["harmfulness"].samples, results["harmfulness"].votes) == ((0.0,) * 3, 5)


@metric
def brevity(response: str) -> float:
    """Return how near a response is to ten characters."""
    return min(1.0, 10 / len(response))


@metric
def waffle(response: str) -> float:
    """Fail as functions do."""
    raise KeyError(response)


def test_own_metrics_are_known() -> None:
    """Metrics of the session are known by name; an error of their function is raised as it is."""
    session = FakeSession()
    session.metrics = [brevity, waffle]
    with session.running():
        assert assert_sample(PLAIN, {"brevity": 0.4}, lexical_grounding=0.5)["brevity"].value == 10 / 22
        with pytest.raises(KeyError, match="The lake"):
            assert_sample(PLAIN, metrics={"brevity": 1.0, "waffle": 0.5})
    with pytest.raises(ValueError, match="there is no metric 'brevity'"):
        assert_sample(PLAIN, {"brevity": 0.4})


def test_metrics_themselves_are_scored_beside_names() -> None:
    """As keys, with parameters and bounds of their own; each result has the name of its metric."""
    judge = ScriptedJudge(rate_by_criteria=rated(4))
    polite = SimpleCriteria(definition="How polite is it?", name="polite", judge=judge)
    results = assert_sample(PLAIN, {polite: 0.7, brevity: 0.4, "lexical_grounding": 0.5}, numbers_aligned=0)
    assert [*results] == ["polite", "brevity", "lexical_grounding", "numbers_aligned"]
    assert (results["polite"].value, results["brevity"].value) == (0.8, 10 / 22)
    with pytest.raises(AssertionError, match=r"polite 0\.80 < 0\.90"):
        assert_sample(PLAIN, {polite: 0.9, brevity: 0.4})


class Limit(Metric):
    """One that needs a parameter."""

    name = "limit"

    def __init__(self, *, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def measure(self, sample: Sample) -> MetricResult:
        """Return whether it is short."""
        return MetricResult(len(sample.response or "") <= self.limit, metric=self.name)


@pytest.mark.parametrize(
    ("metrics", "kind", "said"),
    [
        ({SimpleCriteria: 0.5}, TypeError, r"is the class of a metric: write SimpleCriteria\(\)$"),
        ({5: 0.5}, TypeError, "^5 is no metric: give one, or its name$"),
        ({None: 0.5}, TypeError, "^None is no metric"),
        ({brevity: "0.5"}, TypeError, "^brevity must be a number, not '0.5'$"),
        ({brevity: 50}, ValueError, "^brevity=50 is outside of the scale of brevity"),
        ({brevity: None}, TypeError, "^brevity must be a number, not None$"),
        (
            {SimpleCriteria(definition=text): 0.5 for text in ("Kind?", "Calm?")},
            ValueError,
            "^two bounds for one metric: simple_criteria; name= tells two metrics of one class apart$",
        ),
        ({NumbersAligned(): 0.5, "numbers_aligned": 0.5}, ValueError, "^two bounds for one metric: numbers_aligned;"),
        ({"limit": 0.5}, ValueError, "^limit cannot be made by its name alone: .*'limit'; make one yourself and write"),
    ],
)
def test_what_is_no_metric_with_a_bound(metrics: Any, kind: type[Exception], said: str) -> None:
    """Nothing is asked or recorded."""
    session = FakeSession()
    session.module = {"Limit": Limit}
    with session.running(), pytest.raises(kind, match=said):
        assert_sample(PLAIN, metrics)
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


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("brevity", MODULE["brevity"]),
        ("Limit", Limit),
        ("limit", Limit),
        ("figures", MODULE["mine"]),
        ("Own", MODULE["Own"]),
        ("faithfulness", Faithfulness),
        ("numbers_aligned", NumbersAligned),
        ("lexical_grounding", LexicalGrounding),
        *((name, None) for name in ("unfinished", "Unfinished", "texts", "sample", "number", "mine", "same", "brevit")),
    ],
)
def test_metrics_of_the_module_of_a_test_are_known(name: str, found: object) -> None:
    """Those of a user, under names that are nobody else's; the hook comes first."""
    session = FakeSession()
    session.module = MODULE
    with session.running():
        if found is None:
            with pytest.raises(ValueError, match=f"^there is no metric '{name}'"):
                metric_named(name)
        else:
            assert metric_named(name) is found
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
    with pytest.raises(ValueError, match=r"^two bounds for one metric: numbers_aligned"):
        assert_sample(PLAIN, {"numbers_aligned": 1.0}, numbers_aligned=0.5)
    with pytest.raises(TypeError, match=r"^metrics must be a mapping to bounds, not list; write assert_sample"):
        assert_sample(PLAIN, ["numbers_aligned"])  # type: ignore[arg-type]


def test_type_checkers_know_every_name() -> None:
    """The lists for them are those of the metrics."""
    kinds = built_in_metrics()
    others = [alias for kind in kinds for alias in vars(kind).get("aliases", ())]
    names = [*(kind.name for kind in kinds), *(name for name in others if name.isidentifier() and name.islower())]
    assert [*Bounds.__annotations__] == names
    assert [*Fields.__annotations__] == [*dict.fromkeys((*FIELDS, *(name for it in kinds for name in it.extra_inputs)))]


@pytest.mark.parametrize(
    ("bounds", "kind", "said"),
    [
        ({}, ValueError, r"give at least one metric with its bound; write assert_sample\(sample, faithfulness=0\.8"),
        ({"faithfulnes": 0.8}, ValueError, "there is no metric 'faithfulnes': did you mean faithfulness"),
        ({"faithfulness": True}, TypeError, "faithfulness must be a number, not True"),
        ({"faithfulness": "0.8"}, TypeError, "faithfulness must be a number, not '0.8'"),
        ({"faithfulness": float("nan")}, ValueError, "faithfulness must be a finite number, not nan"),
        (
            {"noise_sensitivity": 20},
            ValueError,
            "noise_sensitivity=20 is outside of the scale of .*, 0 to 1: write 0.2,",
        ),
        (
            {"faithfulness": 90},
            ValueError,
            "faithfulness=90 is outside of the scale of faithfulness, 0 to 1: write 0.9,",
        ),
        ({"faithfulness": -1}, ValueError, "faithfulness=-1 is outside of the scale of faithfulness"),
        ({"faithfulness": 0.8, "Faithfulness": 0.7}, ValueError, "two bounds for one metric: faithfulness"),
        ({"rubric": 0.8}, ValueError, r"rubric cannot be made by its name alone: .* write it in place of its name$"),
        ({"aspect_critique": 1}, ValueError, "aspect_critique cannot be made by its name alone: .*definition is blank"),
        ({"faithfulness": 0.8, "judge": "nowhere"}, ValueError, "^'nowhere' is not one of auto, local"),
        ({"faithfulness": 0.8, "votes": 0}, ValueError, "votes must be a whole number from 1 on, not 0"),
    ],
)
def test_wrong_bounds_are_errors_before_anything_is_asked(
    bounds: dict[str, Any], kind: type[Exception], said: str
) -> None:
    """Each mistake is named, and nothing was asked or recorded."""
    session = FakeSession()
    with session.running(), pytest.raises(kind, match=said):
        assert_sample(PLAIN, **bounds)
    assert session.scorings == []


@pytest.mark.parametrize(
    ("better", "score", "check"),
    [
        ("higher", 0.5, (">=", True)),
        ("higher", 0.49, (">=", False)),
        ("lower", 0.5, ("<=", True)),
        ("lower", 0.51, ("<=", False)),
    ],
)
def test_a_bound_is_held_in_the_better_direction(better: Direction, score: float, check: tuple[Operator, bool]) -> None:
    """Itself included; the result does not remember it, and the placeholder of a dry run meets every bound."""
    own = metric(name="own", better=better)(lambda response: len(response) / 10)
    bounded, result = BoundedMetric.of(own, 0.5, name="own"), MetricResult(score, metric="own")
    operator, held = check
    assert bounded.check(result) == ThresholdCheck(operator=operator, bound=0.5, held=held)
    assert result.comparison is None
    assert bounded.meets(result) is held
    result.decides = False
    assert bounded.check(result) == ThresholdCheck(operator=operator, bound=0.5, held=True)
    assert BoundedMetric(metric=own).check(result) is None


def test_every_missing_field_is_named() -> None:
    """All metrics that cannot be scored are named with the field that they miss, before anything is asked."""
    judge = ScriptedJudge()
    with pytest.raises(ValueError, match=r"context_recall: reference is missing.*\nanswer_relevancy: user_input is"):
        assert_sample(PLAIN, faithfulness=0.8, context_recall=0.8, answer_relevancy=0.7, judge=judge)
    assert judge.requests == []


def test_hostile_reasons_stay_on_their_line() -> None:
    """Control characters and lengths of a reason do no harm to the report."""
    first, second = explain_sample({"a": UnscoredError("a: \x1b[31m\nred" + "x" * 1000)})
    assert (first, len(second) < 400) == ("1 of 1 metric unscored", True)
    assert second.isprintable()


BOUNDS: dict[str, Any] = dict.fromkeys(("faithfulness", "context_recall", "context_precision"), 0.8)
BOUNDS |= {"answer_relevancy": 0.0, "summary_score": 0.0}


@pytest.mark.parametrize("is_asserted", [True, False])
def test_five_metrics_in_a_chain_of_two(
    server: FakeOpenAI, openai_judge: Any, openai_embedder: Any, *, is_asserted: bool
) -> None:
    """Seven requests, the vectors among them, in a chain of two: nothing waits for what it does not need.

    At first the claims, the questions, the precision, and the closed questions; then the verdicts on the claims and on
    the sentences of the reference, the vectors, and the answers to the closed questions.
    """
    server.waves = [4, 3]
    if is_asserted:
        results = assert_sample(SAMPLE, **BOUNDS, judge=openai_judge, embedder=openai_embedder)
        assert sum(result.usage.calls for result in results.values()) == 6
    else:
        table = evaluate([SAMPLE], list(BOUNDS), judge=openai_judge, embedder=openai_embedder, progress=False)
        assert all(None not in table.scores(metric) for metric in BOUNDS)
        assert (table.mean("context_recall"), table.mean("context_precision")) == (1.0, 1.0)
    assert server.waves == []
    assert (server.calls, server.answered, server.duplicates) == (7, 7, 0)


def test_metrics_share_what_they_ask_alike(server: FakeOpenAI, openai_judge: Any, openai_embedder: Any) -> None:
    """The claims of a text are listed once for all metrics, and verified against the reference once."""
    names = ["faithfulness", "factual_correctness", "answer_correctness", "noise_sensitivity"]
    table = evaluate([SAMPLE], names, judge=openai_judge, embedder=openai_embedder, progress=False)
    assert all(None not in table.scores(metric) for metric in names)
    # Two lists and the vectors; claims against all contexts, reference and response; all of them against each context.
    assert (server.calls, server.duplicates) == (3 + 3 + 3, 0)
