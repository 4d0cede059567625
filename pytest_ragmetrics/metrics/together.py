"""Asking several things at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


async def together(answers: Iterable[Awaitable[A]]) -> list[A]:
    """Await all answers at the same time and return them in order.

    If some cannot be had, the first error is raised when all others are there: what is paid for is kept and counted.

    >>> import asyncio
    >>> async def twice(number: int) -> int:
    ...     return 2 * number
    >>> asyncio.run(together([twice(1), twice(2)]))
    [2, 4]
    """
    there: list[A] = []
    for outcome in await asyncio.gather(*answers, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
        there.append(outcome)
    return there


async def both(one: Awaitable[A], other: Awaitable[B]) -> tuple[A, B]:
    """Await two things of different kinds like :func:`together`."""
    first, second = await asyncio.gather(one, other, return_exceptions=True)
    if isinstance(first, BaseException):
        raise first
    if isinstance(second, BaseException):
        raise second
    return first, second
