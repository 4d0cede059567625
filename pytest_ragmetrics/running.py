"""The pytest session as the metrics see it: a light front that builds the engine when a judge is first needed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics.allowance import Allowance
from pytest_ragmetrics.gates.keeper import Keeper
from pytest_ragmetrics.observers import Observers
from pytest_ragmetrics.report.recording import Recorder
from pytest_ragmetrics.rows import Rows
from pytest_ragmetrics.session import current
from pytest_ragmetrics.settings import judge_spec

if TYPE_CHECKING:
    from pytest_ragmetrics.cache.cassette import Cassette, Saved
    from pytest_ragmetrics.cache.desk import CachingDesk
    from pytest_ragmetrics.embedders.embedder import Embedder
    from pytest_ragmetrics.engine import Engine
    from pytest_ragmetrics.judges.judge import Judge
    from pytest_ragmetrics.metrics.metric import Metric
    from pytest_ragmetrics.session import Scoring
    from pytest_ragmetrics.settings import Settings

# Options after which tests are missing that nobody is told of.
_NARROWING = ("lf", "ignore", "ignore_glob", "collectonly", "setuponly", "setupplan")

# What the controller hands to a worker that cannot read its files.
_CASSETTE = "ragmetrics_cassette"


class Running:
    """What a pytest run offers to the metrics, in the process it runs in; ``test`` is the one that is running."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.settings = settings
        self.recorder = Recorder()
        self._observers = Observers()
        #: How many tests of the project this process did not run, as far as it knows of them.
        self.left_out = 0
        #: Names the run, the same in the controller and all its workers.
        self.run: str = getattr(config, "workerinput", {}).get("ragmetrics") or uuid.uuid4().hex
        self._config = config
        self._hook = config.hook
        self._spec: str | None = None
        self._votes: int | None = None
        self.allowance = Allowance(settings, getattr(config, "workerinput", None))
        self._workers: list[Mapping[str, Any]] = []
        self.rows = Rows(self, config)
        self.gates = Keeper(config)

    def check(self, items: list[pytest.Item]) -> None:
        """Raise ``pytest.UsageError`` for a test whose marker cannot be used; a worker reports it and runs nothing."""
        try:
            self._check_metrics()
            self.rows.check()
            self.gates.check()
            for item in items:
                self._marked(item)
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
        self._spec = self._marked(item)
        self._votes = marked_votes(item)

    def attach(self, report: pytest.TestReport) -> None:
        """Put the records of the running test on a report of it, and redact what the report says."""
        self.allowance.excuse(report)
        self.recorder.attach(report)
        redact = self.recorder.redact
        if redact is None:
            return
        report.sections[:] = [(title, redact(text)) for title, text in report.sections]
        text = report.longreprtext
        if not isinstance(report.longrepr, tuple) and redact(text) != text:
            report.longrepr = redact(text)

    def show_observers(self, item: pytest.Item) -> None:
        """Show the records of a test that has run to the observers."""
        if self.recorder.test == item.nodeid:
            self._observers.show(item, self.recorder.records)

    def ended(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Note whether a test was skipped; one that failed as expected was not, unless it never began."""
        began = report.when not in ("setup", "collect")
        self.left_out += report.skipped and not (began and hasattr(report, "wasxfail"))

    def scored(self, scoring: Scoring) -> None:
        """Take note of a scoring."""
        if self.allowance.forecast is not None:
            self.allowance.forecast.scored(self.recorder.test, scoring)
            return
        self.recorder.scored(scoring)

    def judge(self, given: Judge | str | None = None) -> Judge:
        """Return the judge of a spec, else of the running test; one that is given is returned."""
        return self.engine.judge(given or self._spec)

    def judge_of(self, item: pytest.Item) -> str:
        """Return the spec of a test's judge."""
        return self._marked(item) or self.settings.judge

    def votes_of(self, item: pytest.Item) -> int:
        """Return how many judgements make a score in a test."""
        return marked_votes(item) or self.settings.votes

    def embedder(self, given: Embedder | str | None = None) -> Embedder:
        """Return the embedder of a spec, else of the run; one that is given is returned."""
        return self.engine.embedder(given)

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
            cassette=self._cassette(),
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
        allowance, gates = self.allowance.to_row(), self.gates.to_rows()
        return {"used": self._used(), "left_out": self.left_out, "allowance": allowance, "gates": gates}

    def equip(self, node: Any) -> None:
        """Tell a worker which run it belongs to, and what it shares with the others or cannot read where it runs."""
        node.workerinput["ragmetrics"] = self.run
        node.workerinput["ragmetrics_allowance"] = self.allowance.for_worker()
        self.rows.share(node)
        file, spec = self.settings.cassette, node.gateway.spec
        if file is not None and (not spec.popen or spec.chdir):
            node.workerinput[_CASSETTE] = _sendable(file)

    def add_worker(self, row: Mapping[str, Any] | None) -> None:
        """Take in what a worker told; ``None`` of one that crashed, and nobody knows what it used."""
        self._workers.append(row or {"used": None, "left_out": 1})
        self.allowance.add_worker(row and row["allowance"])
        self.gates.add(row["gates"] if row else ())

    def save_cassette(self, exit_status: int) -> list[str]:
        """Write the cassette, if there is one and anything was asked, and return what there is to say about it."""
        from pytest_ragmetrics.cache.entry import CacheError
        from pytest_ragmetrics.cache.used import Used

        others = [Used.from_row(row["used"]) for row in self._workers if row["used"]]
        file = self.settings.cassette
        if file is None or self.settings.cache == "replay" or self.dry_run or not (self.is_asking or others):
            return []
        complete = exit_status == pytest.ExitCode.OK and self._is_whole()
        try:
            saved = self.engine.desk.save(complete=complete, keep=self.settings.cassette_keep, others=others)
        except (CacheError, OSError) as error:
            return [f"{file}: NOT written, {error}"]
        return _told(file, saved)

    def _is_whole(self) -> bool:
        """Tell whether the run had all tests: then what nothing used is used by nothing."""
        config = self._config
        everywhere = config.args_source is not pytest.Config.ArgsSource.ARGS
        here = config.invocation_params.dir == config.rootpath
        narrowed = any(config.getoption(option, default=None) for option in _NARROWING)
        left_out = self.left_out + sum(row["left_out"] for row in self._workers)
        return everywhere and here and not narrowed and not left_out

    def _check_metrics(self) -> None:
        try:
            _ = self.metrics
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error

    def _marked(self, item: pytest.Item) -> str | None:
        """Return the spec of a test's ``rag_judge`` marker, if it has one."""
        marker = item.get_closest_marker("rag_judge")
        if marker is None:
            return None
        given = (*marker.args, *marker.kwargs.values())
        if len(given) != 1 or not isinstance(given[0], str):
            problem = "it takes one spec"
        else:
            try:
                return judge_spec(given[0], self._config)
            except ValueError as error:
                problem = str(error)
        shown = ", ".join(map(repr, given))
        msg = f'{item.nodeid}: marker rag_judge({shown}): {problem}; write @pytest.mark.rag_judge("openai:MODEL")'
        raise pytest.UsageError(msg)

    def _cassette(self) -> Path | Cassette | None:
        """Return the cassette: where it cannot be read, what the controller sent of it."""
        file, sent = self.settings.cassette, getattr(self._config, "workerinput", {}).get(_CASSETTE)
        if file is None or sent is None:
            return file
        from pytest_ragmetrics.cache.cassette import Cassette

        return Cassette.sent(file, sent)

    def _used(self) -> dict[str, Any] | None:
        """Return what this worker used, as JSON builtins, with the answers where the controller cannot read them."""
        if not self.is_asking:
            return None
        desk = self.engine.desk
        is_remote = _CASSETTE in getattr(self._config, "workerinput", {})
        return (desk.used_here if is_remote else desk.used).to_row()

    def _asking(self) -> str | None:
        """Return the test that asks: the running one, or that of a row which is done ahead."""
        return getattr(current(), "test", None) or self.recorder.test

    def _redact(self, text: str) -> str:
        redacted = self._hook.pytest_ragmetrics_redact(text=text)
        return text if redacted is None else redacted


def _sendable(file: Path) -> list[dict[str, Any]]:
    """Return the entries of a cassette as JSON builtins; raise ``pytest.UsageError`` if it cannot be read."""
    from pytest_ragmetrics.cache.cassette import Cassette
    from pytest_ragmetrics.cache.entry import CacheError

    try:
        return [entry.to_row() for entry in Cassette(file).entries.values()]
    except CacheError as error:
        msg = f"rag_cassette: {error}"
        raise pytest.UsageError(msg) from error


def marked_votes(item: pytest.Item) -> int | None:
    """Return the number of a test's ``rag_votes`` marker, if it has one; raise ``pytest.UsageError`` if it is none."""
    marker = item.get_closest_marker("rag_votes")
    if marker is None:
        return None
    given = (*marker.args, *marker.kwargs.values())
    if len(given) == 1 and type(given[0]) is int and given[0] >= 1:
        return given[0]
    shown = ", ".join(map(repr, given))
    wanted = "it takes one whole number from 1 on; write @pytest.mark.rag_votes(3)"
    msg = f"{item.nodeid}: marker rag_votes({shown}): {wanted}"
    raise pytest.UsageError(msg)


def _told(file: Path, saved: Saved | None) -> list[str]:
    if saved is None:
        return []
    state = "written" if saved.written else "unchanged"
    counts = f"{saved.entries} answers, {saved.added} added, {saved.dropped} dropped"
    return [f"{file}: {state}, {counts}", *map(str, saved.refused)]
