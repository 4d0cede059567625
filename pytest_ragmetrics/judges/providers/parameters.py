"""The parameters of requests: which a spec may set (``openai:MODEL?max_tokens=800``), and what is a slip."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

#: What the value of a parameter is: a number, a word, or one of some words.
_Kind: TypeAlias = "type[int | float | str] | tuple[str, ...]"

#: Half the price for slower answers, or the double for fast ones.
_TIERS = ("auto", "default", "flex", "priority", "fast")
_COMMON: Mapping[str, _Kind] = {"max_tokens": int, "temperature": float, "top_p": float, "top_k": int}
#: The parameters of a request that a spec may set: those of OpenAI, llama.cpp and vLLM, and of Anthropic.
PARAMETERS: Mapping[str, Mapping[str, _Kind]] = {
    "openai": {
        **_COMMON,
        **dict.fromkeys(("max_completion_tokens", "seed"), int),
        **dict.fromkeys(("min_p", "frequency_penalty", "presence_penalty"), float),
        **dict.fromkeys(("repeat_penalty", "repetition_penalty"), float),
        **dict.fromkeys(("reasoning_effort", "verbosity"), str),
        "service_tier": _TIERS,
    },
    "anthropic": _COMMON,
}
_FORMS: Mapping[Any, tuple[re.Pattern[str], str]] = {
    int: (re.compile(r"-?\d{1,18}"), "a whole number"),
    float: (re.compile(r"-?\d{0,18}\.?\d{1,18}"), "a number"),
    str: (re.compile(r"[a-z]+"), "a word"),
}
#: What a judge sets itself.
_OURS = ("model", "messages", "system", "response_format", "tools", "tool_choice", "stream", "n")
_ALIKE = 0.85


def bare(spec: str) -> str:
    """Return the spec of a judge without the parameters of its requests.

    >>> bare("openai:gpt-5.4-mini?service_tier=flex")
    'openai:gpt-5.4-mini'
    """
    return spec.partition("?")[0] if spec.partition(":")[0] in PARAMETERS else spec


def parameters_of(spec: str) -> dict[str, int | float | str]:
    """Return the parameters of the requests in the spec of a provider; raise ``ValueError`` naming a wrong one.

    >>> parameters_of("openai:qwen3:8b?max_tokens=800&temperature=0.2")
    {'max_tokens': 800, 'temperature': 0.2}
    """
    from pytest_ragmetrics.core.credentials import masked  # not at start-up

    known = PARAMETERS[spec.partition(":")[0]]
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

    known = dict.fromkeys(name for each in PARAMETERS.values() for name in each)
    for name in names:
        if name in _OURS:
            raise ValueError(f"parameters: {name} is set by the judge; leave it out")
        if name not in known and (alike := get_close_matches(name, known, n=1, cutoff=_ALIKE)):
            raise ValueError(f"parameters: {name} is no parameter; write {alike[0]}")
