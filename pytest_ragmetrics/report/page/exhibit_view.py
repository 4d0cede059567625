"""How an exhibit stands on the page: scores, question, the response and its verdicts beside the contexts."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from pytest_ragmetrics.context import Exchange
from pytest_ragmetrics.explain.phrases import counted
from pytest_ragmetrics.report.page.elements import Element, Node, element, foreign
from pytest_ragmetrics.report.page.exhibits import Context, SampleView, ScoreView
from pytest_ragmetrics.report.page.findings import DiffWord, EvidencePlace, NearMiss, VerdictView
from pytest_ragmetrics.report.page.passages import block, marked, plain
from pytest_ragmetrics.report.page.votes import votes_view

#: How much of a request or a reply is shown without a click.
_EXCHANGE_HEAD = 4000


def exhibit_view(exhibit: SampleView, prefix: str, heading: str | None) -> Element:
    """Return an exhibit as an element; ``prefix`` starts the names of all places in it."""
    sources = tuple(_sources(exhibit, prefix))
    answer = element("div.answer", None, _answer(exhibit, prefix))
    return element(
        "section.exhibit",
        None,
        heading and element("h4", None, heading),
        map(_score, exhibit.scored),
        _titled("Question", exhibit.question),
        element("div.columns", None, answer, element("div.sources", None, sources))
        if sources
        else element("div.columns.single", None, answer),
        _rest(exhibit),
    )


def _titled(title: str, text: str | None) -> tuple[Node, ...]:
    return () if text is None else (element("h4", None, title), block("div.text", text))


def _rest(exhibit: SampleView) -> Element | None:
    if not exhibit.rest:
        return None
    pairs = (
        element("div", None, element("dt", {"dir": "auto"}, plain(name)), element("dd", {"dir": "auto"}, plain(value)))
        for name, value in exhibit.rest
    )
    return element("dl.rest", None, pairs)


def _score(scored: ScoreView) -> Element:
    judge = ("Judge ", element("bdi", None, foreign(scored.judge))) if scored.judge else ()
    asked = (" · " if judge else "", scored.asked) if scored.asked else ()
    return element(
        f"div.score.{scored.outcome}",
        None,
        element("p.line", None, _line(scored)),
        scored.reason and element("div.reason", {"dir": "auto"}, plain(scored.reason)),
        votes_view(scored.votes) if scored.votes else None,
        element("p.small", None, judge, asked) if judge or asked else None,
        _exchanges(scored.exchanges),
    )


def _line(scored: ScoreView) -> Iterator[Node]:
    yield element("bdi.metric", None, foreign(scored.metric))
    yield " "
    yield element("b", None, scored.score or "unscored")
    if scored.needs or scored.outcome == "measured":
        yield element("span.needs", None, f" needs {scored.needs}" if scored.needs else " not held against a threshold")
    if scored.change:
        text, kind = scored.change
        yield element(f"span.change.{kind.replace(' ', '-')}", None, f" {text}")
    for label in scored.labels:
        yield " "
        yield element("span.label", None, label)


def _exchanges(exchanges: Sequence[Exchange]) -> Element | None:
    if not exchanges:
        return None
    voted = any(exchange.vote for exchange in exchanges)
    told = (_exchange(exchange, f", vote {exchange.vote + 1}" if voted else "") for exchange in exchanges)
    title = f"What the judge was asked and what it replied ({counted(len(exchanges), 'exchange')})"
    return element("details.exchanges", None, element("summary", None, title), told)


def _exchange(exchange: Exchange, vote: str) -> Element:
    reply = exchange.reply
    return element(
        "section",
        None,
        element(
            "h4",
            None,
            element("bdi", None, foreign(exchange.task)),
            f"{vote}, {'from the cache' if exchange.cached else 'asked live'}",
        ),
        element("p.small", None, "Asked"),
        _said(exchange.prompt),
        element("p.small", None, "Replied"),
        element("p.none", None, "Nothing that could be used.") if reply is None else _said(reply),
    )


def _said(text: str) -> Element:
    if not text:
        return element("p.none", None, "(empty)")
    return element("pre", {"dir": "auto", "tabindex": 0}, plain(text, _EXCHANGE_HEAD))


def _answer(exhibit: SampleView, prefix: str) -> Iterator[Node]:
    if exhibit.response is not None:
        pieces = marked(exhibit.response, prefix, goals=exhibit.goals)
        yield element("h4", None, "Response")
        empty = element("span.none", None, "(empty)")
        yield element("div.text.response", {"dir": "auto"}, pieces if exhibit.response else empty)
        if exhibit.marked:
            yield _KEY
    for scored in exhibit.scored:
        if scored.findings:
            name = (" of ", element("bdi", None, foreign(scored.metric))) if len(exhibit.scored) > 1 else ()
            yield element("h4", None, "Verdicts", name)
            yield element("ol.findings", None, (_finding(finding, prefix) for finding in scored.findings))
    yield from _titled("Reference", exhibit.reference)


_KEY = element(
    "p.key",
    None,
    element("mark.found", None, "✓ found"),
    " ",
    element("mark.missing", None, "✗ not found"),
    " A number leads to its verdict, the text to its evidence.",
)


def _finding(finding: VerdictView, prefix: str) -> Element:
    kind = "found" if finding.ok else "missing"
    places = ((" ", _place(place, prefix, finding.number)) for place in finding.evidence)
    suspicion = finding.suspicion and (
        " ",
        element("span.label", None, element("bdi", None, foreign(finding.suspicion))),
    )
    said = finding.near_miss is not None and finding.near_miss.said
    return element(
        f"li.{kind}",
        {"id": f"{prefix}v{finding.number}", "data-n": finding.number},
        element(
            "div",
            None,
            element(f"span.n.{kind}", None, _number(finding, prefix)),
            " ",
            element("b.word", None, element("bdi", None, foreign(finding.word))),
            suspicion or None,
            (node for pair in places for node in pair),
        ),
        None if said else element("div.claim", {"dir": "auto"}, plain(finding.text)),
        finding.reason and element("div.reason", {"dir": "auto"}, plain(finding.reason)),
        _near_miss(finding.near_miss, prefix, finding) if finding.near_miss else None,
    )


def _number(finding: VerdictView, prefix: str) -> Node:
    text = f"{finding.number} {'✓' if finding.ok else '✗'}"
    if not finding.marked:
        return text
    name = f"{finding.number}, show in the response"
    link: dict[str, str | int] = {"href": f"#{prefix}m{finding.number}", "data-n": finding.number, "aria-label": name}
    return element("a", link, text)


def _place(place: EvidencePlace, prefix: str, number: int) -> Element:
    if place.anchor:
        return element("a.place", {"href": f"#{prefix}{place.anchor}", "data-n": number}, place.label)
    text = element("bdi.small", None, plain(place.text))
    return element("span", None, element("span.place", None, place.label), " ", text)


def _near_miss(miss: NearMiss, prefix: str, finding: VerdictView) -> Element:
    start = element("div", None, "Nearest: ", _place(miss.place, prefix, finding.number), f" {miss.similarity} alike")
    if miss.said or miss.source:
        sides = (
            _side("Response says" if finding.marked else "Claim says", miss.said, "del"),
            _side("Context says", miss.source, "ins"),
        )
        return element("div.near", None, start, element("dl", None, sides))
    text = element("div.claim", {"dir": "auto"}, plain(miss.place.text)) if miss.place.anchor else None
    return element("div.near", None, start, text)


def _side(title: str, words: Sequence[DiffWord], tag: str) -> Element:
    pieces = (element(tag, None, plain(word.text)) if word.differs else plain(word.text) for word in words)
    return element("div", None, element("dt", None, title), element("dd", {"dir": "auto"}, pieces))


def _sources(exhibit: SampleView, prefix: str) -> Iterator[Node]:
    both = (("Contexts", exhibit.contexts), ("Reference contexts", exhibit.reference_contexts))
    for title, contexts in both:
        if contexts is not None:
            yield element("h4", None, title)
            yield from (_context(context, prefix, exhibit.marked) for context in contexts)
            if not contexts:
                yield element("p.none", None, "None were given.")


def _context(context: Context, prefix: str, back: Container[int]) -> Element:
    source = (", ", element("bdi", None, foreign(context.source))) if context.source else ()
    text = marked(context.segments, prefix, back=back, goals={})
    return element(
        "details.context",
        {"id": f"{prefix}{context.anchor}", "open": context.opened},
        element(
            "summary",
            None,
            element("span.place", None, context.label),
            " ",
            element("span.small", None, counted(context.length, "character"), source),
            _role("evidence", "✓ evidence for", context.evidence),
            _role("against", "✗ counts against", context.against),
            _role("nearest", "≈ nearest to", context.nearest),
            None if context.opened else element("span.preview", {"dir": "auto"}, foreign(context.preview)),
        ),
        element("div.text", {"dir": "auto"}, text if context.length else element("span.none", None, "(empty)")),
    )


def _role(kind: str, title: str, numbers: Sequence[int]) -> Element | None:
    return element(f"span.role.{kind}", None, f" {title} {', '.join(map(str, numbers))}") if numbers else None
