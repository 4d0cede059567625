"""Metric, the base class: it checks inputs, scores a sample, and records the result in the session."""

from __future__ import annotations

import hashlib
import inspect
import linecache
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_ragmetrics.core.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.core.result import COMPLAINT, NOUN, Direction, MetricResult
from pytest_ragmetrics.core.sample import FIELDS, Sample, meant_field, read_turns, turn_of, written_for
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.context import Scoring, ScoringLog
from pytest_ragmetrics.metrics.parameters import Named, check_name
from pytest_ragmetrics.text.unicode import is_invisible

if TYPE_CHECKING:
    from typing_extensions import Never, Unpack

    from pytest_ragmetrics.core.typed import Fields

_DIGITS = 12
# The types of parameters whose repr has their value.
_PLAIN = (str, int, float, tuple)


def f_beta(precision: float, recall: float, beta: float = 1.0) -> float:
    """Return the weighted harmonic mean of precision and recall, 0.0 when one is 0; recall counts ``beta`` times.

    After van Rijsbergen (1979).

    >>> f_beta(1.0, 0.5)
    0.6666666666666666
    """
    if not (precision and recall):
        return 0.0
    share = 1 / (1 + beta * beta)
    return 1 / (share / precision + (1 - share) / recall)


def f_of_counts(found: int, surplus: int, missing: int, *, beta: float = 1.0) -> float:
    """Return the F-beta of true positives, false positives and false negatives, 0.0 where there are none at all.

    Those that are missing, and so recall, count ``beta`` times.

    >>> f_of_counts(1, surplus=1, missing=0), f_of_counts(1, surplus=1, missing=0, beta=2)
    (0.6666666666666666, 0.8333333333333334)
    """
    weight = beta * beta
    total = (1 + weight) * found + surplus + weight * missing
    return (1 + weight) * found / total if total else 0.0


#: What to write for a whole sample, and for a row.
_OF_A_SAMPLE = "write score_sample(sample) for a Sample, score_sample(Sample.from_mapping(row)) for a row"


def _lacking(sample: Sample) -> Sequence[str]:
    """Return the fields that a turn of a conversation need not have."""
    return sample.metadata["lacking"] if isinstance(turn_of(sample), int) else ()


def _check_sample(given: object, name: str) -> None:
    if isinstance(given, Sample):
        return
    from pytest_ragmetrics.core.other_tools import class_of_theirs

    instead = "write score_sample(sample_from(it))" if class_of_theirs(given) else _OF_A_SAMPLE
    raise TypeError(f"{name} scores a Sample, not {type(given).__name__}: {instead}")


class Metric(ABC, Named):
    """A way to score one sample; subclasses name the fields they need and implement ``measure``.

    ``measure`` gets a ``Sample`` with all it ``requires``, and returns a ``MetricResult`` of this ``name`` on this
    ``scale``, with ``verdicts`` and a ``reason`` for failures, worded by ``noun`` and ``complaint``. It raises
    :class:`UnscoredError` if there is no score. One that asks a judge is a ``JudgedMetric``. Parameters are
    keyword-only, with defaults if its name alone is to make it. The hook ``pytest_ragmetrics_register_metrics`` makes
    it known by name; ``pytest_ragmetrics.metric`` makes one of a function.

    >>> class Brevity(Metric):
    ...     name = "brevity"
    ...     requires = ("response",)
    ...
    ...     def measure(self, sample):
    ...         return MetricResult(len(sample.response) <= 280, metric=self.name)
    >>> Brevity().score(response="Short.").value
    1.0
    >>> Brevity(name="short_enough").score(response="Short.").metric
    'short_enough'
    """

    #: The name in results, reports and settings.
    name: str
    #: Other names it is known by in settings.
    aliases: ClassVar[tuple[str, ...]] = ()
    #: What one verdict is about, for "2 of 5 claims not supported"; with an irregular plural, "index|indices".
    noun: ClassVar[str] = "verdict"
    #: What is wrong with a verdict that is not ok, of one or of several.
    complaint: ClassVar[str] = "not ok"
    #: The name of its assertion helper, a function in the module of the class that names it.
    helper: ClassVar[str] = "assert_metric"
    #: The fields of a sample that must be given; texts and lists among them must not be blank.
    requires: ClassVar[tuple[str, ...]] = ("response",)
    #: What :meth:`score` takes beside the fields of a sample, which has it in its ``metadata`` under the same names.
    extra_inputs: ClassVar[tuple[str, ...]] = ()
    #: The lists among them that may be empty, because the metric has a value for that.
    may_be_empty: ClassVar[tuple[str, ...]] = ("retrieved_contexts",)
    #: The lowest and the highest score there can be.
    scale: ClassVar[tuple[float, float]] = (0.0, 1.0)
    #: The unit of scores that are no shares, such as "s" or "$".
    score_unit: ClassVar[str] = ""
    #: Which end of the scale is the good one.
    better: ClassVar[Direction] = "higher"
    #: What a good score does not say, for the reference.
    blind_spots: ClassVar[str] = ""
    #: Whom it asks, "judge" and "embedder": parameters that a declared metric takes.
    asks: ClassVar[tuple[str, ...]] = ()
    #: The fields among them that a turn of a conversation may lack, because earlier ones may have the evidence.
    looks_back_for: ClassVar[tuple[str, ...]] = ()
    #: Whether it scores a conversation as a whole, and not its single answers.
    of_conversation: ClassVar[bool] = False
    #: Whether it looks at all turns of a conversation, whichever answer is scored.
    sees_all_turns: ClassVar[bool] = False
    #: How many requests wait for one another, for the reference.
    rounds: ClassVar[int] = 0

    def __init__(self, *, name: str | None = None) -> None:
        if name is not None:
            self.name = check_name(name)

    @abstractmethod
    def measure(self, sample: Sample) -> MetricResult:
        """Return the score of a sample whose required fields are there; raise ``UnscoredError`` if it has none."""

    async def ameasure(self, sample: Sample) -> MetricResult:
        """Measure like :meth:`measure`, awaitable."""
        return self.measure(sample)

    def score(self, *misplaced: Never, **inputs: Unpack[Fields]) -> MetricResult:
        """Score one sample given by its fields, such as ``response=`` and ``retrieved_contexts=``.

        Raises ``TypeError`` for an unknown field or a wrong type, ``ValueError`` for a required field that is blank,
        and :class:`UnscoredError` if there is nothing to score.
        """
        __tracebackhide__ = True
        self._refuse_misplaced(misplaced, inputs)
        return self.score_sample(self.sample_of({**inputs}))

    async def ascore(self, *misplaced: Never, **inputs: Unpack[Fields]) -> MetricResult:
        """Score like :meth:`score`, awaitable."""
        __tracebackhide__ = True
        self._refuse_misplaced(misplaced, inputs)
        return await self.ascore_sample(self.sample_of({**inputs}))

    def score_sample(self, sample: Sample) -> MetricResult:
        """Score a :class:`Sample`; raises as :meth:`score` does."""
        __tracebackhide__ = True
        _check_sample(sample, self.name)
        self.require(sample)
        with context.scoring() as log:
            try:
                result = self.vacuous_score(sample)
                result = self.measure(sample) if result is None else result
            except RagMetricsError as error:
                self._record(sample, error, log)
                raise
            return self._recorded(sample, result, log)

    async def ascore_sample(self, sample: Sample) -> MetricResult:
        """Score like :meth:`score_sample`, awaitable."""
        __tracebackhide__ = True
        _check_sample(sample, self.name)
        self.require(sample)
        with context.scoring() as log:
            try:
                result = self.vacuous_score(sample)
                result = await self.ameasure(sample) if result is None else result
            except RagMetricsError as error:
                self._record(sample, error, log)
                raise
            return self._recorded(sample, result, log)

    def _refuse_misplaced(self, misplaced: Sequence[object], inputs: Collection[str]) -> None:
        """Raise ``TypeError`` for what is given without a name, and for a whole sample or row."""
        if misplaced or "sample" in inputs or "row" in inputs:
            fields = ", ".join(f"{name}=..." for name in self.requires or FIELDS[:2])
            raise TypeError(f"{self.name} takes fields by name, score({fields}); {_OF_A_SAMPLE}")

    def sample_of(self, inputs: dict[str, Any]) -> Sample:
        """Return the sample that :meth:`score` was given field by field.

        A conversation may be ``messages``, or the ``user_input``, as Ragas has it.
        """
        extra = {name: inputs[name] for name in ("messages", *self.extra_inputs) if name in inputs}
        given = {name: value for name, value in inputs.items() if name not in extra}
        for name in given:
            if name not in FIELDS:
                meant = meant_field(name, *self.extra_inputs)
                hint = f"did you mean {meant}=?" if meant else f"it takes {', '.join((*FIELDS, *self.extra_inputs))}"
                raise TypeError(f"{self.name} takes no {name}=; {hint}")
        sample = Sample(**given)
        return replace(sample, metadata={**sample.metadata, **extra}) if extra else sample

    def is_of(self, sample: Sample) -> bool:
        """Tell whether it scores a sample: of a conversation in turns each answer, or the whole."""
        turn = turn_of(sample)
        return turn is None or (turn == "all") == self.of_conversation

    def answers_of(self, sample: Sample) -> int:
        """Return how many answers a conversation has of which it scores the last alone; 0 where that is the only one.

        0 also for a turn of a conversation, and where the metric looks at all turns.
        """
        sees_all = self.of_conversation or self.sees_all_turns or "messages" in self.extra_inputs
        if sees_all or turn_of(sample) is not None or sample.metadata.get("messages") is None:
            return 0
        try:
            answers = sum(turn.answer is not None for turn in read_turns(sample))
        except (TypeError, ValueError):
            return 0  # A metric that needs the messages says what is wrong.
        return answers if answers > 1 else 0

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` naming a required field that is missing or blank."""
        self.require_fields(sample, self.requires)

    def require_fields(self, sample: Sample, needed: Sequence[str]) -> None:
        """Raise ``ValueError`` naming one of these fields that is missing or blank."""
        for field in needed:
            value = getattr(sample, field)
            if not value and field in _lacking(sample):
                continue
            if value is None or (field not in self.may_be_empty and is_blank(value)):
                state = "missing" if value is None else "blank"
                msg = f"{self.name}: {field} is {state}; it needs {' and '.join(needed)}"
                msg += written_for(field, sample.metadata)
                if field == "response" and value is None and "messages" in sample.metadata:
                    msg += ", and the conversation does not end in a text of the assistant"
                raise ValueError(msg)

    def vacuous_score(self, sample: Sample) -> MetricResult | None:
        """Return the score of a turn without a field that only other turns of its conversation have."""
        lacks = {*_lacking(sample)}
        # With history="none" the contexts of the turn are all there is.
        lacks -= {*self.looks_back_for} if getattr(self, "history", "contexts") == "contexts" else set()
        # An empty list is something to score for those that take it: a retrieval that found nothing.
        lacks -= {name for name in self.may_be_empty if getattr(sample, name, None) is not None}
        lacking = [name for name in self.requires if name in lacks]
        if not lacking:
            return None
        reason = f"no {lacking[0].replace('retrieved_', '').replace('_', ' ')} in this turn"
        return MetricResult(self.best, metric=self.name, reason=reason, vacuous=True)

    @property
    def best(self) -> float:
        """The best score there can be, 0.0 on a scale without end."""
        best = self.scale[self.better == "higher"]
        return best if isfinite(best) else 0.0

    def _recorded(self, sample: Sample, result: MetricResult, log: ScoringLog) -> MetricResult:
        """Record a result and return it; raise ``TypeError`` for anything else."""
        if not isinstance(result, MetricResult):
            raise TypeError(f"{self.name}.measure() returned {type(result).__name__}, not a MetricResult")
        if result.metric != self.name:
            result = result.replaced(metric=self.name)
        if (result.noun, result.complaint) == (NOUN, COMPLAINT):
            result.noun, result.complaint = self.noun, self.complaint
        # Scores of your own metric may leave a scale that it was not given.
        if self.scale[0] <= result.value <= self.scale[1]:
            result.scale = self.scale
        result.unit = self.score_unit
        turn = turn_of(sample)
        if isinstance(turn, int):
            result.verdicts = tuple(replace(verdict, turn=turn) for verdict in result.verdicts)
        session = context.current().session
        if session is not None and session.dry_run:
            result.decides = False
        self._record(sample, result, log)
        return result

    def _record(self, sample: Sample, outcome: MetricResult | RagMetricsError, log: ScoringLog) -> None:
        if isinstance(outcome, RagMetricsError) and not isinstance(outcome, UnscoredError):
            outcome = UnscoredError(str(outcome))
        scoring = Scoring(
            metric=self.name,
            sample=sample,
            outcome=outcome,
            better=self.better,
            exchanges=tuple(log.exchanges),
            served=log.served,
            own_usage=log.own_usage(outcome.usage),
            rule=rule_of(self),
            answers=self.answers_of(sample) if isinstance(outcome, MetricResult) else 0,
        )
        here = context.current()
        if here.session is not None:
            here.session.used(self, scoring)
        here.record(scoring)


@lru_cache(maxsize=256)
def code_of(kind: type[Metric]) -> str:
    """Return the digest of the source of a user's metric, "" for one of this package and where there is no source."""
    if kind.__module__.startswith("pytest_ragmetrics."):
        return ""
    function = getattr(getattr(kind, "call", None), "function", None)
    try:
        source = inspect.getsource(function) if function else _source_of(kind)
    except (OSError, TypeError, SyntaxError, TokenError):
        return ""
    return digest(source) if source else ""


def _source_of(kind: type[Metric]) -> str:
    # inspect.getsource() parses the file of a class, which two threads cannot do at once before Python 3.11.8.
    file = inspect.getsourcefile(kind) or ""
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    functions = [it for it in vars(kind).values() if inspect.isfunction(it)]
    own = [it.__code__.co_firstlineno for it in functions if it.__qualname__ == f"{kind.__qualname__}.{it.__name__}"]
    head = re.compile(rf"\s*class {re.escape(kind.__name__)}\b")
    starts = [number for number, line in enumerate(lines[: min(own, default=None)]) if head.match(line)]
    return "".join(inspect.getblock(lines[starts[-1] :])) if starts else ""


@lru_cache(maxsize=256)
def _defaults(kind: type[Metric]) -> dict[str, object]:
    try:
        taken = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):  # compiled classes have none
        return {}
    return {it.name: it.default for it in taken if it.name != "name"}


def rule_of(metric: Metric) -> str:
    """Return the digests of a metric's code and of its parameters that are no defaults, parted by ``/``."""
    values = ((name, usual, vars(metric).get(name)) for name, usual in _defaults(type(metric)).items())
    plain = [(name, it) for name, usual, it in values if isinstance(it, _PLAIN) and repr(it) != repr(usual)]
    return f"{code_of(type(metric))}/{digest(repr(plain)) if plain else ''}"


def digest(text: str) -> str:
    """Return the beginning of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def is_blank(value: object) -> bool:
    """Tell whether a field of a sample has no text: one that shows nothing, or a list of nothing else.

    >>> is_blank(" \u200b"), is_blank([]), is_blank(["", "Moss."])
    (True, True, False)
    """
    if isinstance(value, str):
        return is_invisible(value)
    return isinstance(value, (list, tuple)) and all(is_blank(item) for item in value)


def joined(reference: Any) -> Any:
    r"""Return several references as one text, each a paragraph of its own; anything else as it is.

    >>> joined(["Moths fly.", "Bats too."])
    'Moths fly.\n\nBats too.'
    """
    several = isinstance(reference, (list, tuple)) and all(isinstance(text, str) for text in reference)
    return "\n\n".join(reference) if several else reference
