"""What a bracket may not add to a quotation, and not stand for either: negations and numbers, in many languages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from unicodedata import normalize

#: Where words are not parted by spaces, or carry endings, a part of them is enough.
_NEGATING = re.compile(
    r"不|没|沒|無|无|非|未|勿|莫|否|ない|なか[っろ]|なく|ません|ずに|ぬ|ไม่|มิ|ບໍ່|않|없|못|아니"
    r"|n['\u2019\u02bc]t\b|\bn['\u2019\u02bc]\w|\b(?:kein|nessun|ningun|nenhum|żadn|žádn)"
)
_BETWEEN_WORDS = re.compile(
    r"[\s!-&(-/:-@\[-`{-~\u00a1-\u00bf\u060c\u061b\u061f\u0964\u0965\u2010-\u2018\u201a-\u205e\u3001-\u301f]+"
)
_HAN_NUMBER = re.compile(r"[〇零一二三四五六七八九十百千万萬億亿兆两兩半数數几幾]{1,8}[^\W\d_]{0,2}")


def is_licensed(words: str) -> bool:
    """Tell whether a bracket may put these words in, or stand for them: no negation and no number among them.

    >>> [is_licensed(words) for words in ("the company", "not", "kein einziger", "twelve of them", "1914", "不曾")]
    [True, False, False, False, False, False]
    """
    if is_negation(words) or any(char.isdigit() for char in words):
        return False
    found = _words(words)
    return _word_lists()["numbers"].isdisjoint(found) and not any(map(_HAN_NUMBER.fullmatch, found))


def is_negation(words: str) -> bool:
    """Tell whether there is a negation among these words.

    >>> is_negation(", never ,"), is_negation("Isn't it?"), is_negation("always")
    (True, True, False)
    """
    return bool(_NEGATING.search(words.casefold())) or not _word_lists()["negations"].isdisjoint(_words(words))


def _words(text: str) -> list[str]:
    """Return the words of a text, caseless; marks on letters, vowel signs among them, belong to the words."""
    return [
        word for token in _BETWEEN_WORDS.split(normalize("NFC", text.casefold())) if (word := token.strip("'\u2019"))
    ]


@lru_cache(maxsize=1)
def _word_lists() -> Mapping[str, frozenset[str]]:
    text = (files(__package__ or "") / "bracket_words.txt").read_text("utf-8")
    parts = (part.partition("\n") for part in text.split("# ") if part)
    return {name: frozenset(_words(block)) for name, _, block in parts}
