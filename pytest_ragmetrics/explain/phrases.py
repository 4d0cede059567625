"""How numbers are worded: no more digits than a reader needs, no fewer than the truth takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_ragmetrics.records import Record, Threshold
from pytest_ragmetrics.report.comparison import TestChange
from pytest_ragmetrics.result import COMPLAINT, NOUN, MetricResult, Usage
from pytest_ragmetrics.text.characters import printable, shortened

if TYPE_CHECKING:
    from pytest_ragmetrics.stats.intervals import Interval

#: How many verdicts or rows a failure spells out.
SHOWN = 10
#: What says that an operator does not hold.
CONTRARY = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!="}
_TEXT_LIMIT = 300
_NAME_LIMIT = 80


def format_apart(score: float, bound: float) -> tuple[str, str]:
    """Format both with two decimals, or with as many as it takes to see that they differ.

    >>> format_apart(0.8996, 0.9)
    ('0.8996', '0.9000')
    """
    for decimals in range(2, 16):
        texts = f"{score:.{decimals}f}", f"{bound:.{decimals}f}"
        if score == bound or texts[0] != texts[1]:
            return texts
    return repr(score), repr(bound)


def counted(number: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def and_more(number: int, *, indent: str = "  ") -> list[str]:
    """Return the line that says how many were left out beyond those that are shown, none if all are there."""
    return [f"{indent}... and {number - SHOWN} more"] if number > SHOWN else []


def readable(text: str) -> str:
    """Return a text of any length and origin on one line."""
    return shortened(printable(text), _TEXT_LIMIT)


def quoted(text: str) -> str:
    """Return a text in quotation marks."""
    return f'"{readable(text)}"'


def named(name: str) -> str:
    """Return the name of a row."""
    return shortened(printable(name), _NAME_LIMIT)


def format_interval(interval: Interval, *, sign: str = "", apart_from: float | None = None) -> str:
    """Return an interval, its ends with as many decimals as it takes to tell them from a bound."""
    low, high = f"{interval.low:{sign}.2f}", f"{interval.high:{sign}.2f}"
    if apart_from is not None:
        low, high = (format_apart(end, apart_from)[0] for end in (interval.low, interval.high))
    return f"{interval.confidence * 100:g} % interval {low}..{high}"


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
    "citation_recall": ("sentence", "not supported by the contexts cited"),
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


def noun_of(scored: MetricResult | Record) -> str:
    """Return what one verdict of a metric is about."""
    return scored.noun if scored.noun != NOUN else _NOUNS.get(scored.metric, (NOUN, ""))[0]


def complaint_of(scored: MetricResult | Record) -> str:
    """Return what is wrong with a verdict of a metric that is not ok; it is said of one and of several."""
    return scored.complaint if scored.complaint != COMPLAINT else _NOUNS.get(scored.metric, ("", COMPLAINT))[1]


_SIGNS = {"<": "<", "<=": "≤", ">": ">", ">=": "≥", "==": "="}
_DECIMALS = range(2, 16)
_MINUTE = 60


def score_text(score: float, bound: float | None = None) -> str:
    """Return a score with two decimals, or as many as show on which side of its bound (and of 0 and 1) it lies.

    >>> score_text(0.5), score_text(0.7999, 0.8), score_text(0.999)
    ('0.50', '0.7999', '0.999')
    """
    limits = [0.0, 1.0] if bound is None else [0.0, 1.0, bound]
    for decimals in _DECIMALS:
        text = f"{score + 0.0:.{decimals}f}"
        if all(_side(float(text), limit) == _side(score, limit) for limit in limits):
            return text
    return repr(score)


def _side(score: float, limit: float) -> int:
    return (score > limit) - (score < limit)


def bound_text(bound: float) -> str:
    """Return a bound as its author wrote it, with at least two decimals.

    >>> bound_text(0.8), bound_text(0.875)
    ('0.80', '0.875')
    """
    text = f"{bound:.2f}"
    return text if float(text) == bound else repr(bound)


def threshold_text(threshold: Threshold) -> str:
    """Return what a score had to be.

    >>> threshold_text(Threshold(operator=">=", bound=0.8))
    '≥ 0.80'
    """
    return f"{_SIGNS[threshold.operator]} {bound_text(threshold.bound)}"


def change_text(change: TestChange) -> tuple[str, str]:
    """Return how a score compares with its counterpart in the baseline, and the one word for it.

    >>> from pytest_ragmetrics.report.comparison import TestChange
    >>> change_text(TestChange(id="a", number=0, metric="m", kind="worse", before=0.9, after=0.5, change=-0.4))
    ('was 0.90, 0.40 worse', 'worse')
    """
    before = "unscored" if change.before is None else score_text(change.before)
    told = {"new": "not in the baseline", "same": "as in the baseline", "unscored": f"was {before}"}
    if change.kind in ("better", "worse") and change.change is not None:
        return f"was {before}, {score_text(abs(change.change))} {change.kind}", change.kind
    return told.get(change.kind, "was unscored"), change.kind


def duration_text(seconds: float) -> str:
    """Return a duration with two significant digits or so.

    >>> duration_text(0.0042), duration_text(1.26), duration_text(75.4)
    ('4 ms', '1.3 s', '1 min 15 s')
    """
    if round(seconds, 1) >= _MINUTE:
        minutes, rest = divmod(round(seconds), _MINUTE)
        return f"{minutes:,} min {rest} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{round(seconds * 1000)} ms"


def similarity_text(similarity: float) -> str:
    """Return how alike two texts are; only the same is 100 %.

    >>> similarity_text(0.998), similarity_text(1.0)
    ('99%', '100%')
    """
    return f"{similarity:.0%}" if similarity >= 1 else f"{min(round(similarity * 100), 99)}%"


def figures_counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    >>> figures_counted(1, "test"), figures_counted(1200, "reply", "replies")
    ('1 test', '1,200 replies')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def usage_text(usage: Usage) -> str:
    """Return what a scoring cost, or nothing when it asked no judge.

    >>> usage_text(Usage(calls=2, cached_calls=1, prompt_tokens=900, completion_tokens=80, cost=0.0031, saved=0.0014))
    '2 calls, 980 tokens, $0.0031; 1 saved by the cache, $0.0014'
    """
    made = [figures_counted(usage.calls, "call")]
    if tokens := usage.prompt_tokens + usage.completion_tokens:
        made.append(figures_counted(tokens, "token"))
    made.append(cost_text(usage.cost))
    cached = f"{usage.cached_calls:,}" if usage.calls else figures_counted(usage.cached_calls, "call")
    saved = [f"{cached} saved by the cache", *([cost_text(usage.saved)] if usage.saved else [])]
    return "; ".join([*([", ".join(made)] if usage.calls else []), *([", ".join(saved)] if usage.cached_calls else [])])


def cost_text(cost: float | None) -> str:
    """Return an amount of money with two digits that count, or that nobody knows it.

    >>> cost_text(0.00314), cost_text(12.5), cost_text(None)
    ('$0.0031', '$12.50', 'cost unknown')
    """
    if cost is None:
        return "cost unknown"
    decimals = 2 if abs(cost) >= 1 or round(cost, 2) == cost else 1 - math.floor(math.log10(abs(cost)))
    return f"${cost:,.{decimals}f}"
