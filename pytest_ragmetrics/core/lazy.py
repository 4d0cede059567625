"""Regular expressions that are compiled when they are first used.

Compiling those of the modules that any metric imports took a third of the time of their import, and a run needs few.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


class _Lazy:
    """Has the methods of a pattern from the first time that one of them is asked for."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(self, name)


def lazily(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what has the methods of ``re.compile(pattern, flags)``, which is called with the first use of one.

    >>> lazily("[a-z]+").findall("Ivy climbs.")
    ['vy', 'climbs']
    """
    return cast("re.Pattern[str]", _Lazy(pattern, flags))
