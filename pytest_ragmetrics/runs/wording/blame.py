"""Which parts of an application made scores worse, in words: over a run, and of one score."""

from __future__ import annotations

from collections import Counter

from pytest_ragmetrics.runs.blame import PARTS, Blame
from pytest_ragmetrics.runs.compare import RunComparison, TestChange
from pytest_ragmetrics.runs.records import is_met
from pytest_ragmetrics.runs.wording.figures import counted, format_apart
from pytest_ragmetrics.text.unicode import printable

#: What no option is needed to say.
_CELLS = (
    "old answer, old passages",
    "old answer, new passages",
    "new answer, old passages",
    "new answer, new passages",
)


def became_worse(change: TestChange) -> bool:
    """Tell whether a score is worse than before, and with a threshold on the bad side of it for the first time."""
    if change.kind != "worse" or change.old is None or change.new is None:
        return False
    threshold, scores = change.new.record.threshold, (change.old.record.score, change.new.record.score)
    return threshold is None or [score is not None and is_met(score, threshold) for score in scores] == [True, False]


def blame_lines(comparison: RunComparison) -> list[str]:
    """Return how many scores that became worse each part made so; nothing where nobody asked."""
    worse = [it.new.record.blame for it in comparison.of("worse") if it.new is not None and became_worse(it)]
    found = [blame for blame in worse if blame is not None]
    if not found:
        return []
    parts = Counter(blame.part for blame in found)
    text = f"{len(found):,} worse: {', '.join(f'{parts[part]:,} {part}' for part in PARTS if parts[part])}"
    if refusing := sum(blame.should_refuse for blame in found):
        text += f" ({refusing:,} of {parts['retriever']:,} the answer should have refused)"
    left = len(worse) - len(found)
    reasons = Counter(blame.reason for blame in found if blame.part == "unknown")
    return [
        text,
        *(f"  unknown, {number:,}: {printable(reason)}" for reason, number in reasons.most_common(3)),
        *(
            [f"  {counted(left, 'more score')} became worse and were not looked at (--rag-blame-rows, or an interrupt)"]
            if left
            else []
        ),
    ]


def blame_text(blame: Blame) -> str:
    """Return which part made a score worse, and the scores that say so.

    >>> blame_text(Blame(part="retriever", cells=(1.0, 0.0, 1.0, 0.0), again=(0.0,)))
    'retriever: old answer, old passages 1.00; old answer, new passages 0.00; new answer, old passages 1.00; \
new answer, new passages 0.00, judged again 0.00'
    """
    pairs = zip(_CELLS, blame.cells, strict=False)
    parts = [f"{name} {score:.2f}" for name, score in pairs if score is not None]
    if parts and blame.again:
        parts[-1] += f", judged again {' and '.join(f'{score:.2f}' for score in blame.again)}"
    if blame.recalls:
        before, after = format_apart(blame.recalls[0], blame.recalls[1])
        parts.append(f"of the reference the old passages have {before}, the new ones {after}")
    parts += ["the answer should have refused"] if blame.should_refuse else []
    return f"{blame.part}: {'; '.join(filter(None, [blame.reason, *parts]))}".removesuffix(": ")
