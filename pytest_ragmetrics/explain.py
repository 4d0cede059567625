"""The only place where a failure is worded: the first line says how much, the rest says where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_ragmetrics.result import Change, Comparison, MetricResult, Nearest, Verdict
from pytest_ragmetrics.text.printable import printable, shortened

#: How many verdicts a failure spells out.
SHOWN = 10
_TEXT_LIMIT = 300
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
    operator = comparison.operator if comparison.held else _CONTRARY[comparison.operator]
    score, bound = _told_apart(float(result), comparison.bound)
    first = f"{result.metric} {score} {operator} {bound}"
    summary = _summary(result)
    return f"{first}: {summary}" if summary else first


def _summary(result: MetricResult) -> str:
    failed = sum(not verdict.ok for verdict in result.verdicts)
    if not failed:
        return printable(result.reason or "")
    noun, complaint = _NOUNS.get(result.metric, ("verdict", "failed"))
    total = len(result.verdicts)
    return f"{failed} of {total} {noun}{'s' if total > 1 else ''} {complaint}"


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
