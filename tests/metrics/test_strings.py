"""The response held against the reference as a string."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import assert_exact_match, assert_string_present, assert_text_alike
from pytest_ragmetrics.metrics import Correctness, ExactMatch, NonLLMStringSimilarity, StringPresence, TokenF1


@pytest.mark.parametrize(
    ("response", "reference", "same", "present"),
    [
        ("Oslo", "Oslo", 1.0, 1.0),
        ("Oslo.", "Oslo", 0.0, 1.0),
        ("Oslo", "Oslo.", 0.0, 0.0),
        ("oslo", "Oslo", 0.0, 0.0),
        ("Oslo\n", "Oslo", 0.0, 1.0),
        ("cafe\u0301", "caf\u00e9", 0.0, 0.0),
        ("首都は東京です", "東京", 0.0, 1.0),
        ("a.c", "abc", 0.0, 0.0),
        ("abc", "a.c", 0.0, 0.0),
    ],
)
def test_the_same_and_present(response: str, reference: str, same: float, present: float) -> None:
    """Character for character; no character has a special meaning."""
    for metric, value in ((ExactMatch(), same), (StringPresence(), present)):
        result = metric.score(response=response, reference=reference)
        assert result.value == value
        (verdict,) = result.verdicts
        assert (verdict.text, verdict.ok, verdict.start, verdict.end) == (response, bool(value), 0, len(response))


@pytest.mark.parametrize(
    ("metric", "response", "reference", "reason"),
    [
        (ExactMatch(), "Bergen", "Oslo", 'the reference is "Oslo"'),
        (ExactMatch(), "Oslo  is\n", "Oslo is", "it differs from the reference in white space"),
        (StringPresence(), "Bergen", "Oslo", '"Oslo" stands not in it'),
        (StringPresence(), "In OSLO.", "Oslo", '"Oslo" stands in it in another case'),
    ],
)
def test_a_failure_says_what_is_different(metric: ExactMatch, response: str, reference: str, reason: str) -> None:
    """Near misses are told apart."""
    assert metric.score(response=response, reference=reference).reason == reason


@pytest.mark.parametrize(
    ("measure", "value"),
    [("levenshtein", 0.8), ("indel", 8 / 9), ("hamming", 0.8), ("jaro", 14 / 15), ("jaro_winkler", 0.96)],
)
def test_similarity_by_hand(measure: Any, value: float) -> None:
    """Moth and moths, by every measure."""
    result = NonLLMStringSimilarity(measure=measure).score(response="moth", reference="moths")
    assert result.value == pytest.approx(value)
    assert result.reason == f"{value:.0%} alike by {measure}"


def test_a_measure_that_is_none() -> None:
    """The error lists those that there are."""
    with pytest.raises(ValueError, match=r"measure must be 'levenshtein' or .* or 'jaro_winkler', not 'cosine'"):
        NonLLMStringSimilarity(measure="cosine")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("response", "reference", "value"),
    [
        ("May 1903", "May 1903", 1.0),
        ("in May 1903", "May 1903", 0.8),
        # a word counts as often as it stands there
        ("no no no", "no no", 0.8),
        ("the a an", "…", 1.0),
        ("", "", 1.0),
        ("", "May", 0.0),
        ("May", " ", 0.0),
        ("东京塔", "东京", 0.8),
    ],
)
def test_token_f1(response: str, reference: str, value: float) -> None:
    """As in SQuAD, and as Correctness says without a judge."""
    result = TokenF1().score(response=response, reference=reference)
    assert result.value == pytest.approx(value)
    other = Correctness(method="token_f1").score(response=response, reference=reference)
    assert (result.value, result.reason) == (other.value, other.reason)


def test_token_f1_needs_both_texts() -> None:
    """A text that is not there at all is not an empty one."""
    with pytest.raises(ValueError, match="token_f1: reference is missing"):
        TokenF1().score(response="May")


def test_the_helpers() -> None:
    """Response first, then the reference."""
    with pytest.raises(AssertionError) as failure:
        assert_exact_match("Bergen", "Oslo")
    assert str(failure.value).splitlines() == [
        "exact_match 0.00 < 1.00: 1 of 1 response not the reference",
        '  not the reference: "Bergen" (response[0:6])',
        '    reason: the reference is "Oslo"',
    ]
    with pytest.raises(AssertionError, match=r"string_presence 0\.00 < 1\.00: 1 of 1 response without the reference"):
        assert_string_present("Bergen", "Oslo")
    with pytest.raises(AssertionError, match=r"non_llm_string_similarity 0\.40 < 0\.80: 40% alike by levenshtein"):
        assert_text_alike("abcde", "ab---")
    with pytest.raises(AssertionError, match=r"token_f1 0\.50 < 0\.80: 1 words in common of 2 and 2"):
        assert_text_alike("big moth", "small moth", metric="token_f1")
    with pytest.raises(ValueError, match="metric must be 'similarity' or 'token_f1'"):
        assert_text_alike("moth", "moth", metric="bleu")  # type: ignore[arg-type]
