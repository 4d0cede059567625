"""The budget and the cassette of a session in one process, and what its processes send each other of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_ragmetrics.plugin.settings import Settings

if TYPE_CHECKING:
    from pytest_ragmetrics.cache.cassette import Cassette
    from pytest_ragmetrics.cache.transport import CachedTransport
    from pytest_ragmetrics.evaluation.dry_run import Forecast
    from pytest_ragmetrics.judges.transports.budget import Budget

#: The key of what processes of xdist send each other in ``workerinput`` and ``workeroutput``.
KEY = "ragmetrics"


@dataclass(frozen=True, kw_only=True, slots=True)
class ToWorker:
    """What the controller of xdist sends each worker; fields are JSON builtins.

    ``folder`` and the file ``budget`` are those that workers on this machine share, ``cassette`` are the entries for a
    worker that cannot read the file.
    """

    run: str = ""
    seed: str | None = None
    folder: str | None = None
    budget: str | None = None
    cassette: Sequence[Mapping[str, Any]] | None = None

    @classmethod
    def of(cls, config: pytest.Config) -> ToWorker:
        """Return what this process was sent, all defaults in one that is no worker."""
        return cls(**getattr(config, "workerinput", {}).get(KEY, {}))


@dataclass(frozen=True, kw_only=True, slots=True)
class FromWorker:
    """What a worker of xdist tells the controller at its end, beside its reports; fields are JSON builtins.

    ``tasks`` are those that each metric asked a judge, ``deselected`` and ``left_out`` count the tests that were not
    run. ``used`` is what it used of the cassette, ``spent`` of the budget, ``remote`` of the shared cache, ``forecast``
    what it would ask for. ``gates`` are the sets of gates that it collected.
    """

    tasks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    deselected: int = 0
    left_out: int = 0
    used: Mapping[str, Any] | None = None
    spent: Mapping[str, Any] | None = None
    forecast: Mapping[str, Any] | None = None
    remote: Mapping[str, Any] = field(default_factory=dict)
    attempts: Mapping[str, int] = field(default_factory=dict)
    gates: Sequence[Any] = ()

    @classmethod
    def of(cls, node: Any) -> FromWorker | None:
        """Return what a worker told, ``None`` for one that crashed."""
        sent = getattr(node, "workeroutput", {}).get(KEY)
        return None if sent is None else cls(**sent)


def skip(report: pytest.TestReport, reason: str) -> None:
    """Make a report that of a skipped test."""
    report.outcome = "skipped"
    report.longrepr = (report.location[0], (report.location[1] or 0) + 1, f"Skipped: {reason}")
    if hasattr(report, "wasxfail"):
        del report.wasxfail


class SessionBudget:
    """The budget and the forecast of one process.

    ``workers`` is the number of workers of xdist in a worker, else ``None``; ``file`` is the one that all processes
    count in, where a worker can see it.
    """

    def __init__(self, settings: Settings, *, workers: int | None, file: str | None) -> None:
        self._settings = settings
        self._workers = workers
        self._file = file

    @cached_property
    def budget(self) -> Budget | None:
        """What the run may ask for, shared by all its processes; a worker that cannot see the file has its part."""
        settings = self._settings
        limits = (settings.max_calls, settings.max_tokens, settings.max_cost)
        if settings.dry_run or all(limit is None for limit in limits):
            return None
        from pytest_ragmetrics.judges.transports.budget import budget_of

        return budget_of(*limits, file=self._file, workers=self._workers)

    @cached_property
    def forecast(self) -> Forecast | None:
        """What the run would ask for, in a dry run."""
        if not self._settings.dry_run:
            return None
        from pytest_ragmetrics.evaluation.dry_run import Forecast

        return Forecast()

    def skip_scored(self, report: pytest.TestReport) -> None:
        """Skip a test that scored anything in a dry run, passed or failed: its scores are placeholders."""
        requests = None if self.forecast is None else self.forecast.requests_of(report.nodeid)
        if requests is None or (report.when != "call" and not report.failed):
            return
        from pytest_ragmetrics.runs.wording.figures import counted

        skip(report, f"dry run: {counted(requests, 'request')}")

    def notes(self, workers: Sequence[FromWorker | None]) -> list[str]:
        """Return the line on the budget, or the forecast, at the end of a run."""
        rows = [row for row in workers if row is not None]
        if self.budget is not None:
            from pytest_ragmetrics.judges.transports.budget import budget_line

            return [budget_line(self.budget, [row.spent for row in rows if row.spent])]
        if self.forecast is None:
            return []
        for row in rows:
            self.forecast.add(row.forecast or {})
        paths = [*self._settings.files().values(), *filter(None, [self._settings.history])]
        unwritten = [f"{path}: not written, this was a dry run" for path in paths]
        return [*self.forecast.summary(lost=len(workers) - len(rows)), *unwritten]


#: Options that leave tests out without pytest_deselected being called.
NARROWING = ("lf", "ignore", "ignore_glob", "collectonly", "setuponly", "setupplan")


#: Options that leave tests out of a run which is otherwise the whole.
PARTS = {"keyword": "-k", "lf": "--lf", "stepwise": "--sw", "deselect": "--deselect", "collectonly": "--collect-only"}


class Selection(NamedTuple):
    """Which tests a run had: the ``paths`` and marks that it was given, and why it is ``partial`` ("" if it is not).

    ``tasks`` are those that each metric asked a judge.
    """

    paths: str
    partial: str
    tasks: Mapping[str, Sequence[str]]


def selected_tests(config: pytest.Config, *, exit_status: int, deselected: int) -> tuple[str, str]:
    """Return what chose the tests of a run, paths and marks, and why they are not all of these ("" if they are)."""
    given = config.args_source is pytest.Config.ArgsSource.ARGS
    marked = str(config.getoption("markexpr", "") or "")
    places = [
        Path(os.path.relpath(config.invocation_params.dir / arg, config.rootpath)).as_posix() for arg in config.args
    ]
    chosen = " ".join([*(sorted(places) if given else []), *([f"-m {marked!r}"] if marked else [])])
    why = [flag for name, flag in PARTS.items() if config.getoption(name, default=None)]
    if given and any("::" in place for place in places):
        why.append("single tests were named")
    if deselected and not why and not marked:
        why.append(f"{deselected} deselected")
    if exit_status in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR):
        why.append("the run stopped early")
    return chosen, ", ".join(why)


class RunCassette:
    """The cassette in one process of a run, and whether the run had all tests that use it.

    ``sent`` are its entries in a worker that cannot read the file.
    """

    def __init__(self, config: pytest.Config, settings: Settings, sent: Sequence[Mapping[str, Any]] | None) -> None:
        self._config = config
        self._settings = settings
        self._sent = sent
        #: How many tests of the project this process is known not to have run.
        self.left_out = 0

    def open(self) -> Path | Cassette | None:
        """Return the file, or what the controller sent of it."""
        file = self._settings.cassette
        if file is None or self._sent is None:
            return file
        from pytest_ragmetrics.cache.cassette import Cassette

        return Cassette.sent(file, self._sent)

    def note_skipped(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Note whether a test was skipped; one that failed as expected was not, unless it never began."""
        began = report.when not in ("setup", "collect")
        self.left_out += report.skipped and not (began and hasattr(report, "wasxfail"))

    def entries_for(self, spec: Any) -> list[dict[str, Any]] | None:
        """Return the entries for a worker that cannot read the file where it runs, else ``None``.

        Raises ``pytest.UsageError`` for a file that cannot be read.
        """
        file = self._settings.cassette
        if file is None or (spec.popen and not spec.chdir):
            return None
        from pytest_ragmetrics.cache.cassette import Cassette
        from pytest_ragmetrics.core.errors import CacheError

        try:
            return [entry.to_row() for entry in Cassette(file).entries.values()]
        except CacheError as error:
            raise pytest.UsageError(f"rag_cassette: {error}") from error

    def used(self, cache: CachedTransport | None) -> dict[str, Any] | None:
        """Return what a worker used, as JSON builtins, with the answers where the controller cannot read them."""
        return None if cache is None else (cache.used if self._sent is None else cache.used_here).to_row()

    def save(self, cache: CachedTransport, exit_status: int, workers: Sequence[FromWorker | None]) -> list[str]:
        """Write the cassette with what all processes used, unless it is replayed; return what to say of it."""
        from pytest_ragmetrics.cache.transport import Used
        from pytest_ragmetrics.core.errors import CacheError

        settings = self._settings
        complete = exit_status == pytest.ExitCode.OK and self.had_all_tests(workers)
        others = [Used.from_row(row.used) for row in workers if row is not None and row.used]
        try:
            saved = cache.save(complete=complete, keep=settings.cassette_keep, others=others)
            edited = cache.edited(others)
        except (CacheError, OSError) as error:
            return [f"{settings.cassette}: NOT written, {error}"] if cache.mode != "replay" else []
        lines = []
        if saved is not None:
            state = "written" if saved.written else "unchanged"
            counts = f"{saved.entries} answers, {saved.added} added, {saved.dropped} dropped"
            lines = [f"{settings.cassette}: {state}, {counts}", *map(str, saved.refused)]
        names = ", ".join(key[:8] for key in edited)
        return [*lines, f"{settings.cassette}: edited replies used: {len(edited):,} ({names})"] if edited else lines

    def had_all_tests(self, workers: Sequence[FromWorker | None] = ()) -> bool:
        """Say whether the run had all tests of the project: then an entry that it did not use is used by none.

        A worker that crashed may have used any entry.
        """
        config = self._config
        everywhere = config.args_source is not pytest.Config.ArgsSource.ARGS
        at_root = config.invocation_params.dir == config.rootpath
        narrowed = any(config.getoption(option, default=None) for option in NARROWING)
        left_out = self.left_out or any(row is None or row.left_out for row in workers)
        return everywhere and at_root and not narrowed and not left_out
