"""Sentences with their exact place in the text, and the language of a text, which decides where sentences end.

Paragraphs, headings, list items and table rows are found here; inside them the library sentencex finds the sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.core.result import Evidence
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.unicode import composed, runs_of_letters
from pytest_ragmetrics.text.words import read_word_lists

#: Longer sentences are cut, between clauses where there are any.
MAX_SENTENCE = 1000
# The splitter is given windows, because its time grows with the square of some texts.
_WINDOW = 2 * MAX_SENTENCE
# A line at least this long may have been wrapped in the middle of a sentence; half of it where letters have no case.
_WRAPPED = 40
# Bullets, heading marks and quote marks are layout; a number that begins an item is kept as text.
_MARKER = lazily(rf"\s*(?:(?:[-*+>{unicode.BULLETS}{unicode.PAUSES}]|#{{1,6}})(?:\s+|$))*")
_ENUMERATOR = lazily(r"\(?(?:\d{1,3}|[A-Za-z])[.)](?=\s|$)")
_OPENS = lazily(rf"{_ENUMERATOR.pattern}|[|`~①-⑳]|[^\W\d_][\w ]{{0,30}}:\s")
# A rule, the rule of a table, a fence, an underline, a blank line.
_LAYOUT = lazily(r"[\s\-*_=|:+~`#>]*$")
#: What ends a sentence, and what may stand behind it: marks that close, and emphasis.
ENDS = f".!?{unicode.ELLIPSES}{unicode.WIDE_STOP}{unicode.STOPS}"
CLOSERS = f"\"'*_){unicode.CLOSING_QUOTES}{unicode.RIGHT_ROUND}{unicode.RIGHT_SQUARE}\\]"
_TERMINAL = lazily(rf"[{ENDS}][{CLOSERS}\s]*$")
_CLAUSE = lazily(rf"[,;:){unicode.PAUSES}]\s|[{unicode.COMMAS}{unicode.SEMICOLONS}{unicode.COLONS}]")
# Khmer and Tibetan marks, which the splitter does not know.
_UNKNOWN_TERMINAL = lazily(rf".+?(?:[{unicode.KHMER_AND_TIBETAN_STOPS}]\s+|$)", re.DOTALL)
# The splitter takes nothing that UTF-8 cannot encode.
_SURROGATE = lazily("[\ud800-\udfff]")
# How much of a text is looked at to guess its language, and for the stop at its end.
_GLANCE, _NEAR_END = 4000, 64
_LISTS = read_word_lists("languages.txt")
_SCRIPT = lazily(
    "|".join(f"(?P<{name}>[{letters}])" for name, letters in map(str.split, _LISTS["scripts"].splitlines()))
)
# Frequent in one of these languages and rare in the others. A language is listed when the splitter does better
# for knowing it; French is listed apart because it does worse ("M. Dupont" is cut in two) and English rules serve.
_FUNCTION_WORDS = {name: words for name, _, words in (line.partition(" ") for line in _LISTS["words"].splitlines())}
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {
    word: tuple(language for language, known in _FUNCTION_WORDS.items() if word in known.split())
    for word in " ".join(_FUNCTION_WORDS.values()).split()
}
_ENGLISH_RULES = frozenset({"fr"})


# A context is shown alone and with others.
@lru_cache(maxsize=128)
def split_sentences(text: str) -> tuple[tuple[int, int], ...]:
    r"""Return the offsets of the sentences of a text, in order: ``text[start:end]`` is one, without outer white space.

    Headings, list items and table rows end where they end on the page. All of a text but white space, list bullets
    and lines made of Markdown marks alone belongs to exactly one sentence. One of more than 1,000 characters is cut.

    >>> text = "# Moths\n- They fly at night.\n- Dr. Ito counts them. Why?"
    >>> [text[start:end] for start, end in split_sentences(text)]
    ['Moths', 'They fly at night.', 'Dr. Ito counts them.', 'Why?']
    """
    text, at = composed(text)
    language = guess_language(text)
    language = "en" if language in _ENGLISH_RULES else language
    found = (_whole(text, _pieces(text, start, end, language)) for start, end in _blocks(text))
    return tuple((at[start], at[end]) for sentences in found for start, end in sentences)


def ends_sentence(text: str) -> bool:
    """Tell whether a text has a stop at its end; marks that close and white space may stand behind it."""
    return _TERMINAL.search(text, max(len(text) - _NEAR_END, 0)) is not None


def sentence_table(contexts: Sequence[str]) -> tuple[Evidence, ...]:
    """Return the sentences of all contexts in order, each with its place; number n of a prompt is index n - 1.

    >>> [(row.context, row.text) for row in sentence_table(["One. Two.", "Three."])]
    [(0, 'One.'), (0, 'Two.'), (1, 'Three.')]
    """
    return _table(tuple(contexts))


@lru_cache(maxsize=256)
def _table(contexts: tuple[str, ...]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(context=index, start=start, end=end, text=context[start:end])
        for index, context in enumerate(contexts)
        for start, end in split_sentences(context)
    )


class _TextLine(NamedTuple):
    """A line with text: its offsets without marker, whether it begins a block, whether it is one by itself."""

    start: int
    end: int
    opens: bool
    alone: bool


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the stretches no sentence crosses: paragraphs, headings, list items, table rows."""
    start, last = 0, None
    for line in _lines(text):
        if last is not None and not (line and _continues(text, last, line)):
            yield start, last.end
            last = None
        if line is not None:
            start = line.start if last is None else start
            last = line
    if last is not None:
        yield start, last.end


def _lines(text: str) -> Iterator[_TextLine | None]:
    """Yield the lines of a text; ``None`` for those without any."""
    at = 0
    for line in text.splitlines(keepends=True):
        marker = _MARKER.match(line)
        mark = marker.group() if marker else ""
        if _LAYOUT.match(line, len(mark)):
            yield None
        else:
            alone = "#" in mark or line[len(mark)] in "|`~"
            opens = alone or bool(mark.strip(" \t>")) or bool(_OPENS.match(line, len(mark)))
            yield _TextLine(at + len(mark), at + len(line.rstrip()), opens, alone)
        at += len(line)


def _continues(text: str, last: _TextLine, line: _TextLine) -> bool:
    """Tell whether a line goes on with the block of the line before it: the text was wrapped there."""
    if line.opens or last.alone or text[last.end - 1] in f":{unicode.COLONS}":
        return False
    first = text[line.start]
    length = last.end - last.start
    if length >= (_WRAPPED if first.lower() != first.upper() else _WRAPPED // 2):
        return True
    return first.islower() and not ends_sentence(text[last.start : last.end])


def _pieces(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a block as the splitter sees them, window by window, long ones cut."""
    # By name, because it comes without types.
    segment: Callable[[str, str], list[str]] = import_module("sentencex").segment
    while start < end:
        window = text[start : min(end, start + _WINDOW)]
        window = window if window.isascii() else _SURROGATE.sub("\ufffd", window)
        pieces = [piece for sentence in segment(language, window) for piece in _cut(sentence)]
        if start + len(window) < end:
            pieces.pop()  # the window may end inside it: it begins the next window
        for piece in pieces:
            if piece.strip():
                yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
            start += len(piece)


def _cut(sentence: str) -> list[str]:
    if len(sentence) <= MAX_SENTENCE and sentence.isascii() and sentence[-1:] != "\n":
        return [sentence]
    parts = []
    for part in _UNKNOWN_TERMINAL.findall(sentence):
        rest = part
        while len(rest) > MAX_SENTENCE:
            ends = [match.end() for match in _CLAUSE.finditer(rest, MAX_SENTENCE // 3, MAX_SENTENCE)]
            at = ends[-1] if ends else rest.rfind(" ", MAX_SENTENCE // 3, MAX_SENTENCE) + 1 or MAX_SENTENCE
            parts.append(rest[:at])
            rest = rest[at:]
        parts.append(rest)
    return parts


def _whole(text: str, sentences: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join what is no sentence by itself: an item's number to what follows, stray marks to what went before."""
    whole: list[tuple[int, int]] = []
    for start, end in sentences:
        if whole and (_ENUMERATOR.fullmatch(text, *whole[-1]) or not any(map(str.isalnum, text[start:end]))):
            whole[-1] = whole[-1][0], end
        else:
            whole.append((start, end))
    return whole


def guess_language(text: str) -> str:
    """Return the language that a text is likeliest in; ``"en"`` where nothing decides.

    >>> guess_language("今天天气很好。"), guess_language("Das ist nicht der Fall.")
    ('zh', 'de')
    """
    return likely_languages(text)[0]


# Several metrics look at the same sample, and claims are short.
@lru_cache(maxsize=128)
def likely_languages(text: str) -> tuple[str, ...]:
    """Return the languages that a text may be in by its script and its commonest words, the likeliest first.

    In Latin script without a common word these are all that have it, English first.
    """
    text = text[:_GLANCE]
    scripts = Counter() if text.isascii() else Counter(match.lastgroup for match in _SCRIPT.finditer(text))
    if scripts["ja"] * 10 > scripts["zh"] > 0:  # Japanese is written in both
        scripts["ja"] += scripts.pop("zh")
    best = max(scripts, key=lambda name: scripts[name], default="latin")
    if best != "latin":
        return (str(best),)
    hits = Counter(language for word in runs_of_letters(text.lower()) for language in _LANGUAGES_OF.get(word, ()))
    most = max(hits.values(), default=0)
    likely = [language for language in _FUNCTION_WORDS if 2 * hits[language] >= most]
    return tuple(sorted(likely, key=hits.__getitem__, reverse=True))
