"""Telling whether the words beside a quotation attribute it to a source: the handbook says "…", "…", according to it.

``attribution_words.txt`` has the words of saying, and those of who asks and of what is denied or doubted: neither
"you say" nor "it does not say" claims that a source has the words.
"""

from __future__ import annotations

import re
from functools import partial

from pytest_ragmetrics.text.characters import UNSPACED_LETTERS
from pytest_ragmetrics.text.quotations import Quotation
from pytest_ragmetrics.text.words import MARKS, fold_word, word_list

_words = partial(word_list, "attribution_words.txt")
# How far the words beside a quotation are looked at: characters, and words between it and what attributes it.
_NEAR = 100
_NEAR_UNSPACED = 16
_FARTHEST = 6
# Words before a quotation that begins its sentence.
_CONJUNCTIONS = 1
_LETTERS = rf"[^\W_{UNSPACED_LETTERS}](?:[{MARKS}]|[^\W_{UNSPACED_LETTERS}])*"
_WORD = re.compile(rf"{_LETTERS}(?:['\u2019.&-]{_LETTERS})*")
_SENTENCE = re.compile(r"[.!?\u2026][\"'\u201d\u2019\u00bb)\]]*\s|[;。！？；؟।\u2022]|\n\s*\n|\n[-*>#\d]")
_CLAUSE = re.compile(r"\[(?!\d)|[,:\uff0c\u060c\uff1a(\u2013\u2014]|\s-\s")
_BESIDE = " \t\r\n\u00a0\u3000*_,:\uff0c\uff1a\u060c\u2013\u2014-\u2026("
_ANNOUNCES = re.compile(r"[:\uff1a][\s*_(]*$")
# What a quotation ends with before words of its own sentence that say whose it is.
_BREAKS = ",?!\uff0c\u060c"
_UNSPACED = re.compile(f"[{UNSPACED_LETTERS}]")
# A shorter stem has no endings.
_SHORTEST_STEM, _ENDING = 5, 3
_SEMITIC = re.compile("[\u05d0-\u06ff]")
_HANGUL = re.compile("[\u1100-\u11ff\uac00-\ud7a3]")
_READS = frozenset(("reads", "lit", "lee", "legge"))
_READERS = frozenset(("he", "she", "who", "elle", "il", "ella", "el", "lui", "lei", "ela", "ele"))


def is_attributed(text: str, quotation: Quotation) -> bool:
    """Tell whether the sentence says that somebody other than who asks says or writes what is quoted.

    The word of saying stands right before the quotation, or before a colon, or right behind it and a comma. What is
    denied, doubted or said by who asks is not attributed.

    >>> from pytest_ragmetrics.text.quotations import find_quotations
    >>> text = 'The handbook says "it is shut". You say "it is open". It does not say "it is open".'
    >>> [is_attributed(text, quotation) for quotation in find_quotations(text)]
    [True, False, False]
    """
    opening, closing = quotation.marks
    before = text[max(quotation.start - _NEAR, 0) : quotation.start].rstrip().removesuffix(opening)
    before = _SENTENCE.split(before)[-1]
    after = text[quotation.end : quotation.end + _NEAR].lstrip().removeprefix(closing)
    return _announces(before) or _names_source(before, quotation.text, _SENTENCE.split(f"{after} ")[0])


def _announces(before: str) -> bool:
    """Tell whether the words before a quotation attribute it."""
    sentence = before.rstrip(_BESIDE)
    light = _words("light")
    clauses = _CLAUSE.split(sentence)
    # "It says, that".
    clause = next((clause for clause in reversed(clauses) if not light.issuperset(_folded(clause))), "") or clauses[-1]
    if _UNSPACED.search(clause[-1:]):
        near = fold_word(clause[-_NEAR_UNSPACED:])
        says = near.endswith(tuple(_words("unspaced says"))) or _has_any(near, "unspaced according")
        return says and _is_claimed_unspaced(near)
    words = _folded(clause)
    at = len(words)
    while at and (words[at - 1] in light or words[at - 1].isdigit()):
        at -= 1
    # Before a colon, and where the verb precedes its subject, words may stand between.
    if _ANNOUNCES.search(before) or _SEMITIC.search(clause):
        last = range(max(len(words) - _FARTHEST, 0), len(words))
    else:
        last = range(max(at - 1, 0), at)
    # Who wrote "...", without a colon or "that", is the author of a work.
    is_introduced = at < len(words) or _ANNOUNCES.search(before)
    verbs = _words("says") | _words("wrote") if is_introduced else _words("says")
    said = [index for index in last if words[index] in verbs and _is_no_noun(words[: index + 1])]
    names = any(word in _words("according") and _is_no_noun(words[: index + 1]) for index, word in enumerate(words))
    # "The handbook puts it like this: ...", "the handbook makes clear that ...".
    is_told = bool(_ANNOUNCES.search(before)) or not _words("that").isdisjoint(words[-1:])
    names = names or (is_told and not _words("sources").isdisjoint(words[-_FARTHEST:]))
    if not said and not names:
        return False
    # "Your question, which says": a clause without a subject of its own.
    whole = words if len(words) > 2 else _folded(sentence)  # noqa: PLR2004 - "which says" has two
    return _is_claimed(whole)


def _is_no_noun(words: list[str]) -> bool:
    """Tell whether the last word attributes something; "the claims", "el segundo" and "she reads" do not."""
    *_, previous, word = "", *words
    return previous not in _words("determiners") and not (word in _READS and previous in _READERS)


def _names_source(before: str, span: str, after: str) -> bool:
    """Tell whether the words behind a quotation attribute it; languages with the verb last have its subject before."""
    around = fold_word(before[-_NEAR_UNSPACED:] + after[:_NEAR_UNSPACED])
    if fold_word(after[:_NEAR_UNSPACED]).startswith(tuple(_words("unspaced says behind"))):
        return _is_claimed_unspaced(around)
    words = _folded(_CLAUSE.split(after.lstrip(_BESIDE))[0])
    if words and _is_said_behind(words[0]):
        return _is_claimed([*_folded(before), *words]) and _is_claimed_unspaced(around)
    says = _words("says") | _words("according")
    begins = len(_folded(before)) <= _CONJUNCTIONS
    if begins and words and words[0] in _words("according"):
        return _is_claimed(words)
    is_parted = after.lstrip()[:1] in tuple(_BREAKS) or span.endswith(tuple(_BREAKS))
    return begins and is_parted and any(word in says for word in words[:_FARTHEST]) and _is_claimed(words)


def _is_said_behind(word: str) -> bool:
    # Korean writes more behind it without a space.
    return word in _words("says behind") or word.startswith(tuple(filter(_HANGUL.match, _words("says behind"))))


def _folded(text: str) -> list[str]:
    return [fold_word(word) for word in _WORD.findall(text)]


def _is_claimed(words: list[str]) -> bool:
    return not any(word in _words("doubts") or word.endswith(("n't", "n\u2019t")) or _is_asker(word) for word in words)


def _is_claimed_unspaced(folded: str) -> bool:
    return not _has_any(folded, "unspaced doubts") and not _has_any(folded, "unspaced askers")


def _has_any(folded: str, section: str) -> bool:
    return any(word in folded for word in _words(section))


def _is_asker(word: str) -> bool:
    shortest = max(len(word) - _ENDING, _SHORTEST_STEM)
    return word in _words("askers") or any(word[:end] in _words("askers") for end in range(shortest, len(word)))
