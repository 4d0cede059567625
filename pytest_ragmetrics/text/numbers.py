"""The numbers and dates of a text, however they are written, and which of two texts mean the same.

:func:`find_numbers` reads digits, English number words and dates; :class:`NumbersIn` looks them up in another text. The
metric on numbers and the local judge use both.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.unicode import UNSPACED_CHARACTER, composed, runs_of_letters
from pytest_ragmetrics.text.words import read_word_lists

_LISTS = {heading: body.splitlines() for heading, body in read_word_lists("fact_words.txt").items()}
_MONTH_OF = {name: number for number, names in enumerate(_LISTS["months"], start=1) for name in names.split()}
#: What months are called, in lower case.
MONTH_NAMES = frozenset(_MONTH_OF)
_ORDINALS = {word: int(value) for value, word in map(str.split, _LISTS["ordinals"])}
_VALUE = {word: int(value) for value, word in map(str.split, _LISTS["numbers"])} | _ORDINALS
_SCALE = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_DECADES = {f"{word[:-1]}ies": str(value) for word, value in _VALUE.items() if word[-2:] == "ty"}
_POWER_OF = {word: int(power) for power, *words in map(str.split, _LISTS["powers of ten"]) for word in words}
_UNIT_OF = {word: unit for unit, *words in map(str.split, _LISTS["units"]) for word in (unit, *words)}
_HALVES = " ".join(_LISTS["half"]).split()
_NUMBER_WORDS = frozenset((*_VALUE, *_SCALE, *(f"{word}th" for word in _SCALE)))
# Words that a number or a date may begin with.
_FIRST_WORDS = _NUMBER_WORDS | MONTH_NAMES | _DECADES.keys() | {*_HALVES}
_HUNDRED, _CENTURIES, _FIRST_DECADE, _LAST_PLAIN = 100, range(11, 21), 10, 10
_LAST_MONTH, _LAST_DAY, _NOON, _DAY_HOURS, _LAST_SHORT_YEAR = 12, 31, 12, 24, 30
# How far before a number is looked for its currency, and for what makes it another one.
_NEAR = 24
# As many as exact fractions of up to three digits need: 1/512.
_PLACES = 9
#: The unit of a time of the day, whose readings are hours and minutes.
TIME_OF_DAY = "time"
_ANY_UNIT = "any"


def _one_of(words: Iterable[str]) -> str:
    """Return a pattern for whole words, and for those of scripts without spaces anywhere; one letter is no word."""
    longest = sorted(words, key=len, reverse=True)
    spaced = "|".join(word for word in longest if len(word) > 1 and not UNSPACED_CHARACTER.match(word))
    return rf"(?:{'|'.join(filter(UNSPACED_CHARACTER.match, longest))}|(?:{spaced})\b)"


# Line ends, spaces and marks are read as those of ASCII, and letters that are longer or no ASCII in lower case.
_PLAIN = str.maketrans(
    dict.fromkeys(unicode.LINE_BREAKS, "\n")
    | dict.fromkeys(unicode.THIN_SPACES, " ")
    | dict.fromkeys(unicode.APOSTROPHES, "'")
    | dict.fromkeys(unicode.HYPHENS + unicode.MINUS, "-")
    | dict(zip(unicode.COLONS + unicode.LEFT_ROUND + unicode.RIGHT_ROUND + unicode.PERCENTS, ":()%%", strict=True))
    | dict(zip("\u0130\u0131\u017f\u2044" + unicode.NUMBER_MARKS[1:], "iis/.,", strict=True))
)
_STARTS = lazily(r"\d+|[\u00bc-\u00be\u2150-\u215e]|[^\W\d_]+")
_RUN = lazily(r"\d+")
# No month has more letters, and a run of fractions such as \u00bd may be as long as a text.
_YEAR, _DAY, _NAME = r"(?P<y>(?<!\d)\d{4}(?!\d))", r"(?P<d>(?<!\d)\d{1,2}(?!\d))", r"(?P<n>[^\W\d_]{1,12})\b"
_OF = r"(?:(?:of|de|del|do|di)\s+|d'\s?)?"
_DATES = [
    lazily(pattern)
    for pattern in (
        r"(?<![\d.,/-])(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})(?![\d/])",
        r"(?<![\d.,/-])(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})(?P=s)(?P<y>\d{4})(?![\d/])",
        r"(?P<y>\d{4})\s?年(?:\s?(?P<m>\d{1,2})\s?月(?:\s?(?P<d>\d{1,2})\s?[日号])?)?",
        r"(?P<m>(?<!\d)\d{1,2})\s?月\s?(?P<d>\d{1,2})\s?[日号]",
        rf"{_DAY}(?:st|nd|rd|th|er|\.|º)?\s+{_OF}{_NAME}\.?(?:,?\s+{_OF}{_YEAR})?",
        rf"{_NAME}\.?\s+(?:the\s+)?{_DAY}(?:st|nd|rd|th)?\b(?:,?\s+{_OF}{_YEAR})?",
        rf"{_NAME}\.?,?\s+{_OF}{_YEAR}",
    )
]
# The hour of a day, and the second half of one; "14.30" is one only with a word beside it.
_TIME = lazily(
    r"""(?<![\d.,:/-])(?P<hour>[01]?\d|2[0-4])
      (?: (?P<mark>[:.]|\s?(?:h|uhr|[時时点點시ч])\s?) (?P<minute>[0-5]\d) (?!\d|[:.,/]\d) (?:\s?[分분])?
        | \s? (?P<clock>o'clock|uhr\b|h\b|[時时点點시](?!間|间)) | (?=\s?[ap]\.?[ ]?m(?![^\W_])) )
      (?: \s?(?P<half>[ap])\.?[ ]?m(?![^\W_])\.? | \s?(?P<word>uhr|hrs?|h)\b )?""",
    re.VERBOSE,
)
_HALF_OF_DAY = lazily(r"(?:(?P<am>午前|上午|早上|오전)|(?P<pm>午後|下午|晚上|오후)|\bkl\.?)\s?$")
_HALF = lazily(
    rf"(?:(?P<whole>\w{{1,9}})\s+and\s+an?\s+)?(?:пол|(?:{'|'.join(_HALVES)})[\s-](?:of\s)?(?:an?[\s-])?)"
    rf"(?P<scale>{_one_of({*_SCALE, *_POWER_OF})})"
)
_NUMBER_WORD = "|".join(sorted(_NUMBER_WORDS, key=len, reverse=True))
_PHRASE = lazily(rf"\b(?:(?:{'|'.join(_DECADES)})\b|(?:{_NUMBER_WORD})(?:(?:\s+and\s+|\s+|-)(?:{_NUMBER_WORD}))*\b)")
_PERCENT = lazily(r"\sper\s?cent\b")
_LEAD = lazily(
    rf"(?P<unit>(?:(?:(?<![^\W\d_])(?:(?:us)?\$|[{unicode.CURRENCIES}]|usd|eur|gbp|jpy|cny|inr)|ร้อยละ|ຮ້ອຍລະ) {{0,9}})?)"
    r"(?P<sign>(?<![\w)\].%/])[+-])?(?P<point>(?<![\w.,)\]])\.)?\Z"
)
_NUMERAL = lazily(
    rf"""(?P<digits>
          (?<![\d.,])\d{{1,3}}(?:[ ]\d{{3}})+(?!\d)(?:[.,]\d+)?
        | (?<![\d.,/])\d{{1,3}}/\d{{1,3}}(?![\d/]|[.,]\d) | [\u00bc-\u00be\u2150-\u215e]
        | \d+(?:[.,']\d+)*
      )
      (?: (?P<letter>[kmbt])(?![^\W_]) | (?:\s{{0,9}}|-)(?P<scale>{_one_of(_POWER_OF)})\.? )?
      (?: \s{{0,9}}(?P<unit>%|(?<![\n\t])[${unicode.CURRENCIES}](?!\d)|p(?:er|our)\s?cent\b|por\sciento\b
                   |{_one_of(word for word in _UNIT_OF if "$" not in word)}) )?""",
    re.VERBOSE,
)
# What makes a number negative; "al menos" and "au moins" mean something else.
_MINUS = lazily(
    r"(?<!\d\s)(?<![^\W_])(?:minus|negative|минус|мінус|eksi|(?<![ou]\s)(?<!al\s)(?<!le\s)(?:moins|menos|meno))\s\Z"
    r"|(?:[负負]|マイナス|零下|영하\s?)\Z"
)
# Two digits that are a year or a decade, and the rest of a range of years.
_DECADE_BEFORE = lazily(r"(?:(?<![^\W_])'|\b(?:années|años|anos|anni|jaren|lata)\s)\Z")
_DECADE_AFTER = lazily(r"'?s\b|ern?\b|-?[ех]\b|\s?年代|\s?년대|-tal")
_YEAR_BEFORE = lazily(rf"(?<!\d)(1\d|20)(\d\d)\s?[-/{unicode.PAUSES}]\s?\Z")
_TIME_IN_POINTS = lazily(r"([01]?\d|2[0-4])\.([0-5]\d)")
_STEP = (
    r"(?:steps?|schritt|[ée]tape|paso|passo|passaggio|stap|steg|trin|krok|vaihe|adım|шаг|крок|βήμα|(?:ال)?خطوة|चरण|步骤|步驟|"
    r"ステップ|단계)\s?\d{1,2}|第\s?\d{1,2}\s?步|手順\s?\d{1,2}|\d{1,2}\s?단계"
)
# Numbers that count the lines of a list or point at a passage say nothing about the world.
_POINTER = lazily(
    rf"""^[ \t>*+|\#-]*(?:{_STEP})\s?[.:){unicode.PAUSES}-] | \((?:{_STEP})\)
    | ^[ \t>*+\#-]*\(?\d{{1,3}}[.):](?=\s|\*) | \[\^?\d{{1,3}}(?:\s*[,;{unicode.EN_DASH}-]\s*\d{{1,3}})*\]
    | \b(?:passages?|contexts?|documents?|sources?|excerpts?|chunks?)\s*\#?\d{{1,2}}
      (?:(?:,\s*(?:and\s+)?|\s+and\s+|\s*&\s*)\d{{1,2}})*\b""",
    re.VERBOSE | re.MULTILINE,
)
_GROUPED = lazily(r"\d{1,3}(?:(?P<mark>[.,'])\d{3})(?:(?P=mark)\d{3})*|\d{1,2}(?:,\d{2})+,\d{3}")
_FRACTION = lazily(r"(\d+)[/\u2044](\d+)")
# A list without spaces: 1,2,3.
_LISTED = lazily(r"\d+(?:,\d+){2,}")
_NO_MARKS = str.maketrans("", "", ".,'")
#: Year, month and day, ``None`` for what is missing.
Parts = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """A number or a date and its place; ``readings`` are what it may mean (1.000), ``unit`` a percent sign or such.

    ``plain`` numbers are words like one, third or ten, which are often said without counting anything. A date has
    ``dates``, two where day and month may have changed places; fractions and times have ``parts``.
    """

    text: str = ""
    start: int
    end: int
    readings: frozenset[str]
    unit: str | None = None
    plain: bool = False
    dates: tuple[Parts, ...] = ()
    parts: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def find_numbers(text: str) -> tuple[Number, ...]:
    """Return the numbers and dates of a text in order; list numbers and citation marks are not included.

    >>> [sorted(number.readings) for number in find_numbers("1,000.5 or 12 % of 3 million")]
    [['1000.5'], ['12'], ['3000000']]
    >>> [found.dates for found in find_numbers("From 3 March 2021 to 07/08/2021")]
    [((2021, 3, 3),), ((2021, 8, 7), (2021, 7, 8))]
    """
    whole, at = composed(text)
    small = whole.translate(_PLAIN).lower()
    pointers = _POINTER.finditer(small) if _RUN.search(small) else ()
    pointed = {place for pointer in pointers for place in range(*pointer.span())}
    found: list[Number] = []
    end = 0
    for token in _STARTS.finditer(small):
        start = token.start()
        if start < end or (token[0].isalpha() and token[0] not in _FIRST_WORDS):
            continue
        here = [*_date(small, start)]
        for read in () if here or start in pointed else (_time, _half, _spelled, _digits):
            here = here or [*read(small, start, end)]
        found += (number for number in here if number.readings)
        end = here[-1].end if here else end
    return tuple(replace(it, text=text[at[it.start] : at[it.end]], start=at[it.start], end=at[it.end]) for it in found)


class NumbersIn:
    """The numbers and dates of a text, to look others up in.

    >>> NumbersIn("It opened on 5 May 2019 with 1,200 seats.").locate(find_numbers("1200")[0])
    ((29, 34),)
    """

    def __init__(self, text: str) -> None:
        #: Values with a unit or with any, dates and all dates that say less, and days without a year.
        self._places: dict[tuple[str | tuple[int | None, ...], str | None], tuple[int, int]] = {}
        for found in find_numbers(text):
            place, units = (found.start, found.end), (found.unit, _ANY_UNIT)
            for value in (*product(found.readings, units), *product(found.parts, units[1:])):
                self._places.setdefault(value, place)
            for date in found.dates:
                for said in product(*({part, None} for part in date)):
                    self._places.setdefault((said, "date"), place)
                if date[0] is None:
                    self._places.setdefault((date, "day"), place)
        self._has_fractions = any("/" in value for value, _ in self._places if isinstance(value, str))

    def locate(self, said: Number) -> tuple[tuple[int, int], ...] | None:
        """Return where the text says the same, ``None`` if it does not; units must agree where both name one."""
        if said.dates:
            return next((places for parts in said.dates if (places := self._locate_date(parts))), None)
        if place := self._locate_value(said.readings, said.unit):
            return (place,)
        # 4/5 is "4 of 5" where nothing is written as a fraction, and 9 am may be the first hour of "9-11 am".
        is_time = said.unit == TIME_OF_DAY
        parts = [*filter(str.isdecimal, said.parts)] if is_time or not self._has_fractions else []
        found = tuple(place for part in parts if (place := self._locate_value((part,), said.unit)))
        return found if found and len(found) == len(parts) else None

    def _locate_value(self, readings: Iterable[str], unit: str | None) -> tuple[int, int] | None:
        keys = product(sorted(readings), (_ANY_UNIT,) if unit is None else (unit, None))
        return next((self._places[key] for key in keys if key in self._places), None)

    def _locate_date(self, parts: Parts) -> tuple[tuple[int, int], ...] | None:
        year, month, day = parts
        if place := self._places.get((parts, "date")):
            return (place,)
        in_year = self._places.get((str(year), _ANY_UNIT))
        without_year = self._places.get(((None, month, day), "day"))
        if month is None:
            return (in_year,) if in_year else None
        return (without_year, in_year) if without_year and in_year else None


def _before(pattern: re.Pattern[str], text: str, end: int) -> re.Match[str] | None:
    return pattern.search(text, max(0, end - _NEAR), end)


def _date(text: str, start: int) -> Iterator[Number]:
    """Yield the date that begins here, if one does that says more than a year."""
    for match in filter(None, (pattern.match(text, start) for pattern in _DATES)):
        if dates := tuple(dict.fromkeys(_readings(match.groupdict()))):
            said = frozenset(str(part) for date in dates for part in date if part is not None)
            yield Number(start=start, end=match.end(), readings=said, dates=dates)
            return


def _readings(found: dict[str, str | None]) -> Iterator[Parts]:
    number = {name: int(text) for name, text in found.items() if text and text.isdecimal()}
    if name := found.get("n"):
        number["m"] = _MONTH_OF.get(name, 0)
    for month, day in (("b", "a"), ("a", "b")) if "a" in number else (("m", "d"),):
        if 1 <= number.get(month, 1) <= _LAST_MONTH and 1 <= number.get(day, 1) <= _LAST_DAY:
            yield number.get("y"), number.get(month), number.get(day)


def _time(text: str, start: int, _: int) -> Iterator[Number]:
    """Yield the time of the day; with a colon and without a word for the half of the day both may be meant."""
    if not (match := _TIME.match(text, start)):
        return
    written, mark, minute, clock, half, word = match.groups()
    before = _before(_HALF_OF_DAY, text, start)
    if mark == "." and not (half or word or before):
        return
    hour, late = int(written), half == "p" or bool(before and before["pm"])
    hours = [hour % _DAY_HOURS]
    if hour <= _NOON and (half or (before and before.lastgroup)):
        hours = [hour % _NOON + _NOON * late]
    elif 0 < hour <= _NOON and written[0] != "0" and (mark == ":" or (clock or "").startswith("o")):
        hours = [hour, (hour + _NOON) % _DAY_HOURS]
    readings = frozenset(f"{each}:{minute or '00'}" for each in hours)
    as_written = (f"{hour}:{minute}", _canonical(str(hour), minute, 0)) if minute else ()
    parts = (*as_written, *(str(part) for part in (hour, int(minute or 0)) if part))
    yield Number(start=start, end=match.end(), readings=readings, unit=TIME_OF_DAY, parts=parts)


def _half(text: str, start: int, _: int) -> Iterator[Number]:
    """Yield half a million, two and a half million, half a dozen."""
    if match := _HALF.match(text, start):
        whole, scale = match["whole"] or "0", match["scale"]
        halves = 2 * (int(whole) if whole.isdecimal() else _VALUE.get(whole, 0)) + 1
        value = halves * (_SCALE.get(scale) or 10 ** _POWER_OF[scale]) // 2
        yield Number(start=start, end=match.end(), readings=frozenset((str(value),)))


def _spelled(text: str, start: int, _: int) -> Iterator[Number]:
    """Yield twenty-five, two hundred and six, nineteen eighty-four; and decades, which may be an age: the nineties."""
    if not (match := _PHRASE.match(text, start)):
        return
    if match[0] in _DECADES:
        yield Number(start=start, end=match.end(), readings=frozenset(_years(_DECADES[match[0]])), plain=True)
        return
    parts = [part for part in runs_of_letters(match[0]) if part != "and"]
    value = _evaluate(parts)
    percent, minus = _PERCENT.match(text, match.end()), _before(_MINUS, text, start)
    is_plain = len(parts) == 1 and (parts[0] in _ORDINALS or parts[0] in _SCALE or (value or 0) <= _LAST_PLAIN)
    yield Number(
        start=(minus or match).start(),
        end=(percent or match).end(),
        readings=frozenset(() if value is None else (f"{'-' if minus else ''}{value}",)),
        unit="%" if percent else None,
        plain=is_plain and not (percent or minus),
    )


def _evaluate(parts: list[str]) -> int | None:
    """Return the value of a number in words, ``None`` if the words make none: one third, six seven."""
    total = group = 0
    for part in parts:
        scale = _SCALE.get(part.removesuffix("th"))
        if scale is None:
            # After twenty there is room for one to nine, after two hundred for up to 99.
            value, room = _VALUE[part], _HUNDRED if group % _HUNDRED == 0 else 10 if group % 10 == 0 else 0
            if group in _CENTURIES and value >= _FIRST_DECADE:  # nineteen eighty-four
                group *= _HUNDRED
            elif value >= room:
                return None
            group += value
        elif scale == _HUNDRED:
            group = (group or 1) * scale
        else:
            total += (group or 1) * scale
            group = 0
    return total + group


def _years(digits: str) -> Iterator[str]:
    """Yield what two digits that are a year or a decade may mean."""
    yield _canonical(digits, "", 0)
    if digits != "00":
        yield f"19{digits}"
    if int(digits) <= _LAST_SHORT_YEAR:
        yield f"20{digits}"


def _digits(text: str, start: int, floor: int) -> Iterator[Number]:
    """Yield the number in digits, or all of a list without spaces (1,2,3); digits of a name (B12) have no readings."""
    match, lead = _NUMERAL.match(text, start), _LEAD.search(text, max(floor, start - _NEAR), start)
    if not match or not lead:
        return
    digits, letter, scale, behind = match.groups()
    left = text[start - 1 : start]
    if left == "_" or left != left.upper():  # scripts without case have no such names
        yield Number(start=start, end=match.end(), readings=frozenset())
    elif _LISTED.fullmatch(digits) and not _GROUPED.fullmatch(digits):
        for part in _RUN.finditer(text, *match.span("digits")):
            yield Number(start=part.start(), end=part.end(), readings=frozenset(_values(part[0], 0)))
    else:
        minus, unit = _before(_MINUS, text, lead.start()), (lead["unit"] or behind or "").strip()
        power, digits = _POWER_OF.get(letter or scale or "", 0), f"{lead['point'] or ''}{digits}"
        sign = "-" if minus or lead["sign"] == "-" else ""
        values = {f"{sign}{value}" for each in {0 if letter else power, power} for value in _values(digits, each)}
        if not (unit or power or sign):
            values.update(_other_readings(text, start, digits))
        unit = "%" if "cent" in unit or "cient" in unit else unit
        yield Number(
            start=(minus or lead).start(),
            end=match.end(),
            readings=frozenset(values),
            unit=_UNIT_OF.get(unit),
            parts=tuple(part for value in values if "/" in value for part in value.split("/")),
        )


def _other_readings(text: str, at: int, digits: str) -> Iterator[str]:
    """Yield what two digits may mean as a year or a decade ('90s, 1914-18), and 14.30 as a time."""
    if digits.isdecimal() and len(digits) == len("90"):
        if _before(_DECADE_BEFORE, text, at) or _DECADE_AFTER.match(text, at + len(digits)):
            yield from _years(digits)
        elif (first := _before(_YEAR_BEFORE, text, at)) and int(digits) > int(first[2]):
            yield first[1] + digits
    elif time := _TIME_IN_POINTS.fullmatch(digits):
        yield f"{int(time[1])}:{time[2]}"


def _values(digits: str, power: int) -> Iterator[str]:
    """Yield what a row of digits and marks may mean, times a power of ten: a mark may group or divide."""
    if fraction := _FRACTION.fullmatch(unicodedata.normalize("NFKC", digits)):
        over, under = map(int, fraction.groups())
        yield f"{over}/{under}"
        # Tenths and such have another form; 4/2 or 24/7 is no amount.
        if over < under and 10**_PLACES % under == 0:
            yield _canonical("", str(over * 10**_PLACES // under).rjust(_PLACES, "0"), power)
        return
    plain = "".join(str(unicodedata.digit(char, char)) for char in digits.replace(" ", ""))
    last = max(map(plain.rfind, ".,'"))
    if last < 0 or _GROUPED.fullmatch(plain):
        yield _canonical(plain.translate(_NO_MARKS), "", power)
    if last >= 0 and plain[last] != "'" and plain.count(plain[last]) == 1:
        yield _canonical(plain[:last].translate(_NO_MARKS), plain[last + 1 :], power)
    elif last >= 0 and not _GROUPED.fullmatch(plain):
        yield plain  # a version, an address: no amount


def _canonical(whole: str, fraction: str, power: int) -> str:
    digits, point = whole + fraction.ljust(power, "0"), len(whole) + power
    rest = digits[point:].rstrip("0")
    return (digits[:point].lstrip("0") or "0") + (f".{rest}" if rest else "")
