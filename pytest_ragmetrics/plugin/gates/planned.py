"""What the gates of a dry run can find, by the scores of earlier runs, and what they can never do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pytest_ragmetrics.plugin.gates.gate import GatedSet, MarkedGate
from pytest_ragmetrics.report.earlier import past_document
from pytest_ragmetrics.report.history import SHOWN_RUNS, HistoryError, read_history
from pytest_ragmetrics.runs.records import Document
from pytest_ragmetrics.runs.wording.figures import is_quantile, named
from pytest_ragmetrics.runs.wording.power import changes_text, finds_text, limit_text
from pytest_ragmetrics.stats.intervals import Clusters, whole_clusters
from pytest_ragmetrics.stats.power import Plan, unit_scores
from pytest_ragmetrics.stats.scores import ROUNDING, goodness


@dataclass(frozen=True, kw_only=True, slots=True)
class Earlier:
    """What earlier runs of an application say of its next one, the oldest first.

    ``baseline`` is how many of them the next one is compared with, ``changed`` the share of rows that changed each way
    in the run before the baseline, by regression gate.
    """

    runs: Sequence[Document] = ()
    baseline: int = 1
    changed: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, baseline: Sequence[Document], history: Path | None) -> Earlier:
        """Return what the runs of a baseline say, if it has several, else those in the folder of a history."""
        runs = [*baseline]
        if len(runs) <= 1 and history is not None:
            with suppress(HistoryError):
                found = read_history(history, last=SHOWN_RUNS).runs
                runs = [past_document(run) for run in found if not run.run.partial]
        gates = [(test.id, test.gate) for run in baseline for test in run.tests if test.gate is not None]
        changed = {
            test: (min(gate.regression.worse, gate.regression.better) + 0.5) / gate.n
            for test, gate in gates
            if gate.regression is not None and gate.regression.p is not None
        }
        return cls(runs=runs, baseline=max(1, len(baseline)), changed=changed)

    def scores(self, gate: MarkedGate) -> list[dict[str, float]]:
        """Return the scores of a metric in the runs with the judging of the last one, from 0 at the worst end to 1."""
        scored = ((run.run.judging.get(gate.metric), _scores(run, gate.metric)) for run in self.runs)
        known = [(judging, scores) for judging, scores in scored if scores]
        found = [scores for judging, scores in known if judging == known[-1][0]]
        every = [score for scores in found for score in scores.values()]
        low, high = gate.scale or (min(every, default=0.0), max(every, default=0.0))
        if low >= high:
            return []
        turned = gate.better or "higher"
        return [{test: goodness(score, (low, high), turned) for test, score in scores.items()} for scores in found]


def _scores(run: Document, metric: str) -> dict[str, float]:
    """Return the scores of a metric by the id of the test."""
    records = ((test.id, it) for test in run.tests for it in test.records if it.metric == metric)
    return {test: it.score for test, it in records if it.score is not None}


def planned_lines(sets: Iterable[GatedSet], earlier: Earlier) -> list[str]:
    """Return a line for each gate of a run that says what it can find, or that it can never pass or never fail."""
    gates = [(gated, gate) for gated in sets for gate in gated.gates]
    regressions = sum(gate.alpha is not None for _, gate in gates)
    lines = []
    for gated, gate in gates:
        text = _limit(gate, gated, earlier)
        # On a scale without an end a loss is no number of points.
        if not text and gate.alpha is not None and gate.scale is not None and gated.rows[gate.metric]:
            text = _finds(gate, gated, earlier, alpha=gate.alpha / regressions)
            text += f"; {regressions} regression gates share {100 * gate.alpha:g} %" if regressions > 1 else ""
        if text:
            lines.append(f"{named(_title(gate))}: {text}, {named(gated.function)}")
    return lines


def _title(gate: MarkedGate) -> str:
    """Return a gate as its marker says it."""
    if gate.alpha is not None:
        return f"{gate.metric} regression"
    if is_quantile(gate):
        return f"{gate.metric} p{100 * gate.bound:g}={gate.min_score:g}"
    which = "max" if gate.better == "lower" else "min"
    least = "" if gate.min_score is None else f" {which}={gate.min_score:g}"
    return f"{gate.metric} {gate.statistic}={gate.bound:g}{least}"


def _limit(gate: MarkedGate, gated: GatedSet, earlier: Earlier) -> str:
    if gate.stop_when_decided:  # exact over all rows
        return ""
    rows = gated.rows[gate.metric]
    if gate.alpha is not None or gate.all_pass:
        rows = tuple({it.row: it for it in rows}.values())
    clusters = [it.cluster if gate.alpha is None else it.group for it in rows]
    of: dict[str, Any] = {"scale": gate.scale, "alpha": gate.alpha, "earlier": earlier.baseline}
    return limit_text(gate, len(clusters), whole_clusters(clusters), **of)


def _finds(gate: MarkedGate, gated: GatedSet, earlier: Earlier, *, alpha: float) -> str:
    """Return what a regression gate finds, if changes by chance are those of earlier runs."""
    answers: dict[str, list[str]] = {}
    for it in gated.rows[gate.metric]:
        answers.setdefault(it.row, []).append(it.test)
    group = {it.row: it.group for it in gated.rows[gate.metric]}
    now, runs = max(map(len, answers.values())), earlier.scores(gate)
    plan = Plan(alpha=alpha, before=earlier.baseline * now, now=now)
    scores = {
        row: [run[test] for run in runs for test in tests]
        for row, tests in answers.items()
        if all(test in run for run in runs for test in tests)
    }
    share = earlier.changed.get(f"{gated.function}[{gate.id}]")
    rests_on = 0 if share is None else 1
    if len(runs) > 1 and scores:
        rests_on = len(runs)
        plan = _as_before(plan, [*scores.values()], _groups(group[row] for row in scores), runs=rests_on)
    elif share is not None:
        plan = replace(plan, quiet=share)
    clusters = _groups(group.values())
    text = finds_text(plan, len(answers), None if clusters is None else len({*clusters}))
    return f"{text}; {changes_text(plan, rests_on)}"


def _groups(named: Iterable[str | None]) -> list[Hashable] | None:
    """Return the cluster of each row, ``None`` where each is one of its own."""
    found = whole_clusters(named)
    return None if found is None or len({*found}) == len(found) else found


def _as_before(plan: Plan, scores: Sequence[Sequence[float]], clusters: Clusters, *, runs: int) -> Plan:
    """Return a plan with the changes by chance among the scores of rows in earlier runs."""
    passes_or_fails = all(min(score, 1.0 - score) <= ROUNDING for row in scores for score in row)
    if plan.is_drawn or clusters is not None or not passes_or_fails:
        return replace(plan, runs=unit_scores(scores, clusters))
    changed = sum(abs(before - after) > ROUNDING for row in scores for before, after in pairwise(row))
    return replace(plan, quiet=(changed / 2.0 + 0.5) / (len(scores) * (runs - 1)))
