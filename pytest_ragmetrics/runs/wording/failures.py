"""The texts of failures: metric, score, bound and counts in the first line, the worst verdicts or rows below it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_ragmetrics.core.messages import read_messages
from pytest_ragmetrics.core.result import Decision, MetricResult, ThresholdCheck, Verdict, pooled
from pytest_ragmetrics.core.sample import Sample, is_conversation, turn_of
from pytest_ragmetrics.runs.records import Record, StopRecord, Threshold, is_met
from pytest_ragmetrics.runs.wording.figures import (
    CONTRARY,
    INCONCLUSIVE,
    SHORT,
    SHOWN,
    agreeing,
    and_more,
    checked_text,
    counted,
    describe_uncounted,
    describe_votes,
    format_apart,
    format_interval,
    named,
    quoted,
    readable,
    score_text,
    with_unit,
)
from pytest_ragmetrics.text.unicode import printable

if TYPE_CHECKING:
    from pytest_ragmetrics.runs.wording.comparisons import MetricComparison
    from pytest_ragmetrics.stats.means import ThresholdResult
    from pytest_ragmetrics.stats.scores import ScoredRow

_CHANGES_SHOWN = 6
# How much of a row is shown; the page and the JSON file have all of it.
_CONTEXTS_SHOWN = 5
_MESSAGES_SHOWN = 4
_LONGEST = 600
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def explain(result: MetricResult, comparison: ThresholdCheck | None) -> list[str]:
    """Return the lines that say why a result met or missed a bound, or what was found where there is none.

    The first line has metric, score, bound and counts; then the verdicts that are not ok, the worst first, and
    where the judges of a panel disagree.
    """
    failed = failed_verdicts(result)
    lines = [headline(result, comparison)]
    for verdict in failed[:SHOWN]:
        lines.extend(_verdict_lines(verdict, result.complaint))
    lines += and_more(len(failed))
    lines += [f"  judges: {readable(text)}" for text in result.disagreements[:SHOWN]]
    return lines + and_more(len(result.disagreements))


def explain_sample(outcomes: Mapping[str, MetricResult | Exception]) -> list[str]:
    """Return the lines that say which metrics of a sample fell short or are unscored, then of each of them why."""
    heads: list[str] = []
    lines: list[str] = []
    unscored = 0
    for name, outcome in outcomes.items():
        if not isinstance(outcome, MetricResult):
            unscored += 1
            heads.append(f"{printable(name)} unscored")
            lines.append(f"{heads[-1]}: {readable(str(outcome).removeprefix(f'{name}: '))}")
        elif outcome.comparison is not None and not outcome.comparison.held:
            heads.append(held_line(outcome, outcome.comparison))
            lines += explain(outcome, outcome.comparison)
    of_all = f"of {counted(len(outcomes), 'metric')}"
    if unscored == len(heads):
        return [f"{unscored} {of_all} unscored", *lines]
    rest = f", {unscored} unscored" if unscored else ""
    return [f"{len(heads) - unscored} {of_all} fell short{rest}: {', '.join(heads)}", *lines]


#: What became of a metric in each turn of a conversation, or in "all".
OfTurns = Mapping[int | str, MetricResult | Exception]


def explain_conversation(outcomes: Mapping[str, OfTurns]) -> list[str]:
    """Return the lines that say which metrics of a conversation fell short or are unscored, and why in which turns."""
    heads: list[str] = []
    lines: list[str] = []
    fell_short = 0
    for name, by_turn in outcomes.items():
        results = {turn: it for turn, it in by_turn.items() if isinstance(it, MetricResult)}
        if any(it.comparison is not None and not it.comparison.held for it in results.values()):
            fell_short += 1
            why = _turn_lines(results)
            heads.append(why[0].partition(":")[0])
            lines += why
        errors = {turn: str(it) for turn, it in by_turn.items() if not isinstance(it, MetricResult)}
        heads += [f"{printable(name)} unscored"] if errors else []
        for turn, reason in errors.items():
            place = "" if turn == "all" else f" in turn {turn}"
            lines.append(f"{printable(name)} unscored{place}: {readable(reason.removeprefix(f'{name}: '))}")
    state = f"{fell_short} of {counted(len(outcomes), 'metric')} fell short" if fell_short else "unscored"
    return [f"{state}: {', '.join(heads)}", *lines]


def _turn_lines(results: Mapping[int | str, MetricResult]) -> list[str]:
    """Return the lines on a metric that fell short in some turns: the score is that of all, or the worst turn's."""
    compared = [(turn, it, it.comparison) for turn, it in results.items() if it.comparison is not None]
    short = [(turn, it, check) for turn, it, check in compared if not check.held]
    turn, worst, check = short[0]
    if turn == "all":
        return explain(worst, check)
    whole = pooled([*results.values()])
    sign = -1 if check.operator in ("<", "<=") else 1
    if is_met(whole.value, Threshold(operator=check.operator, bound=check.bound)):
        whole = min((it for _, it, _ in short), key=lambda it: sign * it.value)
    *first, last = [str(turn) for turn, _, _ in short]
    where = f"in turns {', '.join(first)} and {last}" if first else f"in turn {last}"
    whole = whole.replaced(verdicts=[verdict for verdict in whole.verdicts if verdict.counts])
    summary = _summary(whole) or _summary(worst)
    failed = [verdict for _, it, _ in short for verdict in failed_verdicts(it)]
    lines = [f"{held_line(whole, check)}: {summary}, {where} of {len(results)}"]
    for verdict in failed[:SHOWN]:
        lines.extend(_verdict_lines(verdict, worst.complaint))
    return lines + and_more(len(failed))


def explain_row(sample: Sample, *, longest: int | None = None) -> list[str]:
    """Return the lines that show what a row asks, what was answered and from which contexts, each shortened.

    Texts of more than ``longest`` characters are, by default contexts of 300, others of 600. A conversation is shown
    by its last messages.

    >>> explain_row(Sample(user_input="How long?", response="Two minutes.", retrieved_contexts=["It takes two."]))
    ['question: "How long?"', 'answer: "Two minutes."', 'contexts[0]: "It takes two."']
    """
    given = sample.metadata.get("messages")
    messages = read_messages(given) if is_conversation(given) else ()
    limit = longest or _LONGEST
    earlier = len(messages) - _MESSAGES_SHOWN
    turn = turn_of(sample)
    lines = [f"turn {turn}"] if isinstance(turn, int) else []
    lines += [f"{counted(earlier, 'earlier message')}, then"] if earlier > 0 else []
    for message in messages[-_MESSAGES_SHOWN:]:
        calls = f" calls {', '.join(named(call.name) for call in message.tool_calls)}" if message.tool_calls else ""
        lines.append(f"{message.role}{calls}: {quoted(message.text, longest or SHORT)}")
    texts = {
        "question": None if messages else sample.user_input,
        "answer": None if messages and sample.response == messages[-1].text else sample.response,
        "reference": sample.reference,
    }
    lines += [f"{name}: {quoted(text, limit)}" for name, text in texts.items() if text is not None]
    contexts = sample.retrieved_contexts
    if contexts is None:
        return lines
    shown = enumerate(contexts[:_CONTEXTS_SHOWN])
    lines += [f"contexts[{index}]: {quoted(text, longest or SHORT)}" for index, text in shown]
    if len(contexts) > _CONTEXTS_SHOWN:
        lines.append(f"... and {counted(len(contexts) - _CONTEXTS_SHOWN, 'more context')}")
    return lines if contexts else [*lines, "contexts: none"]


def explain_comparison(operator: str, left: object, right: object) -> list[str] | None:
    """Return the explanation of a failed ``left <operator> right``; ``None`` when neither side is a result."""
    if not isinstance(left, MetricResult):
        left, operator, right = right, _MIRRORED.get(operator, operator), left
    if not isinstance(left, MetricResult) or isinstance(right, MetricResult):
        return None
    held = left.comparison
    return None if held is None or (held.operator, held.bound) != (operator, right) else explain(left, held)


def headline(result: MetricResult, comparison: ThresholdCheck | None) -> str:
    """Return one line: metric, score, bound and counts.

    >>> headline(MetricResult(0.5, metric="coverage"), ThresholdCheck(operator=">=", bound=0.9, held=False))
    'coverage 0.50 < 0.90'
    """
    first, summary = held_line(result, comparison), _summary(result)
    return f"{first}: {summary}" if summary else first


def shortcoming(result: MetricResult | Record) -> str:
    """Return in a few words what is wrong with a result: the counts and the worst piece, or else its reason.

    >>> moon = Verdict(text="the moon is green", ok=False)
    >>> shortcoming(MetricResult(0.0, metric="mine", verdicts=[moon], noun="claim", complaint="not supported"))
    '1 of 1 claim not supported: "the moon is green"'
    """
    failed = failed_verdicts(result)
    return f"{_summary(result)}: {turn_text(failed[0])}{quoted(failed[0].text)}" if failed else _summary(result)


def turn_text(verdict: Verdict) -> str:
    """Return what the line on a verdict begins with: the turn of a conversation that it is about."""
    return "" if verdict.turn is None else f"turn {verdict.turn} "


def held_line(result: MetricResult, comparison: ThresholdCheck | None) -> str:
    """Return metric, score and bound.

    >>> held_line(MetricResult(0.5, metric="coverage"), None)
    'coverage 0.50'
    """
    if comparison is None:
        return f"{result.metric} {score_text(float(result), unit=result.unit)}"
    operator = comparison.operator if comparison.held else CONTRARY[comparison.operator]
    score, bound = format_apart(float(result), comparison.bound, result.unit)
    return f"{result.metric} {score} {operator} {bound}"


def check_of(record: Record) -> ThresholdCheck | None:
    """Return the comparison of a scored record with its threshold."""
    if (limit := record.threshold) is None:
        return None
    return ThresholdCheck(operator=limit.operator, bound=limit.bound, held=is_met(record.score or 0.0, limit))


def _summary(result: MetricResult | Record) -> str:
    failed = len(failed_verdicts(result))
    if not failed:
        return printable(result.reason or "")
    total = sum(verdict.counts for verdict in result.verdicts)
    counts = f"{failed} of {counted(total, result.noun)} {result.complaint}{describe_uncounted(result.verdicts)}"
    wanted, unscored = len(result.samples), 0
    if isinstance(result, MetricResult):
        wanted, unscored = result.votes, result.unscored_votes
    votes = describe_votes(result.samples, wanted, unscored=unscored)
    # The verdicts are those of the vote that is nearest to the mean.
    return f"{counts}; {votes}" if votes else counts


def failed_verdicts(result: MetricResult | Record) -> list[Verdict]:
    """Return the verdicts that are not ok, turn by turn, the worst first."""

    def order(verdict: Verdict) -> tuple[int, float]:
        return verdict.turn or 0, verdict.nearest.similarity if verdict.nearest else 0.0

    return sorted((verdict for verdict in result.verdicts if not verdict.ok), key=order)


def _verdict_lines(verdict: Verdict, complaint: str) -> Iterator[str]:
    place = f" (response[{verdict.start}:{verdict.end}])" if verdict.start is not None else ""
    turn = "" if verdict.turn is None else f"turn {verdict.turn}"
    reason = verdict.reason
    if verdict.kind == "repeated" and reason:
        complaint, reason = reason.partition(",")[0], None
    yield f"  {turn and f'{turn}  '}{complaint}: {quoted(verdict.text)}{place}"
    if verdict.suspicious:
        yield "    suspicious: the evidence does not bear it out"
    if reason and not reason.endswith(complaint):
        yield f"    reason: {readable(reason)}"
    if verdict.nearest:
        near = verdict.nearest
        place = f"contexts[{near.context}][{near.start}:{near.end}], {near.similarity:.0%} alike"
        place = f"{turn}, {place}" if turn else place
        yield f"    nearest: {quoted(near.text)} ({place})"
        texts = []
        for change in (it for it in near.changes if it.kind != "same"):
            words = {"replaced": f"{quoted(change.said)} where the source has {quoted(change.source)}"}
            words |= {"added": f"adds {quoted(change.said)}", "missing": f"leaves out {quoted(change.source)}"}
            texts.append(words[change.kind])
        if texts:
            rest = f"; and {len(texts) - _CHANGES_SHOWN} more" if len(texts) > _CHANGES_SHOWN else ""
            yield f"    differs: {'; '.join(texts[:_CHANGES_SHOWN])}{rest}"


def explain_threshold(result: ThresholdResult, rows: Sequence[ScoredRow] = (), stop: Sequence[str] = ()) -> list[str]:
    """Return the lines that say whether a set of scores meets a bound: the figures, then the worst rows.

    ``rows`` are those of the set whose score counts; of those on the wrong side of the bound the worst are shown, at
    most :data:`SHOWN`, answers to one row together. ``stop`` are the lines of :func:`explain_stop` on a set of which a
    part may have a score.
    """
    from pytest_ragmetrics.stats.scores import by_row  # not at start: a helper that fails has no set

    lines = [_threshold_line(result), *stop]
    several = not result.all_pass and any(row.row is not None for row in rows)
    if several:
        lines.append(
            f"  {counted(len(rows), 'answer')} to {counted(len(by_row(rows)), 'row')}: those to a row count together"
        )
    if result.outcome == "inconclusive" and not stop:
        close = f"the {result.statistic} is too close to the bound, or the rows too few, to tell how many more"
        start = (
            close if result.more is None else f"about {counted(result.more, 'more answer' if several else 'more row')}"
        )
        lines.append(f"  {start} would settle it{'' if result.more is None else ' if they are like these'}")
    if result.vacuous:
        lines.append(f"  {checked_text(result.n, result.vacuous)}")
    if result.unscored:
        lines.append(f"  left out: {counted(result.unscored, 'unscored row')}")
    sign = -1.0 if (result.score_better if result.score_bound is not None else result.better) == "lower" else 1.0
    bound = result.bound if result.score_bound is None else result.score_bound
    short = []
    for answers in by_row(rows):
        scored = [(row.score, row) for row in answers if row.score is not None and sign * row.score < sign * bound]
        if scored:
            score, row = min(scored, key=lambda pair: sign * pair[0])
            of_row = f"{named(str(row.row))}, {len(scored)} of {counted(len(answers), 'answer')}"
            short.append((score, row, named(row.name) if row.row is None else of_row))
    short.sort(key=lambda it: sign * it[0])
    for score, row, name in short[:SHOWN]:
        shown = format_apart(score, bound, result.unit)[0]
        lines.append(f"  {shown}  {name}{f': {readable(row.reason)}' if row.reason else ''}")
    return lines + and_more(len(short))


def explain_stop(outcome: Decision, stop: StopRecord, total: int) -> list[str]:
    """Return the lines that say which rows decided a gate that stops, and for which rows that holds.

    >>> explain_stop("passed", StopRecord(seed="a", decided_after=59, asked=67, spared=433, judgements=433), 500)[0]
    "  decided after 59 of 500 rows in the order drawn by the seed 'a'; 433 not needed, 433 judgements saved"
    """
    if outcome != "inconclusive" and stop.decided_after is None:
        return [f"  exact: all {counted(total, 'row')} of this set have a score"]
    order = f"{counted(total, 'row')} in the order drawn by the seed {stop.seed!r}"
    if stop.decided_after is None:
        return [f"  not decided: of the {order} only the first have a score, the run ended before the others"]
    saved = f"{stop.spared:,} not needed, {counted(stop.judgements, 'judgement')} saved"
    return [
        f"  decided after {stop.decided_after:,} of {order}; {saved}",
        f"  the interval is for all {total:,} of them: whether this set passes, not the application beyond it",
    ]


def _threshold_line(result: ThresholdResult) -> str:
    name, unit = printable(result.metric), "" if result.statistic == "rate" else result.unit
    value, bound = format_apart(result.value, result.bound, unit)
    held = result.value <= result.bound if result.better == "lower" else result.value >= result.bound
    kept = "<=" if result.better == "lower" else ">="
    figure, counts = "mean" if result.statistic == "mean" else "pass rate", [f"n={result.n}"]
    if result.score_bound is not None:
        sign = "<=" if result.score_better == "lower" else ">="
        what = "rows with every score" if result.all_pass else "scores"
        counts = [f"{result.reached} of {result.n} {what} {sign} {with_unit(f'{result.score_bound:g}', result.unit)}"]
    if result.interval is not None:
        counts.insert(0, format_interval(result.interval, apart_from=result.bound, unit=unit))
    if result.percentile is not None and result.score_bound is not None and not result.all_pass:
        value, bound = format_apart(result.percentile, result.score_bound, result.unit)
        figure, kept, counts = f"p{100 * result.bound:g}", "<=", [": ".join(reversed(counts))]
    outcome = INCONCLUSIVE if result.outcome == "inconclusive" else result.outcome
    return f"{name} {figure} {value} {kept if held else CONTRARY[kept]} {bound} ({', '.join(counts)}): {outcome}"


def explain_unscored(
    metric: str, total: int, unscored: Sequence[ScoredRow], *, hint: str = "; skip_unscored=True leaves them out"
) -> list[str]:
    """Return the lines that say which rows of a set have no score, by name and reason, so that no figure is given."""
    of_all = f"{len(unscored)} of {counted(total, 'row')} {agreeing(len(unscored), 'is')} unscored"
    lines = [f"{printable(metric)}: {of_all}{hint}"]
    lines += [f"  {named(row.name)}: {readable(row.reason or '')}" for row in unscored[:SHOWN]]
    return lines + and_more(len(unscored))


def explain_vacuous(metric: str, vacuous: int) -> str:
    """Return why there is no figure over a set in which there was nothing to check."""
    return f'{printable(metric)}: {checked_text(0, vacuous)}; vacuous="count" takes the scores as they are'


def explain_not_worse(
    comparison: MetricComparison, *, margin: float, outcome: Decision, more: int | None = None
) -> list[str]:
    """Return the lines that say whether a metric became worse by more than a margin, and in which rows.

    ``more`` is how many further rows would settle an inconclusive outcome.
    """
    # It brings the statistics, which a failing helper does not need.
    from pytest_ragmetrics.runs.wording.comparisons import remedy

    lines = comparison.lines()
    doubts = "; ".join(comparison.doubts)
    text = f"inconclusive: {doubts}" if doubts else INCONCLUSIVE if outcome == "inconclusive" else outcome
    lines[0] += f", margin {margin:g}: {text}"
    if doubts:
        lines.insert(1, f"  {remedy(comparison)}")
    elif outcome == "inconclusive" and comparison.difference is not None:
        settling = f"about {counted(more or 0, 'more row')} would settle it if they are like these; "
        interval = comparison.difference.interval
        most = interval.high if comparison.better == "lower" else -interval.low
        # Rounded up, so that a margin of as much holds.
        most = math.ceil(most * 1000) / 1000 if math.isfinite(most) else most
        confidence = f"with {interval.confidence * 100:g} % confidence it is at most {most:g} worse"
        lines.insert(1, f"  {settling if more else ''}{confidence}{_needed_rows(comparison, margin)}")
    return lines


def _needed_rows(comparison: MetricComparison, margin: float) -> str:
    found = comparison.difference
    if found is None or found.bounds is None or margin >= found.bounds[1]:
        return ""
    if not margin:
        return "; without a margin only a proven gain passes: give margin=, or use assert_no_regression"
    least = math.ceil(math.log((1.0 - found.interval.confidence) / 2.0) / math.log1p(-margin / found.bounds[1]))
    return f"; this margin takes {least} rows or more, even where none changes" if found.n < least else ""
