"""Whether metrics notice planted faults: mutants of right answers are scored, and those that pass are named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets.reading import read_dataset
from pytest_ragmetrics.datasets.rows import Columns, DatasetRow
from pytest_ragmetrics.evaluation.dry_run import Forecast
from pytest_ragmetrics.evaluation.evaluate import evaluated
from pytest_ragmetrics.evaluation.mutants import MUTANT_KINDS, Mutant, mutants_of
from pytest_ragmetrics.evaluation.runner import BoundedMetric
from pytest_ragmetrics.evaluation.session import OwnSession
from pytest_ragmetrics.runs.records import DocumentError, MutantRecord, Record, read_document
from pytest_ragmetrics.runs.wording.figures import and_more, counted, readable, text_table
from pytest_ragmetrics.text.unicode import shortened

T = TypeVar("T")

VERSION = 1
#: Metrics that notice a kind of fault.
NOTICED_BY: Mapping[str, Sequence[str]] = {
    "number": ("numbers_aligned", "faithfulness"),
    "date": ("numbers_aligned", "faithfulness"),
    "unit": ("faithfulness",),
    "name": ("names_aligned", "faithfulness"),
    "negation": ("faithfulness",),
    "citation": ("citation_validity",),
    "quotation": ("quoted_spans_alignment", "faithfulness"),
    "sentence": ("faithfulness",),
    "half": ("answer_correctness", "factual_correctness"),
    "passages": ("lexical_grounding", "faithfulness"),
    "injection": ("faithfulness",),
    "refusal": ("refusal_correctness", "answer_relevancy"),
    "truncated": ("coherence", "answer_correctness"),
}
# Survivors of a kind that are printed, the characters of what was changed, the words on each side of it, and the
# characters of names in the head of the table.
_SHOWN, _CHANGED, _BESIDE, _WIDEST_HEAD = 3, 60, 4, 24
_WIDEST = 200
# Scores that differ by less are the same.
_ROUNDING = 1e-9
_HEAD = ("kind", "made")
_ANY, _ALL = "any", "all"
_STRICTER = "a higher bound, or a stronger judge"


def killed(metric: BoundedMetric, original: MetricResult | None, mutant: MetricResult | None) -> bool | None:
    """Tell whether a mutant fails: below the bound of a metric, or without one worse than the original.

    ``None`` where this says nothing: one of them has no score, or the original fails too, or has the worst score.
    """
    if original is None or mutant is None:
        return None
    held, holds = metric.check(original), metric.check(mutant)
    if held is not None and holds is not None:
        return not holds.held if held.held else None
    is_higher = metric.metric.better == "higher"
    worst = metric.metric.scale[not is_higher]
    fall = original.value - mutant.value if is_higher else mutant.value - original.value
    return None if original.value == worst else fall > _ROUNDING


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged(MutantRecord):
    """A mutant of a sample; ``change`` is what a document says of it besides."""

    change: Mapping[str, Any] = field(default_factory=dict)


class MutationTable:
    """The mutants of ``rows`` samples; ``share`` is that of the killed, which ``judges``, metrics or tests, noticed."""

    def __init__(
        self, judged: Sequence[MutantRecord], *, judges: Sequence[str], kinds: Sequence[str], rows: int, seed: int | str
    ) -> None:
        self.judged, self.judges, self.kinds, self.rows, self.seed = judged, judges, kinds, rows, seed
        self._of_kind = {kind: [each for each in judged if each.kind == kind] for kind in kinds}
        self._columns = [*judges, _ANY]
        short = {name: name.rpartition("::")[2] for name in self._columns}
        taken = Counter(short.values())
        #: What judges are called, tests without their module where that is unique.
        self.names = {name: it if taken[it] == 1 else name for name, it in short.items()}
        self.survivors = [each for each in judged if each.killed is False]
        found, of = self._count(judged, _ANY)
        self.share = found / of if of else None

    @staticmethod
    def _count(judged: Iterable[MutantRecord], judge: str) -> tuple[int, int]:
        """Return how many a metric or test, or any, killed, and of how many."""
        verdicts = [each.killed if judge == _ANY else each.verdicts.get(judge) for each in judged]
        return verdicts.count(True), len(verdicts) - verdicts.count(None)

    def counts(self) -> dict[str, dict[str, tuple[int, int]]]:
        """Return by kind and judge, the last of which is "any", how many mutants were killed, and of how many."""
        return {kind: {name: self._count(of, name) for name in self._columns} for kind, of in self._of_kind.items()}

    def lines(self) -> Iterator[str]:
        """Yield the table, and the survivors with what would notice them."""
        rows = [
            (kind, str(len(of)), *(_cell(self._count(of, name)) for name in self._columns))
            for kind, of in (*self._of_kind.items(), (_ALL, self.judged))
        ]
        heads = [shortened(it, _WIDEST_HEAD) for it in self.names.values()]
        what = f"{counted(self.rows, 'row')}, {counted(len(self.judged), 'mutant')}"
        yield f"{what}; how many were noticed, of how many with a verdict:"
        yield from (line.rstrip() for line in text_table([(*_HEAD, *heads), *rows]))
        if self.survivors:
            yield from ("", f"not noticed ({len(self.survivors)}):")
        for kind in self.kinds:
            of_kind = [each.text for each in self.survivors if each.kind == kind]
            if of_kind:
                yield f"  {kind}; what would notice: {self.advice(kind)}"
                yield from (f"    {text}" for text in of_kind[:_SHOWN])
                yield from and_more(len(of_kind), shown=_SHOWN, indent="    ")

    def advice(self, kind: str) -> str:
        """Return which metrics, or bounds for those measured, would notice the survivors of a kind."""
        alive = [it.measured for it in self.survivors if it.kind == kind]
        held = {name: [it.get(name) for it in alive] for name in NOTICED_BY.get(kind, ())}
        lacking = {name: name if None in bounds else f"a bound for {name}" for name, bounds in held.items()}
        return ", or ".join(lacking[name] for name in held if not all(held[name])) or _STRICTER

    def to_document(self) -> dict[str, Any]:
        """Return everything as JSON builtins."""
        return {
            "version": VERSION,
            "rows": self.rows,
            "seed": self.seed,
            "share": self.share,
            "kinds": {
                kind: {name: {"killed": found, "judged": of} for name, (found, of) in row.items()}
                for kind, row in self.counts().items()
            },
            "mutants": [
                {
                    **(each.change if isinstance(each, Judged) else {}),
                    "kind": each.kind,
                    "killed": each.killed,
                    "verdicts": dict(each.verdicts),
                }
                for each in self.judged
            ],
        }


def _cell(pair: Sequence[int]) -> str:
    return f"{pair[0]}/{pair[1]}" if pair[1] else "-"


def describe(mutant: Mutant) -> str:
    """Return in a line what was changed where.

    >>> sample = Sample(id="q7", response="It holds 20 litres.")
    >>> describe(Mutant(kind="number", original=sample, sample=sample, start=9, before="20", after="70"))
    'q7 at 9: It holds [20 -> 70] litres.'
    """
    row = readable(mutant.original.id or mutant.original.user_input or "a row", _CHANGED)
    if not (mutant.before or mutant.after):
        return f"{row}: the passages became those of another row"
    text, end = mutant.original.response or "", mutant.start + len(mutant.before)
    left, right = re.split(r"\s+", text[: mutant.start])[-_BESIDE - 1 :], re.split(r"\s+", text[end:])[: _BESIDE + 1]
    before, after = (readable(part.strip(), _CHANGED) for part in (mutant.before, mutant.after))
    change = f"{before} -> {after}" if before and after else f"added: {after}" if after else f"removed: {before}"
    part = mutant.after if after else mutant.before
    # The spaces on each side stay outside the brackets.
    ahead, _, behind = part.partition(part.strip())
    words = f"{' '.join(left)}{ahead}[{change}]{behind}{' '.join(right)}"
    return f"{row} at {mutant.start}: {readable(words, _WIDEST).strip()}"


def answers_in(file: Path, columns: Columns) -> list[Sample]:
    """Return the rows of a file, relative to the current folder, or the answers that a run recorded with --rag-json.

    Left out are rows without a response and conversations. Raises ``DatasetError``.
    """
    samples = [row.sample for row in _read(file, columns) if row.sample is not None]
    texts = {(it.id, it.user_input, it.response): it for it in samples if (it.response or "").strip()}
    return [sample for sample in texts.values() if "messages" not in sample.metadata]


def _read(file: Path, columns: Columns) -> Sequence[DatasetRow | Record]:
    if file.suffix == ".json":
        with suppress(DocumentError):
            return [record for test in read_document(file).tests for record in test.records]
    return read_dataset(file, base=Path.cwd(), columns=columns)


def drawn(rows: Sequence[T], most: int, seed: int | str) -> list[T]:
    """Return at most so many rows, drawn by a seed, in their order."""
    places = Random(seed).sample(range(len(rows)), min(most, len(rows)))  # noqa: S311 - no secret
    return [rows[at] for at in sorted(places)]


def probe_answers(
    samples: Sequence[Sample],
    metrics: Sequence[BoundedMetric],
    *,
    kinds: Sequence[str] = MUTANT_KINDS,
    seed: int = 0,
    cache_dir: Path | None = None,
    concurrency: int = 32,
    forecast: Forecast | None = None,
    **options: Any,
) -> MutationTable:
    """Score right answers and their mutants, and return which were killed; ``options`` are those of the engine.

    Raises as :func:`~pytest_ragmetrics.evaluation.evaluate.evaluate`. With a ``forecast`` no request is made, and the
    verdicts say nothing.
    """
    made = [
        mutant
        for sample in samples
        for mutant in mutants_of(sample, kinds, others=[it for it in samples if it is not sample], seed=seed)
    ]
    rows = [DatasetRow(sample=it, id=it.id or "") for it in (*samples, *(mutant.sample for mutant in made))]
    with OwnSession(cache_dir, concurrency, forecast=forecast, **options) as session:
        table = loop.run(evaluated(rows, metrics, session, votes=None, progress=True, vacuous="count"))
    right = {id(sample): row.results for sample, row in zip(samples, table.rows, strict=False)}
    named = {it.metric.name: it for it in metrics}
    judged = [
        Judged(
            kind=mutant.kind,
            text=describe(mutant),
            verdicts={
                name: killed(it, right[id(mutant.original)].get(name), row.results.get(name))
                for name, it in named.items()
            },
            change={"row": mutant.original.id, "start": mutant.start, "before": mutant.before, "after": mutant.after},
            # Without a bound a mutant that scores worse is noticed already.
            measured=dict.fromkeys(named, True),
        )
        for mutant, row in zip(made, table.rows[len(samples) :], strict=True)
    ]
    return MutationTable(judged, judges=[*named], kinds=kinds, rows=len(samples), seed=seed)
