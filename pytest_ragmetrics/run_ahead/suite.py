"""Running ahead in a session of pytest: which rows its tests ask for, and how a test comes by its own."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

from pytest_ragmetrics.dry_run.forecast import with_stand_in
from pytest_ragmetrics.errors import DatasetError, UnscoredError
from pytest_ragmetrics.files.shared_folder import remove_abandoned
from pytest_ragmetrics.run_ahead.ahead import Ahead
from pytest_ragmetrics.run_ahead.board import Board
from pytest_ragmetrics.run_ahead.errand import Errand, Outcome, Scored
from pytest_ragmetrics.run_ahead.marker import FIXTURE, Case
from pytest_ragmetrics.run_ahead.progress import Line
from pytest_ragmetrics.run_ahead.scores import Scores
from pytest_ragmetrics.run_ahead.wire import kind_and_message

if TYPE_CHECKING:
    from pytest_ragmetrics.run.rows import Rows
    from pytest_ragmetrics.run.running import Running
    from pytest_ragmetrics.sample import Sample


class Suite:
    """The tests of a session that take rows of data sets; a plugin from the first of them on."""

    def __init__(self, running: Running, rows: Rows, session: pytest.Session) -> None:
        config = session.config
        self._running = running
        self._rows = rows
        self._worker: str | None = getattr(config, "workerinput", {}).get("workerid")
        self._errands = {errand.test: errand for errand in map(self._errand, session.items) if errand is not None}
        self._unanswered = {errand.group for errand in self._errands.values() if errand.is_unanswered}
        self._began: set[str] = set()
        # Of the test that asked last, which asks again where it is run once more; others would only fill memory.
        self._last: dict[str, Outcome] = {}
        self._handed: dict[str, Scored] = {}
        board = self._board()
        #: Without a place to share them a worker does its own rows only: no other may be done twice.
        self._alone = self._worker is not None and board is None
        self._ahead = Ahead(running, threads=running.settings.respond_threads, board=board)
        self._line = Line(config)

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
        case: Case = request.param
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

    def _outcome(self, errand: Errand) -> Outcome:
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

    def _waited_for(self, test: str) -> Outcome:
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

    def _errand(self, item: pytest.Item) -> Errand | None:
        call = getattr(item, "callspec", None)
        case = call.params.get(FIXTURE) if call is not None else None
        if call is None or not isinstance(case, Case) or case.row.sample is None:
            return None
        others = sorted((name, index) for name, index in call.indices.items() if name != FIXTURE)
        function = item.nodeid.removesuffix(item.name) + getattr(item, "originalname", item.name)
        return Errand(
            test=item.nodeid,
            group=f"{function}{others}",
            row=case.row,
            sample=with_stand_in(case.row.sample) if self._running.dry_run else case.row.sample,
            metrics=case.metrics,
            judge=self._running.judge_of(item),
            votes=self._running.votes_of(item),
        )

    def _board(self) -> Board | None:
        folder = self._rows.board
        if self._worker is None or folder is None:
            return None
        with suppress(OSError, sqlite3.Error):
            remove_abandoned()
            folder.mkdir(mode=0o700, exist_ok=True)
            return Board(folder, f"{self._worker}-{os.getpid()}")
        return None


def _refuse(error: DatasetError) -> NoReturn:
    """Fail the test of a broken row, by what is wrong with it alone."""
    pytest.fail(str(error), pytrace=False)


def _of_row(failure: BaseException, errand: Errand) -> BaseException:
    """Return what to raise in the test of a row whose application failed: a skip is a skip."""
    if isinstance(failure, pytest.skip.Exception):
        return failure
    said = str(failure) if isinstance(failure, UnscoredError) else f"rag_respond raised {kind_and_message(failure)}"
    error = UnscoredError(f"{errand.place}: {said}")
    error.__cause__ = failure
    return error
