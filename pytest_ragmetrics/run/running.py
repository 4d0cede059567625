"""The pytest session as the metrics see it: a light front that builds the engine when a judge is first needed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics.errors import JudgeNotConfiguredError
from pytest_ragmetrics.gates.keeper import Keeper
from pytest_ragmetrics.report.recording import Recorder
from pytest_ragmetrics.run.allowance import Allowance
from pytest_ragmetrics.run.cassette import RunCassette
from pytest_ragmetrics.run.markers import marked_judge, marked_votes
from pytest_ragmetrics.run.observers import Observers
from pytest_ragmetrics.run.rows import Rows
from pytest_ragmetrics.session import current

if TYPE_CHECKING:
    from pytest_ragmetrics.cache.desk import CachingDesk
    from pytest_ragmetrics.embedders.embedder import Embedder
    from pytest_ragmetrics.engine import Engine
    from pytest_ragmetrics.judges.judge import Judge
    from pytest_ragmetrics.metrics.metric import Metric
    from pytest_ragmetrics.session import Scoring
    from pytest_ragmetrics.settings import Settings


class Running:
    """What a pytest run offers to the metrics, in the process it runs in; ``test`` is the one that is running."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.settings = settings
        self.recorder = Recorder()
        self._observers = Observers()
        #: Names the run, the same in the controller and all its workers.
        self.run: str = getattr(config, "workerinput", {}).get("ragmetrics") or uuid.uuid4().hex
        self._config = config
        self._hook = config.hook
        self._spec: str | None = None
        self._votes: int | None = None
        self.allowance = Allowance(settings, getattr(config, "workerinput", None))
        self.cassette = RunCassette(config, settings)
        self.rows = Rows(self, config)
        self.gates = Keeper(config)
        #: The workers that have not told yet what they used.
        self._workers: list[Any] = []

    def check(self, items: list[pytest.Item]) -> None:
        """Raise ``pytest.UsageError`` for a test whose marker cannot be used; a worker reports it and runs nothing."""
        try:
            self._check_metrics()
            self.rows.check(items)
            self.gates.check(items)
            for item in items:
                marked_judge(item)
                marked_votes(item)
        except pytest.UsageError as error:
            if not hasattr(self._config, "workerinput"):
                raise
            # Raised in a worker, it would end the run with an internal error of xdist that says nothing.
            items.clear()
            report = pytest.CollectReport(nodeid="", outcome="failed", longrepr=f"ERROR: {error}", result=[])
            self._hook.pytest_collectreport(report=report)

    def begin(self, item: pytest.Item) -> None:
        """Start one attempt at a test, with the judge its marker names."""
        # Asked anew each time: the conftest.py files of folders are loaded after the start.
        self.recorder.redact = self._redact if self._hook.pytest_ragmetrics_redact.get_hookimpls() else None
        self.recorder.begin(item.nodeid)
        self._spec = marked_judge(item)
        self._votes = marked_votes(item)

    def attach(self, report: pytest.TestReport) -> None:
        """Put the records of the running test on a report of it, and redact what the report says."""
        self.allowance.excuse(report)
        self.recorder.attach(report)
        if self.recorder.redact is not None:
            from pytest_ragmetrics.report.redaction import redact_report

            redact_report(report, self.recorder.redact)

    def show_observers(self, item: pytest.Item) -> None:
        """Show the records of a test that has run to the observers."""
        if self.recorder.test == item.nodeid:
            self._observers.show(item, self.recorder.records)

    def scored(self, scoring: Scoring) -> None:
        """Take note of a scoring."""
        if self.allowance.forecast is not None:
            self.allowance.forecast.scored(self.recorder.test, scoring)
            return
        self.recorder.scored(scoring)

    def judge(self, given: Judge | str | None = None) -> Judge:
        """Return the judge of a spec, else of the running test; one that is given is returned."""
        __tracebackhide__ = True
        try:
            return self.engine.judge(given or self._spec)
        except JudgeNotConfiguredError as error:
            # Where it was noticed says nothing that the message does not.
            raise error.with_traceback(None) from error.__cause__

    def judge_of(self, item: pytest.Item) -> str:
        """Return the spec of a test's judge."""
        return marked_judge(item) or self.settings.judge

    def votes_of(self, item: pytest.Item) -> int:
        """Return how many judgements make a score in a test."""
        return marked_votes(item) or self.settings.votes

    def embedder(self, given: Embedder | str | None = None) -> Embedder:
        """Return the embedder of a spec, else of the run; one that is given is returned."""
        __tracebackhide__ = True
        try:
            return self.engine.embedder(given)
        except JudgeNotConfiguredError as error:
            raise error.with_traceback(None) from error.__cause__

    @property
    def concurrency(self) -> int:
        """How many requests this process may have in flight: its share of what all workers may."""
        workers: int = getattr(self._config, "workerinput", {}).get("workercount", 1)
        return max(1, self.settings.concurrency // workers)

    @property
    def votes(self) -> int:
        """How many judgements make a score: as the marker of the running test says, else the settings."""
        return self._votes or self.settings.votes

    @property
    def dry_run(self) -> bool:
        """Whether requests are forecast and none is made."""
        return self.settings.dry_run

    @property
    def metrics(self) -> list[Metric | type[Metric]]:
        """The metrics that plugins and conftest.py files register; raises ``ValueError`` naming who returned others."""
        # Asked anew each time: the conftest.py files of folders are loaded after the start.
        registering = self._hook.pytest_ragmetrics_register_metrics.get_hookimpls()
        if not registering:
            return []
        from pytest_ragmetrics.metrics.registered import registered_metrics

        return registered_metrics(registering)

    @property
    def baseline(self) -> Path | None:
        """The file with the scores of an earlier run."""
        return self.settings.baseline

    @property
    def desk(self) -> CachingDesk:
        """Where requests to a judge are handed in."""
        return self.engine.desk

    @property
    def embedding_desk(self) -> CachingDesk:
        """Where texts to embed are handed in."""
        return self.engine.desk

    @cached_property
    def engine(self) -> Engine:
        """The engine of this process."""
        from pytest_ragmetrics.engine import Engine

        settings, hook = self.settings, self._hook
        return Engine(
            judge=settings.judge,
            embedder=settings.embedder,
            cache=settings.cache,
            cache_dir=settings.cache_dir,
            cassette=self.cassette.open(),
            salt=settings.cache_salt,
            concurrency=self.concurrency,
            timeout=settings.timeout,
            retries=settings.retries,
            prompts=settings.prompts,
            offer_judge=lambda spec: hook.pytest_ragmetrics_make_judge(config=self._config, spec=spec),
            offer_embedder=lambda spec: hook.pytest_ragmetrics_make_embedder(config=self._config, spec=spec),
            redact=self._redact,
            run=self.run,
            asker=self._asking,
            budget=self.allowance.budget,
            forecast=self.allowance.forecast,
        )

    @property
    def is_asking(self) -> bool:
        """Whether anything of the engine was needed in this process."""
        return "engine" in self.__dict__

    def close(self) -> None:
        """Close the engine, if one was needed."""
        if self.is_asking:
            self.engine.close()
        self.allowance.close()
        self.rows.close()

    def to_row(self) -> dict[str, Any]:
        """Return what a worker tells the controller at its end, as JSON builtins."""
        desk = self.engine.desk if self.is_asking else None
        return {
            "cassette": self.cassette.to_row(desk),
            "allowance": self.allowance.to_row(),
            "gates": self.gates.to_rows(),
        }

    def equip(self, node: Any) -> None:
        """Tell a worker which run it belongs to, and what it shares with the others or cannot read where it runs."""
        self._workers.append(node)
        node.workerinput["ragmetrics"] = self.run
        node.workerinput["ragmetrics_allowance"] = self.allowance.for_worker()
        self.rows.share(node)
        self.cassette.send(node)

    def add_worker(self, node: Any) -> None:
        """Take in what a worker told at its end, once; of one that crashed nobody knows what it used."""
        if node not in self._workers:
            return
        self._workers.remove(node)
        row: Mapping[str, Any] | None = getattr(node, "workeroutput", {}).get("ragmetrics")
        self.cassette.add_worker(row and row["cassette"])
        self.allowance.add_worker(row and row["allowance"])
        self.gates.add(row["gates"] if row else ())

    def add_silent_workers(self) -> None:
        """Take in what the workers told whose end nobody waited for, as after an interrupt."""
        for node in tuple(self._workers):
            self.add_worker(node)

    def save_cassette(self, exit_status: int) -> list[str]:
        """Write the cassette, if there is one and anything was asked, and return what there is to say about it."""
        settings = self.settings
        if settings.cassette is None or settings.cache == "replay" or self.dry_run:
            return []
        if not (self.is_asking or self.cassette.was_used):
            return []
        return self.cassette.save(self.engine.desk, exit_status)

    def _check_metrics(self) -> None:
        try:
            _ = self.metrics
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error

    def _asking(self) -> str | None:
        """Return the test that asks: the running one, or that of a row which is done ahead."""
        return getattr(current(), "test", None) or self.recorder.test

    def _redact(self, text: str) -> str:
        redacted = self._hook.pytest_ragmetrics_redact(text=text)
        return text if redacted is None else redacted
