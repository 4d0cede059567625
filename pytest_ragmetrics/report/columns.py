"""Answers to the same rows in two or three columns: two models, two prompts, two retrievers, and which is better.

Columns are runs, or the values of a key of the metadata in one run. :func:`compare_answers` aligns their rows;
:func:`column_lines` says it in lines, ``templates/columns.html.jinja`` on a page.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.core.result import REUSED, Direction
from pytest_ragmetrics.runs.compare import cluster_of, key_of
from pytest_ragmetrics.runs.records import Document, Record
from pytest_ragmetrics.runs.tables import difference_of
from pytest_ragmetrics.runs.wording.comparisons import RowChange, probability_text
from pytest_ragmetrics.runs.wording.figures import (
    NOTHING_TO_CHECK,
    SHOWN,
    and_more,
    counted,
    format_interval,
    named,
    score_text,
)
from pytest_ragmetrics.stats.drop import holm
from pytest_ragmetrics.stats.paired import Difference
from pytest_ragmetrics.stats.scores import ROUNDING, common_scale, standing

#: How many columns there may be.
COLUMNS = (2, 3)
#: A difference is one where as rare a one comes by chance, of all that are looked at together.
ALPHA = 0.05
#: What stands for a score that there is none of.
UNSCORED = "unscored"
#: Who wins a row: a column by its place, nobody ("tie"), another one by each metric ("mixed"), or nothing was compared.
Winner = int | Literal["tie", "mixed", "none"]


class ColumnsError(RagMetricsError):
    """Columns cannot be compared; says which, and what to choose instead."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerColumn:
    """A column: its records by the row that they belong to, each row once a metric."""

    name: str
    rows: Mapping[str, Mapping[str, Record]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RowScores:
    """The scores of one metric in a row, ``None`` where there is none that counts, the same as texts, and who wins.

    ``best`` are the places of the best ones, unless all are; ``spread`` is how far they are apart on the scale.
    """

    metric: str
    scores: tuple[float | None, ...]
    texts: tuple[str, ...]
    best: tuple[int, ...]
    winner: Winner
    spread: float


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

    ``better``, ``worse`` and ``ties`` count rows of ``second`` against ``first``; ``p`` is adjusted for all pairs of
    the comparison.
    """

    first: int
    second: int
    difference: Difference
    better: int
    worse: int
    ties: int
    p: float
    winner: Winner


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricColumns:
    """One metric: the mean of each column over the ``n`` rows that all have a score of, and the pairs of columns.

    ``why`` says why nothing is compared, "" where it is.
    """

    metric: str
    better: Direction
    n: int
    means: tuple[float | None, ...]
    pairs: tuple[PairedMetric, ...]
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedColumns:
    """Columns against each other; ``rows`` come the largest difference first, ``alone`` counts those not in all."""

    names: tuple[str, ...]
    metrics: tuple[MetricColumns, ...]
    rows: tuple[ComparedRow, ...]
    alone: tuple[int, ...]


def columns_of_runs(runs: Sequence[tuple[str, Document]]) -> list[AnswerColumn]:
    """Return runs by name as columns, with rows by the ids of their samples, by their questions where no id is shared.

    Raises :class:`ColumnsError` where they have no row in common.
    """
    records = [(name, [record for test in run.tests for record in test.records]) for name, run in runs]
    columns = [AnswerColumn(name=name, rows=_rows((key_of(it.sample), it) for it in found)) for name, found in records]
    if not _common(columns):
        columns = [_by_question(name, found) for name, found in records]
    if not _common(columns):
        msg = f"{' and '.join(name for name, _ in runs)} have no row in common: give the samples ids that stay the same"
        raise ColumnsError(msg)
    return columns


def _common(columns: Sequence[AnswerColumn]) -> set[str]:
    return set(columns[0].rows).intersection(*(column.rows for column in columns[1:]))


def columns_of_values(document: Document, key: str, values: Sequence[str] = ()) -> list[AnswerColumn]:
    """Return two or three values of a key of the metadata as columns, with rows by their questions.

    Raises :class:`ColumnsError` for a key or a value that no sample has, and where there are too many to choose from.
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
    if missing := [value for value in values if value not in found]:
        raise ColumnsError(f"no sample has {key} {missing[0]!r}; there are {', '.join(map(named, sorted(found)))}")
    chosen = list(values) or sorted(found)
    if len(chosen) not in COLUMNS:
        msg = f"{key} has {counted(len(found), 'value')}: choose two or three of {', '.join(map(named, sorted(found)))}"
        raise ColumnsError(msg)
    columns = [_by_question(value, found[value]) for value in chosen]
    if not _common(columns):
        raise ColumnsError(f"{' and '.join(map(named, chosen))} have no question in common")
    return columns


def _by_question(name: str, records: Iterable[Record]) -> AnswerColumn:
    """Return a column by questions; the second answer to a question is another row."""
    seen: dict[str, list[str]] = {}
    keyed = []
    for record in records:
        question = " ".join((record.sample.user_input or "").split())
        if not question:
            continue
        samples = seen.setdefault(question, [])
        sample = f"{record.sample.id}\0{record.sample.response}"
        if sample not in samples:
            samples.append(sample)
        number = samples.index(sample)
        keyed.append((f"{question} ({number + 1})" if number else question, record))
    return AnswerColumn(name=name, rows=_rows(keyed))


def _rows(keyed: Iterable[tuple[str, Record]]) -> dict[str, dict[str, Record]]:
    """Return the records by row and metric; of several scores of one metric in a row the first counts."""
    rows: dict[str, dict[str, Record]] = {}
    for key, record in keyed:
        rows.setdefault(key, {}).setdefault(record.metric, record)
    return rows


def compare_answers(columns: Sequence[AnswerColumn]) -> ComparedColumns:
    """Return what columns say to the rows that all of them have."""
    common = _common(columns)
    keys = [key for key in columns[0].rows if key in common]
    metrics = sorted({metric for column in columns for row in column.rows.values() for metric in row})
    reasons = {metric: _why_not(metric, columns, keys) for metric in metrics}
    rows = [
        _row(key, [column.rows[key] for column in columns], [it for it in metrics if not reasons[it]]) for key in keys
    ]
    return ComparedColumns(
        names=tuple(column.name for column in columns),
        metrics=_metrics(columns, rows, reasons),
        rows=tuple(sorted(rows, key=lambda row: -row.spread)),
        alone=tuple(len(column.rows) - len(keys) for column in columns),
    )


def _why_not(metric: str, columns: Sequence[AnswerColumn], keys: Iterable[str]) -> str:
    """Return why the scores of a metric cannot be compared; "" if they can."""
    if lacking := [column.name for column in columns if not any(metric in row for row in column.rows.values())]:
        return f"not scored in {', '.join(map(named, lacking))}"
    for key in keys:
        found = [column.rows[key][metric] for column in columns if metric in column.rows[key]]
        judges = {record.judge for record in found if record.score is not None and record.judge is not None}
        if len(judges) > 1:
            return f"scored by {' and '.join(map(named, sorted(judges)))}: score all with one judge"
        scored = [record for record in found if record.score is not None]
        if len({record.better for record in scored}) > 1 or (
            metric in REUSED and len({record.noun for record in scored}) > 1
        ):
            return "another metric of this name in one of them"
    return ""


def _row(key: str, cells: Sequence[Mapping[str, Record]], metrics: Iterable[str]) -> ComparedRow:
    scores = tuple(
        _row_scores(metric, [cell.get(metric) for cell in cells])
        for metric in metrics
        if any(metric in cell for cell in cells)
    )
    winners = {score.winner for score in scores} - {"none"}
    single = winners - {"tie"}
    winner: Winner = "none" if not winners else "tie" if not single else "mixed" if len(single) > 1 else single.pop()
    samples = [next(iter(cell.values())).sample for cell in cells]
    answers = (
        next((it.sample.response for it in cell.values() if it.sample.response is not None), None) for cell in cells
    )
    return ComparedRow(
        key=key,
        question=next((sample.user_input for sample in samples if sample.user_input), ""),
        answers=tuple(answers),
        scores=scores,
        winner=winner,
        spread=max((score.spread for score in scores), default=0.0),
    )


def _row_scores(metric: str, records: Sequence[Record | None]) -> RowScores:
    scores = [record.score if record is not None and standing(record) == "counted" else None for record in records]
    found = [score for score in scores if score is not None]
    lower = next(record.better for record in records if record is not None) == "lower"
    low, high = common_scale(record for record in records if record is not None) or (0.0, 1.0)
    winner: Winner = "none"
    places: list[int] = []
    if len(found) > 1:
        best = min(found) if lower else max(found)
        places = [place for place, score in enumerate(scores) if score is not None and abs(score - best) <= ROUNDING]
        winner = places[0] if len(places) == 1 else "tie"
    return RowScores(
        metric=metric,
        scores=tuple(scores),
        texts=tuple(map(_text, records)),
        best=tuple(places) if len(places) < len(found) else (),
        winner=winner,
        spread=(max(found) - min(found)) / (high - low) if found else 0.0,
    )


def _text(record: Record | None) -> str:
    if record is None:
        return "\u2013"
    return UNSCORED if record.score is None else NOTHING_TO_CHECK if record.vacuous else score_text(record.score)


def _metrics(
    columns: Sequence[AnswerColumn], rows: Sequence[ComparedRow], reasons: Mapping[str, str]
) -> tuple[MetricColumns, ...]:
    """Return the metrics with what pairs of columns show, adjusted for all pairs of all metrics together."""
    scored = {
        metric: [(row.key, score.scores) for row in rows for score in row.scores if score.metric == metric]
        for metric in reasons
    }
    better = {
        metric: next(row[metric].better for column in columns for row in column.rows.values() if metric in row)
        for metric in reasons
    }
    pairs = {
        (metric, first, second): pair
        for metric, found in scored.items()
        for first, second in combinations(range(len(columns)), 2)
        if (pair := _paired(metric, better[metric], columns, found, (first, second)))
    }
    chances = holm({place: pair.p for place, pair in pairs.items()})
    made = {
        key: replace(pair, p=chances[key], winner=pair.winner if chances[key] <= ALPHA else "tie")
        for key, pair in pairs.items()
    }
    return tuple(
        MetricColumns(
            metric=metric,
            better=better[metric],
            n=sum(None not in scores for _, scores in found),
            means=tuple(
                _mean(scores[place] for _, scores in found if None not in scores) for place in range(len(columns))
            ),
            pairs=tuple(pair for key, pair in made.items() if key[0] == metric),
            why=reasons[metric]
            or ("" if any(key[0] == metric for key in made) else "no row has a score in two of them"),
        )
        for metric, found in scored.items()
    )


def _paired(
    metric: str,
    better: Direction,
    columns: Sequence[AnswerColumn],
    scored: Iterable[tuple[str, Sequence[float | None]]],
    places: tuple[int, int],
) -> PairedMetric | None:
    """Return two columns against each other, with the p-value of this pair alone; ``None`` without a common row."""
    first, second = places
    both = [
        (key, before, after)
        for key, scores in scored
        if (before := scores[first]) is not None and (after := scores[second]) is not None
    ]
    if not both:
        return None
    records = {key: columns[second].rows[key][metric] for key, _, _ in both}
    # Rows with more than one metric are of one sample.
    rows = [
        RowChange(id=key, before=before, after=after, cluster=cluster_of(records[key].sample))
        for key, before, after in both
    ]
    difference = difference_of(rows, common_scale(records.values()))
    gains = [(before - after) if better == "lower" else (after - before) for _, before, after in both]
    gained, lost = sum(gain > ROUNDING for gain in gains), sum(gain < -ROUNDING for gain in gains)
    return PairedMetric(
        first=first,
        second=second,
        difference=difference,
        better=gained,
        worse=lost,
        ties=len(gains) - gained - lost,
        p=difference.flip_p,
        winner=second if math.fsum(gains) > 0 else first,
    )


def _mean(scores: Iterable[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return math.fsum(known) / len(known) if known else None


def pair_text(pair: PairedMetric, names: Sequence[str]) -> str:
    """Return what a pair of columns shows: the difference with its interval, the rows, and which is better."""
    found, (first, second) = pair.difference, (named(names[pair.first]), named(names[pair.second]))
    rows = f"{counted(found.n, 'row')}: {pair.better} better, {pair.worse} worse, {pair.ties} tied"
    figures = f"{found.interval.estimate:+.3f} ({format_interval(found.interval, sign='+')}; {rows})"
    return f"{second} against {first}: {figures}; {pair_outcome(pair, names)}"


def pair_outcome(pair: PairedMetric, names: Sequence[str]) -> str:
    """Return which column is better, if these rows show it."""
    chance = f"(p{probability_text(pair.p)})"
    if isinstance(pair.winner, int):
        return f"{named(names[pair.winner])} is better {chance}"
    return "the same in every row" if pair.better == pair.worse == 0 else f"no difference is shown {chance}"


def headlines(compared: ComparedColumns) -> list[str]:
    """Return what each pair of columns shows, the metrics together: which is better, and in what."""
    lines = []
    for first, second in combinations(range(len(compared.names)), 2):
        shown: dict[int, list[str]] = {first: [], second: []}
        for metric in compared.metrics:
            for pair in metric.pairs:
                if (pair.first, pair.second) == (first, second) and isinstance(pair.winner, int):
                    shown[pair.winner].append(metric.metric)
        names = {place: named(compared.names[place]) for place in (first, second)}
        parts = [
            f"{names[place]} is better than {names[first + second - place]} in {' and '.join(map(named, metrics))}"
            for place, metrics in shown.items()
            if metrics
        ]
        lines.append("; ".join(parts) or f"No difference is shown between {names[first]} and {names[second]}")
    return lines


def coverage_text(compared: ComparedColumns) -> str:
    """Return how many rows are compared, and how many are not because not all columns have them."""
    names = [named(name) for name in compared.names]
    alone = [f"{count:,} of {name}" for name, count in zip(names, compared.alone, strict=True) if count]
    left_out = f"; without a counterpart: {', '.join(alone)}" if alone else ""
    return f"{counted(len(compared.rows), 'row')} in all of {', '.join(names)}{left_out}"


def column_lines(compared: ComparedColumns) -> list[str]:
    """Return the comparison in lines: rows and their winners, each metric, and the rows that differ most."""
    names = [named(name) for name in compared.names]
    lines = [coverage_text(compared)]
    lines.append(f"winner by row: {winners_text(compared)}")
    for metric in compared.metrics:
        lower = " (lower is better)" if metric.better == "lower" else ""
        if metric.why:
            lines.append(f"{named(metric.metric)}: not compared: {metric.why}")
            continue
        means = ", ".join(
            f"{name} {mean:.3f}" for name, mean in zip(names, metric.means, strict=True) if mean is not None
        )
        lines.append(f"{named(metric.metric)}{lower}: {means or 'no row has a score in all'} over {metric.n}")
        lines += [f"  {pair_text(pair, compared.names)}" for pair in metric.pairs]
    return [*lines, *_row_lines(compared)]


def has_worse(compared: ComparedColumns, margin: float = 0.0) -> bool:
    """Tell whether a score is lost in a column after the first, or worse there by more than a margin."""
    lower = {metric.metric for metric in compared.metrics if metric.better == "lower"}
    for scores in (scores for row in compared.rows for scores in row.scores):
        first, *others = scores.scores
        if first is None:
            continue
        for score, text in zip(others, scores.texts[1:], strict=True):
            loss = math.inf if text == UNSCORED else 0.0 if score is None else first - score
            if (-loss if scores.metric in lower and math.isfinite(loss) else loss) > margin + ROUNDING:
                return True
    return False


def _row_lines(compared: ComparedColumns) -> Iterator[str]:
    """Yield the rows that differ most."""
    differing = [row for row in compared.rows if row.spread > ROUNDING]
    if not differing:
        return
    yield f"rows that differ most, of {len(differing)}:"
    for row in differing[:SHOWN]:
        scores = "; ".join(f"{named(score.metric)} {', '.join(score.texts)}" for score in row.scores)
        yield f"  {named(row.key)}: {scores}: {winner_text(row.winner, compared.names)}"
    yield from and_more(len(differing))


def winner_text(winner: Winner, names: Sequence[str]) -> str:
    """Return who wins a row."""
    if isinstance(winner, int):
        return f"{named(names[winner])} wins"
    return {"tie": "tie", "mixed": "mixed", "none": "not compared"}[winner]


def winners_text(compared: ComparedColumns) -> str:
    """Return how many rows each column wins, and how many nobody does."""
    counts = Counter(row.winner for row in compared.rows)
    parts = [f"{named(name)} {counts[place]}" for place, name in enumerate(compared.names)]
    others: list[Winner] = ["tie", "mixed", "none"]
    parts += [f"{winner_text(it, compared.names)} {counts[it]}" for it in others if counts[it]]
    return ", ".join(parts)
