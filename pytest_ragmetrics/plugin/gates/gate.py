"""Gates as the marker ``rag_gate`` says them, and the sets of tests that they are over.

``plugin.gates.decide`` decides them by the records of the tests.
"""

from __future__ import annotations

import base64
import math
import pickle
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from io import BytesIO
from typing import Any

import pytest

from pytest_ragmetrics.core.result import Direction
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics.asserting import check_bound
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.ragas import RagasScore
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.runs.clusters import ClusterRule, clusters_of
from pytest_ragmetrics.runs.compare import cluster_of, row_of
from pytest_ragmetrics.runs.records import Gate, known_scale
from pytest_ragmetrics.runs.wording.figures import is_quantile
from pytest_ragmetrics.stats.intervals import check_confidence
from pytest_ragmetrics.stats.means import check_inconclusive
from pytest_ragmetrics.stats.scores import Vacuous, check_vacuous
from pytest_ragmetrics.stats.stopping import Draw, Rule, draw

_EXAMPLES = '@pytest.mark.rag_gate("faithfulness", mean=0.85) or rag_gate("faithfulness", rate=0.95, min=0.8)'
_EVERY = '@pytest.mark.rag_gate("faithfulness", rate=0.9, min=0.8, all_pass=True)'
_REGRESSION = '@pytest.mark.rag_gate("faithfulness", regression=True)'
_QUANTILE = '@pytest.mark.rag_gate("latency", p95=2.0)'
_BY = '@pytest.mark.rag_gate("faithfulness", regression=True, by="language")'
#: Which scores a bound of single scores calls good.
_BOUNDS: tuple[tuple[str, Direction], ...] = (("min", "higher"), ("max", "lower"))
_FIGURES = ("mean", "rate", "min", "max", "confidence")
# The share of scores that a bound such as p95=2.0 is for.
_SHARE = re.compile(r"p([1-9]\d?)")
_TAKEN = {"metric", *_FIGURES, "inconclusive", "vacuous", "regression", "alpha", "stop_when_decided", "all_pass", "by"}
ALPHA = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkedGate(Gate):
    """A gate as a marker says it.

    A regression gate alone has an ``alpha``, by default ``run_alpha``: how often it may fail where nothing has changed,
    or any other of the run; ``by`` is the field of rows whose groups it tests as well. ``scale`` is that of the metric,
    ``None`` where it is not known.
    """

    alpha: float | None = None
    run_alpha: float = ALPHA
    by: str = ""
    stop_when_decided: bool = False
    scale: tuple[float, float] | None = (0.0, 1.0)

    @property
    def vacuous(self) -> Vacuous:
        """What becomes of scores with nothing to check."""
        return "count" if self.counts_vacuous else "skip"

    @property
    def id(self) -> str:
        """How the test of this gate is called.

        >>> gate_among(None, ["faithfulness"], {"rate": 0.95, "min": 0.8}).id
        'gate-faithfulness-rate-0.95-min-0.8'
        """
        if is_quantile(self):
            parts = ["gate", self.metric, f"p{100 * self.bound:g}", f"{self.min_score:g}"]
        else:
            parts = ["gate", self.metric, self.statistic, *([f"{self.bound:g}"] if self.alpha is None else [])]
        if self.alpha not in (None, self.run_alpha):
            parts += ["alpha", f"{self.alpha:g}"]
        if self.by:
            parts += ["by", self.by]
        if self.min_score is not None and not is_quantile(self):
            parts += ["max" if self.better == "lower" else "min", f"{self.min_score:g}"]
        parts += ["all-pass"] if self.all_pass else []
        if self.confidence is not None:
            parts += ["confidence", f"{self.confidence:g}"]
        if self.inconclusive == "pass":
            parts += ["inconclusive", self.inconclusive]
        if self.counts_vacuous:
            parts += ["vacuous", self.vacuous]
        return "-".join(parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class GatedRow:
    """A test of a set before it has scores: the row that it has an answer to, its ``cluster``, and that of two runs."""

    test: str
    row: str
    cluster: str | None
    group: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GatedSet:
    """The tests that one function makes: ``total`` of them, of which ``selected`` were to run, and their gates.

    ``file``, ``line`` and ``scope`` (the classes around it) are the place of the function, as reports have it. Where
    no further row is asked once the gates are decided, ``selected`` is in the order of a ``draw``. ``metrics`` is how
    many each row is scored by; the ``pickled`` ones are those of regression gates by name, as base64, and ``judge`` and
    ``votes`` are what markers name: what it takes to score rows of the baseline in any process. In a dry
    run ``rows`` are those that have scores, by metric.
    """

    function: str
    name: str
    file: str
    line: int | None
    scope: str
    gates: tuple[MarkedGate, ...]
    total: int
    selected: tuple[str, ...] = ()
    draw: Draw | None = None
    metrics: int = 0
    pickled: Mapping[str, str] = field(default_factory=dict)
    judge: str | None = None
    votes: int | None = None
    rows: Mapping[str, tuple[GatedRow, ...]] = field(default_factory=dict)

    @property
    def may_stop(self) -> bool:
        """Whether all gates of the function stop when they are decided: any other needs all rows."""
        return bool(self.gates) and all(gate.stop_when_decided for gate in self.gates)

    def rule(self, gate: MarkedGate) -> Rule:
        """Return what the rows of the set are to reach by a gate that stops."""
        return Rule(
            metric=gate.metric,
            bound=gate.bound,
            alpha=1.0 - (gate.confidence or 0.95),  # without one --rag-stop-when-decided made it stop
            scale=gate.scale or (0.0, 1.0),
            better=gate.better or "higher",
            score_bound=gate.min_score,
            vacuous=gate.vacuous,
            gates=max(1, sum(each.stop_when_decided for each in self.gates)),
        )

    def row_name(self, test: str) -> str:
        """Return the part of a test's id that names its row."""
        return test.removeprefix(self.function).strip("[]") or test

    def test(self, gate: MarkedGate) -> str:
        """Return the id of the test of a gate."""
        return f"{self.function}[{gate.id}]"

    def has(self, test: str) -> bool:
        """Tell whether a test is one of the function, or was in an earlier run."""
        return test == self.function or test.startswith(f"{self.function}[")


def gated_set(
    tests: Sequence[Any], function: str, *, stops: bool, clusters: ClusterRule = "passages", alpha: float = ALPHA
) -> GatedSet:
    """Return the tests that a function makes with the gates of its markers; raise ``ValueError`` saying what to write.

    With ``stops`` gates stop when they are decided, unless they say otherwise; ``clusters`` is for all of them, and
    ``alpha`` for those of regressions that do not say it.
    """
    first = tests[0]
    # Of a conversation in turns, each answer and the whole have metrics of their own.
    listed = {each.name: each for test in tests for each in _metrics(test)}
    metrics = [*listed.values()]
    gates: dict[str, MarkedGate] = {}
    for marker in first.iter_markers("rag_gate"):
        gate = gate_among(metrics, marker.args, marker.kwargs, stops=stops, run_alpha=alpha)
        gate = replace(gate, clusters=clusters)
        if gates.setdefault(gate.id, gate) != gate:
            raise ValueError(f"two gates {gate.id!r} differ in stop_when_decided= alone; leave out one of them")
    compared = {gate.metric for gate in gates.values() if gate.alpha is not None}
    file, line, place = first.location
    return GatedSet(
        function=function,
        name=first.originalname,
        file=file,
        line=line,
        scope=place.removesuffix(first.name),
        # iter_markers() begins with the decorator next to the function; the gates are listed as written.
        gates=tuple(reversed(gates.values())),
        total=len(tests),
        metrics=len(metrics),
        pickled={it.name: text for it in _scored(metrics) if it.name in compared and (text := pickled(it))},
    )


def pickled(metric: Metric) -> str:
    """Return a metric for another process of the run, as base64; "" for one that cannot be pickled."""
    made = BytesIO()
    with suppress(Exception):  # what an own metric raises
        _Pickler(made).dump(metric)
        return base64.b64encode(made.getvalue()).decode()
    return ""


def unpickled(text: str) -> Metric | None:
    """Return the metric that another process of the run pickled, ``None`` where it cannot be made here."""
    with suppress(Exception, pytest.skip.Exception):  # a module of tests, which a controller of xdist did not import
        found = pickle.loads(base64.b64decode(text))  # noqa: S301 - of this run, not of a file
        return found if isinstance(found, Metric) else None
    return None


class _Pickler(pickle.Pickler):
    """Pickles a metric that was made of a function as what the decorator left in its module."""

    def reducer_override(self, obj: Any) -> Any:
        function = getattr(getattr(type(obj), "call", None), "function", None)
        return NotImplemented if function is None else function.__qualname__


def _scored(metrics: Iterable[Metric]) -> Iterator[Metric]:
    """Yield metrics and those inside of them."""
    for each in metrics:
        yield from (each, *(each.metrics if isinstance(each, RagasScore) else ()))


def drawn_order(tests: Sequence[Any], seed: str) -> tuple[list[Any], Draw]:
    """Return the tests of a set in the order in which their rows are asked, and the draw of it."""
    named = {test.nodeid: test for test in tests}
    samples = {name: _case(test).row.sample for name, test in named.items()}
    clusters = {name: None if sample is None else cluster_of(sample) for name, sample in samples.items()}
    order, drawn = draw(clusters, seed)
    return [named[name] for name in order], drawn


def planned_rows(gated: GatedSet, tests: Sequence[Any]) -> dict[str, tuple[GatedRow, ...]]:
    """Return by metric of the gates of a set which of its tests are to have scores, before any has."""
    found: dict[str, tuple[GatedRow, ...]] = {}
    for gate in gated.gates:
        # Of a conversation in turns, each answer and the whole have metrics of their own.
        own = [
            test for test in tests if gate.metric in {it.name for it in _scored(_metrics(test))} or not _metrics(test)
        ]
        samples = [(_case(test) and _case(test).row.sample) or Sample() for test in own]
        groups = clusters_of(samples, rule=gate.clusters)
        found[gate.metric] = tuple(
            GatedRow(
                test=test.nodeid,
                row=row_of(sample, test.nodeid) or test.nodeid,
                cluster=cluster_of(sample),
                group=None if group is None else repr(group),
            )
            for test, sample, group in zip(own, samples, groups, strict=True)
        )
    return found


def _metrics(test: Any) -> list[Metric]:
    """Return the metrics that score the row of a test ahead of it."""
    return [each.metric for each in getattr(_case(test), "metrics", ())]


def _case(test: Any) -> Any:
    """Return the row of a data set that a test is of, ``None`` for another test."""
    return getattr(getattr(test, "callspec", None), "params", {}).get("rag_sample")


def gate_among(
    listed: Sequence[Metric] | None,
    given: Sequence[Any],
    named: Mapping[str, Any],
    *,
    stops: bool = False,
    run_alpha: float = ALPHA,
) -> MarkedGate:
    """Return the gate that the arguments of a marker describe; raise ``ValueError`` saying what to write instead.

    ``listed`` are the metrics of the data set, of which its own must be one. With ``stops`` it stops when it is
    decided, where it can and does not say otherwise. ``run_alpha`` is that of a regression gate which does not say it.
    ``p95=2.0`` is ``rate=0.95, max=2.0``: the 95th percentile is at most 2.0 where 95 % of the scores are.
    """
    asked, named = named, _without_quantile(named)
    unknown = sorted(named.keys() - _TAKEN)
    metrics = [*given, *(named[name] for name in ("metric",) if name in named)]
    if unknown or len(metrics) != 1 or not isinstance(metrics[0], str) or not metrics[0].strip():
        problem = f"it knows no {', '.join(unknown)}" if unknown else "it takes the name of one metric"
        raise ValueError(f"{problem}; write {_EXAMPLES}")
    alpha = _alpha(named, run_alpha)
    figures = {name: _figure(name, named[name]) for name in _FIGURES if named.get(name) is not None}
    vacuous = named.get("vacuous") is not None and check_vacuous(named["vacuous"]) == "count"
    name, known = _known(metrics[0].strip(), listed)
    better, scale, unit = (known.better, known.scale, known.score_unit) if known else (None, None, "")
    if named is not asked and better == "higher":
        msg = f"a percentile such as p95= is for metrics whose lower scores are better, such as latency, not for {name}"
        raise ValueError(f"{msg}; write {_EXAMPLES}")
    stops = _stops(name, listed, named, stops=stops, bounded=known_scale(scale) is not None)
    if named.get("all_pass") and "rate" not in figures:
        raise ValueError(f"all_pass=True goes with rate= and the score that each answer reaches; write {_EVERY}")
    common: dict[str, Any] = {"metric": name, "counts_vacuous": vacuous, "scale": known_scale(scale), "unit": unit}
    inconclusive = named.get("inconclusive") or "fail"
    if alpha is not None:
        return MarkedGate(
            statistic="regression",
            bound=0.0,
            better=better,
            alpha=alpha,
            run_alpha=run_alpha,
            by=str(named.get("by") or ""),
            inconclusive=check_inconclusive(inconclusive, alpha),
            **common,
        )
    if mistake := _mistake(name, better, figures):
        raise ValueError(mistake)
    for which in ("mean", "min", "max"):
        if which in figures:
            check_bound(which, figures[which], metric=name, scale=scale)
    bounds = [(which, direction) for which, direction in _BOUNDS if which in figures]
    return MarkedGate(
        statistic="rate" if bounds else "mean",
        bound=figures["rate" if bounds else "mean"],
        min_score=figures[bounds[0][0]] if bounds else None,
        better=bounds[0][1] if bounds else better,
        confidence=figures.get("confidence"),
        inconclusive=check_inconclusive(inconclusive, figures.get("confidence")),
        all_pass=bool(named.get("all_pass")),
        stop_when_decided=stops,
        **common,
    )


def _without_quantile(named: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a marker with ``rate=`` and ``max=`` in place of a bound such as ``p95=``."""
    found = {name: share for name in named if (share := _SHARE.fullmatch(name))}
    if not found:
        return named
    name, share = next(iter(found.items()))
    others = [other for other in named if other != name and (other in found or other in ("mean", "rate", "min", "max"))]
    if others or named.get("regression"):
        raise ValueError(f"{name}= is a bound by itself, and takes no {[*others, 'regression'][0]}=; write {_QUANTILE}")
    rest = {other: value for other, value in named.items() if other != name}
    return {**rest, "rate": int(share[1]) / 100, "max": _figure(name, named[name])}


def _stops(
    metric: str, listed: Sequence[Metric] | None, named: Mapping[str, Any], *, stops: bool, bounded: bool
) -> bool:
    """Return whether a gate stops when it is decided: as it says, else as ``stops`` if its rows are scored ahead."""
    can_stop = bounded or named.get("rate") is not None
    given = named.get("stop_when_decided")
    if named.get("all_pass") not in (None, True, False):
        raise ValueError(f"all_pass={named['all_pass']!r} is neither True nor False; write {_EVERY}")
    if given and named.get("all_pass"):
        raise ValueError("all_pass=True needs every answer to a row, and takes no stop_when_decided=; leave out one")
    if given is None:
        return stops and bool(listed) and can_stop and not named.get("all_pass")
    if given not in (True, False):
        raise ValueError(f"stop_when_decided={given!r} is neither True nor False")
    if given and named.get("regression"):
        msg = "a regression gate compares all rows, and takes no stop_when_decided=; write it above another function"
        raise ValueError(msg)
    if given and named.get("confidence") is None:
        raise ValueError("stop_when_decided=True goes with the confidence= of its decision, such as 0.95")
    if given and not listed:
        example = f'@pytest.mark.rag_dataset("golden.jsonl", metrics=[{metric!r}])'
        raise ValueError(f"stop_when_decided=True needs rows that are scored ahead of their tests; write {example}")
    if given and not can_stop:
        msg = f"{metric} has no highest score, and any row may change its mean: stop_when_decided=True goes with rate="
        raise ValueError(msg)
    return bool(given)


def _alpha(named: Mapping[str, Any], run_alpha: float) -> float | None:
    """Return the share of false alarms of a regression gate, ``None`` for another gate."""
    regression, alpha, by = named.get("regression"), named.get("alpha"), named.get("by")
    if regression not in (None, True, False):
        raise ValueError(f"regression={regression!r} is neither True nor False; write {_REGRESSION}")
    if not regression and alpha is not None:
        raise ValueError(f"alpha= goes with regression=True; write {_REGRESSION}")
    if by is not None and (not regression or not isinstance(by, str) or not by.strip()):
        problem = "takes the name of one field of the rows" if regression else "goes with regression=True"
        raise ValueError(f"by= {problem}; write {_BY}")
    if not regression:
        return None
    if others := [name for name in _FIGURES if named.get(name) is not None]:
        msg = f"regression=True has no bound but the baseline, and takes no {others[0]}=; write {_REGRESSION}"
        raise ValueError(msg)
    return check_confidence(run_alpha if alpha is None else alpha, name="alpha", example=ALPHA)


def _mistake(metric: str, better: Direction | None, figures: Mapping[str, float]) -> str | None:
    """Return what is wrong with the figures of a gate together."""
    if ("mean" in figures) == ("rate" in figures):
        return f"give one of mean= and rate=; write {_EXAMPLES}"
    given = [direction for which, direction in _BOUNDS if which in figures]
    if "mean" in figures:
        return "min= and max= are of single scores and go with rate=; mean= is a bound by itself" if given else None
    if len(given) != 1:
        wanted = "min=, or max= where lower scores are better"
        return f"rate= needs the score that counts as good: {wanted}; write {_EXAMPLES}"
    if not 0.0 <= figures["rate"] <= 1.0:
        return f"rate={figures['rate']:g} is no share; write a number between 0 and 1"
    if better not in (None, *given):
        wanted = "max=" if better == "lower" else "min="
        return f"{better} scores of {metric} are the good ones; write {wanted}"
    return None


def _figure(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{name}={value!r} is no number")
    if name == "confidence" and not 0.0 < value < 1.0:
        raise ValueError(f"confidence={value!r} must be between 0 and 1, such as 0.95")
    return float(value)


def _known(name: str, listed: Sequence[Metric] | None) -> tuple[str, Metric | type[Metric] | None]:
    """Return the name in results of a metric, and the metric; a suite may have metrics only it knows."""
    known: Metric | type[Metric] | None = None
    with suppress(ValueError):
        known = metric_named(name)
    if not listed:
        return (name if known is None else known.name), known
    scored = {metric.name: metric for metric in _scored(listed)}
    wanted = name if known is None or name in scored else known.name
    if wanted not in scored:
        near = get_close_matches(name, scored, 1)
        right = f"did you mean {near[0]!r}?" if near else f"write metrics=[..., {wanted!r}] there"
        raise ValueError(f"{name!r} is not scored, the marker rag_dataset lists {', '.join(scored)}: {right}")
    return wanted, scored[wanted]
