"""Recognising a secret in a text that is about to be committed."""

from __future__ import annotations

import re

# What stands before a pattern must not be a letter or digit: "task-" ends like a key begins.
_PATTERNS = {
    "an API key": r"sk-(?=[\w-]*[0-9])[A-Za-z0-9_-]{16,}|(?:gsk_|xai-|r8_|hf_)(?=\w*[0-9])[A-Za-z0-9]{20,}",
    "a bearer token": r"[Bb]earer +(?=\S*[0-9])[A-Za-z0-9._~+/-]{16,}=*",
    "a GitHub token": r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}",
    "a GitLab token": r"glpat-[A-Za-z0-9_-]{20,}",
    "a Slack token": r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    "an AWS key": r"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])",
    "a Google key": r"AIza[0-9A-Za-z_-]{35}",
    "a package index token": r"pypi-[A-Za-z0-9_-]{40,}",
    "a JSON web token": r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
}
_ANY = re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(f"({pattern})" for pattern in _PATTERNS.values()) + ")")
_SHOWN = 6


def find_credential(text: str) -> str | None:
    """Say what secret a text seems to hold, showing no more than its first characters; ``None`` if none.

    >>> find_credential("authorise with sk-proj-0123456789abcdefghij please")
    "an API key ('sk-pro...')"
    >>> find_credential("a risk-based, task-oriented-and-well-tested-approach")
    """
    found = _ANY.search(text)
    if found is None:
        return None
    kind = tuple(_PATTERNS)[(found.lastindex or 1) - 1]
    return f"{kind} ('{found.group()[:_SHOWN]}...')"
