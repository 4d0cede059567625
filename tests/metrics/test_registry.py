"""The metrics by name and alias, and their tables; which metrics of Ragas 0.4 and eval-ruby have an answer here."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pytest_ragmetrics import MetricResult, cli, metrics
from pytest_ragmetrics.commands.metrics import metric_table, metrics_json
from pytest_ragmetrics.metrics import JudgedMetric, Metric, metric_named
from pytest_ragmetrics.metrics.registry import built_in_metrics, metric_for
from pytest_ragmetrics.sample import Sample
from tests.scripted_judge import ScriptedJudge

PLAIN = """
QuotedSpansAlignment Faithfulness ContextRelevancy ContextRecall Harmfulness Maliciousness Coherence Conciseness
Harmlessness Relevance ContextPrecisionProportion LexicalGrounding LexicalContextRecall NumbersAligned NoiseSensitivity
FactualCorrectness AnswerCorrectness ContextEntityRecall CitationRecall CitationPrecision RefusalCorrectness
NamesAligned CitationValidity HitRate ExactMatch BleuScore RougeScore ToolCallAccuracy
"""
#: Names that each metric is known by, besides that of its class.
NAMES = {
    "AnswerRelevancy": "answer_relevancy ResponseRelevancy response_relevancy",
    "SummaryScore": "summary_score SummarizationScore",
    "CorrectnessAspect": "correctness_aspect",
    "AspectCritique": "AspectCritic",
    "Correctness": "correctness",
    "ContextPrecision": "context_precision LLMContextPrecisionWithReference ContextualPrecision",
    "ContextUtilization": "context_utilization LLMContextPrecisionWithoutReference",
    "ContextRelevance": "context_relevance nv_context_relevance",
    "ResponseGroundedness": "response_groundedness nv_response_groundedness",
    "AnswerAccuracy": "answer_accuracy nv_accuracy",
    "Hallucination": "hallucination",
    "Rubric": "rubric RubricsScore",
    "SimpleCriteria": "simple_criteria SimpleCriteriaScore",
    "AgentGoalAccuracy": "agent_goal_accuracy AgentGoalAccuracyWithReference AgentGoalAccuracyWithoutReference",
    "TopicAdherence": "topic_adherence TopicAdherenceScore",
    "RecallAtK": "recall@k",
    "PrecisionAtK": "",
    "MRR": "mean_reciprocal_rank",
    "MAP": "map",
    "NDCG": "",
    "IDBasedContextRecall": "id_based_context_recall",
    "IDBasedContextPrecision": "",
    "NonLLMContextRecall": "non_llm_context_recall",
    "NonLLMContextPrecision": "non_llm_context_precision_with_reference",
    "StringPresence": "string_present",
    "NonLLMStringSimilarity": "non_llm_string_similarity",
    "TokenF1": "token_f1",
    "CHRFScore": "chrf",
    "ToolCallF1": "tool_call_f1",
    "SemanticSimilarity": "semantic_similarity answer_similarity AnswerSimilarity",
    # The name of these is that of their class in lower case.
    **{kind: re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower() for kind in PLAIN.split()},
}


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
    """A class that can be imported and is known by name."""
    kind = getattr(metrics, OTHERWISE.get(name, name))
    assert kind in built_in_metrics()
    assert metric_named(OTHERWISE.get(name, name)) is kind


@pytest.mark.parametrize(("kind", "names"), NAMES.items())
def test_names_lead_to_metrics(kind: str, names: str) -> None:
    """By name, by class name, and by what other tools say."""
    for name in (kind, *names.split()):
        assert metric_named(name) is getattr(metrics, kind)


@pytest.mark.parametrize("name", sorted({name for kind in built_in_metrics() for name in (kind.name, *kind.aliases)}))
def test_a_name_means_the_same_with_and_without_the_metrics_of_others(name: str) -> None:
    """Alone it may be looked up in one module; beside a registered metric it is looked up in all."""

    class Other(Metric):
        name = "other"

        def measure(self, sample: Sample) -> MetricResult:
            raise NotImplementedError

    assert metric_named(name) is metric_named(name, also=[Other])


def test_every_metric_is_public_and_has_a_name_of_its_own() -> None:
    """What is in the registry can be imported, and no two metrics share a name."""
    assert {kind.__name__ for kind in built_in_metrics()} == NAMES.keys()
    for kind in built_in_metrics():
        assert getattr(metrics, kind.__name__) is metric_named(kind.name) is kind


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("faithfullness", "did you mean faithfulness"),
        ("Faithfullness", "did you mean faithfulness"),
        ("zzz", "there are "),
    ],
)
def test_an_unknown_name_points_to_those_near_it(name: str, hint: str) -> None:
    """A slip costs one look."""
    with pytest.raises(ValueError, match=f"there is no metric '{name}': {hint}"):
        metric_named(name)


def test_an_old_name_leads_to_the_new_one() -> None:
    """A metric that was renamed says so, unless somebody has one of that name."""
    with pytest.raises(ValueError, match="no metric 'correctness_rating' any more: it is called 'correctness' now"):
        metric_named("correctness_rating")
    own = type("Mine", (Brevity,), {"name": "correctness_rating"})
    assert metric_named("correctness_rating", also=[own]) is own


class Brevity(Metric):
    """A metric of a user, which defining it does not add to the registry."""

    name = "brevity"

    def measure(self, sample: Sample) -> Any:
        """Return nothing of interest."""


def test_metrics_of_others_are_found_and_take_precedence() -> None:
    """What a project registers may replace a metric of the same name."""

    class Own(metrics.Faithfulness):
        """Another idea of faithfulness."""

    assert metric_named("brevity", also=[Brevity]) is Brevity
    assert metric_named("faithfulness", also=[Own]) is Own
    # It inherits the aliases of a metric, and does not take them.
    assert metric_named("ResponseRelevancy", also=[type("Mine", (metrics.AnswerRelevancy,), {"name": "mine"})]) is (
        metrics.AnswerRelevancy
    )


def test_a_name_is_made_into_a_metric() -> None:
    """Judge and embedder go where they are taken; a metric that is one already stays as it is."""
    judge = ScriptedJudge()
    ready = metrics.NumbersAligned()
    assert metric_for(ready, judge=judge) is ready
    assert isinstance(metric_for("numbers_aligned", judge=judge, embedder="local"), metrics.NumbersAligned)
    made = metric_for("context_recall", judge=judge, embedder="local")
    assert isinstance(made, JudgedMetric)
    assert made.score(reference="Moths fly.", retrieved_contexts=[]) == 0.0


def described(kind: type[Metric]) -> dict[str, Any]:
    """Return what `ragmetrics metrics --json` says of a metric."""
    found: list[dict[str, Any]] = json.loads("\n".join(metrics_json()))["metrics"]
    return next(each for each in found if each["class"] == kind.__name__)


def test_a_row_for_every_metric() -> None:
    """Each once, with what its docstring says in one line."""
    heads, *rows = metric_table()
    assert re.split("  +", heads.strip()) == ["name", "asks", "what it says"]
    for kind, row in zip(built_in_metrics(), rows, strict=True):
        name, _, said = re.split("  +", row.strip())
        assert name == kind.name
        assert said.endswith((".", ":")), f"{name} has no sentence"


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (metrics.AnswerRelevancy, "asks", ["judge", "embedder"]),
        (metrics.AnswerRelevancy, "needs", ["user_input", "response"]),
        (metrics.AnswerRelevancy, "helper", "assert_answer_relevant"),
        (metrics.AnswerRelevancy, "arguments", ["question", "response"]),
        # it could be given an embedder, and has no use for it
        (metrics.Relevance, "asks", ["judge"]),
        (metrics.SemanticSimilarity, "asks", ["embedder"]),
        (metrics.Harmfulness, "better", "lower"),
        (metrics.Harmfulness, "helper", "assert_aspect"),
        (metrics.IDBasedContextRecall, "helper", "assert_retrieved"),
        (metrics.IDBasedContextRecall, "asks", []),
    ],
)
def test_descriptions(kind: type[Metric], field: str, value: object) -> None:
    """What the classes and the helpers say about themselves."""
    assert described(kind)[field] == value


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the table."""
    assert cli.main(["metrics"]) == 0
    assert capsys.readouterr().out.splitlines() == metric_table()
