"""Where a passage may begin and end: between words, never inside a word or a number."""

from __future__ import annotations

import re

from pytest_ragmetrics.text.scripts import INVISIBLE, are_joined

# Emphasis and what has no width do not part a word.
_TRANSPARENT = re.compile(f"[*_~{INVISIBLE}]+")
_NEAR = 16

_DASH = "-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
_WITHIN_NUMBER = ".,:/'\u2019\u2044\u00b7\u066b\u066c^"
_GROUPING = " \u00a0\u2009\u202f"

# A number that goes on to the left: 3.|5, 10:|30, .|5, a sign, and groups of three digits.
_NUMBER_BEFORE = re.compile(rf"\d[{_WITHIN_NUMBER}]$|(?:^|[^\w.])[.,]$|(?:^|[\s(\[=<>~$€£¥])[{_DASH}]$")
_NUMBER_AFTER = re.compile(rf"[{_WITHIN_NUMBER}]\d")
_GROUP_BEFORE = re.compile(rf"(?<!\d)\d{{1,3}}[{_GROUPING}]$")
_GROUP_AFTER = re.compile(rf"[{_GROUPING}]\d{{3}}(?!\d)")
_GROUP = re.compile(r"\d{3}(?!\d)")
_FIRST_GROUP = re.compile(r"(?<!\d)\d{1,3}$")

# Cutting these off turns a statement round: non-|toxic, ca|n't.
_NEGATING_PREFIX = re.compile(r"\b(?:non|un|anti|nicht|niet)[-\u2010\u2011]$", re.IGNORECASE)
_NEGATING_SUFFIX = re.compile(r"['\u2018\u2019\u02bc\uff07]t\b", re.IGNORECASE)
_SPLIT_NEGATION = re.compile(r" n['\u2018\u2019\u02bc\uff07]t\b", re.IGNORECASE)
_NEGATED_BEFORE = re.compile(r"n['\u2018\u2019\u02bc\uff07]$", re.IGNORECASE)

_BROKEN_BEFORE = re.compile(r"[^\W\d_][-\u2010\u00ad][ \t]*\r?\n[ \t>]*$")
_BROKEN_AFTER = re.compile(r"[-\u2010\u00ad][ \t]*\r?\n[ \t>]*[^\W\d_]")


def stands_alone(text: str, start: int, end: int) -> bool:
    """Tell whether ``text[start:end]`` begins and ends on word boundaries of the text.

    Scripts without spaces have no such boundaries, except inside numbers.

    >>> stands_alone("They grow faster.", 5, 9), stands_alone("They grow faster.", 6, 14)
    (True, False)
    >>> stands_alone("It cost 3.5 million.", 10, 19)
    False
    """
    return begins_word(text, start) and ends_word(text, end)


def begins_word(text: str, start: int) -> bool:
    """Tell whether a passage may begin here."""
    before = text[max(start - _NEAR, 0) : start]
    if not before:
        return True
    first = text[start]
    if before[-1] == " " and not first.isdigit() and "\n" not in before:
        return True
    left = _TRANSPARENT.sub("", before)[-1:]
    if left and are_joined(left, first):
        return False
    if first.isdigit() and _number_goes_on_before(text, start, before):
        return False
    if first in "tT" and _NEGATED_BEFORE.search(before) and ends_word(text, start + 1):
        return False
    return not (_NEGATING_PREFIX.search(before) or _BROKEN_BEFORE.search(before))


def ends_word(text: str, end: int) -> bool:
    """Tell whether a passage may end here."""
    after = text[end : end + _NEAR]
    if not after:
        return True
    last = text[end - 1]
    if after[0] == " " and not last.isdigit():
        # Tokenised text parts a negation from its verb.
        return after[1:2] not in ("n", "N") or not _SPLIT_NEGATION.match(after)
    right = _TRANSPARENT.sub("", after)[:1]
    if right and are_joined(last, right):
        return False
    if last.isdigit() and _number_goes_on_after(text, end, after):
        return False
    if last in "nN" and _NEGATING_SUFFIX.match(after):
        return False
    return not (last.isalpha() and _BROKEN_AFTER.match(after))


def _number_goes_on_before(text: str, start: int, before: str) -> bool:
    if _NUMBER_BEFORE.search(before):
        return True
    return bool(_GROUP_BEFORE.search(before) and _GROUP.match(text, start))


def _number_goes_on_after(text: str, end: int, after: str) -> bool:
    if _NUMBER_AFTER.match(after):
        return True
    return bool(_GROUP_AFTER.match(after) and _FIRST_GROUP.search(text[max(end - _NEAR, 0) : end]))
