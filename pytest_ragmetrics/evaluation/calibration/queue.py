"""The answers of a run in the order to label them, and the file that takes their labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.files import append_line, mended_lines
from pytest_ragmetrics.core.locks import written_alone
from pytest_ragmetrics.evaluation.calibration.labels import (
    Labelling,
    answer_key,
    drawn,
    labelling_of,
    line,
    rest_of_line,
)
from pytest_ragmetrics.evaluation.calibration.marks import read_labelled
from pytest_ragmetrics.evaluation.calibration.result import CalibrationError, LabelScale
from pytest_ragmetrics.runs.compare import cluster_of
from pytest_ragmetrics.runs.records import Document, Record
from pytest_ragmetrics.stats.corrected import prediction_powered_mean
from pytest_ragmetrics.stats.intervals import Interval, whole_clusters
from pytest_ragmetrics.stats.scores import common_scale, goodness
from pytest_ragmetrics.stats.sequential import uniform

_BEGINNING = b'{"label": '
_WORDS = {1: "good", 0: "bad", None: "skipped"}


@dataclass(frozen=True, kw_only=True, slots=True)
class QueuedRow:
    """An answer to label: its record, how it was drawn, and its share, the score from 0 (worst) to 1."""

    record: Record
    labelling: Labelling
    share: float

    @property
    def rest(self) -> str:
        """The line of the row after its label."""
        return rest_of_line(self.record.sample, self.labelling)


def label_queue(document: Document, metric: str, *, seed: int = 0) -> list[QueuedRow]:
    """Return the answers of a run that a metric scored, in a random order that depends on the seed and them alone.

    Answers that were scored twice are one, and answers with nothing to check are none. Raises
    :class:`CalibrationError` where no answer is left.
    """
    scored = [record for test in document.tests for record in test.records]
    found: dict[str, Record] = {}
    for record in scored:
        if record.metric == metric and record.score is not None and not record.vacuous:
            found.setdefault(answer_key(record.sample), record)
    if not found:
        raise CalibrationError(_nothing(metric, scored))
    values = [record.score or 0.0 for record in found.values()]
    low, high = common_scale(found.values()) or (min(values), max(*values, min(values) + 1.0))
    ids: set[str | None] = set()
    rows = []
    for place, key in enumerate(sorted(found, key=lambda key: (uniform(str(seed), key), key)), 1):
        sample = found[key].sample
        # Ids are unique in a data set.
        record = replace(found[key], sample=replace(sample, id=None)) if sample.id in ids else found[key]
        ids.add(sample.id)
        labelling = Labelling(metric=metric, run=document.run.started, seed=seed, place=place)
        share = goodness(record.score or 0.0, (low, high), record.better)
        rows.append(QueuedRow(record=record, labelling=labelling, share=share))
    return rows


def _nothing(metric: str, scored: Sequence[Record]) -> str:
    names = sorted({record.metric for record in scored})
    if metric in names:
        return f"{metric} has no score in this run with anything to check: there is nothing to label"
    if not names:
        return "this run has no scores, and so nothing to label"
    near = get_close_matches(metric[:40], names, 1)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}"
    return f"this run has no scores of {metric}; {hint}"


def labelled_mean(queue: Sequence[QueuedRow], labels: Mapping[int, int | None]) -> Interval:
    """Return the share of good answers in the queue, by the labels of some places."""
    chosen = drawn([row.labelling if row.labelling.place in labels else None for row in queue])
    given = [
        labels.get(row.labelling.place) if by_chance else None for row, by_chance in zip(queue, chosen, strict=True)
    ]
    scores = [row.share for row in queue]
    clusters = whole_clusters(cluster_of(row.record.sample) for row in queue)
    return prediction_powered_mean(scores, given, clusters=clusters)


@contextmanager
def label_file(path: Path, queue: Sequence[QueuedRow]) -> Iterator[LabelFile]:
    """Open the labels of a queue; raises :class:`CalibrationError` where another process has the file open."""
    msg = f"{path}: another ragmetrics label is writing it; give each labeller a file, then --import one"
    with written_alone(path, CalibrationError(msg)):
        yield LabelFile(path, queue)


class LabelFile:
    """The labels of a queue in a file: one line a row, written when it is labelled.

    A last line that a killed process left half written is removed, one that lacks its end gets it. Raises
    :class:`CalibrationError` naming file and line for what is no label of this queue.
    """

    def __init__(self, path: Path, queue: Sequence[QueuedRow]) -> None:
        self._path, self._queue = path, queue
        #: Labels by the place of the row, in the order of the lines; ``None`` for a skipped row.
        self.labels: dict[int, int | None] = {}
        if path.exists():
            data = path.read_bytes()
            mended = mended_lines(data, _BEGINNING)
            os.truncate(path, min(len(data), len(mended)))
            self.labels = dict(self._read(path))
            # A file that is refused stays as it is.
            with path.open("ab") as stream:
                stream.write(mended[len(data) :])

    def next(self) -> QueuedRow | None:
        """Return the first row that has no line."""
        return next((row for row in self._queue if row.labelling.place not in self.labels), None)

    def add(self, row: QueuedRow, label: int | None) -> None:
        """Write the label of a row, ``None`` for one that is skipped."""
        append_line(self._path, line(label, row.rest))
        self.labels[row.labelling.place] = label

    def undo(self) -> bool:
        """Remove the last line; return whether there was one."""
        if not self.labels:
            return False
        os.truncate(self._path, self._path.read_bytes().rstrip().rfind(b"\n") + 1)
        self.labels.popitem()
        return True

    def take(self, path: Path) -> int:
        """Add the labels of another file of this queue; return how many were new.

        Raises :class:`CalibrationError` for a row that has another label here, before any is added.
        """
        found = dict(self._read(path))
        for place, label in found.items():
            if self.labels.get(place, label) != label:
                words = f"{_WORDS[label]} there and {_WORDS[self.labels[place]]} in {self._path}"
                msg = f"{path}: the row in place {place} is {words}: remove one of the lines"
                raise CalibrationError(msg)
        new = [row for row in self._queue if row.labelling.place in found.keys() - self.labels.keys()]
        for row in new:
            self.add(row, found[row.labelling.place])
        return len(new)

    def _read(self, path: Path) -> Iterator[tuple[int, int | None]]:
        if not path.read_bytes().strip():
            return
        seen = set()
        rows, marks = read_labelled(path, base=Path.cwd())
        if marks and path == self._path:
            raise CalibrationError(f"{path} has marks of findings beside its labels: keep these in a file of their own")
        for row in rows:
            if row.error is not None or row.sample is None:
                raise row.error or DatasetError("it has no sample", file=row.file, line=row.line)
            found = labelling_of(row.sample, file=row.file, line=row.line)
            fault = self._fault(found, answer_key(row.sample))
            if found is None or fault or found.place in seen:
                msg = fault or f"the row in place {found and found.place} has a label above: remove one of the lines"
                raise DatasetError(msg, file=row.file, line=row.line)
            seen.add(found.place)
            label = LabelScale().read(row.sample, file=row.file, line=row.line)
            yield found.place, None if label is None else int(LabelScale().is_good(label))

    def _fault(self, found: Labelling | None, key: str) -> str | None:
        if found is None:
            return "this line was not written by ragmetrics label: name another file with -o"
        ours = self._queue[0].labelling
        if found.metric != ours.metric:
            return f"this is a label of {found.metric}, not of {ours.metric}: name another file with -o"
        if found.seed != ours.seed:
            return f"this file was begun with --seed {found.seed}: go on with it"
        place = found.place
        row = self._queue[place - 1] if place <= len(self._queue) else None
        if row is None or row.labelling != found or answer_key(row.record.sample) != key:
            return f"this is a label of another run, of {found.run}, not of {ours.run}: name another file with -o"
        return None
