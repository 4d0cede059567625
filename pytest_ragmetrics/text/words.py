"""How long a text is in words, in scripts with and without spaces."""

from __future__ import annotations

import re

from pytest_ragmetrics.text.scripts import UNSPACED

_UNSPACED = re.compile(f"[{UNSPACED}]")
#: From the first letter or digit of a white-space token to the token's end: one match a word.
_WORD = re.compile(r"[^\W_]\S*")


def count_words(text: str) -> int:
    """Count the words of a text; two characters of a script written without spaces make a word.

    A word is a white-space token with a letter or a digit outside the scripts without spaces (Han, kana, Thai,
    Lao, Khmer, Myanmar); half the characters of those, rounded down over the whole text, are added.

    >>> count_words("Rock 'n' roll -- it's 1 o'clock!")
    6
    >>> count_words("新しい本 by Ann")
    4
    """
    if text.isascii():
        return len(_WORD.findall(text))
    spaced, unspaced = _UNSPACED.subn("", text)
    return len(_WORD.findall(spaced)) + unspaced // 2
