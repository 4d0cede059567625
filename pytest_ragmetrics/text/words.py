"""Words of a text: how many, where they begin and end, which carry content, and which are compared.

Used by the alignment of quotations, by the lexical metrics and by the local judge.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from pytest_ragmetrics.core.files import packaged_text
from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.unicode import (
    SOUTHEAST_ASIAN,
    UNSPACED,
    UNSPACED_CHARACTER,
    UNSPACED_LETTERS,
    are_joined,
    caseless,
    composed,
)

#: From the first letter or digit of a white-space token to the token's end: one match a word.
_COUNTED = lazily(r"[^\W_]\S*")
#: Vowel signs and joiners, which are no letters to a regular expression, and belong into words all the same.
_UNREAD = f"{unicode.SOFT_HYPHEN}{unicode.TATWEEL}{unicode.JOINERS}"
MARKS = (
    f"{_UNREAD}\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u0711\u0730-\u074a"
    "\u07a6-\u07b0\u07eb-\u07f3\u08ca-\u0963\u0971-\u0dff\u0f18-\u0fbc\u135d-\u135f\u1712-\u1714\u1920-\u193b"
    "\u1b00-\u1b04\u1b34-\u1b44\u1b80-\u1b82\u1ba1-\u1bad\u1be6-\u1bf3\u1c24-\u1c37\ua980-\ua983\ua9b3-\ua9c0\uabe3-\uabea"
)
# The same with the vowel signs of Thai, Lao, Burmese and Khmer and those of kana.
_SIGNS = f"{MARKS}\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3"
_SIGNS += "\u3099\u309a"
#: What a word is: letters and digits with their marks; of scripts without spaces one character with its marks.
WORD = rf"[^\W_{UNSPACED}](?:[{MARKS}]|[^\W_{UNSPACED}])*|[{UNSPACED}](?<=\w)[{_SIGNS}]*"
_WORD = lazily(WORD)
# Where Thai, Lao, Khmer and Burmese have a space, seen or not, is a matter of taste.
_RUN = lazily(
    f"(?P<letters>[{SOUTHEAST_ASIAN}](?:[ {unicode.INVISIBLE}]{{0,2}}[{SOUTHEAST_ASIAN}])*)"
    f"|(?P<unspaced>[{UNSPACED_LETTERS}]+)|[^\\W_{UNSPACED_LETTERS}](?:[{MARKS}]|[^\\W_{UNSPACED_LETTERS}])*"
)
_ASCII_RUN = lazily("[0-9A-Za-z]+")
_DROPPED = lazily(f"[{_UNREAD}\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]")
# Most pairs of the letters of an alphabet are in any text of 2,000 characters; Burmese writes more of them for a word.
_IN_A_ROW, _IN_BURMESE = 3, 4
_LETTER = lazily(f"[{SOUTHEAST_ASIAN}]")
# In Han and kana, a pair of characters with one of these carries no content.
_FUNCTION_CHARACTERS = frozenset(
    "的了是在和有不也就都而及与或把被让给从到对于之其这那个们吗呢吧啊着很はがをにへとでもやのからまですだったいるなれ"
)
# Endings of inflected forms, and what Arabic writes before a word; enough must be left to mean something.
_ENDING = lazily(r"(?:ingly|edly|ings?|ed|ies|ied|ly|es|ern|er|en|em|e|s|y)$")
_PLURAL = lazily(r"(?<=..[^s])s$")
_ARTICLE = lazily("^(?:[وفبك]?ال|لل)")
_SHORTEST_STEM, _LONGEST_STEM = 4, 6
# Two keys are forms of one word when as much of the longer is the same; no key is as long as the last.
_SHORTEST_ALIKE, _ALIKE, _NO_KEY = 3, 0.6, 10**6
_SEMITIC = lazily("[\u0590-\u06ff]")
_ARTICLES = frozenset(("a", "an", "the"))
_ANSWER_WORD = lazily(f"[{UNSPACED}]|[^\\s{UNSPACED}]+")
# Emphasis and what has no width do not part a word.
_TRANSPARENT = lazily(f"[*_~{unicode.INVISIBLE}]+")
# How far from a boundary is looked.
_NEAR = 16
_WITHIN_NUMBER = f".,:/'\u2044{unicode.RIGHT_SINGLE}{unicode.NUMBER_MARKS}^"
_GROUPING = f" {unicode.THIN_SPACES}"
# A number that goes on to the left: 3.|5, 10:|30, .|5, a sign, and groups of three digits.
_NUMBER_BEFORE = lazily(
    rf"\d[{_WITHIN_NUMBER}]$|(?:^|[^\w.])[.,]$|(?:^|[\s(\[=<>~${unicode.CURRENCIES}])[-{unicode.DASHES}]$"
)
_NUMBER_AFTER = lazily(rf"[{_WITHIN_NUMBER}]\d")
_GROUP_BEFORE = lazily(rf"(?<!\d)\d{{1,3}}[{_GROUPING}]$")
_GROUP_AFTER = lazily(rf"[{_GROUPING}]\d{{3}}(?!\d)")
_GROUP = lazily(r"\d{3}(?!\d)")
_FIRST_GROUP = lazily(r"(?<!\d)\d{1,3}$")
# Cutting these off turns a statement round: non-|toxic, ca|n't.
_NEGATING_PREFIX = lazily(rf"\b(?:non|un|anti|nicht|niet)[-{unicode.HYPHENS}]$", re.IGNORECASE)
_NEGATING_SUFFIX = lazily(rf"['{unicode.APOSTROPHES}]t\b", re.IGNORECASE)
_SPLIT_NEGATION = lazily(rf" n['{unicode.APOSTROPHES}]t\b", re.IGNORECASE)
_NEGATED_BEFORE = lazily(rf"n['{unicode.APOSTROPHES}]$", re.IGNORECASE)
# Signs that belong to the number or the name beside them: $|5, 5| %, C|++. At the start of a line > marks a quotation.
_SIGN_BEFORE = lazily(
    rf"(?:[$<~{unicode.CURRENCIES}\u2264\u2265\u2248\u00b1]|(?<=\w)>|(?<=\w )>)[ {unicode.THIN_SPACES}]?$"
)
_SIGN_AFTER_NUMBER = lazily(
    rf"[ {unicode.THIN_SPACES}]?(?:[%{unicode.PERCENTS}\u2030\u00b0]|[${unicode.CURRENCIES}](?!\d))|\+(?!\w)"
)
_SIGN_AFTER_NAME = lazily(r"(?:\+{1,2}|#)(?!\w)")
# What Korean writes behind a noun or a clause without a space, by what it follows: a consonant, a vowel, either.
_PARTICLES = (
    "은|이|을|과|으로|이나|이랑|이며|이라고|이라는|이란",
    "는|가|를|와|로|나|랑|며|라고|라는|란",
    "의|도|만|에|에서|에게|에게서|한테|께|께서|부터|까지|보다|처럼|마다|하고|고|면서",
)
_AFTER_CONSONANT, _AFTER_VOWEL = (
    lazily(f"(?:{particles}|{_PARTICLES[2]})(?:은|는|도|만|의|을|를)?(?![가-힣])") for particles in _PARTICLES[:2]
)
_RIEUL = 8
#: A hyphen at the end of a line, and what may be before the first word of the next one.
LINE_END_HYPHEN = rf"[-{unicode.HYPHENS}{unicode.SOFT_HYPHEN}][ \t]*\r?\n[ \t>]*"
_BROKEN_BEFORE = lazily(rf"[^\W\d_]{LINE_END_HYPHEN}$")
_BROKEN_AFTER = lazily(rf"{LINE_END_HYPHEN}[^\W\d_]")


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
        return len(_COUNTED.findall(text))
    spaced, unspaced = UNSPACED_CHARACTER.subn("", text)
    return len(_COUNTED.findall(spaced)) + unspaced // 2


class ContentWord(NamedTuple):
    """A word and its place; words with the same ``key`` count as forms of one word."""

    text: str
    start: int
    end: int
    key: str


def content_words(text: str, *, longer: int = 0) -> Iterator[ContentWord]:
    """Yield the content words of a text: no function words, no numbers.

    In Han and kana these are all pairs of characters, in Thai, Lao and Khmer all rows of three, in Burmese of four;
    with ``longer=1`` of one more, which texts of 10,000 characters take.

    >>> [(word.text, word.key) for word in content_words("The 3 moths' feelers were trembling.")]
    [('moths', 'moth'), ('feelers', 'feeler'), ('trembling', 'trembl')]
    """
    return (word for word in telling_words(text, longer=longer) if not word.key[0].isdigit())


def telling_words(text: str, *, longer: int = 0) -> Iterator[ContentWord]:
    """Yield the content words of a text and its numbers, digits as they are written.

    >>> [word.text for word in telling_words("The 3 moths")]
    ['3', 'moths']
    """
    original, (text, at) = text, composed(text)
    for first, last, key in _keys(text, longer):
        start, end = at[first], at[last]
        yield ContentWord(original[start:end], start, end, key)


def _keys(text: str, longer: int = 0) -> Iterator[tuple[int, int, str]]:
    """Yield begin, end and key of the content words and numbers of a text in composed characters."""
    in_ascii = text.isascii()
    for match in (_ASCII_RUN if in_ascii else _RUN).finditer(text):
        if not in_ascii and (run := match["letters"]):
            places = [letter.start() for letter in _LETTER.finditer(text, *match.span())]
            letters = "".join(map(text.__getitem__, places))
            size = longer + (_IN_BURMESE if "\u1000" <= run[0] <= "\u108f" else _IN_A_ROW)
            for at, end in enumerate(places[size - 1 :] or places[-1:]):
                yield places[at], end + 1, letters[at : at + size]
        elif not in_ascii and (run := match["unspaced"]):
            for start, pair in enumerate(map("".join, pairwise(run)), start=match.start()):
                if _FUNCTION_CHARACTERS.isdisjoint(pair):
                    yield start, start + 2, pair
        elif key := _key(match[0]):
            yield *match.span(), key


# The same words come again and again: most of the time of a comparison went into folding and stemming them.
@lru_cache(maxsize=4096)
def _key(word: str) -> str:
    """Return the key of a word, nothing for one that carries no content."""
    folded = fold_word(word)
    if not folded or not (len(folded) > 1 or folded.isdigit()) or is_function_word(folded):
        return ""
    return folded if folded[0].isdigit() else stem(folded)


class WordsIn:
    """The content words of a text, to look those of another text up, inflected in any way.

    Words are the same when their keys begin alike, for at least three letters and three fifths of the longer; in Hebrew
    and Arabic, which inflect at both ends, when three letters in a row are the same.

    >>> words = WordsIn("Свобода дорога, и мост закрыли. Bridges closed.")
    >>> [word.text for word in content_words("закрытие моста, the bridge is open") if word in words]
    ['закрытие', 'моста', 'bridge']
    """

    def __init__(self, text: str) -> None:
        #: The length of the shortest key that begins so.
        self._beginnings: dict[str, int] = {}
        self._roots: set[str] = set()
        keys = {key for _, _, key in _keys(composed(text)[0]) if not key[0].isdigit()}
        for key in sorted(keys, key=len, reverse=True):
            length = len(key)
            for end in range(min(_SHORTEST_ALIKE, length), length + 1):
                self._beginnings[key[:end]] = length
            if not key.isascii():
                self._roots.update(_roots(key))

    def __contains__(self, word: ContentWord) -> bool:
        key = word.key
        if self._beginnings.get(key) == len(key) or (self._roots and not self._roots.isdisjoint(_roots(key))):
            return True
        if _LETTER.match(key):
            return False
        # The beginnings of a key that is alike are all there, the shortest too.
        return key[:_SHORTEST_ALIKE] in self._beginnings and any(
            end >= _ALIKE * max(len(key), self._beginnings.get(key[:end], _NO_KEY))
            for end in range(_SHORTEST_ALIKE, len(key) + 1)
        )


def _roots(key: str) -> Iterator[str]:
    """Yield all rows of three letters of a Hebrew or Arabic key."""
    if not key.isascii() and _SEMITIC.match(key):
        yield from (key[at : at + _SHORTEST_ALIKE] for at in range(len(key) - _SHORTEST_ALIKE + 1))


def is_function_word(folded: str, language: str | None = None) -> bool:
    """Tell whether a folded word occurs in texts of any subject, in any language or in this one.

    >>> is_function_word("although"), is_function_word("basil"), is_function_word("nicht", "en")
    (True, False, False)
    """
    return folded in _function_words().get(language, frozenset())


@lru_cache(maxsize=1)
def _function_words() -> Mapping[str | None, frozenset[str]]:
    """Return the function words of each language; those of all languages are under ``None``."""
    name = "function_words.txt"
    words: dict[str | None, frozenset[str]] = {each: word_list(name, each) for each in read_word_lists(name)}
    return {**words, None: frozenset().union(*words.values())}


@lru_cache(maxsize=8)
def read_word_lists(name: str) -> dict[str, str]:
    """Return the sections of a word list of this package by their headings (``# heading``)."""
    text = packaged_text(f"text/data/{name}")
    return {heading: body for heading, _, body in (part.partition("\n") for part in text.split("# ") if part)}


@lru_cache(maxsize=32)
def word_list(name: str, section: str) -> frozenset[str]:
    """Return the folded words in a section of a word list of this package."""
    return frozenset(map(fold_word, read_word_lists(name)[section].split()))


def fold_word(word: str) -> str:
    """Return a word without case, accents, vowel points and compatibility forms.

    >>> fold_word("ÉTÉS")
    'etes'
    """
    if word.isascii():
        return word.lower()
    return _DROPPED.sub("", unicodedata.normalize("NFKD", word).casefold())


def stem(word: str) -> str:
    """Return what the forms of a folded word have in common, roughly and in any language.

    >>> stem("walked"), stem("walking"), stem("consumption")
    ('walk', 'walk', 'consum')
    """
    bare = _ARTICLE.sub("", word)
    bare = bare if len(bare) >= _SHORTEST_STEM - 1 else word
    ending = _ENDING.search(bare, _SHORTEST_STEM)
    return _PLURAL.sub("", bare[: ending.start() if ending else None])[:_LONGEST_STEM]


def word_tokens(text: str) -> list[str]:
    """Return the words of a text without case: runs of letters, digits and the marks on them.

    Each character of a script written without spaces is a word of its own.

    >>> word_tokens("Don't panic: 東京 in 2020, हिन्दी!")
    ['don', 't', 'panic', '東', '京', 'in', '2020', 'हिन्दी']
    """
    return _WORD.findall(caseless(text))


def answer_tokens(text: str) -> list[str]:
    """Return the words of an answer without case, punctuation and English articles, as the SQuAD script compares them.

    Each character of a script written without spaces is a word of its own.

    >>> answer_tokens("The U.S. Navy's first ship")
    ['us', 'navys', 'first', 'ship']
    >>> answer_tokens("东京 Tower")
    ['东', '京', 'tower']
    """
    folded = caseless(text)
    kept = "".join(char for char in folded if unicodedata.category(char)[0] not in "PSC" or char.isspace())
    return [word for word in _ANSWER_WORD.findall(kept) if word not in _ARTICLES]


def stands_alone(text: str, start: int, end: int, *, lead: str = "", trail: str = "") -> bool:
    """Tell whether ``text[start:end]`` begins and ends on word boundaries of the text.

    Scripts without spaces have no such boundaries, except inside numbers. A sign that belongs to a number or a name (a
    percent sign, a currency, C++) may be outside only where ``lead`` or ``trail`` shows it.

    >>> stands_alone("They grow faster.", 5, 9), stands_alone("They grow faster.", 6, 14)
    (True, False)
    >>> stands_alone("It cost 3.5 million.", 10, 19)
    False
    """
    return begins_word(text, start, lead) and ends_word(text, end, trail)


def begins_word(text: str, start: int, lead: str = "") -> bool:
    """Tell whether a passage may begin here; ``lead`` is what a quotation has in front of it."""
    before = text[max(start - _NEAR, 0) : start]
    if not before:
        return True
    first = text[start]
    if before[-1] == " " and not first.isdigit() and "\n" not in before:
        return True
    left = _TRANSPARENT.sub("", before)[-1:]
    if left and are_joined(left, first):
        return False
    if first.isdigit() and (
        _NUMBER_BEFORE.search(before) or (_GROUP_BEFORE.search(before) and _GROUP.match(text, start))
    ):
        return False
    if first.isdigit() and (sign := _SIGN_BEFORE.search(before)) and not lead.rstrip().endswith(sign[0].strip()):
        return False
    if first in "tT" and _NEGATED_BEFORE.search(before) and ends_word(text, start + 1):
        return False
    return not (_NEGATING_PREFIX.search(before) or _BROKEN_BEFORE.search(before))


def ends_word(text: str, end: int, trail: str = "") -> bool:
    """Tell whether a passage may end here; ``trail`` is what a quotation has behind it."""
    after = text[end : end + _NEAR]
    if not after:
        return True
    last = text[end - 1]
    if after[0] == " " and not last.isdigit():
        # Tokenised text parts a negation from its verb.
        return after[1:2] not in ("n", "N") or not _SPLIT_NEGATION.match(after)
    right = _TRANSPARENT.sub("", after)[:1]
    if right and are_joined(last, right):
        return "가" <= last <= "힣" and _begins_particle(last, after)
    if last.isdigit() and (
        _NUMBER_AFTER.match(after)
        or (_GROUP_AFTER.match(after) and _FIRST_GROUP.search(text[max(end - _NEAR, 0) : end]))
    ):
        return False
    sign = (_SIGN_AFTER_NUMBER if last.isdigit() else _SIGN_AFTER_NAME).match(after)
    if sign and not trail.lstrip().startswith(sign[0].strip()):
        return False
    if last in "nN" and _NEGATING_SUFFIX.match(after):
        return False
    return not (last.isalpha() and _BROKEN_AFTER.match(after))


def _begins_particle(last: str, after: str) -> bool:
    """Tell whether a Korean word may end here, as no more than a particle follows that goes with its last sound."""
    final = (ord(last) - ord("가")) % 28
    if final in (0, _RIEUL) and after.startswith("로"):
        final = 0
    return (_AFTER_CONSONANT if final else _AFTER_VOWEL).match(after) is not None
