"""Texts from outside as elements: the very long ones folded, the marks in them linked to where they lead."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from pytest_ragmetrics.report.page.elements import Element, Node, element, foreign
from pytest_ragmetrics.report.page.segments import Highlight, MarkKind, Segment, cut, fold

_SIGNS: Mapping[MarkKind, str] = {"missing": "✗", "found": "✓", "against": "✗", "evidence": "✓", "nearest": "≈"}
_MEANS: Mapping[MarkKind, str] = {
    "missing": "not found",
    "found": "found",
    "against": "counts against it",
    "evidence": "evidence",
    "nearest": "nearest passage",
}


def plain(text: str, head: int = 2000) -> Iterator[Node]:
    """Yield a text without marks; of a very long one all but the first ``head`` characters is folded."""
    for segment in fold(cut(text), head=head):
        yield _folded(segment) if segment.folded else foreign(segment.text)


def block(name: str, text: str) -> Element:
    """Return a block of text that finds its own direction, or says that it is empty."""
    return element(name, {"dir": "auto"}, plain(text) if text else element("span.none", None, "(empty)"))


def marked(
    segments: Sequence[Segment], prefix: str, *, back: Container[int] = (), goals: Mapping[int, str | None]
) -> Iterator[Node]:
    """Yield a text with its marks.

    The number of a mark leads to its verdict, or into the response if it is in ``back``; its text leads to its goal.
    """
    for segment in segments:
        if segment.folded:
            yield _folded(segment)
        elif segment.mark is None:
            yield foreign(segment.text)
        else:
            yield from _piece(segment, segment.mark, prefix, back, goals.get(segment.mark.number))


def _folded(segment: Segment) -> Element:
    text: Node = foreign(segment.text)
    if segment.mark:
        text = element(f"mark.{segment.mark.kind}", None, text)
    summary = element("summary", {"dir": "ltr"}, f"{len(segment.text):,} more characters")
    return element("details.fold", None, summary, text)


def _piece(segment: Segment, mark: Highlight, prefix: str, back: Container[int], goal: str | None) -> Iterator[Node]:
    for opening in segment.opens:
        yield _number(opening, prefix, "m" if opening.number in back else "v")
    numbers = " ".join(str(each.number) for each in segment.marks)
    text: Node = foreign(segment.text)
    if goal:
        text = element("a", {"href": f"#{prefix}{goal}", "tabindex": -1}, text)
    yield element(f"mark.{mark.kind}", {"data-n": numbers}, text)
    for closing in segment.closes:
        yield element("bdi.sr", None, f" (end of {closing.number}) ")


def _number(mark: Highlight, prefix: str, goal: str) -> Element:
    link = element(
        "a",
        {
            "id": f"{prefix}{mark.anchor}",
            "href": f"#{prefix}{goal}{mark.number}",
            "data-n": mark.number,
            "aria-label": f"{mark.number}, {_MEANS[mark.kind]}",
        },
        f"{mark.number} {_SIGNS[mark.kind]}",
    )
    return element(f"bdi.n.{mark.kind}", None, link)
