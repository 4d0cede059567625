"""Words that turn a statement round because they negate, restrict or reverse it, and whether leaving them out does.

``negations.txt`` lists them by language. Those under ``anywhere`` count wherever they stand in what is left out, those
under ``beside`` ("may", "half of", "former") only next to what is kept. A sentence that is left out whole counts only
if it denies its neighbour: it is short and has an ``untrue`` word, or one of ``truth`` and a negation.

An expression is a regular expression for whole words; ``*`` stands for an ending and ``@`` for a letter. Words that
mean something else in another language have their own line, with a pattern between slashes that must be near them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from unicodedata import normalize

from pytest_ragmetrics.text.unicode import DENIALS, INVISIBLE, UNSPACED, UNSPACED_CHARACTER, VOWEL_SIGNS
from pytest_ragmetrics.text.words import MARKS, count_words, fold_word, read_word_lists, word_list

# How far around a gap words are looked at that it cuts in two, how far the clause goes on, and how far the signs of a
# language are looked for.
_AROUND = 40
_GLANCE = 400
# A longer sentence tells something of its own.
_SHORT = 9
# What counts beside what is kept may be so many characters off: "may one day".
_BESIDE = 12
# From here on only the ends of a gap are looked through for the ends of sentences, which come soon in any prose.
_LONG = 20_000
# A letter of a folded word. The exact class of marks takes ten times as long to compile with each pattern.
_LETTER = r"[\w\u0300-\u036f\u0900-\u0963\u0966-\u0dff]"
_TOKEN = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}]){_LETTER})+")
_LOOKBEHIND = re.compile(r"(?:\(\?<[=!][^)]*\))*")
_FIRST_LETTERS = re.compile(r"[^\W\d_]{1,2}")
_ONE_CHARACTER = re.compile(rf".[{VOWEL_SIGNS}{INVISIBLE}{MARKS}\u1160-\u11ff\u3099\u309a]*", re.DOTALL)
_DROPPED = re.compile(f"[{VOWEL_SIGNS}{INVISIBLE}]")
_DENIAL = re.compile(f"[{DENIALS}]")
_SAME = {
    **{
        code: normalize("NFD", chr(code))[0]
        for code in (*range(0x370, 0x400), *range(0x622, 0x627), *range(0x1F00, 0x2000))
        if normalize("NFD", chr(code))
    },
    **dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02b9\u02bb\u02bc\u02bd\u02c8\u2032\u0060\u00b4\u055a\ua78c"), "'"),
    **dict.fromkeys(map(ord, "\u064a\u0649"), "\u06cc"),
    ord("\u0643"): "\u06a9",
    ord("_"): " ",
}
_CLOSING = "\"'\u00bb\u00ab\u2018-\u201f\u2039\u203a\u300d\u300f)\\]*_"
# The end of a sentence, and what is in front of the next: never a small letter, which may follow an abbreviation.
_SENTENCE_END = re.compile(
    rf"[\u3002\uff01\uff1f\u0964\u0965\u06d4\u061f\u1362\u17d4][{_CLOSING}]*\s*"
    rf"|(?:(?<![^\W\d_])(?P<word>[^\W\d_]{{2,}}|\d{{3,}}|%)[{_CLOSING}]*\.(?!\.)|[!?\u2026]+)[{_CLOSING}]*"
    rf"(?:\s+[{_CLOSING}\u2013\u2014\u00a1\u00bf-]*)+(?=[^\W_a-z\u00df-\u00f6\u00f8-\u00ff\u0430-\u045f\u03ac-\u03ce]|$)"
)
_CLAUSE_CUT = re.compile(r"[,;:()\u2013\u2014\u060c\u061b\u3001\uff08-\uff0c\uff1a\uff1b]+(?=\D|$)|\n\s*\n")
# Words broken at the end of a line, emphasised inside, or spaced out: their letters are put together.
_BROKEN = re.compile(
    r"(?<=[^\W\d_])[-\u2010\u00ad][ \t]*\r?\n[ \t>]*(?=[^\W\d_])|(?<=\w)[*_]+(?=\w)|(?<=(?<!\w)\w) (?=\w(?!\w))"
)


class _Expressions:
    """A section of ``negations.txt``, its expressions by their first letters, as each is looked for at such words."""

    def __init__(self, section: str) -> None:
        self._by_letters: dict[str, dict[str, list[str]]] = {}
        self._patterns: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
        for line in read_word_lists("negations.txt")[section].strip().split("\n"):
            heading, _, body = line.partition(": ")
            sign = heading.partition("/")[2].rstrip("/")
            for expression in map(fold, body.split()):
                bare = _LOOKBEHIND.sub("", expression)
                letters = _FIRST_LETTERS.match(bare)
                key = bare[:1] if UNSPACED_CHARACTER.match(bare) else letters[0] if letters else ""
                self._by_letters.setdefault(key, {}).setdefault(sign, []).append(expression)

    def find(self, folded: str, near: str) -> Iterator[re.Match[str]]:
        """Yield what of a folded text is one of the expressions, in a language that the text near it may be in."""
        for token in _TOKEN.finditer(folded):
            word = token[0]
            for key in dict.fromkeys((word[:2], word[:1], "" if len(word) > 1 else word)):
                for sign, pattern in self._patterns_of(key):
                    found = pattern.match(folded, token.start())
                    if found and (not sign or _is_near(sign, near)):
                        yield found

    def _patterns_of(self, key: str) -> list[tuple[str, re.Pattern[str]]]:
        if key not in self._patterns:
            by_sign = self._by_letters.get(key, {}).items()
            self._patterns[key] = [(sign, re.compile("|".join(map(_pattern, each)))) for sign, each in by_sign]
        return self._patterns[key]


def _pattern(expression: str) -> str:
    if UNSPACED_CHARACTER.search(expression):
        return expression
    # A run of letters may be as long as a text.
    whole = re.sub(r"@?(?<![\])}])\*", "@{0,40}", expression).replace(" ", r"[\W_]{1,9}").replace("@", _LETTER)
    return whole if expression.endswith("'") else rf"(?:{whole})(?!-?{_LETTER})"


_expressions = lru_cache(maxsize=None)(_Expressions)


@lru_cache(maxsize=256)
def _is_near(sign: str, text: str) -> bool:
    return re.search(sign, text) is not None


def fold(text: str) -> str:
    """Return a text in which words are written in one way: without case, vowel signs, and accents where they vary."""
    if text.isascii():
        return text.lower().replace("`", "'").replace("_", " ")
    plain = _DROPPED.sub("", text.replace("\u00b4", "'"))
    return normalize("NFKC", normalize("NFKC", plain).casefold().replace("i\u0307", "i")).translate(_SAME)


def turns_round(words: str) -> bool:
    """Tell whether words have one among them that negates, restricts or reverses what it is put to.

    >>> turns_round("never ,"), turns_round("by no means"), turns_round("always"), turns_round("ohne jeden")
    (True, True, False, True)
    """
    # A word alone is taken to be English, Spanish, French, Portuguese or Romanian where it may be.
    text = f"{words} \u2026 the los les n\u00e3o \u00een"
    return any(_first(section, text, 0, len(words)) for section in ("anywhere", "beside")) or bool(
        _DENIAL.search(words)
    )


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
        start = max(at - _GLANCE, 0)
        start = max((high for _, high in _sentence_ends(text, start, at)), default=start)
        cuts = [found.end() for found in _CLAUSE_CUT.finditer(text, start, at) if _has_word(text, found.end(), at)]
        return _turning(text, max(cuts, default=start), at, after=True)
    end = min((low for low, _ in _sentence_ends(text, at, at + _GLANCE)), default=at + _GLANCE)
    cuts = [found.start() for found in _CLAUSE_CUT.finditer(text, at, end) if _has_word(text, at, found.start())]
    return _turning(text, at, min(cuts, default=end), before=True)


def _has_word(text: str, start: int, end: int) -> bool:
    """Tell whether there is more than punctuation and marks of emphasis."""
    return any(map(str.isalnum, text[start:end]))


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
    joined = _BROKEN.sub("", text[start:end])
    return (
        _first("anywhere", text, start, end)
        or (_first("beside", text, max(start, end - _BESIDE), end) if after else None)
        or (_first("beside", text, start, min(end, start + _BESIDE)) if before else None)
        or (_first("anywhere", joined, 0, len(joined)) if len(joined) < end - start else None)
    )


def _first(section: str, text: str, start: int, end: int) -> str | None:
    """Return the first expression of a section that is at least in part in ``text[start:end]``."""
    if not _has_word(text, start, end):
        return None
    window = text[(begin := max(start - _AROUND, 0)) : end + _AROUND]
    near = fold("".join(text[max(at - _GLANCE, 0) : at + _GLANCE] for at in (start, end)))
    offsets: list[int] = []
    for found in _expressions(section).find(fold(window), near):
        offsets = offsets or _offsets(window, begin)
        first, last = offsets[found.start()], offsets[found.end()]
        low, high = max(first, start), min(last, end)
        # A word of a script without spaces of which a part is left is torn, and not left out.
        if _has_word(text, low, high) and (2 * (high - low) > last - first or not UNSPACED_CHARACTER.match(text, low)):
            return text[first:last].strip()
    return None


def _offsets(window: str, start: int) -> list[int]:
    """Return for each offset of the folded form of a text where it is in the text, and the end."""
    if window.isascii():
        return list(range(start, start + len(window) + 1))
    offsets: list[int] = []
    for found in _ONE_CHARACTER.finditer(window):
        offsets += [start + found.start()] * len(fold(found[0]))
    return [*offsets, start + len(window)]


def _sentence_ends(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return where sentences end and the next ones begin; only the ends of a long text are looked through."""
    middle = [(start, end)] if end - start <= _LONG else [(start, start + _LONG // 2), (end - _LONG // 2, end)]
    return [
        (max(found.end("word"), found.start(), start), found.end())
        for low, high in middle
        for found in _SENTENCE_END.finditer(text, max(low - _AROUND, 0), high)
        if found.end() > low and fold_word(found["word"] or "") not in word_list("negations.txt", "abbreviations")
    ]
