"""Whether scores dropped from one run to the next: a one-sided test of the pairs, for one metric and for several."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pytest_ragmetrics.core.tested import DropTest, GroupDrop, Tested
from pytest_ragmetrics.stats.intervals import Clusters, check_confidence
from pytest_ragmetrics.stats.permutation import PairedScores, drop_test
from pytest_ragmetrics.stats.power import smallest_drop
from pytest_ragmetrics.stats.scores import ROUNDING

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound="Tested")


@dataclass(frozen=True, kw_only=True, slots=True)
class Drop(Tested):
    """What the ``n`` pairs of one metric show of a drop."""

    n: int
    p: float
    adjusted_p: float
    least: float


def drop_of(rows: Sequence[PairedScores], *, clusters: Clusters = None, alpha: float = 0.05, span: float = 1.0) -> Drop:
    """Return what rows show by themselves, in scores of which the higher ones are better.

    ``span`` is the largest change there can be. Raises ``ValueError`` without a row, or for an ``alpha`` that is not
    between 0 and 1.

    >>> lost, same = PairedScores((1.0,), (0.0,)), PairedScores((1.0,), (1.0,))
    >>> found = together({"a": drop_of([lost] * 8 + [same] * 42), "b": drop_of([same] * 50)})
    >>> found["a"].shown, found["b"].shown, found["b"].smallest
    (True, False, 0.16)
    """
    check_confidence(alpha, name="alpha", example=0.05)
    if not rows:
        raise ValueError("no pairs, and a comparison needs at least one")
    test, changes = drop_test(rows, clusters=clusters), [row.change for row in rows]
    return Drop(
        n=len(rows),
        changed=test.changed,
        p=test.p,
        least=test.least,
        adjusted_p=test.p,
        alpha=alpha,
        smallest=smallest_drop(rows, alpha=alpha, clusters=clusters, span=span),
        worse=sum(change < -ROUNDING for change in changes),
        better=sum(change > ROUNDING for change in changes),
    )


def together(found: Mapping[K, T], *, gates: bool = False) -> dict[K, T]:
    """Return several comparisons, with p-values adjusted for all tests that decide on any of them.

    The probability that any of those without a drop is called one is at most the largest ``alpha`` of them. One that
    decides nothing, because of its doubts, raises no false alarm: only that its rows fell silent is tested. Those
    without a ``least`` stay as they are. With ``gates`` they are those of a run.
    """
    known = {name: it for name, it in found.items() if it.least is not None}
    tests = {(name, kind): test for name, it in known.items() for kind, test in _tests(it)}
    adjusted = adjusted_p(
        {name: test.p for name, test in tests.items()},
        {name: test.least for name, test in tests.items()},
        alpha=max((it.alpha for it in known.values()), default=0.05),
    )
    count = len({name for name, _ in tests}) if gates else 0

    def decided(name: K, it: T) -> T:
        silence = it.silence if adjusted.get((name, "silence"), 1.0) <= it.alpha else ""
        groups = _adjusted_groups(it, adjusted.get((name, "groups"), 1.0))
        return replace(it, adjusted_p=adjusted.get((name, "drop"), 1.0), silence=silence, gates=count, by_group=groups)

    return {name: decided(name, it) if name in known else it for name, it in found.items()}


def _tests(found: Tested) -> Iterator[tuple[str, DropTest]]:
    """Yield the tests that decide on a comparison, by name."""
    if found.p is not None and found.least is not None and not found.doubts:
        yield "drop", DropTest(p=found.p, least=found.least, changed=0)
    if found.silenced is not None:
        yield "silence", found.silenced
    if found.by_group and not found.doubts:
        size = len(_testable({it.name: it.least for it in found.by_group}, found.alpha / 2))
        least = size * min(it.least for it in found.by_group) if size else 1.0
        yield "groups", DropTest(p=min(_groups_p(found).values()), least=min(1.0, least), changed=0)


def _groups_p(found: Tested) -> dict[str, float]:
    """Return the p-values of groups, adjusted for all of them.

    Half of ``alpha`` is the most that is left for them. Which of them could be red at it does not depend on how their
    rows changed, so that it is right at any smaller share.
    """
    p, least = {it.name: it.p for it in found.by_group}, {it.name: it.least for it in found.by_group}
    return adjusted_p(p, least, alpha=found.alpha / 2)


def _adjusted_groups(found: Tested, adjusted: float) -> tuple[GroupDrop, ...]:
    """Return groups with their p-values adjusted for all tests, where that of the surest group is ``adjusted``."""
    p = _groups_p(found)
    times = adjusted / min(p.values(), default=1.0)
    return tuple(replace(group, adjusted_p=min(1.0, times * p[group.name])) for group in found.by_group)


def adjusted_p(p: Mapping[K, float], least: Mapping[K, float], *, alpha: float = 0.05) -> dict[K, float]:
    """Return the p-values of several tests so that a false alarm in any of them has the probability ``alpha``.

    By :func:`holm` over the tests that could raise an alarm at all: ``least`` is the smallest p that the rows of
    each could give, whatever their order (Tarone 1990). The others get 1.
    """
    return {**dict.fromkeys(p, 1.0), **holm({name: p[name] for name in _testable(least, alpha)})}


def _testable(least: Mapping[K, float], alpha: float) -> list[K]:
    """Return the tests that could raise an alarm, with the error shared by as many."""
    family: list[K] = []
    for size in range(1, len(least) + 1):
        family = [name for name, each in least.items() if each <= alpha / size]
        if len(family) <= size:
            break
    return family


def holm(p: Mapping[K, float]) -> dict[K, float]:
    """Return p-values adjusted for all of them together (Holm 1979)."""
    adjusted, largest = {}, 0.0
    for rank, name in enumerate(sorted(p, key=lambda name: p[name])):
        largest = max(largest, min(1.0, (len(p) - rank) * p[name]))
        adjusted[name] = largest
    return adjusted
