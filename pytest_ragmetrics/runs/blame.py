"""Which part of an application made a score worse than in the baseline, as a record has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from pytest_ragmetrics.core.result import Usage

#: ``interplay`` is of answer and passages, each good with the other's former one; ``chance`` of a set whose drop is not
#: proven; ``unknown`` where a score that would tell is missing.
Part = Literal["retriever", "generator", "interplay", "judge", "chance", "unknown"]
PARTS: tuple[Part, ...] = get_args(Part)

#: How many judgements a score takes at most, and how many scores are asked about unless an option says otherwise.
MOST, ROWS = 4, 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Blame:
    """Which part made a score worse, told by the old and the new texts crossed.

    ``cells`` are the scores of the old answer on the old and on the new passages, then those of the new answer on the
    old and on the new passages; ``None`` where there is none, empty where none was needed. ``again`` are further
    judgements of the new answer on the new passages. ``recalls`` are of a metric that sees no passages: how much of the
    reference the old and the new ones have. The answer ``should_refuse`` where the new passages do not bear out the old
    answer, and neither ones the new answer. ``reason`` says why the part is unknown, and ``usage`` what asking took.
    """

    part: Part
    cells: tuple[float | None, ...] = ()
    again: tuple[float, ...] = ()
    recalls: tuple[float, ...] = ()
    should_refuse: bool = False
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
