"""What a test of a drop found: values that records hold, apart from the statistics, which a single score needs not."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ragmetrics.core.result import Decision


@dataclass(frozen=True, kw_only=True, slots=True)
class DropTest:
    """The one-sided ``p`` of a drop, the ``least`` p that such scores could give, and how many rows have several.

    Rows in a cluster count once in ``changed``.
    """

    p: float
    least: float
    changed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupDrop:
    """What the ``n`` pairs of one group show of a drop, as a :class:`Tested` says it of all."""

    name: str
    n: int
    worse: int
    better: int
    p: float
    least: float
    adjusted_p: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Tested:
    """Whether a metric dropped, as far as its pairs can tell: of ``changed`` rows (clusters); ``None`` without pairs.

    ``worse`` and ``better`` count rows.
    ``p`` is the one-sided p-value, ``least`` the smallest that such rows can give (unknown in files of early versions),
    ``adjusted_p`` that of several comparisons together; a drop is ``shown`` where it is at most ``alpha``. ``smallest``
    is the smallest drop that such pairs show in at least 80 % of runs, ``None`` where there is none. ``silence`` says
    how many rows have nothing to check any more, where that is as unlikely by its own test, ``silenced``. ``doubts``
    say why the pairs decide nothing, and ``gates`` is how many gates were tested together, 0 for the metrics of a
    table. ``by_group`` are the groups that are tested beside the whole.
    """

    alpha: float
    changed: int = 0
    p: float | None = None
    adjusted_p: float | None = None
    smallest: float | None = None
    worse: int = 0
    better: int = 0
    silence: str = ""
    doubts: tuple[str, ...] = ()
    least: float | None = None
    silenced: DropTest | None = None
    gates: int = 0
    by_group: tuple[GroupDrop, ...] = ()

    @property
    def dropped(self) -> tuple[GroupDrop, ...]:
        """The groups whose scores dropped, the surest first."""
        found = (group for group in self.by_group if group.adjusted_p <= self.alpha)
        return tuple(sorted(found, key=lambda group: (group.adjusted_p, group.p)))

    @property
    def shown(self) -> bool:
        """Whether the scores dropped, of all rows or of a group, or fell silent."""
        is_drop = self.adjusted_p is not None and self.adjusted_p <= self.alpha
        return is_drop or bool(self.silence or self.dropped)

    @property
    def outcome(self) -> Decision:
        """What is decided: rows that fell silent cannot be compared, and are a drop."""
        if self.doubts and not self.silence:
            return "inconclusive"
        return "failed" if self.shown else "passed"
