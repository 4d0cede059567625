"""No text may take quadratic time: four times the text takes about four times as long, sixteen times if it did."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_ragmetrics.text.alignment import align
from pytest_ragmetrics.text.quotations import find_quotations
from tests.growth import seconds

SHORT, LONG = 25_000, 100_000
#: More than four for what a larger text costs in memory, far less than sixteen.
MOST = 8.0
ATTEMPTS = 5
#: A shorter time than this cannot be measured well (seconds).
LEAST = 0.0005
ENOUGH = 0.5

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


def text_of(shape: str, length: int) -> str:
    """Return a text of a shape and a length."""
    if shape == "growing runs of backticks":
        return "".join(f"{'`' * run} " for run in range(1, 500))[:length]
    return (SHAPES[shape] * (length // len(SHAPES[shape]) + 1))[:length]


def best_seconds(function: Callable[[str], object], text: str) -> float:
    """Return the least processor time of several calls, of fewer where one takes long enough to be measured well."""
    times: list[float] = []
    while len(times) < ATTEMPTS and sum(times) < ENOUGH:
        times.append(seconds(lambda _: function(text), len(text)))
    return max(min(times), LEAST)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [*SHAPES, "growing runs of backticks"])
def test_time_grows_with_the_text_and_not_with_its_square(shape: str, name: str) -> None:
    """The best time for a text four times as long is less than eight times the best time for the short one."""
    function, short, long = FUNCTIONS[name], text_of(shape, SHORT), text_of(shape, LONG)
    least = best_seconds(function, short)
    best = float("inf")
    for _ in range(ATTEMPTS):
        best = min(best, seconds(lambda _: function(long), LONG))
        if best / least < MOST:
            break
    assert best / least < MOST
