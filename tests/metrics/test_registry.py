"""The metrics by name and alias, and their tables; which metrics of Ragas 0.4 and eval-ruby have an answer here."""

from __future__ import annotations

import json
import re

import pytest

from pytest_ragmetrics import MetricResult, cli, metrics
from pytest_ragmetrics.cli.metrics import metrics_json
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics import JudgedMetric, Metric, metric_named
from pytest_ragmetrics.metrics.registry import metric_for
from tests.metrics.catalogue import KINDS
from tests.scripted_judge import ScriptedJudge

#: What the package of Ragas exports.
RAGAS = """
AgentGoalAccuracy AnswerAccuracy AnswerCorrectness AnswerRelevancy AspectCritic BleuScore CHRFScore ContextEntityRecall
ContextPrecision ContextPrecisionWithReference ContextPrecisionWithoutReference ContextRecall ContextRelevance
ContextUtilization DataCompyScore DomainSpecificRubrics ExactMatch FactualCorrectness Faithfulness
IDBasedContextPrecision IDBasedContextRecall InstanceSpecificRubrics MultiModalFaithfulness MultiModalRelevance
NoiseSensitivity NonLLMContextPrecisionWithReference NonLLMContextRecall NonLLMStringSimilarity QuotedSpansAlignment
ResponseGroundedness RougeScore SQLSemanticEquivalence SemanticSimilarity SimpleCriteriaScore StringPresence
SummaryScore ToolCallAccuracy ToolCallF1 TopicAdherence
"""
EVAL_RUBY = "Faithfulness Relevance Correctness ContextRecall SemanticSimilarity PrecisionAtK RecallAtK MRR NDCG"
#: These compare tables, images and queries, not texts; rubrics are scales that are given when a metric is made.
UNANSWERED = {"DataCompyScore", "MultiModalFaithfulness", "MultiModalRelevance", "SQLSemanticEquivalence"}
RUBRICS = {"DomainSpecificRubrics", "InstanceSpecificRubrics"}
#: Names of theirs that lead here to another class.
OTHERWISE = {
    "ContextPrecisionWithReference": "ContextPrecision",
    "ContextPrecisionWithoutReference": "ContextUtilization",
    "SimpleCriteriaScore": "SimpleCriteria",
}


@pytest.mark.parametrize("name", sorted({*RAGAS.split(), *EVAL_RUBY.split()} - UNANSWERED - RUBRICS))
def test_a_metric_of_theirs_is_in_the_catalogue(name: str) -> None:
    kind = getattr(metrics, OTHERWISE.get(name, name))
    assert kind in KINDS
    assert metric_named(OTHERWISE.get(name, name)) is kind


class Brevity(Metric):
    """A metric of a user, which defining it does not add to the registry."""

    name = "brevity"

    def measure(self, sample: Sample) -> MetricResult:
        raise NotImplementedError


def test_names_lead_to_metrics() -> None:
    names = [(name, kind) for kind in KINDS for name in (kind.__name__, kind.name, *vars(kind).get("aliases", ()))]
    assert len({name for name, _ in names}) == len(names)
    for name, kind in names:
        assert metric_named(name) is metric_named(name, also=[Brevity]) is kind
        assert getattr(metrics, kind.__name__) is kind


def test_an_unknown_name_points_to_those_near_it() -> None:
    nearest = {"faithfullness": "did you mean faithfulness", "Faithfullness": "did you mean faith", "zzz": "there are "}
    for name, hint in nearest.items():
        with pytest.raises(ValueError, match=f"there is no metric '{name}': {hint}"):
            metric_named(name)


def test_an_old_name_leads_to_the_new_one() -> None:
    with pytest.raises(ValueError, match="no metric 'correctness_rating' any more: it is called 'correctness' now"):
        metric_named("correctness_rating")
    own = type("Mine", (Brevity,), {"name": "correctness_rating"})
    assert metric_named("correctness_rating", also=[own]) is own


def test_metrics_of_others_are_found_and_take_precedence() -> None:
    """What a project registers may replace a metric of the same name, and does not take the aliases it inherits."""
    own, mine = type("Own", (metrics.Faithfulness,), {}), type("Mine", (metrics.AnswerRelevancy,), {"name": "mine"})
    assert metric_named("brevity", also=[Brevity]) is Brevity
    assert metric_named("faithfulness", also=[own]) is own
    assert metric_named("ResponseRelevancy", also=[mine]) is metrics.AnswerRelevancy


def test_a_name_is_made_into_a_metric() -> None:
    judge = ScriptedJudge()
    ready = metrics.NumbersAligned()
    assert metric_for(ready, judge=judge) is ready
    assert isinstance(metric_for("numbers_aligned", judge=judge, embedder="local"), metrics.NumbersAligned)
    made = metric_for("context_recall", judge=judge, embedder="local")
    assert isinstance(made, JudgedMetric)
    assert made.score(reference="Moths fly.", retrieved_contexts=[]) == 0.0


def test_the_command_has_a_row_for_every_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["metrics"]) == 0
    heads, *rows = capsys.readouterr().out.splitlines()
    assert re.split("  +", heads.strip()) == ["name", "asks", "what it says"]
    for kind, row in zip(KINDS, rows, strict=True):
        name, _, said = re.split("  +", row.strip())
        assert (name, said[-1] in ".:") == (kind.name, True)


def test_descriptions() -> None:
    """An embedder that a metric could be given, and has no use for, is not asked."""
    found = {each["class"]: each for each in json.loads("\n".join(metrics_json()))["metrics"]}
    relevancy = {"asks": ["judge", "embedder"], "needs": ["user_input", "response"], "helper": "assert_answer_relevant"}
    for name, described in (
        ("AnswerRelevancy", {**relevancy, "arguments": ["question", "response"]}),
        ("Relevance", {"asks": ["judge"]}),
        ("SemanticSimilarity", {"asks": ["embedder"]}),
        ("Harmfulness", {"better": "lower", "helper": "assert_aspect"}),
        ("IDBasedContextRecall", {"helper": "assert_retrieved", "asks": []}),
    ):
        assert {field: found[name][field] for field in described} == described
