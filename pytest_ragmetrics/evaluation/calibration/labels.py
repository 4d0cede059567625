"""Labels that people gave with ``ragmetrics label``: the lines of their file, and which of the rows chance has drawn.

A line is a row of a data set with a ``label`` (null where it was skipped) and its :class:`Labelling`. The place of a
row is that of its random number among all rows, so that the rows of a beginning of this order had equal chances.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import count

from pytest_ragmetrics.core.codec import CodecError, dump, load
from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets import DatasetRow
from pytest_ragmetrics.evaluation.calibration.result import LabelScale

#: The field of a row with its labelling.
FIELD = "labelling"


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelling:
    """How a row came to be labelled: for which ``metric`` and ``run`` (its start), and its ``place`` in the order."""

    metric: str
    run: str
    seed: int
    place: int

    @property
    def queue(self) -> Hashable:
        """What labels that were drawn together have in common."""
        return self.metric, self.run, self.seed


def rest_of_line(sample: Sample, labelling: Labelling) -> str:
    """Return the JSON text of a line after its label.

    >>> place = Labelling(metric="m", run="r", seed=0, place=1)
    >>> line(1, rest_of_line(Sample(response="Yes."), place)).partition("labelling")[0]
    '{"label": 1, "response": "Yes.", "'
    """
    values = sample.to_mapping()
    kept = {name: value for name, value in sample.metadata.items() if name not in ("label", FIELD)}
    values = {name: value for name, value in {**values, "metadata": kept}.items() if name != "metadata" or kept}
    return json.dumps({**dump(values), FIELD: dump(labelling)}, ensure_ascii=False, allow_nan=False)[1:]


def line(label: int | None, rest: str) -> str:
    """Return a line of the file; the script of the page writes the same."""
    return f'{{"label": {json.dumps(label)}, {rest}'


def labelling_of(sample: Sample, *, file: str | None = None, line: int | None = None) -> Labelling | None:
    """Return how a row came to be labelled, ``None`` if nobody wrote that; raise ``DatasetError`` for a fault."""
    written = sample.metadata.get(FIELD)
    if written is None:
        return None
    try:
        found = load(Labelling, written, place=FIELD)
    except CodecError as error:
        raise DatasetError(str(error), file=file, line=line, field=FIELD) from error
    if found.place < 1 or written.get("weight", 1) != 1:
        wrong = f"{FIELD} has a place above 0, as ragmetrics label writes it"
        if found.place > 0:
            wrong = "an earlier version drew this row by priority: label the run again, now in random order"
        raise DatasetError(wrong, file=file, line=line, field=FIELD)
    return found


def answer_key(sample: Sample) -> str:
    """Return a digest of what is labelled: the question, the answer, the contexts.

    Not of the id: a row without one gets one when it is read from a file.
    """
    shown = {name: value for name, value in sample.to_mapping().items() if name not in ("metadata", "id")}
    shown["messages"] = sample.metadata.get("messages")
    return hashlib.sha256(json.dumps(dump(shown), sort_keys=True).encode()).hexdigest()[:24]


def drawn(labellings: Sequence[Labelling | None]) -> list[bool]:
    """Return which rows were drawn by chance: those before the first gap in the places of their queue.

    Where no row has a labelling all were, as far as anybody knows. Give the skipped rows too.

    >>> places = [Labelling(metric="m", run="r", seed=0, place=place) for place in (1, 2, 4)]
    >>> drawn([*places, None]), drawn([None])
    ([True, True, False, False], [True])
    """
    if not any(labellings):
        return [True] * len(labellings)
    queues: dict[Hashable, set[int]] = {}
    for found in filter(None, labellings):
        queues.setdefault(found.queue, set()).add(found.place)
    gaps = {queue: next(place for place in count(1) if place not in places) for queue, places in queues.items()}
    return [found is not None and found.place < gaps[found.queue] for found in labellings]


def read_labels(rows: Sequence[DatasetRow], scale: LabelScale) -> list[tuple[Sample, float | None, bool]]:
    """Return rows with their labels from 0 to 1, ``None`` where there is none, and whether chance has drawn each.

    Raises ``DatasetError`` for a row or a label that is wrong.
    """
    found, labellings = [], []
    for row in rows:
        if row.error is not None or row.sample is None:
            raise row.error or DatasetError("it has no sample", file=row.file, line=row.line)
        found.append((row.sample, scale.read(row.sample, file=row.file, line=row.line)))
        labellings.append(labelling_of(row.sample, file=row.file, line=row.line))
    return [(sample, label, chosen) for (sample, label), chosen in zip(found, drawn(labellings), strict=True)]
