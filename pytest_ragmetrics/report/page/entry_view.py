"""How a test stands in the list, and what is behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_ragmetrics.comparison import KINDS
from pytest_ragmetrics.explain.phrases import cost_text
from pytest_ragmetrics.explain.runs import WORDS, Status, change_text
from pytest_ragmetrics.report.page.elements import Element, Node, element, foreign
from pytest_ragmetrics.report.page.entries import Chip, TestView
from pytest_ragmetrics.report.page.exhibit_view import exhibit_view
from pytest_ragmetrics.report.page.gates import GateView
from pytest_ragmetrics.report.page.passages import plain

_SIGNS: Mapping[Status, str] = {
    "failed": "✗",
    "error": "!",
    "unscored": "?",
    "xpassed": "!",
    "xfailed": "✗",
    "passed": "✓",
    "skipped": "\u2013",
}
_CHIPS = 3
#: What matters most in a message stands at its end: only a monster is folded.
_MESSAGE_HEAD = 50_000


def row_view(entry: TestView) -> Iterator[Node]:
    """Yield the parts of a test's row in the list."""
    sign = element("span.icon", {"aria-hidden": "true"}, _SIGNS[entry.status])
    place = entry.file if entry.line is None else f"{entry.file}:{entry.line}"
    yield element("span.status", None, sign, f" {WORDS[entry.status]}")
    yield element(
        "h3.name",
        None,
        element("bdi", None, foreign(entry.name)),
        " ",
        element("small", None, element("bdi", None, foreign(place))),
        ((" ", element("span.label", None, flag)) for flag in entry.flags),
    )
    yield element("span.chips", None, _chips(entry))
    cost = element("span.cost", None, f" {cost_text(entry.cost)}") if entry.cost else None
    attempts = f", {entry.attempts} attempts" if entry.attempts > 1 else ""
    yield element("span.took", None, f"{entry.took}{attempts}", cost)
    if entry.why:
        yield element("span.why", {"dir": "auto"}, foreign(entry.why))


def _chips(entry: TestView) -> Iterator[Node]:
    for chip in entry.chips[:_CHIPS]:
        yield _chip(chip)
        yield " "
    if len(entry.chips) > _CHIPS:
        yield element("span.chip", None, f"and {len(entry.chips) - _CHIPS} more ")
    told = [change for change in entry.changes if change.kind not in ("same", "new")]
    if told:
        worst = min(told, key=lambda change: (KINDS.index(change.kind), change.change or 0.0))
        text, kind = change_text(worst)
        of = (element("bdi", None, foreign(worst.metric)), " ") if len(entry.chips) > 1 else ()
        yield element(f"span.change.{kind.replace(' ', '-')}", None, of, text)


def _chip(chip: Chip) -> Element:
    needs = chip.needs and (" ", element("small", None, f"needs {chip.needs}"))
    name = element("bdi", None, foreign(chip.metric))
    return element(f"span.chip.{chip.outcome}", None, name, " ", element("b", None, chip.score), needs or None)


def body_view(entry: TestView) -> Element:
    """Return all that was recorded about a test."""
    exhibits = (
        exhibit_view(
            exhibit,
            f"{entry.key}-{index}",
            f"Sample {index + 1} of {len(entry.exhibits)}" if entry.exhibits[1:] else None,
        )
        for index, exhibit in enumerate(entry.exhibits)
    )
    gate = _gate(entry.gate) if entry.gate else None
    return element(
        "div.body",
        None,
        _message(entry, opened=True) if entry.explained else None,
        gate,
        exhibits,
        None if entry.explained else _message(entry, opened=False),
        element("p.none", None, "Nothing was scored.") if not (entry.exhibits or gate) else None,
    )


def _gate(gate: GateView) -> Element:
    told = element("p", {"dir": "auto"}, element("b", None, gate.told), ": ", foreign(gate.text))
    return element(f"div.score.{gate.outcome}", None, told)


def _message(entry: TestView, *, opened: bool) -> Element | None:
    if not entry.message:
        return None
    text = element("pre", {"dir": "auto", "tabindex": 0}, plain(entry.message, _MESSAGE_HEAD))
    return element("details.message", {"open": opened}, element("summary", None, "What pytest said"), text)
