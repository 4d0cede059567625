"""The page as a whole: self-contained, well-formed, escaped, packed, the same every time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.report.page import pack_tests, render_html, visible
from pytest_ragmetrics.report.tests_view import build_report_view
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.records import Document
from tests.documents import HANDBOOK, HOSTILE, crowd, document, hostile, record, row, usage
from tests.growth import is_linear
from tests.showcase import baseline, showcase

_VOID = {"meta", "input", "br", "path", "rect", "circle", "link"}
_OURS = {"n", "sr"}
_TEMPLATES = files("pytest_ragmetrics.report") / "templates"


@dataclass(slots=True)
class Element:
    tag: str
    attributes: dict[str, str | None]
    text: str = ""

    @property
    def classes(self) -> set[str]:
        return set((self.attributes.get("class") or "").split())


class Tree(HTMLParser):
    """A page taken apart; raises ``AssertionError`` when its tags do not match."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        """Add a text to all elements it is in, unless it is a number or a fold of ours."""
        ours = any(element.classes & _OURS for element in self._open)
        folding = len(self._open) > 1 and self._open[-1].tag == "summary" and "fold" in self._open[-2].classes
        for element in self._open if not (ours or folding) else ():
            element.text += data

    def all(self, tag: str = "", class_: str = "") -> list[Element]:
        return [e for e in self.elements if (not tag or e.tag == tag) and (not class_ or class_ in e.classes)]

    def texts(self, tag: str = "", class_: str = "") -> list[str]:
        return [" ".join(element.text.split()) for element in self.all(tag, class_)]


@lru_cache
def tree_of(make: Callable[[], Document]) -> Tree:
    return Tree(render_html(make()))


def unpacked(packed: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(packed, validate=True), -15))


def test_the_same_document_is_the_same_page() -> None:
    pages = {render_html(run, comparison=compare_documents(run, baseline())) for run in (showcase(), showcase())}
    assert len(pages) == 1
    page = render_html(document(row("test_\ud83d", record("\udcff"), outcome="failed", message="E  \udc80")))
    assert r"test_\ud83d" in page.encode("utf-8").decode("utf-8")


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_shown_can_be_written_and_steers_nothing(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in shown if character not in "\n\t")
    steering = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not any(unicodedata.bidirectional(character) in steering for character in shown)
    ordinary = "".join(c for c in text if unicodedata.category(c)[0] in "LMNPS" and c != "\U000e0000")
    assert visible(ordinary) == ordinary


def test_escapes_say_which_character_it_was() -> None:
    escaped = r"\x00 \x1b[1m \r \u202e \ud83d \ufffe \U0001ffff \U000e0041"
    assert visible("\0 \x1b[1m \r \u202e \ud83d \ufffe \U0001ffff \U000e0041") == escaped
    assert visible("a\r\nb\n\tc") == "a\nb\n\tc"


def test_the_policy_allows_our_style_and_script_and_nothing_else() -> None:
    tree = tree_of(showcase)
    (meta,) = (e for e in tree.all("meta") if e.attributes.get("http-equiv") == "Content-Security-Policy")
    policy = dict(part.split(" ", 1) for part in (meta.attributes["content"] or "").split("; "))
    for directive, tag in (("style-src", "style"), ("script-src", "script")):
        (element,) = (found for found in tree.all(tag) if "type" not in found.attributes)
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert policy.pop(directive) == f"'sha256-{digest}'"
    assert policy.pop("default-src") == "'none'"
    assert policy.pop("trusted-types") == "'none'"
    assert "unsafe" not in str(policy)


@pytest.mark.parametrize("make", [showcase, hostile])
def test_links_and_attributes_lead_nowhere_else(make: Callable[[], Document]) -> None:
    tree = tree_of(make)
    ids = [element.attributes["id"] for element in tree.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    links = {element.attributes["href"] or "" for element in tree.elements if "href" in element.attributes}
    choices = {link for link in links if link.startswith("#tests?")}
    assert all(re.fullmatch(r"#tests(?:[?&][a-z]+=[\w.+%~-]*)+", link, re.ASCII) for link in choices)
    assert {unquote(link) for link in links - choices} <= {f"#{anchor}" for anchor in ids}
    names = {name for element in tree.elements for name in element.attributes}
    assert not names & {"src", "srcset", "srcdoc", "style", "action", "formaction", "background", "poster", "ping"}
    assert not [name for name in names if name.startswith("on")]
    assert not {element.tag for element in tree.elements} & {"img", "iframe", "object", "embed", "base", "link"}
    scripts = tree.all("script")
    assert [script.attributes.get("type") for script in scripts].count(None) == 1
    assert all(re.fullmatch(r"[A-Za-z0-9+/=]+", script.text) for script in scripts if "type" in script.attributes)


def test_neither_script_nor_templates_write_markup() -> None:
    script = "".join(file.read_text(encoding="utf-8") for file in _TEMPLATES.iterdir() if file.name.endswith(".js"))
    # A namespace, and the only addresses that links may have.
    script = script.replace('"http://www.w3.org/2000/svg"', "").replace("/^(?:#|https:\\/\\/)/", "")
    markup = "innerHTML|outerHTML|setHTML|HTMLUnsafe|insertAdjacentHTML|DOMParser|createContextualFragment"
    assert not re.search(rf"{markup}|</script|<!--|document\.write|\beval\b|Function\(|https?:", script)
    templates = (file.read_text(encoding="utf-8") for file in _TEMPLATES.iterdir() if file.name.endswith(".jinja"))
    lines = "\n".join(templates).splitlines()
    trusted = {line for line in lines if re.search(r"\|\s*(safe|verbatim)|autoescape", line)}
    assert trusted == {"<style>{{ style|verbatim }}</style>", "<script>{{ script|verbatim }}</script>"}


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_shown_whole(text: str) -> None:
    tree = Tree(render_html(document(*[test for test in hostile().tests if text in test.id])))
    shown = visible(text)
    assert all(tree.all(class_=name) for name in ("id", "metric", "claim", "reason", "response", "place"))
    assert shown in tree.all(class_="id")[0].text
    assert tree.all(class_="metric")[0].text == shown
    assert " ".join(shown.split()) in tree.texts("h2")
    *_, response, reference, first, second, last = (element.text for element in tree.all(class_="text"))
    assert reference == first == last == shown
    assert response == visible(f"{text} {text}")
    assert second == f"before {shown} after"
    assert shown in tree.all("pre")[0].text
    assert {shown, f'{{"{text}": ["{text}"]}}'} & {element.text for element in tree.all("dd")}
    assert shown in [element.text for element in tree.all("dt")]


def test_texts_read_as_they_were_written() -> None:
    texts = {element.text for element in tree_of(showcase).all(class_="text")}
    written = next(test for test in showcase().tests if "rent and water" in test.id).records[0].sample
    assert {written.response, *HANDBOOK} <= texts
    run = crowd(3, length=9000)
    texts = {element.text for element in Tree(render_html(run)).all(class_="text")}
    assert all(set(test.records[0].sample.retrieved_contexts or ()) <= texts for test in run.tests)


def test_every_record_says_metric_score_and_threshold() -> None:
    tree = tree_of(showcase)
    cells, lines = tree.texts(class_="cell"), tree.texts(class_="score")
    assert "faithfulness ✗ 0.50needs ≥ 0.80" in cells
    assert "quoted_spans_alignment nothing to checkneeds ≥ 0.90" in cells
    assert any(cell.endswith("0.40not held against a threshold") for cell in cells)
    (line,) = (line for line in lines if line.startswith("faithfulness 0.50") and "votes" in line)
    assert "2 of 4 claims are supported3 votes: 0.25, 0.90, 0.35; 2 of 3 fell short" in line
    assert "2 suspicious verdicts flaky: the votes lie on both sides of the threshold" in line
    assert "Judge openai:gpt-5-mini · live: 2 calls, 1,642 tokens, $0.0031" in line
    assert any(line.startswith("faithfulness unscoredthe judge returned 2 verdicts for 3 claims") for line in lines)
    assert "quoted_spans_alignment nothing to checkNo quoted spans found in responsevacuous: scored 1.00" in lines


def test_marks_and_texts_need_no_colour_or_direction() -> None:
    tree = tree_of(showcase)
    names = {element.attributes.get("aria-label") for element in tree.all("a")}
    assert {"1, found", "2, not found", "1, evidence", "2, nearest passage"} <= names
    assert {"six", "the", "hoses", "of the day"} <= {element.text for element in tree.all("del")}
    assert {"eight", "watering cans"} <= {element.text for element in tree.all("ins")}
    blocks = [element for name in ("text", "claim", "reason", "why", "preview") for element in tree.all(class_=name)]
    assert {element.attributes.get("dir") for element in blocks} == {"auto"}


def test_drawings_stay_inside_their_boxes() -> None:
    scores = [(0.5, "failed")] * 40 + [(0.52, "passed"), (1.0, "passed")]
    run = document(*(row(f"t{n}", record(score=s, outcome=o)) for n, (s, o) in enumerate(scores)))
    for made, height in ((run, 31.22), (document(row("t", record(score=0.5, outcome="failed"))), 6.0)):
        found = [bar.attributes for bar in Tree(render_html(made)).all("rect")]
        bars = [{name: float(bar[name] or "") for name in ("x", "y", "width", "height")} for bar in found]
        assert bars[0] == {"x": 100.0, "y": round(32 - height, 2), "width": 9.0, "height": height}
        assert all(0 <= bar["y"] < bar["y"] + bar["height"] <= 32.01 and bar["x"] + bar["width"] <= 200 for bar in bars)


@pytest.mark.parametrize(
    ("run", "tag", "name", "texts"),
    [
        (document(exit_status=5), "h1", "", ["No test was recorded", ""]),
        (document(exit_status=5), "table", "", []),
        (document(row("t", record(outcome="measured"), line=None)), "b", "", ["1.00", "1.00"]),
        (document(row("t", record(sample={"user_input": "Why?", "response": "", "retrieved_contexts": []}))),
         "", "none", ["(empty)", "None were given."]),
    ],
    ids=["no tests", "no tables", "no sample", "empty texts"],
)  # fmt: skip
def test_a_page_without_much_on_it_says_so(run: Document, tag: str, name: str, texts: list[str]) -> None:
    assert Tree(render_html(run)).texts(tag, name)[-len(texts) or None :] == texts


def test_a_score_says_what_it_was_in_the_baseline() -> None:
    run = showcase()
    notes = Tree(render_html(run, comparison=compare_documents(run, baseline()))).texts("span", "change")
    assert [note for note in notes if "was 0.90" in note] == ["was 0.90"]
    assert Tree(render_html(run, comparison=compare_documents(run, run))).all("span", "change") == []


def test_every_row_knows_where_its_body_is() -> None:
    tests = build_report_view(crowd(150)).tests
    listing = pack_tests(tests)
    chunks = [unpacked(chunk) for chunk in listing.chunks]
    assert 3 < len(chunks) < 10
    for test, line in zip(tests, unpacked(listing.index), strict=True):
        chunk, place = line["body"]
        assert f"about plot {test.name[18:-1]}?" in chunks[chunk][place]
        assert f"about plot {test.name[18:-1]}?" in line["row"]
        assert line["name"] == test.name
    assert 15 < len(listing.full) < 100
    assert [test for test, _, _ in listing.full] + list(listing.brief) == list(tests)


def test_tests_about_the_same_passages_are_packed_together() -> None:
    samples = [{"retrieved_contexts": [text]} for text in ("oak", "ash", "oak", "ash")]
    run = document(*(row(f"test_{n}", record(sample=sample)) for n, sample in enumerate(samples)))
    index = unpacked(pack_tests(build_report_view(run).tests).index)
    names = [line["name"] for line in sorted(index, key=lambda line: line["body"])]
    assert names == ["test_1", "test_3", "test_0", "test_2"]


def test_a_row_has_what_it_is_sorted_and_filtered_by() -> None:
    run = showcase()
    view = build_report_view(run, compare_documents(run, baseline()))
    rows = {line["name"]: line for line in unpacked(pack_tests(view.tests).index)}
    shed = rows["test_shed_size"]
    assert shed["scores"] == [["faithfulness", 0.5, "failed"], ["answer_relevancy", 0.874, "passed"]]
    assert shed["marks"] == ["flaky", "suspicious", "same", "worse"]
    assert (shed["duration"], shed["cost"], shed["file"]) == (3.41, 0.0038, "tests/test_assistant.py")
    made = row("test_a", record(usage=usage(tokens=800, cost=0.01)), record(usage=usage(tokens=80, cost=None)))
    (line,) = unpacked(pack_tests(build_report_view(document(made)).tests).index)
    assert (line["cost"], line["tokens"]) == (0.01, 990)
    assert shed["change"] == pytest.approx(-0.4)
    assert rows["test_bees"]["marks"] == ["lost"]
    assert rows["test_no_quotes"]["scores"] == [["quoted_spans_alignment", None, "passed"]]


def test_contexts_are_in_a_body_once() -> None:
    context = "a context of its own, longer than its preview. " * 4
    sample = {"response": "r", "retrieved_contexts": [context]}
    tests = build_report_view(document(row("test_a", *(record(metric, sample=sample) for metric in "abc")))).tests
    (body,) = unpacked(pack_tests(tests).chunks[0])
    assert body.count(context) == 1


def test_the_page_of_a_large_run_stays_small() -> None:
    """Ten thousand tests with three long contexts each are to be mailed around: 40 MB at the most."""
    small, large = (len(render_html(crowd(size))) for size in (100, 140))
    # The part for readers without scripts does not grow.
    assert small + (large - small) / 40 * 9_900 < 40_000_000


@pytest.mark.growth
def test_time_grows_with_the_number_of_tests() -> None:
    assert is_linear(lambda size: pack_tests(build_report_view(crowd(size, length=50)).tests), short=30, long=150)
