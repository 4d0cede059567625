"""The errors this package raises on purpose, one class per cause, its warnings, and imports of what extras install."""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_ragmetrics.core.result import Usage


class RagMetricsError(Exception):
    """The base class of these errors; what looks like a key in a message is masked, ``usage`` is what was spent."""

    def __init__(self, *args: object, usage: Usage | None = None) -> None:
        from pytest_ragmetrics.core.credentials import masked  # not at start-up

        super().__init__(*(masked(each) if isinstance(each, str) else each for each in args))
        self.usage = usage


class UnscoredError(RagMetricsError):
    """There is no score: nothing to judge, or no usable answer of the judge; ``usage`` is what was spent."""


class JudgeError(RagMetricsError):
    """The provider failed, refused or cut a reply short; ``usage`` is what was spent, if known."""


class UnknownMetricError(KeyError):
    """A table or a row has no scores of a metric; it is shown as the sentence it is."""

    def __str__(self) -> str:
        return str(self.args[0])


class JudgeNotConfiguredError(RagMetricsError):
    """A metric needs a judge, and none is configured."""


class CacheMissError(RagMetricsError):
    """A replay has no recorded reply to a request."""


class BatchPendingError(RagMetricsError):
    """The reply is not there yet: its request waits for a batch."""


class BudgetExceededError(RagMetricsError):
    """The run's budget of calls, tokens or cost is spent."""


class DatasetError(RagMetricsError):
    """A data set cannot be read; the message has file, line and field where known."""

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, field: str | None = None
    ) -> None:
        self.file = file
        self.line = line
        self.field = field
        place = file or ""
        if line is not None:
            place = f"{place}:{line}" if place else f"line {line}"
        if field is not None:
            place = f"{place}: field {field!r}" if place else f"field {field!r}"
        super().__init__(f"{place}: {message}" if place else message)


# The name by which pytest and pickle show the errors that users import.
for _kind in (
    *(RagMetricsError, UnscoredError, JudgeError, JudgeNotConfiguredError),
    *(CacheMissError, BudgetExceededError, DatasetError),
):
    _kind.__module__ = "pytest_ragmetrics"


class CacheError(RagMetricsError):
    """A stored reply or a file of the cache cannot be read or trusted."""


class ArgumentError(RagMetricsError):
    """An argument of a command cannot be used; nothing was requested or written."""


@lru_cache(maxsize=256)
def warn_once(text: str) -> None:
    """Warn of something that makes a result less exact, once a text; where warnings are errors it goes unsaid."""
    with suppress(UserWarning):
        warnings.warn(text, stacklevel=2)


def optional(module: str, user: str, extra: str | None, *, error: type[RagMetricsError] = RagMetricsError) -> Any:
    """Return a module that this package or an extra of it installs; raise an error that says so where it is missing."""
    try:
        return import_module(module)
    except ImportError as missing:
        name, package = module.partition(".")[0], f"pytest-ragmetrics[{extra}]" if extra else "pytest-ragmetrics"
        raise error(f'{user} needs {name}: pip install "{package}"') from missing
