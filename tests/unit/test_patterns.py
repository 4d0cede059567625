"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from pytest_ragmetrics.core.lazy import lazily

TEXT = "Ivy climbs.\nMoss\ncreeps."


@pytest.mark.parametrize("flags", [0, re.MULTILINE, re.MULTILINE | re.IGNORECASE])
def test_a_lazy_pattern_does_what_the_compiled_one_does(flags: int) -> None:
    for method, given in ("findall", (TEXT,)), ("split", (TEXT,)), ("sub", ("-", TEXT)), ("subn", ("-", TEXT, 1)):
        lazy, compiled = lazily("^[a-z]+", flags), re.compile("^[a-z]+", flags)
        for _ in range(2):
            assert getattr(lazy, method)(*given) == getattr(compiled, method)(*given), method


@pytest.mark.parametrize("method", ["search", "match", "fullmatch"])
def test_a_lazy_pattern_finds_what_the_compiled_one_finds(method: str) -> None:
    for text in ("moss", "moss grows", "the moss", ""):
        for start in (0, 1):
            one, other = (getattr(it, method)(text, start) for it in (lazily("[a-z]+"), re.compile("[a-z]+")))
            assert (one and one.span()) == (other and other.span()), (text, start)


def test_a_lazy_pattern_is_compiled_with_its_first_use() -> None:
    faulty = lazily("(")
    assert faulty.pattern == "("
    with pytest.raises(re.error, match="unterminated"):
        faulty.search("")
    with pytest.raises(AttributeError, match="groups"):
        _ = lazily("a").groups
