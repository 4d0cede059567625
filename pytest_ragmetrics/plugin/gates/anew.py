"""The records of a regression gate as today's judge scores them, where those of the baseline cannot be compared.

Scores of one judge can be compared whichever judge it is, so the texts of the baseline are judged by today's; a text
that is the same on both sides has the score of today on both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.codec import dump
from pytest_ragmetrics.core.errors import BatchPendingError, BudgetExceededError, CacheMissError, RagMetricsError
from pytest_ragmetrics.core.result import MetricResult, Usage
from pytest_ragmetrics.core.sample import FIGURES, MEASURED, Sample
from pytest_ragmetrics.evaluation.runner import BoundedMetric, Done, GivesUp, Job, Outcome, Runner, unscored
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.context import Scoring
from pytest_ragmetrics.judges.transports.breaker import CircuitBreaker
from pytest_ragmetrics.metrics.base import Metric, code_of, rule_of
from pytest_ragmetrics.metrics.registry import metric_of_rule
from pytest_ragmetrics.plugin.gates.gate import GatedSet, MarkedGate, unpickled
from pytest_ragmetrics.runs.compare import PlacedRecord, TestChange, pair_records
from pytest_ragmetrics.runs.records import Record, bare_record
from pytest_ragmetrics.runs.tables import EarlierRun, OtherJudgesError
from pytest_ragmetrics.runs.wording.comparisons import MetricComparison
from pytest_ragmetrics.runs.wording.figures import agreeing, counted, named, usage_text
from pytest_ragmetrics.runs.wording.runs import judges_of

if TYPE_CHECKING:
    from pytest_ragmetrics.judges.context import Session

    _Side: TypeAlias = Sequence[PlacedRecord]

_NO_TEXTS = "the baseline has no texts: give a file that --rag-json wrote"


@dataclass(frozen=True, kw_only=True, slots=True)
class Anew:
    """The records ``now`` and ``before`` as one judge scores them, or the ``problem`` why none does.

    ``text`` says what was judged anew and why, ``usage`` is what that took.
    """

    now: Sequence[PlacedRecord] = ()
    before: Sequence[PlacedRecord] = ()
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    problem: str = ""


#: Judges the records of a gate of a set, those now and those before; ``why`` says why they cannot be compared as they
#: are. Those of both sides are judged, and past the cache, where they are to be judged ``afresh``.
JudgesAnew: TypeAlias = "Callable[..., Anew]"


def nobody(*_: object, **__: object) -> Anew:
    """Judge nothing, where the tests of several runs are merged."""
    return Anew(problem="report merge asks no judge, a run of the whole set does")


@dataclass(frozen=True, kw_only=True, slots=True)
class Today:
    """Judges the records of gates in the ``session`` of a run, once each; nothing is recorded there.

    Scores of now stay as they are, unless they are judged afresh or the run ``redacts`` texts: the judge is to see the
    same of both sides.
    """

    session: Session
    redacts: bool = False
    made: dict[object, Anew] = field(default_factory=dict)

    def __call__(
        self, gate: MarkedGate, gated: GatedSet, now: _Side, before: _Side, *, why: Sequence[str], afresh: bool = False
    ) -> Anew:
        """Return the records as today's metric scores them, equal texts with the score of now on both sides.

        The result is a problem where the metric is not known here, the baseline has no texts, or the judge does not
        answer.
        """
        key = gated.function, gate.id, afresh
        if key not in self.made:
            self.made[key] = self._judged(gate, gated, (now, before), why, afresh=afresh)
        return self.made[key]

    def _judged(
        self, gate: MarkedGate, gated: GatedSet, sides: tuple[_Side, _Side], why: Sequence[str], *, afresh: bool
    ) -> Anew:
        pairs = [it for it in pair_records(*sides) if _is_comparable(it)]
        now, before = (
            [it for it in side if it.key in {each.key for each in of if each is not None}]
            for side, of in zip(sides, ([it.new for it in pairs], [it.old for it in pairs]), strict=True)
        )
        with context.changed(private=self.session):
            # The one that a data set lists, else one of its name that has the rules of the records of now.
            rules = {it.record.rule for it in now}
            metric = unpickled(gated.pickled.get(gate.metric, "")) or metric_of_rule(gate.metric, rules)
        if metric is None:
            unknown = f"the code or the arguments of {named(gate.metric)} are not known to its gate"
            return Anew(problem=f"{unknown}: make it in a module that can be imported")
        bounded = BoundedMetric(metric=metric)
        if any(bounded.missing(it.record.sample) for it in before):
            return Anew(problem=_NO_TEXTS)
        texts = {id(it): _text_of(metric, it.record.sample) for it in (*now, *before)}
        known = {texts[id(it)]: it.record for it in now}
        old = [it for it in before if texts[id(it)] not in known]
        equal = known.keys() & {texts[id(it)] for it in before}
        new = [it for it in now if texts[id(it)] not in equal] if afresh or self.redacts else []
        given: dict[str, Any] = {"test": gated.test(gate), "judge": gated.judge, "votes": gated.votes}
        jobs = [Job(sample=it.record.sample, metrics=(bounded,), **given) for it in (*old, *new)]
        found = _Scored(judges={it.record.judge for it in now})
        try:
            with context.changed(replies=context.Replies(fresh=afresh)):
                loop.run(found.score(jobs, self.session))
        except RagMetricsError as error:
            return Anew(problem=str(error), usage=found.usage)
        records = {id(it): known[texts[id(it)]] for it in before if texts[id(it)] in equal}
        records |= {id(it): record for it, record in zip((*old, *new), found.records, strict=True)}
        here, there = ([replace(it, record=records.get(id(it), it.record)) for it in side] for side in sides)
        judged = f"{counted(len(old), 'answer')} of the baseline{f' and {len(new):,} of this run' if new else ''}"
        count = len(before) - len(old)
        same = f"{counted(count, 'answer')} {agreeing(count, 'is')} the same in both" if count else ""
        by = f" with {', '.join(judges)}" if (judges := judges_of(found.records)) else ""
        spent = f": {used}" if (used := usage_text(found.usage)) else ""
        text = f"judged {judged} anew{by}, because {' and '.join(why)}{same and f'; {same}'}{spent}"
        text = text if jobs else f"judged nothing anew, though {' and '.join(why)}: {same}"
        return Anew(now=here, before=there, usage=found.usage, text=text)


def by_one_judge(
    compare: Callable[..., MetricComparison],
    now: _Side,
    there: Sequence[EarlierRun],
    anew: Callable[..., Anew],
    *,
    drift: str = "",
) -> MetricComparison:
    """Return the comparison with the runs before, of scores judged ``anew`` where rules, judges or a drift ask for it.

    Where they cannot be, it is that of the scores there are, with the reason. ``anew`` takes the records of one run.
    """
    sides = [(run, side) for run in there for side in run.records.values()]
    found = [it.obstacles for run, side in sides for it in pair_records(now, side, run.changed) if _is_comparable(it)]
    why = ["the judge changed"] if any("judge" in each for each in found) else []
    why += dict.fromkeys(rule for each in found for rule in each.get("rules", ()))
    why += [drift] if drift else []
    if not why:
        return compare(now, *there)
    # A run with a name is one of a history, which has no texts.
    judged = Anew(problem=_NO_TEXTS) if there[0].name else anew(now, sides[0][1], why=why, afresh=bool(drift))
    if not judged.problem:
        run = replace(there[0], changed={}, records=dict.fromkeys(there[0].records, judged.before))
        return replace(compare(judged.now, run), rejudged=judged.text, usage=judged.usage)
    reason = f"not judged anew: {judged.problem}"
    try:
        compared = compare(now, *there)
    except OtherJudgesError as error:
        error.args, error.usage = (f"{error}; {reason}",), judged.usage
        raise
    # A drop stays one where nothing but a drift speaks against it.
    added: dict[str, Any] = {"rejudged": reason} if drift else {}
    added |= {"doubts": (*compared.doubts, reason)} if compared.doubts else {}
    return replace(compared, usage=judged.usage, **added)


def _is_comparable(pair: TestChange) -> bool:
    is_scored = all(it is not None and it.record.score is not None for it in (pair.new, pair.old))
    return is_scored and not {"question", "metric"} & pair.obstacles.keys()


def _text_of(metric: Metric, sample: Sample) -> str:
    """Return what a metric sees of a sample, whichever run it is of: an own metric may look at all metadata."""
    seen = {name: value for name, value in sample.to_mapping().items() if name not in ("id", "metadata")}
    # What an answer took is another figure in each run.
    every = {name for name in sample.metadata if name not in (MEASURED, *FIGURES)}
    names = every if code_of(type(metric)) else ("messages", "turn", "lacking", *metric.extra_inputs)
    return json.dumps(dump([seen, {name: sample.metadata.get(name) for name in names}]), sort_keys=True)


@dataclass(kw_only=True, slots=True)
class _Scored:
    """The records of samples in their order, as long as the ``judges`` of now judge them."""

    judges: Collection[str | None]
    records: list[Record] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    async def score(self, jobs: Sequence[Job], session: Session) -> None:
        """Add the records of jobs; raise ``RagMetricsError`` where no further one can be made, or others judge."""
        gives_up = GivesUp(breaker := CircuitBreaker(session.concurrency), total=len(jobs), leaves_rows=True)
        unasked: list[Exception] = []

        def watch(metric: Metric, outcome: Outcome) -> None:
            self.usage += getattr(outcome, "usage", None) or Usage()
            if isinstance(outcome, CacheMissError):
                raise outcome
            unasked.extend([outcome] if isinstance(outcome, (BatchPendingError, BudgetExceededError)) else [])
            gives_up(metric, outcome)

        if not jobs:
            return
        with closing(Runner(session, breaker=breaker, watch=watch)) as runner:
            # Of a batch all are to wait at once.
            await runner.run(jobs, partial(self._take, jobs[0].metrics[0].metric), together=session.batched)
        gives_up.check_judged()
        if unasked:  # which ends no request that is under way and paid for
            raise unasked[0]

    def _take(self, metric: Metric, done: Done) -> None:
        found = done.scores[metric.name].outcome
        outcome = found if isinstance(found, MetricResult) else unscored(metric, found)
        scoring = Scoring(metric=metric.name, sample=done.sample, outcome=outcome, better=metric.better)
        self.records.append(bare_record(replace(scoring, rule=rule_of(metric))))
        judge = self.records[-1].judge
        if judge is not None and judge not in self.judges:
            raise RagMetricsError(f"{named(judge)} would judge here, and other judges have in the tests")
