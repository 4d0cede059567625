"""Several votes on one question: each as a dot on a line, and all of them in words."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ragmetrics.explain.phrases import counted, score_text
from pytest_ragmetrics.records import Record, holds
from pytest_ragmetrics.report.page.elements import Element, element
from pytest_ragmetrics.report.page.scale import Scale

_WIDTH = 120.0
_MIDDLE = 8.0
_RADIUS = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Votes:
    """The votes of a record in the order they were cast; a dot is its place on the line and whether it fell short.

    ``bound`` is the place of the threshold.
    """

    dots: tuple[tuple[float, bool], ...]
    bound: float | None
    text: str


def count_votes(record: Record) -> Votes | None:
    """Return the votes of a record, or nothing where there were not several."""
    votes, threshold = record.samples, record.threshold
    if len(votes) <= 1:
        return None
    bound = threshold.bound if threshold else None
    scale = Scale.around(votes if bound is None else [*votes, bound])

    def place(value: float) -> float:
        return round(scale.place(value, _WIDTH), 2)

    short = [threshold is not None and not holds(vote, threshold) for vote in votes]
    told = f"; {sum(short)} of {len(votes)} fell short" if threshold else ""
    return Votes(
        dots=tuple((place(vote), is_short) for vote, is_short in zip(votes, short, strict=True)),
        bound=None if bound is None else place(bound),
        text=f"{counted(len(votes), 'vote')}: {', '.join(score_text(vote, bound) for vote in votes)}{told}",
    )


def votes_view(votes: Votes) -> Element:
    """Return the votes as dots, in words for who does not see them, and the words beside them."""
    line = element("path.axis", {"d": f"M0 {_MIDDLE}H{_WIDTH}"})
    bound = votes.bound is not None and element("path.threshold", {"d": f"M{votes.bound} 0V{2 * _MIDDLE}"})
    dots = (
        element("circle.short" if short else "circle.held", {"cx": x, "cy": _MIDDLE, "r": _RADIUS})
        for x, short in votes.dots
    )
    box = f"-{_RADIUS + 1} 0 {_WIDTH + 2 * _RADIUS + 2} {2 * _MIDDLE}"
    picture = element("svg.dots", {"viewBox": box, "role": "img", "aria-label": votes.text}, line, bound or None, dots)
    return element("div.votes", None, picture, element("span", {"aria-hidden": "true"}, votes.text))
