"""The session: what a pytest run offers to the metrics in one process.

It is made from the settings when pytest starts, and builds the engine when a judge or embedder is first needed.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics.core import running
from pytest_ragmetrics.core.files import RUN_FOLDERS, affordable
from pytest_ragmetrics.plugin.budget import SessionBudget
from pytest_ragmetrics.plugin.cassette import RunCassette, selected_tests
from pytest_ragmetrics.plugin.markers import Markers, marked_judge, marked_votes
from pytest_ragmetrics.plugin.recorder import Recorder, skip
from pytest_ragmetrics.plugin.sentinels import Drift, SessionSentinels
from pytest_ragmetrics.plugin.settings import Settings
from pytest_ragmetrics.plugin.xdist import FromWorker, ToWorker, Workers

if TYPE_CHECKING:
    from pytest_ragmetrics.core.locks import LockFile
    from pytest_ragmetrics.evaluation.engine import Engine
    from pytest_ragmetrics.judges.batches.queue import Batching
    from pytest_ragmetrics.judges.context import Scoring
    from pytest_ragmetrics.judges.embedders.embedder import Embedder
    from pytest_ragmetrics.judges.judge import Judge
    from pytest_ragmetrics.judges.transports.values import Transport
    from pytest_ragmetrics.metrics.base import Metric
    from pytest_ragmetrics.report.earlier import PastRuns
    from pytest_ragmetrics.runs.records import Record
    from pytest_ragmetrics.runs.tables import Baseline
    from pytest_ragmetrics.runs.wording.served import Served


class PytestSession:
    """The session in one process of a pytest run."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.settings = settings
        self.recorder = Recorder(config)
        self.is_worker = hasattr(config, "workerinput")
        self._config = config
        self._hook = config.hook
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
        self.columns = settings.columns
        self.clusters = settings.clusters
        #: The tasks that each metric asked a judge.
        self._tasks: dict[str, set[str]] = {}
        #: How many replies to each metric name which model, by judge.
        self._served: dict[str, dict[str, Counter[str]]] = {}
        self._budget = SessionBudget(settings, workers=workers, file=received.budget)
        worker: str = config.workerinput["workerid"] if self.is_worker else ""  # type: ignore[attr-defined] # set by xdist
        self._sentinels = SessionSentinels(settings, run=self.run, worker=worker, workers=self._workers)
        self.cassette = RunCassette(config, settings, received.cassette)
        self.workers = Workers(self.to_worker, self.from_worker)
        self.markers = Markers()
        self._judge: str | None = None
        self._votes: int | None = None
        #: The metrics that scored, each with the spec of its judge, by name, rule and judge: kept for ``--rag-blame``.
        self._used: dict[tuple[str, str | None, str | None], tuple[Metric | None, str | None]] = {}
        #: The names in the module whose tests are collected, or whose test runs.
        self.module: Mapping[str, Any] = {}
        #: The sets of gates that a worker collected, as JSON builtins.
        self.gates: Sequence[Any] = ()
        #: What became of the mutants of this process, as JSON builtins.
        self.mutants: Any = None
        #: Whether the tests that run are those of mutants, which count nowhere.
        self.mutates = False
        #: What its gates can find, in a dry run.
        self.planned: Sequence[str] = ()

    # What the metrics ask for.

    @property
    def baseline(self) -> Path | Baseline | None:
        """The file with the scores of an earlier run, or the last runs of a history; before the first a test skips."""
        given = self.settings.baseline
        if not isinstance(given, str):
            return given
        if self.past_runs.baseline is None:
            pytest.skip(self.past_runs.lines[0])
        return self.past_runs.baseline

    @cached_property
    def past_runs(self) -> PastRuns:
        """The last runs of the history as they are before this run adds its own."""
        from pytest_ragmetrics.plugin.settings import last_runs
        from pytest_ragmetrics.report.earlier import past_runs

        folder, (last, branch) = self.settings.history, last_runs(str(self.settings.baseline))
        return past_runs(folder or Path(), last=last, branch=branch)

    def scored(self, scoring: Scoring) -> None:
        """Record a scoring in the running test."""
        if self._budget.forecast is not None:
            named = replace(scoring, metric=f"{scoring.metric} (mutants)") if self.mutates else scoring
            self._budget.forecast.scored(self.recorder.test, named)
            return
        if self.mutates:
            self.recorder.scored(scoring)
            return
        if scoring.exchanges:
            self._tasks.setdefault(scoring.metric, set()).update(exchange.task for exchange in scoring.exchanges)
        for (judge, model), count in scoring.served.items():
            self._served.setdefault(scoring.metric, {}).setdefault(judge, Counter())[model] += count
        self.recorder.scored(scoring)

    def used(self, metric: Metric, scoring: Scoring) -> None:
        """Note the metric that made a scoring, and who judges."""
        if self.settings.blame:
            from pytest_ragmetrics.judges import context

            key = scoring.metric, scoring.rule, getattr(scoring.outcome, "judge", None)
            self._used.setdefault(key, (metric, context.current().judge or self._judge or self.settings.judge))

    def way_of(self, record: Record) -> tuple[Metric | None, str | None]:
        """Return the metric that made a record in any process, and the spec of its judge, ``None`` if not known."""
        return self._ways.get((record.metric, record.rule, record.judge), (None, None))

    @cached_property
    def _ways(self) -> dict[Any, tuple[Metric | None, str | None]]:
        from pytest_ragmetrics.plugin.gates.gate import unpickled

        rows = (row for each in self.workers.ended() if each for row in each.metrics)
        return {**self._used, **{tuple(key): (unpickled(text), spec) for *key, text, spec in rows}}

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
        from pytest_ragmetrics.runs.origin import commit_of

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
        from pytest_ragmetrics.judges.transports.limiter import at_home
        from pytest_ragmetrics.judges.transports.pace import Pace

        # Import what reports a failure: once a process has all the files open that it may, no module can be read.
        for module in ("plugin.tracebacks", "plugin.carried", "runs.wording.failures"):
            import_module(f"pytest_ragmetrics.{module}")
        settings, hook = self.settings, self._hook
        # A process sends as fast as the others together, or its share of that.
        folder = self.shared_folder if self.is_worker else None
        pace_file = folder / "pace.sqlite" if folder is not None and folder.is_dir() else None
        same = "judge embedder cache cache_dir cache_url cache_url_mode cache_secret timeout retries prompts reasons"
        return Engine(
            **{name: getattr(settings, name) for name in same.split()},
            cassette=self.cassette.open(),
            salt=settings.cache_salt,
            concurrency=self.concurrency,
            width_at_home=at_home(settings.concurrency, self._workers),
            offer_judge=lambda spec: hook.pytest_ragmetrics_make_judge(config=self._config, spec=spec),
            offer_embedder=lambda spec: hook.pytest_ragmetrics_make_embedder(config=self._config, spec=spec),
            redact=self.recorder.redacted,
            run=self.run,
            asker=lambda: context.current().test or self.recorder.test,
            budget=self._budget.budget,
            pace=Pace(settings.rpm, settings.tpm, file=pace_file, workers=self._workers),
            forecast=self._budget.forecast,
            batching=self._batching,
            witness=None if self._sentinels.drawn is None else self._noted,
        )

    def _noted(self, *stored: Any) -> None:
        """Note a stored reply among which sentinels are drawn."""
        if not self.mutates and self._sentinels.drawn is not None:
            self._sentinels.drawn.note(*stored)

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
    def wait_state(self) -> str:
        """What the run waits for in words: how far batches are, or the pace of requests."""
        if not self._has_engine:
            return ""
        from pytest_ragmetrics.core import progress

        queue = self.engine.queue
        return progress.waiting if queue is None else queue.state

    def finish(self, session: pytest.Session, exit_status: int) -> list[str]:
        """Write the cassette at the end of the run, and return what the summary says of it and of the budget.

        A run whose cassette could not be written has not passed.
        """
        settings, rows = self.settings, self.workers.ended()
        records = settings.cassette is not None and not self.dry_run
        used = self._has_engine or any(row and row.used for row in rows)
        lines = self.cassette.save(self.engine.cache, exit_status, rows) if records and used else []
        if self.cassette.failed and exit_status == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        queue = self.engine.queue if self._has_engine else None
        batches = [] if queue is None else queue.summary(self.engine.cache.holds)
        lines += [*self._given_up(rows), *self._waited(rows), *self._shared([row.remote for row in rows if row])]
        return [*lines, *batches, *self._budget.notes(rows, self.planned)]

    def selection(self, session: pytest.Session, exit_status: int) -> tuple[str, str, dict[str, list[str]]]:
        """Return :func:`selected_tests` and the tasks that each metric asked a judge, once all workers have ended."""
        rows = self.workers.ended()
        tasks = {name: {*asked} for name, asked in self._tasks.items()}
        for name, asked in (item for row in rows if row for item in row.tasks.items()):
            tasks.setdefault(name, set()).update(asked)
        deselected = max(self.cassette.deselected, *(row.deselected for row in rows if row), 0)
        paths, partial = selected_tests(self._config, exit_status=exit_status, deselected=deselected)
        if not partial and (session.shouldfail or session.shouldstop or None in rows):
            partial = "the run stopped early"
        return paths, partial, {name: sorted(tasks[name]) for name in sorted(tasks)}

    @cached_property
    def drift(self) -> Drift:
        """What stored answers say of each judge, asked for again: once the tests that matter, or all workers, ended."""
        self._ask_again()
        return self._sentinels.found([row.sentinels for row in self.workers.ended() if row])

    def _ask_again(self) -> None:
        self._sentinels.ask(self.engine if self._has_engine else None, self._budget.forecast)

    @property
    def served(self) -> dict[str, Served]:
        """How many replies name which model, by metric and judge, once the workers have ended."""
        rows = [self._served, *(row.served for row in self.workers.ended() if row)]
        names = sorted({name for row in rows for name in row})
        if not names:
            return {}
        from pytest_ragmetrics.runs.wording.served import joined

        return {name: joined(row.get(name, {}) for row in rows) for name in names}

    # The hooks.

    def pytest_configure(self) -> None:
        """Make this the session that metrics see; raise ``pytest.UsageError`` for options that exclude each other."""
        if self.batched and any(self._config.getoption(name, None) for name in ("numprocesses", "tx")):
            msg = "--rag-batch: each worker would post its own batches, and all of them only wait: run without -n"
            raise pytest.UsageError(msg)
        if self.settings.batch is not None and self.settings.cache in ("refresh", "off"):
            msg = f"--rag-batch: replies are kept in the cache, which --rag-cache={self.settings.cache} does not read"
            raise pytest.UsageError(msg)
        if self.settings.batch is not None and self.settings.blame:
            raise pytest.UsageError("--rag-blame: what it asks follows from the scores: run it without --rag-batch")
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
        self._ask_again()
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

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Check what hooks register."""
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
        """Take the judge and votes that the markers of a test name."""
        self._judge = marked_judge(item)
        self._votes = marked_votes(item)
        self.module = vars(item.module) if isinstance(item, pytest.Function) else {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Forget the module of a test, once all of it has run."""
        ran = yield
        self.module = {}
        return ran

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Skip a test whose scores are placeholders, or not there yet."""
        report = yield
        self._budget.skip_scored(report)
        reason = self._waiting.get(report.nodeid)
        if reason is not None and report.when != "teardown" and (report.when == "call" or not report.passed):
            skip(report, reason)
        return report

    # What the processes of xdist send each other.

    def to_worker(self, spec: Any) -> ToWorker:
        """Return what a worker gets that ``spec`` places."""
        from pytest_ragmetrics.core.locks import folder_of, run_lock

        self.shared_folder = folder_of(self.run)
        if self._folder_lock is None:
            # While this process lives, no other run takes the folder for abandoned.
            with suppress(OSError):
                self._folder_lock = run_lock(self.shared_folder)
        budget = self._budget.budget
        return ToWorker(
            run=self.run,
            seed=self.seed,
            folder=str(self.shared_folder) if spec.popen else None,
            budget=None if budget is None else str(budget.file),
            cassette=self.cassette.entries_for(spec),
        )

    def from_worker(self) -> FromWorker:
        """Return what this process knows of the run that its reports do not say."""
        from pytest_ragmetrics.plugin.gates.gate import pickled

        cache = self.engine.cache if self._has_engine else None
        remote = self.engine.remote if self._has_engine else None
        budget, forecast = self._budget.budget, self._budget.forecast
        return FromWorker(
            tasks={name: sorted(tasks) for name, tasks in self._tasks.items()},
            served={name: {judge: dict(it) for judge, it in of.items()} for name, of in self._served.items()},
            sentinels=self._sentinels.to_row(),
            deselected=self.cassette.deselected,
            left_out=self.cassette.left_out,
            used=self.cassette.used(cache),
            spent=None if budget is None else budget.own_row(),
            forecast=None if forecast is None else forecast.to_row(),
            remote={} if remote is None else remote.final_counts(),
            attempts=self._attempts(),
            waits=self._waits(),
            gates=self.gates,
            mutants=self.mutants,
            metrics=[[*key, "" if it is None else pickled(it), spec] for key, (it, spec) in self._used.items()],
        )

    @property
    def _has_engine(self) -> bool:
        return "engine" in self.__dict__

    def _attempts(self) -> dict[str, int]:
        """Return how often this process sent a request, and gave one up after its time-out."""
        limiter = self.engine.limiter if self._has_engine else None
        return {} if limiter is None else {"sent": limiter.sent, "given up": limiter.given_up}

    def _waits(self) -> Mapping[str, float]:
        return dict(self.engine.limiter.pace.waits) if self._has_engine else {}

    def _waited(self, rows: Sequence[FromWorker | None]) -> list[str]:
        """Return lines on the waits; workers wait at the same time, and the longest counts."""
        waits = dict(self._waits())
        for reason, seconds in (item for row in rows if row for item in row.waits.items()):
            waits[reason] = max(seconds, waits.get(reason, 0.0))
        if not waits:
            return []
        from pytest_ragmetrics.runs.wording.figures import waited_lines

        return waited_lines(waits)

    def _given_up(self, rows: Sequence[FromWorker | None]) -> list[str]:
        found = sum((Counter(row.attempts) for row in rows if row), Counter(self._attempts()))
        if not found["given up"]:
            return []
        from pytest_ragmetrics.runs.wording.figures import counted

        counts = f"{counted(found['sent'], 'request')} sent, {found['given up']:,} given up after their time-out"
        return [f"{counts}: see --rag-concurrency and --rag-timeout"]

    def _shared(self, workers: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the line on the shared cache, once everything is written there."""
        remote = self.engine.remote if self._has_engine else None
        rows = [*(row for row in workers if row), *([] if remote is None else [remote.final_counts()])]
        if not rows:
            return []
        from pytest_ragmetrics.cache.remote import counts_line

        return counts_line(self.settings.cache_url or "", rows)


def _remove_abandoned() -> None:
    with suppress(OSError):
        # Few runs find any, and the rest need not load what removes them.
        if any(path.name.startswith(RUN_FOLDERS) for path in Path(tempfile.gettempdir()).iterdir()):
            from pytest_ragmetrics.core.locks import remove_abandoned

            remove_abandoned()
