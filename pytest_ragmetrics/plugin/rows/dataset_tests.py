"""The tests of data sets: one per row, whose row is answered and scored ahead of it.

Rows come from ``datasets``, scores from the :class:`Prefetcher`; they go to the fixtures ``rag_sample``, ``rag_scores``
and ``rag_evaluate``, and to the session as scorings of the test of their row.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_ragmetrics.core.errors import (
    BatchPendingError,
    DatasetError,
    RagMetricsError,
    UnknownMetricError,
    UnscoredError,
)
from pytest_ragmetrics.core.locks import remove_abandoned
from pytest_ragmetrics.core.other_tools import class_of_theirs, written_instead
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import ContextsFrom, Sample, written_for
from pytest_ragmetrics.datasets import DatasetRow, read_dataset
from pytest_ragmetrics.evaluation.assert_sample import raise_shortfall
from pytest_ragmetrics.evaluation.runner import BoundedMetric, Done, Score, bounded_metrics, metrics_of, rows_of
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.plugin.markers import MARKER_FAULT, function_of, marked_judge, marked_votes
from pytest_ragmetrics.plugin.recorder import carried, skip
from pytest_ragmetrics.plugin.rows.drawn import DrawnRows
from pytest_ragmetrics.plugin.rows.jobs import RowJob, SparedError
from pytest_ragmetrics.plugin.rows.prefetcher import Prefetcher
from pytest_ragmetrics.plugin.rows.scripts import rows_with_answers, rows_with_scripts, with_stand_ins
from pytest_ragmetrics.plugin.rows.sharing import SharedResults, kind_and_message
from pytest_ragmetrics.plugin.session import PytestSession
from pytest_ragmetrics.runs.wording.failures import explain_row, explain_sample

if TYPE_CHECKING:
    from pytest_ragmetrics.evaluation.table import Evaluation
    from pytest_ragmetrics.plugin.gates.gate import GatedSet
    from pytest_ragmetrics.plugin.rows.jobs import Respond


class Scores(Mapping[str, MetricResult]):
    """The results of one row by metric.

    A metric is looked up by any of its names. One that is unscored raises the reason when it is looked up, and fails
    the test in the end if it is not; raises ``KeyError`` naming what there is for a metric that was not asked for.

    >>> Scores({"faithfulness": MetricResult(0.5, metric="faithfulness")})["Faithfulness"].value
    0.5
    """

    def __init__(self, outcomes: Mapping[str, MetricResult | Exception]) -> None:
        self._outcomes = dict(outcomes)

    def __getitem__(self, metric: str) -> MetricResult:
        __tracebackhide__ = True
        outcome = self._outcomes.get(self._name(metric))
        if outcome is None:
            raise UnknownMetricError(self._unscored(metric))
        if isinstance(outcome, Exception):
            raise outcome.with_traceback(None)
        return outcome

    def __contains__(self, metric: object) -> bool:
        return isinstance(metric, str) and self._name(metric) in self._outcomes

    def __iter__(self) -> Iterator[str]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._outcomes!r})"

    def _unscored(self, metric: str) -> str:
        there = f"there are {', '.join(self._outcomes)}" if self._outcomes else "the marker names no metric"
        try:
            metric_named(metric)
        except ValueError as error:
            near = get_close_matches(metric, self._outcomes, 1)
            right = f"did you mean {near[0]!r}?" if near else str(error)
        else:
            right = f"write @pytest.mark.rag_dataset(..., metrics=[{metric!r}])"
        return f"{metric!r} was not scored: {there}; {right}"

    def _name(self, metric: str) -> str:
        """Return the name in results of a metric given by any of its names; an unknown one stays as it is."""
        if metric not in self._outcomes:
            with suppress(ValueError):
                return metric_named(metric).name
        return metric


Source = str | os.PathLike[str] | Iterable[Sample | Mapping[str, Any]]


class Evaluate:
    """``rag_evaluate(source, metrics, limit=None, where=None, columns=None, **options)``: score a data set as a table.

    Paths start at the folder of the test. ``options`` are those of :func:`~pytest_ragmetrics.evaluate`, which says what
    is raised; ``DatasetError`` for a file that cannot be read. A broken row has no score of any metric.
    """

    def __init__(self, base: Path) -> None:
        self._base = base

    def __call__(
        self,
        source: Source,
        metrics: Iterable[Metric | str] | Metric,
        *,
        limit: int | None = None,
        where: Any = None,
        columns: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Evaluation:
        """Score all rows by all metrics, many at a time."""
        from pytest_ragmetrics.evaluation.evaluate import chosen_columns, evaluate

        __tracebackhide__ = True
        rows: Any = read_dataset(source, base=self._base, limit=limit, where=where, columns=chosen_columns(columns))
        return evaluate(rows, metrics, **options)


FIXTURE = "rag_sample"
_EXAMPLE = '@pytest.mark.rag_dataset("golden.jsonl", metrics=["faithfulness"])'
_KEYWORDS = {"source", "metrics", "limit", "where", "columns", "turns", "contexts_from", "answers"}
_BOUNDS = 'metrics={"faithfulness": 0.8}'


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetCase:
    """One row of a data set, as the test of this row gets it; ``once``: it has a response where others get several."""

    row: DatasetRow
    metrics: tuple[BoundedMetric, ...]
    script: tuple[Sample, ...] = ()
    contexts_from: ContextsFrom = None
    once: bool = False


def case_of(item: pytest.Item) -> DatasetCase | None:
    """Return the row that a test is of, ``None`` also for a broken one."""
    case = getattr(getattr(item, "callspec", None), "params", {}).get(FIXTURE)
    return case if isinstance(case, DatasetCase) and case.row.sample is not None else None


class Datasets:
    """The data sets that markers name, each read once."""

    def __init__(self, session: PytestSession) -> None:
        self._session = session
        self._read: dict[object, tuple[DatasetRow, ...]] = {}

    def parametrize(self, metafunc: pytest.Metafunc, marker: pytest.Mark) -> None:
        """Make one test per row of the data set that a marker names."""
        definition = metafunc.definition
        self._session.module = vars(metafunc.module)
        try:
            source, metrics, options, in_turns, answers = _arguments(*marker.args, **marker.kwargs)
            rows = self._rows(source, definition.path.parent, **options)
            whole = any(each.metric.of_conversation for each in metrics)
            # One by one, because a script belongs to its row.
            is_answered = _is_answered(definition)
            found = rows_with_scripts(rows, whole=whole, answers_logs=is_answered, **in_turns)
            wanted = ((row, script) for row, script in found if any(rows_of([row], metrics)))
            answers = answers or (self._session.settings.answers if is_answered else 1)
            scripted = tuple(rows_with_answers(wanted, answers))
            _check_function(metafunc)
        except (ValueError, TypeError, DatasetError) as error:
            self._session.markers.note_collected("rag_dataset", definition.nodeid, fault=str(error))
            return
        finally:
            self._session.module = {}
        self._session.markers.note_collected("rag_dataset", definition.nodeid)
        cases = [
            DatasetCase(
                row=row,
                metrics=tuple(metrics_of(row.sample or Sample(), metrics)),
                script=script,
                contexts_from=in_turns["contexts_from"],
                once=answers > 1 and row.sample is not None and row.sample.response is not None,
            )
            for row, script in scripted
        ]
        metafunc.parametrize(FIXTURE, [pytest.param(case, id=case.row.id) for case in cases], indirect=True)

    def _rows(self, source: Any, base: Path, **options: Any) -> tuple[DatasetRow, ...]:
        if not isinstance(source, (str, os.PathLike)):
            return read_dataset(source, base=base, **options)
        # Two predicates of the same text are two.
        known = (base / source, options["limit"], id(options["where"]), repr(options["columns"]))
        if known not in self._read:
            self._read[known] = read_dataset(source, base=base, **options)
        return self._read[known]


def _is_answered(definition: pytest.Function) -> bool:
    """Tell whether a test has a ``rag_respond`` beside that of this plugin, which answers nothing."""
    # There is no public way to ask for a fixture while tests are collected.
    fixtures = definition.session._fixturemanager.getfixturedefs("rag_respond", definition)  # noqa: SLF001
    return len(fixtures or ()) > 1


def _check_function(metafunc: pytest.Metafunc) -> None:
    definition = metafunc.definition
    if [mark.name for mark in definition.own_markers].count("rag_dataset") > 1:
        raise ValueError("a test is made of one data set; put the rows into one, or write a test for each")
    if FIXTURE not in metafunc.fixturenames:
        raise ValueError(f"the test takes no row; write def {definition.name}(rag_sample, rag_scores)")


def _arguments(
    *given: Any, **named: Any
) -> tuple[Any, tuple[BoundedMetric, ...], dict[str, Any], dict[str, Any], int | None]:
    """Return source, metrics, how to read the source and its turns, and how many answers a row gets.

    Raises ``ValueError`` with what to write.
    """
    from pytest_ragmetrics.evaluation.evaluate import chosen_columns

    unknown = sorted(named.keys() - _KEYWORDS)
    sources = [*given, *(named[name] for name in ("source",) if name in named)]
    if unknown or len(sources) != 1:
        theirs = written_instead("marker")
        hints = dict.fromkeys(f" ({theirs[name]})" for name in unknown if name in theirs)
        what = f"it knows no {', '.join(unknown)}{''.join(hints)}"
        problem = what if unknown else f"it takes one source, not {len(sources)}"
        raise ValueError(f"{problem}; write {_EXAMPLE}, with limit=, where=, columns= and turns= if wanted")
    columns = chosen_columns(named.get("columns"))
    options = {"limit": named.get("limit"), "where": named.get("where"), "columns": columns}
    in_turns = {"turns": named.get("turns", "last"), "contexts_from": named.get("contexts_from")}
    answers = named.get("answers")
    if answers is not None and (type(answers) is not int or answers < 1):
        raise ValueError(f"answers={answers!r} is no whole number from 1 on; write answers=3 for three answers a row")
    return sources[0], _metrics(named.get("metrics", ())), options, in_turns, answers


def _metrics(given: Any) -> tuple[BoundedMetric, ...]:
    """Return the metrics of a list, or of a mapping with their bounds; a bound of ``None`` is none."""

    # A class, and a metric of another tool, is refused by a message of its own.
    def is_one(it: object) -> bool:
        return isinstance(it, (str, Metric, type)) or class_of_theirs(it) is not None

    listed: Any = [given] if is_one(given) else given
    if not isinstance(listed, (list, tuple, Mapping)) or not all(map(is_one, listed)):
        msg = f"metrics={given!r} are no metrics; write {_EXAMPLE}, or {_BOUNDS} to hold each row to a bound"
        raise ValueError(msg)
    return tuple(bounded_metrics(listed)) if listed else ()


class DatasetTests:
    """The tests of a session that take rows of data sets, and the hooks by which their rows are done ahead."""

    def __init__(
        self, session: PytestSession, items: Sequence[pytest.Item], config: pytest.Config, drawn: Sequence[GatedSet]
    ) -> None:
        self._session = session
        self._worker: str | None = getattr(config, "workerinput", {}).get("workerid")
        self._jobs = {job.test: job for job in map(self._job, items) if job is not None}
        self._unanswered = {job.group for job in self._jobs.values() if job.is_unanswered}
        self._began: set[str] = set()
        # Only of the test that asked last, which asks again in a rerun: the others would fill memory.
        self._last: dict[str, Done] = {}
        #: Of the running test: its row with the response so far, the scores, and the bounds they are held to.
        self._running: RowJob | None = None
        self._scores: dict[str, Score] = {}
        self._bounds: tuple[BoundedMetric, ...] = ()
        self._shortfall: Exception | None = None
        shared = self._shared_results()
        # A worker that cannot share rows does its own only: no other may be done twice.
        self._is_alone = self._worker is not None and shared is None
        self._prefetcher = Prefetcher(
            session,
            threads=session.settings.respond_threads,
            shared=shared,
            drawn=() if self._is_alone else [DrawnRows(gated, self._jobs) for gated in drawn],
        )
        self._line = _ProgressLine(config)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Stop asking an application when its fixture ends."""
        made = yield
        if fixturedef.argname == "rag_respond" and made is not None:
            respond, session, close = cast("Respond", made), request.session, self._prefetcher.close_application
            # Added last, it runs first.
            fixturedef.addfinalizer(lambda: close(respond, finish=not (session.shouldstop or session.shouldfail)))
        return made

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Begin with the rows that are certainly run here, in a worker that cannot share rows."""
        if self._is_alone and self._began:
            self._begin([test.nodeid for test in (item, nextitem) if test is not None])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a test that passed with a score beyond its declared bound, or without a score of a listed metric."""
        __tracebackhide__ = True
        ran = yield
        if self._running is not None and self._running.test == item.nodeid:
            outcomes = {name: score.outcome for name, score in self._scores.items()}
            # Copies, because what the test compared them with is recorded.
            compared = {name: it.replaced() if isinstance(it, MetricResult) else it for name, it in outcomes.items()}
            try:
                raise_shortfall(compared, self._bounds)
            except (AssertionError, RagMetricsError) as error:
                self._shortfall = error
                raise
        return ran

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show the row of a test that failed; the innermost wrapper, so that the session can redact it."""
        report = yield
        raised = None if call.excinfo is None else call.excinfo.value
        if isinstance(raised, SparedError):
            carried(report).spared = True
            # The line is that of the test, not the one of this package that skips it.
            skip(report, str(raised))
        job = self._running
        if report.failed and report.when != "teardown" and job is not None and job.test == item.nodeid:
            lines = explain_row(job.sample)
            if isinstance(raised, Exception) and raised is self._shortfall:
                if raised.__cause__ is None:
                    # All frames are of this package, and pytest would say that it hides them.
                    report.longrepr = str(raised)
            else:
                found = {name: score.outcome for name, score in self._scores.items()}
                errors = {n: it for n, it in found.items() if isinstance(it, Exception) and str(it) != str(raised)}
                lines += explain_sample(errors)[1:]
            report.sections.append((f"RAG {job.place}", "\n".join(lines)))
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Begin no further row."""
        self._prefetcher.is_stopped = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Begin nothing more; other workers may wait for what is under way, unless the run is to end."""
        self._line.end()
        ends = session.shouldstop or session.shouldfail or self._prefetcher.is_stopped
        self._prefetcher.stop(finish=self._worker is not None and not ends)

    def sample(self, request: pytest.FixtureRequest) -> Sample:
        """Return the row of the running test with its response, and record its scores in the session.

        Raises what is wrong with the row, and what the application raised.
        """
        __tracebackhide__ = True
        if not hasattr(request, "param"):
            pytest.fail(_NO_MARKER, pytrace=False)
        case: DatasetCase = request.param
        self._session.recorder.has_response = case.once
        if case.row.error is not None:
            pytest.fail(str(case.row.error), pytrace=False)
        test = request.node.nodeid
        job = self._running = self._jobs[test]
        self._scores, self._bounds = {}, case.metrics
        if not self._began and not self._is_alone:
            # Then the tests before it: other workers begin with those.
            tests = list(self._jobs)
            self._begin(tests[tests.index(test) :] + tests)
        self._begin([test])
        self._prefetcher.check_needed(test)
        if job.group in self._unanswered:
            respond = self._application(request)
            lack = [each.missing(job.sample) for each in job.metrics if "response" in each.metric.requires]
            # A conversation may stand for the response: where it does for one metric, the others say what they need.
            if respond is None and job.is_unanswered and lack and all(lack):
                hint = written_for("response", job.sample.metadata)
                pytest.fail(f"{job.place} has no response{hint or _NO_APPLICATION}", pytrace=False)
            self._prefetcher.set_application(job.group, respond)
        outcome = self._outcome(job)
        self._running = replace(job, sample=outcome.sample)
        self._scores = {name: score.copy() for name, score in outcome.scores.items()}
        pending = [score.outcome for score in outcome.scores.values() if isinstance(score.outcome, BatchPendingError)]
        if pending:
            pytest.skip(str(pending[0]))
        bounds = {each.metric.name: each for each in self._bounds}
        for name, score in self._scores.items():
            result = score.outcome
            declared = bounds[name].check(result) if isinstance(result, MetricResult) else None
            for scoring in score.scorings:
                is_declared = declared is not None and scoring.outcome is result
                self._session.scored(replace(scoring, declared=declared) if is_declared else scoring)
        return outcome.sample

    def answered(self, test: str) -> Sample | None:
        """Return the row of the running test with its response, ``None`` if another test is running."""
        return self._running.sample if self._running is not None and self._running.test == test else None

    def begin_copies(self, copies: Iterable[tuple[str, str, DatasetRow]]) -> None:
        """Begin with rows that have all else of another: each with the test of that one, its own test and itself."""
        jobs = {
            test: replace(self._jobs[of], test=test, row=row, sample=row.sample or Sample(), group=test)
            for of, test, row in copies
        }
        self._jobs |= jobs
        self._begin([*jobs])

    def scores(self) -> Scores:
        """Return the scores of the row of the running test."""
        return Scores({name: score.outcome for name, score in self._scores.items()})

    def _application(self, request: pytest.FixtureRequest) -> Respond | None:
        """Return what answers the rows of a test that have no response; nothing does in a dry run."""
        if self._session.dry_run:
            return None
        respond: Respond | None = request.getfixturevalue("rag_respond")
        if respond is not None and not callable(respond):
            said = f"rag_respond must return a function from Sample to response, not {type(respond).__name__}"
            pytest.fail(said, pytrace=False)
        return respond

    def _outcome(self, job: RowJob) -> Done:
        __tracebackhide__ = True
        outcome = self._last.get(job.test)
        if outcome is None or not outcome.is_complete:
            rows, line = self._prefetcher, self._line
            if outcome is not None:
                rows.retry(job.test, outcome)
            try:
                outcome = rows.outcome(job.test, lambda: line.show(rows.done, rows.total, self._session.wait_state))
            finally:
                line.end()
        self._last = {job.test: outcome}
        if isinstance(outcome.failure, UnscoredError):
            # What it returned is no response, and no frame says more than the message.
            pytest.fail(f"{job.place}: {outcome.failure}", pytrace=False)
        if isinstance(outcome.failure, pytest.skip.Exception):
            raise outcome.failure
        if (failure := outcome.failure) is not None:
            raise UnscoredError(f"{job.place}: rag_respond raised {kind_and_message(failure)}") from failure
        return outcome

    def _begin(self, tests: Sequence[str]) -> None:
        fresh = [test for test in dict.fromkeys(tests) if test in self._jobs and test not in self._began]
        self._began.update(fresh)
        if fresh:
            self._prefetcher.start([self._jobs[test] for test in fresh])

    def _job(self, item: pytest.Item) -> RowJob | None:
        case, call = case_of(item), getattr(item, "callspec", None)
        if call is None or case is None or case.row.sample is None or MARKER_FAULT in item.stash:
            return None
        others = sorted((name, index) for name, index in call.indices.items() if name != FIXTURE)
        sample = with_stand_ins(case.row.sample, case.script) if self._session.dry_run else case.row.sample
        return RowJob(
            test=item.nodeid,
            group=f"{function_of(item)}{others}",
            row=case.row,
            sample=sample,
            metrics=tuple(BoundedMetric(metric=each.metric) for each in case.metrics),
            judge=marked_judge(item) or self._session.settings.judge,
            votes=marked_votes(item) or self._session.settings.votes,
            script=case.script,
            contexts_from=case.contexts_from,
        )

    def _shared_results(self) -> SharedResults | None:
        if self._worker is not None and (folder := self._session.shared_folder) is not None:
            with suppress(OSError, sqlite3.Error):
                remove_abandoned()
                folder.mkdir(mode=0o700, exist_ok=True)
                return SharedResults(folder, f"{self._worker}-{os.getpid()}")
        return None


_NO_APPLICATION = (
    ", and no application answers it: override the fixture rag_respond to return a function, async or "
    'not, from the Sample to a text, a mapping {"response": ..., "retrieved_contexts": [...]} or a Sample; or write a '
    "response into the row"
)
_NO_MARKER = (
    "rag_sample and rag_scores are of a test per row; "
    'write @pytest.mark.rag_dataset("golden.jsonl", metrics=[...]) above the test'
)


# Seconds from the end of one line to the next: a slow judge must not fill the screen.
_PAUSE = 5.0
_IN_LOGS = 300.0


class _ProgressLine:
    """Says in a terminal how many rows are done while a test waits for its row; silent elsewhere and with ``-q``."""

    def __init__(self, config: pytest.Config) -> None:
        reporter: pytest.TerminalReporter | None = config.pluginmanager.getplugin("terminalreporter")
        self._reporter = reporter if reporter is not None and reporter.verbosity >= 0 else None
        self._is_terminal = reporter is not None and bool(reporter.isatty)
        self._capture = config.pluginmanager.getplugin("capturemanager")
        self._shown = False
        self._next = -math.inf

    def show(self, done: int, total: int, waits: str = "") -> None:
        """Write how many rows are done and what they wait for, over the line before; in a log, a line now and then."""
        reporter = self._reporter
        if reporter is None or time.monotonic() < self._next or not (self._is_terminal or waits):
            return
        text = f"ragmetrics: {done} of {total} rows done ahead{waits and f'; {waits}'}"
        with self._capture.global_and_fixture_disabled() if self._capture is not None else nullcontext():
            if not self._shown:
                reporter.ensure_newline()
            if self._is_terminal:
                reporter.rewrite(text, erase=True)
            else:
                # Providers of CI end a job that is silent for ten minutes.
                reporter.write_line(text)
                self._next = time.monotonic() + _IN_LOGS
            reporter.flush()
        self._shown = self._is_terminal

    def end(self) -> None:
        """Leave the line as it is: the next output of the reporter begins another."""
        if self._shown:
            self._shown = False
            self._next = time.monotonic() + _PAUSE
