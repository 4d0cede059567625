"""The bounds that a history of runs gives for gates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.report.bounds import bound_lines
from pytest_ragmetrics.report.history import History, HistoryRun, history_run, write_history
from pytest_ragmetrics.runs.records import Judging, Record, StopRecord
from pytest_ragmetrics.stats.intervals import next_value, t_quantile
from tests.documents import document, gate, record, row
from tests.unit.conftest import Call

Runs = Sequence[HistoryRun]


def day(at: int, scores: Mapping[str, Sequence[Record]], gates: Mapping[str, Any] | None = None, **run: Any) -> Any:
    """Return the run of a day: a set of rows by its function, a gate by its id."""
    rows = [row(f"{name}[{n}]", it) for name, records in scores.items() for n, it in enumerate(records)]
    made = document(*rows, *(row(name, gate=it) for name, it in (gates or {}).items()))
    started = f"2026-10-{at:02}T08:14:00Z"
    return history_run(replace(made, run=replace(made.run, **{"started": started, "branch": "main", **run})))


def scores(*values: float, **fields: Any) -> list[Record]:
    return [record("faithfulness", value, **{"at_least": 0.8, **fields}) for value in values]


def share(good: int, n: int = 50, **fields: Any) -> list[Record]:
    return scores(*[1.0] * good, *[0.5] * (n - good), **fields)


def rate(value: float, **fields: Any) -> dict[str, Any]:
    given = {"statistic": "rate", "bound": 0.9, "min_score": 0.8, "between": None, "n": 50, **fields}
    return {"test_bot[gate-one]": gate("faithfulness", value, **given)}


def lines(runs: Runs, **fields: Any) -> list[str]:
    return bound_lines(History(runs=tuple(runs), branch="main", **fields))[1:]


RATES = (0.92, 0.9, 0.94, 0.92)
#: .92 - t(.99, 3) * .01633 * sqrt(1 + 1/4), rounded down.
LIMIT = '@pytest.mark.rag_gate("faithfulness", rate=0.837, min=0.8)'
ABOUT = "; an unchanged application breaks it in about 1 of 100 runs"


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        # Of the values of a gate, which may be held to another bound now; the fewest good rows it accepts are 45.
        (
            [
                day(at, {"test_bot": share(50)}, rate(value, bound=at / 20))
                for at, value in zip((1, 2, 3, 18), RATES, strict=True)
            ],
            [
                f"# 4 runs of main, 50 scores{ABOUT}",
                LIMIT,
                "#   rate=0.9, which you have: broken in about 10 of 100 runs",
            ],
        ),
        # Its interval is held to its bound, not the value.
        (
            [day(at, {"test_bot": share(50)}, rate(value, confidence=0.9)) for at, value in enumerate(RATES, 1)],
            [f"# 4 runs of main, 50 scores{ABOUT}", LIMIT],
        ),
        # Where there was no gate, or only one against a baseline, of the scores of the tests.
        (
            [
                *(day(at, {"test_bot": share(good)}) for at, good in ((1, 46), (2, 45), (3, 47))),
                day(4, {"test_bot": share(46)}, {"test_bot[gate-r]": gate(statistic="regression")}),
            ],
            [f"# 4 runs of main, 50 scores{ABOUT}", LIMIT],
        ),
        (
            [*(day(at, {"test_bot": share(at + 44)}) for at in (1, 3, 2)), day(4, {"test_bot": share(46)}, rate(0.92))],
            [
                f"# 4 runs of main, 50 scores{ABOUT}",
                '@pytest.mark.rag_gate("faithfulness", rate=0.837, min=0.8)',
                "#   rate=0.9, which you have: broken in about 10 of 100 runs",
            ],
        ),
        # All the same: half a row at least.
        (
            [day(at, {"test_bot": share(50)}, rate(1.0, bound=0.5)) for at in (1, 2, 3)],
            [
                f"# 3 runs of main, 50 scores{ABOUT}",
                '@pytest.mark.rag_gate("faithfulness", rate=0.919, min=0.8)',
                "#   rate=0.5, which you have: broken in fewer than 1 of 100 runs",
            ],
        ),
        # Means: of several thresholds, of a metric whose lower scores are better.
        (
            [
                day(at, {"test_bot": [*scores(0.9), *scores(low, at_least=0.7)]})
                for at, low in enumerate((0.8, 0.82, 0.8))
            ],
            ["# faithfulness: no bound from 3 runs of main, for so few scores they differ too much"],
        ),
        (
            [
                day(at, {"test_bot": [record("noise_sensitivity", it, at_least=None, better="lower")] * 40})
                for at, it in enumerate((0.1, 0.11, 0.12), 1)
            ],
            [f"# 3 runs of main, 40 scores{ABOUT}", '@pytest.mark.rag_gate("noise_sensitivity", mean=0.211)'],
        ),
        (
            [
                day(at, {"test_bot": [record("noise_sensitivity", it, at_most=0.2)] * 40})
                for at, it in enumerate((0.1, 0.11, 0.12), 1)
            ],
            [f"# 3 runs of main, 40 scores{ABOUT}", '@pytest.mark.rag_gate("noise_sensitivity", rate=0.899, max=0.2)'],
        ),
    ],
)
def test_a_bound_is_what_the_next_run_reaches(runs: Runs, said: list[str]) -> None:
    found = lines(runs)
    assert found == ["", "tests/test_assistant.py::test_bot", *said]


def judged(judge: str) -> dict[str, Judging]:
    return {"faithfulness": Judging(judge=judge, prompts={}, definition={})}


STOPPED = rate(0.5, stop=StopRecord(seed="1", spared=40), n=10)
PARTIAL = day(9, {"test_bot": share(1)}, partial="-k bot")


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        # Other judges, and other tests, are left out and named; partial runs are counted with the runs.
        (
            [
                *(day(at, {"test_bot": share(10)}, judging=judged("a")) for at in (1, 2)),
                day(3, {"test_bot": share(10)}, judging=judged("b"), selection="tests"),
                *(day(at, {"test_bot": share(46)}, judging=judged("b")) for at in (4, 5, 6)),
                PARTIAL,
            ],
            [
                f"# 3 runs of main, 50 scores{ABOUT}",
                '@pytest.mark.rag_gate("faithfulness", rate=0.839, min=0.8)',
                "#   2 runs left out: judge a, then b",
                "#   1 run left out: other tests, tests, then all",
            ],
        ),
        (
            [*(day(at, {"test_bot": share(30, 30)}) for at in (1, 2)), day(3, {"test_bot": share(48)})],
            [
                f"# 3 runs of main, 30 to 50 scores{ABOUT}",
                '@pytest.mark.rag_gate("faithfulness", rate=0.8, min=0.8)',
                "#   the number of scores changed: fewer vary more; ask again after some runs of as many",
            ],
        ),
        # Too few: of a set that stopped early, or whose scores with nothing to check cannot be told from the others.
        (
            [day(1, {"test_other": share(46)}), *(day(at, {"test_bot": share(46)}) for at in (2, 3))],
            ["# faithfulness: no bound from 2 runs of main, 3 whole runs are the least"],
        ),
        (
            [day(at, {"test_bot": share(46)}, STOPPED) for at in (1, 2, 3)],
            ["# faithfulness: no bound from 0 runs of main, 3 whole runs are the least"],
        ),
        (
            [
                *(day(at, {"test_bot": share(46)}) for at in (1, 2)),
                day(3, {"test_bot": share(46)}, rate(1, all_pass=True)),
            ],
            ["# faithfulness: no bound from 1 run of main, 3 whole runs are the least"],
        ),
        (
            [day(at, {"test_bot": share(46, vacuous=True)}) for at in (1, 2, 3)],
            ["# faithfulness: no bound from 0 runs of main, 3 whole runs are the least"],
        ),
        (
            [
                day(at, {"test_bot": share(46, vacuous=True)}, rate(0.92, counts_vacuous=True, all_pass=True))
                for at in (1, 2, 3)
            ],
            [
                f"# 3 runs of main, 50 scores{ABOUT}",
                '@pytest.mark.rag_gate("faithfulness", rate=0.839, min=0.8, all_pass=True, vacuous="count")',
                "#   rate=0.9, which you have: broken in about 6 of 100 runs",
            ],
        ),
    ],
)
def test_what_is_left_out_is_named(runs: Runs, said: list[str]) -> None:
    assert lines(runs) == ["", "tests/test_assistant.py::test_bot", *said]


def test_a_table_of_one_test_is_asserted() -> None:
    """Its metric is in no data set; one that several single tests score has no set."""
    runs = []
    for at in (1, 2, 3):
        table = row("test_table", *(record("sympathy", 0.9, at_least=None) for _ in range(40)))
        alone = [row(f"test_{name}", record("tone", 0.9)) for name in "ab"]
        run = document(table, *alone)
        runs.append(history_run(replace(run, run=replace(run.run, started=f"2026-10-{at:02}T08:14:00Z"))))
    assert bound_lines(History(runs=tuple(runs), branch="")) == [
        "3 runs, 2026-10-01 08:14 to 2026-10-03 08:14",
        "",
        "tests/test_assistant.py::test_table",
        f"# 3 runs, 40 scores{ABOUT}",
        'assert_mean(table, min=0.799, metric="sympathy")',
    ]


@pytest.mark.parametrize("runs", [[PARTIAL], [day(1, {})]])
def test_there_may_be_no_set(runs: Runs) -> None:
    assert lines(runs, left_out=("x.txt: left out",)) == [
        "no bound: a bound is over the rows of a data set, and no whole run has one",
        "",
        "x.txt: left out",
    ]


def test_the_command_prints_the_bounds_of_a_branch(tmp_path: Path, ragmetrics: Call) -> None:
    for at, good in ((1, 46), (2, 45), (3, 47), (4, 46), (5, 3)):
        write_history(tmp_path, day(at, {"test_bot": share(good)}, branch="fix" if at == 5 else "main"))
    status, out, error = ragmetrics("report", "history", str(tmp_path), "--bounds", "--branch=main")
    assert (status, error) == (0, "")
    assert out.splitlines()[3:] == [f"# 4 runs of main, 50 scores{ABOUT}", LIMIT, "", *out.splitlines()[-1:]]
    assert "1 run of other branches left out" in out
    status, out, error = ragmetrics("report", "history", str(tmp_path), "--bounds", "--html=x.html")
    assert (status, out) == (2, "")
    assert "--bounds: it prints lines to paste" in error


def test_another_value_lies_where_scipy_says() -> None:
    """The limit of one future observation, here of EnvStats' formula by SciPy's t."""
    stats = pytest.importorskip("scipy.stats")
    values = [0.91, 0.87, 0.93, 0.9, 0.88, 0.92]
    found = next_value(values)
    spread = float(stats.tstd(values)) * math.sqrt(1 + 1 / 6)
    limit = found.mean - t_quantile(0.99, found.df) * found.error
    assert limit == pytest.approx(sum(values) / 6 + float(stats.t.ppf(0.01, 5)) * spread, abs=1e-12)
    assert next_value([0.9] * 4, least=0.1).error == pytest.approx(0.1 * math.sqrt(1.25))
