"""What the headers of a response say of a provider's limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from pytest_ragmetrics.judges.transports.pace import KINDS, LONGEST_PAUSE, Allowance

# Those of OpenAI, which others have too, and of Anthropic.
_NAMES = ("x-ratelimit-{field}-{kind}", "anthropic-ratelimit-{kind}-{field}")
_FIELDS = ("remaining", "limit", "reset")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LENGTH = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smh]))+")
_PART = re.compile(r"([\d.]+)(ms|[smh])")


def allowances(headers: Mapping[str, str]) -> Iterator[Allowance]:
    """Yield what is left of each limit; not of those, as of a day, that take longer than a pause.

    >>> names = ("x-ratelimit-remaining-requests", "x-ratelimit-limit-requests", "x-ratelimit-reset-requests")
    >>> list(allowances(dict(zip(names, ("59", "60", "1m0.5s")))))
    [Allowance(kind='requests', left=59.0, most=60.0, seconds=60.5)]
    """
    for kind in KINDS:
        for name in _NAMES:
            left, most, reset = (headers.get(name.format(kind=kind, field=field), "") for field in _FIELDS)
            if left.isdecimal() and most.isdecimal() and (seconds := _seconds(reset, headers)) is not None:
                yield Allowance(kind=kind, left=float(left), most=float(most), seconds=seconds)


def pause_of(headers: Mapping[str, str]) -> float | None:
    """Return for how many seconds a provider wants to be asked nothing, ``None`` if it does not say.

    >>> pause_of({"retry-after-ms": "1500", "retry-after": "2"}), pause_of({"retry-after": "900"})
    (1.5, None)
    """
    found = _seconds(headers.get("retry-after-ms", "") + "ms", headers)
    return _seconds(headers.get("retry-after", ""), headers) if found is None else found


def _seconds(text: str, headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a number, a length of time such as 6m0s, or until a time; ``None`` if that is no pause."""
    try:
        if _LENGTH.fullmatch(text):
            seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
        elif "T" in text:
            # By the clock of the provider, if it says what it shows.
            now = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(timezone.utc)
            seconds = (datetime.fromisoformat(text.replace("Z", "+00:00")) - now).total_seconds()
        else:
            seconds = float(text)
    except (ValueError, TypeError):
        return None
    return max(seconds, 0.0) if seconds <= LONGEST_PAUSE else None
