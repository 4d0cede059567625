"""Rows and data sets of Ragas and DeepEval, with the real packages; run by name.

In an environment of its own, for the two do not agree about what they need: first
pip install -e . pytest hypothesis ragas "openai>=2", then pip install deepeval "langchain-community<0.4".

python -m pytest tests/extras/check_ragas_deepeval.py
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import Sample, sample_from
from pytest_ragmetrics.core.other_tools import names_of_metrics
from pytest_ragmetrics.datasets.reading import read_object
from pytest_ragmetrics.metrics import metric_named

# Both report their use over the network unless they are told not to before they are imported.
os.environ.update(DEEPEVAL_TELEMETRY_OPT_OUT="YES", RAGAS_DO_NOT_TRACK="true")

#: Modules of ragas.metrics that hold what metrics are made of.
BASES = {"base", "discrete", "numeric", "ranking"}
WHOLE = Sample(user_input="What climbs?", response="Ivy.", retrieved_contexts=["Ivy climbs."], reference="Ivy does.")


def ragas_metrics() -> Iterator[str]:
    """Yield the names of the classes in ragas.metrics that are metrics, without importing them."""
    found = find_spec("ragas")
    folder = Path(str(found and found.origin)).parent / "metrics"
    for file in sorted(folder.rglob("*.py")):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and file.stem not in BASES:
                bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                if bases & {"SingleTurnMetric", "MultiTurnMetric", "BaseMetric"}:
                    yield node.name


def deepeval_metrics() -> Iterator[str]:
    return (name for name in import_module("deepeval.metrics").__all__ if name.endswith(("Metric", "GEval")))


@pytest.mark.parametrize("metrics", [ragas_metrics, deepeval_metrics])
def test_their_metrics_are_known_by_their_names(metrics: Callable[[], Iterator[str]]) -> None:
    """Each class that means the same as one here is found by its name; the error on the others says what to write."""
    names = sorted({*metrics()} - {"ExampleMetric"})
    assert len(names) > 30
    for name in names:
        assert name in names_of_metrics() or metric_named(name).name, name


def test_rows_and_data_sets_of_ragas() -> None:
    ragas: Any = import_module("ragas")
    fields = ("user_input", "response", "retrieved_contexts", "reference")
    row = ragas.SingleTurnSample(**{name: WHOLE.to_mapping()[name] for name in fields})
    assert sample_from(row) == WHOLE
    (raw,) = read_object(ragas.EvaluationDataset(samples=[row]))
    assert sample_from(raw.values) == WHOLE


def test_rows_and_data_sets_of_deepeval() -> None:
    cases: Any = import_module("deepeval.test_case")
    datasets: Any = import_module("deepeval.dataset")
    case = cases.LLMTestCase(
        input="What climbs?", actual_output="Ivy.", retrieval_context=["Ivy climbs."], expected_output="Ivy does."
    )
    dataset = datasets.EvaluationDataset()
    dataset.add_test_case(case)
    (raw,) = read_object(dataset)
    for sample in (sample_from(case), sample_from(raw.values)):
        assert sample.to_mapping().items() >= {"user_input": "What climbs?", "response": "Ivy."}.items()
        assert (sample.retrieved_contexts, sample.reference) == (("Ivy climbs.",), "Ivy does.")
