"""What a sample takes that several metrics are asked about together."""

from __future__ import annotations

from typing import Any

from pytest_ragmetrics import evaluate
from tests.fake_openai import FakeOpenAI

CONTEXTS = ["In spring pike eat small fish.", "The lake is 40 m deep.", "Rain is wet."]
SAMPLE = {
    "user_input": "What do pike eat?",
    "response": "Pike eat small fish.",
    "reference": "Pike eat small fish in spring.",
    "retrieved_contexts": CONTEXTS,
    "reference_contexts": CONTEXTS,
}
METRICS = ["faithfulness", "answer_relevancy", "context_recall", "context_precision", "summary_score"]


def test_five_metrics_of_one_sample(server: FakeOpenAI, openai_judge: Any, openai_embedder: Any) -> None:
    """Eleven requests, the vectors among them, in a chain of three: nothing waits for what it does not need.

    At first the claims, the questions, the recall, one request for each of three contexts, and the key phrases; then
    the verdicts on the claims, the vectors, and the closed questions; then their answers.
    """
    server.waves = [7, 3, 1]
    table = evaluate([SAMPLE], METRICS, judge=openai_judge, embedder=openai_embedder, progress=False)
    assert server.waves == []
    assert (server.calls, server.answered, server.duplicates) == (11, 11, 0)
    assert all(None not in table.scores(metric) for metric in METRICS)
    assert {metric: table.mean(metric) for metric in METRICS[2:4]} == {"context_recall": 1.0, "context_precision": 1.0}


def test_metrics_share_what_they_ask_alike(server: FakeOpenAI, openai_judge: Any, openai_embedder: Any) -> None:
    """The claims of a text are listed once for all metrics, and held against the reference once."""
    names = ["faithfulness", "factual_correctness", "answer_correctness", "noise_sensitivity"]
    table = evaluate([SAMPLE], names, judge=openai_judge, embedder=openai_embedder, progress=False)
    assert all(None not in table.scores(metric) for metric in names)
    # Two lists and the vectors; claims against all contexts, reference and response; twice against each context.
    assert (server.calls, server.duplicates) == (3 + 3 + 6, 0)
