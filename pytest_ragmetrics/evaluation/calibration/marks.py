"""Marks that readers of a report set: whether the judge is right about a finding, a verdict on one piece of an answer.

A line of their file has ``id`` (the test), ``metric``, ``finding`` (the text of the verdict), ``ok`` (what the judge
decided), ``label`` (``right``, ``wrong`` or ``unsure``, of the judge), ``judge`` and ``run``. A mark is no label of an
answer, nor are all marks of one together: an answer may be bad for what no finding names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_ragmetrics.core.codec import CodecError, load
from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.datasets.reading import check_limit, read_raws, selected
from pytest_ragmetrics.datasets.rows import NO_COLUMNS, Columns, DatasetRow, identified
from pytest_ragmetrics.stats.intervals import Interval, mean_interval

#: The field that tells a mark from a labelled answer.
FIELD = "finding"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """What a reader marked at a verdict: whether the ``judge``, which found it ``ok`` or not, is right."""

    id: str
    metric: str
    finding: str
    ok: bool
    label: Literal["right", "wrong", "unsure"]
    judge: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkedVerdicts:
    """The findings of one judge that readers marked: how many of those it ``rejected`` and ``accepted`` rightly.

    The shares are those of the marked findings, which readers chose: no rates of the judge. Their intervals take the
    findings of a test as dependent; ``None`` where none is marked.
    """

    metric: str
    judge: str | None
    rejected: Interval | None
    accepted: Interval | None
    unsure: int
    tests: int


def read_labelled(
    source: Any, *, base: Path, limit: int | None = None, columns: Columns = NO_COLUMNS
) -> tuple[tuple[DatasetRow, ...], tuple[Mark, ...]]:
    """Return the labelled answers of a data set, the first ``limit`` of them, and its marks; either may be none.

    Of two marks on one verdict of one judge the later counts. Raises ``DatasetError`` naming the line of a mark that is
    wrong, and as :func:`~pytest_ragmetrics.datasets.read_dataset` does.
    """
    check_limit(limit)
    raws, file = read_raws(source, base=base, columns=columns)
    marks: dict[tuple[object, ...], Mark] = {}
    answers = []
    for raw in raws:
        if isinstance(raw.values, Mapping) and FIELD in raw.values and not raw.fault:
            try:
                mark = load(Mark, raw.values, place="mark")
            except CodecError as error:
                msg = f"a mark has id, metric, finding, ok and label, as the page of a report saves it: {error}"
                raise DatasetError(msg, file=file, line=raw.line) from error
            marks[mark.id, mark.metric, mark.judge, mark.finding, mark.ok] = mark
        else:
            answers.append(raw)
    rows = selected(identified(answers, file), where=None, limit=limit) if answers else ()
    return rows, tuple(marks.values())


def marked_verdicts(marks: Iterable[Mark], metric: str) -> list[MarkedVerdicts]:
    """Return what the marks of a metric say, by judge.

    >>> labels = ["right"] * 9 + ["wrong"]
    >>> marks = [Mark(id=f"t{n}", metric="m", finding="Moss.", ok=False, label=it) for n, it in enumerate(labels)]
    >>> [(found.rejected.estimate, found.accepted) for found in marked_verdicts(marks, "m")]
    [(0.9, None)]
    """
    judges: dict[str | None, list[Mark]] = {}
    for mark in marks:
        if mark.metric == metric:
            judges.setdefault(mark.judge, []).append(mark)
    return [
        MarkedVerdicts(
            metric=metric,
            judge=judge,
            rejected=_right([mark for mark in found if not mark.ok]),
            accepted=_right([mark for mark in found if mark.ok]),
            unsure=sum(mark.label == "unsure" for mark in found),
            tests=len({mark.id for mark in found}),
        )
        for judge, found in sorted(judges.items(), key=lambda item: item[0] or "")
    ]


def _right(marks: Sequence[Mark]) -> Interval | None:
    sure = [mark for mark in marks if mark.label != "unsure"]
    if not sure:
        return None
    return mean_interval([mark.label == "right" for mark in sure], clusters=[mark.id for mark in sure])
