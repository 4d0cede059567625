"""A table of scores: its figures, its worst rows, what became of it since another one, and its exports."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from html import escape
from pathlib import Path
from shutil import get_terminal_size
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from pytest_ragmetrics.core.codec import json_builtins
from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.core.errors import UnknownMetricError, UnscoredError, optional
from pytest_ragmetrics.core.other_tools import TableNames
from pytest_ragmetrics.core.result import NOUN, Direction, MetricResult, pooled
from pytest_ragmetrics.core.sample import Sample, answer_of, turn_of
from pytest_ragmetrics.evaluation.calibration.correction import labels_of, matching_rates
from pytest_ragmetrics.evaluation.calibration.result import Calibration, JudgeRates
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.context import Scoring
from pytest_ragmetrics.metrics.asserting import check_bound
from pytest_ragmetrics.metrics.parameters import check_number
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.runs.clusters import ClusterRule
from pytest_ragmetrics.runs.compare import PlacedRecord, cluster_of, key_of
from pytest_ragmetrics.runs.records import bare_record
from pytest_ragmetrics.runs.tables import EarlierRun, compare_tables
from pytest_ragmetrics.runs.wording.comparisons import TableComparison
from pytest_ragmetrics.runs.wording.failures import explain_unscored, explain_vacuous
from pytest_ragmetrics.runs.wording.figures import NOTHING_TO_CHECK, and_more, counted, readable, score_text, text_table
from pytest_ragmetrics.stats.corrected import corrected_rate, prediction_powered_mean
from pytest_ragmetrics.stats.intervals import Interval, check_confidence, mean_interval, whole_clusters
from pytest_ragmetrics.stats.means import meets
from pytest_ragmetrics.stats.scores import ScoredRow, ScoreSet, Vacuous, goodness, score_set, standing, unit_of
from pytest_ragmetrics.text.unicode import shortened

if TYPE_CHECKING:
    import pandas as pd

# Rows of a printed table, and characters of their ids and questions: at least, and in a notebook.
_SHOWN = 10
_NARROWEST = 20
_IN_HTML = 100
# What is left out of a mean, and the field of Stats with its count.
_LEFT_OUT = {"unscored": "unscored", NOTHING_TO_CHECK: "vacuous"}
# Spreadsheets run what begins like this, some also in full width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One sample with its results by metric, and the reasons of the metrics that gave none.

    Of a conversation in turns, metrics in neither are not for it: those of answers for the whole, and the reverse.
    """

    sample: Sample
    results: Mapping[str, MetricResult] = field(default_factory=dict)
    unscored: Mapping[str, str] = field(default_factory=dict)

    def is_of(self, metric: str) -> bool:
        """Tell whether a metric is for it."""
        return metric in self.results or metric in self.unscored or turn_of(self.sample) is None


@dataclass(frozen=True, kw_only=True, slots=True)
class Stats:
    """One metric over the ``n`` rows of a table that it is for.

    ``mean``, ``min`` and ``max`` are over the rows that are neither ``unscored`` nor ``vacuous`` (nothing to check),
    ``None`` when there is no other. ``std`` is the standard deviation of their scores (of a sample, n - 1), ``None``
    for fewer than two. ``duration`` is the time from the start of the first to the end of the last scoring, in seconds;
    ``None`` where none was timed.
    """

    n: int
    unscored: int
    mean: float | None
    min: float | None
    max: float | None
    std: float | None = None
    duration: float | None = None
    vacuous: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationScore:
    """One metric over the ``turns`` of a conversation that have something to check; ``None`` where there is none.

    ``score`` is the share over all verdicts, where the score of a turn is the share of its own; else the ``mean``.
    """

    score: float | None
    mean: float | None
    worst: float | None
    turns: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation(TableNames):
    """The rows in the order of the samples; ``metrics`` are the names of the columns.

    ``better`` names the metrics whose lower scores are better; ``scales`` has the lowest and the highest score where
    known, ``durations`` the seconds of a metric. ``vacuous`` says whether scores of rows with nothing to check are left
    out of figures and comparisons ("skip") or "count"; methods that take it may override it. Methods take any name of a
    metric, and raise ``KeyError`` for one that was not evaluated.
    """

    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    better: Mapping[str, Direction] = field(default_factory=dict)
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    durations: Mapping[str, float] = field(default_factory=dict)
    vacuous: Vacuous = "skip"

    def scores(self, metric: str) -> list[float | None]:
        """Return the scores of a metric in the order of the rows, vacuous ones too, ``None`` where there is none."""
        metric = self._name(metric)
        return [row.results[metric].value if metric in row.results else None for row in self.rows]

    def mean(self, metric: str, *, skip_unscored: bool = False, vacuous: Vacuous | None = None) -> float:
        """Return the mean score of a metric.

        Raises :class:`UnscoredError` for a row without a score (``skip_unscored=True`` leaves it out), if there is no
        score at all, and if no row had something to check.
        """
        kept, rows = self.vacuous if vacuous is None else vacuous, self._scored(metric)
        return fmean(counted_set(metric, rows, kept, skip_unscored=skip_unscored).scores)

    def by_conversation(self, metric: str) -> dict[str, ConversationScore]:
        """Return the scores of conversations that were scored turn by turn, by their ids.

        >>> talk = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No."}]
        >>> turns = Sample(id="rain", metadata={"messages": talk * 2}).turns()
        >>> results = [{"mood": MetricResult(score, metric="mood")} for score in (0.5, 1.0)]
        >>> rows = [Row(sample=turn, results=each) for turn, each in zip(turns, results, strict=True)]
        >>> Evaluation(metrics=("mood",), rows=tuple(rows)).by_conversation("mood")
        {'rain': ConversationScore(score=0.75, mean=0.75, worst=0.5, turns=2)}
        """
        metric = self._name(metric)
        found: dict[str, list[MetricResult]] = {}
        for row in self.rows:
            name, result = row.sample.metadata.get("conversation"), row.results.get(metric)
            if name is not None and result is not None and turn_of(row.sample) is not None:
                found.setdefault(name, []).append(result)
        scores = {}
        for name, results in found.items():
            values = [result.value for result in results if not result.vacuous]
            worst = min if self.better_of(metric) == "higher" else max
            scores[name] = ConversationScore(
                score=pooled(results).value if values else None,
                mean=fmean(values) if values else None,
                worst=worst(values, default=None),
                turns=len(values),
            )
        return scores

    def __repr__(self) -> str:
        """Return the means and what is not in them: the rows with their texts would fill a terminal."""
        means = []
        for name, found in self.stats().items():
            sides = [f"{number} {word}" for word, field in _LEFT_OUT.items() if (number := getattr(found, field))]
            mean = "-" if found.mean is None else f"{found.mean:.3g}"
            means.append(f"{name} {mean}" + (f" ({', '.join(sides)})" if sides else ""))
        return f"<Evaluation of {counted(len(self.rows), 'row')}: {', '.join(means)}>"

    def __str__(self) -> str:
        columns = get_terminal_size().columns
        widths = [max(map(len, column)) for column in zip(*(row[1:] for row in self._cells(0)), strict=True)]
        lines = text_table(self._cells(max(columns - sum(widths) - 2 * len(widths), _NARROWEST)))
        return "\n".join([*(shortened(line, columns) for line in lines), *self._reasons()])

    def _repr_html_(self) -> str:
        head, *rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self._cells(_IN_HTML))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        below = "".join(f"<p>{escape(line)}</p>" for line in self._reasons())
        return f"<table><thead><tr>{head.replace('td>', 'th>')}</tr></thead><tbody>{body}</tbody></table>{below}"

    def _cells(self, width: int) -> list[list[str]]:
        def cell(row: Row, metric: str) -> str:
            entry = _entry(row, metric)
            state = standing(entry, self.vacuous)
            return score_text(entry.score, unit=entry.unit) if state == "counted" and entry.score is not None else state

        stats = [*self.stats().values()]
        units = [unit_of(_entry(row, metric) for row in self.rows) for metric in self.metrics]
        means = [
            "-" if it.mean is None else score_text(it.mean, unit=unit) for it, unit in zip(stats, units, strict=True)
        ]
        left_out = [(word, [getattr(found, field) for found in stats]) for word, field in _LEFT_OUT.items()]
        counts = [[word, *map(str, numbers)] for word, numbers in left_out if any(numbers)]
        rows = []
        for row in self.worst(_SHOWN):
            title = ": ".join(filter(None, (row.sample.id, row.sample.user_input)))
            rows.append(
                [readable(title, width), *(cell(row, metric) if row.is_of(metric) else "" for metric in self.metrics)]
            )
        more = [[line, *("" for _ in self.metrics)] for line in and_more(len(self.rows), shown=_SHOWN, indent="")]
        count = counted(len(self.rows), "row")
        if counts:
            counts.insert(0, ["in the mean", *(f"{it.n - it.unscored - it.vacuous} of {it.n}" for it in stats)])
        return [["", *self.metrics], ["mean" if counts else f"mean of {count}", *means], *counts, *rows, *more]

    def _reasons(self) -> list[str]:
        found = ((name, row.reason or "") for name in self.metrics for row in self._score_set(name, None).unscored[:1])
        return [readable(f"{name}: unscored; the first: {reason.removeprefix(f'{name}: ')}") for name, reason in found]

    def overall(
        self, weights: Mapping[str, float] | None = None, *, skip_unscored: bool = False, vacuous: Vacuous | None = None
    ) -> float:
        """Return the weighted mean of the metrics' means, each brought to 0..1 with 1 the best.

        ``weights`` are by name; metrics without one do not count, and without ``weights`` all count the same. Raises
        ``ValueError`` for negative, infinite or all-zero weights and for a metric on a scale without known ends, and
        :class:`UnscoredError` as ``mean``.

        >>> rows = [Row(sample=Sample(), results={name: MetricResult(score, metric=name)
        ...                                       for name, score in {"brevity": 1.0, "noise": 0.5}.items()})]
        >>> table = Evaluation(metrics=("brevity", "noise"), rows=tuple(rows), better={"noise": "lower"})
        >>> table.overall(), table.overall({"brevity": 3, "noise": 1})
        (0.75, 0.875)
        """
        weighted = dict.fromkeys(self.metrics, 1.0) if weights is None else weights
        if not isinstance(weighted, Mapping):
            raise TypeError(f"weights must map names of metrics to numbers, not be of type {type(weights).__name__}")
        weighted = {self._name(metric): weight for metric, weight in weighted.items()}
        for metric, weight in weighted.items():
            check_number(f"the weight of {metric}", weight)
        total = sum(weighted.values())
        if not total:
            raise ValueError(f"weights must name a metric with a weight above 0; there are {', '.join(self.metrics)}")
        shares = []
        for metric, weight in weighted.items():
            if weight:
                mean = self.mean(metric, skip_unscored=skip_unscored, vacuous=vacuous)
                low, high = self.scales.get(metric, (0.0, 1.0))
                if not (math.isfinite(low) and math.isfinite(high)):
                    msg = f"{metric} has a scale from {low:g} to {high:g}, which has no share: leave it out of weights"
                    raise ValueError(msg)
                shares.append(weight * goodness(mean, (low, high), self.better_of(metric)))
        return sum(shares) / total

    def corrected_mean(
        self,
        metric: str,
        *,
        tpr: Interval | float | None = None,
        tnr: Interval | float | None = None,
        calibration: Calibration | JudgeRates | str | Path | None = None,
        labels: str | Path | Sequence[object] | None = None,
        threshold: float | None = None,
        confidence: float = 0.95,
        skip_unscored: bool = False,
        vacuous: Vacuous | None = None,
    ) -> Interval:
        """Return the share of answers that people would find good, as far as the judge's errors are known.

        ``calibration`` is what ``rag_calibrated`` returned or ``ragmetrics calibrate --json`` wrote; or ``tpr`` and
        ``tnr`` are how often a judge is right about good and bad answers at a ``threshold`` (Rogan and Gladen 1978).
        Otherwise human labels of a random part correct the mean score, or with a ``threshold`` the pass rate
        (prediction-powered inference, Angelopoulos et al. 2023): ``metadata["label"]``, or ``labels``, a file of
        ``ragmetrics label`` or such rows.

        The interval covers the uncertainty of judge and samples, which are dependent with the same
        ``metadata["cluster"]``. Raises ``ValueError`` if nothing is known of the judge, it is no better than chance, or
        the calibration belongs to another judge, metric or threshold; :class:`UnscoredError` as ``mean``;
        :class:`RagMetricsError` for an unreadable file or label.

        >>> results = [MetricResult(score, metric="brevity") for score in [1.0] * 8 + [0.0] * 2]
        >>> rows = tuple(Row(sample=Sample(), results={"brevity": result}) for result in results)
        >>> table = Evaluation(metrics=("brevity",), rows=rows)
        >>> round(table.corrected_mean("brevity", tpr=0.9, tnr=0.7, threshold=0.5).estimate, 3)
        0.833
        """
        self.mean(metric, skip_unscored=skip_unscored, vacuous=vacuous)  # raises where there is no mean
        if threshold is not None:
            check_bound("threshold", threshold, metric=metric, scale=self._scale(metric))
        rows = [row for row in self.rows if standing(_entry(row, metric), vacuous or self.vacuous) == "counted"]
        check_confidence(confidence)
        results, samples = [row.results[metric] for row in rows], [row.sample for row in rows]
        better, clusters = self.better_of(metric), whole_clusters(map(cluster_of, samples))
        values, bound = [result.value for result in results], threshold
        if calibration is None and tpr is None and tnr is None:
            scores = [goodness(value, self.scales.get(metric, (0.0, 1.0)), better) for value in values]
            if threshold is not None:
                scores = [float(meets(value, threshold, better)) for value in values]
            given = labels_of(samples, labels, binary=threshold is not None)
            return prediction_powered_mean(scores, given, clusters=clusters, confidence=confidence)
        if labels is not None:
            raise ValueError("give labels=, or what a calibration found, not both")
        if calibration is not None:
            if tpr is not None or tnr is not None:
                raise ValueError("give calibration=, or tpr= and tnr=, not both")
            rates = matching_rates(calibration, metric, results, better, threshold=threshold, confidence=confidence)
            tpr, tnr, bound = rates.tpr, rates.tnr, rates.threshold
        if tpr is None or tnr is None or bound is None:
            msg = "to correct by rates give tpr=, tnr= and the threshold= that they were found at, or calibration="
            raise ValueError(msg)
        passed = [meets(value, bound, better) for value in values]
        return corrected_rate(mean_interval(passed, clusters=clusters, confidence=confidence), tpr=tpr, tnr=tnr)

    def stats(self, *, vacuous: Vacuous | None = None) -> dict[str, Stats]:
        """Return the figures of every metric, by name."""
        stats = {}
        for metric in self.metrics:
            found = self._score_set(metric, vacuous)
            stats[metric] = Stats(
                n=len(found.counted) + len(found.unscored) + len(found.vacuous),
                unscored=len(found.unscored),
                mean=fmean(found.scores) if found.counted else None,
                min=min(found.scores, default=None),
                max=max(found.scores, default=None),
                std=stdev(found.scores) if len(found.counted) > 1 else None,
                duration=self.durations.get(metric),
                vacuous=len(found.vacuous),
            )
        return stats

    def better_of(self, metric: str) -> Direction:
        """Return which scores of a metric are the good ones."""
        return self.better.get(self._name(metric), "higher")

    def worst(self, n: int = 10, *, metric: str | None = None) -> tuple[Row, ...]:
        """Return the ``n`` rows with the worst score, of one metric or on average; unscored rows come first.

        The average counts from the top of each scale. Rows with nothing to check come last.
        """
        names = (metric,) if metric is not None else self.metrics
        signs = {name: -1.0 if self.better_of(name) == "lower" else 1.0 for name in names}
        tops = {name: sum(self.scales.get(name, (0.0, 1.0))) if signs[name] < 0 else 0.0 for name in names}
        for name in (name for name, top in tops.items() if math.isinf(top)):
            tops[name] = max(self._score_set(name, "count").scores, default=0.0)

        def order(row: Row) -> tuple[bool, float]:
            entries = {name: _entry(row, name) for name in names if row.is_of(name)}
            is_scored = all(entry.score is not None for entry in entries.values())
            found = {name: entry for name, entry in entries.items() if standing(entry, self.vacuous) == "counted"}
            scores = [tops[name] + signs[name] * (entry.score or 0.0) for name, entry in found.items()]
            return is_scored, fmean(scores) if scores else math.inf if is_scored else -math.inf

        return tuple(sorted(self.rows, key=order)[:n])

    def failures(
        self, min: float | Mapping[str, float] | None = None, *, max: float | Mapping[str, float] | None = None
    ) -> tuple[Row, ...]:
        """Return the rows with a score below ``min`` or above ``max``, or without a score that one of them is for.

        A number is for every metric of its direction (``max`` where lower is better), a mapping is by name. Raises
        ``ValueError`` if neither is given.
        """
        if min is None and max is None:
            raise ValueError("give min= or max=, the score to hold the rows against")
        least, most = self._bounds(min, "higher"), self._bounds(max, "lower")

        def fails(row: Row) -> bool:
            return (
                any(row.is_of(name) and name not in row.results for name in (*least, *most))
                or any(name in row.results and row.results[name].value < bound for name, bound in least.items())
                or any(name in row.results and row.results[name].value > bound for name, bound in most.items())
            )

        return tuple(row for row in self.rows if fails(row))

    def compare(
        self, other: Evaluation, *, confidence: float = 0.95, vacuous: Vacuous | None = None
    ) -> TableComparison:
        """Return what changed from ``other``, an earlier table, to this one, for every metric that both have.

        Rows are paired as in ``assert_not_worse``; those that are not, or are unscored or with nothing to check in one
        table, are listed. Raises ``ValueError`` for an id that occurs twice in one table, and if different judges
        scored the same row.

        >>> def table(**scores):
        ...     rows = [Row(sample=Sample(id=name), results={"brevity": MetricResult(score, metric="brevity")})
        ...             for name, score in scores.items()]
        ...     return Evaluation(metrics=("brevity",), rows=tuple(rows))
        >>> print(table(a=1.0, b=0.5, c=1.0).compare(table(c=0.5, b=0.5, a=1.0)))
        brevity 0.67 -> 0.83: +0.167 (95 % interval -0.67..+0.77, n=3)
          regressed: 0
          improved: 1
            +0.50  0.50 -> 1.00  c
          unchanged: 2
        """
        if not isinstance(other, Evaluation):
            kind = type(other).__name__
            raise TypeError(f"compare() takes an earlier Evaluation, not {kind}; assert_not_worse() reads files")
        here, there = compared_records(self), EarlierRun(records=compared_records(other))
        kept = self.vacuous if vacuous is None else vacuous
        return compare_tables(here, there, confidence=confidence, vacuous=kept, clusters=cluster_rule())

    def to_json(self, file: str | Path | None = None) -> str:
        """Return the table as JSON text, what looks like a key masked, and write it to a file if one is named.

        In ``metadata``, values unknown to JSON become text, numbers that are not finite ``null``, and what is nested in
        a hundred others ``"..."``.
        """
        rows = [
            {
                "sample": json_builtins(row.sample.to_mapping()),
                "scores": {name: result.value for name, result in row.results.items()},
                "reasons": {name: result.reason for name, result in row.results.items()},
                "judges": {name: result.judge for name, result in row.results.items()},
                "vacuous": [name for name, result in row.results.items() if result.vacuous],
                "unscored": dict(row.unscored),
            }
            for row in self.rows
        ]
        better = {metric: self.better_of(metric) for metric in self.metrics}
        nouns = {
            name: next((row.results[name].noun for row in self.rows if name in row.results), NOUN)
            for name in self.metrics
        }
        table = {"metrics": self.metrics, "better": better, "nouns": nouns, "rows": rows}
        return _written(json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False) + "\n", file)

    def to_csv(self, file: str | Path | None = None) -> str:
        """Return the table as CSV text with a column per metric, and write it to a file if one is named.

        A score that is left out of figures is "nothing to check". Texts that a spreadsheet would run as a formula get
        an apostrophe in front.
        """
        out = io.StringIO(newline="")
        writer = csv.writer(out)
        writer.writerow(["id", "user_input", "response", *map(_cell, self.metrics), "unscored"])
        left_out = {"vacuous": NOTHING_TO_CHECK, "unscored": ""}
        for row in self.rows:
            texts = [_cell(text) for text in (row.sample.id, row.sample.user_input, row.sample.response)]
            entries = [_entry(row, name) for name in self.metrics]
            scores = [left_out.get(standing(entry, self.vacuous), entry.score) for entry in entries]
            writer.writerow([*texts, *scores, _cell("; ".join(row.unscored.values()))])
        return _written(out.getvalue(), file)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a data frame, one row a sample; needs pandas.

        A score is missing where there is none, and where it is left out of figures.
        """
        pd = optional("pandas", "to_pandas()", "pandas")
        columns = {
            name: [
                it.score if standing(it := _entry(row, name), self.vacuous) == "counted" else None for row in self.rows
            ]
            for name in self.metrics
        }
        return pd.DataFrame([row.sample.to_mapping() for row in self.rows]).assign(**columns)

    def _bounds(self, bound: float | Mapping[str, float] | None, direction: Direction) -> Mapping[str, float]:
        if bound is None:
            return {}
        if not isinstance(bound, Mapping):
            bounds = {metric: bound for metric in self.metrics if self.better_of(metric) == direction}
            if not bounds:
                other = "max" if direction == "higher" else "min"
                raise ValueError(f"there is no metric whose {direction} scores are better; give {other}=")
        else:
            bounds = {self._name(metric): value for metric, value in bound.items()}
        for metric, value in bounds.items():
            check_bound(f"the bound of {metric}", value, metric=metric, scale=self._scale(metric))
        return bounds

    def _scale(self, metric: str) -> tuple[float, float] | None:
        return fitting(self.scales.get(metric), (row.results[metric] for row in self.rows if metric in row.results))

    def _scored(self, metric: str) -> list[ScoredRow]:
        """Return the rows that a metric is for."""
        metric = self._name(metric)
        return [_entry(row, metric) for row in self.rows if row.is_of(metric)]

    def _score_set(self, metric: str, vacuous: Vacuous | None) -> ScoreSet[ScoredRow]:
        return score_set(self._scored(metric), self.vacuous if vacuous is None else vacuous)

    def _name(self, metric: str) -> str:
        """Return the column of a metric given by any of its names."""
        if metric in self.metrics:
            return metric
        with suppress(ValueError):
            if (name := metric_named(str(metric)).name) in self.metrics:
                return name
        near = get_close_matches(str(metric), self.metrics, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownMetricError(f"{metric!r} was not evaluated; there are {', '.join(self.metrics)}{hint}")


def cluster_rule() -> ClusterRule:
    """Return which rows are dependent where two runs are compared: as the session says."""
    session = context.current().session
    return "passages" if session is None else session.clusters


def fitting(scale: tuple[float, float] | None, scores: Iterable[float]) -> tuple[float, float] | None:
    """Return the scale of a metric, ``None`` where it has none or a score is beyond it."""
    # Plain floats: a result remembers what it was compared with.
    return scale if scale is not None and all(scale[0] <= float(score) <= scale[1] for score in scores) else None


def counted_set(
    metric: str, rows: Sequence[ScoredRow], vacuous: Vacuous, *, skip_unscored: bool
) -> ScoreSet[ScoredRow]:
    """Return the rows of a set by their standing; raise ``UnscoredError`` where it has no figure."""
    found = score_set(rows, vacuous)
    if not rows:
        raise UnscoredError(f"{metric}: there are no rows")
    none_scored = len(found.unscored) == len(rows)
    if found.unscored and (none_scored or not skip_unscored):
        hint = "" if none_scored else "; skip_unscored=True leaves them out"
        raise UnscoredError("\n".join(explain_unscored(metric, len(rows), found.unscored, hint=hint)))
    if not found.counted:
        raise UnscoredError(explain_vacuous(metric, len(found.vacuous)))
    return found


def compared_records(
    table: Evaluation, metrics: Iterable[str] | None = None, *, unique: bool = True
) -> dict[str, list[PlacedRecord]]:
    """Return the scores of metrics, by default of all, as they are compared.

    Raises ``ValueError`` for two rows of one sample, unless they need not be ``unique``.
    """
    rows: list[tuple[str, Row]] = [(key_of(row.sample), row) for row in table.rows]
    counts = Counter((key, answer_of(row.sample)) for key, row in rows)
    if unique and (twice := [key for (key, _), count in counts.items() if count > 1]):
        kind = "id" if dict(rows)[twice[0]].sample.id else "content"
        msg = f"two rows have the {kind} {twice[0]!r}; give each sample its own id"
        raise ValueError(f'{msg}, or several answers to one row their numbers as metadata={{"answer": 2}}')
    found: dict[str, list[PlacedRecord]] = {}
    for metric in table.metrics if metrics is None else metrics:
        better, scale, placed = table.better_of(metric), table.scales.get(metric), found.setdefault(metric, [])
        for number, (key, row) in enumerate(rows):
            if not row.is_of(metric):
                continue
            outcome = row.results[metric] if metric in row.results else UnscoredError("")
            scoring = Scoring(metric=metric, sample=row.sample, outcome=outcome, better=better)
            record = replace(bare_record(scoring), scale=scale)
            placed.append(PlacedRecord(test="", number=number, record=record, name=key))
    return found


def _entry(row: Row, metric: str) -> ScoredRow:
    result = row.results.get(metric)
    if result is None:
        name = row.sample.id or row.sample.user_input or "a row without a question"
        return ScoredRow(name=name, score=None, reason=row.unscored.get(metric))
    return ScoredRow(name="", score=result.value, vacuous=result.vacuous, unit=result.unit)


def _cell(text: str | None) -> str:
    return f"'{text}" if text and text.startswith(_FORMULA) else text or ""


def _written(text: str, file: str | Path | None) -> str:
    """Return a text with what looks like a key masked, and write it to a file if one is named."""
    text = masked(text)
    if file is not None:
        # JSON escapes half a surrogate pair so, which has no UTF-8 form.
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    return text
