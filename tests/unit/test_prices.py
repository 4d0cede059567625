"""What tokens cost is looked up, and unknown where it is not known."""

from __future__ import annotations

import sys

import pytest

from pytest_ragmetrics.core.errors import warn_once
from pytest_ragmetrics.judges.prices import cheaper_successor, price
from pytest_ragmetrics.judges.providers.vendor import VENDORS


def test_the_price_grows_with_the_tokens() -> None:
    tokens = ((10**6, 0), (0, 10**6), (10**6, 10**6), (0, 0))
    read, written, both, none = (price("openai", "gpt-4o", *counts) or 0 for counts in tokens)
    assert 0 == none < read < written
    assert both == pytest.approx(read + written)


@pytest.mark.parametrize(
    ("kind", "model", "standard", "batch", "flex"),
    [
        *(("openai", "gpt-5.4-mini", 0.0930, 0.0465, 0.0465), ("openai", "gpt-5.6-luna", 0.0258, 0.0129, 0.0129)),
        ("anthropic", "claude-sonnet-5-5", 0.234, 0.117, None),
        ("anthropic", "claude-haiku-5-5", 0.0119, 0.00595, None),
    ],
)
def test_each_token_has_one_rate(kind: str, model: str, standard: float, batch: float, flex: float | None) -> None:
    """Of 100,000 prompt tokens 40,000 were read from the provider's cache and 20,000 written into it; 10,000 out."""
    counts = {"cached": 40_000, "written": 20_000}
    for tier, cost in ((None, standard), ("batch", batch), ("flex", flex)):
        assert cost is None or price(kind, model, 100_000, 10_000, **counts, tier=tier) == pytest.approx(cost)


def test_an_hour_costs_more_than_five_minutes() -> None:
    """Anthropic's rates of writing are 1.25 and 2 times that of reading."""
    asked, read = ("anthropic", "claude-sonnet-5-5", 100_000, 0), price("anthropic", "claude-sonnet-5-5", 100_000, 0)
    for written_1h, times in ((0, 1.25), (100_000, 2), (40_000, 1.55)):
        assert price(*asked, written=100_000, written_1h=written_1h) == pytest.approx(times * (read or 0))


def test_a_tier_without_a_price_is_counted_in_full_and_said_once() -> None:
    warn_once.cache_clear()
    price.cache_clear()
    with pytest.warns(UserWarning, match="openai:gpt-3.5-turbo has no price for the tier 'flex': it is") as said:
        found = [price("openai", "gpt-3.5-turbo", tokens, 10, tier="flex") for tokens in (10, 11)]
    assert len(said) == 1
    assert found == [price("openai", "gpt-3.5-turbo", tokens, 10) for tokens in (10, 11)]


@pytest.mark.parametrize(("kind", "model"), [("openai", "house-model"), ("anthropic", "gpt-4o"), ("custom", "gpt-4o")])
def test_an_unknown_price_is_unknown(kind: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert price(kind, model, 10, 10) is None
    # Without the price list every price is.
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert price("openai", "gpt-4o", 10, 10) is None


@pytest.mark.parametrize("spec", [vendor.auto["judge"] for vendor in VENDORS.values()])
def test_auto_is_up_to_date(spec: str) -> None:
    """The price list that is installed knows no newer and cheaper model; where it does, change the constant."""
    assert cheaper_successor(*spec.split(":"), least=0.0) is None
    assert price(*spec.split(":"), 10, 10)


@pytest.mark.parametrize(
    ("kind", "model", "name", "times"),
    [
        ("openai", "gpt-5.4-mini", "gpt-6-luna", 8.18),
        ("openai", "gpt-5.4-mini-2026-03-17", "gpt-6-luna", 8.18),
        ("openai", "gpt-5.6-luna", "gpt-6-luna", 2.18),
        ("anthropic", "claude-haiku-4-5", "claude-haiku-5-5", 10),
        ("anthropic", "claude-sonnet-4-5", "claude-sonnet-5", 1.5),
    ],
)
def test_a_cheaper_successor_is_known(kind: str, model: str, name: str, times: float) -> None:
    found = cheaper_successor(kind, model)
    assert found is not None
    assert 0 < (price(kind, found[0], 6, 1) or 0) <= (price(kind, name, 6, 1) or 0)
    assert times - 0.01 <= found[1] <= 10.01


@pytest.mark.parametrize("model", ["gpt-audio", "text-embedding-3-large", "gpt-image-2", "house-model", "ft:gpt-4o"])
def test_what_is_no_model_for_texts_has_no_successor(model: str) -> None:
    assert cheaper_successor("openai", model) is None
