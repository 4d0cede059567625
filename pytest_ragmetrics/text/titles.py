"""Telling a title or a name in quotation marks from a passage, by how it is written and by the words around it.

``title_words.txt`` has what may be small in a title, the finite verbs of statements, and the words of works as stems.
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
# Endings of German adjectives.
_ADJECTIVE = ("e", "en", "er", "es", "em")
_RELATIVE = frozenset(("who", "that", "which", "when", "where"))
_BEHIND_PARTICIPLES = frozenset(("", "by", "from", "with"))
_BEHIND_VERBS = frozenset(
    [
        "the",
        "a",
        "an",
        "its",
        "their",
        "his",
        "her",
        "no",
        "at",
        "to",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
    ]
)
_GERUND = re.compile(r"\w{3,}ing")
_SHORTEST_VERB = 4
_PLURALS = frozenset(("men", "women", "people", "children", "police", "fish", "you", "they", "we"))
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

    It does where all its words but articles, prepositions and conjunctions have a capital (in German, where nouns have
    one, adjectives need none) and none is a finite verb, or where it is short, no sentence, and beside the word of a
    work. Capitals make no title of what somebody says or writes, nor of what begins with "I", "we" or "you".

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
    if _has_finite_verb(words):
        return False
    small = [word for word in words if word.islower()]
    large = [word for word in words if not (word.islower() or word[0].isdigit())]
    if len(large) < 2:  # noqa: PLR2004 - a name has two
        return guess_language(text) == "de" and len(words) > 1 and _is_german_title(words)
    is_in_capitals = all(fold_word(word) in _words("small") for word in small)
    if guess_language(text) != "de" or (is_in_capitals and not _are_german(small)):
        return is_in_capitals
    return _is_german_title(words)


def _are_german(words: list[str]) -> bool:
    return all(is_function_word(fold_word(word), "de") for word in words)


def _has_finite_verb(words: list[str]) -> bool:
    """Tell whether words in title case make a statement: an auxiliary, or a verb that follows its subject."""
    folded = [fold_word(word) for word in words]
    if not _words("finite").isdisjoint(folded[1:]) or not _words("finite small").isdisjoint(words[1:]):
        return True
    small = _words("small") | _RELATIVE
    return any(
        before not in small and (_is_action(word, before) or _is_any_verb(word, before, after))
        for before, word, after in zip(folded, folded[1:], (*folded[2:], ""), strict=False)
    )


def _is_action(word: str, subject: str) -> bool:
    """Tell whether an English word is a verb behind its subject."""
    if word in _words("past"):
        return True
    actions = _words("actions")
    if word in actions:
        return subject.endswith("s") or subject in _PLURALS
    return word.endswith("s") and not {word[:-1], word.removesuffix("es"), re.sub("ies$", "y", word)}.isdisjoint(
        actions
    )


def _is_any_verb(word: str, subject: str, following: str) -> bool:
    """Tell whether a word has the ending of an English verb, where its subject and what follows it agree with that.

    Neither "Getting Started" nor "Lessons Learned from" is a statement; no plural is before an article or a number.
    """
    if len(word) <= _SHORTEST_VERB:
        return False
    if word.endswith("ed"):
        return not _GERUND.fullmatch(subject) and following not in _BEHIND_PARTICIPLES
    return word.endswith("s") and not subject.endswith("s") and following in _BEHIND_VERBS


def _is_german_title(words: list[str]) -> bool:
    """Tell whether all small words are German function words, or adjectives between one of those and a noun."""
    is_before_noun = True
    for word, following in pairwise((*words, "")):
        is_function = is_function_word(fold_word(word), "de")
        if is_function or not word.islower():
            is_before_noun = is_function
        elif not (
            is_before_noun and word.endswith(_ADJECTIVE) and following[:1].isupper() | following.endswith(_ADJECTIVE)
        ):
            return False
    return any(word[0].isupper() for word in words[1:])


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
