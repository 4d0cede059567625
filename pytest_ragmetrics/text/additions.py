"""Whether what a gap leaves out of a clause is plainly an addition, whatever its words mean.

No list of negations is complete: a verb or an adverb that is in no list may turn a statement round, too ("The mayor
fought the sale"). So what is left out inside a clause has to be something that a statement can do without: what is
between two marks of punctuation, what goes with a noun ("of the town", "large" in "the large bridge"), or grammar
alone. The words that tell are in ``negations.json``: those a noun follows (``before_nouns``), those that follow one
(``after_nouns``), ``harmless`` ones (time, size, colour) and other words of the grammar (``helpers``). In a language
without them everything else is in doubt. Of words cut out at random of novels in six languages 55 to 76 % stay found
(78 to 90 % with the list of negations alone); of 1,300 verbs and adverbs that no list had 98 % are refused (20 %).
"""

from __future__ import annotations

import re
from enum import Enum

from pytest_ragmetrics.text.characters import INVISIBLE, UNSPACED_LETTERS
from pytest_ragmetrics.text.negations import Grammar, fold, grammar_near
from pytest_ragmetrics.text.words import MARKS

# Punctuation that parts a clause from what is put into it: no quotation mark, no emphasis, no hyphen in a word.
_PARTS = re.compile(
    r"[,;:()!?\u2026\u2013\u2014\u0589\u060c\u061b\u061f\u06d4\u0964\u0965\u1362\u3001\u3002\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]"
    r"|\.(?=\W|$)|(?<=\s)-+(?=\s)|--|\n\s*\n"
)
_ENDS = ".!?;\u0589\u061b\u061f\u06d4\u0964\u0965\u1362\u3002\uff01\uff1b\uff1f"
_WORD = re.compile(rf"[^\W_](?:[{MARKS}{INVISIBLE}*_]*[^\W_])*[{MARKS}]*")
# How far from the ends of a gap is looked.
_FAR = 400
_LAST_WORD = re.compile(rf"({_WORD.pattern})[\s\"'\u2018-\u201f*_{INVISIBLE}]*$")
# What a clause that begins behind a comma depends on is in front of the comma.
_THAT = frozenset(
    (
        "that",
        "dass",
        "que",
        "che",
        "że",
        "iż",
        "že",
        "что",
        "що",
        "че",
        "hogy",
        "att",
        "at",
        "dat",
        "da",
        "οτι",
        "să",
        "că",
    )
)
# In front of a verb that has an object: reflexives, and forms of "have".
_REFLEXIVE = frozenset(("se", "s", "si", "me", "m", "te", "t", "ci", "vi"))
_HAVE = frozenset(
    ("a", "ont", "avait", "ha", "han", "hanno", "había", "aveva", "hat", "haben", "hatte", "har", "hade", "havde")
)
_BEFORE_VERB = _REFLEXIVE | _HAVE | frozenset(("hadde", "has", "have", "had", "heeft", "hebben", "tem", "têm", "tinha"))
_LONGEST_ENDING = 7
# A preposition of several words that what follows depends on: "in spite of", "at the expense of".
_LONGEST_PREPOSITION = 4
_UNSPACED = re.compile(f"[{UNSPACED_LETTERS}]")
_HAN = "\u3005\u3400-\u9fff\uf900-\ufaff"
_KANA = re.compile("[\u3041-\u30ff]")
# In Japanese: a verb or an adjective, and an adverb or a noun without its particle.
_JAPANESE_VERB = re.compile(
    f"[{_HAN}](?![のをがはにでともへやかなだ])[\u3041-\u3096]|[{_HAN}\u30a0-\u30ff]$"
    "|^[\u3041-\u3096]+[ただるていずぬうくすむ]$"
)
_CHINESE_ADDITION = re.compile(f"[的地]$|^[在从從于於向与與和及由以自当當为為](?:[{_HAN}]|\\d)")
_CHINESE_PREDICATE = re.compile("[了将將着著]")
_HIRAGANA = re.compile("[\u3041-\u3096]")
_OKURIGANA = re.compile("[\u3041-\u3096]{1,3}(?![\u3041-\u3096])")
_HAN_LETTER = re.compile(f"[{_HAN}]")


class _Kind(Enum):
    """What a word is in a clause."""

    BEFORE = "before a noun"
    AFTER = "after a noun"
    HELPER = "grammar"
    HARMLESS = "time, size, colour, a number"
    NAME = "a name"
    CONTENT = "anything else"


_Read = tuple[str, _Kind]


def doubtful_words(text: str, start: int, end: int) -> str | None:
    """Return the words that ``text[start:end]`` leaves out of a clause and that may turn it round.

    >>> text = "The old mayor fought the sale of the mill, as he had said, in the town of Hull."
    >>> doubtful_words(text, 13, 20), doubtful_words(text, 41, 58), doubtful_words(text, 66, 70)
    ('fought', None, None)
    """
    gap = text[start:end]
    head, tail = _PARTS.search(gap), list(_PARTS.finditer(gap, max(len(gap) - _FAR, 0)))
    if head is None or not tail:
        return _doubtful_inside(text, start, end)
    first, last = gap[: head.start()], gap[tail[-1].end() :]
    if _UNSPACED.search(first or last):
        if _is_japanese(text, start, end):
            return first if _is_doubtful_japanese(text, start, start + len(first)) else None
        return first if _CHINESE_PREDICATE.search(first) else None
    grammar = grammar_near(text, start, end)
    before = _kind_before(text, start, grammar)
    words = _read(first, grammar)
    if len(words) > 1 and _are_naked(words, before)[0] and not _begins_clause(text, end, tail[-1][0], last, grammar):
        return first.strip()
    if fold(last).strip() in _THAT:
        last = gap[tail[-2].end() if len(tail) > 1 else 0 :]
    return last.strip() if _governs(_read(last, grammar), _Kind.HELPER, grammar) else None


def _begins_clause(text: str, end: int, mark: str, last: str, grammar: Grammar) -> bool:
    """Tell whether what follows a gap begins a sentence or a clause, and is no part of one that is left out."""
    if not last.strip() and mark in _ENDS:
        return True
    following = _WORD.search(text, end, end + _FAR)
    kinds = {kind for _, kind in _read(last, grammar)}
    is_noun = following is None or _kind(following[0], grammar) is _Kind.BEFORE
    return kinds <= {_Kind.BEFORE, _Kind.HELPER} and not is_noun


def _doubtful_inside(text: str, start: int, end: int) -> str | None:
    """Return what is left out of the middle of a clause, if it is in doubt."""
    gap = text[start:end].strip()
    if _UNSPACED.search(gap):
        if _is_japanese(text, start, end):
            return gap if _is_doubtful_japanese(text, start, end) else None
        return None if _CHINESE_ADDITION.search(gap) else gap
    grammar = grammar_near(text, start, end)
    before = _kind_before(text, start, grammar)
    words = _read(gap, grammar)
    kinds = [kind for _, kind in words]
    if not words or not any(kind in (_Kind.CONTENT, _Kind.NAME) for kind in kinds):
        return None
    next_word = _WORD.search(text, end, end + _FAR)
    if before is _Kind.NAME and next_word and next_word[0][0].isupper():
        # Where every word has a capital none of them says anything.
        words = [(word, _Kind.CONTENT if kind is _Kind.NAME and word.isalpha() else kind) for word, kind in words]
    naked = _are_naked(words, before)
    ends_open = kinds[-1] in (_Kind.BEFORE, _Kind.HELPER)
    is_doubtful = (
        naked[0]
        or sum(naked) > 1
        or (any(naked) and fold(words[0][0]) in _BEFORE_VERB)
        or _governs(words, before, grammar)
        or (ends_open and kinds[0] is _Kind.HELPER)
        or (ends_open and len(words) <= _LONGEST_PREPOSITION and kinds[0] is _Kind.BEFORE and _Kind.CONTENT in kinds)
    )
    return gap if is_doubtful else None


def _governs(words: list[_Read], before: _Kind, grammar: Grammar) -> bool:
    """Tell whether what follows depends on a verb that is left out: "denied that", "opposed the"."""
    if not grammar.before_nouns:
        return any(kind is _Kind.CONTENT for _, kind in words)
    return any(_are_naked(words, before)) and words[-1][1] in (_Kind.BEFORE, _Kind.HELPER)


def _read(part: str, grammar: Grammar) -> list[_Read]:
    return [(word[0], _kind(word[0], grammar)) for word in _WORD.finditer(part)]


def _kind(word: str, grammar: Grammar) -> _Kind:
    folded = fold(word)
    if folded in grammar.before_nouns:
        return _Kind.BEFORE
    if folded in grammar.helpers:
        return _Kind.HELPER
    if folded in grammar.after_nouns:
        return _Kind.AFTER
    # Endings of cases and of adjectives say that it is no verb.
    if word[0].isdigit() or _has(grammar.harmless, folded) or _has(grammar.after_nouns, folded):
        return _Kind.HARMLESS
    is_name = word[0].isupper() and (len(word) == 1 or not word.isupper())
    return _Kind.NAME if is_name else _Kind.CONTENT


def _has(words: frozenset[str], word: str) -> bool:
    """Tell whether a word is listed, or ends in what is: "*ban"."""
    return word in words or any(
        f"*{word[-length:]}" in words for length in range(1, min(len(word) - 1, _LONGEST_ENDING))
    )


def _kind_before(text: str, start: int, grammar: Grammar) -> _Kind:
    """Return what the last word before a gap is; a digit is followed by a noun."""
    found = _LAST_WORD.search(text[max(start - _FAR, 0) : start])
    if found is None:
        return _Kind.HELPER
    return _Kind.BEFORE if found[1].isdigit() else _kind(found[1], grammar)


def _are_naked(words: list[_Read], before: _Kind) -> list[bool]:
    """Return which words no article, preposition, postposition or ending makes part of what goes with a noun."""
    naked: list[bool] = []
    is_opened = before is _Kind.BEFORE
    for word, kind in words:
        if kind is _Kind.AFTER:
            # A noun that is right before it goes with it, and an adjective of the noun.
            for at in range(max(len(naked) - 2, 0), len(naked)):
                naked[at] = False
        is_opened = kind is _Kind.BEFORE or word[0].isdigit() or (is_opened and kind not in (_Kind.AFTER, _Kind.HELPER))
        naked.append(kind is _Kind.CONTENT and not is_opened)
    return naked


def _is_japanese(text: str, start: int, end: int) -> bool:
    return bool(_KANA.search(text, max(start - _FAR, 0), end + _FAR))


def _is_doubtful_japanese(text: str, start: int, end: int) -> bool:
    # A word that is cut in two keeps its stem, or its ending.
    if _HIRAGANA.match(text, end) and _HIRAGANA.match(text, end - 1):
        return False
    if _HAN_LETTER.match(text, start - 1) and _OKURIGANA.match(text, start):
        return False
    return bool(_JAPANESE_VERB.search(text[start:end]))
