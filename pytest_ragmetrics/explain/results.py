"""The text of a failed comparison: metric, score, bound and counts in the first line, the verdicts below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_ragmetrics.explain.phrases import (
    CONTRARY,
    SHOWN,
    and_more,
    counted,
    describe_votes,
    format_apart,
    quoted,
    readable,
)
from pytest_ragmetrics.records import Record
from pytest_ragmetrics.result import MetricResult, Nearest, ThresholdCheck, Verdict, WordChange
from pytest_ragmetrics.text.characters import printable

_CHANGES_SHOWN = 6
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def explain(result: MetricResult, comparison: ThresholdCheck) -> list[str]:
    """Return the lines that say why a result met or missed a bound.

    The first line has metric, score, bound and counts; then the verdicts that are not ok, the worst first.
    """
    failed = _failed(result)
    lines = [headline(result, comparison)]
    for verdict in failed[:SHOWN]:
        lines.extend(_verdict_lines(verdict, result.complaint))
    return lines + and_more(len(failed))


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
            heads.append(_held_line(outcome, outcome.comparison))
            lines += explain(outcome, outcome.comparison)
    of_all = f"of {counted(len(outcomes), 'metric')}"
    if unscored == len(heads):
        return [f"{unscored} {of_all} unscored", *lines]
    rest = f", {unscored} unscored" if unscored else ""
    return [f"{len(heads) - unscored} {of_all} fell short{rest}: {', '.join(heads)}", *lines]


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


def headline(result: MetricResult, comparison: ThresholdCheck) -> str:
    """Return one line: metric, score, bound and counts.

    >>> headline(MetricResult(0.5, metric="coverage"), ThresholdCheck(operator=">=", bound=0.9, held=False))
    'coverage 0.50 < 0.90'
    """
    first, summary = _held_line(result, comparison), _summary(result)
    return f"{first}: {summary}" if summary else first


def shortcoming(result: MetricResult | Record) -> str:
    """Return in a few words what is wrong with a result: the counts and the worst piece, or else its reason.

    >>> moon = Verdict(text="the moon is green", ok=False)
    >>> shortcoming(MetricResult(0.0, metric="mine", verdicts=[moon], noun="claim", complaint="not supported"))
    '1 of 1 claim not supported: "the moon is green"'
    """
    failed = _failed(result)
    return f"{_summary(result)}: {quoted(failed[0].text)}" if failed else _summary(result)


def _held_line(result: MetricResult, comparison: ThresholdCheck) -> str:
    operator = comparison.operator if comparison.held else CONTRARY[comparison.operator]
    score, bound = format_apart(float(result), comparison.bound)
    return f"{result.metric} {score} {operator} {bound}"


def _summary(result: MetricResult | Record) -> str:
    failed = len(_failed(result))
    if not failed:
        return printable(result.reason or "")
    counts = f"{failed} of {counted(len(result.verdicts), result.noun)} {result.complaint}"
    wanted, unscored = len(result.samples), 0
    if isinstance(result, MetricResult):
        wanted, unscored = result.votes, result.unscored_votes
    votes = describe_votes(result.samples, wanted, unscored=unscored)
    # The verdicts are those of the vote that is nearest to the mean.
    return f"{counts}; {votes}" if votes else counts


def _failed(result: MetricResult | Record) -> list[Verdict]:
    """Return the verdicts that are not ok, the worst first."""
    failed = (verdict for verdict in result.verdicts if not verdict.ok)
    return sorted(failed, key=lambda verdict: verdict.nearest.similarity if verdict.nearest else 0.0)


def _verdict_lines(verdict: Verdict, complaint: str) -> Iterator[str]:
    place = f" (response[{verdict.start}:{verdict.end}])" if verdict.start is not None else ""
    yield f"  {complaint}: {quoted(verdict.text)}{place}"
    if verdict.suspicious:
        yield "    suspicious: the evidence does not bear it out"
    if verdict.reason and not verdict.reason.endswith(complaint):
        yield f"    reason: {readable(verdict.reason)}"
    if verdict.nearest:
        yield f"    nearest: {quoted(verdict.nearest.text)} ({_place(verdict.nearest)})"
        differences = _differences(verdict.nearest.changes)
        if differences:
            yield f"    differs: {differences}"


def _place(nearest: Nearest) -> str:
    return f"contexts[{nearest.context}][{nearest.start}:{nearest.end}], {nearest.similarity:.0%} alike"


def _differences(changes: Sequence[WordChange]) -> str:
    wording = {
        "replaced": lambda c: f"{quoted(c.said)} where the source has {quoted(c.source)}",
        "added": lambda c: f"adds {quoted(c.said)}",
        "missing": lambda c: f"leaves out {quoted(c.source)}",
    }
    texts = [wording[change.kind](change) for change in changes if change.kind in wording]
    rest = len(texts) - _CHANGES_SHOWN
    return "; ".join(texts[:_CHANGES_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")
