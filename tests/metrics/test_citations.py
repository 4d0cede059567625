"""Citations point to contexts that exist, or not."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragmetrics import assert_citations_valid
from pytest_ragmetrics.metrics import CitationValidity

TWO = ["Otters float in kelp.", "Crabs dig in the sand."]


@pytest.mark.parametrize(
    ("response", "contexts", "value"),
    [
        ("Otters float [1]. Crabs dig [2].", TWO, 1.0),
        ("Otters float [1]. Crabs dig [3].", TWO, 0.5),
        ("Otters float [1, 2].", TWO, 1.0),
        # a mark is valid when all its numbers are
        ("Otters float [1, 3]. Crabs dig [2].", TWO, 0.5),
        ("Otters float [1-3].", TWO, 0.0),
        ("Otters float [0].", TWO, 0.0),
        ("Otters float¹ and crabs dig³.", TWO, 0.5),
        ("水獺【1】。蟹【2】。鰻【9】。海星【2】。", TWO, 0.75),
        ("Otters float [1].", [], 0.0),
        ("Otters float [1].\n\nSources:\n[1] Handbook\n[7] Manual", TWO, 1.0),
    ],
)
def test_values_by_hand(response: str, contexts: list[str], value: float) -> None:
    """The share of marks that point to contexts, counted from 1."""
    assert CitationValidity().score(response=response, retrieved_contexts=contexts).value == value


def test_each_mark_has_a_verdict_at_its_place() -> None:
    """With the opening of what it cites, or with the number that there is not."""
    response = "Otters float [1]. Crabs dig [2, 5, 7]."
    long = f"Otters {'float ' * 50}"
    valid, wrong = CitationValidity().score(response=response, retrieved_contexts=[long, TWO[1]]).verdicts
    assert (valid.text, valid.ok, valid.reason) == ("[1]", True, None)
    assert (wrong.text, wrong.ok, wrong.reason) == ("[2, 5, 7]", False, "there is no context 5, 7, there are 2")
    assert [response[verdict.start : verdict.end] for verdict in (valid, wrong)] == [valid.text, wrong.text]
    assert [(piece.context, piece.text) for piece in valid.evidence] == [(0, long[:80])]
    assert [(piece.context, piece.text) for piece in wrong.evidence] == [(1, TWO[1])]


@pytest.mark.parametrize(("count", "there"), [(0, "there are none"), (1, "there is 1"), (3, "there are 3")])
def test_the_reason_counts_the_contexts(count: int, there: str) -> None:
    """In words."""
    (verdict,) = CitationValidity().score(response="So [9].", retrieved_contexts=["Yes."] * count).verdicts
    assert verdict.reason == f"there is no context 9, {there}"


def test_without_citations() -> None:
    """Nothing to check is vacuous, unless citations are asked for."""
    fields: dict[str, Any] = {"response": "Otters float.", "retrieved_contexts": TWO}
    result = CitationValidity().score(**fields)
    assert (result.value, result.vacuous, result.reason) == (1.0, True, "No citations found in response")
    asked = CitationValidity(require_citations=True).score(**fields)
    assert (asked.value, asked.vacuous) == (0.0, False)
    assert asked.reason == "No citations found in response, and require_citations asks for one"
    with pytest.raises(ValueError, match="require_citations must be True or False, not 1"):
        CitationValidity(require_citations=1)  # type: ignore[arg-type]


def test_the_helper() -> None:
    """One wrong citation is one too many by default."""
    assert assert_citations_valid("Otters float [1].", TWO[0]).value == 1.0
    with pytest.raises(AssertionError) as failure:
        assert_citations_valid("Otters float [1]. Crabs dig [3].", TWO)
    assert str(failure.value).splitlines() == [
        "citation_validity 0.50 < 1.00: 1 of 2 citations without a context",
        '  without a context: "[3]" (response[28:31])',
        "    reason: there is no context 3, there are 2",
    ]
    with pytest.raises(AssertionError, match="require_citations asks for one"):
        assert_citations_valid("Otters float.", TWO, require_citations=True)
