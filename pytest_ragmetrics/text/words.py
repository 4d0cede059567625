"""The words of a short answer, as the SQuAD data set compares them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from pytest_ragmetrics.text.characters import UNSPACED, is_mark, is_unspaced, is_word

_UNSPACED = re.compile(f"[{UNSPACED}]")
#: From the first letter or digit of a white-space token to the token's end: one match a word.
_WORD = re.compile(r"[^\W_]\S*")


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
        return len(_WORD.findall(text))
    spaced, unspaced = _UNSPACED.subn("", text)
    return len(_WORD.findall(spaced)) + unspaced // 2


#: Letters of scripts without spaces, for a character class.
UNSPACED_RUN = (
    "\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U000323af\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
)
# Vowel signs and joiners, which are no letters to a regular expression, and belong into words all the same.
_SIGNS = "\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u0900-\u0963\u0971-\u0dff"
_SIGNS += "\u0f18-\u0fbc\u1712-\u1714\u200c\u200d"
_RUN = re.compile(f"(?P<unspaced>[{UNSPACED_RUN}]+)|[^\\W_{UNSPACED_RUN}](?:[{_SIGNS}]|[^\\W_{UNSPACED_RUN}])*")
_DROPPED = re.compile("[\u00ad\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200c\u200d]")

# In scripts without spaces, a pair of characters with one of these carries no content.
_FUNCTION_CHARACTERS = frozenset(
    "的了是在和有不也就都而及与或把被让给从到对于之其这那个们吗呢吧啊着很はがをにへとでもやのからまですだったいるなれ"
)
# Endings of inflected forms, and what Arabic writes before a word; enough must be left to mean something.
_ENDING = re.compile(r"(?:ingly|edly|ings?|ed|ies|ied|ly|es|ern|er|en|em|e|s|y)$")
_PLURAL = re.compile(r"(?<=..[^s])s$")
_ARTICLE = re.compile("^(?:[وفبك]?ال|لل)")
_SHORTEST_STEM, _LONGEST_STEM = 4, 6


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentWord:
    """A word and its place; words with the same ``key`` count as forms of one word."""

    text: str
    start: int
    end: int
    key: str


def content_words(text: str) -> Iterator[ContentWord]:
    """Yield the content words of a text: no function words, no numbers; in unspaced scripts pairs of characters.

    >>> [(word.text, word.key) for word in content_words("The 3 moths' feelers were trembling.")]
    [('moths', 'moth'), ('feelers', 'feeler'), ('trembling', 'trembl')]
    """
    return (word for word in telling_words(text) if not word.key[0].isdigit())


def telling_words(text: str) -> Iterator[ContentWord]:
    """Yield the content words of a text and its numbers, digits as they stand.

    >>> [word.text for word in telling_words("The 3 moths")]
    ['3', 'moths']
    """
    for match in _RUN.finditer(text):
        if match["unspaced"]:
            yield from _pairs(match.group(), match.start())
            continue
        folded = fold_word(match.group())
        if folded and (len(folded) > 1 or folded.isdigit()) and not is_function_word(folded):
            key = folded if folded[0].isdigit() else stem(folded)
            yield ContentWord(text=match.group(), start=match.start(), end=match.end(), key=key)


def is_function_word(folded: str, language: str | None = None) -> bool:
    """Tell whether a folded word stands in texts of any subject, in any language or in this one.

    >>> is_function_word("although"), is_function_word("basil"), is_function_word("nicht", "en")
    (True, False, False)
    """
    return folded in _function_words().get(language, frozenset())


def _pairs(run: str, at: int) -> Iterator[ContentWord]:
    for index in range(len(run) - 1):
        pair = run[index : index + 2]
        if not _FUNCTION_CHARACTERS.intersection(pair):
            yield ContentWord(text=pair, start=at + index, end=at + index + 2, key=pair)


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


@lru_cache(maxsize=1)
def _function_words() -> Mapping[str | None, frozenset[str]]:
    """Read the function words of each language; those of all languages stand under ``None``."""
    text = (files(__package__ or "") / "function_words.txt").read_text("utf-8")
    parts = (part.partition("\n") for part in text.split("# ") if part)
    words: dict[str | None, frozenset[str]] = {
        language: frozenset(map(fold_word, block.split())) for language, _, block in parts
    }
    return {**words, None: frozenset().union(*words.values())}


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


_ARTICLES = frozenset(("a", "an", "the"))
# Runs of letters, marks and digits; each character of a script without spaces is a word of its own.
_SQUAD_WORD = re.compile(f"[{UNSPACED}]|[^\\s{UNSPACED}]+")


def answer_tokens(text: str) -> list[str]:
    """Return the words of an answer without case, punctuation and English articles.

    >>> answer_tokens("The U.S. Navy's first ship")
    ['us', 'navys', 'first', 'ship']
    >>> answer_tokens("东京 Tower")
    ['东', '京', 'tower']
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(char for char in folded if unicodedata.category(char)[0] not in "PSC" or char.isspace())
    return [word for word in _SQUAD_WORD.findall(kept) if word not in _ARTICLES]
