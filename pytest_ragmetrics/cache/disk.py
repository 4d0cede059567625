"""The part of diskcache that turns rows into values, reduced to texts that stand in the database.

As shipped it unpickles any row whose mode says so, opens any file a row names, and deletes that file with the row.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from pytest_ragmetrics.cache.entry import CacheError

if TYPE_CHECKING:
    import diskcache

#: The only mode a row may have: the value is in the row, as it is.
RAW = 1


def problem_of(*, raw: object, mode: object, filename: object, key: object, value: object) -> str | None:
    """Say what makes a row unsafe to read; ``None`` for a row as this package writes them.

    >>> problem_of(raw=1, mode=4, filename=None, key="k", value=b"...")
    'it asks to be unpickled or read from a file'
    """
    if raw != 1 or mode != RAW or filename is not None:
        return "it asks to be unpickled or read from a file"
    if not isinstance(key, str) or not isinstance(value, str):
        return "it is not text"
    return None


def checked(*, raw: object, mode: object, filename: object, key: object, value: object) -> tuple[str, str]:
    """Return the key and the value of a row that is safe to read; raise :class:`CacheError` for any other."""
    problem = problem_of(raw=raw, mode=mode, filename=filename, key=key, value=value)
    if problem is not None:
        msg = f"a row of the cache was tampered with: {problem}; `ragmetrics cache verify` names it"
        raise CacheError(msg)
    return _text(key), _text(value)


@functools.cache
def text_disk() -> type[diskcache.Disk]:
    """Return the class to open a cache with."""
    import diskcache

    class TextDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no annotations
        """Stores texts under texts, in the database, and touches nothing else."""

        def put(self, key: object) -> tuple[str, bool]:
            return _text(key), True

        def get(self, key: object, raw: object) -> str:
            return checked(raw=raw, mode=RAW, filename=None, key=key, value="")[0]

        def store(self, value: object, read: object, key: object = None) -> tuple[int, int, None, str]:  # noqa: ARG002 - as diskcache calls it
            return 0, RAW, None, _text(value)

        def fetch(self, mode: object, filename: object, value: object, read: object) -> str:  # noqa: ARG002 - as diskcache calls it
            return checked(raw=1, mode=mode, filename=filename, key="", value=value)[1]

        def remove(self, file_path: object) -> None:
            """Delete no file, whatever a row names."""

    return TextDisk


@functools.cache
def text_cache() -> type[diskcache.Cache]:
    """Return the class of a cache on :func:`text_disk` that leaves no connection open when it cannot be opened."""
    import diskcache

    class TextCache(diskcache.Cache):  # type: ignore[misc]  # diskcache has no annotations
        """Gives its connection back before it raises."""

        def __init__(self, directory: str, **settings: object) -> None:
            try:
                super().__init__(directory, disk=text_disk(), **settings)
            except BaseException:
                self.close()
                raise

    return TextCache


def _text(value: object) -> str:
    if not isinstance(value, str):
        msg = f"the cache holds text, not {type(value).__name__}"
        raise TypeError(msg)
    return value
