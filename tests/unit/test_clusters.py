"""Rows that share passages: which are one cluster, and what the comparison of two runs makes of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragmetrics import assert_no_regression, assert_not_worse
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.table import Evaluation
from pytest_ragmetrics.runs.clusters import ClusterRule, Shared, clusters_of
from tests.documents import document, gate_of, record, row
from tests.growth import is_linear
from tests.tables import evaluate_gate, table

#: Rows of passages of their own, so that there are groups enough.
OTHERS: list[dict[str, Any]] = [{"retrieved_contexts": [f"other {n}"]} for n in range(5)]


def reference(*texts: str) -> dict[str, Any]:
    return {"reference_contexts": texts}


def retrieved(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"retrieved_contexts": texts, **fields}


def named(name: object, *texts: str) -> dict[str, Any]:
    return retrieved(*texts, metadata={"cluster": name})


def answer(number: int, *texts: str, id: str = "q1") -> dict[str, Any]:
    return retrieved(*texts, id=id, metadata={"answer": number})


A, B, Q1 = Shared("a"), Shared("b"), "row q1"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([reference("a"), reference("a"), reference("b")], [A, A, None]),
        ([reference("a", "b"), reference("a", "c"), reference("b", "a")], [A, A, None]),
        ([{"reference_context_ids": ["a", "b"]}, {"reference_context_ids": ["a"]}], [A, A]),
        ([retrieved("a", "b"), retrieved("a", "c"), retrieved("b", "a")], [A, A, None]),
        ([retrieved("a"), reference("a")], [A, A]),
        ([{**reference("a"), **retrieved("b")}, retrieved("b"), retrieved("b")], [None, B, B]),
        ([{"retrieved_context_ids": [7]}, {"retrieved_context_ids": [7]}], [Shared(7)] * 2),
        # What names a cluster keeps it.
        ([named("x", "a"), named("y", "a"), retrieved("a")], ["'x'", "'y'", None]),
        ([named("x", "a"), retrieved("a"), retrieved("a")], ["'x'", A, A]),
        # Several answers are one row, whatever was retrieved for each.
        ([answer(2, "b"), answer(1, "a"), retrieved("a")], [A, A, A]),
        ([retrieved("b"), answer(2, "b"), answer(1, "a")], [None, Q1, Q1]),
        ([{}, {}, retrieved(), retrieved()], [None] * 4),
        # A passage of more than half of the rows tells none apart, and the next does.
        ([retrieved("common", "a")] * 3 + [retrieved("common", f"{n}") for n in range(6)], [A] * 3 + [None] * 6),
    ],
)
def test_rows_share_their_first_passage(rows: Sequence[dict[str, Any]], expected: list[Hashable]) -> None:
    samples = [Sample(**it) for it in (*rows, *OTHERS)]
    assert clusters_of(samples) == [*expected, *[None] * len(OTHERS)]
    order = random.Random(1).sample(range(len(samples)), len(samples))
    assert clusters_of(samples[at] for at in order) == [clusters_of(samples)[at] for at in order]
    apart: list[Hashable | None] = [None if isinstance(it, Shared) else it for it in expected]
    if not any(isinstance(it.metadata.get("answer"), int) for it in samples):
        assert clusters_of(samples, rule="named") == [*apart, *[None] * len(OTHERS)]


def test_fewer_than_five_groups_are_none() -> None:
    def sizes(passages: int) -> list[int]:
        found = clusters_of(Sample(retrieved_contexts=[f"{n % passages}"]) for n in range(60))
        return [*Counter(it for it in found if it).values()]

    assert (sizes(5), sizes(4), sizes(1)) == ([12] * 5, [], [])


def test_the_passages_of_the_run_before_count() -> None:
    """A retriever that returns one passage for most questions does not hide the loss that it causes."""
    before = [Sample(retrieved_contexts=[f"{n // 2}"]) for n in range(20)]
    now = [Sample(retrieved_contexts=["all" if n % 9 else "9"]) for n in range(20)]
    assert clusters_of(now, before) == clusters_of(before) == [Shared(f"{n // 2}") for n in range(20)]
    assert clusters_of(before, [Sample() for _ in before]) == clusters_of(before)
    questions = [replace(it, reference_contexts=[f"{n // 4}"]) for n, it in enumerate(now)]
    assert clusters_of(questions, before) == [Shared(f"{n // 4}") for n in range(20)]


@pytest.mark.growth
def test_rows_take_time_in_proportion_to_their_number() -> None:
    """Of which all retrieved the same ten passages first."""
    common = [f"common {n}" for n in range(10)]
    samples = [Sample(retrieved_contexts=[*common, f"{n // 5}"]) for n in range(30_000)]
    assert len({*clusters_of(samples)}) == 6_000
    assert is_linear(lambda size: clusters_of(samples[:size]), short=3_000, long=24_000)


#: Thirty rows on six passages, of which those of the first two fail now.
PASSAGES = [f"passage {n // 5}" for n in range(30)]
BEFORE, NOW = [1.0] * 30, [0.0] * 10 + [1.0] * 20
TEXT = (
    "30 rows share passages in 6 groups, which count as dependent; "
    'name groups with metadata["cluster"], or set rag_clusters = named'
)


def asked(scores: Sequence[float], **metadata: Sequence[object]) -> Evaluation:
    found = table(scores)
    samples = [
        replace(it.sample, reference_contexts=[text], metadata={name: given[at] for name, given in metadata.items()})
        for at, (it, text) in enumerate(zip(found.rows, PASSAGES, strict=True))
    ]
    return replace(found, rows=tuple(replace(it, sample=s) for it, s in zip(found.rows, samples, strict=True)))


def test_groups_that_fail_are_no_proof_as_rows_would_be() -> None:
    kept = assert_no_regression(asked(NOW), asked(BEFORE))
    assert kept.drops["faithfulness"].p == 0.25
    assert f"  {TEXT}" in str(kept).splitlines()
    with pytest.raises(AssertionError, match="10 of 30 rows got worse") as failure:
        assert_no_regression(asked(NOW, cluster=range(30)), asked(BEFORE))
    assert "share passages" not in str(failure.value)
    # Where all groups lose, groups prove it as well; their text is in the failure.
    with pytest.raises(AssertionError, match="30 of 30 rows got worse") as failure:
        assert_no_regression(asked([0.0] * 30), asked(BEFORE))
    assert TEXT in str(failure.value)


def test_intervals_of_rows_that_share_passages_are_those_of_rows() -> None:
    apart, joined = (asked(BEFORE, **given).compare(asked(BEFORE)) for given in ({"cluster": range(30)}, {}))
    assert joined["faithfulness"].difference == replace(apart["faithfulness"].difference, mcnemar_p=None)  # type: ignore[type-var]
    assert str(assert_not_worse(asked(BEFORE), asked(BEFORE), margin=0.2)) == str(
        assert_not_worse(asked(BEFORE, cluster=range(30)), asked(BEFORE), margin=0.2)
    )


@pytest.mark.parametrize(
    ("named", "rule", "outcome", "shared"),
    [
        ({"regression": True}, "passages", "passed", (30, 6)),
        ({"regression": True}, "named", "failed", (0, 0)),
        ({"mean": 0.2, "confidence": 0.9}, "passages", "passed", (30, 6)),
        ({"mean": 0.2, "confidence": 0.9}, "named", "passed", (0, 0)),
        ({"mean": 0.6}, "passages", "passed", (0, 0)),
    ],
)
def test_gates_say_which_rows_are_dependent(
    named: dict[str, Any], rule: ClusterRule, outcome: str, shared: tuple[int, int]
) -> None:
    gate = replace(gate_of("faithfulness", **named), clusters=rule)
    now, before = (
        document(
            *(
                row(
                    "t",
                    record("faithfulness", score, sample={"id": f"q{n}", "reference_contexts": [text]}),
                    id=f"t[{n}]",
                )
                for n, (score, text) in enumerate(zip(scores, PASSAGES, strict=True))
            )
        )
        for scores in (NOW, BEFORE)
    )
    found = evaluate_gate(gate, {test.id: test for test in now.tests}, before)
    assert (found.record.outcome, (found.record.shared, found.record.groups)) == (outcome, shared)
