"""Answers to the same rows in two or three columns: two models, two prompts, two retrievers, and which is better.

Columns are runs, or the values of a key of the metadata in one run; their rows are the pairs of ``runs.compare``.
:func:`column_lines` says what they show in lines, ``templates/columns.html.jinja`` on a page.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from statistics import fmean
from typing import Literal

from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.runs.clusters import ClusterRule, clusters_of
from pytest_ragmetrics.runs.compare import (
    Kind,
    PlacedRecord,
    TestChange,
    changed_rules,
    gain_of,
    kind_of,
    pair_records,
    placed_records,
)
from pytest_ragmetrics.runs.records import Document, Judging, Record, Setting
from pytest_ragmetrics.runs.tables import difference_of
from pytest_ragmetrics.runs.wording.comparisons import RowChange, probability_text, side_text
from pytest_ragmetrics.runs.wording.figures import SHOWN, and_more, counted, figure_text, format_interval, named
from pytest_ragmetrics.stats.drop import holm
from pytest_ragmetrics.stats.paired import Difference
from pytest_ragmetrics.stats.permutation import PairedScores
from pytest_ragmetrics.stats.scores import ROUNDING, common_scale, standing, unit_of

#: How many columns there may be.
COLUMNS = (2, 3)
#: A difference is one where as rare a one comes by chance, of all that are looked at together.
ALPHA = 0.05
#: Who wins a row: a column by its place, nobody ("tie"), another one by each metric ("mixed"), or nothing was compared.
Winner = int | Literal["tie", "mixed", "none"]
_NOBODY: Mapping[Winner, str] = {"tie": "tie", "mixed": "mixed", "none": "not compared"}


class ColumnsError(RagMetricsError):
    """Columns cannot be compared; says which, and what to choose instead."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowScores:
    """One metric in a row: its records, the scores that are compared, ``None`` where there is none, and who wins.

    ``best`` are the places of the best ones, unless all are; ``spread`` is how far they are apart on the scale.
    """

    metric: str
    records: tuple[Record | None, ...]
    scores: tuple[float | None, ...]
    best: tuple[int, ...]
    winner: Winner
    spread: float

    @property
    def texts(self) -> list[str]:
        """The scores in words."""
        return [
            "\u2013" if it is None else "not compared" if score is None and standing(it) == "counted" else side_text(it)
            for it, score in zip(self.records, self.scores, strict=True)
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedRow:
    """One row of all columns: its question, an answer each (``None`` without one), and the scores by metric.

    ``spread`` is the largest difference of its scores, as a share of the metric's scale.
    """

    key: str
    question: str
    answers: tuple[str | None, ...]
    scores: tuple[RowScores, ...]
    winner: Winner
    spread: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedMetric:
    """One metric in two columns, by their places, over the rows that both have a score of.

    ``kinds`` counts what became of the rows from the first of them to the second; ``p`` is adjusted for all pairs of
    the comparison.
    """

    places: tuple[int, int]
    difference: Difference
    kinds: Counter[Kind]
    p: float
    winner: Winner


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricColumns:
    """One metric: the mean of each column over the ``n`` rows that all have a score of, and the pairs of columns.

    ``why`` says why nothing is compared where there are no pairs, else why so many scores ``apart`` are not.
    """

    metric: str
    better: Direction
    n: int
    means: tuple[float | None, ...]
    pairs: tuple[PairedMetric, ...]
    why: str = ""
    apart: int = 0
    unit: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedColumns:
    """Columns against each other; ``rows`` come the largest difference first, ``alone`` counts those not in all."""

    names: tuple[str, ...]
    metrics: tuple[MetricColumns, ...]
    rows: tuple[ComparedRow, ...]
    alone: tuple[int, ...]


def compare_runs(runs: Sequence[tuple[str, Document]]) -> ComparedColumns:
    """Return what runs say, each by its name, to the rows that all of them have.

    Raises :class:`ColumnsError` where they have no row in common.
    """
    columns = [
        _Column(name, placed_records(it.tests), it.run.judging, clusters=it.run.settings.get("clusters"))
        for name, it in runs
    ]
    names = " and ".join(name for name, _ in runs)
    return _compared(columns, f"{names} have no row in common: give the samples ids that stay the same")


def compare_values(document: Document, key: str, values: Sequence[str] = ()) -> ComparedColumns:
    """Return what two or three values of a key of the metadata say to the same questions.

    Raises :class:`ColumnsError` for a key or a value that no sample has, where there are too many to choose from, and
    where they have no question in common.
    """
    found: dict[str, list[Record]] = {}
    keys: dict[str, None] = {}
    for record in (record for test in document.tests for record in test.records):
        keys.update(dict.fromkeys(record.sample.metadata))
        if (value := record.sample.metadata.get(key)) is not None:
            found.setdefault(str(value), []).append(record)
    if not found:
        known = ", ".join(map(named, sorted(keys))) or "none"
        raise ColumnsError(f"no sample has the metadata {key!r}; there are {known}")
    there = ", ".join(map(named, sorted(found)))
    if missing := [value for value in values if value not in found]:
        raise ColumnsError(f"no sample has {key} {missing[0]!r}; there are {there}")
    chosen = list(values) or sorted(found)
    if len(chosen) not in COLUMNS:
        raise ColumnsError(f"{key} has {counted(len(found), 'value')}: choose two or three of {there}")
    rule = document.run.settings.get("clusters")
    columns = [_Column(value, list(_by_question(found[value])), clusters=rule) for value in chosen]
    return _compared(columns, f"{' and '.join(map(named, chosen))} have no question in common")


def _by_question(records: Iterable[Record]) -> Iterator[PlacedRecord]:
    """Yield records under the questions of their samples; the second answer to a question is another row."""
    seen: defaultdict[str, dict[tuple[str | None, str | None], int]] = defaultdict(dict)
    for at, record in enumerate(records):
        if question := " ".join((record.sample.user_input or "").split()):
            answers = seen[question]
            number = answers.setdefault((record.sample.id, record.sample.response), len(answers) + 1)
            name = f"{question} ({number})" if number > 1 else question
            yield PlacedRecord(test="", number=at, record=record, name=name)


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    records: Sequence[PlacedRecord]
    judging: Mapping[str, Judging] = field(default_factory=dict)
    clusters: Setting = "passages"


def _compared(columns: Sequence[_Column], nothing: str) -> ComparedColumns:
    """Return what columns say to the rows that all of them have; raise with a message where there are none."""
    joined, reasons, alone = _joined(columns)
    known = [{it.record.metric for it in column.records} for column in columns]
    shared = sorted(set.intersection(*known))
    if not joined:
        names = " and ".join(named(column.name) for column in columns)
        raise ColumnsError(nothing if shared else f"{names} have no metric in common")
    rows = [_row(key, cells, shared, reasons) for key, cells in joined.items()]
    scored = {
        metric: {row.key: it for row in rows for it in row.scores if it.metric == metric}
        for metric in sorted(set.union(*known))
    }
    rule: ClusterRule = "named" if any(column.clusters == "named" for column in columns) else "passages"
    pairs = _pairs(scored, len(columns), rule)
    metrics = []
    for metric, found in scored.items():
        whole = [it.scores for it in found.values() if None not in it.scores]
        apart = [reasons[id(it)] for row in found.values() for it in row.records if id(it) in reasons]
        lacking = [named(it.name) for it, metrics_of in zip(columns, known, strict=True) if metric not in metrics_of]
        why = f"not scored in {', '.join(lacking)}" if lacking else "; ".join(dict.fromkeys(apart))
        metrics.append(
            MetricColumns(
                metric=metric,
                better=next(it.record.better for each in columns for it in each.records if it.record.metric == metric),
                n=len(whole),
                means=tuple(map(fmean, zip(*whole, strict=True))) or (None,) * len(columns),
                pairs=tuple(pairs[metric]),
                why=why or ("" if pairs[metric] else "no row has a score in two of them"),
                apart=len(apart),
                unit=unit_of(it.record for each in columns for it in each.records if it.record.metric == metric),
            )
        )
    rows.sort(key=lambda row: -row.spread)
    return ComparedColumns(
        names=tuple(column.name for column in columns), metrics=tuple(metrics), rows=tuple(rows), alone=alone
    )


def _joined(columns: Sequence[_Column]) -> tuple[dict[str, list[dict[str, Record]]], dict[int, str], tuple[int, ...]]:
    """Return the rows that all columns have, why a score is not compared by its record, and how many others each has.

    A row is a sample of the first column with those that its scores are paired with; it has the records of each column
    by metric, pairs before others. A score is compared where it can be with those of the columns before.
    """
    rows: dict[str, list[dict[str, Record]]] = {it.label: [{} for _ in columns] for it in columns[0].records}
    row_of: list[dict[str, str]] = [{key: key for key in rows}, *({} for _ in columns[1:])]
    reasons: dict[int, str] = {}
    for first, second, old, new, pair in _paired(columns):
        if pair.obstacles and id(old.record) not in reasons:
            reasons.setdefault(id(new.record), _why_not(pair, old.record.judge, new.record.judge))
        if (
            first == 0
            and "question" not in pair.obstacles
            and row_of[second].setdefault(new.label, old.label) == old.label
        ):
            cells = rows[old.label]
            if cells[0].setdefault(pair.metric, old.record) is old.record:
                cells[second].setdefault(pair.metric, new.record)
    for place, column in enumerate(columns):
        for it in column.records:
            metric, cells = it.record.metric, rows.get(row_of[place].get(it.label, ""), [])
            if cells and metric not in cells[place]:
                if any(metric in cell for cell in cells):
                    reasons.setdefault(id(it.record), "scored by another test")
                cells[place][metric] = it.record
    whole = {key: cells for key, cells in rows.items() if all(cells)}
    samples = ({it.label for it in column.records} for column in columns)
    alone = (sum(found.get(key) not in whole for key in keys) for found, keys in zip(row_of, samples, strict=True))
    return whole, reasons, tuple(alone)


def _paired(columns: Sequence[_Column]) -> Iterator[tuple[int, int, PlacedRecord, PlacedRecord, TestChange]]:
    """Yield the pairs of any two columns with the places of these."""
    for first, second in combinations(range(len(columns)), 2):
        old, new = columns[first], columns[second]
        for pair in pair_records(new.records, old.records, changed_rules(new.judging, old.judging)):
            if pair.old is not None and pair.new is not None:
                yield first, second, pair.old, pair.new, pair


def _why_not(pair: TestChange, *judges: str | None) -> str:
    if "metric" in pair.obstacles:
        return "another metric of this name in one of them"
    if "judge" in pair.obstacles:
        return f"scored by {' and '.join(sorted(named(it or '') for it in judges))}: score all with one judge"
    return pair.why


def _row(
    key: str, cells: Sequence[Mapping[str, Record]], metrics: Iterable[str], reasons: Container[int]
) -> ComparedRow:
    scores = tuple(
        _row_scores(metric, [cell.get(metric) for cell in cells], reasons)
        for metric in metrics
        if any(metric in cell for cell in cells)
    )
    winners = {score.winner for score in scores} - {"none"}
    single = winners - {"tie"}
    winner: Winner = "none" if not winners else "tie" if not single else "mixed" if len(single) > 1 else single.pop()
    samples = [[record.sample for record in cell.values()] for cell in cells]
    return ComparedRow(
        key=key,
        question=next((sample.user_input for sample, *_ in samples if sample.user_input), ""),
        answers=tuple(next((it.response for it in cell if it.response is not None), None) for cell in samples),
        scores=scores,
        winner=winner,
        spread=max((score.spread for score in scores), default=0.0),
    )


def _row_scores(metric: str, records: Sequence[Record | None], reasons: Container[int]) -> RowScores:
    known = [record for record in records if record is not None]
    scores = [
        record.score if record is not None and id(record) not in reasons and standing(record) == "counted" else None
        for record in records
    ]
    found = [score for score in scores if score is not None]
    low, high = common_scale(known) or (0.0, 1.0)
    winner: Winner = "none"
    places: list[int] = []
    if len(found) > 1:
        best = min(found) if known[0].better == "lower" else max(found)
        better, unit = known[0].better, unit_of(known)
        kinds = {place: kind_of(best, score, better, unit) for place, score in enumerate(scores) if score is not None}
        places = [place for place, kind in kinds.items() if kind == "same"]
        winner = places[0] if len(places) == 1 else "tie"
    return RowScores(
        metric=metric,
        records=tuple(records),
        scores=tuple(scores),
        best=tuple(places) if len(places) < len(found) else (),
        winner=winner,
        spread=(max(found) - min(found)) / (high - low) if found else 0.0,
    )


def _pairs(
    scored: Mapping[str, Mapping[str, RowScores]], columns: int, rule: ClusterRule
) -> Mapping[str, list[PairedMetric]]:
    """Return any two columns that have rows in common by metric; p is adjusted for all pairs of all metrics."""
    made: list[tuple[str, PairedMetric]] = []
    for metric, (first, second) in product(scored, combinations(range(columns), 2)):
        both = {key: it for key, it in scored[metric].items() if None not in (it.scores[first], it.scores[second])}
        olds, records = ([record for it in both.values() if (record := it.records[at])] for at in (first, second))
        # Rows with more than one metric are of one sample.
        clusters = clusters_of((it.sample for it in records), (it.sample for it in olds), rule=rule)
        rows = [
            RowChange(
                id=key,
                scores=PairedScores((it.scores[first] or 0.0,), (it.scores[second] or 0.0,)),
                cluster=cluster,
            )
            for (key, it), cluster in zip(both.items(), clusters, strict=True)
        ]
        if rows:
            better, found = records[0].better, difference_of(rows, common_scale(records), unit_of(records))
            kinds = Counter(kind_of(row.before, row.after, better, unit_of(records)) for row in rows)
            winner = second if (gain_of(found.before, found.after, better) or 0.0) > 0 else first
            pair = PairedMetric(places=(first, second), difference=found, kinds=kinds, p=found.flip_p, winner=winner)
            made.append((metric, pair))
    chances = holm({at: pair.p for at, (_, pair) in enumerate(made)})
    pairs: defaultdict[str, list[PairedMetric]] = defaultdict(list)
    for at, (metric, pair) in enumerate(made):
        pairs[metric].append(replace(pair, p=chances[at], winner=pair.winner if chances[at] <= ALPHA else "tie"))
    return pairs


def pair_text(pair: PairedMetric, names: Sequence[str], unit: str = "") -> str:
    """Return what a pair of columns shows: the difference with its interval, the rows, and which is better."""
    found, (first, second) = pair.difference, (named(names[place]) for place in pair.places)
    better, worse, ties = (pair.kinds[kind] for kind in ("better", "worse", "same"))
    rows = f"{counted(found.n, 'row')}: {better} better, {worse} worse, {ties} tied"
    change = figure_text(found.interval.estimate, unit, sign="+")
    figures = f"{change} ({format_interval(found.interval, sign='+', unit=unit)}; {rows})"
    return f"{second} against {first}: {figures}; {pair_outcome(pair, names)}"


def pair_outcome(pair: PairedMetric, names: Sequence[str]) -> str:
    """Return which column is better, if these rows show it."""
    chance = f"(p{probability_text(pair.p)})"
    if isinstance(pair.winner, int):
        return f"{named(names[pair.winner])} is better {chance}"
    is_same = pair.kinds.keys() == {"same"} and abs(pair.difference.interval.estimate) <= ROUNDING
    return "the same in every row" if is_same else f"no difference is shown {chance}"


def apart_text(metric: MetricColumns) -> str:
    """Return what of a metric is not compared and why, "" where all of it is."""
    if not metric.pairs:
        return f"not compared: {metric.why}"
    return f"not compared: {counted(metric.apart, 'score')}: {metric.why}" if metric.apart else ""


def headlines(compared: ComparedColumns) -> list[str]:
    """Return what each pair of columns shows, the metrics together: which is better, and in what."""
    names, lines = [named(name) for name in compared.names], []
    for places in combinations(range(len(names)), 2):
        pairs = [
            (named(it.metric), pair.winner) for it in compared.metrics for pair in it.pairs if pair.places == places
        ]
        won = {place: " and ".join(metric for metric, winner in pairs if winner == place) for place in places}
        parts = [f"{names[it]} is better than {names[sum(places) - it]} in {won[it]}" for it in places if won[it]]
        lines.append("; ".join(parts) or f"No difference is shown between {' and '.join(names[it] for it in places)}")
    return lines


def coverage_text(compared: ComparedColumns) -> str:
    """Return how many rows are compared, and how many are not because not all columns have them."""
    names = [named(name) for name in compared.names]
    alone = [f"{count:,} of {name}" for name, count in zip(names, compared.alone, strict=True) if count]
    left_out = f"; without a counterpart: {', '.join(alone)}" if alone else ""
    several = f"all of {', '.join(names)}" if len(names) > COLUMNS[0] else " and ".join(names)
    return f"{counted(len(compared.rows), 'row')} in {several}{left_out}"


def column_lines(compared: ComparedColumns) -> list[str]:
    """Return the comparison in lines: rows and their winners, each metric, and the rows that differ most."""
    names = [named(name) for name in compared.names]
    lines = [coverage_text(compared), f"winner by row: {winners_text(compared)}"]
    for metric in compared.metrics:
        lower, apart = " (lower is better)" if metric.better == "lower" else "", apart_text(metric)
        if not metric.pairs:
            lines.append(f"{named(metric.metric)}: {apart}")
            continue
        both = zip(names, metric.means, strict=True)
        means = ", ".join(f"{name} {figure_text(mean, metric.unit)}" for name, mean in both if mean is not None)
        lines.append(f"{named(metric.metric)}{lower}: {means or 'no row has a score in all'} over {metric.n}")
        pairs = (pair_text(it, compared.names, metric.unit) for it in metric.pairs)
        lines += [f"  {text}" for text in (*pairs, apart) if text]
    if differing := [row for row in compared.rows if row.spread > ROUNDING]:
        lines.append(f"rows that differ most, of {len(differing)}:")
    for row in differing[:SHOWN]:
        scores = "; ".join(f"{named(score.metric)} {', '.join(score.texts)}" for score in row.scores)
        lines.append(f"  {named(row.key)}: {scores}: {winner_text(row.winner, compared.names)}")
    return [*lines, *and_more(len(differing))]


def has_worse(compared: ComparedColumns, margin: float = 0.0) -> bool:
    """Tell whether a score is lost in a column after the first, or worse there by more than a margin."""
    return any(
        it.scores[0] is not None
        and record is not None
        and (record.score is None or -(gain_of(it.scores[0], score, record.better) or 0.0) > margin + ROUNDING)
        for row in compared.rows
        for it in row.scores
        for record, score in zip(it.records[1:], it.scores[1:], strict=True)
    )


def winner_text(winner: Winner, names: Sequence[str]) -> str:
    """Return who wins a row."""
    if isinstance(winner, int):
        return f"{named(names[winner])} wins"
    return _NOBODY[winner]


def winners_text(compared: ComparedColumns) -> str:
    """Return how many rows each column wins, and how many nobody does."""
    counts = Counter(row.winner for row in compared.rows)
    parts = [f"{named(name)} {counts[place]}" for place, name in enumerate(compared.names)]
    parts += [f"{text} {counts[it]}" for it, text in _NOBODY.items() if counts[it]]
    return ", ".join(parts)
