"""The one table of glyphs and scripts, and text made safe and short for a terminal.

All other modules build their sets and classes of characters from the names of the table, each of which is the inside of
a class. Marks that are in ASCII are not listed: a pattern that means them shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from unicodedata import category, combining, is_normalized, normalize

from pytest_ragmetrics.core.lazy import lazily

LEFT_DOUBLE, RIGHT_DOUBLE, LOW_DOUBLE = "\u201c", "\u201d", "\u201e"
LEFT_SINGLE, RIGHT_SINGLE, LOW_SINGLE = "\u2018", "\u2019", "\u201a"
GUILLEMETS = "\u00ab\u00bb\u2039\u203a"
LEFT_CORNER, RIGHT_CORNER, LEFT_WHITE_CORNER, RIGHT_WHITE_CORNER = "\u300c", "\u300d", "\u300e", "\u300f"
LEFT_RAISED, RIGHT_RAISED = "\u301d", "\u301e"
PRIME, DOUBLE_PRIME, GERESH, GERSHAYIM = "\u2032", "\u2033", "\u05f3", "\u05f4"
#: The quotation marks, each with those that are read like it: a new one is added to the line of its like.
QUOTATION_MARKS = {
    '"': f"\uff02\u2036{DOUBLE_PRIME}{GERSHAYIM}",
    "'": f"\uff07{GERESH}",
    LEFT_DOUBLE: "\u201f\u275d",
    RIGHT_DOUBLE: "\u275e",
    LOW_DOUBLE: "",
    LEFT_SINGLE: "\u201b\u275b",
    RIGHT_SINGLE: "\u275c",
    LOW_SINGLE: "",
    **dict.fromkeys(GUILLEMETS, ""),
    LEFT_CORNER: "\uff62\ufe41",
    RIGHT_CORNER: "\uff63\ufe42",
    LEFT_WHITE_CORNER: "\ufe43",
    RIGHT_WHITE_CORNER: "\ufe44",
    LEFT_RAISED: "",
    RIGHT_RAISED: "\u301f",
}
QUOTES = "".join(f"{mark}{others}" for mark, others in QUOTATION_MARKS.items()).replace('"', "").replace("'", "")
#: What no convention closes a quotation with; and what some convention does.
_OPENING_ONLY = (LOW_DOUBLE, LOW_SINGLE, LEFT_CORNER, LEFT_WHITE_CORNER, LEFT_RAISED)
CLOSING_QUOTES = "".join(
    sorted(set(QUOTES) - {glyph for mark in _OPENING_ONLY for glyph in (mark, *QUOTATION_MARKS[mark])})
)
PRIMES = f"{PRIME}{DOUBLE_PRIME}\u2034\u2035\u2036\u2037"
#: What is written for an apostrophe inside a word.
APOSTROPHES = f"{LEFT_SINGLE}{RIGHT_SINGLE}\uff07\u00b4\u02b9\u02bb\u02bc\u02bd\u02ee\u055a\ua78c"
HYPHENS, EN_DASH, MINUS, SOFT_HYPHEN = "\u2010\u2011", "\u2013", "\u2212", "\u00ad"
#: What is written for a hyphen or a minus sign; what is longer; what parts clauses; and all of them.
DASHES = f"{HYPHENS}\u2012{EN_DASH}{MINUS}\ufe63\uff0d"
LONG_DASHES = "\u2014\u2015\u2e3a\u2e3b"
PAUSES = f"{EN_DASH}\u2014\u2015"
ALL_DASHES = f"{DASHES}{LONG_DASHES}\u2043\ufe58"
WAVE, RAISED_SIGNS = "\uff5e", "\u207a\u207b"
ELLIPSIS = "\u2026"
ELLIPSES = f"{ELLIPSIS}\u22ef"
#: The stops of scripts without a full stop: they end a sentence wherever they stand.
CJK_STOP, KHMER_AND_TIBETAN_STOPS = "\u3002", "\u17d4\u17d5\u0f0d\u0f0e"
STOPS = (
    f"{CJK_STOP}\uff01\uff1f\uff61\u061f\u06d4\u0964\u0965\u0589\u1362\u1367\u1368\u104b\u0e5b"
    + KHMER_AND_TIBETAN_STOPS
)
WIDE_STOP, GREEK_QUESTION_MARK, OPENING_STOPS = "\uff0e", "\u037e", "\u00a1\u00bf"
COMMAS, SEMICOLONS, COLONS = "\uff0c\u3001\u060c", "\uff1b\u061b", "\uff1a"
LEFT_SQUARE, RIGHT_SQUARE, LEFT_ROUND, RIGHT_ROUND = "\uff3b\u3014", "\uff3d\u3015", "\uff08", "\uff09"
LEFT_LENTICULAR, RIGHT_LENTICULAR = "\u3010", "\u3011"
BULLET, DAGGER, DOUBLE_DAGGER = "\u2022", "\u2020", "\u2021"
#: What items of a list begin with.
BULLETS = f"{BULLET}\u2023\u25e6\u25aa\u00b7"
#: What is between the digits of a number beside what ASCII has for it.
NUMBER_MARKS = "\u00b7\u066b\u066c"
CJK_PUNCTUATION = "\u3001-\u301f"
CURRENCIES, PERCENTS = "\u20ac\u00a3\u00a5\u20b9", "\uff05\u066a"
NO_BREAK_SPACE, FIGURE_SPACE, WIDE_SPACE = "\u00a0", "\u2007", "\u3000"
#: Spaces between the digits of a number, or between it and its unit.
THIN_SPACES = f"{NO_BREAK_SPACE}\u2009\u202f"
_LINE_SEPARATORS = "\u2028\u2029"
#: What ends a line beside "\n"; all white space, with that of ASCII.
LINE_BREAKS = f"\r\v\f\x1c\x1d\x1e\x85{_LINE_SEPARATORS}"
WHITE_SPACE = f"\t\n\x1f {LINE_BREAKS}{THIN_SPACES}{FIGURE_SPACE}{WIDE_SPACE}\u1680\u205f"
WHITE_SPACE += "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u200a"
ZERO_WIDTH_SPACE, JOINERS, WORD_JOINER, BOM, TATWEEL = "\u200b", "\u200c\u200d", "\u2060", "\ufeff", "\u0640"
#: Embeddings, overrides and isolates, which reorder what follows; marks that do not; letters that only a model reads.
DIRECTIONS, DIRECTION_MARKS, TAGS = "\u202a-\u202e\u2066-\u2069", "\u061c\u200e\u200f", "\U000e0000-\U000e007f"
#: Characters of layout that are not seen, and what some programs take for the end of a line.
FORMATS = f"{SOFT_HYPHEN}\u061c\u200b-\u200f{_LINE_SEPARATORS}\u202a-\u202e\u2060-\u206f{BOM}"
#: What is not seen or only steers others (category Cf, ignorable by default): soft hyphen, joiners, directions, tags.
IGNORABLE = (
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: All that is surely seen: to look for anything else takes a fifth of the time.
USUAL = (
    "\\0-\u00ac\u00ae-\u034e\u0350-\u05ff\u0620-\u06dc\u0710-\u088f\u0900-\u115e\u1161-\u17b3\u2010-\u2029\u202f-\u205f\u2070-\u3163"
    "\u3165-\ufdff\uff00-\uff9f"
)
#: The ignorable ones and tatweel, which has a width.
INVISIBLE = f"{IGNORABLE}{TATWEEL}"
#: The blocks of Han, kana, Thai, Lao, Khmer, Myanmar and Tibetan for a character class: letters, digits, signs, marks.
UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00016ff0-\U00018aff\U0001aff0-\U0001b16f\U00020000-\U000323af"
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
)
#: The letters and vowel signs of Thai, Lao, Burmese and Khmer; Tibetan parts its syllables by a mark.
SOUTHEAST_ASIAN = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
#: The same with Han and kana.
UNSPACED_LETTERS = (
    "\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    f"\U00020000-\U000323af{SOUTHEAST_ASIAN}"
)
UNSPACED_CHARACTER = lazily(f"[{UNSPACED}]")
#: Vowel signs of Arabic and Hebrew, which most texts leave out; not those that make another letter (hamza, madda).
VOWEL_SIGNS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
)
#: Symbols that deny what is beside them, such as crosses and signs of what is forbidden.
DENIALS = (
    "\u00ac\u2260\u2262\u2612\u26d4\u2715-\u2718\u274c\u274e\U0001f232\U0001f44e\U0001f4f5\U0001f5d9\U0001f645\U0001f6ab\U0001f6ad\U0001f6af\U0001f6b1\U0001f6b3"
    "\U0001f6b7\U0001f6d1"
)
_NUMERALS = frozenset("〇零一二三四五六七八九十百千万萬億亿兆两兩廿卅")
# C0 and C1 controls, DEL, the bidirectional controls, lone surrogates and tags: a terminal may obey the first three,
# cannot encode the fourth, and shows nothing of the last. Line breaks are white space and become a blank.
_UNPRINTABLE = lazily(f"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f{DIRECTIONS}{DIRECTION_MARKS}\ud800-\udfff{TAGS}]")
_OTHER_BREAKS = lazily(f"[\x1f{LINE_BREAKS}]")
_SPACE = lazily(r"\s+")
_LETTERS = lazily(r"[^\W\d_]+")
_ONLY_LETTERS = {code: chr(code) if chr(code).isalpha() else " " for code in range(128)}
# Beside the invisible ones the pattern of Braille without ink.
_BLANK = lazily(rf"[\s{INVISIBLE}\u2800]*")


def runs_of_letters(text: str) -> list[str]:
    """Return the runs of letters of a text, in order.

    >>> runs_of_letters("It's the 1st of May_2020")
    ['It', 's', 'the', 'st', 'of', 'May']
    """
    # A fifth of the time of the pattern.
    return text.translate(_ONLY_LETTERS).split() if text.isascii() else _LETTERS.findall(text)


@lru_cache(maxsize=4096)
def is_word(char: str) -> bool:
    """Tell whether a character is part of a word: a letter, a digit, or a mark that sits on one.

    >>> [is_word(char) for char in ("k", "7", "ा", "-")]
    [True, True, True, False]
    """
    return char.isalnum() or category(char)[0] == "M"


@lru_cache(maxsize=4096)
def is_mark(char: str) -> bool:
    """Tell whether a character is a mark on the letter before it."""
    return category(char)[0] == "M"


@lru_cache(maxsize=4096)
def is_unspaced(char: str) -> bool:
    """Tell whether a character belongs to a script written without spaces."""
    return UNSPACED_CHARACTER.match(char) is not None


def are_joined(left: str, right: str) -> bool:
    """Tell whether two neighbouring characters are inside one word, or one number in Han numerals.

    >>> are_joined("w", "s"), are_joined("w", "-"), are_joined("山", "川"), are_joined("三", "十")
    (True, False, False, True)
    """
    if not (is_word(left) and is_word(right)):
        return False
    if is_unspaced(left) or is_unspaced(right):
        return is_mark(right) or (left in _NUMERALS and right in _NUMERALS)
    return True


def check_text(name: str, value: object) -> None:
    """Raise ``TypeError`` unless a value is a text.

    >>> check_text("span", ["a", "b"])
    Traceback (most recent call last):
    TypeError: span must be a text, not list
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {type(value).__name__}")


def is_invisible(text: str) -> bool:
    r"""Tell whether a text shows nothing: it has white space and characters without a glyph, if any.

    >>> is_invisible(" \u200b\n"), is_invisible("-")
    (True, False)
    """
    return _BLANK.fullmatch(text) is not None


def printable(text: str) -> str:
    r"""Return the text without characters that steer a terminal, on one line.

    >>> printable("red \x1b[31malert\n\u202eover")
    'red [31malert over'
    """
    return _SPACE.sub(" ", _UNPRINTABLE.sub("", text)).strip()


def printable_lines(text: str) -> str:
    r"""Return the text without characters that steer a terminal; only line feeds and tabs stay as they are.

    >>> printable_lines("red \x1b[31malert\b\r\n\u202eover")
    'red [31malert \nover'
    """
    return _OTHER_BREAKS.sub(" ", _UNPRINTABLE.sub("", text))


def plain(text: str) -> str:
    r"""Return a text with one space for every run of white space, none around it, and composed characters.

    >>> plain(" cafe\u0301 \r\n au  lait ")
    'café au lait'
    """
    return " ".join((text if text.isascii() else normalize("NFC", text)).split())


def caseless(text: str) -> str:
    r"""Return a text without case and compatibility forms, in composed characters.

    >>> caseless("\uff33TRA\u1e9eE"), caseless("\u0130zmir")
    ('strasse', 'izmir')
    """
    # The dot that the capital of the Turkish i leaves behind is no letter.
    return normalize("NFKC", normalize("NFKC", text).casefold().replace("i\u0307", "i"))


def composed(text: str) -> tuple[str, Sequence[int]]:
    r"""Return a text in composed characters (NFC), and for each offset in it, its end too, the one in the original.

    >>> composed("cafe\u0301!")
    ('café!', [0, 1, 2, 3, 5, 6])
    """
    if is_normalized("NFC", text):
        return text, range(len(text) + 1)
    starts = [at for at, char in enumerate(text) if not at or not (combining(char) or "\u1160" <= char <= "\u11ff")]
    offsets: list[int] = []
    pieces = []
    for start, end in pairwise([*starts, len(text)]):
        pieces.append(normalize("NFC", text[start:end]))
        offsets += range(start, start + len(pieces[-1]))
    return "".join(pieces), [*offsets, len(text)]


def shortened(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, its middle left out.

    >>> shortened("abcdefghij", 7)
    'abc … j'
    """
    if len(text) <= limit:
        return text
    head = (limit - 3) * 3 // 4
    return f"{text[:head]} {ELLIPSIS} {text[len(text) - (limit - 3 - head) :]}"
