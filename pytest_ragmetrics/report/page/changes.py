"""What became better and what worse since the baseline, for the first screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_ragmetrics.comparison import Kind, RunComparison, TestChange
from pytest_ragmetrics.explain.phrases import counted, score_text
from pytest_ragmetrics.explain.runs import change_text
from pytest_ragmetrics.report.page.entries import TestView

#: What the counts are called, in the order in which they are told, and what the script filters the tests by.
_COUNTS: tuple[tuple[Kind, str, str | None], ...] = (
    ("unscored", "lost their score", "lost"),
    ("worse", "worse", "worse"),
    ("better", "better", "better"),
    ("scored again", "scored again", "scored again"),
    ("same", "the same", "same"),
    ("new", "new", "new"),
    ("gone", "gone", None),
)
_WORST = 8
_BEST = 4
_GONE = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeCount:
    """How many scores changed in one way; ``mark`` is what their tests are marked with in the list."""

    number: int
    label: str
    kind: str
    mark: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeLine:
    """One score then and now; ``anchor`` is its test in the list."""

    anchor: str
    name: str
    metric: str
    before: str
    after: str
    told: str
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangesView:
    """The comparison with the baseline; the worst and the best lines, and ``more`` between them."""

    counts: tuple[ChangeCount, ...]
    lines: tuple[ChangeLine, ...]
    more: int
    gone: tuple[tuple[str, str], ...]
    gone_more: int
    not_compared: tuple[str, ...]


def lay_out_changes(comparison: RunComparison, entries: Sequence[TestView]) -> ChangesView:
    """Return the comparison for a page on which these entries stand."""
    anchors = {(change.id, change.number): entry.anchor for entry in entries for change in entry.changes}
    worse, better = comparison.of("unscored", "worse"), comparison.of("better", "scored again")[::-1]
    gone = comparison.of("gone")
    return ChangesView(
        counts=tuple(_counts(comparison.counts)),
        lines=tuple(_line(change, anchors) for change in (*worse[:_WORST], *better[:_BEST])),
        more=len(worse[_WORST:]) + len(better[_BEST:]),
        gone=tuple((change.id, change.metric) for change in gone[:_GONE]),
        gone_more=len(gone[_GONE:]),
        not_compared=tuple(
            f"{counted(pair.pairs, 'score')} of {pair.metric} not compared: "
            f"judged by {pair.judge or 'no judge'} now, "
            f"by {pair.baseline_judge or 'no judge'} in the baseline"
            for pair in comparison.incomparable
        ),
    )


def _counts(counts: Mapping[Kind, int]) -> Iterator[ChangeCount]:
    for kind, label, mark in _COUNTS:
        if counts[kind]:
            told = label if counts[kind] > 1 else label.replace("lost their", "lost its")
            yield ChangeCount(number=counts[kind], label=told, kind=kind.replace(" ", "-"), mark=mark)


def _line(change: TestChange, anchors: Mapping[tuple[str, int], str]) -> ChangeLine:
    before, after = ("unscored" if score is None else score_text(score) for score in (change.before, change.after))
    told, kind = change_text(change)
    gain = None if change.change is None else f"{score_text(abs(change.change))} {change.kind}"
    return ChangeLine(
        anchor=anchors[change.id, change.number],
        name=change.id,
        metric=change.metric,
        before=before,
        after=after,
        told=gain or {"unscored": "lost its score"}.get(kind, told if kind != "scored again" else kind),
        kind=kind.replace(" ", "-"),
    )
