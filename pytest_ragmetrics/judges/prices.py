"""What tokens cost, from the price list that ``genai-prices`` carries."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from math import fsum
from typing import Any

from pytest_ragmetrics.core.errors import warn_once
from pytest_ragmetrics.datasets.rows import values_of
from pytest_ragmetrics.judges.providers.vendor import VENDORS

_ORDINARY = frozenset({"", "auto", "default", "standard"})


def estimated_tokens(*texts: str) -> int:
    """Return about how many tokens texts have, where no count is known: a quarter of their bytes in UTF-8.

    That is four letters of English to a token, and three quarters of a token for a Chinese character.

    >>> estimated_tokens("Open the valve.", "慢慢来")
    6
    """
    return -(-sum(len(text if text.isascii() else text.encode("utf-8", "replace")) for text in texts) // 4)


def priced_tier(tier: object) -> str | None:
    """Return a service tier as :func:`price` takes it: ``None`` for what answers and judges call the ordinary one.

    >>> priced_tier("flex"), priced_tier("standard"), priced_tier(None)
    ('flex', None, None)
    """
    return tier if isinstance(tier, str) and tier not in _ORDINARY else None


def known_sum(bills: Iterable[float | None]) -> float | None:
    """Return the sum of amounts in dollars, ``None`` where one is unknown."""
    amounts = list(bills)
    return None if None in amounts else fsum(filter(None, amounts))


# Answers found in a cache have the same tokens again and again, and one look-up takes 0.1 ms.
@lru_cache(maxsize=4096)
def price(
    kind: str,
    model: str,
    prompt_tokens: int,
    completion_tokens: int,
    *,
    cached: int = 0,
    written: int = 0,
    written_1h: int = 0,
    tier: str | None = None,
    url: str | None = None,
) -> float | None:
    """Return the price of one request in US dollars, or ``None`` where it is not known.

    ``prompt_tokens`` are all of them: ``cached`` ones were read from the provider's cache, ``written`` ones put into
    it, ``written_1h`` of these for an hour at Anthropic. ``tier`` is the one that the answer reports, ``batch`` for one
    out of a batch; where the list has no price of it, the full one is meant, and a warning says so once. ``url`` is the
    address of a server that is not the provider's own; the prices are those of who sells there, if it is known. "" is
    the kind of whichever provider has a model of that name. Some models have other rates above a number of prompt
    tokens of one request: the price of a sum is not the sum of prices.

    >>> price("custom", "my-model", 100, 10) is None
    True
    >>> f"{price('openai', 'gpt-5.4-mini', 100_000, 10_000, cached=40_000, tier='batch'):.4f}"
    '0.0465'
    """
    if kind and kind not in VENDORS:
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    counts = {"input_tokens": prompt_tokens, "output_tokens": completion_tokens}
    counts |= {"cache_read_tokens": cached, "cache_write_tokens": written}
    if written_1h:
        counts["cache_write_1h_tokens"] = written_1h
    context = None if tier is None else {"processing" if tier == "batch" else "service_tier": tier}
    sellers: list[dict[str, Any]] = [{"provider_id": kind} if kind else {}]
    for seller in [{"provider_api_url": url}, *sellers] if url else sellers:
        with suppress(LookupError, ValueError):
            found = calc_price(Usage(**counts), model, price_context=context, **seller)
            break
    else:
        return None
    # calc_price() itself falls back in silence.
    if context is not None and not _has_variant(found.model.price_variants or (), context):
        warn_once(f"{kind}:{model} has no price for the tier {tier!r}: it is counted in full")
    return float(found.total_price)


def _has_variant(variants: Sequence[Any], context: dict[str, str]) -> bool:
    return any(variant.when == context for variant in variants)


# What SDKs call tokens: those of the prompt, of the completion, and those read from and written to a cache.
_COUNTS = (
    ("prompt_tokens", "input_tokens", "promptTokenCount", "prompt_token_count"),
    ("completion_tokens", "output_tokens", "candidatesTokenCount", "candidates_token_count"),
    ("cached_prompt_tokens", "cached_tokens", "cache_read", "cache_read_tokens", "cache_read_input_tokens"),
    ("cache_write_tokens", "cache_creation", "cache_creation_input_tokens"),
)
_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")


def bill_of(usage: object, model: object = None) -> tuple[float, str]:
    """Return what an application paid for its requests in US dollars, and for which tokens of which models.

    ``usage`` is that of one request, or a list of them: a mapping or an object of tokens as the SDKs of OpenAI,
    Anthropic and Google and LangChain have it, or a whole answer of theirs with ``usage`` and ``model``. A ``cost`` in
    it is the price. Raises ``ValueError`` for anything else, and naming a model whose price is not known.

    >>> cost, what = bill_of({"input_tokens": 1000, "output_tokens": 100}, "openai:gpt-5.4-mini")
    >>> f"{cost:.4f} for {what}"
    '0.0012 for 1,100 tokens of openai:gpt-5.4-mini'
    """
    # Without a request nothing is known of what it cost.
    each = usage if isinstance(usage, (list, tuple)) and usage else [usage]
    bills = [_bill(values_of(it) or {}, model) for it in each]
    models = ", ".join(dict.fromkeys(name for _, _, name in bills))
    return fsum(cost for cost, _, _ in bills), f"{sum(tokens for _, tokens, _ in bills):,} tokens of {models}"


def from_zero(name: str, given: object) -> float:
    """Return a figure, or the text of one; raise ``ValueError`` with its name unless it is a number from 0 on.

    >>> from_zero("latency", "1.84")
    1.84
    """
    number = math.nan
    with suppress(TypeError, ValueError):
        number = math.nan if isinstance(given, bool) else float(given)  # type: ignore[arg-type]
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{name} must be a number from 0 on, not {given!r:.60}")
    return number


def _bill(values: Mapping[str, Any], model: object) -> tuple[float, int, str]:
    """Return the price of one request, its tokens and its model."""
    spent = values_of(values.get("usage")) or values
    parts = (spent, *(it for name in _DETAILS if (it := values_of(spent.get(name))) is not None))
    given = [[(key, it[key]) for key in keys for it in parts if it.get(key) is not None] for keys in _COUNTS]
    counts = [[int(from_zero(f"{key} of usage", number)) for key, number in each] for each in given]
    named = str(values.get("model") or model or "")
    cost = spent.get("cost")
    if not counts[0] and cost is None:
        raise ValueError(f"usage has no tokens, only {', '.join(map(repr, values))[:200] or 'nothing'}")
    prompt, completion, read, written = (next(iter(it), 0) for it in counts)
    if "cache_read_input_tokens" in spent:
        # Anthropic's input tokens are those that have nothing to do with its cache.
        prompt += read + written
    kind, _, name = named.partition(":")
    kind, name = (kind, name) if name and kind in VENDORS else ("", named)
    known = (
        price(kind, name, prompt, completion, cached=read, written=written) if cost is None else from_zero("cost", cost)
    )
    if known is None:
        raise ValueError(f"the price of {named[:80]!r} is not known" if named else "usage has no model")
    return known, prompt + completion, named or "a model without a name"


# Tokens of prompt and completion of a judgement, to compare models by.
_TYPICAL = (6000, 1000)
# A model that is sold for texts alone: gpt-6-luna, claude-haiku-5-5; not gpt-audio, gpt-image-2, ft:gpt-4o.
_FOR_TEXT = re.compile(r"(?:gpt-|claude-[a-z]+-)\d[\d.o-]*(?:-[a-z]+)?")


def cheaper_successor(kind: str, model: str, *, least: float = 0.1) -> tuple[str, float] | None:
    """Return the cheapest newer model of the same provider that costs less, and how many times as much ``model`` does.

    ``None`` where the price list knows none that costs ``least`` of it or more: what costs less than a tenth is a model
    of another kind. The list has no dates of release, so age goes by the version in the name: what has the same version
    is a smaller model, and no successor. Models count that are sold in batches, as all for texts alone are.

    >>> cheaper_successor("openai", "gpt-4o-mini") is not None, cheaper_successor("custom", "my-model")
    (True, None)
    """
    costs = price(kind, model, *_TYPICAL)
    if not costs:
        return None
    from genai_prices.data import providers

    provider = next(each for each in providers if each.id == kind)
    own = provider.find_model(model)
    if own is None or not _FOR_TEXT.fullmatch(own.id):
        return None
    sold = [
        (price(kind, each.id, *_TYPICAL) or costs, each.id)
        for each in provider.models
        if _FOR_TEXT.fullmatch(each.id) and _has_variant(each.price_variants or (), {"processing": "batch"})
    ]
    newer = [(cost, name) for cost, name in sold if _version(name) > _version(own.id) and cost >= least * costs]
    cost, name = min(newer, default=(costs, ""))
    return (name, costs / cost) if cost < costs else None


def _version(model: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", model)))
