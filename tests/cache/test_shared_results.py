"""Results that workers share: many begin at once, one that cannot share leaves nothing behind, all comes back."""

from __future__ import annotations

import gc
import sqlite3
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from pytest_ragmetrics.core.errors import BudgetExceededError, JudgeError, RagMetricsError, UnscoredError
from pytest_ragmetrics.core.locks import folder_of, lock_file, remove_abandoned
from pytest_ragmetrics.core.result import Evidence, MetricResult, Usage, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets import DatasetRow
from pytest_ragmetrics.evaluation.runner import Done, Score
from pytest_ragmetrics.judges.context import Exchange, Scoring
from pytest_ragmetrics.judges.transports.budget import UnpricedError
from pytest_ragmetrics.plugin.rows.jobs import RowJob
from pytest_ragmetrics.plugin.rows.sharing import ElsewhereError, SharedResults, kind_and_message, read, written

USAGE = Usage(calls=2, prompt_tokens=30, cost=0.5)
ASKED = Sample(id="q1", user_input="Does it hum?")
ANSWERED = Sample(id="q1", user_input="Does it hum?", response="It hums.", metadata={"tags": ["a", 1]})
JOB = RowJob(test="t", group="t", row=DatasetRow(sample=ASKED, id="q1"), sample=ASKED, metrics=(), judge="auto")


def result() -> MetricResult:
    """Return a result with no field as it is by default."""
    evidence = Evidence(context=0, start=0, end=4, text="hums")
    verdicts = [Verdict(text="It hums.", ok=True, start=0, end=8, evidence=(evidence,))]
    words: Any = {"reason": "It does.", "noun": "claim", "complaint": "not supported", "judge": "mine"}
    votes: Any = {"samples": [0.0, 0.5], "votes": 3, "unscored_votes": 1, "disagreements": ["rate: yes: a; no: c"]}
    numbers: Any = {"vacuous": True, "usage": USAGE, "scale": (-1.0, 1.0)}
    made = MetricResult(0.25, metric="quality", verdicts=verdicts, **words, **votes, **numbers)
    made.decides = False
    return made


def scoring(outcome: MetricResult | UnscoredError, sample: Sample = ANSWERED) -> Scoring:
    exchanges = (Exchange(task="rate", vote=1, prompt="Why?", reply=None, cached=True, judge="a"),)
    given: Any = {"sample": sample, "outcome": outcome, "exchanges": exchanges, "own_usage": USAGE}
    return Scoring(metric="quality", better="lower", **given)


def test_an_outcome_comes_back_whole() -> None:
    own, unscored, refused = result(), UnscoredError("No answer.", usage=USAGE), BudgetExceededError("It is spent.")
    given = {
        "scored": Score(outcome=own, scorings=(scoring(result(), ASKED), scoring(own))),
        "unscored": Score(outcome=unscored, scorings=(scoring(unscored),)),
        "refused": Score(outcome=refused, scorings=(scoring(UnscoredError("It is spent.")),)),
    }
    back = read(written(Done(sample=ANSWERED, scores=given), JOB), JOB)
    assert (back.sample, back.failure) == (ANSWERED, None)
    outcomes: dict[str, Any] = {name: score.outcome for name, score in back.scores.items()}
    assert [type(each) for each in outcomes.values()] == [MetricResult, UnscoredError, BudgetExceededError]
    assert outcomes["scored"].__getnewargs_ex__() == own.__getnewargs_ex__()
    assert not outcomes["scored"].decides
    assert [str(outcomes[name]) for name in ("unscored", "refused")] == ["No answer.", "It is spent."]
    assert outcomes["unscored"].usage == USAGE
    assert outcomes["scored"] is back.scores["scored"].scorings[1].outcome
    assert outcomes["unscored"] is back.scores["unscored"].scorings[0].outcome
    for name, score in back.scores.items():
        for made, wanted in zip(score.scorings, given[name].scorings, strict=True):
            assert (str(made.outcome), replace(made, outcome=wanted.outcome)) == (str(wanted.outcome), wanted)


@pytest.mark.parametrize(
    ("failure", "kind", "told"),
    [
        (KeyError("q7"), ElsewhereError, "KeyError: 'q7'"),
        (SystemExit(3), ElsewhereError, "SystemExit: 3"),
        (pytest.skip.Exception("not today"), pytest.skip.Exception, "Skipped: not today"),
        (JudgeError("no credit"), JudgeError, "JudgeError: no credit"),
        (RagMetricsError("no idea"), RagMetricsError, "RagMetricsError: no idea"),
        (UnpricedError("no price"), UnscoredError, "UnscoredError: no price"),
    ],
)
def test_a_failure_comes_back(failure: BaseException, kind: type[BaseException], told: str) -> None:
    back = read(written(Done(sample=ASKED, failure=failure), JOB), JOB)
    assert (back.sample, type(back.failure)) == (ASKED, kind)
    assert back.failure is not None
    assert kind_and_message(back.failure) == told


def test_a_database_that_cannot_be_read_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "rows.sqlite").write_text("No database, but longer than a header of one has to be. " * 20)
    with pytest.raises(sqlite3.DatabaseError):
        SharedResults(tmp_path, "gw0-1")
    lock = lock_file(tmp_path / "gw0-1.lock")
    assert lock.take()
    lock.release()
    # Python 3.13 and later warn of a connection that nobody closed, once it is collected.
    gc.collect(1)


def test_workers_that_begin_at_the_same_time_share_results(tmp_path: Path) -> None:
    workers = ["gw0", "gw1", "gw2", "gw3"]
    with ThreadPoolExecutor(len(workers)) as threads:
        all_shared = list(threads.map(SharedResults, [tmp_path] * len(workers), workers))
        for number in range(50):
            claims = list(threads.map(SharedResults.claim, all_shared, [f"test_{number}"] * len(workers)))
            assert sum(claims) == 1
    for shared in all_shared:
        shared.close()


def test_a_worker_waits_for_another_that_makes_the_database(tmp_path: Path) -> None:
    """SQLite refuses at once to switch a database to WAL that another is writing; a refused worker shares nothing."""
    lock = FileLock(tmp_path / "open.lock", thread_local=False)
    lock.acquire()
    other = sqlite3.connect(tmp_path / "rows.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    def end() -> None:
        other.close()
        lock.release()

    timer = threading.Timer(0.05, end)
    timer.start()
    SharedResults(tmp_path, "gw0").close()
    timer.join()


def test_rows_outlive_the_worker_that_did_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker that begins when the first has ended, or a run beside them, does not take their folder for abandoned."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = folder_of("abc")
    first = SharedResults(folder, "gw0-1")
    assert first.claim("test_it")
    first.publish("test_it", "done")
    first.close()
    remove_abandoned()
    second = SharedResults(folder, "gw1-2")
    assert not second.claim("test_it")
    assert second.outcome("test_it") == "done"
    second.close()
