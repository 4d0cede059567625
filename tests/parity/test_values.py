"""Values of every metric without a judge, against formulas written out a second time, straight down.

``theirs_*`` are the formulas of the other tool, where ours differs on purpose and a case shows how.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import rouge_score.rouge_scorer  # noqa: F401 - its import is slow, and must not fall into a timed example
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.metrics import (
    ExactMatch,
    NonLLMContextPrecision,
    NonLLMContextRecall,
    NonLLMStringSimilarity,
    RecallAtK,
    RougeScore,
    StringPresence,
    TokenF1,
    ToolCallAccuracy,
)
from pytest_ragmetrics.metrics.base import f1_of_counts, f_beta

TEXT = st.text(alphabet="abc ü東", min_size=1, max_size=12).filter(str.strip)
WORDS = st.lists(st.sampled_from(["pump", "valve", "fill", "dry"]), min_size=1, max_size=8)
IDS = st.lists(st.integers(0, 6), max_size=8)
SOME_IDS = st.lists(st.integers(0, 6), min_size=1, max_size=8)


def levenshtein(one: str, other: str) -> int:
    """Return the least number of insertions, deletions and replacements, by the table of Wagner and Fischer."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, start=1):
        above = row
        row = [i]
        for j, right in enumerate(other, start=1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right)))
    return row[-1]


def common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for left in one:
        above = row
        row = [0]
        for j, right in enumerate(other, start=1):
            row.append(above[j - 1] + 1 if left == right else max(above[j], row[j - 1]))
    return row[-1]


@given(TEXT, TEXT)
def test_strings(response: str, reference: str) -> None:
    """Exact match, presence, and similarity = 1 - distance / the longer length."""
    fields = {"response": response, "reference": reference}
    assert ExactMatch().score(**fields).value == (1.0 if response == reference else 0.0)
    assert StringPresence().score(**fields).value == (1.0 if response.find(reference) >= 0 else 0.0)
    expected = 1 - levenshtein(response, reference) / max(len(response), len(reference))
    assert NonLLMStringSimilarity().score(**fields).value == pytest.approx(expected)


@given(WORDS, WORDS)
def test_words(said: list[str], wanted: list[str]) -> None:
    """Token F1 and ROUGE-L from their counts."""
    fields = {"response": " ".join(said), "reference": " ".join(wanted)}
    left = list(wanted)
    common = 0
    for word in said:
        if word in left:
            left.remove(word)
            common += 1
    assert TokenF1().score(**fields).value == pytest.approx(2 * common / (len(said) + len(wanted)))
    sequence = common_subsequence(said, wanted)
    assert RougeScore().score(**fields).value == pytest.approx(2 * sequence / (len(said) + len(wanted)))


@given(st.lists(TEXT, max_size=4), st.lists(TEXT, min_size=1, max_size=4), st.sampled_from([0.25, 0.5, 1.0]))
def test_contexts_by_their_characters(retrieved: list[str], reference: list[str], threshold: float) -> None:
    """Recall is a share of the references, precision the mean of the precisions down to each context of use."""
    fields: dict[str, Any] = {"retrieved_contexts": retrieved, "reference_contexts": reference}

    def alike(one: str, other: str) -> bool:
        longer = max(len(one), len(other))
        return (longer - levenshtein(one, other)) / longer >= threshold

    found = [any(alike(one, other) for other in retrieved) for one in reference]
    assert NonLLMContextRecall(threshold=threshold).score(**fields).value == sum(found) / len(found)
    useful = [any(alike(one, other) for other in reference) for one in retrieved]
    precisions = [sum(useful[: n + 1]) / (n + 1) for n, it in enumerate(useful) if it]
    expected = sum(precisions) / len(precisions) if precisions else 0.0
    assert NonLLMContextPrecision(threshold=threshold).score(**fields).value == pytest.approx(expected)


CALLS = st.lists(
    st.tuples(st.sampled_from("fg"), st.dictionaries(st.sampled_from("xy"), st.integers(0, 1))), max_size=4
)


@given(CALLS, CALLS)
def test_tool_calls_in_order(made: list[tuple[str, dict[str, int]]], wanted: list[tuple[str, dict[str, int]]]) -> None:
    """0 unless the names are the same one after the other, else the mean share of right arguments."""
    if not made and not wanted:
        expected = 1.0
    elif [name for name, _ in made] != [name for name, _ in wanted]:
        expected = 0.0
    else:
        shares = []
        for (_, given_), (_, right) in zip(made, wanted, strict=True):
            equal = [name for name in right if name in given_ and given_[name] == right[name]]
            shares.append(len(equal) / len(right) if right else 0.0 if given_ else 1.0)
        expected = sum(shares) / len(shares)
    calls = [[{"name": name, "args": args} for name, args in side] for side in (made, wanted)]
    score = ToolCallAccuracy().score(tool_calls=calls[0], reference_tool_calls=calls[1])
    assert score.value == pytest.approx(expected)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.just(0.0) | st.floats(0.01, 20))
def test_f_scores(found: int, surplus: int, missing: int, beta: float) -> None:
    """From counts, and from precision and recall."""
    precision = found / (found + surplus) if found + surplus else 0.0
    recall = found / (found + missing) if found + missing else 0.0
    below = beta * beta * precision + recall
    expected = (1 + beta * beta) * precision * recall / below if below else 0.0
    assert f_beta(precision, recall, beta) == pytest.approx(expected, abs=1e-9)
    assert f1_of_counts(found, surplus, missing) == pytest.approx(f_beta(precision, recall))


@pytest.mark.parametrize(
    ("metric", "one", "other", "value"),
    [
        # Ragas adds 1e-10 to the denominator.
        (NonLLMContextPrecision(), "AB", "AB", 1.0),
        # eval-ruby takes the overlap of sets over the counts of lists: 2/3, and 1.5.
        (TokenF1(), ["red red blue"], ["blue red red"], 1.0),
        (RecallAtK(), "aaa", "ab", 0.5),
    ],
)
def test_where_ours_differs_on_purpose(metric: Any, one: Any, other: Any, value: float) -> None:
    """Exactly, with both texts given as all that the metric could want."""
    fields = {"retrieved_contexts": list(one), "reference_contexts": list(other), "response": one[0]}
    ids = {"retrieved_context_ids": list(one), "reference_context_ids": list(other), "reference": other[0]}
    assert metric.score(**fields, **ids).value == value
