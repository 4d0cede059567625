"""The session that samples are scored in: the running one, or one of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

from pytest_ragmetrics.cache.remote import check_cache_url
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.core.files import affordable
from pytest_ragmetrics.evaluation.dry_run import Forecast
from pytest_ragmetrics.evaluation.engine import Engine
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.transports.pace import Pace
from pytest_ragmetrics.metrics.parameters import check_count


def scoring_session(
    cache_dir: str | Path | None, concurrency: int, rpm: int | None = None, tpm: int | None = None
) -> nullcontext[context.Session] | OwnSession:
    """Return the running session, or one that is closed at the end of its ``with`` or ``async with`` block."""
    session, pace = context.current().session, pace_of(rpm, tpm)
    return OwnSession(cache_dir, concurrency, pace=pace) if session is None else nullcontext(session)


def pace_of(rpm: int | None, tpm: int | None) -> Pace:
    """Return the pace of at most so many requests and tokens a minute; raise ``ValueError`` for no whole number."""
    given = (("rpm", rpm), ("tpm", tpm))
    return Pace(*(None if limit is None else check_count(name, limit) for name, limit in given))


def shared_cache(folder: object, url: str | None = None, mode: str | None = None) -> dict[str, Any]:
    """Return an engine's options for the shared cache behind a folder, by default that of the environment.

    Raises ``RagMetricsError``.
    """
    names = ("RAGMETRICS_CACHE_URL", "RAGMETRICS_CACHE_URL_MODE", "RAGMETRICS_CACHE_SECRET")
    here, its_mode, secret = (os.environ.get(name, "").strip() for name in names)
    url, mode = url or here, mode or its_mode
    if folder is None or not url:
        return {}
    if mode not in ("", "read", "readwrite"):
        raise RagMetricsError(f"{names[1]}={mode}: write read or readwrite")
    try:
        return {"cache_url": check_cache_url(url), "cache_url_mode": mode or "readwrite", "cache_secret": secret}
    except ValueError as error:
        raise RagMetricsError(f"{names[0]}: {error}") from error


class OwnSession:
    """A session around one evaluation outside pytest; its scorings are recorded nowhere, or counted by a ``forecast``.

    ``options`` are further ones of :class:`~pytest_ragmetrics.evaluation.engine.Engine`.
    """

    votes = 1
    batched = False
    answering = 0
    metrics: Sequence[Any] = ()
    module: Mapping[str, Any] = {}
    columns = ""
    baseline = None
    clusters: Literal["passages", "named"] = "passages"

    def __init__(self, cache_dir: str | Path | None, concurrency: int, **options: Any) -> None:
        self.concurrency = concurrency = affordable(check_count("concurrency", concurrency))
        folder = None if cache_dir is None else Path(cache_dir)
        self.engine = Engine(cache_dir=folder, concurrency=concurrency, **options)
        self.transport, self.judge, self.embedder = self.engine.transport, self.engine.judge, self.engine.embedder
        self.dry_run = options.get("forecast") is not None
        self._forecast: Forecast | None = options.get("forecast")
        self.asks_once = self.engine.cache.mode != "off"

    def used(self, metric: object, scoring: context.Scoring) -> None:
        """Note nothing."""

    def scored(self, scoring: context.Scoring) -> None:
        """Record nothing; count what a dry run would take."""
        if self._forecast is not None:
            self._forecast.scored(None, scoring)

    def __enter__(self) -> context.Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.engine.close()

    async def __aenter__(self) -> context.Session:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await loop.arun(self.engine.aclose())
