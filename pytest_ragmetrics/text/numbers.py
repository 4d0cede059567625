"""The numbers and dates of a text, however they are written, and which of two texts mean the same.

:func:`find_numbers` reads digits, English number words and dates; :class:`NumbersIn` looks them up in another text. The
metric on numbers and the local judge use both.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.text.unicode import composed, runs_of_letters
from pytest_ragmetrics.text.words import read_word_lists

_LISTS = {heading: body.splitlines() for heading, body in read_word_lists("fact_words.txt").items()}
_MONTH_OF = {name: number for number, names in enumerate(_LISTS["months"], start=1) for name in names.split()}
#: What months are called, in lower case.
MONTH_NAMES = frozenset(_MONTH_OF)
_MONTH = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_YEAR, _DAY = r"(?<!\d)\d{4}(?!\d)", r"(?<!\d)\d{1,2}(?!\d)"
_OF = r"(?:(?:of|de|del|do|di|d['\u2019])\s*)?"
_IN_DIGITS = rf"""
      (?<![\d.,/-])(?P<y1>\d{{4}})(?P<s1>[-/.])(?P<m1>\d{{1,2}})(?P=s1)(?P<d1>\d{{1,2}})(?![\d/])
    | (?<![\d.,/-])(?P<a5>\d{{1,2}})(?P<s5>[-/.])(?P<b5>\d{{1,2}})(?P=s5)(?P<y5>\d{{4}})(?![\d/])
    | (?P<y6>\d{{4}})\s?年(?:\s?(?P<m6>\d{{1,2}})\s?月(?:\s?(?P<d6>\d{{1,2}})\s?[日号])?)?
    | (?P<m7>{_DAY})\s?月\s?(?P<d7>\d{{1,2}})\s?[日号]
"""
_WITH_MONTH = rf"""
      (?P<d2>{_DAY})(?:st|nd|rd|th|er|\.|º)?\s+{_OF}(?P<n2>{_MONTH})\b\.?(?:,?\s+{_OF}(?P<y2>{_YEAR}))?
    | \b(?P<n3>{_MONTH})\b\.?\s+(?:the\s+)?(?P<d3>{_DAY})(?:st|nd|rd|th)?\b(?:,?\s+{_OF}(?P<y3>{_YEAR}))?
    | \b(?P<n4>{_MONTH})\b\.?,?\s+{_OF}(?P<y4>{_YEAR})
"""
_DATE = lazily(f"{_IN_DIGITS} | {_WITH_MONTH}", re.VERBOSE | re.IGNORECASE)
_DATE_IN_DIGITS = lazily(_IN_DIGITS, re.VERBOSE)
# What every number that is not in words has.
_DIGIT = lazily("[\\d\u00bc-\u00be\u2150-\u215e]")
_DIGITS = lazily(r"\d+")
_DIGITS_OF_YEAR = 4
_MONTHS_AS_WRITTEN = frozenset(of + name for of in ("", "of", "de", "del", "do", "di") for name in MONTH_NAMES)
_LAST_MONTH, _LAST_DAY = 12, 31
# What IGNORECASE takes for an i or an s, and casefold() for other letters: 5 APR\u0130L 2020.
_LIKE_ASCII = {"\u0130": "I", "\u0131": "i", "\u017f": "s"}
_ORDINALS = {word: int(value) for value, word in map(str.split, _LISTS["ordinals"])}
_VALUE = {word: int(value) for value, word in map(str.split, _LISTS["numbers"])} | _ORDINALS
_SCALE = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_NUMBER_WORDS = frozenset((*_VALUE, *_SCALE, *(f"{word}th" for word in _SCALE)))
_NUMBER_WORD = "|".join(sorted(_NUMBER_WORDS, key=len, reverse=True))
_PHRASE = lazily(rf"\b(?:{_NUMBER_WORD})(?:(?:\s+and\s+|\s+|-)(?:{_NUMBER_WORD}))*\b", re.IGNORECASE)
_HUNDRED = 100
_CENTURIES = range(11, 21)
_LAST_PLAIN = 10
_FIRST_DECADE = 10
_POWER_OF = {word: int(power) for power, *words in map(str.split, _LISTS["powers of ten"]) for word in words}
_HALVES = frozenset(" ".join(_LISTS["half"]).split())
_HALF = lazily(
    rf"(?:пол|\w+[\s-](?:of\s)?(?:an?[\s-])?)({'|'.join(sorted({*_SCALE, *_POWER_OF}, key=len, reverse=True))})\b",
    re.IGNORECASE,
)
_AND_A = lazily(r"(\w+)\s+and\s+an?\s+$")
_UNIT_OF = {word: unit for unit, *words in map(str.split, _LISTS["units"]) for word in (unit, *words)}
_SIGNS = r"(?:us)?\$|[€£¥₹]|usd|eur|gbp|jpy|cny|inr"
_SCALE_WORDS = [word for word in _POWER_OF if len(word) > 1]
_UNIT_WORDS = sorted(filter(str.isalpha, _UNIT_OF), key=len, reverse=True)


def _one_of(words: Sequence[str]) -> str:
    # Mostly none of them is there, which their first letters tell in one step.
    return f"(?=[{''.join(sorted({word[0] for word in words}))}])(?:{'|'.join(words)})"


_NUMBER = lazily(
    rf"""
      (?P<before>(?:(?<![^\W\d_])(?:{_SIGNS})[ \u00a0]{{0,9}})?)
      (?P<sign>(?<![\w)\].%/])[-\u2212+])?
      (?P<digits>
          (?<![\d.,])\d{{1,3}}(?:[ \u00a0\u2009\u202f]\d{{3}})+(?!\d)(?:[.,\u066b]\d+)?
        | (?<![\d.,/\u2044])\d{{1,3}}[/\u2044]\d{{1,3}}(?![\d/\u2044]|[.,]\d) | [\u00bc-\u00be\u2150-\u215e]
        | (?:(?<![\w.,)\]])\.)?\d+(?:[.,'\u2019\u066b\u066c]\d+)*
      )
      (?:
          (?P<letter>[kmbt])(?![^\W_])
        | (?:\s{{0,9}}|-)(?P<scale>{_one_of(_SCALE_WORDS)})\b\.?
        | \s{{0,9}}(?P<sinic>[万萬亿億])
      )?
      (?:\s{{0,9}}(?P<unit>[%\uff05٪円元]|(?<![\n\t])[$€£¥₹](?!\d)|{_one_of(_UNIT_WORDS)}\b|per\scent\b|pour\scent\b|por\sciento\b))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
# What makes a number negative; "al menos" and "au moins" mean something else.
_MINUS = lazily(
    r"(?<!\d\s)(?<![^\W_])(?:minus|negative|минус|мінус|eksi|(?<![ou]\s)(?<!al\s)(?<!le\s)(?:moins|menos|meno))\s$"
    r"|(?:[负負]|マイナス|零下|영하\s?)$",
    re.IGNORECASE,
)
# Two digits that are a year or a decade, and the rest of a range of years.
_DECADE_BEFORE = lazily(r"(?:(?<![^\W_])['\u2019\u2018]|\b(?:années|años|anos|anni|jaren|lata)\s)$", re.IGNORECASE)
_DECADE_AFTER = lazily(r"['\u2019]?s\b|ern?\b|-?[ех]\b|\s?年代|\s?년대|-tal")
_YEAR_BEFORE = lazily(r"(?<!\d)(1\d|20)(\d\d)\s?[-/\u2013\u2014]\s?$")
_DECADES = {f"{word[:-1]}ies": str(value) for word, value in _VALUE.items() if word[-2:] == "ty"}
_LAST_SHORT_YEAR = 30
# The hour of a day, and the second half of one; "14.30" is one only with a word beside it.
_TIME = lazily(
    r"""(?<![\d.,:/-])(?P<hour>[01]?\d|2[0-4])
      (?: (?P<mark>[:\uff1a.]|\s?(?:h|uhr|[時时点點시ч])\s?) (?P<minute>[0-5]\d) (?!\d|[:.,/]\d) (?:\s?[分분])?
        | \s? (?P<clock>o['\u2019]clock|uhr\b|h\b|[時时点點시](?!間|间)) | (?=\s?[ap]\.?[ ]?m(?![^\W_])) )
      (?: \s?(?P<half>[ap])\.?[ ]?m(?![^\W_])\.? | \s?(?P<word>uhr|hrs?|h)\b )?""",
    re.VERBOSE | re.IGNORECASE,
)
_HALF_OF_DAY = lazily(r"(?:(?P<am>午前|上午|早上|오전)|(?P<pm>午後|下午|晚上|오후)|\bkl\.?)\s?$", re.IGNORECASE)
_TIME_IN_POINTS = lazily(r"([01]?\d|2[0-4])\.([0-5]\d)")
_NOON, _DAY_HOURS = 12, 24
# How far before a number is looked for what makes it another one.
_NEAR, _FAR = 12, 24
#: The unit of a time of the day, whose readings are hours and minutes.
_TIME_OF_DAY = "time"
# What may be before the first digit: a sign and a point, and before these a currency and nine blanks.
_LEADING = " \u00a0-\u2212+."
_CURRENCIES = (*"$€£¥₹", "usd", "eur", "gbp", "jpy", "cny", "inr")
_FEW_BEFORE, _MOST_BEFORE = 2, 14
_STEP = (
    r"(?:steps?|schritt|[ée]tape|paso|passo|passaggio|stap|steg|trin|krok|vaihe|adım|шаг|крок|βήμα|(?:ال)?خطوة|चरण|步骤|步驟|"
    r"ステップ|단계)\s?\d{1,2}|第\s?\d{1,2}\s?步|手順\s?\d{1,2}|\d{1,2}\s?단계"
)
# What ends a line beside "\n", which is all that ^ knows.
_LINE_END = lazily("[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Numbers that count the lines of a list or point at a passage say nothing about the world.
_POINTER = lazily(
    rf"""^[ \t>*+|\#-]*(?:{_STEP})\s?[.:)\uff1a\u2013\u2014-] | [(\uff08](?:{_STEP})[)\uff09]
    | ^[ \t>*+\#-]*\(?\d{{1,3}}[.):](?=\s|\*) | \[\^?\d{{1,3}}(?:\s*[,;\u2013-]\s*\d{{1,3}})*\]
    | \b(?:passages?|contexts?|documents?|sources?|excerpts?|chunks?)\s*\#?\d{{1,2}}
      (?:(?:,\s*(?:and\s+)?|\s+and\s+|\s*&\s*)\d{{1,2}})*\b""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_GROUPED = lazily(r"\d{1,3}(?:(?P<mark>[.,'])\d{3})(?:(?P=mark)\d{3})*|\d{1,2}(?:,\d{2})+,\d{3}")
_FRACTION = lazily(r"(\d+)[/\u2044](\d+)")
# As many as exact fractions of up to three digits need: 1/512.
_PLACES = 9
# A list without spaces: 1,2,3.
_LISTED = lazily(r"\d+(?:,\d+){2,}")
_PERCENT = lazily(r"\sper\s?cent\b", re.IGNORECASE)
_MARKS = ".,'"
_NO_MARKS = str.maketrans("", "", _MARKS)
_ANY_UNIT = "any"
_SAME_MARK = str.maketrans(
    {"\u066b": ".", "\u066c": ",", "\u2019": "'", " ": "", "\u00a0": "", "\u2009": "", "\u202f": ""}
)
#: Year, month and day; what is not said is ``None``.
Parts = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Date:
    """A date and its place; ``readings`` has two where day and month may have changed places."""

    text: str
    start: int
    end: int
    readings: tuple[Parts, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """A number and its place; ``readings`` are what it may mean (1.000), ``unit`` a percent sign or a currency.

    ``plain`` numbers are words like one, third or ten, which are often said without counting anything.
    """

    text: str
    start: int
    end: int
    readings: frozenset[str]
    unit: str | None = None
    plain: bool = False


@lru_cache(maxsize=256)
def find_numbers(text: str) -> tuple[Number | Date, ...]:
    """Return the numbers and dates of a text in order; list numbers and citation marks are not included.

    >>> [sorted(number.readings) for number in find_numbers("1,000.5 or 12 % of 3 million")]
    [['1000.5'], ['12'], ['3000000']]
    >>> [found.readings for found in find_numbers("From 3 March 2021 to 07/08/2021")]
    [((2021, 3, 3),), ((2021, 8, 7), (2021, 7, 8))]
    """
    original, (text, at) = text, composed(_LINE_END.sub("\n", text))
    for letter, plain in _LIKE_ASCII.items():
        text = text.replace(letter, plain)
    # Small letters have the same places.
    small = text.lower()
    words = frozenset(runs_of_letters(small))
    dates: list[Number | Date] = list(_spoken(text, small, words))
    taken, digits = sorted(_places(dates)), []
    if _DIGIT.search(text):
        dates += (*_dates(text, small, words), *_times(text))
        taken = sorted([*_places(dates), *(match.span() for match in _POINTER.finditer(text))])
        digits = [number for number in _digits(text) if not _overlaps(number, taken)]
        taken = sorted([*taken, *_places(digits)])
    phrases = _matches(_PHRASE, text, _starts(small, words & _NUMBER_WORDS))
    spelled = [number for number in _number_words(text, phrases) if not _overlaps(number, taken)]
    found: list[Number | Date] = sorted((*dates, *digits, *spelled), key=lambda number: number.start)
    if text is original:
        return tuple(found)
    places = ((number, at[number.start], at[number.end]) for number in found)
    return tuple(replace(number, text=original[start:end], start=start, end=end) for number, start, end in places)


def _places(found: Iterable[Number | Date]) -> Iterator[tuple[int, int]]:
    return ((number.start, number.end) for number in found)


def _overlaps(number: Number, taken: list[tuple[int, int]]) -> bool:
    # What is taken may overlap itself, but only a date and a pointer that begin together.
    at = bisect_left(taken, (number.end, 0))
    return any(end > number.start for _, end in taken[max(at - 2, 0) : at])


class NumbersIn:
    """The numbers and dates of a text, to look others up in.

    >>> NumbersIn("It opened on 5 May 2019 with 1,200 seats.").locate(find_numbers("1200")[0])
    ((29, 34),)
    """

    def __init__(self, text: str) -> None:
        self._numbers: dict[tuple[str, str | None], tuple[int, int]] = {}
        self._dates: dict[Parts, tuple[int, int]] = {}
        #: Days without a year, which may be given elsewhere.
        self._days: dict[Parts, tuple[int, int]] = {}
        self._has_fractions = False
        for found in find_numbers(text):
            place = found.start, found.end
            if isinstance(found, Number):
                self._note(found.readings, found.unit, place)
                if found.unit == _TIME_OF_DAY:
                    self._note(_as_written(found.text), "as written", place)
                continue
            for parts in found.readings:
                # The date is also any date that says less: without the year, the month or the day.
                year, month, day = parts
                for said in product({year, None}, {month, None}, {day, None}):
                    self._dates.setdefault(said, place)
                if year is None:
                    self._days.setdefault(parts, place)
                self._note((str(part) for part in parts if part is not None), None, place)

    def _note(self, readings: Iterable[str], unit: str | None, place: tuple[int, int]) -> None:
        for value in readings:
            parts = value.split("/") if "/" in value else ()
            self._has_fractions |= bool(parts)
            for said in (value, *parts):
                self._numbers.setdefault((said, unit), place)
                self._numbers.setdefault((said, _ANY_UNIT), place)

    def locate(self, said: Number | Date) -> tuple[tuple[int, int], ...] | None:
        """Return where the text says the same, ``None`` if it does not; units must agree where both name one."""
        if isinstance(said, Date):
            return next((places for parts in said.readings if (places := self._locate_date(parts))), None)
        if place := self._locate_value(said.readings, said.unit):
            return (place,)
        # 4/5 is "4 of 5" where nothing is written as a fraction, and 9 am may be the first hour of "9-11 am".
        parts = next((value.split("/") for value in said.readings if "/" in value and not self._has_fractions), [])
        if said.unit == _TIME_OF_DAY:
            parts = [part for part in _as_written(said.text)[2:] if part != "0"]
        found = tuple(place for part in parts if (place := self._locate_value((part,), said.unit)))
        return found if found and len(found) == len(parts) else None

    def _locate_value(self, readings: Iterable[str], unit: str | None) -> tuple[int, int] | None:
        units = (_ANY_UNIT,) if unit is None else (unit, None)
        for value in sorted(readings):
            for each in units:
                if place := self._numbers.get((value, each)):
                    return place
        return None

    def _locate_date(self, parts: Parts) -> tuple[tuple[int, int], ...] | None:
        year, month, day = parts
        if parts in self._dates:
            return (self._dates[parts],)
        key = (str(year), _ANY_UNIT)
        if year is None or key not in self._numbers:
            return None
        if month is None:
            return (self._numbers[key],)
        without_year = self._days.get((None, month, day))
        return (without_year, self._numbers[key]) if without_year else None


def _matches(pattern: re.Pattern[str], text: str, starts: Iterable[int]) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern that can begin nowhere else.

    A search tries all alternatives at each character, and there are a hundred names of months and words for numbers.
    """
    end = 0
    for start in sorted(starts):
        if start >= end and (match := pattern.match(text, start)):
            yield match
            end = match.end()


def _starts(text: str, words: Iterable[str]) -> Iterator[int]:
    """Yield where some words are in a text, alone or in others."""
    for word in words:
        at = text.find(word)
        while at >= 0:
            yield at
            at = text.find(word, at + len(word))


def _dates(text: str, small: str, words: frozenset[str]) -> Iterator[Date]:
    """Yield the dates of a text that say more than a year; ``words`` are those of ``small``, the text in lower case."""
    starts = [*_starts(small, words & MONTH_NAMES)]
    for run in _DIGITS.finditer(text):
        starts.append(run.start())
        if run.end() - run.start() > _DIGITS_OF_YEAR:
            starts.append(run.end() - _DIGITS_OF_YEAR)
    pattern = _DATE_IN_DIGITS if words.isdisjoint(_MONTHS_AS_WRITTEN) else _DATE
    for match in _matches(pattern, text, starts):
        readings = tuple(dict.fromkeys(_readings(match.groupdict())))
        if readings:
            yield Date(text=match.group(), start=match.start(), end=match.end(), readings=readings)


def _readings(found: dict[str, str | None]) -> Iterator[Parts]:
    values = {name[0]: text for name, text in found.items() if text is not None}
    number = {name: int(text) for name, text in values.items() if text.isdigit()}
    if "n" in values:
        number["m"] = _MONTH_OF[values["n"].casefold()]
    for month, day in (("b", "a"), ("a", "b")) if "a" in values else (("m", "d"),):
        if 1 <= number.get(month, 1) <= _LAST_MONTH and 1 <= number.get(day, 1) <= _LAST_DAY:
            yield number.get("y"), number.get(month), number.get(day)


def _spoken(text: str, small: str, words: frozenset[str]) -> Iterator[Number]:
    """Yield half a million, two and a half million, half a dozen; and decades, which may be an age: the nineties."""
    for match in _matches(_HALF, text, _starts(small, words & _HALVES)):
        scale = match[1].lower()
        whole = _AND_A.search(text, max(0, match.start() - _FAR), match.start())
        word = whole[1].lower() if whole else "0"
        halves = 2 * (int(word) if word.isdecimal() else _VALUE.get(word, 0)) + 1
        value = halves * (_SCALE.get(scale) or 10 ** _POWER_OF[scale]) // 2
        start = whole.start() if whole else match.start()
        yield _number(text, start, match.end(), (str(value),))
    for word in words & _DECADES.keys():
        for start in _starts(small, (word,)):
            yield _number(text, start, start + len(word), _years(_DECADES[word]), plain=True)


def _number(
    text: str, start: int, end: int, readings: Iterable[str], unit: str | None = None, *, plain: bool = False
) -> Number:
    return Number(text=text[start:end], start=start, end=end, readings=frozenset(readings), unit=unit, plain=plain)


def _years(digits: str) -> Iterator[str]:
    """Yield what two digits that are a year or a decade may mean."""
    yield _canonical(digits, "", 0)
    if digits != "00":
        yield f"19{digits}"
    if int(digits) <= _LAST_SHORT_YEAR:
        yield f"20{digits}"


def _times(text: str) -> Iterator[Number]:
    """Yield the times of the day; with a colon and without a word for the half of the day both may be meant."""
    for match in _matches(_TIME, text, (run.start() for run in _DIGITS.finditer(text))):
        written, mark, minute, clock, half, word = match.groups()
        before = _HALF_OF_DAY.search(text, max(0, match.start() - _NEAR), match.start())
        if mark == "." and not (half or word or before):
            continue
        hour, late = int(written), (half or "").lower() == "p" or bool(before and before["pm"])
        hours = [hour % _DAY_HOURS]
        if hour <= _NOON and (half or (before and before.lastgroup)):
            hours = [hour % _NOON + _NOON * late]
        elif 0 < hour <= _NOON and written[0] != "0" and (mark in (":", "：") or (clock or "").startswith("o")):
            hours = [hour, (hour + _NOON) % _DAY_HOURS]
        yield _number(text, *match.span(), (f"{each}:{minute or '00'}" for each in hours), _TIME_OF_DAY)


def _as_written(time: str) -> tuple[str, ...]:
    """Return a time as the numbers it is written with: 2:30, 2.3, 2, 30."""
    parts = [str(int(part)) for part in _DIGITS.findall(time)]
    return (f"{parts[0]}:{parts[-1]:>02}", _canonical(parts[0], f"{parts[-1]:>02}", 0), *parts)


def _number_words(text: str, phrases: Iterable[re.Match[str]]) -> Iterator[Number]:
    """Yield the numbers a text writes in English words: twenty-five, two hundred and six, nineteen eighty-four."""
    for match in phrases:
        parts = [part for part in runs_of_letters(match[0].lower()) if part != "and"]
        value = _evaluate(parts)
        if value is None:
            continue
        plain = len(parts) == 1 and (parts[0] in _ORDINALS or value <= _LAST_PLAIN or parts[0] in _SCALE)
        percent = _PERCENT.match(text, match.end())
        minus = _MINUS.search(text, max(0, match.start() - _FAR), match.start())
        start, end = (minus or match).start(), (percent or match).end()
        signed, unit = f"{'-' if minus else ''}{value}", "%" if percent else None
        yield _number(text, start, end, (signed,), unit, plain=plain and not percent and not minus)


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


def _numerals(text: str) -> Iterator[re.Match[str]]:
    # Near digits alone: a search takes as long at any other character.
    end = 0
    while digit := _DIGIT.search(text, end):
        at = digit.start()
        lead = text[max(at - _MOST_BEFORE, 0) : at].rstrip(_LEADING).lower()
        match = _NUMBER.search(text, max(end, at - (_MOST_BEFORE if lead.endswith(_CURRENCIES) else _FEW_BEFORE)))
        if match is None:
            return
        yield match
        end = match.end()


def _digits(text: str) -> Iterator[Number]:
    for match in _numerals(text):
        at = match.start("digits")
        left = text[at - 1 : at]
        # Digits that belong to a name such as B12; scripts without case have no such names.
        if left == "_" or left.lower() != left.upper():
            continue
        before, written, digits, letter, scale, sinic, behind = match.groups()
        if "," in digits and _LISTED.fullmatch(digits) and not _GROUPED.fullmatch(digits):
            for part in _DIGITS.finditer(text, *match.span("digits")):
                yield _number(text, *part.span(), _values(part[0], 0))
            continue
        unit = (before or behind or "").strip().casefold()
        power = _POWER_OF.get((letter or scale or sinic or "").casefold(), 0)
        powers = (0, power) if letter else (power,)
        minus = _MINUS.search(text, max(0, match.start() - _FAR), match.start())
        sign = "-" if minus or written in ("-", "\u2212") else ""
        start = minus.start() if minus else match.start("sign") if sign else match.start() if before else at
        readings = {f"{sign}{value}" for power in powers for value in _values(digits, power)}
        if not (unit or power or sign):
            readings.update(_other_readings(text, at, digits))
        unit = "%" if "cent" in unit or unit.startswith("por") else unit
        yield _number(text, start, match.end(), readings, _UNIT_OF.get(unit))


def _other_readings(text: str, at: int, digits: str) -> Iterator[str]:
    """Yield what two digits may mean as a year or a decade ('90s, 1914-18), and 14.30 as a time."""
    if digits.isdecimal() and len(digits) == len("90"):
        if _DECADE_BEFORE.search(text, max(0, at - _NEAR), at) or _DECADE_AFTER.match(text, at + len(digits)):
            yield from _years(digits)
        elif (first := _YEAR_BEFORE.search(text, max(0, at - _NEAR), at)) and int(digits) > int(first[2]):
            yield first[1] + digits
    elif (time := _TIME_IN_POINTS.fullmatch(digits)) is not None:
        yield f"{int(time[1])}:{time[2]}"


def _values(digits: str, power: int) -> Iterator[str]:
    """Yield what a row of digits and marks may mean, times a power of ten: a mark may group or divide."""
    if digits.isascii() and digits.isdecimal():
        yield _canonical(digits, "", power)
        return
    if not digits.isdecimal() and (fraction := _FRACTION.fullmatch(unicodedata.normalize("NFKC", digits))):
        over, under = map(int, fraction.groups())
        yield f"{over}/{under}"
        # Tenths and such have another form; 4/2 or 24/7 is no amount.
        if over < under and 10**_PLACES % under == 0:
            yield _canonical("", str(over * 10**_PLACES // under).rjust(_PLACES, "0"), power)
        return
    plain = "".join(str(unicodedata.digit(char)) if char.isdigit() else char for char in digits).translate(_SAME_MARK)
    last = max(plain.rfind(mark) for mark in _MARKS)
    if last < 0 or _GROUPED.fullmatch(plain):
        yield _canonical(_bare(plain), "", power)
    if last >= 0 and plain[last] != "'" and plain.count(plain[last]) == 1:
        yield _canonical(_bare(plain[:last]), plain[last + 1 :], power)
    elif last >= 0 and not _GROUPED.fullmatch(plain):
        yield plain  # a version, an address: no amount


def _bare(digits: str) -> str:
    return digits.translate(_NO_MARKS)


def _canonical(whole: str, fraction: str, power: int) -> str:
    digits, point = whole + fraction.ljust(power, "0"), len(whole) + power
    rest = digits[point:].rstrip("0")
    return (digits[:point].lstrip("0") or "0") + (f".{rest}" if rest else "")
