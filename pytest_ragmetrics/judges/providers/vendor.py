"""The providers, a record each, and the parameters of their requests: which a spec may set, and what is a slip.

A provider is its record here, the class of its judge and its tests. Specs, ``doctor``, prices and batches read the
records; nothing that asks a provider is imported for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

#: What the value of a parameter is: a number, a word, or one of some words.
_Kind: TypeAlias = "type[int | float | str] | tuple[str, ...]"
_COMMON: Mapping[str, _Kind] = {"max_tokens": int, "temperature": float, "top_p": float, "top_k": int}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Vendor:
    """A provider: what begins its specs, its name in the price list and the module of its SDK are its ``name``.

    ``kinds`` are its classes of a judge, an embedder and the routes of batches, as ``MODULE:CLASS`` below
    ``pytest_ragmetrics.judges``, and ``auto`` the specs of judge and embedder that ``auto`` stands for, of the first
    provider that is set up. ``models`` is the expression of how its models are named elsewhere.
    """

    label: str
    url: str
    kinds: Mapping[str, str]
    auto: Mapping[str, str]
    models: str
    #: The parameters of a request that a spec may set.
    parameters: Mapping[str, _Kind]
    #: Whether its address alone is enough, for servers that need no key.
    needs_no_key: bool = False
    #: The extra of this package that brings its SDK, if it is no dependency.
    extra: str | None = None

    @property
    def name(self) -> str:
        """What its specs begin with."""
        return self.label.lower()

    @property
    def key_variable(self) -> str:
        """The environment variable of the key."""
        return f"{self.label.upper()}_API_KEY"

    @property
    def url_variable(self) -> str:
        """The environment variable of the address."""
        return f"{self.label.upper()}_BASE_URL"

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables of which one is needed."""
        return (self.key_variable, self.url_variable) if self.needs_no_key else (self.key_variable,)

    @property
    def is_set_up(self) -> bool:
        """Whether the environment has one of them."""
        return any(os.environ.get(variable, "").strip() for variable in self.variables)

    def kind(self, noun: str) -> Any:
        """Return the class of a judge, an embedder or batch routes."""
        module, _, name = self.kinds[noun].partition(":")
        return getattr(import_module(f"pytest_ragmetrics.judges.{module}"), name)


OPENAI = Vendor(
    label="OpenAI",
    url="https://api.openai.com/v1",
    kinds={
        "judge": "providers.openai:OpenAIJudge",
        "embedder": "embedders.openai:OpenAIEmbedder",
        "batches": "providers.openai:OpenAIRoutes",
    },
    auto={"judge": "openai:gpt-6-luna", "embedder": "openai:text-embedding-3-small"},
    models=r"(?:gpt|chatgpt|o\d)[\w.-]*",
    needs_no_key=True,
    # Those of llama.cpp and vLLM too.
    parameters={
        **_COMMON,
        **dict.fromkeys(("max_completion_tokens", "seed"), int),
        **dict.fromkeys(("min_p", "frequency_penalty", "presence_penalty"), float),
        **dict.fromkeys(("repeat_penalty", "repetition_penalty"), float),
        **dict.fromkeys(("reasoning_effort", "verbosity"), str),
        # Half the price for slower answers, or the double for fast ones.
        "service_tier": ("auto", "default", "flex", "priority", "fast"),
    },
)
ANTHROPIC = Vendor(
    label="Anthropic",
    url="https://api.anthropic.com",
    kinds={"judge": "providers.anthropic:AnthropicJudge", "batches": "providers.anthropic:AnthropicRoutes"},
    auto={"judge": "anthropic:claude-haiku-5-5"},
    models=r"claude[\w.-]*",
    extra="anthropic",
    parameters=_COMMON,
)
VENDORS: Mapping[str, Vendor] = {vendor.name: vendor for vendor in (OPENAI, ANTHROPIC)}

_FORMS: Mapping[Any, tuple[re.Pattern[str], str]] = {
    int: (re.compile(r"-?\d{1,18}"), "a whole number"),
    float: (re.compile(r"-?\d{0,18}\.?\d{1,18}"), "a number"),
    str: (re.compile(r"[a-z]+"), "a word"),
}
#: What a judge sets itself.
_OURS = ("model", "messages", "system", "response_format", "tools", "tool_choice", "stream", "n")
_ALIKE = 0.85


def vendor_of(spec: str) -> Vendor | None:
    """Return the provider that a spec begins with, ``None`` for another spec."""
    return VENDORS.get(spec.partition(":")[0])


def bare(spec: str) -> str:
    """Return the spec of a judge without the parameters of its requests.

    >>> bare("openai:gpt-5.4-mini?service_tier=flex")
    'openai:gpt-5.4-mini'
    """
    return spec.partition("?")[0] if vendor_of(spec) else spec


def parameters_of(spec: str) -> dict[str, int | float | str]:
    """Return the parameters of the requests in the spec of a provider; raise ``ValueError`` naming a wrong one.

    >>> parameters_of("openai:qwen3:8b?max_tokens=800&temperature=0.2")
    {'max_tokens': 800, 'temperature': 0.2}
    """
    from pytest_ragmetrics.core.credentials import masked  # not at start-up

    known = VENDORS[spec.partition(":")[0]].parameters
    found: dict[str, int | float | str] = {}
    for part in spec.partition("?")[2].split("&"):
        name, is_set, text = part.partition("=")
        if name not in known or not is_set or name in found:
            fault = "is there twice" if name in found else "has no value" if name in known else "is no parameter"
            asked = f"write {bare(spec)}?max_tokens=800&temperature=0.2; the parameters are {', '.join(known)}"
            raise ValueError(masked(f"{spec!r}: {name!r} {fault}; {asked}"))
        found[name] = _value(masked(f"{spec!r}: {name}"), known[name], text)
    return found


def _value(place: str, kind: _Kind, text: str) -> int | float | str:
    if isinstance(kind, tuple):
        if text not in kind:
            raise ValueError(f"{place} is one of {', '.join(kind)}, not {text!r}")
        return text
    pattern, wanted = _FORMS[kind]
    if not pattern.fullmatch(text):
        raise ValueError(f"{place} is {wanted}, not {text!r}")
    value = kind(text)
    if kind is int and place.endswith("_tokens") and int(value) < 1:
        raise ValueError(f"{place} is at least 1, not {text!r}")
    # Equal numbers are one parameter to the cache, however they are written.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_parameters(names: Iterable[str]) -> None:
    """Raise ``ValueError`` for the parameter of a request that a judge sets itself, or that is misspelled.

    Servers know others than those of the specs, so that only what looks like one of these is taken for a slip.
    """
    from difflib import get_close_matches  # not at start-up

    known = dict.fromkeys(name for vendor in VENDORS.values() for name in vendor.parameters)
    for name in names:
        if name in _OURS:
            raise ValueError(f"parameters: {name} is set by the judge; leave it out")
        if name not in known and (alike := get_close_matches(name, known, n=1, cutoff=_ALIKE)):
            raise ValueError(f"parameters: {name} is no parameter; write {alike[0]}")
