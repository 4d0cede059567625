"""Finding out what a server accepts: what it refuses is given up step by step, and remembered."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from pytest_ragmetrics.judges.connection import said_by

T = TypeVar("T")
Terms = TypeVar("Terms")

_REJECTED = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
_REFUSING = re.compile(
    r"support|unknown|unrecogni|unexpected|(?:may|is) not |not (?:allowed|permitted)|cannot be (?:used|specified)"
    r"|deprecated|extra",
    re.IGNORECASE,
)


class Negotiation(Generic[Terms]):
    """The ``terms`` that a server was found to accept so far; those of no request alone."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    async def reach(self, send: Callable[[Terms], Awaitable[T]], concede: Callable[[Terms, Any], Terms | None]) -> T:
        """Return what ``send(terms)`` does, on terms that the server accepts.

        ``concede(terms, error)`` returns the terms to try after a rejection, or ``None`` if nothing can be given up:
        then the SDK's error is raised.
        """
        while True:
            terms = self.terms
            try:
                return await send(terms)
            except Exception as error:
                if getattr(error, "status_code", None) not in _REJECTED:
                    raise
                # Others may have found out the same while this request was on its way.
                if self.terms == terms:
                    conceded = concede(terms, error)
                    if conceded is None:
                        raise
                    self.terms = conceded


def refused_parameter(error: Any, names: Iterable[str]) -> str | None:
    """Return which of these parameters a rejected request was rejected for, or ``None``."""
    said = said_by(error)
    refusing = _REFUSING.search(said) is not None
    for name in names:
        if getattr(error, "param", None) == name or (refusing and re.search(rf"\b{re.escape(name)}\b", said)):
            return name
    return None
