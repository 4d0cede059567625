"""The turns of phrase that all explanations share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ragmetrics.text.printable import printable, shortened

if TYPE_CHECKING:
    from pytest_ragmetrics.stats.intervals import Interval

#: How many verdicts or rows a failure spells out.
SHOWN = 10
#: What says that an operator does not hold.
CONTRARY = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!="}
_TEXT_LIMIT = 300
_NAME_LIMIT = 80


def told_apart(score: float, bound: float) -> tuple[str, str]:
    """Format both with two decimals, or with as many as it takes to see that they differ.

    >>> told_apart(0.8996, 0.9)
    ('0.8996', '0.9000')
    """
    for decimals in range(2, 16):
        texts = f"{score:.{decimals}f}", f"{bound:.{decimals}f}"
        if score == bound or texts[0] != texts[1]:
            return texts
    return repr(score), repr(bound)


def counted(number: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def and_more(number: int, *, indent: str = "  ") -> list[str]:
    """Return the line that says how many were left out beyond those that are shown, none if all are there."""
    return [f"{indent}... and {number - SHOWN} more"] if number > SHOWN else []


def readable(text: str) -> str:
    """Return a text of any length and origin on one line."""
    return shortened(printable(text), _TEXT_LIMIT)


def quoted(text: str) -> str:
    """Return a text in quotation marks."""
    return f'"{readable(text)}"'


def named(name: str) -> str:
    """Return the name of a row."""
    return shortened(printable(name), _NAME_LIMIT)


def told_interval(interval: Interval, *, sign: str = "", apart_from: float | None = None) -> str:
    """Return an interval, its ends with as many decimals as it takes to tell them from a bound."""
    low, high = f"{interval.low:{sign}.2f}", f"{interval.high:{sign}.2f}"
    if apart_from is not None:
        low, high = (told_apart(end, apart_from)[0] for end in (interval.low, interval.high))
    return f"{interval.confidence * 100:g} % interval {low}..{high}"
