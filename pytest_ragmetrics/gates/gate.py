"""What a ``rag_gate`` marker says, and the set of tests it says it of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.result import Direction

_EXAMPLES = '@pytest.mark.rag_gate("faithfulness", mean=0.85) or rag_gate("faithfulness", rate=0.95, min=0.8)'
_TAKEN = {"metric", "mean", "rate", "min", "max", "confidence"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """A bound for the mean of a metric, or for the rate of scores that reach ``score_bound``.

    ``better`` says which scores are the good ones, and is ``None`` where only the metric's results can tell.
    """

    metric: str
    statistic: Literal["mean", "rate"]
    bound: float
    score_bound: float | None = None
    better: Direction | None = None
    confidence: float | None = None

    @property
    def id(self) -> str:
        """How the test of this gate is called.

        >>> gate_of("faithfulness", rate=0.95, min=0.8).id
        'gate-faithfulness-rate-0.95-min-0.8'
        """
        parts = ["gate", self.metric, self.statistic, f"{self.bound:g}"]
        if self.score_bound is not None:
            parts += ["max" if self.better == "lower" else "min", f"{self.score_bound:g}"]
        if self.confidence is not None:
            parts += ["confidence", f"{self.confidence:g}"]
        return "-".join(parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class GatedSet:
    """The tests that one function makes: ``total`` of them, of which ``selected`` were to run, and their gates.

    ``file``, ``line`` and ``scope`` (the classes around it) say where the function stands, as reports have it. Crosses
    processes as JSON builtins.
    """

    function: str
    name: str
    file: str
    line: int | None
    scope: str
    gates: tuple[Gate, ...]
    total: int
    selected: tuple[str, ...] = ()

    def to_row(self) -> dict[str, Any]:
        """Return it as JSON builtins."""
        row = asdict(self)
        return {**row, "gates": list(row["gates"]), "selected": list(self.selected)}

    def location(self, gate: Gate) -> tuple[str, int | None, str]:
        """Return where the test of a gate stands, as reports have it."""
        return self.file, self.line, f"{self.scope}{self.name}[{gate.id}]"

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> GatedSet:
        """Read what :meth:`to_row` made."""
        gates = tuple(Gate(**gate) for gate in row["gates"])
        return cls(**{**row, "gates": gates, "selected": tuple(row["selected"])})


def gate_of(*given: Any, **named: Any) -> Gate:
    """Return the gate that the arguments of a marker describe; raise ``ValueError`` saying what to write instead."""
    unknown = sorted(named.keys() - _TAKEN)
    metrics = [*given, *(named[name] for name in ("metric",) if name in named)]
    if unknown or len(metrics) != 1 or not isinstance(metrics[0], str) or not metrics[0].strip():
        problem = f"it knows no {', '.join(unknown)}" if unknown else "it takes the name of one metric"
        msg = f"{problem}; write {_EXAMPLES}"
        raise ValueError(msg)
    figures = {name: _figure(name, named[name]) for name in _TAKEN - {"metric"} if named.get(name) is not None}
    if ("mean" in figures) == ("rate" in figures):
        msg = f"give one of mean= and rate=; write {_EXAMPLES}"
        raise ValueError(msg)
    name, better = _known(metrics[0].strip())
    if "mean" in figures:
        if "min" in figures or "max" in figures:
            msg = "min= and max= are of single scores and go with rate=; mean= is a bound by itself"
            raise ValueError(msg)
        return Gate(
            metric=name, statistic="mean", bound=figures["mean"], better=better, confidence=figures.get("confidence")
        )
    return _rate(name, better, figures)


def _rate(metric: str, better: Direction | None, figures: Mapping[str, float]) -> Gate:
    if ("min" in figures) == ("max" in figures):
        msg = (
            f"rate= needs the score that counts as good: min=, or max= where lower scores are better; write {_EXAMPLES}"
        )
        raise ValueError(msg)
    if not 0.0 <= figures["rate"] <= 1.0:
        msg = f"rate={figures['rate']:g} is no share; write a number between 0 and 1"
        raise ValueError(msg)
    given: Direction = "higher" if "min" in figures else "lower"
    if better not in (None, given):
        wanted = "max=" if better == "lower" else "min="
        msg = f"{better} scores of {metric} are the good ones; write {wanted}"
        raise ValueError(msg)
    return Gate(
        metric=metric,
        statistic="rate",
        bound=figures["rate"],
        score_bound=figures["min" if given == "higher" else "max"],
        better=given,
        confidence=figures.get("confidence"),
    )


def _figure(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        msg = f"{name}={value!r} is no number"
        raise ValueError(msg)
    if name == "confidence" and not 0.0 < value < 1.0:
        msg = f"confidence={value!r} must be between 0 and 1, such as 0.95"
        raise ValueError(msg)
    return float(value)


def _known(name: str) -> tuple[str, Direction | None]:
    """Return the name in results of a metric, and its direction; a suite may have metrics that only it knows."""
    try:
        kind = metric_named(name)
    except ValueError:
        return name, None
    return kind.name, kind.better
