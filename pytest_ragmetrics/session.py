"""The pytest session as the metrics see it: a light front that builds the engine when a judge is first needed."""

from __future__ import annotations

import copy
import uuid
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics.context import current
from pytest_ragmetrics.errors import JudgeNotConfiguredError
from pytest_ragmetrics.gate_plugin import GatePlugin
from pytest_ragmetrics.prefetch.dataset_tests import DatasetTests
from pytest_ragmetrics.reporting import Recorder
from pytest_ragmetrics.settings import judge_spec

if TYPE_CHECKING:
    from pluggy import HookCaller

    from pytest_ragmetrics.budget import Budget
    from pytest_ragmetrics.cache.cassette import Cassette, Saved
    from pytest_ragmetrics.cache.transport import CachedTransport
    from pytest_ragmetrics.context import Scoring
    from pytest_ragmetrics.dry_run import Forecast
    from pytest_ragmetrics.embedders.embedder import Embedder
    from pytest_ragmetrics.engine import Engine
    from pytest_ragmetrics.judges.judge import Judge
    from pytest_ragmetrics.metrics.base import Metric
    from pytest_ragmetrics.records import Record
    from pytest_ragmetrics.settings import Settings


def marked_judge(item: pytest.Item) -> str | None:
    """Return the spec of a test's ``rag_judge`` marker, if it has one; raise ``pytest.UsageError`` if it is none."""
    given = _given(item, "rag_judge")
    if given is None:
        return None
    if len(given) != 1 or not isinstance(given[0], str):
        problem = "it takes one spec"
    else:
        try:
            return judge_spec(given[0], item.config)
        except ValueError as error:
            problem = str(error)
    raise _wrong(item, "rag_judge", given, f'{problem}; write @pytest.mark.rag_judge("openai:MODEL")')


def marked_votes(item: pytest.Item) -> int | None:
    """Return the number of a test's ``rag_votes`` marker, if it has one; raise ``pytest.UsageError`` if it is none."""
    given = _given(item, "rag_votes")
    if given is None:
        return None
    if len(given) == 1 and type(given[0]) is int and given[0] >= 1:
        return given[0]
    raise _wrong(item, "rag_votes", given, "it takes one whole number from 1 on; write @pytest.mark.rag_votes(3)")


def _given(item: pytest.Item, name: str) -> tuple[object, ...] | None:
    marker = item.get_closest_marker(name)
    return None if marker is None else (*marker.args, *marker.kwargs.values())


def _wrong(item: pytest.Item, name: str, given: tuple[object, ...], problem: str) -> pytest.UsageError:
    return pytest.UsageError(f"{item.nodeid}: marker {name}({', '.join(map(repr, given))}): {problem}")


class SessionBudget:
    """The budget and the forecast of a process; ``workerinput`` is that of xdist, where this is one of its workers."""

    def __init__(self, settings: Settings, workerinput: Mapping[str, Any] | None) -> None:
        self._settings = settings
        self._workerinput = workerinput
        self._rows: list[Mapping[str, Any]] = []
        self._lost = 0

    @cached_property
    def budget(self) -> Budget | None:
        """What the run may ask for, shared by all its processes; a worker that cannot see the file has its part."""
        settings, worker = self._settings, self._workerinput
        limits = (settings.max_calls, settings.max_tokens, settings.max_cost)
        if settings.dry_run or all(limit is None for limit in limits):
            return None
        from pytest_ragmetrics.budget import budget_of

        if worker is None:
            return budget_of(*limits, file=None, workers=None)
        return budget_of(*limits, file=self._told_of.get("budget"), workers=worker.get("workercount", 1))

    @cached_property
    def forecast(self) -> Forecast | None:
        """What the run would ask for, if nothing is to be asked."""
        if not self._settings.dry_run:
            return None
        from pytest_ragmetrics.dry_run import Forecast

        return Forecast()

    def excuse(self, report: pytest.TestReport) -> None:
        """Skip a test that scored anything in a dry run, whatever came of it: its scores are none."""
        requests = None if self.forecast is None else self.forecast.requests_of(report.nodeid)
        if requests is None or (report.when != "call" and not report.failed):
            return
        report.outcome = "skipped"
        reason = f"Skipped: dry run: {requests} {'request' if requests == 1 else 'requests'}"
        report.longrepr = (report.location[0], (report.location[1] or 0) + 1, reason)
        if hasattr(report, "wasxfail"):
            del report.wasxfail

    def for_worker(self) -> dict[str, Any]:
        """Return what a worker must know, as JSON builtins."""
        return {"budget": None if self.budget is None else str(self.budget.file)}

    def to_row(self) -> dict[str, Any]:
        """Return what a worker tells at its end, as JSON builtins."""
        return {
            "spent": None if self.budget is None else self.budget.own_row(),
            "forecast": None if self.forecast is None else self.forecast.to_row(),
        }

    def add_worker(self, row: Mapping[str, Any] | None) -> None:
        """Take in what a worker told; ``None`` of one that crashed."""
        if row is None:
            self._lost += 1
        else:
            self._rows.append(row)

    def notes(self) -> list[str]:
        """Return what there is to say about the budget, or the forecast, at the end of a run."""
        if self.budget is not None:
            from pytest_ragmetrics.budget import budget_line

            return [budget_line(self.budget, [row["spent"] for row in self._rows if row["spent"]])]
        if self.forecast is None:
            return []
        for row in self._rows:
            self.forecast.add(row["forecast"])
        self._rows.clear()
        unwritten = [f"{path}: not written, this was a dry run" for path in self._settings.files().values()]
        return [*self.forecast.told(lost=self._lost), *unwritten]

    def close(self) -> None:
        """Close the budget, if there is one."""
        if self.budget is not None:
            self.budget.close()

    @property
    def _told_of(self) -> Mapping[str, Any]:
        return (self._workerinput or {}).get("ragmetrics_allowance") or {}


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

    def to_row(self, desk: CachedTransport | None) -> dict[str, Any]:
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

    def save(self, desk: CachedTransport, exit_status: int) -> list[str]:
        """Write the cassette with what all processes used, and return what there is to say about it."""
        from pytest_ragmetrics.cache.entry import CacheError
        from pytest_ragmetrics.cache.transport import Used

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


_HOOK = "pytest_ragmetrics_result"
#: An observer may stop the run, but its own failures and skips are not those of the test.
_NOT_ITS_BUSINESS = (Exception, pytest.fail.Exception, pytest.skip.Exception)


class Observers:
    """Calls the observers of results one by one; each that raises is warned of once."""

    def __init__(self) -> None:
        self._warned: set[object] = set()

    def show(self, item: pytest.Item, records: Sequence[Record]) -> None:
        """Show every record of a test to every observer that its conftest.py files and the plugins offer."""
        all_of_them = _plugins(getattr(item.config.hook, _HOOK))
        for observer in _plugins(getattr(item.ihook, _HOOK)):
            others = [plugin for plugin in all_of_them if plugin is not observer]
            for record in records:
                self._show(item, record, observer, others)

    def _show(self, item: pytest.Item, record: Record, observer: object, others: Sequence[object]) -> None:
        manager = item.config.pluginmanager
        try:
            # A copy, because what an observer does with it must not change the report.
            manager.subset_hook_caller(_HOOK, others)(item=item, record=copy.deepcopy(record))
        except pytest.exit.Exception:
            raise
        except _NOT_ITS_BUSINESS as error:
            if observer not in self._warned:
                self._warned.add(observer)
                _warn(item, f"{manager.get_name(observer)}: {_HOOK} raised {type(error).__name__}: {error}")


def _plugins(caller: HookCaller) -> list[object]:
    return [implementation.plugin for implementation in caller.get_hookimpls()]


def _warn(item: pytest.Item, text: str) -> None:
    """Record a warning as pytest does; warn() would raise where warnings are errors, in the middle of the run."""
    warning = warnings.WarningMessage(pytest.PytestWarning(text), pytest.PytestWarning, __file__, 0)
    item.config.hook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": warning, "nodeid": item.nodeid, "when": "runtest", "location": None}
    )


class PytestSession:
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
        self.allowance = SessionBudget(settings, getattr(config, "workerinput", None))
        self.cassette = RunCassette(config, settings)
        self.rows = DatasetTests(self, config)
        self.gates = GatePlugin(config)
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
        from pytest_ragmetrics.metrics.registry import registered_metrics

        return registered_metrics(registering)

    @property
    def baseline(self) -> Path | None:
        """The file with the scores of an earlier run."""
        return self.settings.baseline

    @property
    def desk(self) -> CachedTransport:
        """Where requests to a judge are handed in."""
        return self.engine.desk

    @property
    def embedding_desk(self) -> CachedTransport:
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
        """Close the engine, if one was needed, the budget and the folder that workers shared."""
        with ExitStack() as stack:
            # An error of one must not keep the others open.
            stack.callback(self.rows.close)
            stack.callback(self.allowance.close)
            if self.is_asking:
                self.engine.close()

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
