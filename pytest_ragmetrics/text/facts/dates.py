"""Finding the dates of a text, in the forms people write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

_MONTHS = (
    "january jan januar jänner janvier janv enero ene gennaio gen janeiro januari ocak января январь يناير",
    "february feb februar février févr febrero febbraio fevereiro fev februari февраля февраль فبراير",
    "march mar märz mrz mars marzo março maart mart марта март مارس",
    "april apr avril avr abril abr aprile апреля апрель أبريل ابريل",
    "may mai mayo maggio mag maio mei мая май مايو",
    "june jun juni juin junio giugno giu junho июня июнь يونيو",
    "july jul juli juillet juil julio luglio lug julho июля июль يوليو",
    "august aug août agosto ago augustus августа август أغسطس اغسطس",
    "september sept sep septembre septiembre settembre setembro сентября сентябрь سبتمبر",
    "october oct oktober okt octobre octubre ottobre ott outubro out октября октябрь أكتوبر اكتوبر",
    "november nov novembre noviembre novembro ноября ноябрь نوفمبر",
    "december dec dezember dez décembre déc diciembre dic dicembre dezembro декабря декабрь ديسمبر",
)
_MONTH_OF = {name: number for number, names in enumerate(_MONTHS, start=1) for name in names.split()}
#: What months are called, in lower case.
MONTH_NAMES = frozenset(_MONTH_OF)
_NAME = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_YEAR, _DAY = r"(?<!\d)\d{4}(?!\d)", r"(?<!\d)\d{1,2}(?!\d)"
_OF = r"(?:(?:of|de|del|do|di|d['\u2019])\s*)?"
_IN_DIGITS = rf"""
      (?<![\d.,/-])(?P<y1>\d{{4}})(?P<s1>[-/.])(?P<m1>\d{{1,2}})(?P=s1)(?P<d1>\d{{1,2}})(?![\d/])
    | (?<![\d.,/-])(?P<a5>\d{{1,2}})(?P<s5>[-/.])(?P<b5>\d{{1,2}})(?P=s5)(?P<y5>\d{{4}})(?![\d/])
    | (?P<y6>\d{{4}})\s?年(?:\s?(?P<m6>\d{{1,2}})\s?月(?:\s?(?P<d6>\d{{1,2}})\s?[日号])?)?
    | (?P<m7>{_DAY})\s?月\s?(?P<d7>\d{{1,2}})\s?[日号]
"""
_WITH_MONTH = rf"""
      (?P<d2>{_DAY})(?:st|nd|rd|th|er|\.|º)?\s+{_OF}(?P<n2>{_NAME})\b\.?(?:,?\s+{_OF}(?P<y2>{_YEAR}))?
    | \b(?P<n3>{_NAME})\b\.?\s+(?:the\s+)?(?P<d3>{_DAY})(?:st|nd|rd|th)?\b(?:,?\s+{_OF}(?P<y3>{_YEAR}))?
    | \b(?P<n4>{_NAME})\b\.?,?\s+{_OF}(?P<y4>{_YEAR})
"""
_DATE = re.compile(f"{_IN_DIGITS} | {_WITH_MONTH}", re.VERBOSE | re.IGNORECASE)
# The name of a month is looked for at every letter, so where there is none this is many times faster.
_DATE_IN_DIGITS = re.compile(_IN_DIGITS, re.VERBOSE)
_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"[^\W\d_]+")
_MONTHS_AS_WRITTEN = frozenset(of + name for of in ("", "of", "de", "del", "do", "di") for name in MONTH_NAMES)
_LAST_MONTH, _LAST_DAY = 12, 31

#: Year, month and day; what is not said is ``None``.
Parts = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Date:
    """A date and its place; ``readings`` holds more than one where day and month may have changed places."""

    text: str
    start: int
    end: int
    readings: tuple[Parts, ...]


def find_dates(text: str) -> Iterator[Date]:
    """Yield the dates of a text that say more than a year.

    >>> [date.readings for date in find_dates("From 3 March 2021 to 07/08/2021")]
    [((2021, 3, 3),), ((2021, 8, 7), (2021, 7, 8))]
    """
    if _DIGIT.search(text) is None:
        return
    has_month = not _MONTHS_AS_WRITTEN.isdisjoint(_WORD.findall(text.casefold()))
    for match in (_DATE if has_month else _DATE_IN_DIGITS).finditer(text):
        readings = tuple(dict.fromkeys(parts for parts in _readings(match.groupdict()) if _possible(parts)))
        if readings:
            yield Date(text=match.group(), start=match.start(), end=match.end(), readings=readings)


def less_said(parts: Parts) -> Iterator[Parts]:
    """Yield every date that is true of this one: itself, and those that say less.

    >>> (2021, 3, None) in less_said((2021, 3, 5))
    True
    """
    year, month, day = parts
    yield from product(dict.fromkeys((year, None)), dict.fromkeys((month, None)), dict.fromkeys((day, None)))


def _readings(found: dict[str, str | None]) -> Iterator[Parts]:
    values = {name[0]: text for name, text in found.items() if text is not None}
    year = int(values["y"]) if "y" in values else None
    if "a" in values:
        yield year, int(values["b"]), int(values["a"])
        yield year, int(values["a"]), int(values["b"])
        return
    month = _MONTH_OF[values["n"].casefold()] if "n" in values else int(values["m"]) if "m" in values else None
    yield year, month, int(values["d"]) if "d" in values else None


def _possible(parts: Parts) -> bool:
    _, month, day = parts
    return (month is None or 1 <= month <= _LAST_MONTH) and (day is None or 1 <= day <= _LAST_DAY)
