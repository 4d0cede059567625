"""ContextRelevancy: the share of context sentences needed, times the agreement of independent samples."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.embedders.openai import OpenAIEmbedder
from pytest_ragmetrics.judges.openai import OpenAIJudge
from pytest_ragmetrics.metrics import ContextRelevancy
from pytest_ragmetrics.metrics.contexts import jaccard
from tests.fake_openai import FakeOpenAI
from tests.scripted_judge import Answer, ScriptedEmbedder, ScriptedJudge, chosen

CONTEXTS = ["One. Two.", "Three. Four."]
# Cosines: One-Two 0.8, One-Three 0.0, Two-Three 0.6, One-Four -1.0, Two-Four -0.8, Three-Four 0.0.
VECTORS = {"One.": [1.0, 0.0], "Two.": [0.8, 0.6], "Three.": [0.0, 1.0], "Four.": [-1.0, 0.0]}


def score(*samples: Answer, **parameters: Any) -> Any:
    """Score four sentences, one sample for each answer."""
    judge = ScriptedJudge(select_sentences=list(samples))
    embedder = ScriptedEmbedder(VECTORS)
    metric = ContextRelevancy(judge=judge, embedder=embedder, strictness=len(samples), **parameters)
    result = metric.score(user_input="How many?", retrieved_contexts=CONTEXTS)
    assert (len(judge.tasks), judge.depth) == (len(samples), 1)
    assert [request.vote for request in judge.requests] == list(range(len(samples)))
    return result


@pytest.mark.parametrize(
    ("numbers", "value"), [([1], 0.25), ([1, 2], 0.5), ([4, 1, 3], 0.75), ([1, 2, 3, 4], 1.0), ([], 0.0)]
)
def test_one_sample_is_the_share_of_sentences(numbers: list[int], value: float) -> None:
    """With one sample there is nothing to agree on; insufficient information is the empty choice."""
    result = score(chosen(*numbers))
    assert result == value
    assert [verdict.ok for verdict in result.verdicts] == [number in numbers for number in (1, 2, 3, 4)]
    assert result.reason == f"{len(numbers)} of 4 context sentences needed"


@pytest.mark.parametrize(
    ("samples", "overlap", "agreement"),
    [
        ([[1], [1]], 1 / 4, 1.0),
        ([[1], [2]], 1 / 4, 0.0),
        ([[1, 2], [2, 3]], 2 / 4, 1 / 3),
        ([[1, 2], [1, 2, 3, 4]], 3 / 4, 1 / 2),
        ([[], []], 0.0, 1.0),
        ([[1], []], 1 / 8, 0.0),
        ([[1], [1], [2]], 1 / 4, 1 / 3),
        ([[1], [1, 2], []], 3 / 12, (1 / 2 + 0 + 0) / 3),
        ([[1, 2, 3, 4]] * 3, 1.0, 1.0),
    ],
)
@pytest.mark.parametrize("name", ["jaccard", "jaccard_score"])
def test_jaccard_agreement(samples: list[list[int]], overlap: float, agreement: float, name: str) -> None:
    """The mean over all pairs of shared / chosen by either; both names of the option work."""
    result = score(*(chosen(*numbers) for numbers in samples), agreement=name)
    assert result.value == pytest.approx(overlap * agreement)
    assert f"in {len(samples)} samples, agreement {agreement:.2f}" in result.reason


@pytest.mark.parametrize(
    ("samples", "overlap", "agreement"),
    [
        ([[1], [1]], 1 / 4, 1.0),
        ([[1], [2]], 1 / 4, 0.8),
        ([[2], [1]], 1 / 4, 0.8),
        # one way 1.0; the other way One finds itself and Three finds nothing: (1 + 0) / 2
        ([[1], [1, 3]], 3 / 8, (1.0 + 0.5) / 2),
        ([[1, 3], [1]], 3 / 8, (1.0 + 0.5) / 2),
        # One: Two 0.8, Two: Two 1.0; Two: Two 1.0, Three: Two 0.6
        ([[1, 2], [2, 3]], 2 / 4, (0.9 + 0.8) / 2),
        # opposite directions do not count below nothing
        ([[1], [4]], 1 / 4, 0.0),
        ([[], [2]], 1 / 8, 0.0),
        ([[], []], 0.0, 1.0),
        ([[1], [1], [2]], 1 / 4, (1 + 0.8 + 0.8) / 3),
        ([[1], [2], []], 1 / 6, (0.8 + 0 + 0) / 3),
    ],
)
def test_best_match_agreement(samples: list[list[int]], overlap: float, agreement: float) -> None:
    """The mean similarity of each sentence to the best of the other sample, both ways, over all pairs."""
    result = score(*(chosen(*numbers) for numbers in samples))
    assert result.value == pytest.approx(overlap * agreement)


def test_complete_agreement_needs_no_embedder() -> None:
    """Samples that choose the same agree fully, exactly, and nothing is embedded."""
    judge = ScriptedJudge(select_sentences=chosen(1, 2, 3, 4))
    result = ContextRelevancy(judge=judge, strictness=3).score(user_input="How many?", retrieved_contexts=CONTEXTS)
    assert result.value == 1.0


@given(st.frozensets(st.integers(0, 9)), st.frozensets(st.integers(0, 9)))
def test_jaccard_is_symmetric_and_a_share(one: frozenset[int], other: frozenset[int]) -> None:
    """Neither sample is the reference, and only equal choices agree fully."""
    assert jaccard(one, other) == jaccard(other, one)
    assert 0 <= jaccard(one, other) <= 1
    assert (jaccard(one, other) == 1) is (one == other)


def test_the_majority_decides_which_sentences_are_shown_as_needed() -> None:
    """A verdict for each sentence, with its place; half of the samples are no majority."""
    result = score(chosen(1, 3), chosen(1), chosen(1, 3), chosen(2), agreement="jaccard")
    assert [(v.text, v.ok) for v in result.verdicts] == [
        ("One.", True),
        ("Two.", False),
        ("Three.", False),
        ("Four.", False),
    ]
    assert result.verdicts[0].evidence[0].start == 0
    assert result.verdicts[1].evidence == ()


def test_one_sample_that_fails_leaves_no_score() -> None:
    """Two samples of three are not three."""
    judge = ScriptedJudge(select_sentences=[chosen(1), "no", "no", "no", "no", "no"])
    with pytest.raises(UnscoredError):
        ContextRelevancy(judge=judge, strictness=3).score(user_input="How many?", retrieved_contexts=CONTEXTS)


def test_contexts_without_a_sentence_have_no_score() -> None:
    """A rule alone holds nothing to choose from."""
    metric = ContextRelevancy(judge=ScriptedJudge())
    with pytest.raises(UnscoredError, match="the contexts have no sentence"):
        metric.score(user_input="How many?", retrieved_contexts=["---"])


@pytest.mark.parametrize("agreement", ["bertscore", "", None])
def test_an_unknown_agreement_is_an_error(agreement: Any) -> None:
    """The choices are named when the metric is made."""
    with pytest.raises(ValueError, match="agreement must be 'bert_score' or 'jaccard'"):
        ContextRelevancy(agreement=agreement)


def test_from_end_to_end(server: FakeOpenAI, openai_judge: OpenAIJudge, openai_embedder: OpenAIEmbedder) -> None:
    """Through the SDK and a real server: three samples at the same time."""
    server.latency = 0.1
    metric = ContextRelevancy(judge=openai_judge, embedder=openai_embedder, strictness=3)
    result = metric.score(
        user_input="Do moths fly?", retrieved_contexts=["Moths are active.", "Rain is wet. Nothing else."]
    )
    assert result.value == pytest.approx(1 / 3)
    assert (server.calls, server.in_flight_max) == (3, 3)
