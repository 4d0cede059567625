"""Labels that people gave with ``ragmetrics label``: the lines of their file, and the chance of each row to be drawn.

A line is a row of a data set with a ``label`` (null where it was skipped) and its :class:`Labelling`. Rows are drawn by
priority sampling: the place of a row is that of weight / U among all rows, with U uniform by seed and row; the
rows of a beginning of this order have the chances min(1, weight / tau), where tau is the priority of the first row that
is not in it (Duffield, Lund and Thorup 2007).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_ragmetrics.core.codec import CodecError, dump, load
from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets import DatasetRow
from pytest_ragmetrics.evaluation.calibration.result import LabelScale

#: By ``priority`` a row with a score in the middle comes earlier; at ``random`` all rows have the same chance.
Order = Literal["priority", "random"]
#: The field of a row with its labelling.
FIELD = "labelling"


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelling:
    """How a row came to be labelled: for which ``metric`` and ``run`` (its start), and its ``place`` in the order.

    ``priority`` is ``weight`` / U, ``following`` that of the row after it, ``None`` after the last one.
    """

    metric: str
    run: str
    order: Order
    seed: int
    place: int
    weight: float
    priority: float
    following: float | None

    @property
    def queue(self) -> Hashable:
        """What labels that were drawn together have in common."""
        return self.metric, self.run, self.order, self.seed


def rest_of_line(sample: Sample, labelling: Labelling) -> str:
    """Return the JSON text of a line after its label.

    >>> place = Labelling(metric="m", run="r", order="random", seed=0, place=1, weight=1.0, priority=2.0, following=1.0)
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
    if not (found.weight > 0.0 and found.priority > 0.0 and found.place > 0):
        msg = f"{FIELD} has a weight, a priority and a place above 0, as ragmetrics label writes it"
        raise DatasetError(msg, file=file, line=line, field=FIELD)
    return found


def answer_key(sample: Sample) -> str:
    """Return a digest of what is labelled: the question, the answer, the contexts.

    Not of the id: a row without one gets one when it is read from a file.
    """
    shown = {name: value for name, value in sample.to_mapping().items() if name not in ("metadata", "id")}
    shown["messages"] = sample.metadata.get("messages")
    return hashlib.sha256(json.dumps(dump(shown), sort_keys=True).encode()).hexdigest()[:24]


def draw_weights(labellings: Sequence[Labelling | None]) -> list[float | None] | None:
    """Return the inverse chance of each row to be drawn, ``None`` for one that was not drawn by chance.

    That is one without a labelling, and one after the first gap in the places of its queue. Where no row has a
    labelling there is no list: all count alike, as far as anybody knows. Give the skipped rows too.

    >>> def place(number, weight, priority, following):
    ...     return Labelling(metric="m", run="r", order="priority", seed=0, place=number, weight=weight,
    ...                      priority=priority, following=following)
    >>> draw_weights([place(1, 0.8, 5.0, 3.0), place(2, 0.2, 3.0, 1.6), place(4, 0.2, 1.0, None), None])
    [2.0, 8.0, None, None]
    """
    if not any(labellings):
        return None
    queues: dict[Hashable, dict[int, Labelling]] = {}
    for found in filter(None, labellings):
        queues.setdefault(found.queue, {})[found.place] = found
    reached, limits = {}, {}
    for queue, places in queues.items():
        last = next(number for number in range(len(places) + 1) if number + 1 not in places)
        reached[queue], limits[queue] = last, places[last].following if last else None
    drawn = (found if found and found.place <= reached[found.queue] else None for found in labellings)
    return [None if it is None else max(1.0, (limits[it.queue] or 0.0) / it.weight) for it in drawn]


def are_alike(labellings: Iterable[Labelling | None]) -> bool:
    """Return whether rows had equal chances: those of a queue in random order, or of bare verdicts."""
    return all(found is None or found.weight == 1.0 for found in labellings)


def read_labels(
    rows: Sequence[DatasetRow], scale: LabelScale
) -> tuple[list[tuple[Sample, float | None, float | None]], bool]:
    """Return rows with their labels from 0 to 1 and inverse chances to be drawn, and whether all had equal chances.

    The label is ``None`` where there is none, the inverse chance for a row that was not drawn by chance; it is 1 where
    nothing is known of how any was drawn. Raises ``DatasetError`` for a row or a label that is wrong.
    """
    found, labellings = [], []
    for row in rows:
        if row.error is not None or row.sample is None:
            raise row.error or DatasetError("it has no sample", file=row.file, line=row.line)
        found.append((row.sample, scale.read(row.sample, file=row.file, line=row.line)))
        labellings.append(labelling_of(row.sample, file=row.file, line=row.line))
    weights = draw_weights(labellings) or [1.0] * len(found)
    read = [(sample, label, weight) for (sample, label), weight in zip(found, weights, strict=True)]
    return read, are_alike(labellings)
