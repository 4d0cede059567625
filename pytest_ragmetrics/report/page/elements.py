"""Elements of the page as values: one layout, printed for reading without scripts, packed for reading with them.

Packed it is JSON that keeps words of the page (strings), texts from outside (a list of one string) and elements
(a list of tag, attributes and children) apart, so that a script builds them without ever taking a text for markup.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from pytest_ragmetrics.report.page.visible import visible

_RAW_DEFLATE = -15


class Text(NamedTuple):
    """A text from outside, with escapes for what cannot be seen in it."""

    text: str


class Element(NamedTuple):
    """An element; its children are elements, texts from outside and words of the page's own."""

    tag: str
    attributes: dict[str, str]
    children: tuple[Node, ...]


Node: TypeAlias = str | Text | Element
Children: TypeAlias = "Node | Iterable[Children] | None"


def element(
    name: str, attributes: Mapping[str, str | float | bool | None] | None = None, *children: Children
) -> Element:
    """Return an element; ``name`` is its tag and its classes, as in ``"span.n.found"``.

    Attributes of ``None`` or ``False`` are left out, ``True`` is the empty one. Children of ``None`` are left out,
    and iterables of children stand for their items.

    >>> element("p.line", {"dir": "auto", "id": None}, "1 of ", (foreign(word) for word in ["2"]), None)
    Element(tag='p', attributes={'class': 'line', 'dir': 'auto'}, children=('1 of ', Text(text='2')))
    """
    tag, classes = _taken_apart(name)
    shown = {"class": classes} if classes else {}
    for key, value in (attributes or {}).items():
        if value is not None and value is not False:
            shown[key] = "" if value is True else visible(str(value))
    nodes: list[Node] = []
    _gather(children, nodes)
    return Element(tag, shown, tuple(nodes))


@lru_cache(maxsize=256)
def _taken_apart(name: str) -> tuple[str, str]:
    tag, _, classes = name.partition(".")
    return tag, classes.replace(".", " ")


def _gather(children: Iterable[Children], nodes: list[Node]) -> None:
    for child in children:
        if isinstance(child, (str, Text, Element)):
            nodes.append(child)
        elif child is not None:
            _gather(child, nodes)


def foreign(text: str) -> Text:
    r"""Return a text from outside as it is shown.

    >>> foreign("bell \a")
    Text(text='bell \\x07')
    """
    return Text(visible(text))


def dumped(value: object) -> str:
    """Return a value as the JSON that the script reads."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def pack(text: str) -> str:
    """Return a text compressed, in characters that can stand inside any element; same text, same characters."""
    compressor = zlib.compressobj(6, zlib.DEFLATED, _RAW_DEFLATE)
    return base64.b64encode(compressor.compress(text.encode()) + compressor.flush()).decode("ascii")
