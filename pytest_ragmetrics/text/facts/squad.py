"""The words of a short answer, as the SQuAD data set compares them."""

from __future__ import annotations

import re
import unicodedata

from pytest_ragmetrics.text.scripts import UNSPACED

_ARTICLES = frozenset(("a", "an", "the"))
# Runs of letters, marks and digits; each character of a script without spaces is a word of its own.
_WORD = re.compile(f"[{UNSPACED}]|[^\\s{UNSPACED}]+")


def answer_tokens(text: str) -> list[str]:
    """Return the words of an answer without case, punctuation and English articles.

    >>> answer_tokens("The U.S. Navy's first ship")
    ['us', 'navys', 'first', 'ship']
    >>> answer_tokens("东京 Tower")
    ['东', '京', 'tower']
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(char for char in folded if unicodedata.category(char)[0] not in "PSC" or char.isspace())
    return [word for word in _WORD.findall(kept) if word not in _ARTICLES]
