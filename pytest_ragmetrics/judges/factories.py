"""Factories of one's own, named in a setting as ``MODULE:FACTORY``."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any, TypeVar

from pytest_ragmetrics.errors import JudgeNotConfiguredError, RagMetricsError

T = TypeVar("T")

_FACTORY = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def is_factory(spec: str) -> bool:
    """Tell whether a spec is written like that of a factory.

    >>> is_factory("house.models:Judge.strict"), is_factory("house judge")
    (True, False)
    """
    return _FACTORY.fullmatch(spec) is not None


def made_by(spec: str, read: Callable[[Any], T], *, noun: str) -> T:
    """Return what ``read`` makes of what a factory makes; raise ``JudgeNotConfiguredError`` if that is no ``noun``."""
    module, _, factory = spec.partition(":")
    try:
        return read(attrgetter(factory)(import_module(module))())
    except RagMetricsError:
        raise
    except Exception as error:
        msg = f"{spec} makes no {noun}: {type(error).__name__}: {error}"
        raise JudgeNotConfiguredError(msg) from error
