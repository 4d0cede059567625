"""The catalogue: names and tables of the metrics, what all have in common, and what loading one takes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from pytest_ragmetrics import MetricResult, Sample, cli, evaluate, metrics
from pytest_ragmetrics.cli.metrics import metrics_json
from pytest_ragmetrics.metrics import JudgedMetric, Metric, metric_named
from pytest_ragmetrics.metrics.critiques import ASPECTS
from pytest_ragmetrics.metrics.judged import Ask
from pytest_ragmetrics.metrics.registry import metric_for
from tests.metrics.catalogue import INPUTS, KINDS, TEXTS, made
from tests.scripted_judge import ScriptedJudge

INVISIBLE = ["", " ", "  \n\t", "\u00a0\u2003", "\u200b", "\u200b\u200d \ufeff", "\u2060\u00ad", "\u202a\u202c"]
INVISIBLE += [" \n", "\u200b\n\u2060\ufeff", "\u3164", "\u2800"]
NEEDED = [(kind, field) for kind in KINDS for field in kind.requires]
CALLED = [{"role": "user", "content": "Do moths fly?"}, {"role": "assistant", "tool_calls": [{"name": "look"}]}]
#: Logs that end in the user's words; the assistant says something in the first two.
BYE = {
    "messages": [CALLED[0], {"role": "assistant", "content": "はい。"}, {"role": "user", "content": "Danke, tschüss!"}]
}
OPENED = {"messages": [{"role": "assistant", "content": "Hello!"}, CALLED[0]]}
SILENT = {"messages": [*CALLED, {"role": "assistant", "content": "\u200b"}, CALLED[0]]}
POLITE = metrics.AspectCritique(definition="Is it polite?")
ASKED, FOUND = {"user_input": "Please?"}, {"retrieved_contexts": ["Moths."]}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_instance_may_have_a_name_of_its_own(kind: type[Metric]) -> None:
    mine, usual = made(kind, name="mine"), made(kind)
    assert (mine.name, usual.name, kind.name) == ("mine", kind.name, kind.name)
    found, expected = (metric.score_sample(Sample.from_mapping(INPUTS)) for metric in (mine, usual))
    assert (found.metric, expected.metric) == ("mine", kind.name)
    assert found.replaced(metric=kind.name).__getnewargs_ex__() == expected.__getnewargs_ex__()
    assert (mine.better, mine.scale) == (kind.better, kind.scale)
    with pytest.raises(ValueError, match=r"^mine: "):
        mine.score()


class Own(metrics.Faithfulness):
    def __init__(self, *, llm: str, name: str | None = None) -> None:
        super().__init__(judge=llm, name=name)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        return (await super().judged(sample, ask)).replaced(metric="another")


def test_two_instances_of_one_metric_stand_side_by_side() -> None:
    broad, exact = metrics.RecallAtK(), metrics.RecallAtK(k=1, name="recall_at_1")
    table = evaluate([INPUTS], [broad, exact, Own(llm="local", name="own")], progress=False)
    score = metrics.Faithfulness(judge="local").score_sample(Sample.from_mapping(INPUTS))
    assert {name: table.mean(name) for name in table.metrics} == {"recall_at_k": 0.5, "recall_at_1": 0.0, "own": score}
    with pytest.raises(ValueError, match="two metrics of one name: recall_at_k; give one of them another with name="):
        evaluate([INPUTS], [broad, metrics.RecallAtK(k=1)], progress=False)


@pytest.mark.parametrize(("kind", "field"), NEEDED, ids=[f"{kind.name}-{field}" for kind, field in NEEDED])
def test_a_field_that_is_missing_or_blank_is_named(kind: type[Metric], field: str) -> None:
    judge = ScriptedJudge()
    metric = made(kind, judge=judge)
    blank: list[Any] = [[], [" "], ["\u200b", ""]] if field.endswith("s") and not field.endswith("_ids") else [[]]
    for value in [None, *(blank if isinstance(TEXTS[field], list) else INVISIBLE)]:
        if value is not None and field in kind.may_be_empty:
            continue
        with pytest.raises(ValueError, match=f"^{kind.name}: {field} is {'missing' if value is None else 'blank'}; it"):
            metric.score_sample(Sample(**{**TEXTS, field: value}))
    assert judge.requests == []


class OfQuestion(metrics.AspectCritique):
    name = "of_question"
    requires = ("user_input",)


@pytest.mark.parametrize(
    ("metric", "fields", "problem"),
    [
        *(
            (metrics.AspectCritique(definition=definition), fields, "missing")
            for definition in [
                *("Is the answer polite?", "Is it polite?", "Ist die Antwort höflich?", "回答は丁寧ですか"),
                *("Is the question polite?", "Is the Response polite?", "Does it stick to the contexts?"),
            ]
            for fields in (ASKED, {**ASKED, **FOUND}, FOUND, {"metadata": {"messages": CALLED[:1]}})
        ),
        (POLITE, {"response": "Moths."}, None),
        (POLITE, {"user_input": "?", "response": " "}, "blank"),
        *(
            (metric, {"metadata": metadata}, problem)
            for metric in [
                *(
                    metrics.AspectCritique(definition=text)
                    for text in ("Polite?", "Are all responses polite?", "丁寧？")
                ),
                *(aspect() for aspect in ASPECTS),
                metrics.Rubric(steps=["Rude responses.", "Polite ones."]),
                metrics.SimpleCriteria(definition="How polite is the response?"),
            ]
            for metadata, problem in (
                (BYE, None),
                (OPENED, None),
                (SILENT, "missing"),
                ({"messages": CALLED}, "missing"),
            )
        ),
        (POLITE, {"response": "", "metadata": BYE}, "blank"),
        (metrics.AspectCritique(name="harmlessness"), ASKED, "missing"),
        (metrics.Rubric(steps=["Off topic.", "On topic."]), FOUND, "missing"),
        (metrics.SimpleCriteria(definition="How polite?"), ASKED, "missing"),
        (OfQuestion(definition="Is the question polite?"), ASKED, None),
        (OfQuestion(definition="Is the question polite?"), {"user_input": "?", "response": " "}, "blank"),
        (OfQuestion(definition="Does the response help?"), ASKED, None),
        (metrics.Correctness(), {"response": "\u200b", "reference": "Moths."}, "blank"),
    ],
)
def test_a_definition_of_ones_own_needs_a_response(metric: Metric, fields: dict[str, Any], problem: str | None) -> None:
    """In any words and language; or an answer in a conversation, unless its class says what it needs instead."""
    if problem is None:
        metric.require(Sample(**fields))
    else:
        with pytest.raises(ValueError, match=f"{metric.name}: response is {problem}"):
            metric.require(Sample(**fields))


def test_what_to_give_is_said() -> None:
    rows = [{"question": "q"}, {"messages": CALLED}]
    unscored = [row.unscored["coherence"] for row in evaluate(rows, ["coherence"], progress=False).rows]
    assert "coherence: response is missing; it needs response; to judge other fields alone" in unscored[0]
    assert "response, and the conversation does not end in a text of the assistant; to judge" in unscored[1]
    with pytest.raises(ValueError, match=r"alone, name them in a subclass: requires = \('user_input',\)"):
        metrics.AspectCritique(definition="Is it polite?").score(user_input="Please?")


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
OTHERWISE = {"SimpleCriteriaScore": "SimpleCriteria", "ContextPrecisionWithReference": "ContextPrecision"}
OTHERWISE["ContextPrecisionWithoutReference"] = "ContextUtilization"


@pytest.mark.parametrize("name", sorted({*RAGAS.split(), *EVAL_RUBY.split()} - UNANSWERED - RUBRICS))
def test_a_metric_of_theirs_is_in_the_catalogue(name: str) -> None:
    kind = getattr(metrics, OTHERWISE.get(name, name))
    assert kind in KINDS
    assert metric_named(OTHERWISE.get(name, name)) is kind


class Brevity(Metric):
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
    nearest = {
        "faithfullness": "did you mean faithfulness",
        "Faithfullness": "did you mean faith",
        "zzz": "`ragmetrics metrics` lists them$",
    }
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


CODE = """
import sys
for module, call in {calls}.items():
    exec("from pytest_ragmetrics import " + call.partition("(")[0] + "; " + call)
    ours = [name for name in sys.modules if name.partition(".")[0] == "pytest_ragmetrics"]
    print(module, *sorted(name.partition(".")[2] for name in ours if "." in name))
    for name in ours:
        del sys.modules[name]
"""
CALLS = {
    "quotes": "assert_quoted_spans_aligned('It says \"open the valve slowly\".', ['Open the valve slowly.'])",
    "grounding": "assert_numbers_aligned('It has 12 lamps.', ['There are 12 lamps.'])",
    "citations": "assert_citations_valid('Otters float [1].', ['Otters float.'])",
    "tool_calls": "assert_tools_called([{'role': 'assistant', 'tool_calls': [{'name': 'stop'}]}], [{'name': 'stop'}])",
    "retrieval": "assert_retrieved([1, 2], [1])",
    "checks": "assert_contains('It has 12 lamps.', all=['12'])",
    "strings": "assert_text_alike('moth', 'moth')",
}
#: What only metrics with a judge, tables and reports need.
HEAVY = ("judges", "evaluation", "cache", "stats", "core.loop", "metrics.judged", "metrics.registry")
#: The scoring in progress, which every metric asks, and its room, which is empty.
LIGHT = {"judges", "judges.context"}
ALLOWED = {
    "quotes": {"quotes", "conversations"},
    "grounding": {"grounding", "conversations"},
    "citations": {"citations", "conversations"},
    "retrieval": {"retrieval", "strings"},
}


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    command = [sys.executable, "-c", CODE.format(calls=CALLS)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return {line.split()[0]: line.split()[1:] for line in run.stdout.splitlines()}


@pytest.mark.parametrize("module", CALLS)
def test_a_helper_without_a_judge_is_light(loaded: dict[str, list[str]], module: str) -> None:
    """At most 41 modules of this package, the rooms counted, in a process that uses one helper."""
    assert not [name for name in {*loaded[module]} - LIGHT if name.startswith(HEAVY)]
    assert len(loaded[module]) <= 41
    metrics = {name.partition(".")[2] for name in loaded[module] if name.startswith("metrics.")}
    assert metrics - {"asserting", "base", "parameters", "votes", "verdicts"} == ALLOWED.get(module, {module})
