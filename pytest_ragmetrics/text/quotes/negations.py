"""Words that turn a statement round because they negate, restrict or reverse it, and whether leaving them out does.

``negations.txt`` lists them by language. Those under ``anywhere`` count wherever they stand in what is left out, those
under ``beside`` ("may", "half of", "former") only next to what is kept. A sentence that is left out whole counts only
if it denies its neighbour: it is short and has an ``untrue`` word, or one of ``truth`` and a negation. ``numbers`` are
those that a bracket may not insert or replace.

An expression is a regular expression for whole words; ``*`` stands for an ending and ``@`` for a letter. Words that
mean something else in another language have their own line, with a pattern between slashes that must be near them.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import takewhile
from unicodedata import normalize

from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.unicode import UNSPACED_CHARACTER, caseless
from pytest_ragmetrics.text.words import MARKS, count_words, fold_word, read_word_lists, word_list

# How far around a gap words are looked at that it cuts in two, how far the clause goes on, and how far the signs of a
# language are looked for.
_AROUND, _GLANCE = 40, 400
# A longer sentence tells something of its own.
_SHORT = 9
# What counts beside what is kept may be so many characters off: "may one day".
_BESIDE = 12
# From here on only the ends of a gap are looked through for the ends of sentences, which come soon in any prose.
_LONG = 20_000
# A letter of a folded word. The exact class of marks takes ten times as long to compile with each pattern.
_LETTER = r"[\w\u0300-\u036f\u0900-\u0963\u0966-\u0dff]"
_START = re.compile(rf"[{unicode.UNSPACED}]|(?<!{_LETTER}){_LETTER}")
_LOOKBEHIND = re.compile(r"^(?:\(\?<[=!][^)]*\))*")
_APOSTROPHES = f"'`{unicode.APOSTROPHES}{unicode.PRIMES}"
# What is inside a word that is broken at the end of a line, emphasised in part, or spaced out.
_BROKEN = re.compile(rf"[-{unicode.HYPHENS}{unicode.SOFT_HYPHEN}][ \t]*\r?\n[ \t>]*|[*_]+| ")
_PART = rf"(?:(?![{unicode.UNSPACED}])[^\W_]|[{MARKS}{unicode.INVISIBLE}])"
# A character of a script without spaces, or a word with the hyphens and apostrophes in it.
_TOKEN = re.compile(
    rf"[{unicode.UNSPACED}]|(?<!{_PART}){_PART}(?: {_PART}(?!{_PART})){{2,}}"
    rf"|{_PART}+(?:(?:[{_APOSTROPHES}-]|{_BROKEN.pattern[:-2]})(?={_PART}){_PART}+)*[{_APOSTROPHES}]?"
)
_DROPPED, _DENIAL = re.compile(f"[{unicode.VOWEL_SIGNS}{unicode.INVISIBLE}]"), re.compile(f"[{unicode.DENIALS}]")
# Greek letters and those of Alef without their marks, Yeh and Kaf as Persian writes them.
_SAME = {
    code: normalize("NFD", chr(code))[0]
    for code in (*range(0x370, 0x400), *range(0x622, 0x627), *range(0x1F00, 0x2000))
}
_SAME |= dict.fromkeys(map(ord, _APOSTROPHES), "'") | {0x649: "\u06cc", 0x64A: "\u06cc", 0x643: "\u06a9", ord("_"): " "}
_CLOSING = f"\"'{unicode.QUOTES})\\]*_"
_LOUD = f"[!?{unicode.ELLIPSIS}]"
# The end of a sentence, and what is in front of the next: never a small letter, which may follow an abbreviation.
_SENTENCE_END = re.compile(
    rf"[{unicode.STOPS}][{_CLOSING}]*\s*"
    rf"|(?:(?<![^\W\d_])(?P<word>[^\W\d_]{{2,}}|\d{{3}}|%)[{_CLOSING}]*\.(?!\.)|(?<!{_LOUD}){_LOUD}+)[{_CLOSING}]*"
    rf"\s[\s{_CLOSING}{unicode.PAUSES}{unicode.OPENING_STOPS}-]*"
    r"(?=[^\W_a-z\u00df-\u00f6\u00f8-\u00ff\u0430-\u045f\u03ac-\u03ce]|$)"
)
_CLAUSE_CUT = re.compile(
    rf"[,;:(){unicode.PAUSES}{unicode.COMMAS}{unicode.SEMICOLONS}{unicode.COLONS}{unicode.LEFT_ROUND}{unicode.RIGHT_ROUND}]+(?=\D|$)"
    r"|\n\s*\n"
)


@cache
def _expressions(section: str) -> dict[str, dict[str, list[str]]]:
    """Return the expressions of a section by their first letters, and by the sign of their language."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in read_word_lists("negations.txt")[section].strip().split("\n"):
        heading, _, body = line.partition(": ")
        for expression in map(fold, body.split()):
            letters = _LOOKBEHIND.sub("", expression)
            key = letters[:1] if UNSPACED_CHARACTER.match(letters) else "".join(takewhile(str.isalpha, letters[:2]))
            found.setdefault(key, {}).setdefault(heading.partition("/")[2].rstrip("/"), []).append(expression)
    return found


@cache
def _patterns(section: str, letters: str) -> list[tuple[str, re.Pattern[str]]]:
    by_sign = _expressions(section).get(letters, {}).items()
    return [(sign, re.compile("|".join(map(_pattern, expressions)))) for sign, expressions in by_sign]


def _pattern(expression: str) -> str:
    if UNSPACED_CHARACTER.search(expression):
        return expression
    # A run of letters may be as long as a text.
    whole = re.sub(r"@?(?<![\])}])\*", "@{0,40}", expression).replace(" ", "[ -]").replace("@", _LETTER)
    return whole if expression.endswith("'") else rf"(?:{whole})(?!-?{_LETTER})"


def fold(text: str) -> str:
    """Return a text in which words are written in one way: without case, vowel signs, and accents where they vary."""
    return caseless(_DROPPED.sub("", text.translate(_SAME))).translate(_SAME)


def turns_round(words: str) -> bool:
    """Tell whether words have one among them that negates, restricts or reverses what it is put to.

    >>> turns_round("never ,"), turns_round("by no means"), turns_round("always"), turns_round("ohne jeden")
    (True, True, False, True)
    """
    # A word alone is taken to be English, Spanish, French, Portuguese or Romanian where it may be.
    text = f"{words} : the los les n\u00e3o \u00een"
    found = any(_first(section, text, 0, len(words)) for section in ("anywhere", "beside"))
    return found or bool(_DENIAL.search(words))


def names_number(words: str) -> bool:
    """Tell whether words have a digit or a number, cardinal or ordinal, among them.

    >>> names_number("42 mills"), names_number("the fourth"), names_number("weighty"), names_number("zwei Wochen")
    (True, True, False, True)
    """
    return any(map(str.isdigit, words)) or _first("numbers", words, 0, len(words)) is not None


def lost_negation(text: str, start: int, end: int) -> str | None:
    """Return what of ``text[start:end]`` turns round what is before or after it, ``None`` if nothing does.

    A sentence of its own, between two ends of sentences, does so only if it is next to one of them and denies it:
    "That is not true."

    >>> text = "The drug is by no means safe."
    >>> lost_negation(text, 11, 23), lost_negation(text, 3, 8)
    ('no', None)
    >>> lost_negation("It rained. Nobody stayed there. They sang.", 9, 32)
    """
    ends = _sentence_ends(text, start, end)
    if not ends:
        return _turning(text, start, end, after=True)
    lost = _turning(text, start, ends[0][0]) or _turning(text, ends[-1][1], end, after=True)
    for at in (0, -2) if len(ends) > 1 else ():
        lost = lost or _denying(text, ends[at][1], ends[at + 1][0])
    return lost


def lost_at_edge(text: str, at: int, *, before: bool) -> str | None:
    """Return what turns round the quotation that an ellipsis cuts off at ``at``, in the clause it is cut out of.

    >>> lost_at_edge("It rained, so nobody left the inn.", 21, before=True)
    'nobody'
    >>> lost_at_edge("Nobody slept, and all left the inn.", 18, before=True)
    """
    if before:
        start = max((high for _, high in _sentence_ends(text, at - _GLANCE, at)), default=max(at - _GLANCE, 0))
        cuts = (found.end() for found in _CLAUSE_CUT.finditer(text, start, at) if _has_word(text, found.end(), at))
        return _turning(text, max(cuts, default=start), at, after=True)
    end = min((low for low, _ in _sentence_ends(text, at, at + _GLANCE)), default=at + _GLANCE)
    cuts = (found.start() for found in _CLAUSE_CUT.finditer(text, at, end) if _has_word(text, at, found.start()))
    return _turning(text, at, min(cuts, default=end), before=True)


def _has_word(text: str, start: int, end: int) -> bool:
    """Tell whether there is more than punctuation and marks of emphasis."""
    return any(map(str.isalnum, text[start:end]))


def _sentence_ends(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return where sentences end and the next ones begin; only the ends of a long text are looked through."""
    middle = [(start, end)] if end - start <= _LONG else [(start, start + _LONG // 2), (end - _LONG // 2, end)]
    return [
        (max(found.end("word"), found.start(), start), found.end())
        for low, high in middle
        for found in _SENTENCE_END.finditer(text, max(low - _AROUND, 0), high)
        if found.end() > low and fold_word(found["word"] or "") not in word_list("negations.txt", "abbreviations")
    ]


def _denying(text: str, start: int, end: int) -> str | None:
    """Return what denies a neighbour in a sentence: it is short and speaks of what is true."""
    if count_words(text[start:end]) > _SHORT:
        return None
    sections = ("untrue", "anywhere", "beside") if _first("truth", text, start, end) else ("untrue",)
    return next((lost for each in sections if (lost := _first(each, text, start, end))), None)


def _turning(text: str, start: int, end: int, *, before: bool = False, after: bool = False) -> str | None:
    """Return what of ``text[start:end]`` turns round what is kept, which is before or after it, or on both sides."""
    if denial := _DENIAL.search(text, start, end):
        return denial[0]
    return (
        _first("anywhere", text, start, end)
        or (_first("beside", text, max(start, end - _BESIDE), end) if after else None)
        or (_first("beside", text, start, min(end, start + _BESIDE)) if before else None)
    )


def _first(section: str, text: str, start: int, end: int) -> str | None:
    """Return the first expression of a section that is at least in part in ``text[start:end]``."""
    if not _has_word(text, start, end):
        return None
    folded, places = _folded(text, max(start - _AROUND, 0), end + _AROUND)
    near = ""
    for begin in (token.start() for token in _START.finditer(folded)):
        for key in dict.fromkeys((folded[begin : begin + 2], folded[begin], "")):
            for sign, pattern in _patterns(section, key):
                if not (found := pattern.match(folded, begin)):
                    continue
                near = near or fold("".join(text[max(at - _GLANCE, 0) : at + _GLANCE] for at in (start, end)))
                first, last = places[begin][0], places[found.end() - 1][1]
                low, high = max(first, start), min(last, end)
                # A word of a script without spaces of which a part is left is torn, and not left out.
                is_torn = 2 * (high - low) <= last - first and UNSPACED_CHARACTER.match(text, low)
                if low < high and not is_torn and (not sign or re.search(sign, near)):
                    return text[first:last]
    return None


def _folded(text: str, start: int, end: int) -> tuple[str, list[tuple[int, int]]]:
    """Return the words of a text folded, with one space between those that are apart, and the place of each letter."""
    letters: list[str] = []
    places: list[tuple[int, int]] = []
    done = start
    for token in _TOKEN.finditer(text, start, end):
        if word := fold(_BROKEN.sub("", token[0])):
            gap = _DROPPED.sub("", text[done : token.start()]) if places else ""
            gap = gap and (gap if UNSPACED_CHARACTER.match(letters[-1][-1]) else " ")
            letters.append(gap + word)
            places += [token.span()] * len(gap + word)
            done = token.end()
    return "".join(letters), places
