"""What tokens cost is looked up, and unknown where it is not known."""

from __future__ import annotations

import sys

import pytest

from pytest_ragmetrics.prices import price


def test_the_price_grows_with_the_tokens() -> None:
    """Prompt and completion tokens have their own prices, and none cost nothing."""
    read, written = price("openai", "gpt-4o", 1_000_000, 0), price("openai", "gpt-4o", 0, 1_000_000)
    assert read is not None
    assert written is not None
    assert 0 < read < written
    assert price("openai", "gpt-4o", 1_000_000, 1_000_000) == pytest.approx(read + written)
    assert price("openai", "gpt-4o", 0, 0) == 0.0


@pytest.mark.parametrize(("kind", "model"), [("openai", "house-model"), ("anthropic", "gpt-4o"), ("custom", "gpt-4o")])
def test_an_unknown_price_is_unknown(kind: str, model: str) -> None:
    """A model that its provider does not sell, or a judge of one's own, costs nobody knows what: not nothing."""
    assert price(kind, model, 10, 10) is None


def test_without_the_price_list_every_price_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The price list is not needed for judging."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert price("openai", "gpt-4o", 10, 10) is None
