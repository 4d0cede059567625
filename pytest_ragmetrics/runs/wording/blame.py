"""Which parts of an application made scores worse, in words: over a run, and of one score."""

from __future__ import annotations

from collections import Counter

from pytest_ragmetrics.runs.blame import PARTS, Blame
from pytest_ragmetrics.runs.compare import RunComparison
from pytest_ragmetrics.runs.records import Record, Threshold, is_met
from pytest_ragmetrics.runs.wording.figures import counted, format_apart
from pytest_ragmetrics.text.unicode import printable

_CELLS = (
    "old answer, old passages",
    "old answer, new passages",
    "new answer, old passages",
    "new answer, new passages",
)


def fallen(comparison: RunComparison) -> list[tuple[str, Record, Record]]:
    """Return test, old and new record of scores that are worse, with a threshold on its bad side for the first time.

    Figures with a unit are measured, and no answer or passage is to blame for them.
    """
    pairs = [
        (it.id, it.old.record, it.new.record)
        for it in comparison.of("worse")
        if it.old and it.new and not it.new.record.unit
    ]
    return [(test, old, now) for test, old, now in pairs if now.threshold is None or _fell(old, now, now.threshold)]


def _fell(old: Record, now: Record, bound: Threshold) -> bool:
    return [it.score is not None and is_met(it.score, bound) for it in (old, now)] == [True, False]


def blame_lines(comparison: RunComparison) -> list[str]:
    """Return how many scores that became worse each part made so; nothing where nobody asked."""
    worse = [now.blame for _, _, now in fallen(comparison)]
    found = [blame for blame in worse if blame is not None]
    if not found:
        return []
    parts = Counter(blame.part for blame in found)
    text = f"{len(found):,} worse: {', '.join(f'{parts[part]:,} {part}' for part in PARTS if parts[part])}"
    if refusing := sum(blame.should_refuse for blame in found):
        text += f" ({refusing:,} of {parts['retriever']:,} the answer should have refused)"
    left = counted(len(worse) - len(found), "more score")
    reasons = Counter(blame.reason for blame in found if blame.part == "unknown")
    return [
        text,
        *(f"  unknown, {number:,}: {printable(reason)}" for reason, number in reasons.most_common(3)),
        *([f"  {left} became worse and were not looked at (--rag-blame-rows, or an interrupt)"] * (found != worse)),
    ]


def blame_text(blame: Blame) -> str:
    """Return which part made a score worse, and the scores that say so.

    >>> blame_text(Blame(part="retriever", cells=(1.0, 0.0, 1.0, 0.0), again=(0.0,)))
    'retriever: old answer, old passages 1.00; old answer, new passages 0.00; new answer, old passages 1.00; \
new answer, new passages 0.00, judged again 0.00'
    >>> blame_text(Blame(part="chance"))
    'chance: the regression gate of the set shows no drop'
    """
    pairs = zip(_CELLS, blame.cells, strict=False)
    parts = [f"{name} {score:.2f}" for name, score in pairs if score is not None]
    if parts and blame.again:
        parts[-1] += f", judged again {' and '.join(f'{score:.2f}' for score in blame.again)}"
    if blame.recalls:
        before, after = format_apart(blame.recalls[0], blame.recalls[1])
        parts.append(f"of the reference the old passages have {before}, the new ones {after}")
    parts += ["the answer should have refused"] if blame.should_refuse else []
    parts += ["the regression gate of the set shows no drop"] if blame.part == "chance" else []
    return f"{blame.part}: {'; '.join(filter(None, [blame.reason, *parts]))}".removesuffix(": ")
