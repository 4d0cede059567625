"""Checking what a metric is configured with, so that a slip is an error that names the parameter."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from numbers import Integral, Real
from typing import TypeVar

T = TypeVar("T", bound=str)


def check_choice(name: str, value: T, choices: Sequence[str]) -> T:
    """Return a value that is one of the choices; raise ``ValueError`` naming them if it is not.

    >>> check_choice("unit", "claims", ("claims", "sentences"))
    'claims'
    """
    if value not in choices:
        msg = f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}"
        raise ValueError(msg)
    return value


def check_count(name: str, value: object) -> int:
    """Return a whole number from 1 on; raise ``ValueError`` if it is none.

    >>> check_count("strictness", 3)
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        msg = f"{name} must be a whole number from 1 on, not {value!r}"
        raise ValueError(msg)
    return int(value)


def check_number(name: str, value: object, least: float = 0, most: float = inf) -> float:
    """Return a finite number from ``least`` to ``most``; raise ``ValueError`` if it is none.

    >>> check_number("beta", 0.5), check_number("coeff", 1, most=1)
    (0.5, 1)
    """
    if isinstance(value, bool) or not isinstance(value, Real) or value < least or not value <= most or value == inf:
        ends = f"from {least:g} on" if most == inf else f"from {least:g} to {most:g}"
        msg = f"{name} must be a number {ends}, not {value!r}"
        raise ValueError(msg)
    # No float holds every whole number.
    return int(value) if isinstance(value, Integral) else float(value)


def check_if_empty(value: object, scale: tuple[float, float]) -> float | None:
    """Return the score of what has nothing to judge, or ``None`` for none; raise ``ValueError`` if there is no such.

    >>> check_if_empty(None, (0.0, 1.0)), check_if_empty(1, (0.0, 1.0))
    (None, 1)
    """
    return None if value is None else check_number("if_empty", value, *scale)


def check_flag(name: str, value: object) -> bool:
    """Return a truth value; raise ``ValueError`` if it is none.

    >>> check_flag("strict_order", False)
    False
    """
    if not isinstance(value, bool):
        msg = f"{name} must be True or False, not {value!r}"
        raise ValueError(msg)  # noqa: TRY004 - every wrong parameter value is a ValueError
    return value
