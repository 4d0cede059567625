"""Finding the proper names of a text by how they are written: capitals within a sentence, and acronyms.

Scripts without capitals show no names. In German, where every noun has a capital, only rows of capitals and
acronyms count. Headings, passages in capitals, months and the first word of a sentence are passed over.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.text.markup import drop_unseen
from pytest_ragmetrics.text.numbers import MONTH_NAMES
from pytest_ragmetrics.text.sentences import guess_language, split_sentences
from pytest_ragmetrics.text.unicode import UNSPACED_LETTERS
from pytest_ragmetrics.text.words import fold_word, is_function_word, read_word_lists

# With what joins the parts of one word: O'Neill, Jean-Luc, AT&T, U.S.
# Letters may be decomposed.
_LETTERS = rf"(?:[^\W_{UNSPACED_LETTERS}][\u0300-\u036f]*)+"
_TOKEN = lazily(rf"(?:[^\W\d_][\u0300-\u036f]*\.){{2,}}|{_LETTERS}(?:[-'\u2019&.]{_LETTERS})*")
_CONNECTORS = frozenset(
    ("of", "de", "del", "della", "di", "da", "do", "dos", "du", "des", "van", "von", "der", "den", "la", "le", "el")
)
# Written large, and no names: forms of address, units, and what an answer calls its sources.
_NO_NAMES = frozenset(
    (
        *("mr", "mrs", "ms", "dr", "prof", "sir", "herr", "frau", "fahrenheit", "celsius"),
        *("passage", "passages", "context", "contexts", "document", "documents", "source", "sources"),
    )
)
# What is written in short and in full: the first of these is compared.
_SAME = map(str.split, read_word_lists("fact_words.txt")["in short and in full"].splitlines())
_SHORT = {word: short for short, *words in _SAME for word in words}
# Names although the same letters are a function word.
_ACRONYMS = frozenset(("WHO", "US"))
_CLITIC = lazily(r"['\u2019](?:s|m|d|t|ll|ve|re)?$", re.IGNORECASE)
# What French and Italian write before a name (d'Einstein), and Turkish behind it; an acronym in the plural.
_ELISION = lazily(r"^(?:[a-z\u00df-\u024f]+|[LD]|Qu|Un|(?:A|Da|De|Ne|Su)ll)['\u2019](?=[A-Z\u00c0-\u024f])")
_APOSTROPHE_ENDING = lazily(r"(?<=[A-Za-z\u00c0-\u024f]{3})['\u2019]([a-z\u00df-\u024f]+)$")
_PLURAL = lazily(r"(?<=[^\W_a-z]{2})s$")
_JOIN = lazily(r"[-.'\u2019]|&(?=[^\W_]{3})")
# AT&T is one word, Marks&Spencer are two.
_PARTS = lazily(r"-|(?<=[^\W_]{3})&(?=[^\W_]{3})")
_SPACED_INITIALS = lazily(rf"\b(?:[^\W\d_{UNSPACED_LETTERS}]\.\s?){{2,}}")
_UNSPACED = lazily(f"[{UNSPACED_LETTERS}]")
# A capital after one of these says only that something begins.
_BEGINS = lazily(r"(?:[:;!?…•|(\[/\"“„«\u2039'\u2018*_>\u2013\u2014]|-\s|\d[.)]?)\s*$")
_NOUN_CAPITALS = frozenset({"de"})
# What inflection adds to a name in Latin script; elsewhere anything short may be an ending.
_ENDINGS = ("s", "es", "n", "ns", "an", "ans", "ian", "ians", "en", "er", "e", "y", "ish", "ese")
_LONGEST_ENDING = 3
_SHORTEST_STEM = 4
_SHORTEST_NAME = 2
# Longer words of capitals are no acronyms, but words in capitals.
_LONGEST_ACRONYM = 5
# The fewest letters of an acronym, and of each word it stands for, where the words have no capitals.
_SHORTEST_SPELLED = 3
# How many words in capitals, or words with capitals, among them a function word, are no names.
_SHORTEST_LOUD, _SHORTEST_TITLE = 3, 4
# Function words that are written large within names, or always.
_OFTEN_LARGE = frozenset(("A", "I", "The"))
_LINE = lazily(r"[^\r\n]+(?=\r?\n)")
# As far apart as the words of one long name: "of the".
_WITHIN_ROW = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Name:
    """A proper name and its place; ``keys`` are its words without case and accents."""

    text: str
    start: int
    end: int
    keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Token:
    """A word: whether something begins with it, and whether it may be part of a name."""

    text: str
    start: int
    end: int
    begins: bool
    capital: bool

    @property
    def marked(self) -> bool:
        """A capital behind the first letter: an acronym, iPhone, McKay."""
        return any(char.isupper() for char in self.text[1:])

    @property
    def month(self) -> bool:
        """The name of a month, which by itself is no name, and may be part of one."""
        return self.text[0].isupper() and self.text.casefold() in MONTH_NAMES


def find_names(text: str) -> tuple[Name, ...]:
    """Return the proper names of a text in order.

    >>> [name.text for name in find_names("Yesterday Marie Curie's notes reached the University of Oslo and the WHO.")]
    ["Marie Curie's", 'University of Oslo', 'WHO']
    """
    # Most claims have one capital, which begins the sentence; splitting them takes far longer than looking.
    if not any(map(str.isupper, text[1:])):
        return ()
    seen, offsets = drop_unseen(text)
    if not offsets:
        return tuple(_names_in(text))
    return tuple(
        replace(name, text=text[start:end], start=start, end=end)
        for name in _names_in(seen)
        for start, end in [_original((name.start, name.end), offsets)]
    )


def _original(place: tuple[int, int], offsets: Sequence[int]) -> tuple[int, int]:
    """Return where a place in a text without its unseen characters is in the text."""
    start, end = place
    return (offsets[start], offsets[end - 1] + 1) if offsets else place


def _names_in(text: str) -> Iterator[Name]:
    language = guess_language(text)
    shortest = 2 if language in _NOUN_CAPITALS else 1
    sentences = list(_sentences(text, language))
    within = {token.text for tokens in sentences for token in tokens if token.capital and not token.begins}
    return (
        Name(
            text=text[row[0].start : row[-1].end],
            start=row[0].start,
            end=row[-1].end,
            keys=tuple(key for token in row if token.capital or token.month for key in _keys(token.text)),
        )
        for tokens in sentences
        for whole in _rows(text, tokens)
        if (row := [token for token in whole if not token.begins or token.marked or token.text in within])
        if sum(token.capital for token in row) >= shortest or any(token.capital and token.marked for token in row)
    )


def _sentences(text: str, language: str) -> Iterator[list[_Token]]:
    """Yield the words of each sentence, those of headings left out."""
    # Over the whole text, so that a word is the same here and where it is looked up, wherever sentences end.
    matches = deque(_TOKEN.finditer(text))
    for start, end in split_sentences(text):
        tokens = []
        while matches and matches[0].start() < end:
            match = matches.popleft()
            if match.start() >= start:
                tokens.append(_token(match, start, language))
        head = _first_line(text, start, end, tokens)
        begin = tokens[head].start if head else start
        if not (head and _is_heading(tokens[:head], text[start:begin].rstrip(), language)):
            begin, head = start, 0
        if not _is_heading(tokens[head:], text[begin:end], language):
            yield list(_named(text, tokens[head:], language))


def _first_line(text: str, start: int, end: int, tokens: Sequence[_Token]) -> int:
    """Return how many words the first line has where it may be a heading that runs into the text below it."""
    line = _LINE.match(text, start, end)
    count = sum(token.end <= line.end() for token in tokens) if line and "," not in line[0] else 0
    return count if _SHORTEST_TITLE <= count < len(tokens) and tokens[count].text[0].isupper() else 0


def _token(match: re.Match[str], sentence: int, language: str) -> _Token:
    word, start = match.group(), match.start()
    before = match.string[max(sentence, start - 8) : start]
    first = start - sentence <= len(before) and not any(map(str.isalnum, before))
    return _Token(
        text=word,
        start=start,
        end=match.end(),
        begins=first or bool(_BEGINS.search(before)),
        capital=_is_capital(word, language),
    )


def _is_capital(word: str, language: str) -> bool:
    folded = fold_word(_CLITIC.sub("", word))
    folded = _SHORT.get(folded, folded)
    if word in _ACRONYMS:
        return True
    if len(folded) < _SHORTEST_NAME or folded.isdigit() or folded in _NO_NAMES or word.islower():
        return False
    # A function word is written large to stress it, in a text of its own language.
    function_word = is_function_word(folded, language if word.isupper() else None)
    return not function_word and (word[0].isupper() or any(map(str.isupper, word[1:])))


def _is_heading(tokens: Sequence[_Token], sentence: str, language: str) -> bool:
    """Tell whether the capitals of a sentence name nothing: all words that could be small are written large.

    Before a full stop they may be nothing but names; then function words must be written large as well.
    """
    words = [token for token in tokens if not token.text.isdigit() and not is_function_word(fold_word(token.text))]
    if not words or not all(token.text[0].isupper() for token in words):
        return False
    if not sentence.isascii() and _UNSPACED.search(sentence):
        return False
    if all(token.text.isupper() for token in tokens):
        return any(len(token.text) > _LONGEST_ACRONYM or _is_large(token, language) for token in tokens)
    if len(words) > 1 and not sentence.endswith((".", "!", "?")):
        return True
    small = sentence.endswith(".") and any(token.text.islower() for token in tokens)
    return not small and any(_is_large(token, language) for token in tokens[1:])


def _is_large(token: _Token, language: str) -> bool:
    """Tell whether a function word is written large."""
    text = token.text
    is_name = token.month or text in _ACRONYMS or text in _OFTEN_LARGE
    return text[0].isupper() and not is_name and is_function_word(fold_word(text), language)


def _named(text: str, tokens: Sequence[_Token], language: str) -> Iterator[_Token]:
    """Yield the words of a sentence; those in a run of capitals that names nothing have none."""
    for run in _runs(text, tokens):
        loud = all(token.text.isupper() for token in run)
        least = _SHORTEST_LOUD if loud else _SHORTEST_TITLE
        large = any(_is_large(token, language) for token in run[not loud :])
        first = run[0]
        is_label = first.begins and text[first.end : first.end + 1] in (":", "!") and len(run) == 1
        label = is_label and loud and len(first.text) > _LONGEST_ACRONYM
        nameless = label or (len(run) >= least and large) or (loud and len(run) > _SHORTEST_LOUD)
        yield from (replace(token, capital=False) for token in run) if nameless else run


def _runs(text: str, tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Yield the words in runs that are written alike, large as a whole or at first, with nothing but space between."""
    run: list[_Token] = []
    for token in tokens:
        if run and not (_case(token) and _case(token) == _case(run[-1]) and text[run[-1].end : token.start].isspace()):
            yield run
            run = []
        run.append(token)
    if run:
        yield run


def _case(token: _Token) -> str:
    return "loud" if token.text.isupper() else "title" if token.text[0].isupper() else ""


def _rows(text: str, tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Yield the rows of capitals, with what connects them; a row ends at any mark."""
    row: list[_Token] = []
    for token in (*tokens, None):
        begins = goes_on = False
        if token is not None:
            begins = token.capital and not token.month
            # A tab parts the cells of a table.
            gap = text[row[-1].end : token.start] if row else "\t"
            near = "\t" not in gap and gap.strip() in ("", ".")
            goes_on = near and (begins or token.month or token.text in _CONNECTORS)
        if row and not goes_on:
            while not (row[-1].capital or row[-1].month):
                row.pop()
            yield row
            row = []
        if token is not None and (begins or goes_on):
            row.append(token)


def _keys(word: str) -> Iterator[str]:
    """Yield the parts of a word, without the small ones before and behind a name: EU-wide, d'Einstein, CEOs."""
    parts = _PARTS.split(_CLITIC.sub("", word))
    named = [part for part in parts if part[0].isupper() or part != part.lower()]
    whole = any(len(part) >= (_SHORTEST_NAME if part.isupper() else _SHORTEST_STEM) for part in named)
    for part in named if whole else parts:
        bare = _PLURAL.sub("", _ELISION.sub("", part))
        # Turkish parts an ending with an apostrophe, which is a letter in other names (Qur'an): both are looked up.
        ending = _APOSTROPHE_ENDING.search(bare)
        key = fold_word(re.sub("[.&'\u2019]", "", bare[: ending.start()] if ending else bare))
        key = _SHORT.get(key, key)
        if key:
            yield f"{key}'{fold_word(ending[1])}" if ending else key


def _forms(key: str) -> Iterator[str]:
    """Yield a word and what it may be an inflected form of."""
    key, apostrophe, ending = key.partition("'")
    yield key + ending
    if apostrophe:
        yield key
        key += ending
    latin = key.isascii()
    for length in range(1, min(_LONGEST_ENDING, len(key) - _SHORTEST_STEM) + 1):
        if not latin or key[-length:] in _ENDINGS:
            yield key[:-length]


class NamesIn:
    """The words of a text, to look the names of another one up.

    >>> NamesIn("Reports came from the German capital.").locate(find_names("It lies in Germany.")[0])
    ((22, 28),)
    """

    def __init__(self, text: str) -> None:
        text, self._offsets = drop_unseen(text)
        self._text = text
        self._places: dict[str, tuple[int, int]] = {}
        self._acronyms: dict[str, tuple[int, int]] = {}
        for match in _TOKEN.finditer(text):
            # Sentences may be joined without a space, and a name behind an article: West.they, L'Europe.
            parts = _JOIN.split(match[0])
            words = {match[0], *(part for part in parts if len(part) > 1)}
            for form in (form for word in words for key in _keys(word) for form in _forms(key)):
                self._places.setdefault(form, match.span())
            if (acronym := _PLURAL.sub("", match[0])).isupper():
                self._acronyms.setdefault(fold_word(acronym.replace(".", "")), match.span())
        for match in _SPACED_INITIALS.finditer(text):
            self._places.setdefault(fold_word(re.sub(r"[\W_]", "", match[0])), match.span())

    @cached_property
    def _initials(self) -> dict[str, tuple[int, int]]:
        """What acronyms may stand for; few names are looked up here."""
        found: dict[str, tuple[int, int]] = {}
        for initials, place in (*_initials(self._text), *_small_initials(self._text)):
            found.setdefault(initials, place)
        return found

    def locate(self, name: Name) -> tuple[tuple[int, int], ...] | None:
        """Return where the text has the words of a name, or what they abbreviate; ``None`` if one is missing."""
        if whole := self._acronym(name.keys):
            return (_original(whole, self._offsets),)
        written = drop_unseen(name.text)[0].replace(".", "")
        found = []
        for there, keys in groupby(name.keys, key=lambda key: self._place(key, written)):
            found.append(there or self._acronym((*keys,)))
        return None if None in found else tuple(sorted({_original(place, self._offsets) for place in found if place}))

    def _acronym(self, keys: Sequence[str]) -> tuple[int, int] | None:
        return self._acronyms.get("".join(key[0] for key in keys)) if len(keys) > 1 else None

    def _place(self, key: str, written: str) -> tuple[int, int] | None:
        there = next((self._places[form] for form in _forms(key) if form in self._places), None)
        return there or (self._initials.get(key) if key.upper() in written else None)


def _initials(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the first letters of every row of capitals with the place of the row.

    An acronym in it counts with all letters, and its beginning may be the name (United States Postal Service). In a
    passage of capitals a name is a part of the row.
    """
    for row in _capital_rows(text):
        loud = all(word[0].isupper() for word in row)
        letters = [fold_word(word[0] if word[0].isupper() and not loud else word[0][0]) for word in row]
        most = min(_LONGEST_ACRONYM, len(row))
        beginnings = [] if loud else [(0, end) for end in range(2, most + 1)]
        sizes = range(_SHORTEST_LOUD, most + 1)
        within = [(start, start + size) for size in sizes for start in range(len(row) - size + 1)]
        for start, end in (*beginnings, *within, (0, len(row))):
            if end - start > 1:
                yield "".join(letters[start:end]).replace(".", ""), (row[start].start(), row[end - 1].end())


def _capital_rows(text: str) -> Iterator[list[re.Match[str]]]:
    """Yield the rows of words with capitals, function words left out."""
    row: list[re.Match[str]] = []
    for match in _TOKEN.finditer(text):
        if is_function_word(fold_word(match[0])) and match[0] not in _ACRONYMS:
            continue
        large = match[0][0].isupper()
        if row and (not large or len(" ".join(text[row[-1].end() : match.start()].split())) > _WITHIN_ROW):
            yield row
            row = []
        if large:
            row.append(match)
    if row:
        yield row


def _small_initials(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the first letters of words side by side that need no capitals: red blood cells.

    Two letters, short words and function words would too often be the same by chance.
    """
    row: deque[re.Match[str]] = deque(maxlen=_LONGEST_ACRONYM)
    for match in _TOKEN.finditer(text):
        if row and (gap := text[row[-1].end() : match.start()]) != "-" and not gap.isspace():
            row.clear()
        word = fold_word(match[0])
        if len(word) < _SHORTEST_SPELLED or is_function_word(word):
            row.clear()
            continue
        row.append(match)
        for size in range(_SHORTEST_SPELLED, len(row) + 1):
            yield "".join(fold_word(found[0][0]) for found in [*row][-size:]), (row[-size].start(), match.end())
