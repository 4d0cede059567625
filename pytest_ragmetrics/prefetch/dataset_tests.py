"""The tests of data sets as the plugin sees them: a light front of ``run_ahead``, which the first marker loads."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

from pytest_ragmetrics.datasets import DatasetRow, read_dataset
from pytest_ragmetrics.dry_run import with_stand_in
from pytest_ragmetrics.errors import DatasetError, UnscoredError
from pytest_ragmetrics.evaluation import Evaluation, Row, evaluate
from pytest_ragmetrics.locks import folder_of, remove_abandoned
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.registry import metric_for, metric_named
from pytest_ragmetrics.prefetch.jobs import RowJob, RowOutcome, RowScore
from pytest_ragmetrics.prefetch.prefetcher import Prefetcher
from pytest_ragmetrics.prefetch.sharing import SharedResults, kind_and_message
from pytest_ragmetrics.progress import ProgressLine
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample

if TYPE_CHECKING:
    from pytest_ragmetrics.prefetch.jobs import Respond
    from pytest_ragmetrics.session import PytestSession


class Scores(Mapping[str, MetricResult]):
    """The results of one row by metric.

    A metric is looked up by any of its names. One that is unscored raises the reason when it is looked up, so that only
    a test that needs it fails; raises ``KeyError`` naming what there is for a metric that was not asked for.

    >>> Scores({"faithfulness": MetricResult(0.5, metric="faithfulness")})["Faithfulness"].value
    0.5
    """

    def __init__(self, outcomes: Mapping[str, MetricResult | Exception]) -> None:
        self._outcomes = dict(outcomes)

    def __getitem__(self, metric: str) -> MetricResult:
        __tracebackhide__ = True
        outcome = self._outcomes.get(metric) if metric in self._outcomes else self._outcomes.get(canonical(metric))
        if outcome is None:
            there = f"there are {', '.join(self._outcomes)}" if self._outcomes else "the marker names none"
            msg = f"{metric!r} was not scored: {there}; write @pytest.mark.rag_dataset(..., metrics=[{metric!r}])"
            raise _UnknownMetricError(msg)
        if isinstance(outcome, Exception):
            raise outcome.with_traceback(None)
        return outcome

    def __contains__(self, metric: object) -> bool:
        return metric in self._outcomes or (isinstance(metric, str) and canonical(metric) in self._outcomes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._outcomes!r})"


class _UnknownMetricError(KeyError):
    """A ``KeyError`` that is shown as the sentence it is."""

    def __str__(self) -> str:
        return str(self.args[0])


Source = str | os.PathLike[str] | Iterable[Sample | Mapping[str, Any]]


class Evaluate:
    """``rag_evaluate(source, metrics, limit=None, where=None, **options)``: score a data set, or a list, as a table.

    Paths start at the folder of the test. ``options`` are those of :func:`~pytest_ragmetrics.evaluate`, which says what
    is raised; ``DatasetError`` for a file that cannot be read. A row that is broken is kept as unscored by all metrics.
    """

    def __init__(self, base: Path) -> None:
        self._base = base

    def __call__(
        self,
        source: Source,
        metrics: Iterable[Metric | str] | Metric | str,
        *,
        limit: int | None = None,
        where: Any = None,
        **options: Any,
    ) -> Evaluation:
        """Score all rows by all metrics, many at a time."""
        __tracebackhide__ = True
        # What is read once is a list from here on.
        given = (
            source if isinstance(source, (str, os.PathLike, Mapping)) or hasattr(source, "columns") else list(source)
        )
        rows = read_dataset(given, base=self._base, limit=limit, where=where)
        chosen = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
        sound = [row.sample for row in rows if row.sample is not None]
        table = evaluate(sound, chosen, **options)
        scored = iter(table.rows)
        return Evaluation(
            metrics=table.metrics,
            rows=tuple(
                next(scored)
                if row.sample is not None
                else Row(sample=Sample(id=row.id), unscored=dict.fromkeys(table.metrics, str(row.error)))
                for row in rows
            ),
        )


FIXTURE = "rag_sample"
_EXAMPLE = '@pytest.mark.rag_dataset("golden.jsonl", metrics=["faithfulness"])'


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetCase:
    """One row of a data set, as the test of this row gets it."""

    row: DatasetRow
    metrics: tuple[Metric, ...]


class Datasets:
    """The data sets of a run, each read once; ``faults`` are the markers that cannot be used."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._read: dict[object, tuple[DatasetRow, ...]] = {}

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Make one test per row of the data set that the nearest marker names."""
        definition = metafunc.definition
        marker = definition.get_closest_marker("rag_dataset")
        if marker is None:
            return
        try:
            cases = self._cases(marker, definition.path.parent)
            _check_function(metafunc)
        except (ValueError, TypeError, DatasetError) as error:
            self.faults.append(f"{definition.nodeid}: marker rag_dataset: {error}")
            return
        metafunc.parametrize(FIXTURE, [pytest.param(case, id=case.row.id) for case in cases], indirect=True)

    def _cases(self, marker: pytest.Mark, base: Path) -> list[DatasetCase]:
        source, metrics, limit, where = _arguments(*marker.args, **marker.kwargs)
        rows = self._rows(source, base, limit, where)
        return [DatasetCase(row=row, metrics=metrics) for row in rows]

    def _rows(self, source: Any, base: Path, limit: int | None, where: Any) -> tuple[DatasetRow, ...]:
        if not isinstance(source, (str, os.PathLike)):
            return read_dataset(source, base=base, limit=limit, where=where)
        # A predicate is one of many even where it reads the same.
        known = (base / source, limit, id(where))
        if known not in self._read:
            self._read[known] = read_dataset(source, base=base, limit=limit, where=where)
        return self._read[known]


def _check_function(metafunc: pytest.Metafunc) -> None:
    definition = metafunc.definition
    if [mark.name for mark in definition.own_markers].count("rag_dataset") > 1:
        msg = "a test is made of one data set; put the rows into one, or write a test for each"
        raise ValueError(msg)
    if FIXTURE not in metafunc.fixturenames:
        msg = f"the test takes no row; write def {definition.name}(rag_sample, rag_scores)"
        raise ValueError(msg)


def _arguments(*given: Any, **named: Any) -> tuple[Any, tuple[Metric, ...], int | None, Any]:
    """Return source, metrics, limit and predicate; raise ``ValueError`` saying what to write."""
    unknown = sorted(named.keys() - {"source", "metrics", "limit", "where"})
    sources = [*given, *(named[name] for name in ("source",) if name in named)]
    if unknown or len(sources) != 1:
        problem = f"it knows no {', '.join(unknown)}" if unknown else f"it takes one source, not {len(sources)}"
        msg = f"{problem}; write {_EXAMPLE}, with limit= and where= if wanted"
        raise ValueError(msg)
    return sources[0], _metrics(named.get("metrics", ())), named.get("limit"), named.get("where")


def _metrics(given: Any) -> tuple[Metric, ...]:
    listed = [given] if isinstance(given, (str, Metric)) else given
    wrong = not isinstance(listed, (list, tuple)) or not all(isinstance(item, (str, Metric)) for item in listed)
    if wrong:
        msg = f"metrics={given!r} are no metrics; write {_EXAMPLE}"
        raise ValueError(msg)
    metrics = tuple(metric_for(metric) for metric in listed)
    names = [metric.name for metric in metrics]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"two metrics of one name: {', '.join(twice)}"
        raise ValueError(msg)
    return metrics


def canonical(name: str, *, known: Callable[[str], Metric | type[Metric]] = metric_named) -> str:
    """Return the name in results of a metric given by any of its names; one that is unknown stays as it is.

    >>> canonical("ResponseRelevancy"), canonical("sympathy")
    ('answer_relevancy', 'sympathy')
    """
    try:
        return known(name).name
    except ValueError:
        return name


class PrefetchPlugin:
    """The tests of a session that take rows of data sets; a plugin from the first of them on."""

    def __init__(self, running: PytestSession, rows: DatasetTests, session: pytest.Session) -> None:
        config = session.config
        self._running = running
        self._rows = rows
        self._worker: str | None = getattr(config, "workerinput", {}).get("workerid")
        self._errands = {errand.test: errand for errand in map(self._errand, session.items) if errand is not None}
        self._unanswered = {errand.group for errand in self._errands.values() if errand.is_unanswered}
        self._began: set[str] = set()
        # Of the test that asked last, which asks again where it is run once more; others would only fill memory.
        self._last: dict[str, RowOutcome] = {}
        self._handed: dict[str, RowScore] = {}
        board = self._board()
        #: Without a place to share them a worker does its own rows only: no other may be done twice.
        self._alone = self._worker is not None and board is None
        self._ahead = Prefetcher(running, threads=running.settings.respond_threads, board=board)
        self._line = ProgressLine(config)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """See to it that an application is asked no more when its fixture ends."""
        made = yield
        if fixturedef.argname == "rag_respond" and made is not None:
            # Added last, it runs first.
            fixturedef.addfinalizer(partial(self._ahead.dismiss, cast("Any", made)))
        return made

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Note which rows are certainly run here."""
        if self._alone and self._began:
            self._begin([test.nodeid for test in (item, nextitem) if test is not None])

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Begin nothing more; other workers may wait for what is under way, unless the run is to end."""
        self._line.end()
        self._ahead.stop(finish=self._worker is not None and not (session.shouldstop or session.shouldfail))

    def sample(self, request: pytest.FixtureRequest) -> Sample:
        """Return the row of the running test with its response, and tell the session of its scores.

        Raises what is wrong with the row, and what the application raised.
        """
        __tracebackhide__ = True
        case: DatasetCase = request.param
        if case.row.error is not None:
            _refuse(case.row.error)
        test = request.node.nodeid
        errand = self._errands[test]
        if not self._began:
            self._begin([test] if self._alone else self._from(test))
        self._begin([test])
        if errand.group in self._unanswered:
            self._ahead.employ(errand.group, self._rows.application(request))
        outcome = self._outcome(errand)
        self._handed = {name: scored.handed_out() for name, scored in outcome.scores.items()}
        for scored in self._handed.values():
            for scoring in scored.scorings:
                self._running.scored(scoring)
        return outcome.sample

    def scores(self) -> Scores:
        """Return the scores of the row of the running test."""
        return Scores({name: scored.outcome for name, scored in self._handed.items()})

    def _outcome(self, errand: RowJob) -> RowOutcome:
        __tracebackhide__ = True
        outcome = self._last.get(errand.test)
        if outcome is not None and not outcome.is_whole:
            self._ahead.again(errand.test, outcome)
            outcome = None
        outcome = outcome or self._waited_for(errand.test)
        self._last = {errand.test: outcome}
        if outcome.failure is not None:
            raise _of_row(outcome.failure, errand)
        return outcome

    def _waited_for(self, test: str) -> RowOutcome:
        try:
            return self._ahead.outcome(test, lambda: self._line.show(self._ahead.done, self._ahead.total))
        finally:
            self._line.end()

    def _begin(self, tests: Sequence[str]) -> None:
        fresh = [test for test in tests if test in self._errands and test not in self._began]
        self._began.update(fresh)
        if fresh:
            self._ahead.start([self._errands[test] for test in fresh])

    def _from(self, test: str) -> list[str]:
        """Return all tests from one on, then those before it: other workers begin with those."""
        tests = list(self._errands)
        first = tests.index(test)
        return tests[first:] + tests[:first]

    def _errand(self, item: pytest.Item) -> RowJob | None:
        call = getattr(item, "callspec", None)
        case = call.params.get(FIXTURE) if call is not None else None
        if call is None or not isinstance(case, DatasetCase) or case.row.sample is None:
            return None
        others = sorted((name, index) for name, index in call.indices.items() if name != FIXTURE)
        function = item.nodeid.removesuffix(item.name) + getattr(item, "originalname", item.name)
        return RowJob(
            test=item.nodeid,
            group=f"{function}{others}",
            row=case.row,
            sample=with_stand_in(case.row.sample) if self._running.dry_run else case.row.sample,
            metrics=case.metrics,
            judge=self._running.judge_of(item),
            votes=self._running.votes_of(item),
        )

    def _board(self) -> SharedResults | None:
        folder = self._rows.board
        if self._worker is None or folder is None:
            return None
        with suppress(OSError, sqlite3.Error):
            remove_abandoned()
            folder.mkdir(mode=0o700, exist_ok=True)
            return SharedResults(folder, f"{self._worker}-{os.getpid()}")
        return None


def _refuse(error: DatasetError) -> NoReturn:
    """Fail the test of a broken row, by what is wrong with it alone."""
    pytest.fail(str(error), pytrace=False)


def _of_row(failure: BaseException, errand: RowJob) -> BaseException:
    """Return what to raise in the test of a row whose application failed: a skip is a skip."""
    if isinstance(failure, pytest.skip.Exception):
        return failure
    said = str(failure) if isinstance(failure, UnscoredError) else f"rag_respond raised {kind_and_message(failure)}"
    error = UnscoredError(f"{errand.place}: {said}")
    error.__cause__ = failure
    return error


# What the controller hands to a worker on the same machine: the folder where workers share rows.
_BOARD = "ragmetrics_board"
_NO_MARKER = '{0} is of a test per row; write @pytest.mark.rag_dataset("golden.jsonl", metrics=[...]) above the test'
_NO_ROWS = (
    "marker rag_dataset: it means nothing on a method of unittest.TestCase, nor where a hook adds it: write it above a "
    "function, or a method of another class"
)


class DatasetTests:
    """The rows of a session's data sets: one test each, done ahead of the tests."""

    def __init__(self, running: PytestSession, config: pytest.Config) -> None:
        self._running = running
        self._config = config
        self._suite: PrefetchPlugin | None = None
        worker = getattr(config, "workerinput", None)
        told = folder_of(running.run) if worker is None else worker.get(_BOARD)
        #: Where the workers of this machine share rows; made by the first that has any.
        self.board = None if told is None else Path(told)

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Make a test per row where the test has the marker."""
        if metafunc.definition.get_closest_marker("rag_dataset") is not None:
            self._datasets.parametrize(metafunc)

    def check(self, items: Sequence[pytest.Item]) -> None:
        """Raise ``pytest.UsageError`` for a marker that cannot be used, also where no test per row was made of it."""
        faults = list(self._datasets.faults) if "_datasets" in self.__dict__ else []
        marked = (item for item in items if item.get_closest_marker("rag_dataset") is not None)
        faults += [f"{item.nodeid}: {_NO_ROWS}" for item in marked if not hasattr(item, "callspec")]
        if faults:
            raise pytest.UsageError("\n".join(faults))

    def sample(self, request: pytest.FixtureRequest) -> Sample:
        """Return the row of a test with its response, and tell the session of its scores."""
        __tracebackhide__ = True
        if not hasattr(request, "param"):
            pytest.fail(_NO_MARKER.format("rag_sample"), pytrace=False)
        if self._suite is None:
            self._suite = PrefetchPlugin(self._running, self, request.session)
            self._config.pluginmanager.register(self._suite, "ragmetrics-rows")
        return self._suite.sample(request)

    def scores(self) -> Scores:
        """Return the scores of the row of the running test."""
        if self._suite is None:
            pytest.fail(_NO_MARKER.format("rag_scores"), pytrace=False)
        return self._suite.scores()

    def evaluate(self, request: pytest.FixtureRequest) -> Evaluate:
        """Return what scores a whole data set inside a test."""
        return Evaluate(request.path.parent)

    def application(self, request: pytest.FixtureRequest) -> Respond | None:
        """Return what answers the rows of a test that have no response; nothing does in a dry run."""
        if self._running.dry_run:
            return None
        respond = request.getfixturevalue("rag_respond")
        if respond is not None and not callable(respond):
            msg = f"rag_respond must return a function from Sample to response, not {type(respond).__name__}"
            raise TypeError(msg)
        found: Respond | None = respond
        return found

    def share(self, node: Any) -> None:
        """Tell a worker on this machine where to share rows with the others."""
        if node.gateway.spec.popen:
            node.workerinput[_BOARD] = str(self.board)

    def close(self) -> None:
        """Remove what the workers shared."""
        if self.board is not None and not hasattr(self._config, "workerinput"):
            shutil.rmtree(self.board, ignore_errors=True)

    @cached_property
    def _datasets(self) -> Datasets:

        return Datasets()
