"""Finding the proper names of a text by how they are written: capitals within a sentence, and acronyms.

Scripts without capitals show no names. In German, where every noun has a capital, only rows of capitals and
acronyms count. Headings, passages in capitals, months and the first word of a sentence are passed over.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
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
# Names although the same letters are a function word, and function words that are often written large.
_ACRONYMS, _OFTEN_LARGE = frozenset(("WHO", "US")), frozenset(("A", "I", "The"))
_CLITIC = lazily(rf"[{_APOSTROPHE}](?:s|m|d|t|ll|ve|re)?$", re.IGNORECASE)
# What French and Italian write before a name (d'Einstein), and Turkish behind it; an acronym in the plural.
_ELISION = lazily(rf"^(?:[a-z\u00df-\u024f]+|[LD]|Qu|Un|(?:A|Da|De|Ne|Su)ll)[{_APOSTROPHE}](?=[A-Z\u00c0-\u024f])")
_APOSTROPHE_ENDING = lazily(rf"(?<=[A-Za-z\u00c0-\u024f]{{3}})[{_APOSTROPHE}]([a-z\u00df-\u024f]+)$")
_PLURAL = lazily(r"(?<=[^\W_a-z]{2})s$")
# AT&T is one word, Marks&Spencer are two.
_JOIN, _PARTS = lazily(rf"[-.{_APOSTROPHE}]|&(?=[^\W_]{{3}})"), lazily(r"-|(?<=[^\W_]{3})&(?=[^\W_]{3})")
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
# How many words in capitals, or with capitals, among them a function word, are no names.
_SHORTEST_LOUD, _SHORTEST_TITLE = 3, 4
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
        while row and not row[-1].part:
            row.pop()
        capitals = [word.text for word in row if word.capital]
        if len(capitals) >= shortest or any(map(_is_marked, capitals)):
            start, end, keys = row[0].start, row[-1].end, (key for word in row if word.part for key in _keys(word.text))
            yield Name(text=text[start:end], start=start, end=end, keys=tuple(keys))


def _is_marked(word: str) -> bool:
    """Tell whether a word is an acronym or has a capital behind the first letter: iPhone, McKay."""
    return any(map(str.isupper, word[1:])) and not (word.isupper() and len(word) > _LONGEST_ACRONYM)


def _words(text: str, language: str) -> Iterator[_Word]:
    """Yield the words of a text; those of headings, and in runs of capitals that name nothing, make no names."""
    lines = [(line, start) for start, end in split_sentences(text) for line in _LINE.finditer(text, start, end)]
    starts = [line.start() for line, _ in lines]
    # Over the whole text, so that a word is the same here and where it is looked up, wherever sentences end.
    for at, matches in groupby(_TOKEN.finditer(text), key=lambda match: bisect_right(starts, match.start())):
        line, sentence = lines[max(at - 1, 0)]
        words = [_word(match, sentence, language) for match in matches]
        is_heading = _is_heading(words, line[0].rstrip(), language)
        for run in _runs(text, words):
            nameless = is_heading or _names_nothing(run, language)
            yield from (word._replace(capital=False, part=False) for word in run) if nameless else run


def _word(match: re.Match[str], sentence: int, language: str) -> _Word:
    word, start = match.group(), match.start()
    before = match.string[max(sentence, start - 8) : start]
    first = start - sentence <= len(before) and not any(map(str.isalnum, before))
    capital = _is_capital(word, language)
    month = word[0].isupper() and word.casefold() in MONTH_NAMES
    begins = first or bool(_BEGINS.search(before))
    return _Word(word, start, match.end(), sentence, begins, capital and not month, capital or month)


def _is_capital(word: str, language: str) -> bool:
    folded = fold_word(_CLITIC.sub("", word))
    folded = _SHORT.get(folded, folded)
    if word in _ACRONYMS:
        return True
    if len(folded) < _SHORTEST_NAME or folded.isdigit() or folded in _NO_NAMES or word.islower():
        return False
    # A function word is written large to stress it, in a text of its own language.
    function_word = is_function_word(folded, language if word.isupper() else None)
    return not function_word and any(map(str.isupper, word))


def _is_heading(words: Sequence[_Word], line: str, language: str) -> bool:
    """Tell whether all words of a line that could be small are large, and no stop ends it, or function words are."""
    content = [word for word in words if not (word.text.isdigit() or is_function_word(fold_word(word.text)))]
    if not content or not all(word.text[0].isupper() for word in content) or _UNSPACED.search(line):
        return False
    if len(content) > 1 and not ends_sentence(line) and "," not in line:
        return True
    small = line.endswith(".") and any(word.text.islower() for word in words)
    return not small and any(_is_large(word, language) for word in words[1:])


def _is_large(word: _Word, language: str) -> bool:
    """Tell whether a function word is written large."""
    is_name = (word.part and not word.capital) or word.text in _ACRONYMS or word.text in _OFTEN_LARGE
    return word.text[0].isupper() and not is_name and is_function_word(fold_word(word.text), language)


def _names_nothing(run: Sequence[_Word], language: str) -> bool:
    loud = run[0].text.isupper()
    large = any(_is_large(word, language) for word in run[not loud :])
    return (large and len(run) >= (_SHORTEST_LOUD if loud else _SHORTEST_TITLE)) or (loud and len(run) > _SHORTEST_LOUD)


def _runs(text: str, words: Sequence[_Word]) -> Iterator[Sequence[_Word]]:
    """Yield the words in runs that are written alike, large as a whole or at first, with nothing but space between."""
    pairs = enumerate(pairwise(words), start=1)
    ends = [at for at, (a, b) in pairs if not (_case(a) and _case(a) == _case(b) and text[a.end : b.start].isspace())]
    return (words[start:end] for start, end in pairwise([0, *ends, len(words)]))


def _case(word: _Word) -> str:
    return "loud" if word.text.isupper() else "title" if word.text[0].isupper() else ""


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


def _keys(word: str) -> Iterator[str]:
    """Yield the parts of a word, without the small ones before and behind a name: EU-wide, d'Einstein, CEOs."""
    parts = _PARTS.split(_CLITIC.sub("", word))
    named = [part for part in parts if part[0].isupper() or part != part.lower()]
    whole = any(len(part) >= (_SHORTEST_NAME if part.isupper() else _SHORTEST_STEM) for part in named)
    for part in named if whole else parts:
        bare = _PLURAL.sub("", _ELISION.sub("", part))
        # Turkish parts an ending with an apostrophe, which is a letter in other names (Qur'an): both are looked up.
        ending = _APOSTROPHE_ENDING.search(bare)
        key = fold_word(re.sub(f"[.&{_APOSTROPHE}]", "", bare[: ending.start()] if ending else bare))
        if key := _SHORT.get(key, key):
            yield f"{key}'{fold_word(ending[1])}" if ending else key


def _forms(key: str) -> Iterator[str]:
    """Yield a word and what it may be an inflected form of."""
    bare, apostrophe, ending = key.partition("'")
    yield from (bare + ending, bare) if apostrophe else (key,)
    key = bare + ending
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
            # Sentences may be joined without a space, and a name behind an article: West.they, L'Europe.
            words = {match[0], *(part for part in _JOIN.split(match[0]) if len(part) > 1)}
            for form in (form for word in words for key in _keys(word) for form in _forms(key)):
                self._places.setdefault(form, match.span())
            if (acronym := _PLURAL.sub("", match[0])).isupper():
                self._acronyms.setdefault(fold_word(acronym.replace(".", "")), match.span())
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
            if capitals or size >= _SHORTEST_LOUD:
                letters = (folded if it[0].isupper() and not loud else folded[:1] for it, folded in words)
                yield "".join(letters), (first[0].start(), match.end())
