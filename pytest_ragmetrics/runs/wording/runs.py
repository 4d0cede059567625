"""A run in plain lines, for the terminal, the Markdown summary and the page."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Literal, get_args

from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.core.sample import turn_of
from pytest_ragmetrics.runs.records import (
    Document,
    GateRecord,
    Record,
    RecordOutcome,
    RegressionRecord,
    RunRecord,
    TestRecord,
    Threshold,
    flips,
    function_name,
)
from pytest_ragmetrics.runs.wording.comparisons import drop_text, left_out_text
from pytest_ragmetrics.runs.wording.figures import (
    INCONCLUSIVE,
    NOTHING_TO_CHECK,
    agreeing,
    checked_text,
    cost_text,
    counted,
    figure_text,
    is_quantile,
    money_text,
    named,
    score_text,
    shared_text,
    silence_text,
    threshold_text,
    usage_text,
    with_unit,
)
from pytest_ragmetrics.stats.scores import score_set, unit_of

#: How a test came out, the worst first; a test that failed for want of a score is unscored.
Status = Literal["failed", "error", "unscored", "xpassed", "xfailed", "passed", "skipped"]
STATUSES: tuple[Status, ...] = get_args(Status)

# The statuses as labels, and what a test of each did.
_WORDS: Mapping[Status, tuple[str, str]] = {
    "failed": ("failed", "fell short"),
    "error": ("error", "broke off with an error"),
    "unscored": ("unscored", "could not be scored"),
    "xpassed": ("passed unexpectedly", "passed against expectation"),
    "xfailed": ("failed as expected", "fell short as expected"),
    "passed": ("passed", "passed"),
    "skipped": ("skipped", "was skipped"),
}
#: The statuses as labels.
WORDS: Mapping[Status, str] = {status: label for status, (label, _) in _WORDS.items()}
# What separates an error from its cause.
_AFTER_CAUSE = re.compile(
    r"^(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):$",
    re.MULTILINE,
)
#: The statuses of tests that went wrong, and those of the others.
WRONG: tuple[Status, ...] = ("failed", "error", "unscored")
_FINE: tuple[Status, ...] = ("passed", "xpassed", "xfailed", "skipped")


def status_of(test: TestRecord) -> Status:
    """Return how a test came out; what it did not assert decided nothing."""
    outcomes = {record.outcome for record in test.records if record.asserted}
    if test.outcome in ("failed", "error") and "unscored" in outcomes and "failed" not in outcomes:
        return "unscored"
    return test.outcome


def blamed(test: TestRecord) -> list[Record]:
    """Return the scores that a test failed for, and those that it lacks: what it did not assert is none of them."""
    return [record for record in test.records if record.asserted and record.outcome in ("failed", "unscored")]


def gist(message: str | None) -> str:
    r"""Return the line of pytest's message that says the most: the first of the error, else the first.

    An error with causes is shown by its own line: the error itself comes last, after its causes.

    >>> gist(">   assert 41 < 20\nE   assert 41 < 20"), gist("Skipped: no data"), gist(None)
    ('assert 41 < 20', 'Skipped: no data', '')
    """
    lines = [line for line in errors_in(message or "")[-1].splitlines() if line.strip()]
    return next((line[1:].strip() for line in lines if re.match(r"E\s", line)), lines[0].strip() if lines else "")


def errors_in(message: str) -> list[str]:
    """Return what pytest says of an error and of its causes: the first cause first, the error itself last."""
    return _AFTER_CAUSE.split(message)


def is_cut_short(run: RunRecord) -> bool:
    """Tell whether a run stopped before its last test: it was interrupted, or broke."""
    return run.exit_status in (2, 3)


def outcome_of(document: Document) -> str:
    """Return the outcome of a run in one sentence: of its tests, which gates are not, then of its gates."""
    counts = Counter(status_of(test) for test in document.tests if test.gate is None)
    gates = [test for test in document.tests if test.gate is not None]
    failed = sum(status_of(test) in WRONG for test in gates)
    text = f", {failed:,} of {counted(len(gates), 'gate')} failed" if failed else ""
    return headline(counts, gates=text, cut_short=is_cut_short(document.run))


def headline(counts: Mapping[Status, int], *, gates: str = "", cut_short: bool = False) -> str:
    """Return the outcome of a run in one sentence, with what its gates add, which says whether it stopped early.

    >>> headline({"failed": 3, "passed": 23, "unscored": 1})
    '3 of 27 tests fell short, 1 could not be scored'
    >>> headline({"passed": 12, "skipped": 1})
    'No test failed: 12 passed, 1 was skipped'
    >>> headline({"passed": 12}, cut_short=True)
    'All 12 tests passed, then the run stopped early'
    """
    total = sum(counts.values())
    of_all = f" of {counted(total, 'test')}"
    wrong = [status for status in WRONG if counts.get(status)]
    parts = [
        f"{counts[status]:,}{of_all if [status] == wrong[:1] else ''} "
        + _WORDS[status][1].replace("was", agreeing(counts[status], "was"))
        for status in wrong or _FINE
        if counts.get(status)
    ]
    if wrong:
        text = ", ".join(parts)
    elif not total:
        text = "No test was recorded"
    elif counts.get("passed", 0) == total:
        text = f"All {total:,} tests passed" if total > 1 else "The test passed"
    else:
        text = f"No test failed: {', '.join(parts)}"
    return f"{text}{gates}{', then the run stopped early' if cut_short else ''}"


_NAMED = 3
_DECIMALS = 3
TALLY_HEAD = ("metric", "n", "mean", "min", "failing", "unscored")


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricTally:
    """A metric over a whole run: the ``n`` scores that count, beside the ``unscored`` and the ``vacuous`` ones.

    ``mean`` and ``lowest`` are ``None`` where no score counts. ``skipped`` and ``not_needed`` count the tests without a
    score in the functions that the metric scores.
    """

    metric: str
    n: int
    mean: float | None
    lowest: float | None
    failing: int
    unscored: int
    vacuous: int
    skipped: int = 0
    not_needed: int = 0
    unit: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of :data:`TALLY_HEAD` in a table."""
        ends = (self.mean, self.lowest)
        scores = ("-" if score is None else figure_text(score, self.unit) for score in ends)
        return (named(self.metric), str(self.n), *scores, str(self.failing), str(self.unscored))

    @property
    def left_out(self) -> str:
        """How many tests were skipped or not needed; else nothing."""
        counts = {"skipped": self.skipped, "not needed": self.not_needed}
        return ", ".join(f"{counted(number, 'test')} {word}" for word, number in counts.items() if number)

    @property
    def beside(self) -> str:
        """What is not in the mean, apart from what is unscored: vacuous scores and tests without any; else nothing."""
        return ", ".join(filter(None, (checked_text(self.n, self.vacuous) if self.vacuous else "", self.left_out)))


def by_metric(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Return the records of every metric, by name."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.metric, []).append(record)
    return dict(sorted(found.items()))


def tallies(document: Document) -> list[MetricTally]:
    """Return every metric over a run, by name."""
    functions: dict[str, set[str]] = {}
    for test in document.tests:
        for record in test.records:
            functions.setdefault(record.metric, set()).add(function_name(test.id))
    run = document.run
    found = []
    for metric, group in by_metric(record for test in document.tests for record in test.records).items():
        skipped, not_needed = (sum(map(it.get, functions[metric], repeat(0))) for it in (run.skipped, run.not_needed))
        found.append(replace(tally(metric, group), skipped=skipped, not_needed=not_needed))
    return found


def tally(metric: str, records: Sequence[Record]) -> MetricTally:
    """Return a metric over its records."""
    found = score_set(records)
    scores = found.scores
    return MetricTally(
        metric=metric,
        n=len(found.counted),
        mean=math.fsum(scores) / len(scores) if scores else None,
        lowest=min(scores, default=None),
        failing=sum(record.outcome == "failed" for record in records),
        unscored=len(found.unscored),
        unit=unit_of(records),
        vacuous=len(found.vacuous),
    )


def checked_lines(found: Iterable[MetricTally]) -> list[str]:
    """Return a line on each metric with scores or tests that are left out of its figures."""
    return [f"{named(tally.metric)}: {tally.beside}" for tally in found if tally.beside]


_WORST_FIRST: Mapping[RecordOutcome, int] = {"failed": 0, "unscored": 1, "passed": 2, "measured": 3}


def badness(record: Record) -> tuple[int, float]:
    """Return the key that sorts records the worst first: by outcome, then by how far they are from the threshold.

    One that had nothing to check says less than any other of its outcome.
    """
    return _WORST_FIRST[record.outcome], math.inf if record.vacuous else margin(record)


def margin(record: Record) -> float:
    """Return how far a score is on the good side of its threshold, negative where it fell short."""
    threshold, score = record.threshold, record.score
    if threshold is None or score is None:
        return math.inf
    above = score - threshold.bound
    if threshold.operator == "==":
        return -abs(above)
    return above if threshold.operator in (">", ">=") else -above


def gate_title(gate: GateRecord, *, ascii_only: bool = False) -> str:
    """Return what a gate is over.

    >>> gate = GateRecord(metric="faithfulness", statistic="rate", bound=0.9, min_score=0.8, better="higher", value=1.0,
    ...     low=None, high=None, n=9, unscored=0, total=9, outcome="passed")
    >>> gate_title(gate), gate_title(gate, ascii_only=True)
    ('share of faithfulness ≥ 0.80', 'share of faithfulness >= 0.8')
    """
    if gate.regression is not None:
        which = " (lower is better)" if gate.better == "lower" else ""
        by = f", by {gate.regression.by}" if gate.regression.by else ""
        return f"{gate.metric}{which} against {gate.regression.against or 'the baseline'}{by}"
    if gate.statistic != "rate" or gate.min_score is None:
        return f"mean {gate.metric}"
    reached = Threshold(operator="<=" if gate.better == "lower" else ">=", bound=gate.min_score)
    if is_quantile(gate):
        return f"{_ordinal(100 * gate.bound)} percentile of {gate.metric}"
    plain = f"{reached.operator} {with_unit(f'{reached.bound:g}', gate.unit)}"
    shown = plain if ascii_only else threshold_text(reached, gate.unit)
    return f"share of {'rows with every ' if gate.all_pass else ''}{gate.metric} {shown}"


def _ordinal(number: float) -> str:
    text = f"{number:g}"
    ending = {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    return f"{text}{'th' if text[-2:-1] == '1' or '.' in text else ending}"


def shown_gate(gate: GateRecord) -> GateRecord:
    """Return a gate with the figures that are shown: of a percentile the score and its bound instead of the share."""
    if gate.min_score is None or not is_quantile(gate) or (gate.value is not None and gate.percentile is None):
        return gate
    return replace(gate, statistic="mean", value=gate.percentile, bound=gate.min_score, low=None, high=None)


def gate_operator(gate: GateRecord) -> Literal["<=", ">="]:
    """Return how the value of a gate has to compare with its bound: a share has to be high whatever it is of."""
    return "<=" if gate.better == "lower" and gate.statistic == "mean" else ">="


def gate_line(gate: GateRecord) -> str:
    """Return what a threshold over a whole set found."""
    if gate.regression is not None:
        return _regression_line(gate, gate.regression)
    what = named(gate_title(gate, ascii_only=True))
    shown = shown_gate(gate)
    unit = "" if shown.statistic == "rate" else gate.unit
    needed = f"needed {gate_operator(shown)} {with_unit(f'{shown.bound:g}', unit)}"
    if gate.outcome == "skipped":
        return f"{what}, {needed}: skipped ({', '.join(gate_counts(gate))})"
    none = NOTHING_TO_CHECK if gate.vacuous and not gate.unscored else "nothing scored"
    value = none if shown.value is None else score_text(shown.value, shown.bound, least=_DECIMALS, unit=unit)
    interval = ""
    if gate.confidence is not None and gate.low is not None and gate.high is not None:
        own = unit if shown is gate else ""
        ends = " to ".join(score_text(end, gate.bound, least=_DECIMALS, unit=own) for end in (gate.low, gate.high))
        of = "" if shown is gate else " of the share within it"
        interval = f"{100 * gate.confidence:g}% interval{of} {ends}"
    sides = filter(None, [*gate_counts(gate), interval, stop_text(gate)])
    return f"{what} {value}, {needed}: {gate_outcome(gate)} ({', '.join(sides)})"


def _unscored(gate: GateRecord) -> str:
    return f"{gate.unscored} unscored" if gate.unscored else ""


_NO_BASELINE = "no baseline has its scores yet: --rag-json=FILE writes one, and --rag-baseline=FILE compares with it"


def gate_counts(gate: GateRecord) -> list[str]:
    """Return how many scores or pairs a gate is over, and what is left out of them, or why it is skipped."""
    if gate.outcome == "skipped":
        if gate.regression is not None and gate.n + gate.unscored + gate.vacuous >= gate.total:
            return [_NO_BASELINE]
        return [f"not all of {counted(gate.total, 'test')} of the set ran"]
    left_out = regression_rows(gate) if gate.regression else [gate_checked(gate)]
    return [f"n {gate.n}", *filter(None, [_unscored(gate), *left_out])]


def gate_outcome(gate: GateRecord) -> str:
    """Return how a gate came out, and why it is inconclusive where it is."""
    if gate.outcome != "inconclusive":
        return gate.outcome
    return INCONCLUSIVE if gate.regression is None else f"inconclusive: {'; '.join(gate.regression.doubts)}"


def _regression_line(gate: GateRecord, found: RegressionRecord) -> str:
    what = named(gate_title(gate))
    if found.before is None or found.after is None:
        why = gate_counts(gate) if gate.outcome == "skipped" else ["nothing compared", _unscored(gate)]
        return f"{what}: {gate_outcome(gate)} ({', '.join(filter(None, why))})"
    means = " -> ".join(figure_text(mean, gate.unit) for mean in (found.before, found.after))
    sides = "; ".join(filter(None, (", ".join(gate_counts(gate)), regression_text(gate))))
    return f"{what} {means}, needed no proven drop: {gate_outcome(gate)} ({sides})"


def regression_text(gate: GateRecord) -> str:
    """Return whether a regression gate shows a drop, else the smallest one that would show; "" without pairs."""
    found = gate.regression
    if found is None or gate.outcome == "inconclusive":
        return ""
    # What was judged anew, or why not, is one of the notes.
    anew = f"{'not ' * found.rejudged.startswith('not ')}judged anew: see the notes" if found.rejudged else ""
    return "; ".join(filter(None, (drop_text(found, gate.n, gate.unit), anew)))


def beside_lines(tests: Sequence[TestRecord]) -> list[str]:
    """Return the lines on scores that no test asserts, and on the rows of gates that share passages.

    Those scores are checked by nothing, or are of labelled answers.
    """
    gated = {(function_name(test.id), test.gate.metric) for test in tests if test.gate is not None}
    scored = [(test, record) for test in tests for record in test.records if record.score is not None]
    forgotten = [
        record.metric
        for test, record in scored
        if test.outcome == "passed"
        and (record.outcome, record.used) == ("measured", False)
        and (function_name(test.id), record.metric) not in gated
    ]
    what = f"{len(forgotten):,} of {counted(len(scored), 'score')} {agreeing(len(forgotten), 'was')} checked by no"
    metrics = ", ".join(map(named, dict.fromkeys(forgotten)))
    lines = [f"{what} assertion or gate: {metrics}"] if forgotten else []
    for metric, rows in by_metric(record for test in tests for record in test.calibration).items():
        judges = "".join(f" by {judge}" for judge in judges_of(rows))
        what = f"{counted(len(rows), 'labelled row')} of {named(metric)}{judges}"
        lines.append(f"calibration: {what}, in no figure of the application")
    shared: dict[str, dict[str, None]] = {}
    for gate in (test.gate for test in tests if test.gate is not None):
        text = shared_text(gate.shared, gate.groups, apart=gate.statistic != "regression")
        shared.setdefault(text, {})[named(gate.metric)] = None
    return [*lines, *(f"{', '.join(metrics)}: {text}" for text, metrics in shared.items() if text)]


def regression_rows(gate: GateRecord) -> list[str]:
    """Return how many rows of a regression gate are not compared: those of one run only, and the vacuous ones."""
    found = gate.regression
    counts = {} if found is None else {"new": found.new, "gone": found.gone, "with another question": found.rewritten}
    sides = [f"{count} {word}" for word, count in counts.items() if count]
    vacuous = f"{gate.vacuous} with {NOTHING_TO_CHECK}" if gate.vacuous and not (found and found.silence) else ""
    if found is not None and found.left_out and not found.doubts:
        sides.append(f"runs {left_out_text(found.left_out)}")
    return [*sides, *filter(None, ("vacuous scores count" if gate.counts_vacuous else "", vacuous))]


def stop_text(gate: GateRecord) -> str:
    """Return how many rows a gate took that stops when it is decided; nothing for another one, or if it was skipped."""
    stop = gate.stop
    if stop is None or gate.outcome == "skipped":
        return ""
    rows = f"{counted(gate.total, 'row')} (seed {named(stop.seed or '')})"
    if stop.decided_after is not None:
        saved = f"{stop.spared:,} not needed, {counted(stop.judgements, 'judgement')} saved"
        return f"decided after {stop.decided_after:,} of {rows}, {saved}"
    if gate.outcome == "inconclusive":
        return f"not decided by the first of {rows}"
    return "" if gate.n + gate.vacuous < gate.total else f"exact: all {counted(gate.total, 'row')}"


def gate_checked(gate: GateRecord) -> str:
    """Return how many scores of a gate count where others are vacuous, or that these count too; else nothing."""
    if gate.counts_vacuous:
        return "vacuous scores count"
    if gate.vacuous and gate.vacuous_before is not None:
        return silence_text(gate.vacuous, gate.n + gate.vacuous, gate.vacuous_before)
    return checked_text(gate.n, gate.vacuous) if gate.vacuous else ""


def flaky_lines(tests: Iterable[TestRecord]) -> list[str]:
    """Return a line with the tests whose outcome depends on which votes were cast, if there are any."""
    found = [t.id for t in tests if any(flips(r.samples, r.threshold) for r in t.records)]
    if not found:
        return []
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return [f"flaky: {counted(len(found), 'test')} whose votes disagree: {', '.join(map(named, found[:_NAMED]))}{more}"]


def last_answers_text(answers: Sequence[int]) -> str:
    """Return the note on conversations of so many answers each, of which only the last was scored.

    >>> last_answers_text([2, 9, 3])
    '3 conversations: only the last of 2 to 9 answers was scored; turns="each" scores all'
    """
    least, most = min(answers), max(answers)
    of_all = f"{least}" if least == most else f"{least} to {most:,}"
    talks = counted(len(answers), "conversation")
    return f'{talks}: only the last of {of_all} answers was scored; turns="each" scores all'


def scored_once_text(rows: int) -> str:
    """Return the note on rows with a response, where others got several answers.

    >>> scored_once_text(2)
    '2 rows have a response already: it was scored once, answers= is for rows without one'
    """
    have = agreeing(rows, "has")
    return f"{counted(rows, 'row')} {have} a response already: it was scored once, answers= is for rows without one"


def conversation_costs(records: Iterable[Record]) -> list[str]:
    """Return the line on what conversations cost whose turns were scored; nothing where that cost nothing."""
    samples = [(it.sample, turn_of(it.sample), it.usage.cost or 0.0) for it in records]
    paid = [(str(it.metadata["conversation"]), turn, cost) for it, turn, cost in samples if turn is not None]
    total = math.fsum(cost for *_, cost in paid)
    if not total:
        return []
    talks, of_turns = {name for name, *_ in paid}, [each for each in paid if isinstance(each[1], int)]
    turns = {each[:2] for each in of_turns}
    costs = [f"{cost_text(total / len(talks))} a conversation"]
    costs += [f"{cost_text(math.fsum(it[2] for it in of_turns) / len(turns))} a turn"] if turns else []
    return [f"{counted(len(talks), 'conversation')}, {counted(len(turns), 'turn')}: {', '.join(costs)}"]


def paid_records(tests: Iterable[TestRecord]) -> list[Record]:
    """Return the records of all scorings, those that calibrate a judge among them."""
    return [record for test in tests for record in (*test.records, *test.calibration)]


def paid_usages(document: Document) -> list[Usage]:
    """Return what each scoring of a run took, and what sentinels, gates that judged anew and blame did."""
    records = [record.usage for record in paid_records(document.tests)]
    others = [it.usage for it in document.run.sentinels.values()]
    others += [test.gate.regression.usage for test in document.tests if test.gate and test.gate.regression]
    others += [it.blame.usage for test in document.tests for it in test.records if it.blame]
    return [*records, *(usage for usage in others if usage != Usage())]


def rejudged_lines(tests: Iterable[TestRecord]) -> list[str]:
    """Return what gates judged anew, and what that took."""
    gates = [test.gate for test in tests if test.gate is not None]
    return [f"{named(it.metric)}: {it.regression.rejudged}" for it in gates if it.regression and it.regression.rejudged]


def spent_text(usages: Sequence[Usage]) -> str:
    """Return what scorings cost together, "" when they asked nothing."""
    saved = money_text(usage.saved for usage in usages) if any(usage.saved for usage in usages) else None
    return usage_text(sum(usages, Usage()), cost=money_text(usage.cost for usage in usages), saved=saved)


def judges_of(records: Iterable[Record]) -> list[str]:
    """Return the names of the judges, sorted."""
    return sorted({named(name) for record in records if record.judge for name in record.judge.split(", ")})
