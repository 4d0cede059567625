"""Elements of the page as values, and how they are packed."""

from __future__ import annotations

import base64
import json
import zlib

from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.report.page.elements import Element, Text, dumped, element, foreign, pack
from pytest_ragmetrics.report.page.visible import visible

_ANY = st.text(st.characters(exclude_categories=()))


def unpacked(packed: str) -> object:
    """Return what a script reads out of a packed text."""
    return json.loads(zlib.decompress(base64.b64decode(packed), -15))


@given(_ANY)
def test_texts_and_words_stay_apart(text: str) -> None:
    """A text from outside is a list of its own, whatever it holds; it is shown as it would be without packing."""
    node = element("p", {"title": text}, "own", foreign(text))
    assert unpacked(pack(dumped(node))) == ["p", {"title": visible(text)}, ["own", [visible(text)]]]


@given(_ANY)
def test_packed_texts_cannot_end_their_element(text: str) -> None:
    """There is no character in them that means anything in a page."""
    assert set(pack(dumped(foreign(text)))) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")


def test_children_are_flattened_and_nothing_left_out() -> None:
    """Iterables stand for their items at any depth, and nothing is nothing."""
    node = element("ul.a.b", None, (element("li", None, word) for word in "xy"), None, ("z", (foreign("q"), None)))
    assert node == Element(
        "ul", {"class": "a b"}, (Element("li", {}, ("x",)), Element("li", {}, ("y",)), "z", Text("q"))
    )


def test_attributes_that_are_false_are_not_there() -> None:
    """An attribute that is true is there without a value."""
    assert element("a", {"open": True, "hidden": False, "id": None, "tabindex": 0}).attributes == {
        "open": "",
        "tabindex": "0",
    }
