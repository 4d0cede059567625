"""The page as a whole: self-contained, well-formed, escaped, the same every time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from importlib.resources import files
from urllib.parse import unquote

import pytest

from pytest_ragmetrics.codec import load
from pytest_ragmetrics.comparison import compare_documents
from pytest_ragmetrics.records import Document, render_json
from pytest_ragmetrics.report.html import render_html
from pytest_ragmetrics.report.page.visible import visible
from tests.documents import HANDBOOK, HOSTILE, crowd, document, hostile, record, row
from tests.showcase import baseline, showcase

_VOID = {"meta", "input", "br", "path", "rect", "circle", "link"}
_OURS = {"n", "sr"}


class Element:
    """An element with its attributes, and its text as far as it is not the page's own."""

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.text = ""

    @property
    def classes(self) -> set[str]:
        """Its classes."""
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
        """Take in an element."""
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        """Close the element that is open, which must be this one."""
        if tag not in _VOID:
            assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        """Add a text to all elements it stands in, unless it is a number or a fold of ours."""
        ours = any(element.classes & _OURS for element in self._open)
        folding = len(self._open) > 1 and self._open[-1].tag == "summary" and "fold" in self._open[-2].classes
        for element in self._open if not (ours or folding) else ():
            element.text += data

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """Return the elements of a tag and with these attributes (``class_`` is one of the classes)."""
        name = attributes.pop("class_", None)
        return [
            element
            for element in self.elements
            if (not tag or element.tag == tag)
            and (name is None or name in element.classes)
            and attributes.items() <= element.attributes.items()
        ]


@pytest.fixture(scope="module")
def tree() -> Tree:
    """Take the showcase apart."""
    return Tree(render_html(showcase()))


def test_the_same_document_is_the_same_page() -> None:
    """Nothing of the time, the machine or the order of a set gets in."""
    assert render_html(showcase()) == render_html(load(Document, json.loads(render_json(showcase()))))


def test_every_page_can_be_written_as_utf_8() -> None:
    """Also when an id or a message holds half a character."""
    page = render_html(document(row("test_\ud83d", record("\udcff"), outcome="failed", message="E  \udc80")))
    assert r"test_\ud83d" in page.encode("utf-8").decode("utf-8")


def test_the_policy_allows_our_style_and_script_and_nothing_else(tree: Tree) -> None:
    """Both are allowed by what they are, not by where they stand."""
    (meta,) = tree.all("meta", **{"http-equiv": "Content-Security-Policy"})
    policy = dict(part.split(" ", 1) for part in (meta.attributes["content"] or "").split("; "))
    for directive, tag in (("style-src", "style"), ("script-src", "script")):
        (element,) = (found for found in tree.all(tag) if "type" not in found.attributes)
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert policy.pop(directive) == f"'sha256-{digest}'"
    assert policy.pop("default-src") == "'none'"
    assert "unsafe" not in str(policy)


@pytest.mark.parametrize("page", [showcase, hostile], ids=["showcase", "hostile"])
def test_links_lead_to_places_that_exist(page: Callable[[], Document]) -> None:
    """Every link is to an anchor of the same page, and every anchor is there once."""
    tree = Tree(render_html(page()))
    ids = [element.attributes["id"] for element in tree.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    links = {unquote(element.attributes["href"] or "") for element in tree.elements if "href" in element.attributes}
    assert links <= {f"#{anchor}" for anchor in ids}


@pytest.mark.parametrize("page", [showcase, hostile], ids=["showcase", "hostile"])
def test_nothing_is_loaded_styled_or_run_from_attributes(page: Callable[[], Document]) -> None:
    """No source, no style and no event handler in any tag, and only the tags that the page is made of."""
    tree = Tree(render_html(page()))
    names = {name for element in tree.elements for name in element.attributes}
    assert not names & {"src", "srcset", "srcdoc", "style", "action", "formaction", "background", "poster", "ping"}
    assert not [name for name in names if name.startswith("on")]
    assert not {element.tag for element in tree.elements} & {
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "link",
        "a:href",
    }
    scripts = tree.all("script")
    assert [script.attributes.get("type") for script in scripts].count(None) == 1
    assert all(re.fullmatch(r"[A-Za-z0-9+/=]+", script.text) for script in scripts if "type" in script.attributes)


def test_the_script_writes_no_markup() -> None:
    """What the script shows, it shows as text."""
    script = (files("pytest_ragmetrics.report") / "templates" / "report.js").read_text(encoding="utf-8")
    script = script.replace('"http://www.w3.org/2000/svg"', "")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|https?:", script)
    assert "</script" not in script
    assert "<!--" not in script


def test_no_template_trusts_a_text() -> None:
    """Only our own style and script are taken as they are."""
    trusted = [
        line
        for file in (files("pytest_ragmetrics.report") / "templates").iterdir()
        if file.name.endswith(".jinja")
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.search(r"\|\s*(safe|verbatim)|autoescape", line)
    ]
    assert set(trusted) == {"<style>{{ style|verbatim }}</style>", "<script>{{ script|verbatim }}</script>"}


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_shown_whole(text: str) -> None:
    """Every field shows what it holds, escaped and with invisible characters made visible."""
    tree = Tree(render_html(document(*[test for test in hostile().tests if text in test.id])))
    shown = visible(text)
    for name in ("name", "metric", "claim", "reason", "response", "place"):
        assert tree.all(class_=name), name
    assert shown in tree.all(class_="name")[0].text
    assert tree.all(class_="metric")[0].text == shown
    question, response, reference, first, second, last = (element.text for element in tree.all(class_="text"))
    assert question == reference == first == last == shown
    assert response == visible(f"{text} {text}")
    assert second == f"before {shown} after"
    assert shown in tree.all("pre")[0].text
    assert {shown, f'{{"{text}": ["{text}"]}}'} & {element.text for element in tree.all("dd")}
    assert shown in [element.text for element in tree.all("dt")]


def test_a_response_reads_as_it_was_written(tree: Tree) -> None:
    """Marks, numbers and folds change nothing in the words of a response or of a context."""
    written = next(test for test in showcase().tests if "rent and water" in test.id).records[0].sample
    texts = [element.text for element in tree.all(class_="text")]
    assert written.response in texts
    assert set(HANDBOOK) <= set(texts)


def test_long_contexts_are_complete() -> None:
    """Folding hides in the page, not from it."""
    run = crowd(3, length=9000)
    texts = [element.text for element in Tree(render_html(run)).all(class_="text")]
    for test in run.tests:
        assert set(test.records[0].sample.retrieved_contexts or ()) <= set(texts)


def test_every_record_says_metric_score_and_threshold(tree: Tree) -> None:
    """And the reason, the judge and what it cost."""
    lines = [" ".join(element.text.split()) for element in tree.all(class_="score")]
    assert any(
        line.startswith(
            "faithfulness 0.50 needs ≥ 0.80 2 suspicious verdicts flaky: the votes lie on both sides of the threshold"
        )
        and "2 of 4 claims are supported3 votes: 0.25, 0.90, 0.35; 2 of 3 fell short" in line
        and "Judge openai:gpt-5-mini · live: 2 calls, 1,642 tokens, $0.0031" in line
        for line in lines
    )
    assert any(line.startswith("faithfulness unscoredthe judge returned 2 verdicts for 3 claims") for line in lines)
    assert any("0.40 not held against a threshold" in line for line in lines)


def test_marks_are_told_apart_without_colour(tree: Tree) -> None:
    """Every mark carries a sign to see and a name to hear."""
    signs = {
        (element.text, element.attributes.get("aria-label")) for element in tree.all("a") if "n" not in element.classes
    }
    names = {label for _, label in signs if label}
    assert {"1, found", "2, not found", "1, evidence", "2, nearest passage"} <= names


def test_a_difference_marks_what_was_said_and_what_the_source_has(tree: Tree) -> None:
    """Replaced words are on both sides, added ones only in the response, missing ones only in the context."""
    assert {"six", "the", "hoses", "of the day"} <= {element.text for element in tree.all("del")}
    assert {"eight", "watering cans"} <= {element.text for element in tree.all("ins")}


def test_foreign_texts_find_their_own_direction(tree: Tree) -> None:
    """Every block of text from outside is left or right to left by what it holds."""
    blocks = [element for name in ("text", "claim", "reason", "why", "preview") for element in tree.all(class_=name)]
    assert blocks
    assert all(element.attributes.get("dir") == "auto" for element in blocks)


def test_an_empty_run_is_a_page_too() -> None:
    """It says that there is nothing."""
    tree = Tree(render_html(document(exit_status=5)))
    assert tree.all("h1")[0].text == "No test was recorded"
    assert tree.all("table") == []


def test_a_sample_without_anything_is_a_page_too() -> None:
    """A record may come without a sample, a reason, verdicts or a threshold."""
    tree = Tree(render_html(document(row("test_a", record(at_least=None, outcome="measured"), line=None))))
    assert tree.all(class_="score")[0].text.split()[:2] == ["quoted_spans_alignment", "1.00"]


def test_empty_texts_are_said_to_be_empty() -> None:
    """An empty response is seen as one, and so is an empty list of contexts."""
    empty = record(sample={"user_input": "Why?", "response": "", "retrieved_contexts": []})
    tree = Tree(render_html(document(row("test_a", empty))))
    assert [element.text for element in tree.all(class_="none") if element.tag in ("span", "p") and element.text] == [
        "(empty)",
        "None were given.",
    ]


def test_a_score_says_what_it_was_in_the_baseline() -> None:
    """Where it stands and in the list; what did not change says nothing."""
    tree = Tree(render_html(showcase(), comparison=compare_documents(showcase(), baseline())))
    told = [element.text.strip() for element in tree.all("span", class_="change")]
    assert [text for text in told if "was 0.90" in text] == [
        "faithfulness was 0.90, 0.40 worse",
        "was 0.90, 0.40 worse",
    ]
    assert told.count("not in the baseline") == 2
    run = showcase()
    assert Tree(render_html(run, comparison=compare_documents(run, run))).all("span", class_="change") == []
