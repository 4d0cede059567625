"""The values a metric returns: a score that is a float, and the verdicts, evidence and usage behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from typing_extensions import Self

Operator = Literal["<", "<=", ">", ">=", "=="]
#: Which scores of a metric are the good ones.
Direction = Literal["higher", "lower"]
#: What is decided on a set of scores.
Decision = Literal["passed", "failed", "inconclusive"]
#: What a quoted span is; those after the first two are in no count.
VerdictKind = Literal[
    "found",
    "not found",
    "quotes the question",
    "allowed",
    "looks like a title",
    "found earlier",
    "told by the user",
    "repeated",
    "declined",
    "withdrawn",
    "small talk",
]
#: What became of some words of the source in the response.
ChangeKind = Literal["same", "replaced", "added", "missing"]
#: What one verdict is about, and what is wrong with one that is not ok, where the metric has no word of its own.
NOUN, COMPLAINT = "verdict", "not ok"
#: Metrics whose name was that of another one in earlier files; the noun of their verdicts distinguishes them:
#: ``correctness`` was the aspect that is ``correctness_aspect`` now.
REUSED = frozenset({"correctness"})
# The bounds outside of a scale from 0 to 1 that are taken for percentages.
_PERCENT = (2, 100)


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """A piece of a context that supports a verdict; offsets are code points of the original context.

    ``turn`` is that of an earlier turn of a conversation. Where a conversation is scored as a whole, the piece is of a
    message of that turn, and ``context`` is its place there.
    """

    context: int
    start: int
    end: int
    text: str
    turn: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WordChange:
    """One step of a word-level difference between the response (``said``) and the source."""

    kind: ChangeKind
    said: str
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Nearest:
    """The passage closest to a text that was not found, and how the two differ.

    ``similarity`` is in [0, 1]; ``changes`` read in order spell out both texts word by word.
    """

    context: int
    start: int
    end: int
    text: str
    similarity: float
    changes: tuple[WordChange, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The judgement of one piece of the response: a claim, a quotation, a sentence, a question.

    ``start`` and ``end`` are its offsets in the response, ``None`` for a text that is no piece of it. ``evidence`` has
    the passages that support it, ``nearest`` the closest one where none does. ``kind`` is what a quoted span is, where
    in a conversation a piece was found, or why a wish is not counted. ``turn`` is that of the answer, or of the user's
    fact or wish.
    """

    text: str
    ok: bool
    start: int | None = None
    end: int | None = None
    reason: str | None = None
    suspicious: bool = False
    evidence: tuple[Evidence, ...] = ()
    nearest: Nearest | None = None
    kind: VerdictKind | None = None
    turn: int | None = None

    @property
    def counts(self) -> bool:
        """Whether the verdict is in the score; a span that quotes the question, for example, is not."""
        return self.kind in (None, "found", "not found", "found earlier", "repeated")


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """The cost of a score: requests made and cached, tokens, and dollars (``None`` where a price is unknown).

    Tokens and ``cost`` are those of the requests made; ``saved`` is what the cached ones would have cost. The provider
    read ``cached_prompt_tokens`` from its own cache and wrote ``cache_write_tokens`` into it. ``embedding_tokens`` are
    part of ``cost`` alone.
    """

    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    saved: float | None = 0.0
    cached_prompt_tokens: int = 0
    cache_write_tokens: int = 0
    embedding_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return both together; an unknown price makes the sum unknown."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in _COUNTS}
        sums: dict[str, Any] = {name: None if None in pair else sum(pair) for name, pair in pairs.items()}
        return Usage(**sums)


_COUNTS = tuple(field.name for field in fields(Usage))


@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdCheck:
    """The last comparison of a result with a number: whether ``result <operator> bound`` ``held``."""

    operator: Operator
    bound: float
    held: bool


def check_on_scale(said: str, bound: float, *, metric: str, scale: tuple[float, float] | None) -> None:
    """Raise ``ValueError`` for a bound, ``said`` so, that is outside of the scale of a metric; any will do without one.

    >>> check_on_scale("min=90", 90, metric="faithfulness", scale=(0.0, 1.0))
    Traceback (most recent call last):
    ValueError: min=90 is outside of the scale of faithfulness, 0 to 1: write 0.9, or give your own metric its scale
    """
    low, high = scale or (-math.inf, math.inf)
    if not low <= bound <= high:
        right = f"{bound / 100:g}" if high == 1 and _PERCENT[0] <= bound <= _PERCENT[1] else "a number on it"
        outside = f"{said} is outside of the scale of {metric}, {low:g} to {high:g}"
        raise ValueError(f"{outside}: write {right}, or give your own metric its scale")


class MetricResult(float):
    """A score that is a float, with its reason, verdicts, judge and usage as attributes.

    Raises ``ValueError`` for NaN and infinity, and if it is compared with a plain number outside of its ``scale``: 90
    instead of 0.9.

    >>> result = MetricResult(0.5, metric="faithfulness", reason="1 of 2 claims supported")
    >>> result >= 0.8
    False
    >>> result.reason
    '1 of 2 claims supported'
    """

    __slots__ = (
        *("metric", "reason", "verdicts", "vacuous", "judge", "disagreements", "usage", "samples", "votes"),
        *("unscored_votes", "noun", "complaint", "scale", "unit", "decides", "used", "comparison"),
    )

    metric: str
    reason: str | None
    verdicts: tuple[Verdict, ...]
    vacuous: bool
    judge: str | None
    disagreements: tuple[str, ...]
    usage: Usage
    samples: tuple[float, ...]
    votes: int
    unscored_votes: int
    noun: str
    complaint: str
    #: The lowest and the highest score there can be, ``None`` where they are not known.
    scale: tuple[float, float] | None
    #: What stands with a figure of it, "s" or "$".
    unit: str
    #: False for the placeholder of a score in a dry run: every comparison of it with a number is true.
    decides: bool
    #: Whether it was compared with another result, or is part of a set that is asserted or of another score.
    used: bool
    #: The last comparison with a plain number, which reports show as the threshold.
    comparison: ThresholdCheck | None

    def __new__(
        cls,
        value: float,
        *,
        metric: str,
        reason: str | None = None,
        verdicts: Sequence[Verdict] = (),
        vacuous: bool = False,
        judge: str | None = None,
        disagreements: Sequence[str] = (),
        usage: Usage | None = None,
        samples: Sequence[float] = (),
        votes: int = 1,
        unscored_votes: int = 0,
        noun: str = NOUN,
        complaint: str = COMPLAINT,
        scale: Sequence[float] | None = None,
        unit: str = "",
    ) -> Self:
        """Build a result; ``samples`` are the single values when it is the mean of several votes.

        ``vacuous`` says that there was nothing to check: figures over a set leave the score out. ``votes`` are how many
        were wanted; where there are fewer samples, the others could not change the outcome, ``unscored_votes`` of them
        because they had no score. ``disagreements`` say in words where the judges of a panel disagree, or which of them
        gave no answer. ``noun`` is what one verdict is about, ``complaint`` what is wrong with one that is not ok.
        ``scale`` are the lowest and the highest score there can be, ``unit`` is theirs.
        """
        self = super().__new__(cls, value)
        if not math.isfinite(self):
            raise ValueError(f"{metric}: a score must be a finite number, not {float(self)}")
        self.metric = metric
        self.reason = reason
        self.verdicts = tuple(verdicts)
        self.vacuous = vacuous
        self.judge = judge
        self.disagreements = tuple(disagreements)
        self.usage = usage or Usage()
        self.samples = tuple(samples)
        self.votes = votes
        self.unscored_votes = unscored_votes
        self.noun = noun
        self.complaint = complaint
        self.scale = None if scale is None else (scale[0], scale[1])
        self.unit = unit
        self.decides, self.used = True, False
        self.comparison = None
        return self

    @property
    def value(self) -> float:
        """The score as a plain float."""
        return float(self)

    def __lt__(self, other: float) -> bool:
        return self._compare("<", other, outcome=super().__lt__(other))

    def __le__(self, other: float) -> bool:
        return self._compare("<=", other, outcome=super().__le__(other))

    def __gt__(self, other: float) -> bool:
        return self._compare(">", other, outcome=super().__gt__(other))

    def __ge__(self, other: float) -> bool:
        return self._compare(">=", other, outcome=super().__ge__(other))

    def __eq__(self, other: object) -> bool:
        return self._compare("==", other, outcome=super().__eq__(other))

    __hash__ = float.__hash__

    def _compare(self, operator: Operator, other: object, *, outcome: bool) -> bool:
        # Two results are compared with each other by sorting, which sets no threshold.
        if isinstance(other, (int, float)) and not isinstance(other, MetricResult):
            # Equality is no threshold, and infinity is where a search for the best one begins.
            if operator != "==" and math.isfinite(other):
                check_on_scale(f"{operator} {other:g}", other, metric=self.metric, scale=self.scale)
            outcome = outcome or not self.decides
            self.comparison = ThresholdCheck(operator=operator, bound=float(other), held=outcome)
        elif isinstance(other, MetricResult):
            self.used = other.used = True
        return outcome

    def replaced(self, **changes: Any) -> MetricResult:
        """Return a copy with some attributes changed, ``value`` among them, and no comparison yet.

        >>> MetricResult(0.5, metric="both", reason="1 of 2").replaced(metric="mine")
        <mine 0.5: 1 of 2>
        """
        (value,), given = self.__getnewargs_ex__()
        return MetricResult(changes.pop("value", value), **given | changes)

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        return (float(self),), {name: getattr(self, name) for name in _GIVEN}

    def __repr__(self) -> str:
        notes = "".join([", vacuous" if self.vacuous else "", f": {self.reason}" if self.reason else ""])
        return f"<{self.metric} {float(self):.4g}{notes}>"


def pooled(results: Sequence[MetricResult]) -> MetricResult:
    """Return the result of a conversation, of those of its turns: every verdict weighs the same, whenever it was said.

    Where a score is no share of verdicts it is the mean of the turns. Turns with nothing to check are left out; without
    another one the whole is vacuous.

    >>> first = MetricResult(0.0, metric="faithfulness", verdicts=[Verdict(text="It is red.", ok=False)])
    >>> second = MetricResult(1.0, metric="faithfulness", verdicts=[Verdict(text="It is wet.", ok=True)] * 3)
    >>> pooled([first, second]).value
    0.75
    """
    counted = [result for result in results if not result.vacuous]
    verdicts = [verdict for result in results for verdict in result.verdicts]
    shares = [(result.value, [verdict.ok for verdict in result.verdicts if verdict.counts]) for result in counted]
    of_all = [ok for _, each in shares for ok in each]
    if not counted:
        return results[0].replaced(verdicts=verdicts)
    value = sum(result.value for result in counted) / len(counted)
    for wanted in (True, False):
        if all(each and math.isclose(value, each.count(wanted) / len(each)) for value, each in shares):
            value = of_all.count(wanted) / len(of_all)
            break
    return counted[0].replaced(value=value, verdicts=verdicts, reason=None, samples=())


# The arguments that make a result, beside its value.
_GIVEN = tuple(name for name in MetricResult.__slots__ if name not in ("comparison", "decides", "used"))
