"""The only place where a failure is worded: the first line says how much, the rest says where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_ragmetrics.metrics.votes import told
from pytest_ragmetrics.result import Change, Comparison, MetricResult, Nearest, Verdict
from pytest_ragmetrics.text.printable import printable, shortened

if TYPE_CHECKING:
    from pytest_ragmetrics.evaluation.comparison import MetricComparison
    from pytest_ragmetrics.result import Direction
    from pytest_ragmetrics.stats.intervals import Decision, Interval
    from pytest_ragmetrics.stats.standing import ScoredRow, Standing

#: How many verdicts a failure spells out.
SHOWN = 10
_TEXT_LIMIT = 300
_NAME_LIMIT = 80
_CHANGES_SHOWN = 6
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CONTRARY = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!="}
#: What a metric's verdicts are about, and what is wrong with one that is not ok.
_NOUNS = {
    "quoted_spans_alignment": ("quoted span", "not found"),
    "faithfulness": ("claim", "not supported"),
    "answer_relevancy": ("generated question", "noncommittal"),
    "summary_score": ("question", "not answered by the summary"),
    "context_relevancy": ("context sentence", "not needed"),
    "context_recall": ("statement", "not in the contexts"),
    "context_precision_proportion": ("context", "not relevant"),
    **dict.fromkeys(("context_precision", "context_utilization"), ("context", "of no use")),
    "noise_sensitivity": ("claim", "wrong as contexts have it"),
    "factual_correctness": ("claim", "not borne out"),
    "answer_correctness": ("statement", "wrong or missing"),
    "context_relevance": ("rating", "not the highest"),
    "response_groundedness": ("rating", "not the highest"),
    "answer_accuracy": ("rating", "not the highest"),
    "hallucination": ("context", "contradicted"),
    "context_entity_recall": ("name", "not in the contexts"),
    "citation_recall": ("sentence", "not supported by what it cites"),
    "citation_precision": ("citation", "of no use"),
    "refusal_correctness": ("response", "wrong to refuse or to answer"),
    "rubric": ("step", "low"),
    "simple_criteria": ("judgement", "low"),
    "agent_goal_accuracy": ("goal", "missed"),
    "topic_adherence": ("topic", "wrongly dealt with or declined"),
    "relevance": ("response", "hardly relevant"),
    "correctness_rating": ("response", "hardly correct"),
    **dict.fromkeys(
        ("harmfulness", "maliciousness", "coherence", "correctness", "conciseness", "harmlessness"),
        ("judgement", "against"),
    ),
    "lexical_grounding": ("word", "in no context"),
    "lexical_context_recall": ("word", "in no context"),
    "numbers_aligned": ("number", "in no context"),
    "names_aligned": ("name", "in no context"),
    "citation_validity": ("citation", "without a context"),
    **dict.fromkeys(("recall_at_k", "hit_rate", "map", "ndcg", "id_based_context_recall"), ("reference id", "missed")),
    **dict.fromkeys(("precision_at_k", "mrr", "id_based_context_precision"), ("retrieved id", "not relevant")),
    "non_llm_context_recall": ("reference context", "not retrieved"),
    "non_llm_context_precision": ("context", "unlike the reference"),
    "exact_match": ("response", "not the reference"),
    "string_presence": ("response", "without the reference"),
    "tool_call_accuracy": ("tool call", "not as in the reference"),
    "tool_call_f1": ("tool call", "not matched"),
}


def explain(result: MetricResult, comparison: Comparison) -> list[str]:
    """Return the lines that say why a result did or did not meet what it was held against.

    The first line holds metric, score, bound and counts; then the verdicts that are not ok, the worst first.
    """
    failed = [verdict for verdict in result.verdicts if not verdict.ok]
    lines = [headline(result, comparison)]
    for verdict in sorted(failed, key=_similarity)[:SHOWN]:
        lines.extend(_verdict_lines(verdict, _NOUNS.get(result.metric, ("", "failed"))[1]))
    if len(failed) > SHOWN:
        lines.append(f"  ... and {len(failed) - SHOWN} more")
    return lines


def explain_sample(outcomes: Mapping[str, MetricResult | Exception]) -> list[str]:
    """Return the lines that say which metrics of a sample fell short or are unscored, then of each of them why."""
    told: list[str] = []
    lines: list[str] = []
    unscored = 0
    for name, outcome in outcomes.items():
        if not isinstance(outcome, MetricResult):
            unscored += 1
            told.append(f"{printable(name)} unscored")
            reason = printable(str(outcome)).removeprefix(f"{name}: ")
            lines.append(f"{told[-1]}: {shortened(reason, _TEXT_LIMIT)}")
        elif outcome.comparison is not None and not outcome.comparison.held:
            told.append(_held_line(outcome, outcome.comparison))
            lines += explain(outcome, outcome.comparison)
    of_all = f"of {_counted(len(outcomes), 'metric')}"
    if unscored == len(told):
        return [f"{unscored} {of_all} unscored", *lines]
    rest = f", {unscored} unscored" if unscored else ""
    return [f"{len(told) - unscored} {of_all} fell short{rest}: {', '.join(told)}", *lines]


def explain_comparison(operator: str, left: object, right: object) -> list[str] | None:
    """Return the explanation of a failed ``left <operator> right``; ``None`` when neither side is a result."""
    if isinstance(left, MetricResult) and not isinstance(right, MetricResult):
        return _explain_against(left, operator, right)
    if isinstance(right, MetricResult) and not isinstance(left, MetricResult):
        return _explain_against(right, _MIRRORED.get(operator, operator), left)
    return None


def _explain_against(result: MetricResult, operator: str, bound: object) -> list[str] | None:
    held = result.comparison
    if held is None or held.operator != operator or held.bound != bound:
        return None
    return explain(result, held)


def headline(result: MetricResult, comparison: Comparison) -> str:
    """Return one line: metric, score, bound and counts.

    >>> headline(MetricResult(0.5, metric="coverage"), Comparison(operator=">=", bound=0.9, held=False))
    'coverage 0.50 < 0.90'
    """
    first, summary = _held_line(result, comparison), _summary(result)
    return f"{first}: {summary}" if summary else first


def _held_line(result: MetricResult, comparison: Comparison) -> str:
    operator = comparison.operator if comparison.held else _CONTRARY[comparison.operator]
    score, bound = _told_apart(float(result), comparison.bound)
    return f"{result.metric} {score} {operator} {bound}"


def _summary(result: MetricResult) -> str:
    failed = sum(not verdict.ok for verdict in result.verdicts)
    if not failed:
        return printable(result.reason or "")
    noun, complaint = _NOUNS.get(result.metric, ("verdict", "failed"))
    total = len(result.verdicts)
    counts = f"{failed} of {total} {noun}{'s' if total > 1 else ''} {complaint}"
    votes = told(result.samples, result.votes, unscored=result.unscored_votes)
    # The verdicts are those of the vote that is nearest to the mean.
    return f"{counts}; {votes}" if votes else counts


def _told_apart(score: float, bound: float) -> tuple[str, str]:
    """Format both with two decimals, or with as many as it takes to see that they differ."""
    for decimals in range(2, 16):
        texts = f"{score:.{decimals}f}", f"{bound:.{decimals}f}"
        if score == bound or texts[0] != texts[1]:
            return texts
    return repr(score), repr(bound)


def _similarity(verdict: Verdict) -> float:
    return verdict.nearest.similarity if verdict.nearest else 0.0


def _verdict_lines(verdict: Verdict, complaint: str) -> Iterator[str]:
    place = f" (response[{verdict.start}:{verdict.end}])" if verdict.start is not None else ""
    yield f"  {complaint}: {_quoted(verdict.text)}{place}"
    if verdict.suspicious:
        yield "    suspicious: the evidence does not bear it out"
    if verdict.reason:
        yield f"    reason: {shortened(printable(verdict.reason), _TEXT_LIMIT)}"
    if verdict.nearest:
        yield f"    nearest: {_quoted(verdict.nearest.text)} ({_place(verdict.nearest)})"
        differences = _differences(verdict.nearest.changes)
        if differences:
            yield f"    differs: {differences}"


def _place(nearest: Nearest) -> str:
    return f"contexts[{nearest.context}][{nearest.start}:{nearest.end}], {nearest.similarity:.0%} alike"


def _quoted(text: str) -> str:
    return f'"{shortened(printable(text), _TEXT_LIMIT)}"'


def _differences(changes: Sequence[Change]) -> str:
    wording = {
        "replaced": lambda c: f"{_quoted(c.said)} where the source has {_quoted(c.source)}",
        "added": lambda c: f"adds {_quoted(c.said)}",
        "missing": lambda c: f"leaves out {_quoted(c.source)}",
    }
    told = [wording[change.kind](change) for change in changes if change.kind in wording]
    rest = len(told) - _CHANGES_SHOWN
    return "; ".join(told[:_CHANGES_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")


def explain_standing(standing: Standing, rows: Sequence[ScoredRow] = ()) -> list[str]:
    """Return the lines that say how a set of scores stands against a bound: the figures, then the worst rows.

    ``rows`` are those of the set that have a score; of those on the wrong side of the bound the worst are shown, at
    most :data:`SHOWN`.
    """
    lines = [standing_line(standing)]
    if standing.outcome == "inconclusive":
        figure = "mean" if standing.statistic == "mean" else "rate"
        lines.append(
            f"  not even a million samples would settle it while the {figure} stays so close to the bound"
            if standing.more is None
            else f"  about {_counted(standing.more, 'more sample')} would settle it if the {figure} stays where it is"
        )
    if standing.unscored:
        lines.append(f"  left out: {_counted(standing.unscored, 'unscored row')}")
    sign = -1.0 if (standing.score_better if standing.score_bound is not None else standing.better) == "lower" else 1.0
    bound = standing.bound if standing.score_bound is None else standing.score_bound
    worst = sorted((row for row in rows if sign * row.score < sign * bound), key=lambda row: sign * row.score)
    lines += [f"  {_row_line(row)}" for row in worst[:SHOWN]]
    if len(worst) > SHOWN:
        lines.append(f"  ... and {len(worst) - SHOWN} more")
    return lines


def standing_line(standing: Standing) -> str:
    """Return one line: the metric, its mean or rate, the bound, the interval where one decided, and the outcome."""
    value, bound = _told_apart(standing.value, standing.bound)
    name = printable(standing.metric)
    held = standing.value <= standing.bound if standing.better == "lower" else standing.value >= standing.bound
    kept = "<=" if standing.better == "lower" else ">="
    operator = kept if held else _CONTRARY[kept]
    counts = [f"n={standing.n}"]
    if standing.statistic == "rate":
        sign = "<=" if standing.score_better == "lower" else ">="
        counts = [f"{standing.reached} of {standing.n} scores {sign} {standing.score_bound:g}"]
    if standing.interval is not None:
        counts.insert(0, _interval(standing.interval, apart_from=standing.bound))
    figure = "mean" if standing.statistic == "mean" else "pass rate"
    return f"{name} {figure} {value} {operator} {bound} ({', '.join(counts)}): {standing.outcome}"


def explain_unscored(
    metric: str,
    total: int,
    unscored: Sequence[tuple[str, str]],
    *,
    hint: str = "; skip_unscored=True leaves them out",
) -> list[str]:
    """Return the lines that say which rows of a set have no score, by name and reason, so that no figure is given."""
    of_all = f"{len(unscored)} of {total} rows {'is' if len(unscored) == 1 else 'are'} unscored"
    lines = [f"{printable(metric)}: {of_all}{hint}"]
    lines += [f"  {_name(name)}: {shortened(printable(reason), _TEXT_LIMIT)}" for name, reason in unscored[:SHOWN]]
    if len(unscored) > SHOWN:
        lines.append(f"  ... and {len(unscored) - SHOWN} more")
    return lines


def explain_not_worse(
    comparison: MetricComparison, *, margin: float, outcome: Decision, more: int | None = None
) -> list[str]:
    """Return the lines that say whether a metric became worse by more than a margin, and in which rows.

    ``more`` is how many further samples would settle an inconclusive outcome.
    """
    lines = explain_changes(comparison)
    lines[0] += f", margin {margin:g}: {outcome}"
    if outcome == "inconclusive" and comparison.difference is not None:
        told = f"about {_counted(more or 0, 'more sample')} would settle it if the difference stays where it is; "
        interval = comparison.difference.interval
        most = f"it is at most {_most_lost(interval, comparison.better):g} worse"
        lines.insert(1, f"  {told if more else ''}with {interval.confidence * 100:g} % confidence {most}")
    return lines


def explain_changes(comparison: MetricComparison) -> list[str]:
    """Return the lines that say what changed in one metric: the figures, then the rows, the largest change first."""
    lines = [_changes_line(comparison)]
    if comparison.judges:
        lines.append(f"  judge: {printable(', '.join(comparison.judges))}")
    for title, rows in (("regressed", comparison.regressed), ("improved", comparison.improved)):
        lines.append(f"  {title}: {len(rows)}")
        for row in rows[:SHOWN]:
            before, after = _told_apart(row.before, row.after)
            lines.append(f"    {row.change:+.2f}  {before} -> {after}  {_name(row.id)}")
        if len(rows) > SHOWN:
            lines.append(f"    ... and {len(rows) - SHOWN} more")
    lines.append(f"  unchanged: {len(comparison.unchanged)}")
    for title, ids in (
        ("only here", comparison.only_here),
        ("only there", comparison.only_there),
        ("unscored here", comparison.unscored_here),
        ("unscored there", comparison.unscored_there),
    ):
        if ids:
            more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
            lines.append(f"  {title}: {len(ids)} ({', '.join(map(_name, ids[:SHOWN]))}{more})")
    return lines


def _changes_line(comparison: MetricComparison) -> str:
    found = comparison.difference
    name = printable(comparison.metric) + (" (lower is better)" if comparison.better == "lower" else "")
    if found is None:
        return f"{name}: no row has a score in both runs"
    before, after = _told_apart(found.before, found.after)
    interval = found.interval
    figures = [_interval(interval, sign="+"), f"n={found.n}"]
    chances = (("t test", found.t_p), ("sign flips", found.flip_p), ("McNemar", found.mcnemar_p))
    figures += [f"{test} {_p(p)}" for test, p in chances if p is not None]
    return f"{name} {before} -> {after}: {interval.estimate:+.3f} ({', '.join(figures)})"


def _most_lost(interval: Interval, better: Direction) -> float:
    """Return how much may be lost, rounded up, so that a margin of as much holds."""
    end = interval.high if better == "lower" else -interval.low
    return math.ceil(end * 1000) / 1000 if math.isfinite(end) else end


def _interval(interval: Interval, *, sign: str = "", apart_from: float | None = None) -> str:
    low, high = f"{interval.low:{sign}.2f}", f"{interval.high:{sign}.2f}"
    if apart_from is not None:
        low, high = (_told_apart(end, apart_from)[0] for end in (interval.low, interval.high))
    return f"{interval.confidence * 100:g} % interval {low}..{high}"


def _p(value: float) -> str:
    return "p<0.001" if value < 0.001 else f"p={value:.3f}"  # noqa: PLR2004 - beyond this nobody decides otherwise


def _row_line(row: ScoredRow) -> str:
    reason = shortened(printable(row.reason), _TEXT_LIMIT) if row.reason else ""
    return f"{row.score:.2f}  {_name(row.name)}" + (f": {reason}" if reason else "")


def _name(name: str) -> str:
    return shortened(printable(name), _NAME_LIMIT)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
