"""Making text safe and short enough to be printed."""

from __future__ import annotations

import re

# C0 and C1 controls, DEL, the bidirectional controls and lone surrogates: a terminal may obey the first
# three, and cannot encode the last. Line breaks are white space and become a blank.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SPACE = re.compile(r"\s+")


def printable(text: str) -> str:
    r"""Return the text without characters that steer a terminal, on one line.

    >>> printable("red \x1b[31malert\n\u202eover")
    'red [31malert over'
    """
    return _SPACE.sub(" ", _UNPRINTABLE.sub("", text)).strip()


def shortened(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, its middle left out.

    >>> shortened("abcdefghij", 7)
    'abc … j'
    """
    if len(text) <= limit:
        return text
    head = (limit - 3) * 3 // 4
    return f"{text[:head]} … {text[len(text) - (limit - 3 - head) :]}"
