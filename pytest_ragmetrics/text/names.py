"""Finding the proper names of a text by how they are written: capitals within a sentence, and acronyms.

Scripts without capitals show no names. In German, where every noun has a capital, only rows of capitals and
acronyms count. Headings, sentences in capitals, months and the first word of a sentence are passed over.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.markup import drop_unseen
from pytest_ragmetrics.text.numbers import MONTH_NAMES
from pytest_ragmetrics.text.sentences import ends_sentence, guess_language, split_sentences
from pytest_ragmetrics.text.unicode import UNSPACED_LETTERS
from pytest_ragmetrics.text.words import fold_word, is_function_word, read_word_lists, word_list

_APOSTROPHE = f"'{unicode.RIGHT_SINGLE}"
# With what joins the parts of one word: O'Neill, Jean-Luc, AT&T, U.S.
# Letters may be decomposed.
_LETTERS = rf"(?:[^\W_{UNSPACED_LETTERS}][\u0300-\u036f]*)+"
_TOKEN = lazily(rf"(?:[^\W\d_][\u0300-\u036f]*\.){{2,}}|{_LETTERS}(?:[-{_APOSTROPHE}&.]{_LETTERS})*")
# What joins the words of a name; and what is written large and no name: forms of address, units, the word for a source.
_CONNECTORS, _NO_NAMES = word_list("fact_words.txt", "within names"), word_list("fact_words.txt", "no names")
# What is written in short and in full: the first of these is compared.
_SAME = map(str.split, read_word_lists("fact_words.txt")["in short and in full"].splitlines())
_SHORT = {word: short for short, *words in _SAME for word in words}
# Names although the same letters are a function word.
_ACRONYMS = frozenset(("WHO", "US"))
# What parts a word: EU-wide, d'Einstein, Obama's, Ankara'da; an acronym in the plural.
_PARTS, _PLURAL = lazily(f"[-{_APOSTROPHE}]"), lazily(r"(?<=[^\W_a-z]{2})s$")
# Sentences may be joined without a space (West.they), and words with a sign (Marks&Spencer).
_JOINS = lazily(f"[-.&{_APOSTROPHE}]")
_SPACED_INITIALS = lazily(rf"\b(?:[^\W\d_{UNSPACED_LETTERS}]\.\s?){{2,}}")
_UNSPACED = lazily(f"[{UNSPACED_LETTERS}]")
_LINE = lazily(r"[^\r\n]+")
# A capital after one of these says only that something begins.
_BEGINS = lazily(
    rf"(?:[:;!?|(\[/\"'*_>{unicode.ELLIPSIS}{unicode.BULLET}{unicode.LEFT_DOUBLE}{unicode.LOW_DOUBLE}{unicode.LEFT_SINGLE}{unicode.GUILLEMETS}{unicode.PAUSES}]|-\s|\d[.)]?)\s*$"
)
# What inflection adds to a name in Latin script; elsewhere anything short may be an ending.
_ENDINGS = ("s", "es", "n", "ns", "an", "ans", "ian", "ians", "en", "er", "e", "y", "ish", "ese")
_LONGEST_ENDING, _SHORTEST_STEM, _SHORTEST_NAME = 3, 4, 2
# Longer words of capitals are no acronyms, but words in capitals.
_LONGEST_ACRONYM = 5
# How many words without a capital an acronym stands for.
_SHORTEST_ROW = 3
# As far apart as the words of one long name: "of the".
_WITHIN_ROW = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Name:
    """A proper name and its place; ``keys`` are its words without case and accents."""

    text: str
    start: int
    end: int
    keys: tuple[str, ...]


class _Word(NamedTuple):
    """A word: where its sentence begins, whether it begins anything, makes a name, and may be part of one."""

    text: str
    start: int
    end: int
    sentence: int
    begins: bool
    capital: bool
    part: bool


def find_names(text: str) -> tuple[Name, ...]:
    """Return the proper names of a text in order.

    >>> [name.text for name in find_names("Yesterday Marie Curie's notes reached the University of Oslo and the WHO.")]
    ["Marie Curie's", 'University of Oslo', 'WHO']
    """
    # Most claims have one capital, which begins the sentence; splitting them takes far longer than looking.
    if not any(map(str.isupper, text[1:])):
        return ()
    seen, offsets = drop_unseen(text)
    places = ((name, *_original((name.start, name.end), offsets)) for name in _names_in(seen))
    return tuple(replace(name, text=text[start:end], start=start, end=end) for name, start, end in places)


def _original(place: tuple[int, int], offsets: Sequence[int]) -> tuple[int, int]:
    """Return where a place in a text without its unseen characters is in the text."""
    start, end = place
    return (offsets[start], offsets[end - 1] + 1) if offsets else place


def _names_in(text: str) -> Iterator[Name]:
    language = guess_language(text)
    words = [*_words(text, language)]
    within = {word.text for word in words if word.capital and not word.begins}
    shortest = 2 if language == "de" else 1
    for whole in _rows(text, words):
        row = [word for word in whole if word.text in within or not word.begins or _is_marked(word.text)]
        parts = [at for at, word in enumerate(row) if word.part]
        row = row[parts[0] : parts[-1] + 1] if parts else []
        capitals = [word.text for word in row if word.capital]
        if len(capitals) >= shortest or any(map(_is_marked, capitals)):
            start, end = row[0].start, row[-1].end
            keys = (_key(part) for word in row if word.part for part in [*_named(word.text, language)] or [word.text])
            yield Name(text=text[start:end], start=start, end=end, keys=tuple(keys))


def _is_marked(word: str) -> bool:
    """Tell whether a word is an acronym or has a capital behind the first letter: iPhone, McKay."""
    return any(map(str.isupper, word[1:])) and not (word.isupper() and len(word) > _LONGEST_ACRONYM)


def _words(text: str, language: str) -> Iterator[_Word]:
    """Yield the words of a text; those of headings make no names."""
    lines = [(line, start) for start, end in split_sentences(text) for line in _LINE.finditer(text, start, end)]
    starts = [line.start() for line, _ in lines]
    # Over the whole text, so that a word is the same here and where it is looked up, wherever sentences end.
    for at, matches in groupby(_TOKEN.finditer(text), key=lambda match: bisect_right(starts, match.start())):
        line, sentence = lines[max(at - 1, 0)]
        words = [_word(match, sentence, language) for match in matches]
        is_heading = _is_heading(words, line[0], language)
        yield from (word._replace(capital=False, part=False) for word in words) if is_heading else words


def _word(match: re.Match[str], sentence: int, language: str) -> _Word:
    word, start = match.group(), match.start()
    before = match.string[max(sentence, start - 8) : start]
    first = start - sentence <= len(before) and not any(map(str.isalnum, before))
    month = word[0].isupper() and word.casefold() in MONTH_NAMES
    capital = not month and any(_named(word, language))
    begins = first or bool(_BEGINS.search(before))
    return _Word(word, start, match.end(), sentence, begins, capital, capital or month)


def _named(word: str, language: str) -> Iterator[str]:
    """Yield the parts of a word that may name something: they have a capital and are no function words."""
    for part in _PARTS.split(word):
        key = _key(part) if any(map(str.isupper, part)) else ""
        # A function word is written large to stress it, in a text of its own language.
        stressed = key and is_function_word(fold_word(part), language if part.isupper() else None)
        if part in _ACRONYMS or (len(key) >= _SHORTEST_NAME and key not in _NO_NAMES and not stressed):
            yield part


def _is_heading(words: Sequence[_Word], line: str, language: str) -> bool:
    """Tell whether all words of a line that could be small are large, and no stop ends it, or function words are."""
    content = [word for word in words if not (word.text.isdigit() or is_function_word(fold_word(word.text)))]
    if not content or not all(word.text[0].isupper() for word in content) or _UNSPACED.search(line):
        return False
    is_sentence = ends_sentence(line)
    if len(content) > 1 and not is_sentence and "," not in line:
        return True
    others = [word.text for word in words[1:] if not word.part and len(word.text) > 1]
    small = is_sentence and any(map(str.islower, others))
    return not small and any(word[0].isupper() and is_function_word(fold_word(word), language) for word in others)


def _rows(text: str, words: Sequence[_Word]) -> Iterator[list[_Word]]:
    """Yield the rows of capitals, with what connects them; a row ends at any mark."""
    row: list[_Word] = []
    for word in words:
        # A tab parts the cells of a table.
        gap = text[row[-1].end : word.start] if row and row[-1].sentence == word.sentence else "\t"
        if "\t" in gap or gap.strip() not in ("", ".") or not (word.part or word.text in _CONNECTORS):
            yield row
            row = [word] if word.capital else []
        else:
            row.append(word)
    yield row


def _key(part: str) -> str:
    key = fold_word(_JOINS.sub("", _PLURAL.sub("", part)))
    return _SHORT.get(key, key)


def _forms(key: str) -> Iterator[str]:
    """Yield a word and what it may be an inflected form of."""
    yield key
    for length in range(1, min(_LONGEST_ENDING, len(key) - _SHORTEST_STEM) + 1):
        if not key.isascii() or key[-length:] in _ENDINGS:
            yield key[:-length]


class NamesIn:
    """The words of a text, to look the names of another one up.

    >>> NamesIn("Reports came from the German capital.").locate(find_names("It lies in Germany.")[0])
    ((22, 28),)
    """

    def __init__(self, text: str) -> None:
        self._text, self._offsets = drop_unseen(text)
        self._places: dict[str, tuple[int, int]] = {}
        self._acronyms: dict[str, tuple[int, int]] = {}
        for match in _TOKEN.finditer(self._text):
            for part in {match[0], *(part for part in _JOINS.split(match[0]) if len(part) >= _SHORTEST_NAME)}:
                for form in _forms(_key(part)):
                    self._places.setdefault(form, match.span())
            if (acronym := _PLURAL.sub("", match[0])).isupper():
                self._acronyms.setdefault(_key(acronym), match.span())
        for match in _SPACED_INITIALS.finditer(self._text):
            self._places.setdefault(fold_word(re.sub(r"[\W_]", "", match[0])), match.span())

    @cached_property
    def _initials(self) -> dict[str, tuple[int, int]]:
        """What acronyms may stand for; few names are looked up here."""
        return dict(reversed([*_initials(self._text)]))

    def locate(self, name: Name) -> tuple[tuple[int, int], ...] | None:
        """Return where the text has the words of a name, or what they abbreviate; ``None`` if one is missing."""
        if whole := self._acronym(name.keys):
            return (_original(whole, self._offsets),)
        written = drop_unseen(name.text)[0].replace(".", "")
        places = groupby(name.keys, key=lambda key: self._place(key, written))
        found = [there or self._acronym((*keys,)) for there, keys in places]
        return None if None in found else tuple(sorted({_original(place, self._offsets) for place in found if place}))

    def _acronym(self, keys: Sequence[str]) -> tuple[int, int] | None:
        return self._acronyms.get("".join(key[0] for key in keys)) if len(keys) > 1 else None

    def _place(self, key: str, written: str) -> tuple[int, int] | None:
        there = next((self._places[form] for form in _forms(key) if form in self._places), None)
        return there or (self._initials.get(key) if key.upper() in written else None)


def _initials(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the first letters of words side by side, function words left out, with their place.

    Two must have capitals, as two letters would too often be the same by chance. An acronym counts with all letters
    (U.S. Postal Service), but not in a passage of capitals.
    """
    row: deque[tuple[re.Match[str], str]] = deque(maxlen=_LONGEST_ACRONYM)
    for match in _TOKEN.finditer(text):
        word = match[0]
        if is_function_word(fold_word(word)) and word not in _ACRONYMS:
            continue
        if row and len(" ".join(text[row[-1][0].end() : match.start()].split())) > _WITHIN_ROW:
            row.clear()
        row.append((match, fold_word(word.replace(".", ""))))
        for size in range(2, len(row) + 1):
            first, *_ = words = [*row][-size:]
            capitals = all(it[0][0].isupper() for it, _ in words)
            loud = all(it[0].isupper() for it, _ in words)
            if capitals or size >= _SHORTEST_ROW:
                letters = (folded if it[0].isupper() and not loud else folded[:1] for it, folded in words)
                yield "".join(letters), (first[0].start(), match.end())
