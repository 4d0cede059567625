"""The cassette of a run: read here or sent by the controller, and written at the end with what all processes used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_ragmetrics.cache.cassette import Cassette, Saved
    from pytest_ragmetrics.cache.desk import CachingDesk
    from pytest_ragmetrics.settings import Settings

# Options after which tests are missing that nobody is told of.
_NARROWING = ("lf", "ignore", "ignore_glob", "collectonly", "setuponly", "setupplan")

# What the controller hands to a worker that cannot read its files.
_SENT = "ragmetrics_cassette"


class RunCassette:
    """The cassette in one process of a run, and whether the run had all tests that use it."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._workerinput: Mapping[str, Any] = getattr(config, "workerinput", {})
        #: How many tests of the project this process did not run, as far as it knows of them.
        self.left_out = 0
        self._workers: list[Mapping[str, Any]] = []

    def open(self) -> Path | Cassette | None:
        """Return the cassette: where it cannot be read, what the controller sent of it."""
        file, sent = self._settings.cassette, self._workerinput.get(_SENT)
        if file is None or sent is None:
            return file
        from pytest_ragmetrics.cache.cassette import Cassette

        return Cassette.sent(file, sent)

    def ended(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Note whether a test was skipped; one that failed as expected was not, unless it never began."""
        began = report.when not in ("setup", "collect")
        self.left_out += report.skipped and not (began and hasattr(report, "wasxfail"))

    def send(self, node: Any) -> None:
        """Send the answers to a worker that cannot read them where it runs."""
        file, spec = self._settings.cassette, node.gateway.spec
        if file is not None and (not spec.popen or spec.chdir):
            node.workerinput[_SENT] = _sendable(file)

    def to_row(self, desk: CachingDesk | None) -> dict[str, Any]:
        """Return what a worker used, as JSON builtins, with the answers where the controller cannot read them."""
        used = None
        if desk is not None:
            used = (desk.used_here if _SENT in self._workerinput else desk.used).to_row()
        return {"used": used, "left_out": self.left_out}

    def add_worker(self, row: Mapping[str, Any] | None) -> None:
        """Take in what a worker told; ``None`` of one that crashed, and nobody knows what it used."""
        self._workers.append(row or {"used": None, "left_out": 1})

    @property
    def was_used(self) -> bool:
        """Whether a worker asked for anything."""
        return any(row["used"] for row in self._workers)

    def save(self, desk: CachingDesk, exit_status: int) -> list[str]:
        """Write the cassette with what all processes used, and return what there is to say about it."""
        from pytest_ragmetrics.cache.entry import CacheError
        from pytest_ragmetrics.cache.used import Used

        settings = self._settings
        complete = exit_status == pytest.ExitCode.OK and self._is_whole()
        others = [Used.from_row(row["used"]) for row in self._workers if row["used"]]
        try:
            saved = desk.save(complete=complete, keep=settings.cassette_keep, others=others)
        except (CacheError, OSError) as error:
            return [f"{settings.cassette}: NOT written, {error}"]
        return _told(settings.cassette, saved)

    def _is_whole(self) -> bool:
        """Tell whether the run had all tests: then what nothing used is used by nothing."""
        config = self._config
        everywhere = config.args_source is not pytest.Config.ArgsSource.ARGS
        here = config.invocation_params.dir == config.rootpath
        narrowed = any(config.getoption(option, default=None) for option in _NARROWING)
        left_out = self.left_out + sum(row["left_out"] for row in self._workers)
        return everywhere and here and not narrowed and not left_out


def _sendable(file: Path) -> list[dict[str, Any]]:
    """Return the entries of a cassette as JSON builtins; raise ``pytest.UsageError`` if it cannot be read."""
    from pytest_ragmetrics.cache.cassette import Cassette
    from pytest_ragmetrics.cache.entry import CacheError

    try:
        return [entry.to_row() for entry in Cassette(file).entries.values()]
    except CacheError as error:
        msg = f"rag_cassette: {error}"
        raise pytest.UsageError(msg) from error


def _told(file: Path | None, saved: Saved | None) -> list[str]:
    if saved is None:
        return []
    state = "written" if saved.written else "unchanged"
    counts = f"{saved.entries} answers, {saved.added} added, {saved.dropped} dropped"
    return [f"{file}: {state}, {counts}", *map(str, saved.refused)]
