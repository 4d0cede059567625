"""The sentinels of a session in one process: stored answers that are asked for again at the end of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_ragmetrics.plugin.settings import Settings

if TYPE_CHECKING:
    from pytest_ragmetrics.evaluation.dry_run import Forecast
    from pytest_ragmetrics.evaluation.engine import Engine
    from pytest_ragmetrics.evaluation.sentinels import Asked, Sentinels
    from pytest_ragmetrics.runs.records import SentinelRecord


class Drift(NamedTuple):
    """What the sentinels of a run say of each judge, with the warnings and the notes on it."""

    records: Mapping[str, SentinelRecord]
    warnings: Sequence[str]
    notes: Sequence[str]


class SessionSentinels:
    """The sentinels of one process; each of so many ``workers`` of xdist has its part of the whole number.

    ``run`` names the run: each draws others.
    """

    def __init__(self, settings: Settings, *, run: str, worker: str, workers: int) -> None:
        self._settings = settings
        self._run = run
        # xdist calls them gw0, gw1 and so on, and goes on counting where one crashed.
        self._place = int(re.sub(r"\D", "", worker) or 0) % workers
        self._workers = workers
        self._asked: Asked | None = None

    @property
    def _refusal(self) -> str:
        """Why nothing is asked again, "" where it is."""
        settings = self._settings
        if settings.batch is not None:
            return "answers of --rag-batch come too late"
        reasons = {"off": "nothing is stored", "replay": "nothing is asked", "refresh": "all is asked anew"}
        reason = reasons.get(settings.cache, "")
        return reason and f"with --rag-cache={settings.cache} {reason}"

    @cached_property
    def drawn(self) -> Sentinels | None:
        """What draws them, ``None`` where there is nothing to draw from; when refreshing, it notes who is asked."""
        wanted, place, workers = self._settings.sentinels, self._place, self._workers
        if not wanted or (self._refusal and self._settings.cache != "refresh"):
            return None
        from pytest_ragmetrics.evaluation.sentinels import Sentinels

        number = 0 if self._refusal else wanted * (place + 1) // workers - wanted * place // workers
        return Sentinels(number, self._run)

    def ask(self, engine: Engine | None, forecast: Forecast | None) -> None:
        """Ask those of this process, once; in a dry run, count them."""
        if self._asked is not None or engine is None or self.drawn is None:
            return
        from pytest_ragmetrics.core import loop
        from pytest_ragmetrics.evaluation.sentinels import Asked

        self._asked = Asked()
        if forecast is not None:
            forecast.asked_again(self.drawn.drawn)
        elif engine.limiter.is_open:
            self._asked = loop.run(self.drawn.ask(engine.cache.again))

    def to_row(self) -> Any:
        """Return what this process asked as JSON builtins, ``None`` if it is nothing."""
        from pytest_ragmetrics.core.codec import dump

        return None if self._asked is None else dump(self._asked)

    def found(self, rows: Sequence[Any]) -> Drift:
        """Return what those of this process and of the workers' ``rows`` say, together with earlier runs."""
        settings, of_workers = self._settings, [row for row in rows if row]
        if not settings.sentinels or settings.dry_run or (self._asked is None and not of_workers and not self._refusal):
            return Drift({}, [], [])
        from pytest_ragmetrics.core.codec import load
        from pytest_ragmetrics.evaluation.sentinels import Asked, failed_line, with_evidence
        from pytest_ragmetrics.judges.rendering import PromptBook
        from pytest_ragmetrics.report.history import past_sentinels

        asked = self._asked or Asked()
        for row in of_workers:
            asked.add(load(Asked, row))
        book = PromptBook(folder=settings.prompts, reasons=settings.reasons)
        past = None if settings.history is None else past_sentinels(settings.history, book)
        records, warnings, notes = with_evidence(asked.judges, past)
        notes += [failed_line(asked)] if asked.failed else []
        if self._refusal or not (notes or warnings):
            notes.append(f"sentinels: none asked, {self._refusal or 'no stored answer with a verdict was used'}")
        return Drift(records, warnings, notes)
