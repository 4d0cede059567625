"""Checking what a metric is configured with, so that a slip is an error that names the parameter."""

from __future__ import annotations

from collections.abc import Sequence
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
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        msg = f"{name} must be a whole number from 1 on, not {value!r}"
        raise ValueError(msg)
    return value


def check_share(name: str, value: object) -> float:
    """Return a number from 0 to 1; raise ``ValueError`` if it is none.

    >>> check_share("coeff", 0.5)
    0.5
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        msg = f"{name} must be a number from 0 to 1, not {value!r}"
        raise ValueError(msg)
    return value


def check_weight(name: str, value: object) -> float:
    """Return a finite number from 0 on; raise ``ValueError`` if it is none.

    >>> check_weight("beta", 0.5)
    0.5
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        msg = f"{name} must be a number from 0 on, not {value!r}"
        raise ValueError(msg)
    return value


def check_cutoff(name: str, value: object) -> int | None:
    """Return a whole number from 1 on, or ``None`` for no cut; raise ``ValueError`` if it is neither.

    >>> check_cutoff("k", None), check_cutoff("k", 5)
    (None, 5)
    """
    return None if value is None else check_count(name, value)


def check_flag(name: str, value: object) -> bool:
    """Return a truth value; raise ``ValueError`` if it is none.

    >>> check_flag("strict_order", False)
    False
    """
    if not isinstance(value, bool):
        msg = f"{name} must be True or False, not {value!r}"
        raise ValueError(msg)  # noqa: TRY004 - every wrong parameter value is a ValueError
    return value
