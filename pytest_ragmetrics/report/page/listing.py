"""The list of tests in the two forms in which it stands on the page.

For scripts: an index of all rows, and the bodies in chunks that are unpacked when a test of them is opened. For
readers without scripts: the worst tests in full as far as they fit, and the rest in a line each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_ragmetrics.report.page.elements import Element, dumped, element, pack
from pytest_ragmetrics.report.page.entries import TestView
from pytest_ragmetrics.report.page.entry_view import body_view, row_view
from pytest_ragmetrics.report.page.visible import visible

#: How much is unpacked at once, in characters: enough to compress well, little enough not to be noticed.
_CHUNK = 250_000
#: How much of what is readable without scripts is there in full, in characters.
_READABLE = 2_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """The packed index and the packed chunks of bodies; for reading without scripts ``full`` and ``brief`` tests."""

    index: str
    chunks: tuple[str, ...]
    full: tuple[Element, ...]
    brief: tuple[TestView, ...]


def list_tests(entries: Sequence[TestView]) -> Listing:
    """Return the list of these entries, in their order."""
    rows: list[str] = []
    chunks: list[list[str]] = []
    full: list[Element] = []
    brief: list[TestView] = []
    room, rest = 0, _READABLE
    for entry in entries:
        body = body_view(entry)
        text = dumped(body)
        if len(text) > room:
            chunks.append([])
            room = _CHUNK
        room -= len(text)
        chunks[-1].append(text)
        rows.append(dumped(_indexed(entry, (len(chunks) - 1, len(chunks[-1]) - 1))))
        # What follows the first that does not fit is brief, so that all of it stands in one order.
        if brief or len(text) > rest:
            brief.append(entry)
        else:
            rest -= len(text)
            full.append(_readable(entry, body))
    return Listing(index=_packed(rows), chunks=tuple(map(_packed, chunks)), full=tuple(full), brief=tuple(brief))


def _packed(items: Sequence[str]) -> str:
    return pack(f"[{','.join(items)}]")


def _readable(entry: TestView, body: Element) -> Element:
    row = element("summary.row", None, row_view(entry))
    return element(f"details.test.{entry.status}", {"id": entry.anchor}, row, body)


def _indexed(entry: TestView, place: tuple[int, int]) -> dict[str, object]:
    """Return what the script filters, sorts and shows a row by; ``body`` is where the rest of it is packed."""
    return {
        "id": entry.anchor,
        "name": visible(entry.name),
        "file": visible(entry.file),
        "status": entry.status,
        "marks": [*entry.flags, *_changed(entry)],
        "duration": entry.duration,
        "cost": entry.cost,
        "tokens": entry.tokens,
        "scores": [(visible(chip.metric), chip.value, chip.outcome) for chip in entry.chips],
        "change": min((change.change for change in entry.changes if change.change is not None), default=None),
        "row": tuple(row_view(entry)),
        "body": place,
    }


def _changed(entry: TestView) -> Iterator[str]:
    """Yield the kinds of its changes against the baseline; what lost its score is no plain "unscored"."""
    for kind in sorted({change.kind for change in entry.changes}):
        yield "lost" if kind == "unscored" else kind
