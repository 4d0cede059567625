"""Reading English numbers that are written in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_IRREGULAR = {"first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12}
_ORDINALS = {
    **{f"{word}th": value for value, word in enumerate(_SMALL) if value not in _IRREGULAR.values()},
    **{f"{word[:-1]}ieth": 10 * value for value, word in enumerate(_TENS, start=2)},
    **_IRREGULAR,
}
_VALUE = {
    **{word: value for value, word in enumerate(_SMALL)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
    **_ORDINALS,
}
_SCALE = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_WORD = "|".join(sorted({*_VALUE, *_SCALE, *(f"{word}th" for word in _SCALE)}, key=len, reverse=True))
_PHRASE = re.compile(rf"\b(?:{_WORD})(?:(?:\s+and\s+|\s+|-)(?:{_WORD}))*\b", re.IGNORECASE)
_PART = re.compile(rf"\b(?:{_WORD})\b", re.IGNORECASE)
_HUNDRED = 100
_CENTURIES = range(11, 21)
_LAST_PLAIN = 10
_FIRST_DECADE = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberWord:
    """A number in words and its place; ``plain`` ones (one, third, ten) are often said without counting anything."""

    text: str
    start: int
    end: int
    value: int
    plain: bool


def find_number_words(text: str) -> Iterator[NumberWord]:
    """Yield the numbers a text writes in English words.

    >>> [word.value for word in find_number_words("Twenty-five of two hundred and six bones, in nineteen eighty-four")]
    [25, 206, 1984]
    """
    for match in _PHRASE.finditer(text):
        parts = [part.casefold() for part in _PART.findall(match.group())]
        value = _evaluate(parts)
        if value is not None:
            plain = len(parts) == 1 and (parts[0] in _ORDINALS or value <= _LAST_PLAIN or parts[0] in _SCALE)
            yield NumberWord(text=match.group(), start=match.start(), end=match.end(), value=value, plain=plain)


def _evaluate(parts: list[str]) -> int | None:
    """Return the value of a number in words, ``None`` if the words make none: one third, six seven."""
    total = group = 0
    for part in parts:
        scale = _SCALE.get(part.removesuffix("th"))
        if scale is None:
            room, value = _room(group), _VALUE[part]
            if group in _CENTURIES and value >= _FIRST_DECADE:  # nineteen eighty-four
                group *= _HUNDRED
            elif value >= room:
                return None
            group += value
        elif scale == _HUNDRED:
            group = (group or 1) * scale
        else:
            total += (group or 1) * scale
            group = 0
    return total + group


def _room(group: int) -> int:
    """Return below what a part must be to follow: twenty leaves room for one to nine, two hundred for up to 99."""
    if group % _HUNDRED == 0:
        return _HUNDRED
    return 10 if group % 10 == 0 else 0
