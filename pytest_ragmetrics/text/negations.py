"""Words that turn a statement round because they negate, restrict or reverse it, and whether leaving them out does.

``negations.json`` has them by language: ``words`` are looked for in any text, ``ambiguous`` ones only in a text that
may be in that language, which its ``common`` words tell. In an expression ``*`` stands for letters, the rest is a
regular expression. A sentence with ``pointing`` words, or that begins with ``pointing_first`` ones, speaks of others.
What follows one of the ``auxiliaries`` ("is", "has", "can") may turn the statement round whatever it says, and so may
what governs a clause after one of the ``complementizers`` ("that", "whether") and ``pronouns``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple
from unicodedata import normalize

from pytest_ragmetrics.files import packaged_text
from pytest_ragmetrics.text.characters import DENIALS, INVISIBLE, UNSPACED_CHARACTER, VOWEL_SIGNS
from pytest_ragmetrics.text.words import MARKS, count_words

# How far around a gap words are looked at that a gap cuts in two, and the words that tell the language.
_AROUND = 40
_GLANCE = 400
# A shorter sentence says little by itself: "Nobody believes it."
_SHORT = 6
# What is in this many characters begins a sentence.
_FIRST = 12
# From here on only the ends of a gap are looked through for the ends of sentences, which come soon in any prose.
_LONG = 20_000
_LETTER = rf"[\w{MARKS}]"
_WORD = re.compile(f"{_LETTER}+")
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
# Letters that look alike in Latin, Cyrillic and Greek, and words that mix them.
_AS_CYRILLIC = str.maketrans(
    "acdehijklmopqstywx",
    "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u043a\u04cf\u043c\u043e\u0440\u051b\u0455\u0442\u0443\u051d\u0445",
)
_AS_GREEK = str.maketrans("aynikvoptuxw", "\u03b1\u03b3\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03c9")
_AS_LATIN = {new: old for table in (_AS_CYRILLIC, _AS_GREEK) for old, new in table.items()}
_LATIN_LETTER = "a-z\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_TWO_SCRIPTS = re.compile(rf"\b\w*?(?:[{_LATIN_LETTER}][\u0370-\u052f]|[\u0370-\u052f][{_LATIN_LETTER}])\w*")
_CLOSING = "\"'\u00bb\u00ab\u2018-\u201f\u2039\u203a\u300d\u300f)\\]*_"
# The end of a sentence, and what is in front of the next: never a small letter, which may follow an abbreviation.
_SENTENCE_END = re.compile(
    rf"[\u3002\uff01\uff1f\u0964\u0965\u06d4\u061f\u1362\u17d4][{_CLOSING}]*\s*"
    rf"|(?:(?<![^\W\d_])(?P<word>[^\W\d_]{{2,}})[{_CLOSING}]*\.(?!\.)|[!?\u2026]+)[{_CLOSING}]*(?:\s+[{_CLOSING}\u2013\u2014-]*)+"
    r"(?=[^\W_a-z\u00df-\u00f6\u00f8-\u00ff\u0430-\u045f\u03ac-\u03ce]|$)"
)
_CLAUSE_CUT = re.compile(r"[,;:()\u2013\u2014\u060c\u061b\u3001\uff08-\uff0c\uff1a\uff1b]+(?=\D|$)|\n\s*\n")
_CLAUSE_MARK = re.compile(r"[.!?\u2026\u0964\u06d4\u061f]|" + _CLAUSE_CUT.pattern)
_LAST_WORD = re.compile(rf"({_LETTER}+)[\s*]*$")
# Words that an adverb or a phrase in its place has at most: "as yet far from".
_FEW = 4
# So many words show what governs a clause.
_GOVERNING = 6
# What closes a clause in Japanese, where the predicate is last: what is denied before it is not what follows.
_CLAUSE_END = re.compile("い?(?:のに|けれど|けど|が、|から|ので|ため|ても|でも)")


# Words broken at the end of a line, emphasised inside, or spaced out: their letters are put together.
_BROKEN = re.compile(
    r"(?<=[^\W\d_])[-\u2010\u00ad][ \t]*\r?\n[ \t>]*(?=[^\W\d_])|(?<=\w)[*_]+(?=\w)|(?<=(?<!\w)\w) (?=\w(?!\w))"
)


class _Place(NamedTuple):
    """Where in a text words are."""

    start: int
    end: int


class _Vocabulary:
    """Expressions to be found in a folded text."""

    def __init__(self, expressions: Iterable[str]) -> None:
        self._words: set[str] = set()
        self._beginnings: set[str] = set()
        self._endings: set[str] = set()
        self._phrases: dict[str, list[re.Pattern[str]]] = {}
        patterns: list[str] = []
        for expression in expressions:
            first = expression.split(" ")[0]
            inner = expression.replace("*", f"{_LETTER}*").replace(" ", r"[\W_]+")
            if UNSPACED_CHARACTER.search(expression):
                patterns.append(expression)
            elif _WORD.fullmatch(expression.strip("*")) and not (expression[0] == expression[-1] == "*"):
                group = self._endings if expression[0] == "*" else self._beginnings
                (group if "*" in expression else self._words).add(expression.strip("*"))
            elif first != expression and _WORD.fullmatch(first):
                # By first word, as one pattern for all phrases takes ten times as long.
                self._phrases.setdefault(first, []).append(re.compile(rf"{inner}(?!{_LETTER})"))
            else:
                patterns.append(rf"(?<!{_LETTER})(?:{inner})(?!{_LETTER})")
        self._pattern = re.compile("|".join(patterns)) if patterns else None
        self._longest = max(map(len, self._beginnings | self._endings), default=0)

    def places_in(self, folded: str) -> Iterator[_Place]:
        """Yield where the expressions are."""
        known: dict[str, bool] = {}
        for word in _WORD.finditer(folded):
            text = word[0]
            if text not in known:
                known[text] = self._has(text)
            if known[text]:
                yield _Place(*word.span())
            for phrase in self._phrases.get(text, ()):
                if found := phrase.match(folded, word.start()):
                    yield _Place(*found.span())
        if self._pattern:
            for found in self._pattern.finditer(folded):
                yield _Place(*found.span())

    def _has(self, word: str) -> bool:
        if word in self._words:
            return True
        # Nothing that is listed is longer, and a word may be as long as a text.
        cuts = range(1, min(len(word), self._longest) + 1)
        return any(word[:at] in self._beginnings or word[-at:] in self._endings for at in cuts)


class _Languages:
    """The words of ``negations.json``."""

    def __init__(self) -> None:
        content = json.loads(packaged_text("text/negations.json"))
        self._languages: dict[str, dict[str, Any]] = content["languages"]
        self.pointing = _Vocabulary(_expressions(content["pointing"]))
        self.pointing_first = _Vocabulary(_expressions(content["pointing_first"]))
        #: Words that a stop follows inside a sentence.
        self.abbreviations = frozenset(" ".join(content["abbreviations"]).split())
        self._common = self._by_language("common")
        self._classes = {name: self._by_language(name) for name in ("auxiliaries", "complementizers", "pronouns")}

    def _by_language(self, words: str) -> dict[str, frozenset[str]]:
        return {
            name: frozenset(fold(language[words]).split())
            for name, language in self._languages.items()
            if words in language
        }

    @cached_property
    def _latin(self) -> _Vocabulary:
        return _Vocabulary(word for word in self._words if _is_latin(word))

    @cached_property
    def _others(self) -> _Vocabulary:
        return _Vocabulary(word for word in self._words if not _is_latin(word))

    @cached_property
    def _words(self) -> list[str]:
        words = (word for language in self._languages.values() for word in _expressions(language["words"]))
        return list(dict.fromkeys(words))

    @cached_property
    def _ambiguous(self) -> dict[str, _Vocabulary]:
        return {
            name: _Vocabulary(_expressions(language["ambiguous"]))
            for name, language in self._languages.items()
            if "ambiguous" in language
        }

    def vocabularies(self, folded: str) -> Iterator[_Vocabulary]:
        """Yield what to look for in a text: what is a negation in any language, and in those it may be in."""
        yield self._latin
        if not folded.isascii():
            yield self._others
        shared = self._shared(folded)
        most = max(shared.values())
        for name, vocabulary in self._ambiguous.items():
            if 2 * shared.get(name, most) >= most:
                yield vocabulary

    def is_one_of(self, words: Literal["auxiliaries", "complementizers", "pronouns"], word: str, folded: str) -> bool:
        """Tell whether a word is one of these in a language that a text may be in."""
        shared = self._shared(folded)
        most = max(shared.values())
        names = (name for name, known in self._classes[words].items() if word in known)
        return any(2 * shared.get(name, most) >= most for name in names)

    def _shared(self, folded: str) -> dict[str, int]:
        """Return how many common words of each language are in a text."""
        words = set(_WORD.findall(folded))
        return {name: len(words & common) for name, common in self._common.items()}


def _is_latin(expression: str) -> bool:
    return not any(char.isalpha() and ord(char) > 0x24F and not 0x1E00 <= ord(char) < 0x1F00 for char in expression)  # noqa: PLR2004 - the Latin blocks


def _expressions(lines: Iterable[str]) -> Iterator[str]:
    return (fold(expression) for line in lines for expression in line.split(", "))


@lru_cache(maxsize=1)
def _languages() -> _Languages:
    return _Languages()


def fold(text: str) -> str:
    """Return a text in which words are written in one way: without case, vowel signs, and accents where they vary."""
    if text.isascii():
        return text.lower().replace("`", "'").replace("_", " ")
    plain = _DROPPED.sub("", text.replace("\u00b4", "'"))
    folded = normalize("NFKC", normalize("NFKC", plain).casefold().replace("i\u0307", "i")).translate(_SAME)
    return _TWO_SCRIPTS.sub(_in_one_script, folded)


def _in_one_script(word: re.Match[str]) -> str:
    """Return a word in Latin if the letters of other scripts in it look Latin, else in that other script."""
    latin = word[0].translate(_AS_LATIN)
    if not _TWO_SCRIPTS.search(latin):
        return latin
    return word[0].translate(_AS_GREEK if re.search("[\u0370-\u03ff]", word[0]) else _AS_CYRILLIC)


def turns_round(words: str) -> bool:
    """Tell whether words have one among them that negates, restricts or reverses what it is put to.

    >>> turns_round("never ,"), turns_round("by no means"), turns_round("always"), turns_round("ohne jeden")
    (True, True, False, True)
    """
    return bool(_DENIAL.search(words)) or _first_word(words, 0, len(words)) is not None


def lost_negation(text: str, start: int, end: int) -> str | None:
    """Return what of ``text[start:end]`` turns round what is before or after it, ``None`` if nothing does.

    What stands in a sentence of its own, between two ends of sentences, says nothing about those around it, unless it
    is next to one of them and short or points at it: "That is not true."

    >>> text = "The drug is by no means safe."
    >>> lost_negation(text, 11, 23), lost_negation(text, 3, 8)
    ('by no means', None)
    >>> lost_negation("It rained. Men who had come by boat did not stay there. They sang.", 9, 56)
    """
    if not _has_word(text, start, end):
        return (found := _DENIAL.search(text, start, end)) and found[0]
    ends = _sentence_ends(text, start, end)
    if len(ends) < 2:  # noqa: PLR2004 - no sentence is whole
        head = ends[0].start if ends else end
        return _first_word(text, start, head) or _first_word(text, head, end, after_sentence=bool(ends))
    lost = _first_word(text, start, ends[0].start) or _first_word(text, ends[-1].end, end, after_sentence=True)
    for low, high in {(ends[0].end, ends[1].start), (ends[-2].end, ends[-1].start)}:
        lost = lost or (_first_word(text, low, high) if _refers(text[low:high]) else None)
    return lost


def doubtful_words(text: str, start: int, end: int) -> str | None:
    """Return what of ``text[start:end]`` may turn round what is beside it by its place, ``None`` if nothing does.

    That is a few words behind an auxiliary, where adverbs stand, or words that govern the clause which follows. No list
    of adverbs or of verbs is complete. Of words cut out of novels in six languages 1 to 6 of 100 are in doubt;
    with every verb and adverb that no list has, wherever it stands, it would be 15 to 30.

    >>> doubtful_words("The drug is purportedly safe.", 11, 24), doubtful_words("The old mill is safe.", 3, 8)
    ('purportedly', None)
    >>> doubtful_words("The firm was cleared of the charge that it sold the mill.", 8, 43)
    'cleared of the charge that it'
    """
    gap = text[start:end].strip()
    near = _near(text, start, end)
    return _behind_auxiliary(gap, text[max(start - _GLANCE, 0) : start], near) or _governing(gap, near)


def _behind_auxiliary(gap: str, before: str, near: str) -> str | None:
    if _CLAUSE_MARK.search(gap) or not 0 < len(gap.split()) <= _FEW:
        return None
    # Behind an auxiliary of its own, what follows the gap belongs to that one.
    ends = _LAST_WORD.search(fold(before)), _LAST_WORD.search(fold(gap))
    are_auxiliary = [found is not None and _languages().is_one_of("auxiliaries", found[1], near) for found in ends]
    return gap if are_auxiliary == [True, False] else None


def _governing(gap: str, near: str) -> str | None:
    """Return the last words of a gap that end with a complementizer, or with one and a pronoun."""
    last = gap[-_GLANCE:].split()[-_GOVERNING:]
    words = _WORD.findall(fold(" ".join(last)))
    if words and _languages().is_one_of("pronouns", words[-1], near):
        words.pop()
    # A complementizer by itself leaves its clause with what governs it in the quotation.
    if len(words) < 2 or not _languages().is_one_of("complementizers", words[-1], near):  # noqa: PLR2004
        return None
    return " ".join(last)


def lost_at_edge(text: str, at: int, *, before: bool) -> str | None:
    """Return what turns round the quotation that an ellipsis cuts off at ``at``, in the clause it is cut out of.

    >>> lost_at_edge("It rained, so nobody left the inn.", 21, before=True)
    'nobody'
    >>> lost_at_edge("Nobody slept, and all left the inn.", 18, before=True)
    """
    if before:
        start = max(at - _GLANCE, 0)
        start = max((found.end for found in _sentence_ends(text, start, at)), default=start)
        cuts = [found.end() for found in _CLAUSE_CUT.finditer(text, start, at) if _has_word(text, found.end(), at)]
        return _first_word(text, max(cuts, default=start), at)
    end = min((found.start for found in _sentence_ends(text, at, at + _GLANCE)), default=at + _GLANCE)
    cuts = [found.start() for found in _CLAUSE_CUT.finditer(text, at, end) if _has_word(text, at, found.start())]
    return _first_word(text, at, min(cuts, default=end))


def _has_word(text: str, start: int, end: int) -> bool:
    """Tell whether there is more than punctuation and marks of emphasis."""
    return any(map(str.isalnum, text[start:end]))


def _refers(sentence: str) -> bool:
    folded = fold(sentence)
    if count_words(sentence) <= _SHORT or any(_languages().pointing.places_in(folded)):
        return True
    return any(place.start <= _FIRST for place in _languages().pointing_first.places_in(folded))


def _first_word(text: str, start: int, end: int, *, after_sentence: bool = False) -> str | None:
    """Return the first negation that is at least in part in ``text[start:end]``."""
    low, high = max(start - _AROUND, 0), end + _AROUND
    window = text[low:high]
    folded = fold(window)
    near = _near(text, start, end)
    places = sorted({place for found in _languages().vocabularies(near) for place in found.places_in(folded)})
    if denial := _DENIAL.search(text, start, end):
        return denial[0]
    offsets = _offsets(window, low) if places else []
    for place in places:
        first, last = max(offsets[place.start], start), min(offsets[place.end], end)
        if not _has_word(text, first, last):
            continue
        # A Japanese word of which a part is left is torn, and not left out.
        if 2 * (last - first) <= place.end - place.start and UNSPACED_CHARACTER.match(text, first):
            continue
        if after_sentence and last < end and _CLAUSE_END.match(text, last, end):
            continue
        return text[offsets[place.start] : offsets[place.end]].strip()
    joined = _BROKEN.sub("", text[start:end])
    return _first_word(joined, 0, len(joined)) if len(joined) < end - start else None


def _near(text: str, start: int, end: int) -> str:
    return fold(text[max(start - _GLANCE, 0) : start + _GLANCE] + text[max(end - _GLANCE, 0) : end + _GLANCE])


def _offsets(window: str, start: int) -> list[int]:
    """Return for each offset of the folded form of a text where it is in the text, and the end."""
    if window.isascii():
        return list(range(start, start + len(window) + 1))
    offsets: list[int] = []
    for found in _ONE_CHARACTER.finditer(window):
        offsets += [start + found.start()] * len(fold(found[0]))
    return [*offsets, start + len(window)]


def _sentence_ends(text: str, start: int, end: int) -> list[_Place]:
    """Return the ends of sentences: the sentence ends at ``start``, the next begins at ``end``."""
    if end - start <= _LONG:
        return list(_ends_between(text, start, end))
    return [*_ends_between(text, start, start + _LONG // 2), *_ends_between(text, end - _LONG // 2, end)]


def _ends_between(text: str, start: int, end: int) -> Iterator[_Place]:
    for found in _SENTENCE_END.finditer(text, max(start - _AROUND, 0), end):
        if found.end() <= start or (found["word"] or "").casefold() in _languages().abbreviations:
            continue
        yield _Place(max(found.end("word"), found.start(), start), found.end())
