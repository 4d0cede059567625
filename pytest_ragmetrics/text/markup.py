"""Markdown, HTML and JSON in a text: read as it would be shown, or blanked out where it is no prose.

:class:`Readable` resolves entities, tags, links and note marks, with the way back to the original; the alignment of
quotations uses it. :func:`mask_markup` writes over code, tags, link targets and JSON syntax and keeps every offset;
:func:`lift_block_quotes` finds the block quotes. Finding quotations and citations begins with these.
"""

from __future__ import annotations

import html
import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html.entities import html5
from itertools import accumulate, islice
from operator import add, sub
from typing import NamedTuple

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.quotes.marks import character_of
from pytest_ragmetrics.text.words import read_word_lists

# What is written over markup: a letter, a character without width, a line break.
_WORD = "x"
_NOTHING = unicode.WORD_JOINER
_BREAK = "\n"
_FENCE = lazily(r"^(?:[ \t>]|[-*+][ \t]|[0-9]{1,3}[.)][ \t])*(`{3,}|~{3,})([^\n]*)", re.MULTILINE)
_PROMPT = lazily(r"^[ \t]*>>>(?: [^\n]*|$)", re.MULTILINE)
_BACKTICKS = lazily(r"(?<![`\\])`+|\n[ \t\r]*\n")
# What closes a quotation that two backticks opened; a straight mark only if it is the first, lest it close a string.
_CLOSING_DOUBLE = f'"{unicode.RIGHT_DOUBLE}'
_LATEX_CLOSING = lazily(
    rf"""[^{_CLOSING_DOUBLE}]*?(?:(?<![(\[{{=])(?<!= )''|(?<=[^\s(\[{{=])[{_CLOSING_DOUBLE}])(?![A-Za-z0-9'`])"""
)
# A backtick where a quotation may begin, and the apostrophe that may close it.
_LATEX_SINGLE = lazily(rf"(?<![^\s*_(\[{{\"{unicode.PAUSES}{unicode.LEFT_DOUBLE}-])`(?=[^\s`'.,;:!?)\]}}])")
_LATEX_SINGLE_CLOSING = lazily(r"[^`]*?[^\s(\[{=`]'(?![^\W_]|['`])")
_TAG = lazily(
    r"""<(?:
        !--                                                        # a comment
      | [A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*>                     # an address
      | /?([A-Za-z][A-Za-z0-9-]*)
        (?:\s+[A-Za-z_:@][\w:.-]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?)*
        \s*/?>
    )""",
    re.VERBOSE,
)
_VERBATIM_TAGS = frozenset({"code", "kbd", "pre", "samp", "script", "style", "tt"})
_BLOCK_TAGS = frozenset(
    {"blockquote", "dd", "div", "dt", "li", "ol", "p", "pre", "script", "style", "table", "td", "th", "tr", "ul"}
    | {f"h{level}" for level in range(1, 7)}
)
_LINK_TARGET = lazily(
    r"""\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\)))?\s*\)
      | ^[ ]{0,3}\[[^\]^\n][^\]\n]*\]:[ \t]*(?:<[^>\n]*>|[a-z]+://\S+|[./\#]\S*)[^\n]*""",
    re.MULTILINE | re.VERBOSE,
)
_JSON_OBJECT = lazily(r'\{\s*"[^"\\\n]*(?:\\.[^"\\\n]*)*"\s*:')
_JSON_STRING = lazily(r'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?', re.DOTALL)
_JSON_SPACE = lazily(r"\\[nrt]")
_SPACE_ENTITY = lazily(r"&(?:nbsp|#160|#8239|#[xX]0*[aA]0|#[xX]202[fF]);")
_BLOCK_QUOTE = lazily(r"^[ \t]*(?:(?:[-*+]|[0-9]{1,3}[.)])[ \t]+)?>[^\n]*(?:\n[ \t]*>[^\n]*)*", re.MULTILINE)
_QUOTED_LINE = lazily(r"^([^>\n]*>[> \t]*)([^\n]*)", re.MULTILINE)
_DASHED = lazily(rf"[*_]*(?:[{unicode.PAUSES}]|--|[-~] )\s*\S")
_QUOTE_TAG = lazily(r"<(/?)blockquote\s*>", re.IGNORECASE)
_LINE = lazily(r"()([^\n]+)")
# All white space of Unicode, and what blanks out markup.
_BLANK = f"{unicode.WHITE_SPACE}{_NOTHING}"
# What says that a block is a remark of the writer: [!NOTE], a symbol, or a label in bold, which has a colon, is alone
# on its line, or is one of these words.
_CALLOUT = lazily(
    r"\[![\w -]+\]|[*_]*(?::[a-z_]+:|[\u2139\u231a-\u23ff\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff])"
    rf"|(\*\*|__|[*_])(?=[^\s*_])(?:[^*_\n:{unicode.COLONS}]{{1,30}}(?:[:{unicode.COLONS}]\s?\1|\1\s?[:{unicode.COLONS}])"
    r"|\w+(?: \w+)?[!.]?\1\s*$"
    rf"|(?:{'|'.join(read_word_lists('fact_words.txt')['remarks'].split())})[!.]?\1)",
    re.IGNORECASE,
)
# Each is tried behind one of the characters that begin markup; a class in front of them all makes the search fast.
_ENTITY = r"(?<=&)(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
_BLOCK_NAMES = "blockquote|br|dd|div|dt|h[1-6]|hr|li|ol|p|pre|table|tbody|td|th|tr|ul"
_TAG_NAMES = rf"""a|abbr|b|big|cite|del|dfn|em|font|i|ins|mark|q|s|small|span|strike|strong|sub|sup|u|var|wbr
    |{_BLOCK_NAMES}"""
# Small letters first: to compare without case takes a quarter longer.
_KNOWN_TAG = rf"""(?<=<)(?:(?i:br)(?:\s[^<>]{{0,400}})?/?>(?:\r?\n)?
    |/?(?:{_TAG_NAMES}|(?i:{_TAG_NAMES}))(?:\s[^<>]{{0,400}})?/?>)"""
_BLOCK_TAG = lazily(rf"</?(?:(br)|{_BLOCK_NAMES})[\s/>]", re.IGNORECASE)
_RAISING_TAG = lazily(r"<sup[\s/>]", re.IGNORECASE)
_TARGET = r"\((?:https?://|www\.|mailto:|[#/.])[^()\s]{0,500}\)"
_LINK = rf"(?:(?<=\[)|(?<=!)\[)(?=[^\[\]\n]{{1,300}}\]{_TARGET})|(?<=\]){_TARGET}"
# What readers of an encyclopedia ask for, in brackets behind a word.
_DEMANDS = r"""(?i:[a-z\s]{3,30}\sneeded|(?:who|when|where|which|why|how|by\swhom|according\sto\swhom|bron|zdroj)\??
    |vague|dubious[^\[\]]{0,20}|failed\sverification|unreliable\ssource\??|original\sresearch\??|not\sin\scitation\sgiven
    |r\u00e9f\.\sn\u00e9cessaire|cita\srequerida|senza\sfonte|carece\sde\sfontes|k\u00e4lla\sbeh\u00f6vs|Beleg\sfehlt|potrzebny\sprzypis
    |kaynak\sbelirtilmeli|\u0438\u0441\u0442\u043e\u0447\u043d\u0438\u043a[^\[\]]{0,40}|\u8981\u51fa\u5178|[\u4f86\u6765]\u6e90[\u8acb\u8bf7]\u6c42|\ucd9c\ucc98\s\ud544\uc694)"""
_CLOSING = f"{unicode.RIGHT_SINGLE}{unicode.RIGHT_DOUBLE}{unicode.GUILLEMETS[1]}"
_RAISED = "\u00b9\u00b2\u00b3\u2070\u2074-\u2079"
# In brackets anywhere; raised behind a word or a stop.
_NOTE = rf"""(?:
      (?<=\[)(?: \^[^\[\]\s]{{1,40}} | \d{{1,3}}(?:\s?[,;{unicode.EN_DASH}-]\s?\d{{1,3}}){{0,9}}
        | (?<=[^\s(\[{{]\[)(?: [a-rt-z\u03b1-\u03c9] | [^\W\d_]{{1,12}}(?:-[a-z]{{1,8}})?\.?\s?\d{{1,3}} | {_DEMANDS} )
          (?!\][a-z\u00c0-\u052f]) )
      \](?:{_TARGET})?
    | (?:(?<=[^\W\d_]{{3}}[<{_RAISED}])|(?<=[.,;:!?)"{_CLOSING}][<{_RAISED}]))
      (?:(?<=<)(?i:sup)(?:\s[^<>]{{0,400}})?>(?:<a\s[^<>]{{0,400}}>)?\[?(?:\d{{1,3}}|[a-rt-z])\]?(?:</a>)?</(?i:sup)>
        |(?<!<)[{_RAISED}]{{0,2}}(?![{_RAISED}{unicode.RAISED_SIGNS}]))
      (?![^\W_]))"""
# What a raised number is the power of, and not a note on: a unit, a function, a Greek letter.
_POWERED = lazily(
    r"(?:[\d/]\s?|\b(?:per|pro|par|por|al)\s)[^\W\d_]+$|\b(?:a?(?:sin|cos|tan)h?|log|exp|chi|khi|eta|rho|phi|tau|sigma|lambda|omega)$|\)$"
    r"|(?:m[eèé]t\w{1,3}|miles?|feet|foot|inch(?:es)?|yards?)$",
    re.IGNORECASE,
)
_GLANCE = 40
# In one group, so that splitting at it gives text and markup in turns.
_MARKUP = lazily(rf"([&<!\[\]](?:{_ENTITY}|{_KNOWN_TAG}|{_LINK}))", re.VERBOSE)
_MARKUP_AND_NOTES = lazily(rf"([&<!\[\]{_RAISED}](?:{_NOTE}|{_ENTITY}|{_KNOWN_TAG}|{_LINK}))", re.VERBOSE)
_ANY_NOTE = lazily(rf"[\[<{_RAISED}]{_NOTE}", re.VERBOSE)
_IGNORABLE = lazily(f"[{unicode.IGNORABLE}]")
_UNUSUAL = lazily(f"[^{unicode.USUAL}]")
# Characters that are not seen, and all that may be written for one: HTML entities, JSON escapes.
_UNSEEN = lazily(
    rf"[&\\{unicode.IGNORABLE}](?:(?<=[{unicode.IGNORABLE}])|(?<=&)(?:\#[0-9]{{2,7}}|\#[xX][0-9a-fA-F]{{2,6}}|[A-Za-z]{{3,20}});|(?<=\\)u[0-9a-fA-F]{{4}})"
)


class Readable:
    """A text as a reader sees it; offsets of ``text`` map back to the original.

    ``notes=False`` leaves the marks of notes out, such as ``[3]`` and ``¹``.

    >>> readable = Readable("Marks &amp; <b>Sons</b>")
    >>> readable.text, readable.start(8), readable.end(12)
    ('Marks & Sons', 15, 19)
    """

    __slots__ = ("_notes", "_offsets", "_source", "text")

    def __init__(self, source: str, *, notes: bool = True) -> None:
        self._source, self._notes = source, notes
        # Worked out when first asked for: most texts are searched, and nothing is found in them.
        self._offsets: _Offsets | None = None
        pieces = self._split()
        pieces[1::2] = self._shown(pieces)
        self.text = "".join(pieces)

    def __bool__(self) -> bool:
        """Tell whether the text differs from the original."""
        return self.text != self._source

    def start(self, offset: int) -> int:
        """Return the offset in the original of what begins at an offset of ``text``."""
        ends, _, shifts = self._known_offsets()
        index = bisect_right(ends, offset)
        return offset + shifts[index - 1] if index else offset

    def end(self, offset: int) -> int:
        """Return the offset in the original of what ends at an offset of ``text``."""
        ends, widths, shifts = self._known_offsets()
        index = bisect_right(ends, offset)
        # What follows and is not shown, such as a closing tag, does not belong to it.
        while index and ends[index - 1] == offset and not widths[index - 1]:
            index -= 1
        return offset + shifts[index - 1] if index else offset

    def _split(self) -> list[str]:
        # Splitting, and one look-up for each markup, takes half the time of a loop over the matches.
        return (_MARKUP if self._notes else _MARKUP_AND_NOTES).split(self._source)

    def _shown(self, pieces: list[str]) -> list[str]:
        shown = list(map(_shown, pieces[1::2]))
        raised = [] if self._notes else [number for number, found in enumerate(map(_is_raised, pieces[1::2])) if found]
        if raised:
            starts = list(islice(accumulate(map(len, pieces)), 0, None, 2))
            for number in raised:
                if _is_powered(self._source, starts[number]):
                    shown[number] = as_readable(pieces[2 * number + 1])
        return shown

    def _known_offsets(self) -> _Offsets:
        if self._offsets is None:
            pieces = self._split()
            # Lists of numbers would take ten times the memory.
            widths = array("q", map(len, self._shown(pieces)))
            ends = array("q", accumulate(map(add, map(len, pieces[::2]), widths)))
            shifts = array("q", accumulate(map(sub, map(len, pieces[1::2]), widths)))
            self._offsets = _Offsets(ends, widths, shifts)
        return self._offsets


class _Offsets(NamedTuple):
    """For each markup where what is shown for it ends, how long that is, and how much shorter all before it is."""

    ends: array[int]
    widths: array[int]
    shifts: array[int]


def has_markup(text: str) -> bool:
    """Tell, quickly, whether a text may hold what :class:`Readable` resolves."""
    return "&" in text or "<" in text or ("]" in text and "](" in text)


def have_notes(texts: Sequence[str]) -> bool:
    """Tell whether texts have marks of notes in them, or powers that look like some."""
    # The first three notes suffice: a text with others has these, and searching for the others takes many times longer.
    return any(
        "]" in text or "<" in text or "\u00b9" in text or "\u00b2" in text or "\u00b3" in text for text in texts
    ) and any(map(_ANY_NOTE.search, texts))


def as_readable(text: str) -> str:
    """Return a text as a reader sees it; what only looks like markup is left alone.

    >>> as_readable("&ldquo;R&amp;D&rdquo; &nosuch; AT&T, 1 <b 2, [the <i>report</i>](https://example.org)")
    '“R&D” &nosuch; AT&T, 1 <b 2, the report'
    """
    return _MARKUP.sub(lambda found: _shown(found[0]), text) if has_markup(text) else text


@lru_cache(maxsize=4096)
def _is_raised(markup: str) -> bool:
    """Tell whether a mark of a note may be a power: raised, and not the number 1."""
    return (markup[0] > "\x7f" and markup != "\u00b9") or "</" in markup[1:]


def _is_powered(text: str, start: int) -> bool:
    # Its unit or function is in the last two words; to search all that is near takes three times longer.
    low = max(0, start - _GLANCE)
    last = text.rfind(" ", low, start)
    low = max(low, text.rfind(" ", low, last) + 1) if last > low else low
    return _POWERED.search(text[low:start]) is not None


@lru_cache(maxsize=4096)
def _shown(markup: str) -> str:
    """Return what is shown for an entity, a tag, the mark of a note or what a link has around its text."""
    if markup[0] == "&":
        return html.unescape(markup) if markup[1] == "#" else html5.get(markup[1:], markup)
    if block := _BLOCK_TAG.match(markup):
        # What a block ends with parts more than the end of a line does.
        return "\n" if block[1] else "\n\n"
    # A power is not the number that its digits would make; the mark of a note is two tags.
    return "^" if _RAISING_TAG.match(markup) and "<" not in markup[1:] else ""


def drop_unseen(text: str) -> tuple[str, list[int]]:
    r"""Return a text without its unseen characters and where each of the others is in it; nowhere if there are none.

    >>> drop_unseen("a\u00adb&shy;c"), drop_unseen("abc")
    (('abc', [0, 2, 8]), ('abc', []))
    """
    if (text.isascii() or not _UNUSUAL.search(text)) and "&" not in text and "\\u" not in text:
        return text, []
    offsets: list[int] = []
    done = 0
    for found in _UNSEEN.finditer(text):
        if _IGNORABLE.fullmatch(character_of(found[0])):
            offsets += range(done, found.start())
            done = found.end()
    if not done:
        return text, []
    offsets += range(done, len(text))
    return "".join([text[offset] for offset in offsets]), offsets


#: Start and end of a piece of the text that is not prose, and the character to write over all of it.
_Patch = tuple[int, int, str]


class BlockQuote(NamedTuple):
    """A Markdown block quote: its lines, and from where to where what they quote goes."""

    start: int
    end: int
    first: int
    last: int


def mask_markup(text: str) -> str:
    """Return a text of the same length with code, tags, link targets and JSON syntax blanked out.

    Code is what is in backticks or fences.

    >>> mask_markup('Use `"a"` or "b".')
    'Use xxxxx or "b".'
    """
    if "```" in text or "~~~" in text:
        text = _overwrite(text, _fenced_code(text))
    if ">>>" in text:
        text = _overwrite(text, ((*line.span(), _BREAK) for line in _PROMPT.finditer(text)))
    if "{" in text or text.lstrip()[:1] in ("[", '"'):
        text = _overwrite(text, _json_syntax(text))
    if "`" in text:
        text = _overwrite(text, _code_spans(text))
    if "<" in text:
        text = _overwrite(text, _tags(text))
    if "](" in text or "]:" in text:
        # The bracket stays: it closes what is before it.
        text = _overwrite(
            text, ((target.start() + 1, target.end(), _NOTHING) for target in _LINK_TARGET.finditer(text))
        )
    if "&" in text:
        text = _overwrite(text, ((*space.span(), unicode.NO_BREAK_SPACE) for space in _SPACE_ENTITY.finditer(text)))
    return text


def lift_block_quotes(text: str) -> tuple[str, list[BlockQuote]]:
    """Find the block quotes of a masked text, in Markdown and HTML; return it without their markers, and their places.

    A last line that starts with a dash is the attribution and belongs to the lines, not to what is quoted. A block that
    begins with [!NOTE], a symbol (⚠️) or a label (**Note:**) is a remark and none.
    """
    if ">" not in text:
        return text, []
    found: list[BlockQuote | None] = []
    markers: list[_Patch] = []
    for block in _BLOCK_QUOTE.finditer(text):
        lines = list(_QUOTED_LINE.finditer(text, *block.span()))
        markers += ((*line.span(1), " ") for line in lines)
        found.append(_block_quote(*block.span(), lines))
    opened: list[re.Match[str]] = []
    for tag in _QUOTE_TAG.finditer(text):
        markers.append((*tag.span(), _BREAK))
        if not tag[1]:
            opened.append(tag)
        elif opened:
            outer = opened.pop()
            if not opened:
                found.append(_block_quote(outer.start(), tag.end(), _LINE.finditer(text, outer.end(), tag.start())))
    blocks: list[BlockQuote] = []
    for quote in sorted(filter(None, found)):
        if not blocks or quote.start >= blocks[-1].end:
            blocks.append(quote)
    return _overwrite(text, sorted(markers)), blocks


def _block_quote(start: int, end: int, lines: Iterable[re.Match[str]]) -> BlockQuote | None:
    lines = [line for line in lines if line[2].strip(_BLANK)]
    if not lines or _CALLOUT.match(lines[0][2].lstrip(_BLANK)):
        return None
    if len(lines) > 1 and [line for line in lines if _DASHED.match(line[2].lstrip(_BLANK))] == lines[-1:]:
        del lines[-1]
    last = lines[-1].start(2) + len(lines[-1][2].rstrip(_BLANK))
    return BlockQuote(start, end, lines[0].end(2) - len(lines[0][2].lstrip(_BLANK)), last)


def _overwrite(text: str, patches: Iterable[_Patch]) -> str:
    out: list[str] = []
    done = 0
    for start, end, filler in patches:
        out += (text[done:start], filler * (end - start))
        done = end
    return "".join((*out, text[done:]))


def _fenced_code(text: str) -> Iterator[_Patch]:
    start, fence, done = 0, "", 0
    for line in _FENCE.finditer(text):
        run, rest = line.groups()
        if not fence:
            # Backticks after the opening run make it inline code.
            if "`" not in rest or run[0] == "~":
                start, fence = line.start(), run
        elif run.startswith(fence) and not rest.strip():
            done = line.end()
            yield start, done, _BREAK
            fence = ""
    if fence:
        # Opened in the middle of a line, it is closed by what looks like the opening of another.
        opened = text.rfind(fence, done, start)
        yield (start, len(text), _BREAK) if opened < 0 else (opened, start + len(fence), _BREAK)


def _json_syntax(text: str) -> Iterator[_Patch]:
    """Leave of JSON only the values that are strings: marks that JSON needs are not quotations."""
    for start, end in _json_documents(text):
        done = start
        for string in _JSON_STRING.finditer(text, start, end):
            if string[2]:
                continue
            yield done, string.start(1), _BREAK
            done = string.end(1)
            for escape in _JSON_SPACE.finditer(text, *string.span(1)):
                middle = escape.start() + 1
                yield escape.start(), middle, _BREAK if escape[0] == r"\n" else " "
                yield middle, escape.end(), " "
        yield done, end, _BREAK


def _json_documents(text: str) -> Iterator[tuple[int, int]]:
    decoder = json.JSONDecoder(strict=False)
    whole = text.strip()
    # A sentence in marks is a JSON string too, but not one with escaped marks in it.
    if whole.startswith("[") or (whole.startswith('"') and r"\"" in whole):
        try:
            decoder.decode(whole)
        except (ValueError, RecursionError):
            pass
        else:
            yield 0, len(text)
            return
    position = 0
    while found := _JSON_OBJECT.search(text, position):
        start = found.start()
        try:
            _, position = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            # Going on behind the error, not behind the brace, keeps the search linear.
            position = max(error.pos, start + 1)
        except (ValueError, RecursionError):
            return
        else:
            yield start, position


def _code_spans(text: str) -> Iterator[_Patch]:
    runs: list[tuple[int, int]] = []
    partner: dict[int, int] = {}
    latest: dict[int, int] = {}
    for found in _BACKTICKS.finditer(text):
        start, end = found.span()
        if text[start] == "\n":
            latest.clear()
            continue
        if end - start in latest:
            partner[latest[end - start]] = len(runs)
        latest[end - start] = len(runs)
        runs.append((start, end))
    index = quoted = 0
    while index < len(runs):
        start, end = runs[index]
        double = end - start == len("``")
        closing = runs[partner[index]] if index in partner and start >= quoted else None
        latex = _LATEX_CLOSING.match(text, end, closing[0]) if closing and double else None
        if latex:
            # The backticks in it are LaTeX too.
            quoted = latex.end()
        elif not _opens_single(text, start, closing[0] if closing else len(text)):
            if closing:
                yield start, closing[1], _WORD
                index = partner[index]
            elif not double:
                yield start, end, _NOTHING
        index += 1


def _opens_single(text: str, start: int, closing: int) -> bool:
    """Tell whether a backtick opens a quotation in LaTeX: `so'; what would close it as code must open another."""
    if not _LATEX_SINGLE.match(text, start) or not (closing == len(text) or _LATEX_SINGLE.match(text, closing)):
        return False
    return _LATEX_SINGLE_CLOSING.match(text, start + 1, closing) is not None


def _tags(text: str) -> Iterator[_Patch]:
    position = 0
    missing: set[str] = set()
    while (tag := _TAG.search(text, position)) is not None:
        start, position = tag.span()
        if tag[1] and tag[1].lower() in ("q", "blockquote"):
            # A quotation mark itself.
            yield tag.end(1), position - 1, " "
            continue
        filler = _BREAK if tag[1] and tag[1].lower() in _BLOCK_TAGS else _NOTHING
        closing = "-->" if tag[0] == "<!--" else ""
        if tag[1] and tag[1].lower() in _VERBATIM_TAGS and tag[0][1] != "/":
            closing = f"</{tag[1]}>"
        # What was not found once is not looked for again.
        if closing and closing not in missing:
            end = text.find(closing, position)
            if end < 0:
                missing.add(closing)
            else:
                position = end + len(closing)
                filler = _WORD if filler == _NOTHING and tag[1] else filler
        yield start, position, filler
