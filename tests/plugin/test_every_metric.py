"""Every metric of the registry, the whole way: by its helper, in a data set, a table, a forecast and in the files."""

from __future__ import annotations

import json
from inspect import signature
from typing import Any

from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.registry import built_in_metrics, helper_of
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunPytest

CALL = {"name": "find_passage", "args": {"about": "pump"}}
#: One row that every metric can score.
ROW: dict[str, Any] = {
    "id": "pump",
    "user_input": "How long does the Aldo pump need to fill?",
    "response": 'The Aldo pump needs 2 minutes to fill [1]. It says "the pump needs 2 minutes to fill" [1].',
    "retrieved_contexts": [
        "Open the valve slowly. The Aldo pump needs 2 minutes to fill. The pump needs 2 minutes to fill.",
        "The ferry leaves at nine.",
    ],
    "reference": "The Aldo pump needs 2 minutes to fill.",
    "reference_contexts": ["Open the valve slowly. The Aldo pump needs 2 minutes to fill."],
    "retrieved_context_ids": ["p1", "p2"],
    "reference_context_ids": ["p1"],
    "messages": [
        {"role": "user", "content": "How long does the Aldo pump need to fill?"},
        {"role": "assistant", "content": "I look it up.", "tool_calls": [CALL]},
        {"role": "assistant", "content": "The Aldo pump needs 2 minutes to fill."},
    ],
    "reference_tool_calls": [CALL],
    "reference_topics": ["the Aldo pump"],
    "role": "Someone who knows the Aldo pump.",
    "must_contain": ["2 minutes"],
    "criteria": ["It names how long the Aldo pump takes."],
    "latency": 0.84,
    "first_token": 0.31,
    "cost": 0.0031,
}
#: Metrics that a name alone does not make, and what makes them.
WITH_PARAMETERS = {
    "rubric": 'metrics.Rubric(steps=["It is wrong.", "It is right."])',
    "simple_criteria": 'metrics.SimpleCriteria(definition="How exact is it?")',
    "aspect_critique": 'metrics.AspectCritique(name="politeness", definition="Is it polite?")',
}
#: What a helper takes, by the names of its parameters: a field of the row, of the same name unless it stands here.
FIELDS = {"question": "user_input", "contexts": "retrieved_contexts", "topics": "reference_topics"}
FIELDS |= {"retrieved_ids": "retrieved_context_ids", "reference_ids": "reference_context_ids"}
TEXTS = {"sample": "row", "steps": '["It is wrong.", "It is right."]', "definition": '"How exact is it?"'}
TEXTS |= {field: f'row["{field}"]' for field in ROW} | {name: f'row["{field}"]' for name, field in FIELDS.items()}
#: Further arguments that choose the metric of a helper. The server answers with yes.
MORE = {"aspect_critique": 'definition="Is it polite?"', "harmfulness": "good=1", "maliciousness": "good=1"}
MORE |= {name: f'metric="{name}"' for name in ("hit_rate", "mrr", "map", "ndcg", "token_f1")}
MORE |= {"contains": 'all=["2 minutes"]'}
MORE |= {"precision_at_k": 'metric="precision"', "non_llm_context_precision": 'metric="precision"'}
MORE |= {"tool_call_f1": 'metric="f1"', "role_adherence": 'role=row["role"]'}


def call(kind: type[Metric]) -> str:
    """Return how a plain test calls the helper of a metric, with a bound that always holds."""
    if kind.name.startswith("id_based"):
        return f"assert_metric(metrics.{kind.__name__}(), row, min=0.0)"
    helper = helper_of(kind)
    taken = signature(helper).parameters.values()
    name = "politeness" if kind.name == "aspect_critique" else kind.name
    texts = [{"aspect": f'"{name}"', **TEXTS}[it.name] for it in taken if it.kind is not it.KEYWORD_ONLY]
    if kind.name == "summary_score":
        texts = [TEXTS["response"], TEXTS["reference_contexts"]]
    bound = [] if kind.helper == "assert_aspect" else ["max=1.0" if kind.better == "lower" else "min=0.0"]
    return f"{helper.__name__}({', '.join([*texts, *filter(None, [MORE.get(kind.name)]), *bound])})"


HEAD = """
from pytest_ragmetrics import metrics
rows = ROWS
"""
TESTS = """
def test_plain_{name}():
    row = rows["{name}"]
    result = {helper}
    assert result.metric == {metric}.name if not isinstance({metric}, str) else {metric}
    table = evaluate([row], [{metric}], progress=False)
    assert not table.rows[0].unscored, table.rows[0].unscored
    assert table.mean(*table.metrics) >= -1
@pytest.mark.rag_dataset([rows["{name}"]], metrics=[{metric}])
def test_column_{name}(rag_sample, rag_scores):
    (result,) = rag_scores.values()
    assert rag_sample.id == "pump"
    assert result >= result.scale[0]
"""


def test_it_works_everywhere_and_is_forecast(run: RunPytest, server: FakeOpenAI) -> None:
    kinds = built_in_metrics()
    # What metrics ask alike is asked once: a row of its own for each shows which metric made a request.
    rows = {kind.name: json.loads(json.dumps(ROW).replace("Aldo", f"Aldo{n}")) for n, kind in enumerate(kinds)}
    tests = (
        TESTS.format(name=kind.name, helper=call(kind), metric=WITH_PARAMETERS.get(kind.name, repr(kind.name)))
        for kind in kinds
    )
    suite = "".join([HEAD.replace("ROWS", repr(rows)), *tests])
    args = ("-q", "-p", "no:cacheprovider", "--rag-judge=openai:gpt-5.4-mini")
    table = run(*args, "--rag-dry-run", test_all=suite).outlines
    forecast = {line.split()[0]: line.split()[1:3] for line in table[table.index("dry run:") + 2 :] if line}
    assert not server.calls
    ran = run(*args, "--rag-report=out.html", "--rag-json=out.json")
    page, found = ran.text("out.html"), ran.named
    for kind in kinds:
        both = [found[f"test_{way}_{kind.name}{row}"] for way, row in (("plain", ""), ("column", "[pump]"))]
        assert [test["outcome"] for test in both] == ["passed"] * 2, (kind, [test["message"] for test in both])
        records = [record for test in both for record in test["records"]]
        assert [record["outcome"] for record in records] == ["passed", "measured", "passed"], kind
        ((metric, score),) = {(record["metric"], record["score"]) for record in records}
        low, high = kind.scale
        assert low <= score <= high, kind
        assert f"test_column_{kind.name}" in page
        samples, requests = map(int, forecast[metric])
        assert samples == 3, kind
        assert requests == sum(record["usage"]["calls"] for record in records), kind
        assert (requests > 0) is (kind.rounds > 0 and kind.name != "semantic_similarity"), kind
