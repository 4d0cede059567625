"""Numbers, names and texts as people read them: the phrases that all reports and failures share."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.core.result import Usage, Verdict, VerdictKind
from pytest_ragmetrics.runs.records import Gate, Threshold
from pytest_ragmetrics.text.unicode import printable, shortened

if TYPE_CHECKING:
    from pytest_ragmetrics.stats.intervals import Interval

#: How many verdicts or rows a failure spells out.
SHOWN = 10
#: What stands for a vacuous score.
NOTHING_TO_CHECK = "nothing to check"
#: What an interval that contains its bound means.
INCONCLUSIVE = "inconclusive: too few rows to tell"
#: The operator that is true where another one is false.
CONTRARY = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!="}
#: How many characters of a text a line has.
SHORT = 300
# Verbs that lose more than their last letter after another number than one.
_PLURALS = {"is": "are", "was": "were", "has": "have", "does": "do"}
_NAME_LIMIT = 200
# A letter, in a cell of a table; and how narrow a column of texts may become.
_NO_NUMBER = re.compile(r"[^\W\d_]")
_NARROWEST = 8
_VOTES_SHOWN = 9


def is_quantile(gate: Gate) -> bool:
    """Tell whether the share of scores up to a bound is that of a percentile: of times or money, not of all answers."""
    return gate.statistic == "rate" and gate.better == "lower" and bool(gate.unit) and not gate.all_pass


def with_unit(text: str, unit: str) -> str:
    """Return a figure with its unit, if it has one; that of money stands before it.

    >>> with_unit("1.84", "s"), with_unit("-0.0031", "$"), with_unit("0.80", "")
    ('1.84 s', '-$0.0031', '0.80')
    """
    if unit != "$":
        return f"{text} {unit}" if unit else text
    sign = text[:1] if text[:1] in "+-" else ""
    return f"{sign}${text[len(sign) :]}"


def figure_text(value: float, unit: str = "", *, decimals: int = 3, sign: str = "") -> str:
    """Return a figure with so many decimals and its unit, small ones with two digits that count.

    >>> figure_text(1.8, "s", sign="+"), figure_text(0.00314, "$", decimals=2)
    ('+1.800 s', '$0.0031')
    """
    return with_unit(f"{value + 0.0:{sign}.{_decimals(decimals, unit, value)}f}", unit)


def _decimals(least: int, unit: str, *values: float) -> int:
    smallest = min((abs(value) for value in values if value and math.isfinite(value)), default=1.0)
    return least if not unit else min(max(least, 1 - math.floor(math.log10(smallest))), _MOST_DECIMALS - 1)


def format_apart(score: float, bound: float, unit: str = "") -> tuple[str, str]:
    """Format both with two decimals, or with as many as it takes to see that they differ.

    >>> format_apart(0.8996, 0.9), format_apart(0.0031, 0.01, "$")
    (('0.8996', '0.9000'), ('$0.0031', '$0.0100'))
    """
    texts = repr(score), repr(bound)
    for decimals in range(_decimals(2, unit, score, bound), _MOST_DECIMALS):
        shown = f"{score:.{decimals}f}", f"{bound:.{decimals}f}"
        if score == bound or shown[0] != shown[1]:
            texts = shown
            break
    return with_unit(texts[0], unit), with_unit(texts[1], unit)


def and_more(number: int, *, shown: int = SHOWN, indent: str = "  ") -> list[str]:
    """Return the line that says how many were left out beyond those that are shown, none if all are there."""
    return [f"{indent}... and {number - shown} more"] if number > shown else []


def readable(text: str, limit: int = SHORT) -> str:
    """Return a text of any length and origin on one line, what looks like a key in it masked."""
    return shortened(printable(masked(text)), limit)


def quoted(text: str, limit: int = SHORT) -> str:
    """Return a text in quotation marks."""
    return f'"{readable(text, limit)}"'


def shared_text(rows: int, groups: int, *, apart: bool = False) -> str:
    """Return that rows share passages, and whether they count as dependent; "" where none does."""
    if not rows:
        return ""
    text = f"{counted(rows, 'row')} share passages in {counted(groups, 'group')}"
    if apart:
        hint = 'where such rows fail together it is too narrow: name groups with metadata["cluster"]'
        return f"{text}, and the interval counts each row alone; {hint}"
    return f'{text}, which count as dependent; name groups with metadata["cluster"], or set rag_clusters = named'


def named(name: str) -> str:
    """Return a name chosen elsewhere, of a row, a test or a judge, on one line and shortened."""
    return shortened(printable(name), _NAME_LIMIT)


def format_interval(interval: Interval, *, sign: str = "", apart_from: float | None = None, unit: str = "") -> str:
    """Return an interval, its ends with as many decimals as it takes to tell them from a bound."""
    if math.isinf(interval.half_width):
        return "no interval: the scores do not vary"
    ends = interval.low, interval.high
    low, high = (figure_text(end, unit, decimals=2, sign=sign) for end in ends)
    if apart_from is not None:
        low, high = (format_apart(end, apart_from, unit)[0] for end in ends)
    return f"{interval.confidence * 100:g} % interval {low}..{high}"


_SIGNS = {"<": "<", "<=": "≤", ">": ">", ">=": "≥", "==": "="}
_MOST_DECIMALS = 16
_MINUTE = 60


def score_text(score: float, bound: float | None = None, *, least: int = 2, factor: float = 1.0, unit: str = "") -> str:
    """Return a score with two decimals, or as many as show on which side of its bound (and of 0 and 1) it lies.

    It has at least ``least`` decimals, is shown times the ``factor``, and has its ``unit``.

    >>> score_text(0.5), score_text(0.7999, 0.8), score_text(0.999), score_text(0.8996, 0.9, least=1, factor=100)
    ('0.50', '0.7999', '0.999', '89.96')
    """
    limits = [0.0, 1.0] if bound is None else [0.0, 1.0, bound]
    for decimals in range(_decimals(least, unit, score), _MOST_DECIMALS):
        text = f"{factor * score + 0.0:.{decimals}f}"
        shown = float(text) / factor
        if all((shown > limit, shown < limit) == (score > limit, score < limit) for limit in limits):
            return with_unit(text, unit)
    return with_unit(repr(factor * score), unit)


def bound_text(bound: float, *, share: bool = False, unit: str = "") -> str:
    r"""Return a bound as its author wrote it, with at least two decimals; a share is in per cent.

    >>> bound_text(0.8), bound_text(0.875), bound_text(0.7, share=True), bound_text(0.875, share=True)
    ('0.80', '0.875', '70\xa0%', '87.5\xa0%')
    """
    if share:
        return f"{100 * bound + 0.0:.12g}\u00a0%"
    text = f"{bound:.2f}"
    return with_unit(text if float(text) == bound else repr(bound), unit)


def threshold_text(threshold: Threshold, unit: str = "") -> str:
    """Return what a score had to be.

    >>> threshold_text(Threshold(operator=">=", bound=0.8)), threshold_text(Threshold(operator="<", bound=2), "s")
    ('≥ 0.80', '< 2.00 s')
    """
    return f"{_SIGNS[threshold.operator]} {bound_text(threshold.bound, unit=unit)}"


def duration_text(seconds: float) -> str:
    """Return a duration with two significant digits or so.

    >>> duration_text(0.0042), duration_text(1.26), duration_text(75.4)
    ('4 ms', '1.3 s', '1 min 15 s')
    """
    if round(seconds, 1) >= _MINUTE:
        minutes, rest = divmod(round(seconds), _MINUTE)
        return f"{minutes:,} min {rest} s"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{round(seconds * 1000)} ms"


def rough_time(seconds: float) -> str:
    """Return a time that one waits, in its largest unit.

    >>> rough_time(40.2), rough_time(720), rough_time(9000)
    ('40 s', '12 minutes', '2.5 hours')
    """
    if seconds < 1.5 * _MINUTE:
        return f"{seconds:.0f} s"
    minutes = seconds / _MINUTE
    return f"{minutes:,.0f} minutes" if minutes < 1.5 * _MINUTE else f"{minutes / _MINUTE:,.1f} hours"


def waited_lines(waits: Mapping[str, float]) -> list[str]:
    """Return a line on each wait of a second or more, by what it was for.

    >>> waited_lines({"the limit of 60 requests a minute": 40.2, "the provider's limit": 0.3})
    ['waited 40 s for the limit of 60 requests a minute']
    """
    return [f"waited {rough_time(seconds)} for {reason}" for reason, seconds in sorted(waits.items()) if seconds >= 1]


def similarity_text(similarity: float) -> str:
    """Return how alike two texts are; only the same is 100 %.

    >>> similarity_text(0.998), similarity_text(1.0)
    ('99%', '100%')
    """
    return f"{similarity:.0%}" if similarity >= 1 else f"{min(round(similarity * 100), 99)}%"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "test"), counted(1200, "test"), counted(2, "entry")
    ('1 test', '1,200 tests', '2 entries')
    """
    return f"{number:,} {noun_for(number, noun)}"


def noun_for(number: int, noun: str) -> str:
    """Return a noun as it stands after a number; one with an irregular plural is given with it.

    >>> noun_for(1, "index|indices"), noun_for(2, "index|indices"), noun_for(2, "part of the question")
    ('index', 'indices', 'parts of the question')
    """
    one, _, many = noun.partition("|")
    head, *rest = one.partition(" of ")
    regular = head.removesuffix("y") + "ies" if head.endswith("ry") else f"{head}s"
    return one if number == 1 else many or "".join([regular, *rest])


def agreeing(number: int, verb: str) -> str:
    """Return a verb as it stands after a number of things.

    >>> agreeing(1, "is"), agreeing(2, "is"), agreeing(0, "fails")
    ('is', 'are', 'fail')
    """
    return verb if number == 1 else _PLURALS.get(verb, verb.removesuffix("s"))


def checked_text(checked: int, vacuous: int) -> str:
    """Return how many of the scores of a set count, where others are vacuous.

    >>> checked_text(54, 358)
    '54 of 412 had something to check'
    """
    return f"{checked:,} of {checked + vacuous:,} had something to check"


def silence_text(vacuous: int, total: int, before: int) -> str:
    """Return how many scores of a set had nothing to check, and how many in the baseline.

    >>> silence_text(39, 40, 0)
    '39 of 40 had nothing to check; the baseline had 0'
    """
    return f"{vacuous:,} of {total:,} had {NOTHING_TO_CHECK}; the baseline had {before:,}"


def text_table(rows: Sequence[Sequence[str]], *, width: int | None = None, left: int = 1) -> list[str]:
    """Return the lines of a table: the first ``left`` columns to the left, the others to the right.

    Where it is wider than ``width`` the widest columns of texts are cut, and never one of numbers.

    >>> text_table([("metric", "n"), ("faithfulness", "12")])
    ['metric         n', 'faithfulness  12']
    >>> text_table([("metric", "n"), ("faithfulness", "12")], width=13)
    ['metric      n', 'faithful…  12']
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    texts = [any(_NO_NUMBER.search(cell) for cell in column[1:]) for column in columns]
    while width is not None and sum(widths) + 2 * (len(widths) - 1) > width:
        widest = max(range(len(widths)), key=lambda index: texts[index] * widths[index])
        if not texts[widest] or widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1

    def cell(text: str, width: int, place: int) -> str:
        shown = text if len(text) <= width else f"{text[: width - 1]}…"
        return shown.ljust(width) if place < 0 else shown.rjust(width)

    return ["  ".join(cell(*each) for each in zip(row, widths, range(-left, len(row)), strict=False)) for row in rows]


def usage_text(usage: Usage, *, cost: str | None = None, saved: str | None = None) -> str:
    """Return what a scoring cost, or nothing when it asked no judge; several may have a text of their own for money.

    >>> usage_text(Usage(calls=2, cached_calls=1, prompt_tokens=900, completion_tokens=80, cost=0.0031, saved=0.0014))
    '2 calls, 980 tokens, $0.0031; 1 saved by the cache, $0.0014'
    """
    made = [counted(usage.calls, "call")] if usage.calls else []
    if tokens := usage.prompt_tokens + usage.completion_tokens:
        made.append(counted(tokens, "token"))
    made += provider_parts(usage)
    made += [cost or cost_text(usage.cost)] if made else []
    cached = f"{usage.cached_calls:,}" if usage.calls else counted(usage.cached_calls, "call")
    spared = [f"{cached} saved by the cache", *([saved or cost_text(usage.saved)] if saved or usage.saved else [])]
    return "; ".join([*([", ".join(made)] if made else []), *([", ".join(spared)] if usage.cached_calls else [])])


def provider_parts(usage: Usage) -> list[str]:
    """Return which share of the prompt tokens came from the provider's cache, and how many tokens were embedded.

    >>> provider_parts(Usage(calls=1, prompt_tokens=4000, cached_prompt_tokens=3584, embedding_tokens=90))
    ["90 % of prompt tokens from the provider's cache", '90 tokens embedded']
    """
    parts = []
    if usage.cached_prompt_tokens and usage.prompt_tokens:
        share = 100 * usage.cached_prompt_tokens / usage.prompt_tokens
        parts.append(f"{'<1' if share < 1 else f'{share:.0f}'} % of prompt tokens from the provider's cache")
    if usage.embedding_tokens:
        parts.append(f"{counted(usage.embedding_tokens, 'token')} embedded")
    return parts


def money_text(amounts: Iterable[float | None]) -> str:
    """Return the sum of amounts of money, and how many are unknown.

    >>> money_text([0.5, None, 0.25]), money_text([None, 0.0])
    ('$0.75 and 1 of unknown price', 'price unknown')
    """
    listed = list(amounts)
    known = math.fsum(amount for amount in listed if amount is not None)
    unknown = sum(amount is None for amount in listed)
    if unknown and not known:
        return "price unknown"
    return cost_text(known) + (f" and {unknown:,} of unknown price" if unknown else "")


def cost_text(cost: float | None) -> str:
    """Return an amount of money with two digits that count, or that it is unknown.

    >>> cost_text(0.00314), cost_text(12.5), cost_text(None)
    ('$0.0031', '$12.50', 'cost unknown')
    """
    if cost is None:
        return "cost unknown"
    decimals = 2 if abs(cost) >= 1 or round(cost, 2) == cost else 1 - math.floor(math.log10(abs(cost)))
    return f"${cost:,.{decimals}f}"


#: The kinds of verdicts that are in no count, for one and for several.
_UNCOUNTED: Mapping[VerdictKind, tuple[str, str]] = {
    "quotes the question": ("quotes the question", "quote the question"),
    "allowed": ("is allowed", "are allowed"),
    "looks like a title": ("looks like a title", "look like titles"),
    "told by the user": ("told by the user", "told by the user"),
    "declined": ("declined", "declined"),
    "withdrawn": ("withdrawn", "withdrawn"),
    "small talk": ("is small talk", "are small talk"),
}


def describe_uncounted(verdicts: Iterable[Verdict]) -> str:
    """Return what to add to a count about the verdicts that are not in it; nothing where all of them are.

    >>> describe_uncounted([Verdict(text="Why is it open?", ok=True, kind="quotes the question")])
    '; not counted: 1 quotes the question'
    """
    numbers = Counter(verdict.kind for verdict in verdicts)
    parts = [f"{numbers[kind]:,} {words[numbers[kind] > 1]}" for kind, words in _UNCOUNTED.items() if numbers[kind]]
    return f"; not counted: {', '.join(parts)}" if parts else ""


def describe_votes(samples: Sequence[float], votes: int, *, unscored: int = 0) -> str:
    """Return in words what votes a score is the mean of; nothing for a single judgement.

    >>> describe_votes([1.0, 0.5], 3)
    'mean of 2 votes (1.00, 0.50); 2 of 3 votes asked, the rest cannot change it'
    """
    if not samples or votes <= 1:
        return ""
    single = [f"{sample:.2f}" for sample in samples[:_VOTES_SHOWN]] + ["..."] * (len(samples) > _VOTES_SHOWN)
    mean = f"mean of {counted(len(samples), 'vote')} ({', '.join(single)})"
    if len(samples) == votes:
        return mean
    state = f"{unscored} of {votes} votes unscored" if unscored else f"{len(samples)} of {votes} votes asked"
    return f"{mean}; {state}, {'which' if unscored else 'the rest'} cannot change it"
