"""Kinds of characters (scripts without spaces, marks, dashes), and text made safe and short for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from unicodedata import category, combining, is_normalized, normalize

from pytest_ragmetrics.core.lazy import lazily

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
#: What is not seen or only steers others (category Cf, ignorable by default): soft hyphen, joiners, directions, tags.
IGNORABLE = (
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: The same and tatweel, which has a width.
INVISIBLE = f"{IGNORABLE}\u0640"
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
#: What is written for a hyphen or a minus sign.
DASHES = "-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
_NUMERALS = frozenset("〇零一二三四五六七八九十百千万萬億亿兆两兩廿卅")
# C0 and C1 controls, DEL, the bidirectional controls, lone surrogates and tags: a terminal may obey the first three,
# cannot encode the fourth, and shows nothing of the last. Line breaks are white space and become a blank.
_UNPRINTABLE = lazily(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
_OTHER_BREAKS = lazily("[\x0b-\x0d\x1c-\x1f\x85\u2028\u2029]")
_SPACE = lazily(r"\s+")
_LETTERS = lazily(r"[^\W\d_]+")
_ONLY_LETTERS = {code: chr(code) if chr(code).isalpha() else " " for code in range(128)}
# Beside the invisible ones: annotations, tags, and the letters and the pattern of Braille without ink.
_BLANK = lazily(rf"[\s{INVISIBLE}\u2800\u3164\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e00ff]*")


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
    return f"{text[:head]} … {text[len(text) - (limit - 3 - head) :]}"
