"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_ragmetrics.text.patterns import lazily

TEXT = "Ivy climbs.\nMoss\ncreeps."


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("findall", (TEXT,)),
        ("split", (TEXT,)),
        ("sub", ("-", TEXT)),
        ("subn", ("-", TEXT, 1)),
    ],
)
@pytest.mark.parametrize("flags", [0, re.MULTILINE, re.MULTILINE | re.IGNORECASE])
def test_a_lazy_pattern_does_what_the_compiled_one_does(method: str, given: tuple[Any, ...], flags: int) -> None:
    """With its flags, and the same the second time."""
    lazy, compiled = lazily("^[a-z]+", flags), re.compile("^[a-z]+", flags)
    for _ in range(2):
        assert getattr(lazy, method)(*given) == getattr(compiled, method)(*given)


@pytest.mark.parametrize("method", ["search", "match", "fullmatch"])
@pytest.mark.parametrize("text", ["moss", "moss grows", "the moss", ""])
def test_a_lazy_pattern_finds_what_the_compiled_one_finds(method: str, text: str) -> None:
    """From the place that is given, too."""
    spans = [getattr(it, method)(text, 0) for it in (lazily("[a-z]+"), re.compile("[a-z]+"))]
    assert spans[0] == spans[1] or spans[0].span() == spans[1].span()


def test_a_lazy_pattern_is_compiled_with_its_first_use() -> None:
    """A faulty one shows it."""
    faulty = lazily("(")
    assert faulty.pattern == "("
    with pytest.raises(re.error, match="unterminated"):
        faulty.search("")
    with pytest.raises(AttributeError, match="groups"):
        _ = lazily("a").groups
