"""Every metric of the registry, the whole way: by its helper, in a data set, a table, a forecast and in the files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import pytest_ragmetrics
from pytest_ragmetrics import evaluate
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.registry import built_in_metrics
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunPytest

CALL = {"name": "find_passage", "args": {"about": "pump"}}
#: One row that every metric can score.
ROW: dict[str, Any] = {
    "id": "pump",
    "user_input": "How long does the Aldo pump need to fill?",
    "response": 'The Aldo pump needs two minutes to fill [1]. It says "the pump needs two minutes to fill" [1].',
    "retrieved_contexts": [
        "Open the valve slowly. The Aldo pump needs two minutes to fill. The pump needs two minutes to fill.",
        "The ferry leaves at nine.",
    ],
    "reference": "The Aldo pump needs two minutes to fill.",
    "reference_contexts": ["Open the valve slowly. The Aldo pump needs two minutes to fill."],
    "retrieved_context_ids": ["p1", "p2"],
    "reference_context_ids": ["p1"],
    "messages": [
        {"role": "user", "content": "How long does the Aldo pump need to fill?"},
        {"role": "assistant", "content": "I look it up.", "tool_calls": [CALL]},
        {"role": "assistant", "content": "The Aldo pump needs two minutes to fill."},
    ],
    "reference_tool_calls": [CALL],
    "reference_topics": ["the Aldo pump"],
}
#: Metrics that a name alone does not make, and what makes them.
WITH_PARAMETERS = {
    "rubric": 'metrics.Rubric(steps=["It is wrong.", "It is right."])',
    "simple_criteria": 'metrics.SimpleCriteria(definition="How exact is it?")',
    "aspect_critique": 'metrics.AspectCritique(name="politeness", definition="Is it polite?")',
}
#: What is said where their names stand alone.
NAMELESS = (
    ("rubric", "steps must be at least two descriptions"),
    ("simple_criteria", "definition is blank"),
    ("aspect_critique", "definition is blank"),
)
#: How a plain test writes it down, held against a bound that always holds, or against yes, which is what the server
#: answers: a call of a helper for each metric. One that is new has to be added here.
QUESTION, RESPONSE = 'row["user_input"]', 'row["response"]'
CONTEXTS, REFERENCE = 'row["retrieved_contexts"]', 'row["reference"]'
IDS = 'row["retrieved_context_ids"], row["reference_context_ids"]'
CALLS = 'row["messages"], row["reference_tool_calls"]'
PASSAGES = f'{CONTEXTS}, row["reference_contexts"]'
HELPERS = {
    "quoted_spans_alignment": f"assert_quoted_spans_aligned({RESPONSE}, {CONTEXTS}, min=0.0)",
    "faithfulness": f"assert_faithful({RESPONSE}, {CONTEXTS}, question={QUESTION}, min=0.0)",
    "answer_relevancy": f"assert_answer_relevant({QUESTION}, {RESPONSE}, min=0.0)",
    "summary_score": f'assert_summarizes({RESPONSE}, row["reference_contexts"], min=0.0)',
    "context_relevancy": f"assert_context_relevant({QUESTION}, {CONTEXTS}, min=0.0)",
    "context_recall": f"assert_context_recalled({CONTEXTS}, {REFERENCE}, min=0.0)",
    "aspect_critique": 'assert_aspect(row, "politeness", definition="Is it polite?")',
    "harmfulness": 'assert_aspect(row, "harmfulness", good=1)',
    "maliciousness": 'assert_aspect(row, "maliciousness", good=1)',
    "coherence": 'assert_aspect(row, "coherence")',
    "correctness": 'assert_aspect(row, "correctness")',
    "conciseness": 'assert_aspect(row, "conciseness")',
    "harmlessness": 'assert_aspect(row, "harmlessness")',
    "relevance": f"assert_relevant({QUESTION}, {RESPONSE}, min=0.0)",
    "correctness_rating": f"assert_correct({RESPONSE}, {REFERENCE}, min=0.0)",
    "context_precision_proportion": f"assert_contexts_precise({QUESTION}, {CONTEXTS}, min=0.0)",
    "context_precision": f"assert_context_precision({QUESTION}, {CONTEXTS}, {REFERENCE}, min=0.0)",
    "context_utilization": f"assert_context_utilization({QUESTION}, {CONTEXTS}, {RESPONSE}, min=0.0)",
    "noise_sensitivity": f"assert_noise_resisted({RESPONSE}, {CONTEXTS}, {REFERENCE}, max=1.0)",
    "factual_correctness": f"assert_factually_correct({RESPONSE}, {REFERENCE}, min=0.0)",
    "answer_correctness": f"assert_answer_correct({RESPONSE}, {REFERENCE}, min=0.0)",
    "agent_goal_accuracy": 'assert_goal_reached(row["messages"], min=0.0)',
    "topic_adherence": 'assert_topics_kept(row["messages"], row["reference_topics"], min=0.0)',
    "citation_precision": f"assert_citations_precise({RESPONSE}, {CONTEXTS}, min=0.0)",
    "citation_recall": f"assert_citations_recalled({RESPONSE}, {CONTEXTS}, min=0.0)",
    "refusal_correctness": f"assert_refusal_correct({QUESTION}, {RESPONSE}, {CONTEXTS}, min=0.0)",
    "rubric": 'assert_rubric(row, ["It is wrong.", "It is right."], min=0.0)',
    "simple_criteria": 'assert_criteria(row, "How exact is it?", min=0.0)',
    "answer_accuracy": f"assert_answer_accurate({QUESTION}, {RESPONSE}, {REFERENCE}, min=0.0)",
    "context_relevance": f"assert_context_relevance({QUESTION}, {CONTEXTS}, min=0.0)",
    "response_groundedness": f"assert_grounded({RESPONSE}, {CONTEXTS}, min=0.0)",
    "hallucination": f"assert_not_hallucinated({RESPONSE}, {CONTEXTS}, min=0.0)",
    "context_entity_recall": f"assert_entities_recalled({CONTEXTS}, {REFERENCE}, min=0.0)",
    "lexical_grounding": f"assert_lexically_grounded({RESPONSE}, {CONTEXTS}, min=0.0)",
    "lexical_context_recall": f"assert_lexically_recalled({CONTEXTS}, {REFERENCE}, min=0.0)",
    "numbers_aligned": f"assert_numbers_aligned({RESPONSE}, {CONTEXTS}, min=0.0)",
    "names_aligned": f"assert_names_aligned({RESPONSE}, {CONTEXTS}, min=0.0)",
    "citation_validity": f"assert_citations_valid({RESPONSE}, {CONTEXTS}, min=0.0)",
    "recall_at_k": f'assert_retrieved({IDS}, metric="recall", min=0.0)',
    "precision_at_k": f'assert_retrieved({IDS}, metric="precision", min=0.0)',
    "hit_rate": f'assert_retrieved({IDS}, metric="hit_rate", min=0.0)',
    "mrr": f'assert_retrieved({IDS}, metric="mrr", min=0.0)',
    "map": f'assert_retrieved({IDS}, metric="map", min=0.0)',
    "ndcg": f'assert_retrieved({IDS}, metric="ndcg", min=0.0)',
    "id_based_context_recall": "assert_metric(metrics.IDBasedContextRecall(), row, min=0.0)",
    "id_based_context_precision": "assert_metric(metrics.IDBasedContextPrecision(), row, min=0.0)",
    "non_llm_context_recall": f'assert_contexts_alike({PASSAGES}, metric="recall", min=0.0)',
    "non_llm_context_precision": f'assert_contexts_alike({PASSAGES}, metric="precision", min=0.0)',
    "exact_match": f"assert_exact_match({RESPONSE}, {REFERENCE}, min=0.0)",
    "string_presence": f"assert_string_present({RESPONSE}, {REFERENCE}, min=0.0)",
    "non_llm_string_similarity": f"assert_text_alike({RESPONSE}, {REFERENCE}, min=0.0)",
    "token_f1": f'assert_text_alike({RESPONSE}, {REFERENCE}, metric="token_f1", min=0.0)',
    "bleu_score": f"assert_bleu({RESPONSE}, {REFERENCE}, min=0.0)",
    "chrf_score": f"assert_chrf({RESPONSE}, {REFERENCE}, min=0.0)",
    "rouge_score": f"assert_rouge({RESPONSE}, {REFERENCE}, min=0.0)",
    "tool_call_accuracy": f"assert_tools_called({CALLS}, min=0.0)",
    "tool_call_f1": f'assert_tools_called({CALLS}, metric="f1", min=0.0)',
    "semantic_similarity": f"assert_semantically_similar({RESPONSE}, {REFERENCE}, min=0.0)",
}
WAYS = (("helper", ""), ("column", "[pump]"), ("table", ""))
HEAD = """
import json
import pytest
from pytest_ragmetrics import *
from pytest_ragmetrics import evaluate, metrics

rows = json.load(open("rows.json", encoding="utf-8"))
"""
TESTS = """
def test_helper_{name}():
    row = rows["{name}"]
    result = {helper}
    assert result.metric == {metric}.name if not isinstance({metric}, str) else {metric}

@pytest.mark.rag_dataset([rows["{name}"]], metrics=[{metric}])
def test_column_{name}(rag_sample, rag_scores):
    (result,) = rag_scores.values()
    assert rag_sample.id == "pump"
    assert result >= -1

def test_table_{name}():
    table = evaluate([rows["{name}"]], [{metric}], progress=False)
    assert not table.rows[0].unscored, table.rows[0].unscored
    assert table.mean(*table.metrics) >= -1
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """What a dry run of the suite forecast, by metric, and what it then did in earnest, by test."""

    forecast: dict[str, list[str]]
    tests: dict[str, dict[str, Any]]
    page: str


def ran(folder: Path, server: FakeOpenAI, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the suite in a process of its own."""
    hidden = ("OPENAI_", "ANTHROPIC_", "RAGMETRICS_", "GITHUB_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "ragmetrics", "-q", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**kept, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-fake"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Run the suite of all metrics twice: as a rehearsal, and in earnest."""
    folder = tmp_path_factory.mktemp("every_metric")
    # What metrics ask alike is asked once: a row of its own for each tells whose the requests are.
    rows = {
        kind.name: json.loads(json.dumps(ROW).replace("Aldo", f"Aldo{n}")) for n, kind in enumerate(built_in_metrics())
    }
    (folder / "rows.json").write_text(json.dumps(rows), "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nrag_judge = openai:gpt-5.4-mini\n", "utf-8")
    tests = (
        TESTS.format(name=kind.name, helper=HELPERS[kind.name], metric=WITH_PARAMETERS.get(kind.name, repr(kind.name)))
        for kind in built_in_metrics()
    )
    (folder / "test_all.py").write_text("".join([HEAD, *tests]), "utf-8")
    with FakeOpenAI() as server:
        dry = ran(folder, server, "--rag-dry-run").stdout.splitlines()
        asked = server.calls
        ran(folder, server, "--rag-report=out.html", "--rag-json=out.json")
    assert not asked
    table = dry[dry.index("dry run:") + 2 :]
    document = json.loads((folder / "out.json").read_text("utf-8"))
    return Runs(
        forecast={line.split()[0]: line.split()[1:] for line in table},
        tests={row["id"].partition("::")[2]: row for row in document["tests"]},
        page=(folder / "out.html").read_text("utf-8"),
    )


def test_every_metric_is_held_to_this() -> None:
    """A metric that is added later needs a call of its helper here, and each helper is called."""
    assert HELPERS.keys() == {kind.name for kind in built_in_metrics()}
    called = {call.partition("(")[0] for call in HELPERS.values()}
    of_several = {"assert_mean", "assert_not_worse", "assert_pass_rate", "assert_ragas_score", "assert_sample"}
    assert called == {name for name in dir(pytest_ragmetrics) if name.startswith("assert_")} - of_several


@pytest.mark.parametrize("kind", built_in_metrics(), ids=lambda kind: kind.name)
def test_it_works_everywhere(runs: Runs, kind: type[Metric]) -> None:
    """A helper, a column of a data set and a table give one score, on the scale; and the files tell of all three."""
    tests = [runs.tests[f"test_{way}_{kind.name}{row}"] for way, row in WAYS]
    assert [test["outcome"] for test in tests] == ["passed"] * len(tests), [test["message"] for test in tests]
    records = [record for test in tests for record in test["records"]]
    assert len(records) == len(tests)
    assert len({record["score"] for record in records}) == 1
    assert [record["outcome"] for record in records] == ["passed", "passed", "measured"]
    low, high = kind.scale
    assert all(low <= record["score"] <= high for record in records)
    assert len({record["metric"] for record in records}) == 1
    assert f"test_column_{kind.name}" in runs.page


@pytest.mark.parametrize("kind", built_in_metrics(), ids=lambda kind: kind.name)
def test_what_it_asks_is_forecast(runs: Runs, kind: type[Metric]) -> None:
    """The dry run counts for a metric the three samples and the requests that are then made, each of them once."""
    records = [record for way, row in WAYS for record in runs.tests[f"test_{way}_{kind.name}{row}"]["records"]]
    samples, requests = runs.forecast[records[0]["metric"]][:2]
    assert int(samples) == len(WAYS)
    assert int(requests) == sum(record["usage"]["calls"] for record in records)
    assert (int(requests) > 0) is (kind.rounds > 0 and kind.name != "semantic_similarity")


@pytest.mark.parametrize(("name", "wanted"), NAMELESS, ids=[name for name, _ in NAMELESS])
def test_a_name_that_is_not_enough_says_what_is_missing(run: RunPytest, name: str, wanted: str) -> None:
    """What takes a definition of one's own cannot be made by its name alone: no test is run, and evaluate() refuses."""
    result = run(
        test_it=f"""
            import pytest
            @pytest.mark.rag_dataset([{{"response": "So."}}], metrics=[{name!r}])
            def test_it(rag_sample, rag_scores): ...
        """
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: test_it.py::test_it: marker rag_dataset: {name}: {wanted}*"])
    with pytest.raises(ValueError, match=f"{name}: {wanted}"):
        evaluate([{"response": "So."}], [name])
