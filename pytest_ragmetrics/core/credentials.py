"""Texts that look like keys: found, and masked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from pytest_ragmetrics.core.lazy import lazily

# A letter or digit before a pattern excludes it: "task-..." contains "sk-...". What is looked for ahead has a limit: a
# text of nothing but beginnings took a time that grew with its square.
_PATTERNS = {
    "an API key": r"sk-(?=[\w-]{0,200}[0-9])[A-Za-z0-9_-]{16,}|(?:gsk_|xai-|r8_|hf_)(?=\w{0,200}[0-9])[A-Za-z0-9]{20,}",
    "a bearer token": r"[Bb]earer +(?=\S*[0-9])[A-Za-z0-9._~+/-]{16,}=*",
    "a GitHub token": r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}",
    "a GitLab token": r"glpat-[A-Za-z0-9_-]{20,}",
    "a Slack token": r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    "an AWS key": r"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])",
    "a Google key": r"AIza[0-9A-Za-z_-]{35}",
    "a package index token": r"pypi-[A-Za-z0-9_-]{40,}",
    "a JSON web token": r"eyJ[A-Za-z0-9_-]{10,1000}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\w+/=\s\\]{0,8000}-----END)?",
}
_ANY = lazily(r"(?<![A-Za-z0-9])(?:" + "|".join(f"({pattern})" for pattern in _PATTERNS.values()) + ")")
# One of them is in each: looking for them takes a sixth of the time.
_MARKS = (
    *("sk-", "gsk_", "xai-", "r8_", "hf_", "earer ", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
    *("xox", "AKIA", "ASIA", "AIza", "pypi-", "eyJ", "-----BEGIN"),
)
_SHOWN = 6
# Variables with keys of other forms; a value shorter than this may be a word.
_VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
_LONG = 16


def find_credential(text: str) -> str | None:
    """Return the kind and first characters of a secret that a text seems to contain.

    >>> find_credential("authorise with sk-proj-0123456789abcdefghij please")
    "an API key ('sk-pro...')"
    >>> find_credential("a risk-based, task-oriented-and-well-tested-approach")
    """
    found = next(_of_a_form(text), None)
    return None if found is None else f"{found[0]} ('{shown_of(text[found[1] : found[2]])}')"


def shown_of(secret: str) -> str:
    """Return the first characters of a secret."""
    return f"{secret[:_SHOWN]}..."


def find_credentials(text: str) -> list[tuple[str, int, int]]:
    """Return kind, start and end of each secret that a text seems to contain, the keys of the environment among them.

    >>> find_credentials("authorise with sk-proj-0123456789abcdefghij please")
    [('an API key', 15, 43)]
    """
    found = {(start, end): kind for kind, start, end in _of_a_form(text)}
    for name, key in ((name, os.environ.get(name, "")) for name in _VARIABLES):
        places = re.finditer(re.escape(key), text) if len(key) >= _LONG else ()
        # It may have a form, too.
        found = {place.span(): f"the value of {name}" for place in places} | found
    return [(kind, *place) for place, kind in sorted(found.items())]


def _of_a_form(text: str) -> Iterator[tuple[str, int, int]]:
    kinds = tuple(_PATTERNS)
    return ((kinds[(found.lastindex or 1) - 1], *found.span()) for found in _ANY.finditer(text))


def masked(text: str) -> str:
    """Return a text with ``***`` for each secret that it seems to contain, the keys of the environment among them.

    >>> masked("authorise with sk-proj-0123456789abcdefghij please")
    'authorise with *** please'
    """
    for key in map(os.environ.get, _VARIABLES):
        text = text.replace(key, "***") if key and len(key) >= _LONG else text
    return _ANY.sub("***", text) if any(mark in text for mark in _MARKS) else text
