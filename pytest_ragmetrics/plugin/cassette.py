"""The cassette of a run in one process, and whether the run had all tests that use it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics.plugin.recorder import ATTRIBUTE
from pytest_ragmetrics.plugin.settings import Settings
from pytest_ragmetrics.plugin.xdist import FromWorker

if TYPE_CHECKING:
    from pytest_ragmetrics.cache.cassette import Cassette
    from pytest_ragmetrics.cache.transport import CachedTransport

#: Options that leave tests out without pytest_deselected being called.
NARROWING = ("lf", "ignore", "ignore_glob", "collectonly", "setuponly", "setupplan")
#: Options that leave tests out of a run which is otherwise the whole.
PARTS = {"keyword": "-k", "lf": "--lf", "stepwise": "--sw", "deselect": "--deselect", "collectonly": "--collect-only"}


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
    """The cassette in one process of a run, and the hooks that say whether the run had all tests that use it.

    ``sent`` are its entries in a worker that cannot read the file.
    """

    def __init__(self, config: pytest.Config, settings: Settings, sent: Sequence[Mapping[str, Any]] | None) -> None:
        self._config = config
        self._settings = settings
        self._sent = sent
        #: Whether what was recorded could not be written.
        self.failed = False
        #: How many tests of the project this process is known not to have run, and how many of them were deselected.
        self.left_out = 0
        self.deselected = 0

    def open(self) -> Path | Cassette | None:
        """Return the file, or what the controller sent of it."""
        file = self._settings.cassette
        if file is None or self._sent is None:
            return file
        from pytest_ragmetrics.cache.cassette import Cassette

        return Cassette.sent(file, self._sent)

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Note whether a test was skipped; one that failed as expected was not, unless it never began.

        Nor was a gate with nothing to compare with: it asks no judge.
        """
        began = report.when not in ("setup", "collect")
        decided = getattr(getattr(report, ATTRIBUTE, None), "gate", None) is not None
        self.left_out += report.skipped and not decided and not (began and hasattr(report, "wasxfail"))

    # A module may be skipped as well.
    pytest_collectreport = pytest_runtest_logreport

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note that this run leaves tests out."""
        self.left_out += len(items)
        self.deselected += len(items)

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
            self.failed = cache.mode != "replay"
            why = getattr(error, "strerror", None) or error
            return [f"{settings.cassette}: NOT written, {why}"] if self.failed else []
        lines = []
        if saved is not None:
            from pytest_ragmetrics.runs.wording.figures import counted  # not at start-up

            state = "written" if saved.written else "unchanged"
            counts = f"{counted(saved.entries, 'answer')}, {saved.added} added, {saved.dropped} dropped"
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
