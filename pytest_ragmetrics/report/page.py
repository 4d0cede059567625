"""The report of a run as one HTML file: a pure function of its document and of what changed since the baseline.

:mod:`pytest_ragmetrics.report.tests_view` builds the view model, the templates have the markup. For the script the
tests are rendered into an index of rows and compressed chunks of bodies, which are unpacked when a test is opened.
For readers without JavaScript the page contains the worst tests in full, up to ``_READABLE`` characters, and a line
for each other.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from pytest_ragmetrics.core.files import packaged_text
from pytest_ragmetrics.report.columns import (
    ComparedColumns,
    apart_text,
    coverage_text,
    headlines,
    pair_outcome,
    winner_text,
)
from pytest_ragmetrics.report.figures import SIGNS, Axis, gate_open, value_text
from pytest_ragmetrics.report.highlights import fold
from pytest_ragmetrics.report.outcomes import CAUSES, kind_label
from pytest_ragmetrics.report.overview import day_text, setting_text
from pytest_ragmetrics.report.sample_view import asked_text, build_sample_views, labels_of, votes_text
from pytest_ragmetrics.report.tests_view import TestView, build_report_view
from pytest_ragmetrics.report.trends import build_trends
from pytest_ragmetrics.runs.compare import KINDS, RunComparison, key_of
from pytest_ragmetrics.runs.origin import ci_name, commit_link, origin_title, short_commit, web_link
from pytest_ragmetrics.runs.records import Document, Record, TestRecord, is_met
from pytest_ragmetrics.runs.wording.blame import blame_text
from pytest_ragmetrics.runs.wording.comparisons import KIND_WORDS, change_text, incomparable_lines, outcome_change
from pytest_ragmetrics.runs.wording.figures import (
    bound_text,
    cost_text,
    counted,
    duration_text,
    figure_text,
    format_interval,
    score_text,
    similarity_text,
    threshold_text,
    with_unit,
)
from pytest_ragmetrics.runs.wording.runs import (
    WORDS,
    beside_lines,
    gate_counts,
    gate_line,
    gate_outcome,
    gate_title,
    paid_records,
    paid_usages,
    regression_text,
    spent_text,
    stop_text,
)
from pytest_ragmetrics.text import unicode

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from pytest_ragmetrics.evaluation.calibration.queue import QueuedRow
    from pytest_ragmetrics.evaluation.calibration.result import Calibration
    from pytest_ragmetrics.report.history import History

_PACKAGE = "pytest_ragmetrics.report"
_TEMPLATES = "templates"
#: The characters of a chunk: enough to compress well, few enough to unpack without a delay.
_CHUNK = 250_000
#: The characters of tests in full for readers without JavaScript.
_READABLE = 220_000
_RAW_DEFLATE = -15
# The numbers of a chunk, and of a body in it.
_Place = tuple[int, int]
#: The rows on a page of columns.
_ROWS = 1000
_SCRIPTS = ("markup.js", "rows.js", "list.js", "pane.js", "marks.js", "address.js")
#: The characters of a text in a page to label in.
_LONGEST = 50_000

#: In a rendered body: what only the script reads, and a highlight of a score whose highlights are not shown.
_DATA = re.compile(r' data-(?!m=)[a-z]+="[^"]*"')
_UNMARKED = re.compile(r"<mark>([^<]*)</mark>")

# Controls (HTML forbids some and swallows others), bidirectional embeddings, overrides and isolates (they reorder
# what follows), tag characters (text that only a model reads), lone surrogates and noncharacters (no valid UTF-8,
# or no valid HTML). Tab and line feed are layout.
_INVISIBLE = re.compile(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f{unicode.DIRECTIONS}\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff{unicode.TAGS}]|["
    + "".join(f"{chr(plane + 0xFFFE)}-{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
    + "]"
)


def render_html(document: Document, *, comparison: RunComparison | None = None, history: History | None = None) -> str:
    """Return the report as a self-contained page, with what changed since a baseline and a history up to the run.

    The same document gives the same text. The page asks for nothing from the network, runs no script but its own, and
    shows all texts of the document as text. It can be encoded as UTF-8 even if the document cannot.
    """
    view = build_report_view(document, comparison, history)
    return render(
        "report.html.jinja",
        styles=("report.css", "pictures.css", "overview.css", "compare.css"),
        scripts=_SCRIPTS,
        view=view,
        listing=pack_tests(view.tests, view.gone, _called(comparison) if comparison else None),
        started=document.run.started,
    )


def _called(comparison: RunComparison) -> tuple[str, str]:
    """Return what the baseline and the run are called: commit and time, as far as they are known."""
    runs = comparison.baseline.run, comparison.document.run
    then, now = (" ".join(filter(None, (short_commit(run.commit), day_text(run.started)))) for run in runs)
    return then, now


def render_calibration(calibration: Calibration, *, worst: int = 50) -> str:
    """Return a calibration as a self-contained page: the same figures, the same text.

    The page has no script, and its policy allows none; the texts of the rows are shown as text.
    """
    from pytest_ragmetrics.evaluation.calibration import text

    differing = calibration.disagreements()
    return render(
        "calibration.html.jinja",
        styles=("calibration.css",),
        headline=text.headline(calibration),
        by=text.decider(calibration),
        left_out=[line.strip() for line in text.left_out(calibration)],
        threshold=text.threshold_line(calibration),
        confidence=f"{calibration.figures.auroc.confidence * 100:g} %",
        figures=text.figure_lines(calibration),
        counts=calibration.figures.agreement,
        suggestion=[line.strip() for line in text.suggestion_lines(calibration)],
        bins=calibration.figures.reliability,
        differing=len(differing),
        disagreements=[
            (text.disagreement_line(calibration, row), "\n".join(text.evidence_lines(calibration, row)))
            for row in differing[:worst]
        ],
    )


def render_history(history: History) -> str:
    """Return the trends of a history as a self-contained page without a script: the same runs, the same text."""
    return render("history.html.jinja", styles=("pictures.css", "history.css"), view=build_trends(history))


def render_columns(compared: ComparedColumns) -> str:
    """Return columns of answers as a self-contained page: the rows that differ most, up to ``_ROWS`` of them."""
    return render(
        "columns.html.jinja",
        styles=("compare.css", "columns.css"),
        scripts=("columns.js",),
        view=compared,
        headlines=headlines(compared),
        coverage=coverage_text(compared),
        rows=compared.rows[:_ROWS],
    )


def render_labels(rows: Sequence[QueuedRow], *, total: int) -> str:
    """Return a page to label answers in: rows of a queue of ``total``, in its order.

    Labels are kept by the browser and exported as the lines that ``ragmetrics label`` writes. Very long texts are cut.
    """
    places = [row.labelling for row in rows]
    return render(
        "label.html.jinja",
        styles=("report.css", "label.css"),
        scripts=("label.js",),
        rows=[(row, key_of(row.record.sample), build_sample_views([_short(row.record)])[0]) for row in rows],
        total=total,
        key=" ".join(str(part) for place in places[:1] for part in (place.run, place.metric, place.seed)),
        lines=_pack([[row.labelling.place, row.rest] for row in rows]),
    )


def _short(record: Record) -> Record:
    """Return a record with its texts cut, and without the exchanges with the judge."""

    def short(text: str) -> str:
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text) - _LONGEST:,} more characters)"

    texts: dict[str, Any] = {
        name: short(value) if isinstance(value, str) else tuple(map(short, value))
        for name, value in record.sample.to_mapping().items()
        if name in ("user_input", "response", "reference", "retrieved_contexts", "reference_contexts")
    }
    return replace(record, sample=replace(record.sample, **texts), exchanges=())


def render(template: str, *, styles: Sequence[str], scripts: Sequence[str] = (), **values: object) -> str:
    """Return a page from a template; its policy allows these styles and these scripts, and nothing else.

    The scripts share one scope, in their order.
    """
    style = "".join(map(_asset, ("palette.css", *styles)))
    script = f'(async () => {{\n"use strict";\n{"".join(map(_asset, scripts))}}})();\n' if scripts else None
    policy = [
        "default-src 'none'",
        f"style-src '{_hash(style)}'",
        *([f"script-src '{_hash(script)}'"] if script is not None else []),
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    page = environment().get_template(template)
    return page.render(policy="; ".join(policy), style=style, script=script, **values)


def _asset(name: str) -> str:
    return packaged_text(f"report/{_TEMPLATES}/{name}")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the environment of the templates: everything is escaped but our own style and script (``verbatim``)."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        # Markup is a subclass of str, and is shown already.
        return visible(value) if type(value) is str else value

    def plain(text: str, head: int = 2000) -> str:
        """Return a text, folded if it is long; with a macro for each short text a page takes a tenth longer."""
        passages: Any = made.get_template("passages.html.jinja").module if len(text) > head else None
        folded: str = text if passages is None else passages.long(text, head)
        return folded

    made = Environment(
        loader=PackageLoader(_PACKAGE, _TEMPLATES),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "verbatim": Markup,
        "number": "{:,}".format,
        "counted": counted,
        "duration": duration_text,
        "cost": cost_text,
        "mean": figure_text,
        "score": score_text,
        "similarity": similarity_text,
        "threshold": threshold_text,
        "with_unit": with_unit,
        "folded": lambda text, head: fold(text, head=head),
        "plain": plain,
        # The script compares the values of a filter, and the id of a deep link, with texts as shown.
        "query": lambda values: urlencode({name: visible(value) for name, value in values.items()}),
        "fragment": lambda anchor: "#" + quote(visible(anchor), safe="/:"),
    }
    functions = (
        apart_text,
        asked_text,
        beside_lines,
        blame_text,
        bound_text,
        figure_text,
        format_interval,
        change_text,
        ci_name,
        commit_link,
        cost_of,
        day_text,
        gate_line,
        gate_counts,
        gate_open,
        gate_outcome,
        gate_title,
        incomparable_lines,
        is_met,
        kind_label,
        labels_of,
        origin_title,
        outcome_change,
        pair_outcome,
        paid_usages,
        regression_text,
        setting_text,
        short_commit,
        spent_text,
        stop_text,
        value_text,
        votes_text,
        web_link,
        winner_text,
    )
    made.globals |= {
        "causes": CAUSES,
        "kinds": {kind: KIND_WORDS[kind] for kind in KINDS},
        "signs": SIGNS,
        "words": WORDS,
        "axis_of": Axis.whole,
        **{it.__name__: it for it in functions},
    }
    return made


def cost_of(test: TestRecord) -> float:
    """Return the known prices of the scorings of a test, in dollars."""
    return sum(record.usage.cost or 0.0 for record in paid_records([test]))


def visible(text: str) -> str:
    r"""Return the text with escapes for what cannot be seen; apply after cutting, it changes lengths.

    Line ends become line feeds, as a browser would read them.

    >>> visible("bell \a, over \u202etxet, half \ud83d")
    'bell \\x07, over \\u202etxet, half \\ud83d'
    """
    if text.isascii() and text.isprintable():
        return text
    return _INVISIBLE.sub(lambda match: ascii(match.group())[1:-1], text.replace("\r\n", "\n"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """The packed index and the packed chunks of bodies; for reading without scripts ``full`` and ``brief`` tests.

    A full test comes with its rendered row and body.
    """

    index: str
    chunks: tuple[str, ...]
    full: tuple[tuple[TestView, Markup, Markup], ...]
    brief: tuple[TestView, ...]


def pack_tests(
    tests: Sequence[TestView], gone: Sequence[TestView] = (), runs: tuple[str, str] | None = None
) -> Listing:
    """Return the list of these tests, in their order, and of those that are ``gone``, which only a script shows.

    ``runs`` are what the baseline and the run are called where they are compared.
    """
    macros: Any = environment().get_template("test.html.jinja").module
    compare: Any = environment().get_template("compare.html.jinja").module
    rows = {id(test): macros.row(test) for test in (*tests, *gone)}
    changed = [test for test in (*tests, *gone) if test.compared and test.compared.samples]
    chunks: list[str] = []
    places = _chunks(tests, macros.body, chunks)
    compared = _chunks(changed, lambda test: compare.body(test, runs), chunks)
    index = [_indexed(test, rows[id(test)], places.get(id(test)), compared.get(id(test))) for test in (*tests, *gone)]
    full: list[tuple[TestView, Markup, Markup]] = []
    brief: list[TestView] = []
    rest = _READABLE
    for test in tests:
        # All tests after the first that does not fit are brief, so that both parts together keep the order.
        body = None if brief else _unscripted(macros.body(test))
        if body is None or len(body) > rest:
            brief.append(test)
        else:
            rest -= len(body)
            full.append((test, rows[id(test)], body))
    return Listing(index=_pack(index), chunks=tuple(chunks), full=tuple(full), brief=tuple(brief))


def _unscripted(body: Markup) -> Markup:
    """Return a body without what only the script reads; in its texts quotation marks are escaped."""
    from markupsafe import Markup

    return Markup(_UNMARKED.sub(r"\1", _DATA.sub("", body)))  # noqa: S704 - it was rendered


def _chunks(tests: Sequence[TestView], render: Callable[[TestView], str], chunks: list[str]) -> dict[int, _Place]:
    """Add the bodies to the packed chunks and return where they are; those about the same passages are neighbours.

    Each is packed as soon as it is full: unpacked, those of 10,000 tests take 350 MB.
    """
    places: dict[int, _Place] = {}
    part: list[str] = []
    room = _CHUNK
    for test in sorted(tests, key=lambda it: tuple((it.records and it.records[0].sample.retrieved_contexts) or ())):
        body = render(test)
        if len(body) > room and part:
            chunks.append(_pack(part))
            part, room = [], _CHUNK
        room -= len(body)
        part.append(body)
        places[id(test)] = len(chunks), len(part) - 1
    if part:
        chunks.append(_pack(part))
    return places


def _indexed(test: TestView, row: str, body: _Place | None, compared: _Place | None) -> dict[str, object]:
    """Return what the script filters, sorts and shows a row by.

    ``body`` is where the rest of it is packed, ``compare`` where its comparison with the baseline is.
    """
    outcome, change = test.outcome, test.compared
    return {
        "id": visible(test.anchor),
        "name": visible(test.name),
        "file": visible(test.record.file),
        "status": test.status,
        # A gate is in no list.
        "kind": outcome and outcome.kind,
        "cause": outcome and outcome.cause,
        "in": {visible(name): visible(value) for name, value in test.metadata.items()},
        # The script uses "unscored" for the status of a test, "lost" for a score that the baseline had.
        "marks": [
            *test.flags,
            *sorted("lost" if kind == "unscored" else kind for kind in {change.kind for change in test.changes}),
        ],
        "duration": test.record.duration,
        "cost": cost_of(test.record),
        "tokens": sum(it.usage.prompt_tokens + it.usage.completion_tokens for it in paid_records([test.record])),
        # What had nothing to check sorts with what has no score.
        "scores": [
            (visible(record.metric), None if record.vacuous else record.score, record.outcome)
            for record in test.records
        ],
        "change": min((change.change for change in test.changes if change.change is not None), default=None),
        "row": row,
        "body": body or compared,
        "compare": compared,
        "tags": change and change.chips,
        "size": change and change.size,
    }


def _pack(value: object) -> str:
    """Return a value as compressed JSON in base64, which needs no escaping in HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    compressor = zlib.compressobj(9, zlib.DEFLATED, _RAW_DEFLATE)
    return base64.b64encode(compressor.compress(text.encode()) + compressor.flush()).decode("ascii")
