"""Documents are cut into passages that stand in them word for word."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.cli.generate.documents import LONGEST, split_passages

FILLER = "The tide turns twice a day and nobody is asked. " * 8


def cut(text: str, suffix: str = ".md") -> list[str]:
    return [text[span.start : span.end] for span in split_passages(text, suffix)]


def test_short_sections_share_a_passage() -> None:
    text = "# Harbour\n\nShips wait.\n\n## Crane ##\n\n```\n# no heading\n```\n\nMuseum\n------\n\nIt opens at noon."
    assert cut(f"\n\n  {text}\n\n") == [text]
    # Line ends, byte order marks and rare characters keep their places.
    text = "\ufeff# Hafen \U0001f6a2\r\n\r\nDer Kran steht seit 1887.\r\nEr hob Holz.\x85\u2028Ende\x0b\r\n"
    assert cut(text) == [text[1:].strip()]


def test_a_heading_begins_a_passage_and_stays_with_its_paragraph() -> None:
    text = f"# Harbour\n\n{FILLER}\n\n## Crane\n\n{FILLER}\n\n### Arm\n\n{FILLER}\n\n## Museum\n\n{FILLER}\n"
    assert [passage.partition("\n")[0] for passage in cut(text)] == ["# Harbour", "## Crane", "### Arm", "## Museum"]
    assert [span.heading for span in split_passages(text, ".md")] == ["", "Harbour", "Harbour > Crane", "Harbour"]


@pytest.mark.parametrize(
    ("suffix", "text", "headings"),
    [
        (".md", f"Top\n===\n\n{FILLER}\n\nSub\n---\n\n{FILLER}\n\n{FILLER * 4}", ["", "Top", "Top > Sub"]),
        (".md", f"```\n# code\n```\n\n{FILLER}\n\n{FILLER * 4}", ["", ""]),
        (".md", f"~~~~\n```\n# code\n~~~~\n\n# Top\n{FILLER * 4}", ["", "Top"]),
        (".md", f"# Top #\n\n{FILLER * 8}", ["", "Top", "Top"]),
        (".md", f"two lines\nno title\n---\n{FILLER * 4}", ["", ""]),
        (".rst", f"===\nTop\n===\n\n{FILLER}\n\nSub\n~~~\n\n{FILLER * 4}", ["", "Top", "Top > Sub"]),
        (".rst", f"# no heading\n\n{FILLER * 8}", ["", "", ""]),
        (".txt", f"Top\n===\n\n{FILLER * 8}", ["", "", ""]),
    ],
)
def test_headings_are_those_of_the_kind_of_file(suffix: str, text: str, headings: list[str]) -> None:
    assert [span.heading for span in split_passages(text, suffix)] == headings


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    sentences = [f"Ship {number} carried timber from the north to the harbour." for number in range(400)]
    passages = cut(" ".join(sentences), ".txt")
    assert len(passages) > 5
    assert all(len(passage) <= LONGEST for passage in passages)
    assert " ".join(passages).split(". ") == " ".join(sentences).split(". ")
    assert all(re.fullmatch(r"Ship .*\.", passage) for passage in passages)


LONG = st.just("One sentence. " * 150)
PARTS = st.sampled_from(
    ["# A\n", "## B #\r\n", "===\n", "---\n", "~~~\n", "```\n", "\n", "\r\n", "\x0b", "\u2028", "\ufeff", "\U0001f6a2 "]
)


@given(
    st.lists(PARTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | LONG, max_size=20),
    st.sampled_from([".md", ".rst", ".txt"]),
)
def test_any_text_is_cut_at_its_own_places(parts: list[str], suffix: str) -> None:
    text = "".join(parts)
    at = 0
    for span in split_passages(text, suffix):
        passage = text[span.start : span.end]
        assert at <= span.start < span.end <= len(text)
        assert len(passage) <= LONGEST
        assert passage == passage.strip()
        assert not any(map(str.isalnum, text[at : span.start]))
        at = span.end
    assert not any(map(str.isalnum, text[at:]))
