"""What was found, and whether there is something to do about it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from pytest_ragmetrics.judges.connection import ANTHROPIC, OPENAI
from pytest_ragmetrics.text.printable import printable

# To hide a single letter would hide everything else.
_SHORTEST = 4
_ACCOUNT = re.compile(r"//[^/\s@]+@")
_QUERY = re.compile(r"(https?://[^\s?]*\?)[^\s,;)]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    """One thing that was looked at; ``to_do`` says what to do about it, and is empty where all is well."""

    topic: str
    text: str
    to_do: str = ""

    def lines(self) -> list[str]:
        """Return it as lines to print, without keys and passwords."""
        head = f"{'TO DO' if self.to_do else 'ok':<7}{self.topic + ':':<11}{_safe(self.text)}"
        return [head, f"{'':<18}-> {_safe(self.to_do)}"] if self.to_do else [head]


def _safe(text: str) -> str:
    for vendor in (OPENAI, ANTHROPIC):
        key = os.environ.get(vendor.key_variable, "").strip()
        text = text.replace(key, "***") if len(key) >= _SHORTEST else text
    return printable(_QUERY.sub(r"\1***", _ACCOUNT.sub("//***@", text)))
