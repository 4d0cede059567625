"""Why an answer of a provider's API has no reply."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pytest_ragmetrics.judges.transport import shown


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Why an answer has no reply; a ``passing`` one is asked for once more, with more room if it ``is_cut``."""

    text: str
    passing: bool = False
    is_cut: bool = False


#: The limit of the length of a reply was reached.
CUT = Problem(
    text="was cut off by its length limit; raise max_tokens, or give it shorter texts", passing=True, is_cut=True
)


def unlike(label: str, answer: object, check: str) -> Problem:
    """Return the problem of an answer that has not the form of the API; ``check`` names what may be set wrongly."""
    return Problem(text=f"does not answer like the {label} API, it sent {came(answer)}; check {check}", passing=True)


def no_text(content: object) -> Problem | None:
    """Return the problem of what stands where the text of a reply should, ``None`` for a text."""
    if isinstance(content, str) and content.strip():
        return None
    what = "nothing" if content is None or isinstance(content, str) else f"what is no text: {came(content)}"
    return Problem(text=f"replied with {what}", passing=True)


def came(answer: object) -> str:
    """Return the beginning of an answer for an error message, without what looks like a key.

        >>> came({"error": 500})
    X
    """
    return shown(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))
