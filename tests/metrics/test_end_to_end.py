"""Metrics of the catalogue: what they need is named, and those that ask a judge ask it through a real server."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest

from pytest_ragmetrics import Sample, evaluate, metrics
from pytest_ragmetrics.metrics import Metric
from pytest_ragmetrics.metrics.registry import built_in_metrics, metric_for
from tests.fake_openai import FakeOpenAI
from tests.scripted_judge import ScriptedJudge

FIELDS: dict[str, Any] = {
    "user_input": "Do moths fly?",
    "response": "They do.",
    "reference": "Moths fly.",
    "retrieved_contexts": ["Moths fly at night."],
    "reference_contexts": ["Moths fly at night."],
    "retrieved_context_ids": ["a"],
    "reference_context_ids": ["a"],
}
#: What a name alone does not make.
MADE: dict[str, dict[str, Any]] = {
    "aspect_critique": {"definition": "Is the response polite?"},
    "rubric": {"steps": ["The response is rude.", "The response is polite."]},
    "simple_criteria": {"definition": "How polite is the response?"},
}
NEEDED = [(kind, field) for kind in built_in_metrics() for field in kind.requires]


@pytest.mark.parametrize(("kind", "field"), NEEDED, ids=[f"{kind.name}-{field}" for kind, field in NEEDED])
def test_a_field_that_is_missing_or_blank_is_named(kind: type[Metric], field: str) -> None:
    """By the name of the metric and of the field, and no judge is asked; a list may be empty where that has a value."""
    judge = ScriptedJudge()
    made = {"judge": judge, **MADE[kind.name]} if kind.name in MADE else None
    metric = kind(**made) if made else metric_for(kind.name, judge=judge, embedder="local")
    blank: list[Any] = [[], [" "], ["\u200b", ""]] if field.endswith("s") and not field.endswith("_ids") else [[]]
    for value in [None, *(blank if isinstance(FIELDS[field], list) else ["", " \n", "\u200b\n\u2060\ufeff", "\u3164"])]:
        if value is not None and field in kind.may_be_empty:
            continue
        with pytest.raises(ValueError, match=f"^{kind.name}: {field} is {'missing' if value is None else 'blank'}; it"):
            metric.score(**{**FIELDS, field: value})
    assert judge.requests == []


#: Metrics that do not look at the response of a sample.
WITHOUT_RESPONSE = {
    *("context_precision", "context_recall", "context_relevancy", "context_relevance", "context_entity_recall"),
    *("context_precision_proportion", "lexical_context_recall", "agent_goal_accuracy", "topic_adherence"),
    *("tool_call_accuracy", "tool_call_f1", "precision_at_k", "recall_at_k", "hit_rate", "mrr", "map", "ndcg"),
    *("id_based_context_precision", "id_based_context_recall"),
    *("non_llm_context_precision", "non_llm_context_recall"),
}
#: A blank response has a score, which is that of SQuAD.
BLANK_HAS_A_SCORE = {"token_f1"}
INVISIBLE = [
    "",
    " ",
    "  \n\t",
    "\u00a0\u2003",
    "\u200b",
    "\u200b\u200d \ufeff",
    "\u2060\u00ad",
    "\u202a\u202c",
    "\u2800",
]
CALLED = [{"role": "user", "content": "Do moths fly?"}, {"role": "assistant", "tool_calls": [{"name": "look"}]}]


@pytest.mark.parametrize("kind", built_in_metrics(), ids=lambda kind: kind.name)
def test_no_response_is_no_score(kind: type[Metric]) -> None:
    """A metric that speaks of the response names what is missing or blank and asks nobody; the others do not mind."""
    judge = ScriptedJudge()
    given: dict[str, Any] = {"judge": judge, "embedder": "local"}
    taken = {name: value for name, value in given.items() if name in signature(kind).parameters}
    metric = kind(**MADE.get(kind.name, {}), **taken)
    others = {name: value for name, value in FIELDS.items() if name != "response"}
    extra: dict[str, Any] = {"messages": CALLED, "reference_topics": ["moths"], "reference_tool_calls": []}
    rows: list[dict[str, Any]] = [others, {**others, "metadata": extra}, {"metadata": extra}]
    rows += [{**others, "response": text, "metadata": extra} for text in INVISIBLE]
    for row in rows[:1] if kind.name in WITHOUT_RESPONSE | BLANK_HAS_A_SCORE else rows:
        sample = Sample(**{**row, "metadata": extra} if kind.name in WITHOUT_RESPONSE else row)
        if kind.name in WITHOUT_RESPONSE:
            metric.require(sample)
        else:
            state = "missing" if sample.response is None else "blank"
            with pytest.raises(ValueError, match=f"^{kind.name}: response is {state}; it needs .*response"):
                metric.score_sample(sample)
    assert judge.requests == []


class OfQuestion(metrics.AspectCritique):
    """A judgement of the question alone."""

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
            for fields in [
                *({"user_input": "Please?"}, {"user_input": "Please?", "retrieved_contexts": ["Moths."]}),
                *({"retrieved_contexts": ["Moths."]}, {"metadata": {"messages": CALLED[:1]}}),
            ]
        ),
        (metrics.AspectCritique(definition="Is it polite?"), {"response": "Moths."}, None),
        (metrics.AspectCritique(definition="Is it polite?"), {"user_input": "?", "response": " "}, "blank"),
        (metrics.AspectCritique(definition="Is it polite?"), {"metadata": {"messages": CALLED}}, None),
        (metrics.AspectCritique(definition="Is it polite?"), {"metadata": {"messages": [*CALLED, CALLED[0]]}}, None),
        (metrics.AspectCritique(definition="Is it?"), {"response": "", "metadata": {"messages": CALLED}}, "blank"),
        (metrics.AspectCritique(definition="A polite response?"), {"metadata": {"messages": CALLED}}, "missing"),
        (metrics.AspectCritique(name="harmlessness"), {"user_input": "Please?"}, "missing"),
        (metrics.Rubric(steps=["Off topic.", "On topic."]), {"retrieved_contexts": ["Moths."]}, "missing"),
        (metrics.SimpleCriteria(definition="How polite?"), {"user_input": "Please?"}, "missing"),
        (OfQuestion(definition="Is the question polite?"), {"user_input": "Please?"}, None),
        (OfQuestion(definition="Is the question polite?"), {"user_input": "?", "response": " "}, "blank"),
        (OfQuestion(definition="Does the response help?"), {"user_input": "Please?"}, "missing"),
        (metrics.Correctness(), {"response": "\u200b", "reference": "Moths."}, "blank"),
    ],
)
def test_a_definition_of_ones_own_needs_a_response(metric: Metric, fields: dict[str, Any], problem: str | None) -> None:
    """In any words and language; or a turn of the assistant, unless its class says what it needs instead."""
    if problem is None:
        metric.require(Sample(**fields))
    else:
        with pytest.raises(ValueError, match=f"{metric.name}: response is {problem}"):
            metric.require(Sample(**fields))


def test_what_to_give_is_said() -> None:
    """A conversation that does not end in an answer has no response; a row without one names the field."""
    table = evaluate([{"id": "a", "question": "q"}, {"id": "b", "messages": CALLED}], ["coherence"], progress=False)
    said = [
        row.unscored["coherence"].partition("coherence: response is missing; it needs response")[2]
        for row in table.rows
    ]
    assert said == ["", ", and the conversation does not end in a text of the assistant"]
    with pytest.raises(ValueError, match=r"alone, name them in a subclass: requires = \('user_input',\)"):
        metrics.AspectCritique(definition="Is it polite?").score(user_input="Please?")


MOTHS = ["Moths fly at night. They like lamps.", "Bats eat moths."]
PIKE = {"user_input": "What do pike eat?", "response": "Pike eat fish. Rain is wet.", "reference": "Pike eat fish."}


@pytest.mark.parametrize(
    ("kind", "fields", "value", "calls"),
    [
        (metrics.Faithfulness, {"response": "Moths fly at night. Whales sing.", "retrieved_contexts": MOTHS}, 0.5, 2),
        (metrics.AnswerCorrectness, {**PIKE, "response": "Pike eat fish."}, 1.0, 5),
        (metrics.Hallucination, {"response": "Moths fly by day.", "retrieved_contexts": MOTHS}, 0.0, 1),
        (metrics.RefusalCorrectness, {**PIKE, "retrieved_contexts": ["Pike eat fish."]}, 1.0, 2),
        (metrics.ContextPrecision, {**PIKE, "retrieved_contexts": ["Pike eat small fish.", "Rain is wet."]}, 1.0, 1),
        (metrics.ContextEntityRecall, {"reference": "Ada Brandt left Lund.", "retrieved_contexts": MOTHS}, 0.0, 2),
        (metrics.Relevance, {"user_input": "Do moths fly?", "response": "Moths fly."}, 1.0, 1),
        (
            metrics.ContextPrecisionProportion,
            {"user_input": "Do they like lamps?", "retrieved_contexts": MOTHS},
            0.5,
            1,
        ),
        (metrics.AnswerRelevancy, {"user_input": "Who pays tax?", "response": "I do not know."}, 0.0, 1),
    ],
)
def test_a_judge_behind_a_server(
    kind: type[Metric],
    fields: dict[str, Any],
    value: float,
    calls: int,
    server: FakeOpenAI,
    openai_judge: Any,
    openai_embedder: Any,
) -> None:
    """The score, whom it asked, and how many requests that took, one for vectors among them."""
    result = metric_for(kind.name, judge=openai_judge, embedder=openai_embedder).score(**fields)
    assert result == pytest.approx(value)
    assert server.calls == calls
    assert str(result.judge).startswith("openai:fake")
    assert result.usage.prompt_tokens > 0
