"""Metrics that users make of a function with ``@metric``."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, isawaitable, iscoroutinefunction, signature
from typing import Any, ClassVar, SupportsFloat, TypeAlias, overload

from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.core.result import Direction, MetricResult, Verdict
from pytest_ragmetrics.core.sample import FIELDS, Sample, meant_field
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import check_choice
from pytest_ragmetrics.metrics.verdicts import share_of

#: What a function may return: the score, the verdicts whose share is the score, or the whole result.
Outcome: TypeAlias = SupportsFloat | Sequence[Verdict]
Scores: TypeAlias = Callable[..., Outcome | Awaitable[Outcome]]

_SAMPLE, _ASK = "sample", "ask"
_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_EXAMPLE = "write @metric above def brevity(response), or @metric(name=...)"


@overload
def metric(function: Scores, /) -> Metric: ...


@overload
def metric(
    *, name: str | None = None, better: Direction = "higher", scale: tuple[float, float] = (0.0, 1.0)
) -> Callable[[Scores], Metric]: ...


def metric(
    function: Scores | None = None,
    /,
    *,
    name: str | None = None,
    better: Direction = "higher",
    scale: tuple[float, float] = (0.0, 1.0),
) -> Metric | Callable[[Scores], Metric]:
    """Make a metric of a function; its parameters name the fields of the sample that it takes.

    A field without a default must be given and not be blank. ``sample`` is the whole ``Sample``; ``ask`` makes it a
    judged metric, whose function may be a coroutine: ``await ask(task)``. The function returns a number or a bool, a
    list of ``Verdict`` whose share of good ones is the score, or a ``MetricResult``; it raises :class:`UnscoredError`
    if there is no score.

    Raises ``TypeError`` naming a parameter that is no field, and ``ValueError`` for an invalid ``better`` or ``scale``.

    >>> @metric
    ... def brevity(response):
    ...     return min(1.0, 280 / len(response))
    >>> brevity.score(response="Short.").value
    1.0
    """
    if function is None:
        return lambda scores: _made(scores, name=name, better=better, scale=scale)
    return _made(function, name=name, better=better, scale=scale)


def _made(function: Scores, *, name: str | None, better: Direction, scale: tuple[float, float]) -> Metric:
    named = _named(function, name)
    call = _OwnCall(function=function, name=named, takes=_taken(function, named))
    described = {
        "name": named,
        "requires": tuple(field for field, needed in call.takes.items() if needed and field in FIELDS),
        "may_be_empty": (),
        "sees_all_turns": _SAMPLE in call.takes,
        "better": check_choice(f"metric {named}: better", better, ("higher", "lower")),
        "scale": _scale(scale, named),
        "call": call,
        "__doc__": getattr(function, "__doc__", None),
        # Of its author: evaluations run functions of other modules in a thread, because they may block.
        "__module__": getattr(function, "__module__", None) or "__main__",
    }
    kind = type(named, (_JudgedFunction if _ASK in call.takes else _Function,), described)
    made: Metric = kind()
    return made


def _named(function: object, name: object) -> str:
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"metric takes a function, not {function!r:.60}; {_EXAMPLE}")
    named = getattr(function, "__name__", "") if name is None else name
    if not isinstance(named, str) or not named.strip() or (name is None and not named.isidentifier()):
        shown = getattr(function, "__name__", type(function).__name__)
        raise TypeError(f"metric of {shown} has no name; write @metric(name='brevity')")
    return named


def _scale(scale: Any, name: str) -> tuple[float, float]:
    is_pair = isinstance(scale, (tuple, list)) and [type(end) in (int, float) for end in scale] == [True, True]
    if not is_pair or not all(map(math.isfinite, scale)) or not scale[0] < scale[1]:
        msg = f"metric {name}: scale must be the lowest and the highest score, such as (0.0, 1.0), not {scale!r}"
        raise ValueError(msg)
    return float(scale[0]), float(scale[1])


def _taken(function: Scores, name: str) -> dict[str, bool]:
    """Return the names of a function's parameters, and whether each must be given."""
    takes = {}
    for parameter in signature(function).parameters.values():
        if parameter.kind not in _NAMED:
            hint = f"take the fields one by one, or {_SAMPLE}"
            raise TypeError(f"metric {name}: parameter {parameter} cannot be given by name; {hint}")
        if parameter.name not in (*FIELDS, _SAMPLE, _ASK):
            meant = meant_field(parameter.name)
            known = f"there are {', '.join(FIELDS)}, {_SAMPLE} for all of them, and {_ASK} for a judge"
            hint = f"write {meant}" if meant else known
            raise TypeError(f"metric {name}: parameter {parameter.name} is no field of a sample; {hint}")
        takes[parameter.name] = parameter.default is Parameter.empty
    if not takes:
        raise TypeError(f"metric {name} takes no field of a sample, so it scores all of them alike; {_EXAMPLE}")
    if iscoroutinefunction(function) and _ASK not in takes:
        msg = f"metric {name}: a coroutine is for asking a judge; take the parameter {_ASK}, or write def without async"
        raise TypeError(msg)
    return takes


@dataclass(frozen=True, kw_only=True, slots=True)
class _OwnCall:
    """A function that scores, with the names of what it takes."""

    function: Scores
    name: str
    takes: Mapping[str, bool]

    def __call__(self, sample: Sample, **given: object) -> Outcome | Awaitable[Outcome]:
        """Call it with the fields of a sample; what is not set is left to the defaults."""
        for field in self.takes:
            value = sample if field == _SAMPLE else getattr(sample, field, None)
            if value is not None:
                given.setdefault(field, value)
        return self.function(**given)

    def result(self, outcome: object) -> MetricResult:
        """Return what the function returned as a result under the metric's own name; raise otherwise."""
        if isinstance(outcome, MetricResult):
            return outcome.replaced(metric=self.name)
        if isinstance(outcome, (list, tuple)) and all(isinstance(item, Verdict) for item in outcome):
            if outcome:
                return share_of(self.name, outcome, "verdicts ok")
            raise UnscoredError(f"{self.name}: it returned no verdict, so there is nothing to score")
        try:
            if isinstance(outcome, SupportsFloat):
                return MetricResult(float(outcome), metric=self.name)
        except TypeError:
            # An array of several numbers claims to be SupportsFloat.
            pass
        if isawaitable(outcome):
            raise TypeError(f"metric {self.name} returned a coroutine: await it, return await ...")
        part = next((name for name in ("value", "ok") if hasattr(outcome, name)), None)
        right = f"its .{part}" if part else "a number, a bool, verdicts or a MetricResult"
        raise TypeError(f"metric {self.name} returned {outcome!r:.60}: return {right}")


class _Function(Metric):
    """A metric that a function computes."""

    call: ClassVar[_OwnCall]

    def measure(self, sample: Sample) -> MetricResult:
        """Return what the function says."""
        return self.call.result(self.call(sample))


class _JudgedFunction(JudgedMetric):
    """A metric whose function asks a judge."""

    call: ClassVar[_OwnCall]

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return what the function says, with who was asked and what it cost."""
        outcome = self.call(sample, ask=ask)
        result = self.call.result(await outcome if isawaitable(outcome) else outcome)
        if result.judge is not None:
            return result
        return ask.result(result.value, reason=result.reason, verdicts=result.verdicts, vacuous=result.vacuous)
