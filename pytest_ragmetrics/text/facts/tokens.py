"""The words of a text in any script, as metrics of overlap count them."""

from __future__ import annotations

import unicodedata

from pytest_ragmetrics.text.scripts import is_mark, is_unspaced, is_word


def word_tokens(text: str) -> list[str]:
    """Return the words of a text without case: runs of letters, digits and the marks on them.

    Each character of a script written without spaces is a word of its own.

    >>> word_tokens("Don't panic: 東京 in 2020, हिन्दी!")
    ['don', 't', 'panic', '東', '京', 'in', '2020', 'हिन्दी']
    """
    tokens: list[str] = []
    joins = False
    for char in unicodedata.normalize("NFKC", text).casefold():
        if not is_word(char):
            joins = False
        elif is_unspaced(char) and not is_mark(char):
            tokens.append(char)
            joins = False
        elif joins or (is_mark(char) and tokens):
            tokens[-1] += char
        else:
            tokens.append(char)
            joins = True
    return tokens
