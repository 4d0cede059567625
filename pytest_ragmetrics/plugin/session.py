"""The session: what a pytest run offers to the metrics in one process, and what its processes send each other.

It is made from the settings when pytest starts, and builds the engine when a judge or embedder is first needed. The
controller of xdist sends each worker a ``ToWorker``, and gets a ``FromWorker`` back at its end.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics.core import running
from pytest_ragmetrics.core.files import RUN_FOLDERS, affordable
from pytest_ragmetrics.plugin.reporting import (
    Recorder,
    as_json,
    from_json,
    load_reporting,
    redact_failure,
    redact_report,
)
from pytest_ragmetrics.plugin.resources import (
    KEY,
    FromWorker,
    RunCassette,
    Selection,
    SessionBudget,
    ToWorker,
    selected_tests,
    skip,
)
from pytest_ragmetrics.plugin.settings import Settings, judge_spec

if TYPE_CHECKING:
    from pytest_ragmetrics.core.locks import LockFile
    from pytest_ragmetrics.evaluation.engine import Engine
    from pytest_ragmetrics.judges.batches.queue import Batching
    from pytest_ragmetrics.judges.context import Scoring
    from pytest_ragmetrics.judges.embedders.embedder import Embedder
    from pytest_ragmetrics.judges.judge import Judge
    from pytest_ragmetrics.judges.transports.values import Transport
    from pytest_ragmetrics.metrics.base import Metric
    from pytest_ragmetrics.runs.records import Record

#: The markers that make tests when pytest collects a function; added later they have no effect.
_COLLECTED = frozenset(("rag_dataset", "rag_gate"))
#: What is wrong with the markers of a test, found after its module was collected.
MARKER_FAULT = pytest.StashKey[str]()


def function_of(item: pytest.Item) -> str:
    """Return the node id of the function that a test belongs to."""
    name = getattr(item, "originalname", None) or item.name
    return f"{item.parent.nodeid}::{name}" if item.parent is not None else name


def marked_judge(item: pytest.Item) -> str | None:
    """Return the spec of a test's ``rag_judge`` marker, or ``None``; raise ``pytest.UsageError`` for a wrong one."""
    given = _given(item, "rag_judge")
    if given is None:
        return None
    problem = "it takes one spec"
    if len(given) == 1 and isinstance(given[0], str):
        try:
            return judge_spec(given[0], item.config)
        except ValueError as error:
            problem = str(error)
    raise _wrong(item, "rag_judge", given, f'{problem}; write @pytest.mark.rag_judge("openai:MODEL")')


def marked_votes(item: pytest.Item) -> int | None:
    """Return the number of a test's ``rag_votes`` marker, or ``None``; raise ``pytest.UsageError`` for a wrong one."""
    given = _given(item, "rag_votes")
    if given is None:
        return None
    if len(given) == 1 and type(given[0]) is int and given[0] >= 1:
        return given[0]
    raise _wrong(item, "rag_votes", given, "it takes one whole number from 1 on; write @pytest.mark.rag_votes(3)")


def _fault(read: Callable[[pytest.Item], object], item: pytest.Item) -> str:
    try:
        read(item)
    except pytest.UsageError as error:
        return str(error)
    return ""


def _uncollected(item: pytest.Item) -> str:
    """Return why a marker that makes tests has made none of this one."""
    unittest = sys.modules.get("unittest")
    if unittest is not None and issubclass(getattr(item, "cls", None) or object, unittest.TestCase):
        return "it means nothing on a method of unittest.TestCase: write a function, or a method of another class"
    return "it is added too late, by a hook or pytest.param: write it above the function, its class or as pytestmark"


def _given(item: pytest.Item, name: str) -> tuple[object, ...] | None:
    marker = item.get_closest_marker(name)
    return None if marker is None else (*marker.args, *marker.kwargs.values())


def _wrong(item: pytest.Item, name: str, given: tuple[object, ...], problem: str) -> pytest.UsageError:
    return pytest.UsageError(f"{function_of(item)}: marker {name}({', '.join(map(repr, given))}): {problem}")


_HOOK = "pytest_ragmetrics_result"
# pytest.exit() in an observer ends the run; its failures and skips are not those of the test.
_HARMLESS = (Exception, pytest.fail.Exception, pytest.skip.Exception)


class Observers:
    """Calls the observers of results one by one; each that raises is warned of once."""

    def __init__(self) -> None:
        self._warned: set[object] = set()

    def show(self, item: pytest.Item, records: Sequence[Record]) -> None:
        """Show every record of a test to every observer that its conftest.py files and the plugins offer."""
        if not records:
            return
        from pytest_ragmetrics.core.codec import dump

        manager = item.config.pluginmanager
        plugins = [each.plugin for each in item.config.hook.pytest_ragmetrics_result.get_hookimpls()]
        for observer in [each.plugin for each in item.ihook.pytest_ragmetrics_result.get_hookimpls()]:
            show = manager.subset_hook_caller(_HOOK, [plugin for plugin in plugins if plugin is not observer])
            for record in records:
                problem = _problem_of(partial(show, item=item, record=dump(record)))
                if problem and observer not in self._warned:
                    self._warned.add(observer)
                    _warn(item, f"{manager.get_name(observer)}: {_HOOK} raised {problem}")


def _problem_of(show: Callable[[], object]) -> str | None:
    try:
        show()
    except pytest.exit.Exception:
        raise
    except _HARMLESS as error:
        from pytest_ragmetrics.core.credentials import masked

        return f"{type(error).__name__}: {masked(str(error))}"
    return None


def _warn(item: pytest.Item, text: str) -> None:
    """Record a warning as pytest does; warn() would raise where warnings are errors, in the middle of the run."""
    warning = warnings.WarningMessage(pytest.PytestWarning(text), pytest.PytestWarning, __file__, 0)
    item.config.hook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": warning, "nodeid": item.nodeid, "when": "runtest", "location": None}
    )


def _remove_abandoned() -> None:
    with suppress(OSError):
        # Few runs find any, and the rest need not load what removes them.
        if any(path.name.startswith(RUN_FOLDERS) for path in Path(tempfile.gettempdir()).iterdir()):
            from pytest_ragmetrics.core.locks import remove_abandoned

            remove_abandoned()


class PytestSession:
    """The session in one process of a pytest run, and the hooks by which it follows the tests."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.settings = settings
        self.recorder = Recorder()
        self.is_worker = hasattr(config, "workerinput")
        self._config = config
        self._hook = config.hook
        self._observers = Observers()
        received = ToWorker.of(config)
        workers: int | None = config.workerinput.get("workercount", 1) if self.is_worker else None  # type: ignore[attr-defined] # set by xdist
        #: Names the run, the same in the controller and all its workers.
        self.run: str = received.run or uuid.uuid4().hex
        self._seed: str | None = received.seed
        #: The folder that the workers on this machine share; the first that needs it makes it.
        self.shared_folder: Path | None = Path(received.folder) if received.folder else None
        self._folder_lock: LockFile | None = None
        self._workers = workers or 1
        #: Whether requests are forecast and none is made.
        self.dry_run = settings.dry_run
        #: Whether requests wait for others, and are answered in batches.
        self.batched = settings.batch is not None and not settings.dry_run and settings.cache == "auto"
        #: Whether what several ask alike is asked once.
        self.asks_once = settings.cache != "off"
        #: How many rows an application is answering.
        self.answering = 0
        #: What a test waits for, by its node id.
        self._waiting: dict[str, str] = {}
        #: The file with the scores of an earlier run.
        self.baseline = settings.baseline
        self.columns = settings.columns
        #: The tasks that each metric asked a judge, and how many tests were deselected.
        self._tasks: dict[str, set[str]] = {}
        self._deselected = 0
        self._budget = SessionBudget(settings, workers=workers, file=received.budget)
        self._cassette = RunCassette(config, settings, received.cassette)
        self._judge: str | None = None
        self._votes: int | None = None
        #: The names in the module whose tests are collected, or whose test runs.
        self.module: Mapping[str, Any] = {}
        self._collected: set[tuple[str, str]] = set()
        #: What is wrong with the markers of functions, by the node that collects them.
        self._faults: dict[str, list[str]] = {}
        self._nodes: list[Any] = []
        #: The sets of gates that a worker collected, as JSON builtins.
        self.gates: Sequence[Any] = ()
        #: What each worker used; ``None`` for one that crashed.
        self._worker_rows: list[FromWorker | None] = []

    # What the metrics ask for.

    def scored(self, scoring: Scoring) -> None:
        """Record a scoring in the running test."""
        if self._budget.forecast is not None:
            self._budget.forecast.scored(self.recorder.test, scoring)
            return
        if scoring.exchanges:
            self._tasks.setdefault(scoring.metric, set()).update(exchange.task for exchange in scoring.exchanges)
        self.recorder.scored(scoring)

    def judge(self, given: Judge | str | None = None) -> Judge:
        """Return the judge of a spec, else of the running test; one that is given is returned."""
        from pytest_ragmetrics.core.errors import JudgeNotConfiguredError

        __tracebackhide__ = True
        try:
            return self.engine.judge(given or self._judge)
        except JudgeNotConfiguredError as error:
            # The message has all there is to say; the frames behind it do not help.
            raise error.with_traceback(None) from error.__cause__

    def embedder(self, given: Embedder | str | None = None) -> Embedder:
        """Return the embedder of a spec, else of the run; one that is given is returned."""
        from pytest_ragmetrics.core.errors import JudgeNotConfiguredError

        __tracebackhide__ = True
        try:
            return self.engine.embedder(given)
        except JudgeNotConfiguredError as error:
            raise error.with_traceback(None) from error.__cause__

    @cached_property
    def concurrency(self) -> int:
        """How many requests this process may have in flight: its share of what all workers may."""
        return affordable(max(1, self.settings.concurrency // self._workers))

    @property
    def votes(self) -> int:
        """How many judgements make a score: as the marker of the running test says, else the settings."""
        return self._votes or self.settings.votes

    @cached_property
    def seed(self) -> str:
        """What draws the order of rows, the same in the controller and all its workers."""
        # A cassette has the answers of some rows: the next commit must not ask for others.
        fixed = self._seed or self.settings.seed or ("cassette" if self.settings.cassette is not None else "")
        if fixed:
            return fixed
        from pytest_ragmetrics.runs.revision import commit_of

        return commit_of(self._config.rootpath)

    @property
    def metrics(self) -> list[Metric | type[Metric]]:
        """The metrics that hooks register; raises ``ValueError`` naming a plugin that returns something else."""
        # Asked anew each time: the conftest.py files of folders are loaded after the start.
        registering = self._hook.pytest_ragmetrics_register_metrics.get_hookimpls()
        if not registering:
            return []
        from pytest_ragmetrics.metrics.registry import registered_metrics

        return registered_metrics(registering)

    @property
    def transport(self) -> Transport:
        """Where requests to judges and embedders are sent."""
        return self.engine.transport

    @cached_property
    def engine(self) -> Engine:
        """The engine of this process."""
        from pytest_ragmetrics.evaluation.engine import Engine
        from pytest_ragmetrics.judges import context
        from pytest_ragmetrics.judges.transports.values import at_home

        load_reporting()
        settings, hook = self.settings, self._hook
        return Engine(
            judge=settings.judge,
            embedder=settings.embedder,
            cache=settings.cache,
            cache_dir=settings.cache_dir,
            cassette=self._cassette.open(),
            cache_url=settings.cache_url,
            cache_url_mode=settings.cache_url_mode,
            cache_secret=settings.cache_secret,
            salt=settings.cache_salt,
            concurrency=self.concurrency,
            width_at_home=at_home(self.settings.concurrency, self._workers),
            timeout=settings.timeout,
            retries=settings.retries,
            prompts=settings.prompts,
            reasons=settings.reasons,
            offer_judge=lambda spec: hook.pytest_ragmetrics_make_judge(config=self._config, spec=spec),
            offer_embedder=lambda spec: hook.pytest_ragmetrics_make_embedder(config=self._config, spec=spec),
            redact=self.redact,
            run=self.run,
            asker=lambda: context.current().test or self.recorder.test,
            budget=self._budget.budget,
            forecast=self._budget.forecast,
            batching=self._batching,
        )

    @property
    def _batching(self) -> Batching | None:
        if self.settings.batch is None:
            return None
        from pytest_ragmetrics.judges import context
        from pytest_ragmetrics.judges.batches.queue import Batching

        return Batching(
            mode=self.settings.batch,
            fallback=self.settings.batch_fallback,
            is_busy=lambda: self.answering > 0,
            note=lambda reason: self.waits(context.current().test or self.recorder.test, reason),
        )

    # What the other parts of the plugin ask for.

    def waits(self, test: str | None, reason: str) -> None:
        """Note that a test waits for replies, so that it is skipped."""
        if test is not None:
            self._waiting.setdefault(test, reason)

    @property
    def batch_state(self) -> str:
        """How far the batches are that the run waits for, in words."""
        queue = self.engine.queue if self._has_engine else None
        return "" if queue is None else queue.state

    def note_collected(self, marker: str, function: str, *, fault: str | None = None) -> None:
        """Note that a marker was seen on a function when it was collected, and what is wrong with it."""
        self._collected.add((marker, function))
        if fault is not None:
            self._faults.setdefault(function.rpartition("::")[0], []).append(f"{function}: marker {marker}: {fault}")

    def finish(self, exit_status: int) -> list[str]:
        """Write the cassette at the end of the run, and return what the summary says of it and of the budget."""
        # After an interrupt xdist does not announce the end of its workers.
        for node in tuple(self._nodes):
            self.pytest_testnodedown(node)
        settings = self.settings
        records = settings.cassette is not None and not self.dry_run
        rows = self._worker_rows
        used = self._has_engine or any(row and row.used for row in rows)
        lines = self._cassette.save(self.engine.cache, exit_status, rows) if records and used else []
        queue = self.engine.queue if self._has_engine else None
        batches = [] if queue is None else queue.summary(self.engine.cache.holds)
        lines += [*self._given_up(rows), *self._shared([row.remote for row in rows if row])]
        return [*lines, *batches, *self._budget.notes(rows)]

    def selection(self, session: pytest.Session, exit_status: int) -> Selection:
        """Return which tests the run had, and what their metrics asked, once its workers have ended."""
        rows = [row for row in self._worker_rows if row]
        tasks = {name: {*asked} for name, asked in self._tasks.items()}
        for name, told in (item for row in rows for item in row.tasks.items()):
            tasks.setdefault(name, set()).update(told)
        deselected = max(self._deselected, *(row.deselected for row in rows), 0)
        paths, partial = selected_tests(self._config, exit_status=exit_status, deselected=deselected)
        if not partial and (session.shouldfail or session.shouldstop or None in self._worker_rows):
            partial = "the run stopped early"
        return Selection(paths=paths, partial=partial, tasks={name: sorted(tasks[name]) for name in sorted(tasks)})

    # The hooks.

    def pytest_configure(self) -> None:
        """Make this the session that metrics see; raise ``pytest.UsageError`` for options that exclude each other."""
        if self.batched and any(self._config.getoption(name, None) for name in ("numprocesses", "tx")):
            msg = "--rag-batch: each worker would post its own batches, and all of them only wait: run without -n"
            raise pytest.UsageError(msg)
        if self.settings.batch is not None and self.settings.cache in ("refresh", "off"):
            msg = f"--rag-batch: replies are kept in the cache, which --rag-cache={self.settings.cache} does not read"
            raise pytest.UsageError(msg)
        # There before a test forks, so that children count in it too.
        _ = self._budget.budget
        running.enter(self)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Post the requests that were held back, when all tests have run; one that is refused ends the run."""
        ran = yield
        queue = self.engine.queue if self._has_engine else None
        if queue is not None:
            from pytest_ragmetrics.core import loop
            from pytest_ragmetrics.core.errors import RagMetricsError

            try:
                loop.run(queue.post())
            except RagMetricsError as error:
                raise pytest.UsageError(f"--rag-batch: {error}") from error
        return ran

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Ask nothing more; what is in flight is stored when it is answered."""
        if self._has_engine:
            self.engine.limiter.is_open = False

    def pytest_unconfigure(self) -> None:
        """Close what the run opened."""
        running.leave(self)
        with ExitStack() as closing:
            # An error of one must not keep the others open.
            if not self.is_worker:
                closing.callback(_remove_abandoned)
            if self._folder_lock is not None:
                closing.callback(self._folder_lock.release)
            if self.shared_folder is not None and not self.is_worker:
                closing.callback(shutil.rmtree, self.shared_folder, ignore_errors=True)
            if self._budget.budget is not None:
                closing.callback(self._budget.budget.close)
            if self._has_engine:
                closing.callback(self.engine.close)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Fail the collection of a module or class in which a marker cannot be used."""
        report = yield
        faults = self._faults.pop(collector.nodeid, [])
        if report.passed:
            faults += [fault for item in report.result if isinstance(item, pytest.Item) for fault in self._check(item)]
        if report.passed and faults:
            report.outcome, report.longrepr, report.result = "failed", "\n".join(dict.fromkeys(faults)), []
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Note the tests to which hooks added a marker that cannot be used, and check what hooks register."""
        for item in items:
            if faults := self._check(item):
                item.stash[MARKER_FAULT] = "\n".join(faults)
        try:
            _ = self.metrics
        except ValueError as error:
            if not self.is_worker:
                raise pytest.UsageError(str(error)) from error
            # Raised in a worker, it would end the run with an internal error of xdist that says nothing.
            items.clear()
            report = pytest.CollectReport(nodeid="", outcome="failed", longrepr=f"ERROR: {error}", result=[])
            self._hook.pytest_collectreport(report=report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin an attempt at a test, with the judge its marker names."""
        # Asked anew each time: the conftest.py files of folders are loaded after the start.
        self.recorder.redact = self.redact if self.redacts() else None
        self.recorder.begin(item.nodeid)
        if MARKER_FAULT in item.stash:
            pytest.fail(item.stash[MARKER_FAULT], pytrace=False)
        self._judge = marked_judge(item)
        self._votes = marked_votes(item)
        self.module = vars(item.module) if isinstance(item, pytest.Function) else {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Show the records of a test to the observers, once all of it has run."""
        ran = yield
        self.module = {}
        if self.recorder.test == item.nodeid:
            self._observers.show(item, self.recorder.records)
        return ran

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the records of the running test on a report of it, and redact what the report says."""
        if call.excinfo is not None and not self._config.getoption("fulltrace", default=False):
            from pytest_ragmetrics.plugin.tracebacks import hide_own_frames  # not at start-up

            hide_own_frames(call.excinfo)
        report = yield
        if call.excinfo is not None and type(call.excinfo.value).__module__.startswith("pytest_ragmetrics"):
            # What a server or an application said may be in it.
            from pytest_ragmetrics.core.credentials import masked
            from pytest_ragmetrics.text.unicode import printable_lines

            redact_failure(report, lambda text: masked(printable_lines(text)))
        self._budget.skip_scored(report)
        reason = self._waiting.get(report.nodeid)
        if reason is not None and report.when != "teardown" and (report.when == "call" or not report.passed):
            skip(report, reason)
        self.recorder.attach(report)
        if self.recorder.redact is not None:
            redact_report(report, self.recorder.redact)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
        """Turn the records on a report into JSON builtins, which xdist can send."""
        data = yield
        return data and as_json(data)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_from_serializable(self, data: dict[str, Any]) -> Generator[None, object, object]:
        """Read the records on a report that a worker sent."""
        from_json(data)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that is skipped."""
        self._cassette.note_skipped(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that is skipped."""
        self._cassette.note_skipped(report)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note that this run leaves tests out."""
        self._cassette.left_out += len(items)
        self._deselected += len(items)

    def pytest_sessionfinish(self) -> None:
        """Tell the controller what this worker used."""
        if self.is_worker:
            self._config.workeroutput[KEY] = asdict(self._told())  # type: ignore[attr-defined] # set by xdist

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker which run it belongs to, what it shares with the others, and what it cannot read."""
        from pytest_ragmetrics.core.locks import folder_of, run_lock

        self._nodes.append(node)
        self.shared_folder = folder_of(self.run)
        if self._folder_lock is None:
            # While this process lives, no other run takes the folder for abandoned.
            with suppress(OSError):
                self._folder_lock = run_lock(self.shared_folder)
        spec, budget = node.gateway.spec, self._budget.budget
        told = ToWorker(
            run=self.run,
            seed=self.seed,
            folder=str(self.shared_folder) if spec.popen else None,
            budget=None if budget is None else str(budget.file),
            cassette=self._cassette.entries_for(spec),
        )
        node.workerinput[KEY] = asdict(told)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker used, once; one that crashed did not send it."""
        if node in self._nodes:
            self._nodes.remove(node)
            self._worker_rows.append(FromWorker.of(node))

    def _told(self) -> FromWorker:
        """Return what this process knows of the run that its reports do not say."""
        cache = self.engine.cache if self._has_engine else None
        remote = self.engine.remote if self._has_engine else None
        budget, forecast = self._budget.budget, self._budget.forecast
        return FromWorker(
            tasks={name: sorted(tasks) for name, tasks in self._tasks.items()},
            deselected=self._deselected,
            left_out=self._cassette.left_out,
            used=self._cassette.used(cache),
            spent=None if budget is None else budget.own_row(),
            forecast=None if forecast is None else forecast.to_row(),
            remote={} if remote is None else remote.final_counts(),
            attempts=self._attempts(),
            gates=self.gates,
        )

    @property
    def _has_engine(self) -> bool:
        return "engine" in self.__dict__

    def _attempts(self) -> dict[str, int]:
        """Return how often this process sent a request, and gave one up after its time-out."""
        limiter = self.engine.limiter if self._has_engine else None
        return {} if limiter is None else {"sent": limiter.sent, "given up": limiter.given_up}

    def _given_up(self, rows: Sequence[FromWorker | None]) -> list[str]:
        """Return the line on requests that were given up, in all processes."""
        found = sum((Counter(row.attempts) for row in rows if row), Counter(self._attempts()))
        if not found["given up"]:
            return []
        from pytest_ragmetrics.runs.wording.figures import counted

        said = f"{counted(found['sent'], 'request')} sent, {found['given up']:,} given up after their time-out"
        return [f"{said}: see --rag-concurrency and --rag-timeout"]

    def _shared(self, workers: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the line on the shared cache, once everything is written there."""
        remote = self.engine.remote if self._has_engine else None
        rows = [*(row for row in workers if row), *([] if remote is None else [remote.final_counts()])]
        if not rows:
            return []
        from pytest_ragmetrics.cache.remote import counts_line

        return counts_line(self.settings.cache_url or "", rows)

    def _check(self, item: pytest.Item) -> list[str]:
        """Return what is wrong with the markers of a test."""
        function, names = function_of(item), {marker.name for marker in item.iter_markers()}
        faults = [
            f"{function}: marker {name}: {_uncollected(item)}"
            for name in sorted(_COLLECTED & names)
            if (name, function) not in self._collected
        ]
        read = [read for name, read in (("rag_judge", marked_judge), ("rag_votes", marked_votes)) if name in names]
        return faults + [fault for fault in (_fault(each, item) for each in read) if fault]

    def redacts(self) -> bool:
        """Tell whether a hook redacts texts."""
        return bool(self._hook.pytest_ragmetrics_redact.get_hookimpls())

    def redact(self, text: str) -> str:
        """Return a text as the hook redacts it."""
        redacted = self._hook.pytest_ragmetrics_redact(text=text)
        return text if redacted is None else redacted
