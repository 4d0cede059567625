"""Telling a title or a name in quotation marks from a passage, by how it is written and by the words around it.

``title_words.txt`` has what may be small in a title, and the words of works (book, film, song) as stems.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise

from pytest_ragmetrics.text.attributions import is_attributed
from pytest_ragmetrics.text.characters import UNSPACED_LETTERS
from pytest_ragmetrics.text.quotations import Quotation
from pytest_ragmetrics.text.sentences import guess_language
from pytest_ragmetrics.text.words import fold_word, is_function_word, word_list

_words = partial(word_list, "title_words.txt")
# Words of a title by its capitals, and of one by the word of a work beside it.
_LONGEST, _LONGEST_NAMED = 14, 10
# How far the words beside a quotation are looked at, and how much longer than its stem the word of a work may be.
_NEAR = 48
_LONGEST_AUTHOR = 6
_ENDING = 3
_WORD = re.compile(r"[^\W_]+(?:['\u2019.&-][^\W_]+)*")
# A passage of several sentences, or one that ends with a full stop.
_SENTENCES = re.compile(r"[.!?;](?:\s+\S)|[。\uff01\uff1f\uff1b।؟](?=.)|[.。।;:,]$", re.DOTALL)
_BESIDE = " \t\u00a0\u3000*_"
# What Korean writes between a quotation and the word for what it is.
_PARTICLE = re.compile("^이?라는\\s+")
_CLITIC = re.compile("['\u2019]")
_UNSPACED = re.compile(f"[{UNSPACED_LETTERS}]")
# Brackets and marks about the word of a work; one with others announces or owns what is quoted: "the book: ...".
_MARKED = re.compile("[:;,.\u2026\u2013\u2014'\u2019]")
_OPENS, _ENDS = "([{\u00a1\u00bf", ")]}.,;!?\u2026\u060c\u06d4\u0964"


def looks_like_title(text: str, quotation: Quotation) -> bool:
    """Tell whether a quotation in a text looks like the title of a work, or like a name, and not like a passage.

    It does where all its words but articles, prepositions and conjunctions have a capital (in German, where all nouns
    have one, two words in a row besides the first), or where it is short, no sentence, and beside the word of a work.
    Capitals make no title of what somebody says or writes, nor of what begins with "I", "we" or "you".

    >>> from pytest_ragmetrics.text.quotations import find_quotations
    >>> text = 'In "The Turn of the Screw" and the song "Nur ein Wort von dir" it says "the door was open".'
    >>> [looks_like_title(text, quotation) for quotation in find_quotations(text)]
    [True, True, False]
    """
    # A block quote has no closing mark.
    if not quotation.marks[1] or quotation.words > _LONGEST:
        return False
    if (
        quotation.words <= _LONGEST_NAMED
        and not _SENTENCES.search(quotation.text.rstrip(",").rstrip())
        and _is_named(text, quotation)
    ):
        return True
    return _is_in_title_case(quotation.text, text) and not _is_speech(text, quotation)


def _is_in_title_case(span: str, text: str) -> bool:
    words = _WORD.findall(span)
    # Letters without case, and rows of capitals, say nothing.
    if not words or ";" in span or span.upper() == span or _UNSPACED.search(span) or words[0].islower():
        return False
    small = [word for word in words if word.islower()]
    large = [word for word in words if not (word.islower() or word[0].isdigit())]
    if len(large) < 2 or not all(fold_word(word) in _words("small") for word in small):  # noqa: PLR2004 - a name has two
        return False
    if guess_language(text) != "de" or not all(is_function_word(fold_word(word), "de") for word in small):
        return True
    # The words between two marks: no row goes over a comma.
    rows = [_WORD.findall(part) for part in re.split(r"[^\w\s'\u2019&.-]+", span.removeprefix(words[0]))]
    return any(one in large and other in large for row in rows for one, other in pairwise(row))


def _is_speech(text: str, quotation: Quotation) -> bool:
    """Tell whether a quotation in title case is what somebody says all the same."""
    first, *_ = _WORD.findall(quotation.text)
    if fold_word(_CLITIC.split(first)[0]) in _words("speakers"):
        return True
    # One that a verb follows is what the sentence is about.
    behind = text[quotation.end : quotation.end + _NEAR].lstrip().removeprefix(quotation.marks[1]).lstrip(_BESIDE)
    followed = _WORD.match(behind)
    return is_attributed(text, quotation) and not (followed and fold_word(followed[0]) in _words("verbs"))


def _is_named(text: str, quotation: Quotation) -> bool:
    """Tell whether the words beside a quotation say that it is a work."""
    opening, closing = quotation.marks
    before = text[max(quotation.start - _NEAR, 0) : quotation.start].rstrip().removesuffix(opening).rstrip(_BESIDE)
    after = text[quotation.end : quotation.end + _NEAR].lstrip().removeprefix(closing).lstrip(_BESIDE)
    first = next(filter(str.isalpha, quotation.text), "")
    if first.islower() and not text.islower():
        return False
    if before.endswith(("《", "〈", *_words("unspaced works"))):
        return True
    # 『…』 is the mark of titles, where it is not what somebody says.
    if after.startswith(tuple(_words("unspaced works behind"))) or (opening == "『" and not after.startswith("と")):
        return True
    left, right = _skip_author(before.split()), _PARTICLE.sub("", after).split()[:1]
    return any(map(_is_work, (*(word.lstrip(_OPENS) for word in left), *(word.rstrip(_ENDS) for word in right))))


def _skip_author(words: list[str]) -> list[str]:
    """Return the last word that is no part of a name: "the novel by Anna Smith" has the word of a work there."""
    for at, word in enumerate(words[-1:-_LONGEST_AUTHOR:-1]):
        if not (word[0].isupper() or (at and fold_word(word) in _words("small"))) or _is_work(word):
            return [word]
    return []


def _is_work(word: str) -> bool:
    folded = "" if _MARKED.search(word) else fold_word(word)
    return any(folded[:length] in _words("works") for length in range(max(len(folded) - _ENDING, 1), len(folded) + 1))
