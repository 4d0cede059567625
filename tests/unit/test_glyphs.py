"""One table spells the glyphs that texts are read by."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from unicodedata import category

import pytest

import pytest_ragmetrics
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.quotes.quotations import find_quotations

PACKAGE = Path(pytest_ragmetrics.__file__).parent
#: Quotation marks, dashes, brackets, spaces and characters of layout, as Unicode has them.
CATEGORIES = frozenset(("Pd", "Ps", "Pe", "Pi", "Pf", "Zs", "Zl", "Zp", "Cf"))
#: Marks that Unicode puts with letters and with other punctuation.
OTHERS = frozenset(
    unicode.QUOTES + unicode.PRIMES + unicode.APOSTROPHES + unicode.MINUS + unicode.ELLIPSES + unicode.STOPS
    + unicode.WIDE_STOP + unicode.COMMAS + unicode.SEMICOLONS + unicode.COLONS + unicode.BULLETS + unicode.NUMBER_MARKS
    + unicode.CURRENCIES + unicode.PERCENTS + unicode.TATWEEL
)  # fmt: skip
#: By the beginning of a path: what is written into a report or a message, and what a spreadsheet takes for a formula,
#: and the tags that the flags of England, Scotland and Wales are written with.
EXCEPTIONS = {
    "text/unicode.py": None,
    "report/": "\u2026\u2013\u2212\u00a0",
    "runs/wording/": "\u2026\u2013\u2212\u00a0",
    "cache/nearest.py": "\u2026",
    "judges/transports/values.py": "\u2026",
    "evaluation/table.py": "\uff0d",
    "judges/suspicion.py": "\U000e0020\U000e007e\U000e007f",
}
_MAY_SPELL = re.compile(r"[^\x00-\x7f]|\\[xuU]")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")


def texts_of(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings, escapes in raw ones resolved."""
    statements = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    docstrings = {id(value) for value in statements if isinstance(value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield _ESCAPE.sub(lambda escape: chr(int(next(filter(None, escape.groups())), 16)), node.value)


def glyphs_of(text: str) -> set[str]:
    return {char for char in text if not char.isascii() and (char in OTHERS or category(char) in CATEGORIES)}


def test_only_the_table_spells_glyphs() -> None:
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        allowed = next((glyphs for start, glyphs in EXCEPTIONS.items() if name.startswith(start)), "")
        source = path.read_text("utf-8")
        if allowed is not None and _MAY_SPELL.search(source):
            texts = "".join(texts_of(ast.parse(source)))
            assert (name, "".join(glyphs_of(texts) - {*allowed})) == (name, "")


def test_the_table_has_all_white_space() -> None:
    assert set(unicode.WHITE_SPACE) == {char for char in map(chr, range(0x110000)) if char.isspace()}


@pytest.mark.parametrize("opening", [mark for mark in unicode.QUOTATION_MARKS if mark not in unicode.CLOSING_QUOTES])
def test_a_mark_on_a_line_of_the_table_is_read_like_its_first(opening: str) -> None:
    closing = {
        unicode.LOW_DOUBLE: unicode.LEFT_DOUBLE,
        unicode.LOW_SINGLE: unicode.LEFT_SINGLE,
        unicode.LEFT_CORNER: unicode.RIGHT_CORNER,
        unicode.LEFT_WHITE_CORNER: unicode.RIGHT_WHITE_CORNER,
        unicode.LEFT_RAISED: unicode.RIGHT_RAISED,
    }.get(opening, opening)
    for mark in (opening, *unicode.QUOTATION_MARKS[opening]):
        assert [found.text for found in find_quotations(f"It said {mark}a tide of ink{closing}.")] == ["a tide of ink"]
