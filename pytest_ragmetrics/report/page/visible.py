"""Making every character of a foreign text visible and harmless on a page."""

from __future__ import annotations

import re

# Controls (HTML forbids some and swallows others), bidirectional embeddings, overrides and isolates (they reorder
# what follows), tag characters (text that only a model reads), lone surrogates and noncharacters (no valid UTF-8,
# or no valid HTML). Tab and line feed are layout.
_UNSEEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    "\U000e0000-\U000e007f"
    "]|[" + "".join(f"{chr(plane + 0xFFFE)}-{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000)) + "]"
)


def visible(text: str) -> str:
    r"""Return the text with escapes for what cannot be seen; apply after cutting, it changes lengths.

    Line ends become line feeds, as a browser would read them.

    >>> visible("bell \a, over \u202etxet, half \ud83d")
    'bell \\x07, over \\u202etxet, half \\ud83d'
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(_shown, text.replace("\r\n", "\n"))


def _shown(match: re.Match[str]) -> str:
    return ascii(match.group())[1:-1]
