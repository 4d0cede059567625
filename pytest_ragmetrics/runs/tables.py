"""Two tables compared: their scores paired by sample, what became better or worse, and the statistics of each metric.

Suites, tables, gates and ``assert_not_worse`` use it; ``runs.compare`` compares what two pytest runs recorded.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from pytest_ragmetrics.core.result import NOUN, REUSED, Direction
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.runs.records import Judging, Record, RegressionRecord, function_name, known_scale
from pytest_ragmetrics.runs.wording.figures import (
    NOTHING_TO_CHECK,
    SHOWN,
    agreeing,
    and_more,
    checked_text,
    counted,
    format_apart,
    format_interval,
    named,
    silence_text,
)
from pytest_ragmetrics.stats.drop import Drop, drops
from pytest_ragmetrics.stats.intervals import Decision, whole_clusters
from pytest_ragmetrics.stats.paired import Difference, paired_difference
from pytest_ragmetrics.stats.scores import ROUNDING, Standing, Vacuous, check_vacuous, standing
from pytest_ragmetrics.text.unicode import printable

# A smaller p is shown as p<0.001.
_SURE = 0.001
# What comes in every other run needs no figure, and smaller shares no more digits.
_LIKELY, _LEAST_SHOWN = 0.5, 1e-4
#: What makes scores of one metric incomparable, of what defines it; a release changes few of them.
RULES = ("code", "embedder")
# Before the name of a metric: whether its rows have something to check, as scores of 0 and 1.
_SILENCE = "\0"
#: The least rows that decide anything, with something to check or not: of fewer no drop could be shown.
FEWEST = 5
#: And the least share of the rows of the baseline: a set may grow, but not shrink.
LEAST_SHARE = 0.8
#: What to do where a comparison decides nothing.
ANEW = f"write the baseline anew (--rag-json=FILE), in a run of the whole set as it is now, of {FEWEST} rows or more"
#: What to do where two runs have no sample in common.
NO_PAIR = "nothing can be compared: give the samples ids that stay the same from run to run"

Kind = Literal["unscored", "worse", "same", "better", "nothing to check", "scored again", "new", "gone"]
#: Every kind, in the order in which changes are listed.
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnEntry:
    """One row of a column: its score (``None`` where it is unscored), who judged it, and the cluster it belongs to.

    ``vacuous`` says that there was nothing to check. ``source`` is the test function that scored it, if one did,
    ``rule`` what made it.
    """

    score: float | None
    judge: str | None = None
    cluster: Hashable | None = field(default=None, compare=False)
    vacuous: bool = False
    question: str | None = field(default=None, compare=False)
    source: str | None = field(default=None, compare=False)
    rule: str | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """The entries of one metric by the key of their sample; ``ambiguous`` keys belong to several different samples.

    ``noun`` names what one of its verdicts is about, ``scale`` the lowest and the highest score where they are known.
    ``partial`` says why not all rows are there ("" if they are).
    """

    metric: str
    better: Direction
    entries: Mapping[str, ColumnEntry]
    ambiguous: frozenset[str] = frozenset()
    noun: str = NOUN
    scale: tuple[float, float] | None = None
    partial: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowChange:
    """One row scored in both runs, and the cluster it belongs to."""

    id: str
    before: float
    after: float
    cluster: Hashable | None = None

    @property
    def change(self) -> float:
        """How much the score rose."""
        return self.after - self.before


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricComparison:
    """One metric in two runs, this one and one before.

    ``rows`` are those scored in both, by id, and ``difference`` has the figures over them, ``None`` if there are none.
    The other fields are ids: of rows that only one run has, and of rows of both that are unscored in one, had nothing
    to check (``vacuous``), or ask another question (``rewritten``). ``judges`` are those of the compared scores, as
    :func:`compare_columns` refuses to compare different ones. ``doubts`` say why these rows decide nothing; in
    ``silenced`` rows 1.0 is something to check and 0.0 is nothing, where only one run has something.
    """

    metric: str
    better: Direction
    judges: tuple[str, ...]
    difference: Difference | None
    rows: tuple[RowChange, ...]
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]
    unscored_here: tuple[str, ...]
    unscored_there: tuple[str, ...]
    vacuous_here: tuple[str, ...] = ()
    vacuous_there: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    silenced: tuple[RowChange, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def regressed(self) -> tuple[RowChange, ...]:
        """The rows that became worse, the largest change first."""
        return self._changed("worse")

    @property
    def improved(self) -> tuple[RowChange, ...]:
        """The rows that became better, the largest change first."""
        return self._changed("better")

    @property
    def unchanged(self) -> tuple[RowChange, ...]:
        """The rows whose score is the same."""
        return tuple(row for row in self.rows if kind_of(row.before, row.after, self.better) == "same")

    def _changed(self, kind: Kind) -> tuple[RowChange, ...]:
        changed = (row for row in self.rows if kind_of(row.before, row.after, self.better) == kind)
        return tuple(sorted(changed, key=lambda row: -abs(row.change)))

    def lines(self, drop: Drop | None = None) -> list[str]:
        """Return what changed in a line, then the rows by how they changed, the largest change first.

        With a ``drop`` the line says what decides about it, else how much the mean changed.
        """
        lines = [self._headline(drop), *([f"  {ANEW}"] if drop and self.doubts else [])]
        if self.judges:
            lines.append(f"  judge: {printable(', '.join(self.judges))}")
        for title, rows in (("regressed", self.regressed), ("improved", self.improved)):
            lines.append(f"  {title}: {len(rows)}")
            for row in rows[:SHOWN]:
                before, after = format_apart(row.before, row.after)
                lines.append(f"    {row.change:+.2f}  {before} -> {after}  {named(row.id)}")
            lines += and_more(len(rows), indent="    ")
        lines.append(f"  unchanged: {len(self.unchanged)}")
        for title, ids in (
            ("only here", self.only_here),
            ("only there", self.only_there),
            ("unscored here", self.unscored_here),
            ("unscored there", self.unscored_there),
            (f"{NOTHING_TO_CHECK} here", self.vacuous_here),
            (f"{NOTHING_TO_CHECK} there", self.vacuous_there),
            ("another question", self.rewritten),
        ):
            if ids:
                more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
                lines.append(f"  {title}: {len(ids)} ({', '.join(map(named, ids[:SHOWN]))}{more})")
        return lines

    def _headline(self, drop: Drop | None) -> str:
        found = self.difference
        name = printable(self.metric) + (" (lower is better)" if self.better == "lower" else "")
        if found is None:
            left_out = len({*self.vacuous_here, *self.vacuous_there})
            none = f"{checked_text(0, left_out) if left_out else 'no row has a score'} in both runs"
            doubts = f"inconclusive: {'; '.join(self.doubts)}"
            return f"{name}: {doubts if self.rewritten else none}"
        before, after = format_apart(found.before, found.after)
        if drop is not None:
            is_open = drop_outcome(self, drop) == "inconclusive"
            said = f"inconclusive: {'; '.join(self.doubts)}" if is_open else drop_text(drop, drop.n)
            return f"{name} {before} -> {after}: {said}"
        figures = f"{format_interval(found.interval, sign='+')}, n={found.n}"
        return f"{name} {before} -> {after}: {found.interval.estimate:+.3f} ({figures})"

    def figures(self) -> str:
        """Return the figures beside the one that decides; they answer other questions, and may disagree with it."""
        found = self.difference
        if found is None:
            return ""
        chances = (("t test", found.t_p), ("sign flips", found.flip_p), ("McNemar", found.mcnemar_p))
        tests = "".join(f", {test} p{probability_text(p)}" for test, p in chances if p is not None)
        return f"mean change {found.interval.estimate:+.3f}, {format_interval(found.interval, sign='+')}{tests}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True, kw_only=True, slots=True)
class TableComparison:
    """Two tables compared metric by metric; ``only_here`` and ``only_there`` are metrics that one of them lacks.

    ``drops`` says by metric whether its scores dropped, where :func:`assert_no_regression` asked.
    """

    metrics: Mapping[str, MetricComparison]
    only_here: tuple[str, ...] = ()
    only_there: tuple[str, ...] = ()
    drops: Mapping[str, Drop] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> MetricComparison:
        """Return the comparison of a metric; raise ``KeyError`` for one that not both tables have."""
        if metric not in self.metrics:
            raise KeyError(f"{metric!r} was not compared; there are {', '.join(self.metrics)}")
        return self.metrics[metric]

    def __str__(self) -> str:
        lines = []
        for metric, comparison in self.metrics.items():
            lines += comparison.lines(self.drops.get(metric))
        for place, names in (("here", self.only_here), ("there", self.only_there)):
            lines += [f"only evaluated {place}: {', '.join(names)}"] if names else []
        return "\n".join(lines)


def find_drops(comparison: TableComparison, *, alpha: float = 0.05) -> dict[str, Drop]:
    """Return by metric whether the scores dropped, of all metrics of a comparison together.

    That rows fell silent, with nothing to check any more, is tested beside them at the same ``alpha``. Raises
    ``ValueError`` for a metric without a pair, or an ``alpha`` that is not between 0 and 1.
    """
    changes, clusters, spans = {}, {}, {}
    for metric, compared in comparison.metrics.items():
        if compared.silenced:
            changes[_SILENCE + metric] = [row.change for row in compared.silenced]
            clusters[_SILENCE + metric] = whole_clusters(row.cluster for row in compared.silenced)
        sign = -1.0 if compared.better == "lower" else 1.0
        changes[metric] = [sign * row.change for row in compared.rows]
        clusters[metric] = whole_clusters(row.cluster for row in compared.rows)
        bounds = None if compared.difference is None else compared.difference.bounds
        spans[metric] = math.inf if bounds is None else bounds[1]
    found = drops(changes, clusters=clusters, alpha=alpha, spans=spans)
    for metric, compared in comparison.metrics.items():
        if compared.silenced and found.pop(_SILENCE + metric).shown:
            now, then = compared.vacuous_here, compared.vacuous_there
            text = silence_text(len(now), len(compared.rows) + len({*now, *then}), len(then))
            found[metric] = replace(found[metric], silence=text)
    return found


def drop_outcome(compared: MetricComparison, drop: Drop) -> Decision:
    """Return what a comparison decides on a drop: rows that fell silent cannot be compared, and are a drop."""
    if compared.doubts and not drop.silence:
        return "inconclusive"
    return "failed" if drop.shown else "passed"


def drop_text(drop: Drop | RegressionRecord, n: int) -> str:
    """Return what decides on a drop over ``n`` rows, and the smallest that would have been shown; "" without a test.

    >>> drop_text(RegressionRecord(alpha=0.05, p=0.035, adjusted_p=0.035, changed=8, worse=7, better=1), 20)
    '7 of 20 rows got worse, 1 better; if nothing had changed, so large a drop comes in 3.5 % of runs (limit 5 %)'
    """
    if drop.silence or drop.p is None or drop.adjusted_p is None:
        return drop.silence
    text = f"{drop.worse} of {counted(n, 'row')} got worse, {drop.better} better"
    if drop.changed and not drop.worse + drop.better:  # in a file of an early version
        text = f"{drop.changed} of {counted(n, 'row')} changed"
    chance, event = drop.p, "so large a drop"
    if drop.adjusted_p != drop.p and (drop.adjusted_p < 1.0 or drop.p <= drop.alpha):
        chance, event = drop.adjusted_p, f"{event} in one of the metrics"
    if drop.p <= drop.alpha and drop.adjusted_p >= 1.0:
        text += "; in one of several metrics that proves nothing"
    elif drop.changed and drop.p < _LIKELY:
        share = f"{max(chance, _LEAST_SHOWN) * 100:.3g} % of runs (limit {drop.alpha * 100:.3g} %)"
        text += f"; if nothing had changed, {event} comes in {share}"
    if drop.adjusted_p <= drop.alpha:
        return text
    rows = f"{counted(n, 'row')} like {'this' if n == 1 else 'these'}"
    if drop.smallest is None:
        return f"{text}; {rows} can hardly show a drop"
    return f"{text}; {rows} show a drop of {drop.smallest:.3g} or more in at least 8 of 10 runs"


def probability_text(p: float) -> str:
    """Return a p-value with its sign.

    >>> probability_text(0.03125), probability_text(0.0001)
    ('=0.031', '<0.001')
    """
    return "<0.001" if p < _SURE else f"={p:.3f}"


def sample_key(sample: Mapping[str, Any]) -> str:
    """Return what a sample is known by in another run: its id, else its question, else a digest of its content.

    ``sample`` is what :meth:`Sample.to_mapping` returns. The answer is no part of it where there is a question: it is
    what changes from run to run.

    >>> sample_key({"id": "q1", "user_input": "Why?"}), sample_key({"user_input": "Why?", "response": "So."})
    ('q1', 'Why?')
    """
    for name in ("id", "user_input"):
        if isinstance(sample.get(name), str) and sample[name].strip():
            return str(sample[name])
    text = json.dumps(sample, sort_keys=True, default=str)
    return f"row-{hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:10]}"


def key_of(sample: Sample) -> str:
    """Return the :func:`sample_key` of a sample."""
    known = {"id": sample.id, "user_input": sample.user_input}
    # Its whole content is asked for only where there is nothing else: there may be very many of them.
    return sample_key(known if any((text or "").strip() for text in known.values()) else sample.to_mapping())


def cluster_of(sample: Sample) -> str | None:
    """Return the cluster that ``metadata["cluster"]`` puts a sample into, if it does.

    >>> cluster_of(Sample(metadata={"cluster": "manual.pdf"}))
    "'manual.pdf'"
    """
    cluster = sample.metadata.get("cluster")
    return None if cluster is None else repr(cluster)


def columns_of(records: Iterable[tuple[str, Record]], *, partial: str = "") -> dict[str, Column]:
    """Return the scores of every metric among records, each with the id of its test, by the key of their sample."""
    found: dict[str, list[tuple[str, ColumnEntry]]] = {}
    better: dict[str, Direction] = {}
    about: dict[str, dict[str, Any]] = {}
    for test, record in records:
        better[record.metric] = record.better
        known = about.setdefault(record.metric, {"partial": partial})
        if record.score is not None:
            known.setdefault("noun", record.noun)
            known["scale"] = known.get("scale") or record.scale
        entry = ColumnEntry(
            score=record.score,
            judge=record.judge,
            cluster=cluster_of(record.sample),
            vacuous=record.vacuous,
            question=record.sample.user_input,
            source=function_name(test),
            rule=record.rule,
        )
        found.setdefault(record.metric, []).append((key_of(record.sample), entry))
    return {metric: column_of(metric, better[metric], entries, **about[metric]) for metric, entries in found.items()}


def column_of(metric: str, better: Direction, entries: Iterable[tuple[str, ColumnEntry]], **about: Any) -> Column:
    """Return the entries of a metric as a column; a key that has several different ones is ambiguous."""
    first: dict[str, ColumnEntry] = {}
    ambiguous = set()
    for key, entry in entries:
        if first.setdefault(key, entry) != entry:
            ambiguous.add(key)
    return Column(metric=metric, better=better, entries=first, ambiguous=frozenset(ambiguous), **about)


def compare_columns(
    here: Column, there: Column, *, confidence: float = 0.95, vacuous: Vacuous = "skip"
) -> MetricComparison:
    """Return what changed from ``there``, the run before, to ``here``; the order of the rows does not matter.

    A row with nothing to check in one of the runs became neither better nor worse and is no pair, unless ``vacuous``
    scores "count". One that asks another question under the same key is another row. Of the rows there only those of
    functions that scored one of the rows here are missed.

    Raises ``ValueError`` where different judges scored a row, naming both, where a row of one run fits several of the
    other, and where the metric is another one there, or the runs do not agree on which scores are the better ones.
    """
    common = sorted(here.entries.keys() & there.entries.keys())
    rewritten = tuple(key for key in common if asks_else(here.entries[key].question, there.entries[key].question))
    both = sorted({*common}.difference(rewritten))
    _check_comparable(here, there, both)
    chosen = check_vacuous(vacuous)
    here_by, there_by = ({key: standing(column.entries[key], chosen) for key in both} for column in (here, there))
    scored = [key for key in both if here_by[key] == there_by[key] == "counted"]
    pairs = [(there.entries[key], here.entries[key]) for key in scored]
    judges = _one_judge_each(here.metric, pairs)
    rows = tuple(
        RowChange(id=key, before=before.score or 0.0, after=after.score or 0.0, cluster=after.cluster)
        for key, (before, after) in zip(scored, pairs, strict=True)
    )
    sources = {there.entries[key].source for key in common}
    asked = [key for key, entry in there.entries.items() if not sources or entry.source in sources]
    found = [key for key in both if "unscored" not in (here_by[key], there_by[key])]
    nowhere = sum(here_by[key] == there_by[key] == "unscored" for key in both)
    changed = {
        why: None for key in found for why in definition_changes(there.entries[key].rule, here.entries[key].rule)
    }
    return MetricComparison(
        metric=here.metric,
        better=here.better,
        judges=judges,
        difference=difference_of(rows, here.scale or there.scale, confidence=confidence) if rows else None,
        rows=rows,
        only_here=tuple(key for key in here.entries if key not in there.entries),
        only_there=tuple(key for key in asked if key not in here.entries),
        unscored_here=_of("unscored", here_by),
        unscored_there=_of("unscored", there_by),
        vacuous_here=_of("vacuous", here_by),
        vacuous_there=_of("vacuous", there_by),
        rewritten=rewritten,
        silenced=tuple(_silenced(here, found, here_by, there_by)),
        doubts=(
            *_doubts(there.partial, len(rewritten), found=len(found), asked=len(asked) - nowhere),
            *(f"{why} since the baseline" for why in changed),
        ),
    )


def _silenced(
    here: Column, keys: Iterable[str], here_by: Mapping[str, Standing], there_by: Mapping[str, Standing]
) -> Iterator[RowChange]:
    """Yield the rows that have something to check in one run alone, as scores of 0 and 1."""
    for key in keys:
        if here_by[key] != there_by[key]:
            before = float(there_by[key] == "counted")
            yield RowChange(id=key, before=before, after=1.0 - before, cluster=here.entries[key].cluster)


def definition_changes(old: str | None, new: str | None) -> Iterator[str]:
    """Yield what a metric scores by otherwise than before, by two of :attr:`Record.rule`."""
    if old is not None and new is not None:
        pairs = zip(("code", "parameters"), old.split("/"), new.split("/"), strict=False)
        yield from (f"its {part} changed" for part, before, after in pairs if before != after)


def asks_else(here: str | None, there: str | None) -> bool:
    """Tell whether a row asks another question in the other run."""
    return isinstance(here, str) and isinstance(there, str) and here.split() != there.split()


def _doubts(partial: str, rewritten: int, *, found: int, asked: int) -> Iterator[str]:
    """Yield why a comparison decides nothing: of ``asked`` rows of the baseline ``found`` are scored in both runs."""
    if partial:
        yield f"the baseline is not whole ({partial})"
    if found < LEAST_SHARE * asked:
        others = f", {rewritten} ask another question under the same id" if rewritten else ""
        yield f"{found} of the {counted(asked, 'row')} of the baseline can be compared, fewer than 80 %{others}"
    elif found < FEWEST:
        yield f"{counted(found, 'row')} {agreeing(found, 'is')} compared, and {FEWEST} are the least"


def _check_comparable(here: Column, there: Column, both: Sequence[str]) -> None:
    if here.better != there.better:
        msg = f"{here.metric}: {here.better} scores are better here, {there.better} ones there; they are not comparable"
        raise ValueError(msg)
    if is_redefined(here, there):
        raise ValueError(
            f"{here.metric}: its verdicts are on the {here.noun} here, on the {there.noun} there, so these are two "
            "metrics of one name; score both with this version"
        )
    if ambiguous := sorted((here.ambiguous | there.ambiguous).intersection(both)):
        keys = ", ".join(map(repr, ambiguous[:3]))
        raise ValueError(f"{here.metric}: {keys} has several different scores in one run; give each its own id")


def is_redefined(here: Column | Record, there: Column | Record) -> bool:
    """Tell whether a metric of one name is another one in the other run: what is good of it differs, or what it is."""
    return here.better != there.better or (here.metric in REUSED and here.noun != there.noun)


def _of(wanted: Standing, found: Mapping[str, Standing]) -> tuple[str, ...]:
    return tuple(key for key, each in found.items() if each == wanted)


def rule_changes(old: Judging, new: Judging) -> Iterator[str]:
    """Yield why scores of one metric and judge in two runs cannot be compared: other prompts, code or embedder.

    >>> one = Judging(judge="openai:a", prompts={"verify_claims": "1f"}, definition={"release": "1.0"})
    >>> list(rule_changes(one, Judging(judge="openai:a", prompts={"verify_claims": "2e"}, definition={})))
    ['the prompt of verify_claims changed']
    """
    if changed := [task for task in old.prompts if old.prompts[task] != new.prompts.get(task, old.prompts[task])]:
        yield f"the prompt of {', '.join(map(named, changed))} changed"
    yield from (
        f"its {name} changed"
        for name in RULES
        if old.definition.get(name) != new.definition.get(name, old.definition.get(name)) and name in old.definition
    )


def difference_of(
    rows: Sequence[RowChange], scale: tuple[float, float] | None, *, confidence: float = 0.95
) -> Difference:
    """Return the figures over pairs of rows; a ``scale`` that is not known is from 0 to 1 if all scores are."""
    before, after = [row.before for row in rows], [row.after for row in rows]
    clusters = whole_clusters(row.cluster for row in rows)
    low, high = known_scale(scale) or (0.0, 1.0)
    bounds = (low, high) if all(low <= score <= high for score in (*before, *after)) else None
    return paired_difference(before, after, confidence=confidence, clusters=clusters, bounds=bounds)


def compare_tables(
    here: Mapping[str, Column],
    there: Mapping[str, Column],
    *,
    confidence: float = 0.95,
    vacuous: Vacuous = "skip",
) -> TableComparison:
    """Return what changed from ``there`` to ``here`` in every metric that both have; raises as `compare_columns`."""
    return TableComparison(
        metrics={
            metric: compare_columns(column, there[metric], confidence=confidence, vacuous=vacuous)
            for metric, column in here.items()
            if metric in there
        },
        only_here=tuple(metric for metric in here if metric not in there),
        only_there=tuple(metric for metric in there if metric not in here),
    )


def _one_judge_each(metric: str, pairs: Iterable[tuple[ColumnEntry, ColumnEntry]]) -> tuple[str, ...]:
    """Return the judges; raise ``ValueError`` where those of a pair differ. An unknown judge may be any."""
    judges: set[str] = set()
    for before, after in pairs:
        if before.judge is not None and after.judge is not None and before.judge != after.judge:
            raise ValueError(
                f"{metric}: scores of different judges are not comparable, and these are of {after.judge!r}, "
                f"those before of {before.judge!r}; score both with one judge"
            )
        judges |= {judge for judge in (before.judge, after.judge) if judge is not None}
    return tuple(sorted(judges))


def gain_of(before: float | None, after: float | None, better: Direction) -> float | None:
    """Return how much better a score became; ``None`` without both."""
    if before is None or after is None:
        return None
    return before - after if better == "lower" else after - before


def kind_of(before: float | None, after: float | None, better: Direction) -> Kind:
    """Return what became of a score, ``None`` for one that is unscored."""
    gain = gain_of(before, after, better)
    if gain is None:
        return "same" if before is after else "unscored" if after is None else "scored again"
    return "same" if abs(gain) <= ROUNDING else "better" if gain > 0 else "worse"


def judging_changes(old: Judging, new: Judging) -> Iterator[str]:
    """Yield why scores of one metric in two runs cannot be compared; nothing if judge, prompts and rules are the same.

    >>> one = Judging(judge="openai:a", prompts={"verify_claims": "1f"}, definition={"release": "1.0"})
    >>> other = Judging(judge="openai:b", prompts={"verify_claims": "2e"}, definition={"release": "1.0"})
    >>> list(judging_changes(one, other))
    ['judge openai:a, then openai:b', 'the prompt of verify_claims changed']
    """
    if old.judge != new.judge:
        yield f"judge {old.judge or 'none'}, then {new.judge or 'none'}"
    yield from rule_changes(old, new)
    for name in sorted({*old.definition, *new.definition}.difference(RULES)):
        before, after = old.definition.get(name, "none"), new.definition.get(name, "none")
        if before != after:
            yield f"{named(name)} {named(before)}, then {named(after)}"
