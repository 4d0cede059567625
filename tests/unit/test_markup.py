"""Blanking out what is not prose. In the expected texts · stands for the character of no width and ¶ for a break."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.text.markup import lift_block_quotes, mask_markup

PIECES = [*"`~<>!-/[](){}\"':\\&;= \nab1#", "```", "<!--", "</p>", "<code>", "](", '{"a":', "&nbsp;", ">>>", "\n\n"]


def masked(text: str) -> str:
    return mask_markup(text).replace("\u2060", "·").replace("\n", "¶").replace("\u00a0", "_")


MASKED = {
    # Code spans become letters, blocks of code line breaks; LaTeX quotation marks are not code.
    "plain `code` text": "plain xxxxxx text",
    "``a ` b`` `c": "xxxxxxxxx ·c",
    "`a\nb` and `c\n\nd`": "xxxxx and ·c¶¶d·",
    r"\`a` b`": r"\`axxxx",
    "``quoted'' and ``more''": "``quoted'' and ``more''",
    "``it's `so''' and ``more\"": "``it's `so''' and ``more\"",
    "`so it is' and `so,' and `a\nb.'": "`so it is' and `so,' and `a¶b.'",
    "`it's` and (`a', \"`b'\", *`c'*)": "xxxxxx and (`a', \"`b'\", *`c'*)",
    "`f('a')` and `echo 'b' ` and x`y'": "xxxxxxxx and xxxxxxxxxxx and x·y'",
    "one ` z' and so on": "one · z' and so on",
    "`don't go": "·don't go",
    "``x = ''`` and ``\"a\"``": "xxxxxxxxxx and xxxxxxx",
    "a\n```py\nb\n```\nc": "a" + "¶" * 13 + "c",
    "~~~~\nb\n~~~\n~~~~\nc": "¶¶¶¶¶¶¶¶¶¶¶¶¶¶¶¶c",
    "a\n```\nnever closed": "a¶" + "¶" * 16,
    "Run ```x\ny\n```\nz": "Run ¶¶¶¶¶¶¶¶¶¶¶z",
    "1. ```\n   a\n   ```\nb": "¶" * 17 + "¶¶b",
    ">>> f(1)\n1": "¶¶¶¶¶¶¶¶¶1",
    # Tags and comments lose their width, code elements become letters, block elements line breaks; quotations stay.
    'a <b title="x > y">c</b> d': "a ·················c···· d",
    "a<br/>b <https://example.org> c": "a·····b ····················· c",
    "<p>a</p>": "¶¶¶a¶¶¶¶",
    '<q>a</q> <Q cite="b > c">d</Q> <code><q></code>': "<q>a</q> <Q             >d</Q> xxxxxxxxxxxxxxxx",
    "a <!-- b --> c <!-- d": "a ·········· c ···· d",
    "<code>a</code> <TT>b</TT>": "xxxxxxxxxxxxxx xxxxxxxxxx",
    "<code>a <b>c</b>": "······a ···c····",
    "a < b and c > d, e<3": "a < b and c > d, e<3",
    "a&nbsp;b&#160;c&#xA0;d&amp;": "a______b______c______d&amp;",
    # The text of a link stays, its target and its title do not.
    '[a](u "b") c': "[a]" + "·" * 7 + " c",
    "![a](u (b)) c": "![a]" + "·" * 7 + " c",
    "[a](u_(v) 'b')": "[a]···········",
    "[a](not a link)": "[a](not a link)",
    '[1]: https://x.org "b"\nc': "[" + "·" * 21 + "¶c",
    "[^1]: a note": "[^1]: a note",
    # Of valid JSON the values that are strings stay, each a paragraph; escaped line breaks become real ones.
    '{"a": "b c"}': "¶¶¶¶¶¶¶b c¶¶",
    r'{"a": "b\nc\td"}': "¶¶¶¶¶¶¶b¶ c  d¶¶",
    'see {"a": [1, "b"]} c': "see ¶¶¶¶¶¶¶¶¶¶¶b¶¶¶ c",
    '["a", "b"]': "¶¶a¶¶¶¶b¶¶",
    r'"a \"b\" c"': r"¶a \"b\" c¶",
    '"a b c"': '"a b c"',
    '{"a": b} {"c": "d"}': '{"a": b} ¶¶¶¶¶¶¶d¶¶',
    '{"a": {"b": ': '{"a": {"b": ',
    "{a: 'b'}": "{a: 'b'}",
}


def test_what_is_no_prose_is_blanked_out() -> None:
    assert {text: masked(text) for text in MASKED} == MASKED


@pytest.mark.parametrize("text", ['{"a":' * 5000, "[" * 5000, '{"a":' + "9" * 5000 + "}"])
def test_json_that_python_cannot_read_stays(text: str) -> None:
    assert len(mask_markup(text)) == len(text)


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_masking_keeps_every_offset(text: str) -> None:
    result = mask_markup(text)
    assert len(result) == len(text)
    assert all(new in (old, "x", "\u2060", "\n", " ", "\u00a0") for old, new in zip(text, result, strict=True))


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("> a\n> b", ["a\n  b"]),
        ("a\n> b\nc\n\n> d\n\n> e", ["b", "d", "e"]),
        (">a\n>\n> b\n>", ["a\n \n  b"]),
        ("> a\n> — B", ["a"]),
        ("> a\n>\n> -- B\n>", ["a"]),
        ("> — a\n> — b", ["— a\n  — b"]),
        ("> — a", ["— a"]),
        ("- > a\n  > b\n- c", ["a\n    b"]),
        ("> > a\n>> b", ["a\n   b"]),
        (">\n> ", []),
        ("> [!TIP]\n> a", []),
        ("a > b", []),
    ],
)
def test_block_quotes_are_lifted(text: str, quoted: list[str]) -> None:
    lifted, blocks = lift_block_quotes(text)
    assert len(lifted) == len(text)
    assert [lifted[block.first : block.last] for block in blocks] == quoted
    assert all(block.start <= block.first < block.last <= block.end for block in blocks)
