"""What all metrics of the catalogue have in common: names of their own, and errors that name what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import MetricResult, Sample, evaluate, metrics
from pytest_ragmetrics.metrics import Metric
from pytest_ragmetrics.metrics.judged import Ask
from tests.metrics.catalogue import INPUTS, KINDS, TEXTS, made
from tests.scripted_judge import ScriptedJudge

INVISIBLE = ["", " ", "  \n\t", "\u00a0\u2003", "\u200b", "\u200b\u200d \ufeff", "\u2060\u00ad", "\u202a\u202c"]
INVISIBLE += [" \n", "\u200b\n\u2060\ufeff", "\u3164", "\u2800"]
NEEDED = [(kind, field) for kind in KINDS for field in kind.requires]
CALLED = [{"role": "user", "content": "Do moths fly?"}, {"role": "assistant", "tool_calls": [{"name": "look"}]}]
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
    """A metric of a user with a parameter of another tool, whose result says another name."""

    def __init__(self, *, llm: str, name: str | None = None) -> None:
        super().__init__(judge=llm, name=name)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        return (await super().judged(sample, ask)).replaced(metric="another")


def test_two_instances_of_one_metric_stand_side_by_side() -> None:
    """A table has a column of each name, whatever a result says; one name twice is refused with what to do."""
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
            for fields in (ASKED, {**ASKED, **FOUND}, FOUND, {"metadata": {"messages": CALLED[:1]}})
        ),
        (POLITE, {"response": "Moths."}, None),
        (POLITE, {"user_input": "?", "response": " "}, "blank"),
        (POLITE, {"metadata": {"messages": CALLED}}, None),
        (POLITE, {"metadata": {"messages": [*CALLED, CALLED[0]]}}, None),
        (metrics.AspectCritique(definition="Is it?"), {"response": "", "metadata": {"messages": CALLED}}, "blank"),
        (metrics.AspectCritique(definition="A polite response?"), {"metadata": {"messages": CALLED}}, "missing"),
        (metrics.AspectCritique(name="harmlessness"), ASKED, "missing"),
        (metrics.Rubric(steps=["Off topic.", "On topic."]), FOUND, "missing"),
        (metrics.SimpleCriteria(definition="How polite?"), ASKED, "missing"),
        (OfQuestion(definition="Is the question polite?"), ASKED, None),
        (OfQuestion(definition="Is the question polite?"), {"user_input": "?", "response": " "}, "blank"),
        (OfQuestion(definition="Does the response help?"), ASKED, "missing"),
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
    rows = [{"question": "q"}, {"messages": CALLED}]
    unscored = [row.unscored["coherence"] for row in evaluate(rows, ["coherence"], progress=False).rows]
    assert unscored[0].endswith("coherence: response is missing; it needs response")
    assert unscored[1].endswith("response, and the conversation does not end in a text of the assistant")
    with pytest.raises(ValueError, match=r"alone, name them in a subclass: requires = \('user_input',\)"):
        metrics.AspectCritique(definition="Is it polite?").score(user_input="Please?")
