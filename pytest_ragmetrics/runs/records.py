"""What a run records: one value from the scoring inside a test to the report, the same in every process and file.

:func:`record_of` makes a record of a scoring, :mod:`pytest_ragmetrics.plugin.report` a document of the records of a
run; :func:`render_json` and :func:`read_document` are the file that ``--rag-json`` writes.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from pytest_ragmetrics.core.codec import CodecError, dump, encodable, load, schema
from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.core.files import read_json
from pytest_ragmetrics.core.result import COMPLAINT, NOUN, Decision, Direction, MetricResult, Operator, Usage, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.core.tested import Tested
from pytest_ragmetrics.judges.context import Exchange, Scoring
from pytest_ragmetrics.runs.blame import Blame

#: Version of the document's shape; grows when a field changes its meaning or goes away.
VERSION: Literal[1] = 1

RecordOutcome = Literal["passed", "failed", "unscored", "measured"]
TestOutcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
GateOutcome = Literal[Decision, "skipped"]
Setting = str | int | float | bool | None

_OPERATORS: Mapping[Operator, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
#: Fields whose texts are chosen by this package or name a metric; redaction leaves them.
_LABELS = {"metric", "outcome", "better", "operator", "kind", "noun", "complaint", "part", "unit"}

# What a record has from its result as it is.
_SHARED = ("reason", "verdicts", "vacuous", "judge", "disagreements", "samples", "noun", "complaint", "unit")
# Types of values that are in JSON as they are.
_PLAIN = frozenset({type(None), bool, int})


@dataclass(frozen=True, kw_only=True, slots=True)
class Threshold:
    """What a score was compared with: ``score <operator> bound``."""

    operator: Operator
    bound: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One scoring: ``score`` is ``None`` if it is unscored, ``outcome`` ``measured`` if nothing was asserted.

    ``samples`` are the scores of several votes. ``exchanges`` are kept for a failure, a missing score, a suspicious
    verdict, and votes or judges that differ; ``disagreements`` describe the latter. ``noun`` and ``complaint`` word a
    verdict that is not ok. ``asserted`` is false if the test ended before its assertion. A record is ``used`` without a
    threshold if it is part of a table, of an asserted set or of another score, or was compared with another score.
    ``scale`` is ``None`` for a score beyond it. ``rule`` has the digests of the metric's own code and parameters.
    ``blame`` is the part of the application that made it worse than in the baseline, if ``--rag-blame`` found it.
    """

    metric: str
    score: float | None
    outcome: RecordOutcome
    threshold: Threshold | None
    reason: str | None
    vacuous: bool
    better: Direction
    judge: str | None
    usage: Usage
    samples: tuple[float, ...]
    sample: Sample
    verdicts: tuple[Verdict, ...]
    exchanges: tuple[Exchange, ...]
    noun: str = NOUN
    complaint: str = COMPLAINT
    disagreements: tuple[str, ...] = ()
    asserted: bool = True
    scale: tuple[float, float] | None = (0.0, 1.0)
    unit: str = ""
    used: bool = True
    rule: str | None = None
    blame: Blame | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RegressionRecord(Tested):
    """The result of a regression gate; figures are ``None`` if nothing was compared.

    ``before`` and ``after`` are the means of the pairs; ``new`` and ``gone`` count rows of one run only, ``rewritten``
    those with another question. ``by`` is the field of the groups. ``against`` describes the ``runs`` of the baseline,
    ``left_out`` names the others. ``rejudged`` is what was judged anew for it, at the cost of ``usage``.
    """

    before: float | None = None
    after: float | None = None
    new: int = 0
    gone: int = 0
    rewritten: int = 0
    by: str = ""
    runs: int = 1
    against: str = ""
    left_out: tuple[str, ...] = ()
    rejudged: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, kw_only=True, slots=True)
class StopRecord:
    """How much of a set a gate took that stops when it is decided.

    ``decided_after`` is the number of rows, in the order drawn by ``seed``, that decided it, if any. ``asked`` rows
    were scored, ``spared`` rows and ``judgements`` were not needed.
    """

    seed: str | None
    decided_after: int | None = None
    asked: int = 0
    spared: int = 0
    judgements: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """A threshold over a whole set: the mean of a metric, or the share of scores that reach ``min_score``.

    A ``regression`` is the mean change since the baseline, with the bound 0. With a ``confidence`` an end of the
    interval is compared with ``bound``; ``inconclusive`` is the outcome if the bound is inside. ``counts_vacuous``
    counts scores with nothing to check, ``all_pass`` rows whose every answer passes. ``better`` is ``None`` if only
    results have it. ``clusters`` are rows that share a passage, or that name their cluster.
    """

    metric: str
    statistic: Literal["mean", "rate", "regression"]
    bound: float
    min_score: float | None = None
    better: Direction | None = None
    confidence: float | None = None
    counts_vacuous: bool = False
    inconclusive: Literal["fail", "pass"] = "fail"
    all_pass: bool = False
    clusters: Literal["passages", "named"] = "passages"
    unit: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GateRecord(Gate):
    """A gate and its result.

    ``value`` is ``None`` if nothing was scored. ``low`` and ``high`` are the interval. ``total`` counts the tests of
    the set, ``n`` the scores that count (pairs of a regression), ``unscored`` the missing ones, ``vacuous`` those with
    nothing to check, ``vacuous_before`` the same in the baseline. ``more`` further samples would settle an inconclusive
    gate (``None`` if unknown). With ``all_pass`` all but ``total`` count rows. With ``stop``, figures are of the rows
    that decided it. ``shared`` rows share passages, in so many ``groups``. ``limit`` says why the gate can never pass
    or never fail. ``percentile`` is the score that the share ``bound`` of scores does not exceed.
    """

    better: Direction
    value: float | None
    low: float | None
    high: float | None
    n: int
    unscored: int
    total: int
    outcome: GateOutcome
    vacuous: int = 0
    more: int | None = None
    regression: RegressionRecord | None = None
    stop: StopRecord | None = None
    vacuous_before: int | None = None
    shared: int = 0
    groups: int = 0
    limit: str = ""
    percentile: float | None = None

    @property
    def passes(self) -> bool:
        """Whether its test passes."""
        return self.outcome == "passed" or (self.outcome == "inconclusive" and self.inconclusive == "pass")


@dataclass(frozen=True, kw_only=True, slots=True)
class TestRecord:
    """One test and its records; ``message`` is pytest's text of a failure, a skip or an expected failure.

    ``gate`` is the result of a gate, which has no records. ``calibration`` has the records of labelled answers, which
    count nowhere else.
    """

    __test__ = False  # for pytest, where a test module imports it

    id: str
    file: str
    line: int | None
    outcome: TestOutcome
    duration: float
    attempts: int
    message: str | None
    records: tuple[Record, ...]
    gate: GateRecord | None
    calibration: tuple[Record, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Judging:
    """What decides the scores of a metric besides the answers; only equal ones can be compared.

    ``judge`` has all judges of the run, ``prompts`` digests by task, ``definition`` the rest. ``served`` counts replies
    by judge, model and fingerprint.
    """

    judge: str
    prompts: Mapping[str, str]
    definition: Mapping[str, str]
    served: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class SentinelRecord:
    """Stored answers of a judge that a run requested again, to notice a changed judge.

    ``changed`` is the sum of their changes, each from 0 (the same verdicts) to 1. ``evidence`` is the e-value of this
    and earlier runs against a judge that changes few answers; ``drifts`` is whether it is enough.
    """

    asked: int = 0
    changed: float = 0.0
    evidence: float = 1.0
    drifts: bool = False
    usage: Usage = field(default_factory=Usage)

    def __add__(self, other: SentinelRecord) -> SentinelRecord:
        return SentinelRecord(
            asked=self.asked + other.asked,
            changed=self.changed + other.changed,
            # That of the parts of one run rests on the same earlier runs.
            evidence=max(self.evidence, other.evidence),
            drifts=self.drifts or other.drifts,
            usage=self.usage + other.usage,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class MutantRecord:
    """An answer with a planted fault, in words, and by metric or test whether it was noticed, ``None`` if unknown.

    One at which something else ``fails`` has not survived. ``measured`` are the metrics of its tests, each with whether
    a bound holds it.
    """

    kind: str
    text: str
    verdicts: Mapping[str, bool | None]
    measured: Mapping[str, bool] = field(default_factory=dict)
    fails: bool = False

    @property
    def killed(self) -> bool | None:
        """Whether anything noticed it."""
        found = [verdict for verdict in self.verdicts.values() if verdict is not None]
        return any(found) if True in found or (found and not self.fails) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """The run: ``settings`` are its options, ``notes`` the lines of its summary.

    ``warnings`` say why its scores may mean nothing. ``project`` to ``folder`` say where it comes from, "" if unknown.
    ``selection`` has the paths and marks that chose its tests, ``partial`` why they are not all. ``judging`` is by
    metric, ``sentinels`` by judge, ``mutants`` those of ``--rag-mutate``. ``skipped`` and ``not_needed`` count tests
    without a score by function.
    """

    started: str
    duration: float
    exit_status: int
    python: str
    pytest: str
    ragmetrics: str
    settings: Mapping[str, Setting]
    notes: tuple[str, ...]
    project: str = ""
    branch: str = ""
    commit: str = ""
    message: str = ""
    author: str = ""
    ci: str = ""
    ci_number: str = ""
    repository: str = ""
    folder: str = ""
    selection: str = ""
    partial: str = ""
    judging: Mapping[str, Judging] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    not_needed: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    sentinels: Mapping[str, SentinelRecord] = field(default_factory=dict)
    mutants: tuple[MutantRecord, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """Everything a run recorded: what ``--rag-json`` writes and every report is made from."""

    version: Literal[1] = VERSION
    run: RunRecord
    tests: tuple[TestRecord, ...]


class DocumentError(RagMetricsError):
    """A file is not the document of a run; says the file and the place in it."""

    def __init__(self, message: str, *, file: Path) -> None:
        self.file = file
        super().__init__(f"{file}: {message}")


def position(test: TestRecord) -> tuple[str, int, list[tuple[int, int, str]], str]:
    """Return the key that sorts tests by file and line, and numbers inside ids by their value."""
    return test.file, test.line or 0, natural_order(test.id), test.id


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """Return the key that sorts names, and numbers inside them by their value."""
    return [(0, int(number), "") if number else (1, 0, word) for number, word in re.findall(r"(\d{1,18})|(\D+)", name)]


def function_name(test: str) -> str:
    """Return the id of the function that a test is made of.

    >>> function_name("tests/test_a[b].py::TestBot::test_row[a[0]::b]")
    'tests/test_a[b].py::TestBot::test_row'
    """
    file, separator, rest = test.partition("::")
    return file + separator + rest.partition("[")[0]


def held_to_bounds(tests: Iterable[TestRecord]) -> tuple[TestRecord, ...]:
    """Return tests of which each score is held to its threshold, whatever the order of their asserts.

    A test ends at the first assert that fails, and compares no further score. Where all comparisons of a metric in the
    rows of its function are with one threshold, a score of a failed row that was not compared is held to it as well.
    """
    tests = tuple(tests)
    known: dict[tuple[str, str], set[Threshold]] = {}
    for test in tests:
        for record in test.records:
            if record.threshold is not None:
                known.setdefault((function_name(test.id), record.metric), set()).add(record.threshold)

    def held(test: TestRecord, record: Record) -> Record:
        thresholds = known.get((function_name(test.id), record.metric), set())
        if record.outcome != "measured" or record.score is None or len(thresholds) != 1:
            return record
        (threshold,) = thresholds
        outcome: RecordOutcome = "passed" if is_met(record.score, threshold) else "failed"
        return replace(record, outcome=outcome, threshold=threshold, asserted=False)

    return tuple(
        replace(test, records=tuple(held(test, record) for record in test.records))
        if test.outcome in ("failed", "error", "xfailed")
        else test
        for test in tests
    )


def is_met(score: float, threshold: Threshold) -> bool:
    """Tell whether a score is on the good side of a threshold."""
    return _OPERATORS[threshold.operator](score, threshold.bound)


def flips(samples: Sequence[float], threshold: Threshold | None) -> bool:
    """Tell whether the votes of a record lie on both sides of its threshold: the test may fail the next time.

    >>> threshold = Threshold(operator=">=", bound=0.8)
    >>> flips([0.5, 0.9, 0.9], threshold), flips([0.8, 0.9], threshold)
    (True, False)
    """
    return threshold is not None and len({is_met(sample, threshold) for sample in samples}) > 1


def result_of(record: Record) -> MetricResult:
    """Return the result that a scored record was made of."""
    shared = {name: getattr(record, name) for name in ("metric", "usage", "scale", *_SHARED)}
    return MetricResult(record.score or 0.0, votes=max(1, len(record.samples)), **shared)


def record_of(scoring: Scoring, *, redact: Callable[[str], str] | None = None) -> Record:
    """Return the record of a scoring as it is now: a result may be compared with a threshold later.

    All texts can be encoded and all numbers are Python's. ``redact`` is applied to the texts, the names in metadata
    among them, and what looks like a key is masked; offsets that this makes wrong are left out.
    """
    record = bare_record(scoring)
    if (
        record.outcome in ("failed", "unscored")
        or any(verdict.suspicious for verdict in record.verdicts)
        or len(set(record.samples)) > 1
        or record.disagreements
    ):
        # They ended in a random order.
        exchanges = sorted(scoring.exchanges, key=lambda it: (it.vote, it.task, it.prompt, it.judge or ""))
        record = replace(record, exchanges=tuple(exchanges))
    return _shown(record, redact)


def bare_record(scoring: Scoring) -> Record:
    """Return the record of a scoring without its exchanges, its texts as they are."""
    outcome = scoring.outcome
    is_scored, check = isinstance(outcome, MetricResult), scoring.comparison
    result = outcome if isinstance(outcome, MetricResult) else MetricResult(0.0, metric="", reason=str(outcome))
    return Record(
        metric=scoring.metric,
        score=result.value if is_scored else None,
        outcome="unscored" if not is_scored else "measured" if check is None else "passed" if check.held else "failed",
        threshold=None if check is None else Threshold(operator=check.operator, bound=check.bound),
        better=scoring.better,
        usage=scoring.usage,
        sample=scoring.sample,
        exchanges=(),
        scale=known_scale(result.scale),
        used=scoring.part or result.used,
        rule=scoring.rule,
        **{name: getattr(result, name) for name in _SHARED},
    )


def known_scale(scale: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return a scale with two ends, ``None`` for another one: JSON has no infinity."""
    with suppress(TypeError):
        return scale if scale is not None and -math.inf < scale[0] < scale[1] < math.inf else None
    return None


def redacted(document: Document, redact: Callable[[str], str]) -> Document:
    """Return a document with the texts of its records as :func:`record_of` would have redacted them."""
    shown = ((test, tuple(_shown(it, redact) for it in test.records)) for test in document.tests)
    return replace(document, tests=tuple(replace(test, records=it, calibration=()) for test, it in shown))


def _shown(record: Record, redact: Callable[[str], str] | None) -> Record:
    text = _safe if redact is None else lambda text: _safe(redact(encodable(text)))
    plain: Record = _plain(record, text)
    response = plain.sample.response or ""
    verdicts = tuple(
        it if it.start is None or response[it.start : it.end] == it.text else replace(it, start=None, end=None)
        for it in plain.verdicts
    )
    return plain if verdicts == plain.verdicts else replace(plain, verdicts=verdicts)


# The texts of a sample are in the records of all its metrics.
@lru_cache(maxsize=256)
def _safe(text: str) -> str:
    return masked(encodable(text))


def _plain(value: Any, text: Callable[[str], str]) -> Any:
    """Return an equal value of the same type, of exact JSON builtins, its texts passed through ``text``."""
    changed: Any
    kind: Any = type(value)
    if kind in _PLAIN or (kind is float and math.isfinite(value)):
        return value
    if kind is str:
        changed = text(value)
        changed = value if changed == value else changed
    elif names := _fields_of(kind):
        changes = {}
        for name in names:
            part = getattr(value, name)
            kind_of_part = type(part)
            # Most parts of a record are plain already, and this check is faster than a call.
            if kind_of_part in _PLAIN or (kind_of_part in (tuple, dict) and not part):
                continue
            shown = encodable if name in _LABELS else text
            plain = shown(part) if kind_of_part is str else _plain(part, shown)
            # The cache may return the equal text of another record.
            if plain is not part and not (kind_of_part is str and plain == part):
                changes[name] = plain
        changed = replace(value, **changes) if changes else value
    elif isinstance(value, (list, tuple)):
        changed = tuple([_plain(item, text) for item in value])
        if kind is tuple and all(map(operator.is_, changed, value)):
            changed = value
    else:
        changed = dump(value, text=text)
    return changed


@cache
def _fields_of(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def render_json(document: Document) -> str:
    """Return the document as JSON text, one test a line, so that a change of one test is a change of one line.

    The text is ASCII, and fits the schema that :func:`document_schema` returns.
    """
    run = json.dumps(dump(document.run), allow_nan=False)
    rows = ",\n".join(json.dumps(dump(test), allow_nan=False) for test in document.tests)
    tests = f"[\n{rows}\n]" if rows else "[]"
    return f'{{"version": {document.version},\n"run": {run},\n"tests": {tests}}}\n'


def document_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:pytest-ragmetrics:document:{VERSION}",
        **schema(Document),
    }


def read_document(file: Path) -> Document:
    """Return the document in a file that ``--rag-json`` wrote.

    Raises :class:`DocumentError` naming the file, and the place in it that is wrong. Fields that this version does not
    know are read over.
    """
    try:
        data = read_json(file)
    except OSError as error:
        raise DocumentError(error.strerror or str(error), file=file) from error
    except ValueError as error:
        raise DocumentError(f"not JSON: {error}; give a file that --rag-json wrote", file=file) from error
    version = data.get("version") if isinstance(data, dict) else None
    if type(version) is not int:
        raise DocumentError("not the result of a run: it has no version; give a file that --rag-json wrote", file=file)
    if version != VERSION:
        msg = f"it is of version {version}, and this release reads version {VERSION}: write it anew with --rag-json"
        raise DocumentError(msg, file=file)
    try:
        document = load(Document, data)
    except CodecError as error:
        raise DocumentError(f"{error}; give a file that --rag-json wrote", file=file) from error
    # Earlier releases wrote only the comparisons that were made.
    return replace(document, tests=held_to_bounds(document.tests))
