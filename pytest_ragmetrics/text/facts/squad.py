"""The words of a short answer, as the SQuAD data set compares them."""

from __future__ import annotations

import re
import unicodedata

_ARTICLES = frozenset(("a", "an", "the"))
# Runs of letters, marks and digits; each character of a script without spaces is a word of its own.
_UNSPACED = "\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e01-\u0e4e\u1000-\u109f"


def answer_tokens(text: str) -> list[str]:
    """Return the words of an answer without case, punctuation and English articles.

    >>> answer_tokens("The U.S. Navy's first ship")
    ['us', 'navys', 'first', 'ship']
    >>> answer_tokens("东京 Tower")
    ['东', '京', 'tower']
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(char for char in folded if unicodedata.category(char)[0] not in "PSC" or char.isspace())
    words = re.findall(f"[{_UNSPACED}]|[^\\s{_UNSPACED}]+", kept)
    return [word for word in words if word not in _ARTICLES]
