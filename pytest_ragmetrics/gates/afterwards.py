"""Deciding a gate when its set was run in parts, each of which had to leave it undecided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pytest_ragmetrics.gates.gate import Gate, GatedSet
from pytest_ragmetrics.gates.ruling import ruling

if TYPE_CHECKING:
    from pytest_ragmetrics.report.records import GateRow, TestRow


def decide_afterwards(row: TestRow, tests: Sequence[TestRow]) -> TestRow | None:
    """Return the row of a skipped gate as one run over all ``tests`` would have left it.

    ``None`` where they are not the whole set, or none can tell: a test that passed without a score leaves no row.
    """
    function, _, name = row["id"].partition("[gate-")
    gate = row["gate"]
    members = {test["id"]: test for test in tests if test["id"] == function or test["id"].startswith(f"{function}[")}
    if gate is None or not name or len(members) != gate["total"]:
        return None
    gated = GatedSet(
        function=function,
        name=function.rpartition("::")[2],
        file=row["file"],
        line=row["line"],
        scope="",
        gates=(),
        total=gate["total"],
        selected=tuple(members),
    )
    found = ruling(_gate_of(gate), gated, members.get, skipped=_skipped(members.values()), ran=members.keys())
    if found.row["outcome"] == "skipped":
        return None
    decided = row.copy()
    decided["gate"] = found.row
    decided["outcome"] = "passed" if found.row["outcome"] == "passed" else "failed"
    decided["message"] = None if decided["outcome"] == "passed" else found.text
    return decided


def _gate_of(row: GateRow) -> Gate:
    # Which scores are the good ones was a guess unless a score was there to tell; its records tell it again.
    better = row["better"] if row["statistic"] == "rate" else None
    return Gate(
        metric=row["metric"],
        statistic=row["statistic"],
        bound=row["bound"],
        score_bound=row["min_score"],
        better=better,
        confidence=row["confidence"],
    )


def _skipped(tests: Iterable[TestRow]) -> set[str]:
    return {test["id"] for test in tests if test["outcome"] in ("skipped", "xfailed")}
