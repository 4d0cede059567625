"""What all metrics of the catalogue have in common: names of their own, and errors on parameters of other tools."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import MetricResult, Sample, evaluate, metrics
from pytest_ragmetrics.metrics import Metric
from tests.metrics.catalogue import INPUTS, KINDS, made

ALL = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])


@ALL
def test_an_instance_may_have_a_name_of_its_own(kind: type[Metric]) -> None:
    """Its results and errors have it; everything else, and the other instances, are as without it."""
    mine, usual = made(kind, name="mine"), made(kind)
    assert (mine.name, usual.name, kind.name) == ("mine", kind.name, kind.name)
    found, expected = (metric.score_sample(Sample.from_mapping(INPUTS)) for metric in (mine, usual))
    assert (found.metric, expected.metric) == ("mine", kind.name)
    assert found.replaced(metric=kind.name).__getnewargs_ex__() == expected.__getnewargs_ex__()
    assert (mine.better, mine.scale) == (kind.better, kind.scale)
    with pytest.raises(ValueError, match=r"^mine: "):
        mine.score()


def test_two_instances_of_one_metric_stand_side_by_side() -> None:
    """A table has a column of each name; one name twice is refused with what to do."""
    broad, exact = metrics.RecallAtK(), metrics.RecallAtK(k=1, name="recall_at_1")
    table = evaluate([INPUTS], [broad, exact], progress=False)
    assert {name: stats.mean for name, stats in table.stats().items()} == {"recall_at_k": 0.5, "recall_at_1": 0.0}
    with pytest.raises(ValueError, match="two metrics of one name: recall_at_k; give one of them another with name="):
        evaluate([INPUTS], [broad, metrics.RecallAtK(k=1)], progress=False)


def test_a_metric_of_a_user_has_the_name_of_its_instance() -> None:
    """Also where its result says another."""

    class Brevity(Metric):
        """Short or not."""

        name = "brevity"

        def measure(self, sample: Sample) -> MetricResult:
            """Return 1.0."""
            del sample
            return MetricResult(1.0, metric="brevity", reason="Short.")

    assert repr(Brevity(name="short").score(response="So.")) == "<short 1: Short.>"
    for wrong in ("", " ", 3):
        with pytest.raises(ValueError, match="name must be a text that is not blank, not"):
            Brevity(name=wrong)  # type: ignore[arg-type]


@ALL
def test_a_parameter_that_is_not_taken_is_refused(kind: Any) -> None:
    """Nothing that was misspelt is left out in silence."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'threshhold'"):
        kind(threshhold=0.8)


def test_a_parameter_of_a_user_may_have_any_name() -> None:
    """A metric that takes what another tool calls so gets it."""

    class Own(metrics.Faithfulness):
        """With a model of its own."""

        def __init__(self, *, llm: str) -> None:
            super().__init__(judge=llm)

    assert Own(llm="local").score(response="Moths fly.", retrieved_contexts=["Moths fly."]) == 1.0
