"""The marks in a text that cite its sources by number, and the sentences they belong to.

The metrics on citations compare what is found here with the contexts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.markup import mask_markup
from pytest_ragmetrics.text.sentences import split_sentences
from pytest_ragmetrics.text.unicode import is_unspaced
from pytest_ragmetrics.text.words import read_word_lists

# A range over more numbers than this is an interval, not a citation.
_WIDEST = 99
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_DIGITS = str.maketrans(_RAISED, "0123456789")
_NUMBER = r"(?<!\d)\d{1,3}(?!\d)"
# What answers call their sources.
_WORDS = read_word_lists("fact_words.txt")["sources"].split()
_UNSPACED_WORDS = r"[来來]源|文[档檔書件]|[资資]料|段落|片段|出典|情報源|출처|문서|แหล่งที่มา|เอกสาร"
_WORD = rf"(?:(?<![^\W_])(?:{'|'.join(_WORDS)})|{_UNSPACED_WORDS})"
_NO = r"(?:(?:no|nr|n)[.°º]\s?)?"
# In brackets, unlike in a sentence, a number is one of a source with these or with nothing before it.
_LABEL = rf"""(?:{_WORD}[\s:\#_.-]{{0,2}}{_NO}|(?:refs?|references?|citations?|cite|web|id)[\s:\#_.-]{{0,2}}
    |(?-i:[SDPC])(?=\d)|[\^\#])?"""
_AND = r"(?:and|or|und|oder|et|ou|y|e|o|en|och|og|i|oraz|и|или|та|ve|dan|và|와|과|と|和|及|и|و)(?![^\W\d_])"
_DASH = rf"[\-~{unicode.ALL_DASHES}{unicode.WAVE}{unicode.RAISED_SIGNS[1]}]"
_SEPARATORS = f",;{unicode.COMMAS}{unicode.SEMICOLONS}"
_BETWEEN = rf"\s{{0,3}}(?:[{_SEPARATORS}]\s{{0,3}}(?:{_AND})?|[&]|{_DASH}|to\b|{_AND})\s{{0,3}}"
_LIST = rf"{_LABEL}{_NUMBER}\^?(?:{_BETWEEN}{_LABEL}{_NUMBER}\^?){{0,30}}"
# Where in a source: "p. 3", "step 7"; words before it: "see", "according to".
_PLACE = rf"""\s{{0,3}}[,:;]\s{{0,3}}(?:[^\W\d_]{{2,12}}\.?|[pPsSl]\.?|§)\s{{0,2}}\d{{1,4}}
    (?:\s?[\-{unicode.EN_DASH}]\s?\d{{1,4}})?"""
_LEAD = r"(?:[^\W\d_]{1,20}[.:]?\s{1,2}){1,3}?"
_INSIDE = re.compile(
    rf"\s{{0,3}}(?:(?:{_LEAD})?(?P<named>(?={_WORD}){_LIST})|(?P<bare>{_LIST}))(?:{_PLACE})?\s{{0,3}}",
    re.IGNORECASE | re.VERBOSE,
)
_DAGGER = re.compile(rf"(?:\d{{1,3}}:(?P<from_zero>\d{{1,3}})|(?P<number>\d{{1,3}})){unicode.DAGGER}.*", re.DOTALL)
_LEFT = rf"\[{unicode.LEFT_SQUARE}{unicode.LEFT_LENTICULAR}"
_RIGHT = rf"\]{unicode.RIGHT_SQUARE}{unicode.RIGHT_LENTICULAR}"
_LEFT_ROUND, _RIGHT_ROUND = f"({unicode.LEFT_ROUND}", f"){unicode.RIGHT_ROUND}"
_INNER = rf"[^{_LEFT}{_LEFT_ROUND}{_RIGHT}{_RIGHT_ROUND}\\]{{1,160}}"
_BRACKETS = rf"\\?([{_LEFT}{_LEFT_ROUND}])({_INNER})\\?[{_RIGHT}{_RIGHT_ROUND}]"
_RAISED_LIST = rf"[{_RAISED}]{{1,3}}(?:[,˒⸴{unicode.RAISED_SIGNS[1]}{unicode.EN_DASH}][{_RAISED}]{{1,3}}){{0,30}}"
_MARKER = re.compile(rf"{_BRACKETS}|(?P<raised>{_RAISED_LIST})(?![{_RAISED}{unicode.RAISED_SIGNS}])")
_TAG = re.compile(r"<(?:sup|(cite))>([^<>]{1,160})</(?:sup|cite)>", re.IGNORECASE)
# A source named in the sentence: "Passage 2 says"; not "3 sources 4 people read", "Fragment 12 of the vase".
_SHORT = r"(?<!\d)\d{1,2}(?![0-9A-Za-z%°]|[.,:/]\d|\sof\b)"
_MENTION = re.compile(
    rf"{_WORD}(?:(?<=[sn])\s{{0,2}}{_SHORT}(?:{_BETWEEN}{_SHORT}){{1,9}}|(?<!s)\s{{0,2}}{_NO}\#?{_SHORT}(?:{_DASH}{_SHORT})?)",
    re.IGNORECASE | re.VERBOSE,
)
_PIECE = re.compile(
    rf"({_NUMBER})(?:\s{{0,3}}(?:{_DASH}|to\b)\s{{0,3}}{_LABEL}({_NUMBER}))?", re.IGNORECASE | re.VERBOSE
)
# A document by its name, which may be in a path and have a page behind it.
_FILE = re.compile(
    r"(?:[^\W_][^\n\"<>|*?]{0,150}?[\\/])?([^\W_][^\n\"<>|*?/\\]{0,150}?)\.(pdf|docx?|pptx?|xlsx?|odt|mdx?|rst|txt|html?|csv|jsonl?|epub"
    r"|rtf|eml)(?![^\W_])",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"(?:{_WORD}|refs?|cite|id)\s?:\s?|(?:{_WORD}|see|siehe|vgl\.?|cf\.?|voir|ver|vedi|см\.)\s", re.IGNORECASE
)
# What a raised number is the power of: a number, a sign, a variable; what a second or third power, a unit, a term.
_POWER = re.compile(rf"(?:[\d{unicode.RAISED_SIGNS}]|(?<![^\W_])[A-Za-z])$")
_SQUARED = re.compile(r"(?:(?<![^\W_])[A-Za-z]{2}|\))$")
# What a number in brackets is the index of.
_INDEXED = re.compile(r"(?:(?<!\w)[a-z]|(?<!\w)\w*_\w*)$")
_GLANCE = 40
# What makes a marker the text of a link, or of an image.
_TARGET = re.compile(r"\((?:[^()\s]|\([^()\s]{0,300}\)){0,2000}(?:\s+(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'))?\s*\)")
_IMAGE = re.compile(r"(?<!\S)!$")
# A mark at the beginning of a line and before a small letter is what the sentence is about: "[1] says that".
_GOES_ON = re.compile(r"[ \t]+(?=[^\W\d_])")
_JOINS = re.compile(rf"[ \t]*(?:[&{_SEPARATORS}]|and\b)?[ \t]*$")
_EMPTY = re.compile(rf"\s?[{_LEFT_ROUND}][\s,;]{{0,9}}[{_RIGHT_ROUND}]")
_DEFINES = rf"[ \t]*(?:[-*+{unicode.BULLET}][ \t]+)?"
_ENTRY = re.compile(rf"{_DEFINES}\\?[{_LEFT}]\^?(\d{{1,3}})\\?[{_RIGHT}](:?)[ \t]*\S")
_HEADING = re.compile(
    rf"[ \t]*(?:#{{1,6}}[ \t].*|[^.!?]{{1,60}}[:{unicode.COLONS}][*_]{{0,2}}|\*\*.{{1,60}}\*\*)[ \t]*"
)


@dataclass(frozen=True, slots=True)
class Citation:
    """A mark that cites sources: its place in the text, and the numbers of the contexts, counted from 1.

    ``unknown`` are names that no id is, ``unchecked`` names of files where there are no ids of files.
    """

    start: int
    end: int
    numbers: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CitedSentence:
    """A sentence: its place in the text, what it says without marks, and what it cites, each once.

    ``names`` are those of sources that no id is.
    """

    start: int
    end: int
    text: str
    numbers: tuple[int, ...]
    names: tuple[str, ...] = ()


def find_citations(text: str, ids: Sequence[str | int] = ()) -> tuple[Citation, ...]:
    """Return the marks of a text that cite sources, in order; ``ids`` are those of the contexts.

    Read as such: [1], [1, 2, and 3], [1-3], [2, p. 3], ［1］, 【1】, [^1^], links [1](...), superscripts,
    <cite>1</cite>, 【9†source】 (【3:0†source】 is the first context), and with a word for a source in many languages
    [chunk_3], [ID:9], (Passage 3), (see Sources 1 and 3), "according to Passage 2". Files in square brackets
    ([handbook.pdf]) or behind such a word, and in any brackets what is an id, or differs from one in its digits alone,
    are looked up in ``ids``. Numbers have at most three digits, so not years. Not citations: code, powers (m², 10³),
    indexes (a[0], to_do[1]), intervals (lists with a zero, ranges over more than 99), (Part 3), (3), definitions of
    links and notes, and a list of sources that ends the text: lines that begin with ascending marks, one of which was
    cited before.

    >>> [citation.numbers for citation in find_citations("Otters float [1, 3]. They dive¹ for crabs (Passage 2).")]
    [(1, 3), (1,), (2,)]
    >>> find_citations("They sleep [b.pdf, p. 4].", ids=["a.pdf", "b.pdf"])[0].numbers
    (2,)
    """
    return _read(text, ids)[1]


def cited_sentences(text: str, ids: Sequence[str | int] = ()) -> tuple[CitedSentence, ...]:
    """Return the sentences of a text with what each of them cites; its list of sources is left out.

    A mark belongs to the sentence in which it is or which it follows, behind the full stop too; one that begins a
    line belongs to what follows. See :func:`find_citations` for ``ids``.

    >>> for sentence in cited_sentences("Otters float. [1] They dive [1][2], often. Why?"):
    ...     print(sentence.text, sentence.numbers)
    Otters float. (1,)
    They dive, often. (1, 2)
    Why? ()
    """
    body, citations = _read(text, ids)
    plain, origins, anchors = _without_marks(body, citations)
    sentences = split_sentences(plain)
    cited: list[dict[int | str, None]] = [{} for _ in sentences]
    for anchor, citation in zip(anchors, citations, strict=True):
        if sentences:
            owner = cited[_owner(anchor, sentences, plain)]
            owner |= dict.fromkeys(citation.numbers) | dict.fromkeys((*citation.unknown, *citation.unchecked))
    return tuple(
        CitedSentence(
            start=origins[start],
            end=origins[end - 1] + 1,
            text=_EMPTY.sub("", plain[start:end]),
            numbers=tuple(source for source in sources if isinstance(source, int)),
            names=tuple(source for source in sources if isinstance(source, str)),
        )
        for (start, end), sources in zip(sentences, cited, strict=True)
    )


def _read(text: str, ids: Sequence[str | int]) -> tuple[str, tuple[Citation, ...]]:
    """Return a text without the list of sources that ends it, and the citations in it."""
    citations = tuple(_citations(text, mask_markup(text), _Ids(ids)))
    end = _end_of_body(text, citations)
    return text[:end], tuple(citation for citation in citations if citation.start < end)


def _citations(text: str, masked: str, ids: _Ids) -> Iterator[Citation]:
    tags = (tag for tag in _TAG.finditer(text) if masked.startswith(tag[2], tag.start(2))) if "<" in text else ()
    matches = (*_MARKER.finditer(masked), *_MENTION.finditer(masked), *tags)
    done = 0
    for match in sorted(matches, key=lambda match: match.start()):
        before = masked[max(0, match.start() - _GLANCE) : match.start()]
        if match.start() < done or _is_something_else(match, before, text[match.end() : match.end() + 1]):
            continue
        if sources := _sources(match, ids):
            target = _TARGET.match(text, match.end()) if match[0].endswith("]") else None
            done = target.end() if target else match.end()
            yield Citation(match.start(), done, *sources)


#: The numbers of contexts, the names that no id is, the names that nothing is known of.
_Sources = tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]


def _sources(match: re.Match[str], ids: _Ids) -> _Sources | None:
    """Return what a mark cites, nothing where it is no citation."""
    numbers: tuple[int, ...] = ()
    if match.re is _MENTION or match.lastgroup:
        numbers = _numbers(match[0].translate(_DIGITS))
    elif dagger := _DAGGER.fullmatch(match[2]):
        numbers = (int(dagger["number"] or int(dagger["from_zero"]) + 1),)
    else:
        is_round = match[0][0] in _LEFT_ROUND
        if named := ids.read(match[2], files=not is_round):
            return named
        found = _INSIDE.fullmatch(match[2])
        numbers = _numbers(found["named"] or ("" if is_round else found["bare"])) if found else ()
    return (numbers, (), ()) if numbers else None


class _Ids:
    """The ids of contexts, to look up what an answer calls them."""

    def __init__(self, ids: Sequence[str | int]) -> None:
        self._numbers: dict[str, list[int]] = {}
        self._files = False
        for number, each in enumerate(map(str, ids), start=1):
            file = _FILE.search(each)
            self._files |= file is not None
            for key in {_key(each), *([_key(file[1]), _key(f"{file[1]}.{file[2]}")] if file else [])}:
                self._numbers.setdefault(key, []).append(number)
        self._forms = {_form(key) for key in self._numbers if not key.isdigit()}

    def read(self, inside: str, *, files: bool) -> _Sources | None:
        """Return what the names between two brackets are, nothing if there are none; ``files`` need no word before."""
        numbers: dict[int, None] = {}
        unknown: list[str] = []
        unchecked: list[str] = []
        for piece in map(str.strip, re.split(f"[{_SEPARATORS}]", inside)):
            named = _NAMED.match(piece)
            bare = piece[named.end() :] if named else piece
            file = _FILE.match(bare)
            # A number alone is a place; behind "ID:" it may be an id.
            keys = [_key(each) for each in (piece, bare) if not each.isdigit() or piece[:1] in "iI"]
            keys += [_key(f"{file[1]}.{file[2]}"), _key(file[1])] if file else []
            known = next(filter(None, map(self._numbers.get, keys)), None)
            if known and len(piece) > 1:
                numbers |= dict.fromkeys(known)
            elif file and (named or files):
                (unknown if self._files else unchecked).append(bare)
            elif len(piece) > 1 and any(map(str.isdigit, piece)) and _form(_key(piece)) in self._forms:
                unknown.append(piece)
        return (tuple(numbers), tuple(unknown), tuple(unchecked)) if numbers or unknown or unchecked else None


def _key(name: str) -> str:
    return re.sub(r"[\s:_#-]+", "", name.casefold())


def _form(key: str) -> str:
    return re.sub(r"\d+", "0", key)


def _numbers(written: str) -> tuple[int, ...]:
    """Return the numbers of a mark, ranges spelt out; none where it is an interval."""
    numbers: dict[int, None] = {}
    for piece in _PIECE.finditer(written):
        first, last = int(piece[1]), int(piece[2] or piece[1])
        if abs(last - first) >= _WIDEST:
            return ()
        numbers |= dict.fromkeys(range(min(first, last), max(first, last) + 1))
    return () if 0 in numbers and len(numbers) > 1 else tuple(numbers)


def _is_something_else(match: re.Match[str], before: str, after: str) -> bool:
    if match.lastgroup == "raised" or (match.re is _TAG and not match[1]):
        square = match[match.lastgroup or 2] in ("²", "³", "2", "3")
        return after.isalpha() or bool(_POWER.search(before) or (square and _SQUARED.search(before)))
    if match.re is not _MARKER or match[1] in _LEFT_ROUND:
        return False
    if after and after in f":{unicode.COLONS}" and re.fullmatch(_DEFINES, before[before.rfind("\n") + 1 :]):
        return True
    image = after in ("(", "[") and _IMAGE.search(before)
    return match[1] == "[" and bool(image or _INDEXED.search(before))


def _end_of_body(text: str, citations: Sequence[Citation]) -> int:
    """Return where the list of sources begins that ends a text, with its heading, or the end of the text."""
    first = end = len(text)
    listed: list[int] = []
    defines, headed = False, None
    while end > 0:
        start = text.rfind("\n", 0, end) + 1
        entry = _ENTRY.match(text, start, end)
        if entry and (not listed or int(entry[1]) < listed[-1]):
            listed.append(int(entry[1]))
            first, defines = start, defines or bool(entry[2])
        elif text[start:end].strip():
            headed = _HEADING.fullmatch(text, start, end) if listed else None
            break
        end = start - 1
    cited = {number for citation in citations if citation.start < first for number in citation.numbers}
    if cited.isdisjoint(listed) or not (len(listed) > 1 or defines or headed):
        return len(text)
    return headed.start() if headed else first


def _without_marks(source: str, citations: Sequence[Citation]) -> tuple[str, list[int], list[int]]:
    """Return a text without its marks and the spaces before them, and where its characters are in the original.

    The third value is, for each mark, the offset that decides which sentence it belongs to.
    """
    pieces: list[str] = []
    origins: list[int] = []
    anchors: list[int] = []

    def keep(start: int, end: int) -> None:
        pieces.append(source[start:end])
        origins.extend(range(start, end))

    done = 0
    for start, end in ((citation.start, citation.end) for citation in citations):
        is_word = source[start].isalpha()  # part of the sentence
        before = source[done : end if is_word else start]
        keep(done, done if done and not is_word and _JOINS.match(before) else done + len(before.rstrip(" \t")))
        anchors.append(len(origins))
        last = source[origins[-1]] if origins else "\n"
        after = None if is_word else _GOES_ON.match(source, end)
        done = end
        if last == "\n" and after:
            if source[after.end()].islower():
                keep(start, end)
                anchors[-1] += 1
            else:
                done = after.end()
        elif not is_word and last != "\n" and source[end : end + 1].isalnum() and not is_unspaced(last):
            pieces.append(" ")
            origins.append(end)
    keep(done, len(source))
    return "".join(pieces), origins, anchors


def _owner(anchor: int, sentences: Sequence[tuple[int, int]], text: str) -> int:
    """Return which sentence a mark that stood at an offset belongs to."""
    index = bisect_left(sentences, anchor, key=lambda sentence: sentence[1])
    if index == len(sentences):
        return index - 1
    start = sentences[index][0]
    follows = start < anchor or "\n" not in text[anchor:start]
    return index if follows or not index else index - 1
