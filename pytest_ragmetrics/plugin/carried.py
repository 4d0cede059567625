"""What reports of tests carry beside what pytest says, also from a worker of xdist to the controller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_ragmetrics.runs.records import GateRecord, Record
from pytest_ragmetrics.runs.wording.repeats import RowReply


@dataclass(kw_only=True, slots=True)
class Carried:
    """What the report of a test carries, also from a worker of xdist to the controller.

    ``records`` are those of the test so far, ``None`` where an earlier report has them, ``calibration`` those of
    labelled answers that a judge was held to. ``replies`` are what judges replied, in short: the records of most tests
    leave it out. ``answers`` are the numbers of answers of conversations of which only the last was scored, by the id
    of the sample; ``has_response`` is of a row that was scored once, where others got several answers. ``gate`` is of
    the test of a gate; ``spared`` is a test that was skipped because its set was decided without it.
    """

    records: tuple[Record, ...] | None = None
    calibration: tuple[Record, ...] = ()
    replies: tuple[RowReply, ...] = ()
    answers: Mapping[str, int] = field(default_factory=dict)
    has_response: bool = False
    gate: GateRecord | None = None
    spared: bool = False
