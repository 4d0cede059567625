"""No text may take quadratic time: eight times the text takes about eight times as long, 64 times if it did."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_ragmetrics.text.alignment import align
from pytest_ragmetrics.text.quotations import find_quotations
from tests.growth import is_linear

SHORT, LONG = 5_000, 40_000

#: What is measured: functions of one text.
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "find_quotations": find_quotations,
    "align a span in the text": lambda text: align("the tide turned at midnight", [text]),
    "align the text as a span": lambda text: align(text, ["The tide turned at noon."]),
    "align the text with itself": lambda text: align(f"{text} zebra", [text]),
}

#: Texts are made by repeating these.
SHAPES = {
    "prose": "The tide turns at noon, “as it always does,” and the boys' boat isn't late. ",
    "opening marks": "“word ",
    "closing marks": "word” ",
    "straight marks": '"',
    "straight opening marks": ' "word',
    "straight marks between letters": 'w"w',
    "spaced marks": ' " ',
    "apostrophes": "’",
    "elisions and possessives": "'tis the boys' ",
    "nested marks": "“‘",
    "unclosed marks of many kinds": "„x «x “x ‘x ",
    "guillemets either way": " » a « b",
    "corner brackets": "「",
    "reopened paragraphs": "“a\n\n",
    "reopened lines": '"a\n',
    "inches": '5" ',
    "unclosed brackets": "([{<",
    "bracketed words": "[a] ",
    "ellipses": "… ... ",
    "emphasis": '*"',
    "no width": "\u200b",
    "spaces": '" ' + " " * 40,
    "line breaks": "\n",
    "indented line breaks": "\n  ",
    "fences": "```\n",
    "unclosed fences": "~~~~\n```x\n",
    "code spans": "`a` ",
    "latex marks": "``a ",
    "closed latex marks": "``a'' ",
    "ampersands": "&",
    "unfinished entities": "&quot",
    "entities": "&quot;",
    "less than": "<",
    "unclosed tags": "<a ",
    "unclosed attributes": "<a b=\"' ",
    "unclosed comments": "<!-- ",
    "unclosed code elements": "<code>",
    "quoted lines": '> "x\n',
    "quote markers": ">",
    "link targets": "](",
    "unclosed link titles": '](a "',
    "link definitions": '[a]: http://x "t\n',
    "unclosed JSON": '{"a":',
    "broken JSON": '{"a": [',
    "backslashes": "\\",
    "escaped marks": '\\"',
    "text without spaces": '他说"你好"',
}

#: Spans and contexts that are slow together.
PAIRS: dict[str, Callable[[int], tuple[str, object]]] = {
    "ellipses": lambda n: ("a b c \u2026 " * n + "q", "a b c " * n),
    "brackets": lambda n: ("[x] a " * n, "a " * n),
    "open brackets": lambda n: ("[ " * n + "a b c", "[ " * n),
    "repeated words": lambda n: ("a " * n + "a-a", "a " * (4 * n)),
    "repeated near misses": lambda n: ("row fast in may", "grow faster in may " * n),
    "one long word": lambda n: ("x" * n + "y", "x" * (8 * n)),
    "stars": lambda n: ("a " + "*" * n + " b d", "a " + "* " * n + " b c"),
    "broken words": lambda n: ("a-\n" * n + "b c", "a-\n" * n + "b-c"),
    "marks": lambda n: ("a" + "\u0301" * n + " b d", "a" + "\u0301" * n + " b c"),
    "ampersands": lambda n: ("&" * n + "a b d", "&#" * n + "a b c"),
    "surrogates and nulls": lambda n: ("\ud800\x00" * n + "a b d", "\ud800\x00\x1e" * n + "a b c"),
    "chunks": lambda n: ("abcd " * 40 + "e", ["abcd abcd abcd"] * n),
}


def text_of(shape: str, length: int) -> str:
    """Return a text of a shape and a length."""
    if shape == "growing runs of backticks":
        return "".join(f"{'`' * run} " for run in range(1, 500))[:length]
    return (SHAPES[shape] * (length // len(SHAPES[shape]) + 1))[:length]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [*SHAPES, "growing runs of backticks"])
def test_time_grows_with_the_text_and_not_with_its_square(shape: str, name: str) -> None:
    """Whatever a text is made of, no function of it takes more than its share of time for a longer one."""
    assert is_linear(lambda size: FUNCTIONS[name](text_of(shape, size)), short=SHORT, long=LONG)


@pytest.mark.parametrize("case", PAIRS)
def test_time_grows_with_span_and_contexts_only(case: str) -> None:
    """Spans and contexts made to be slow together are not."""
    assert is_linear(lambda size: align(*PAIRS[case](size)), short=1000, long=8000)


def test_quadratic_time_is_noticed() -> None:
    """The measure that these tests rely on tells the square of a size from the size."""
    assert not is_linear(lambda size: sum(range(size * size // 4)), short=1000, long=8000)
    assert is_linear(lambda size: sum(range(size * 250)), short=1000, long=8000)
