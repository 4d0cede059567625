"""Marks that cite sources by number, and the sentences they stand behind."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ragmetrics.text.citations import cited_sentences, find_citations
from tests.growth import is_linear


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Otters float [1].", [(1,)]),
        ("Otters float[1].", [(1,)]),
        ("Otters float [1, 3].", [(1, 3)]),
        ("Otters float [1,3;4].", [(1, 3, 4)]),
        ("Otters float [1-3].", [(1, 2, 3)]),
        ("Otters float [1–3, 7].", [(1, 2, 3, 7)]),
        ("Otters float [3-1].", [(1, 2, 3)]),
        ("Otters float [1 and 2].", [(1, 2)]),
        ("Otters float [1, 1].", [(1,)]),
        ("Otters float [1][2].", [(1,), (2,)]),
        ("Otters float ([1], [2]).", [(1,), (2,)]),
        ("Otters float [^1].", [(1,)]),
        ("Otters float [^1, ^2].", [(1, 2)]),
        ("Otters float [1](https://example.org/a_(b)).", [(1,)]),
        ("Otters [float][2] here.\n\n[2]: https://example.org", [(2,)]),
        ("Otters float \\[1\\].", [(1,)]),
        ("Otters float [Source 2].", [(2,)]),
        ("Otters float [doc 1, doc 3].", [(1, 3)]),
        ("Otters float [#4].", [(4,)]),
        ("水獺浮在水上［1］。鰻魚【2、3】。蟹〔4〕。", [(1,), (2, 3), (4,)]),
        ("水獺［１］", [(1,)]),
        ("Otters float¹ and dive.²", [(1,), (2,)]),
        ("Otters float¹² and dive.²,³", [(12,), (2, 3)]),
        ("Otters float<sup>1</sup> and dive<sup>2, 3</sup>.", [(1,), (2, 3)]),
        ("Otters **float** [1]!", [(1,)]),
        ("Otters float, wow![1] Yes![2](https://example.org)", [(1,), (2,)]),
        ("Vitamin C[1] helps (see below)¹.", [(1,), (1,)]),
        # what points to nothing is a citation all the same
        ("Otters float [0] [999].", [(0,), (999,)]),
    ],
)
def test_citations_are_found(text: str, numbers: list[tuple[int, ...]]) -> None:
    """In every form, with their numbers as written."""
    assert [citation.numbers for citation in find_citations(text)] == numbers


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No marks at all.",
        "Take `a[0]` and `b[1]`.",
        "```\nx = y[1]\n```",
        "It is a[0] or to_do[1] or _x[2].",
        "It was so [sic] in Smith [2021] and [12345].",
        "A number in [0, 1] or [0-9], pages [100-250].",
        "An area of 5 m² or 10 km², 10³ and 10⁻³ or x⁴, (a+b)², s⁻¹.",
        "The isotope ¹⁴C, and <sup>14</sup>C.",
        "A picture ![1](otter.png).",
        "[ ] to do, [x] done, [1 more], [], [a1].",
        "[1]: https://example.org",
        "[^1]: A note.",
        '{"pages": [1, 2]}',
        "【4:0†source】",
        "Array[1.5] and [-1].",
    ],
)
def test_what_is_no_citation(text: str) -> None:
    """Code, powers, indexes, years, intervals, images, definitions."""
    assert not find_citations(text)


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("Otters float [1]. They dive [2].", [("Otters float.", (1,)), ("They dive.", (2,))]),
        # behind the full stop, too
        ("Otters float. [1] They dive.[2] Why?", [("Otters float.", (1,)), ("They dive.", (2,)), ("Why?", ())]),
        ("Otters float.[1]They dive.", [("Otters float.", (1,)), ("They dive.", ())]),
        ("Otters [2, 1] float [1][3].", [("Otters float.", (2, 1, 3))]),
        ("Otters float [1], [2] and [3].", [("Otters float.", (1, 2, 3))]),
        ("Otters float ([1], [2]).", [("Otters float.", (1, 2))]),
        ("Otters float.\n[1]\nThey dive.", [("Otters float.", (1,)), ("They dive.", ())]),
        ("[1] Otters float.\n[2] They dive.", [("Otters float.", (1,)), ("They dive.", (2,))]),
        ("- [1] Otters float.\n- They dive [2].", [("Otters float.", (1,)), ("They dive.", (2,))]),
        ("[1] says that otters float.", [("[1] says that otters float.", (1,))]),
        ("[1][2]\nOtters float.", [("Otters float.", (1, 2))]),
        ("水獺浮在水上。[1]鰻魚游泳［2］。", [("水獺浮在水上。", (1,)), ("鰻魚游泳。", (2,))]),
        ("浮[1]水。", [("浮水。", (1,))]),
        ("Otters[1]float.", [("Otters float.", (1,))]),
        (
            "Otters [float](https://example.org) [1](https://example.org).",
            [("Otters [float](https://example.org).", (1,))],
        ),
        ("", []),
        ("[1][2]", []),
    ],
)
def test_sentences_with_what_they_cite(text: str, cited: list[tuple[str, tuple[int, ...]]]) -> None:
    """The text is that without marks, the numbers stand there once, in order."""
    assert [(sentence.text, sentence.numbers) for sentence in cited_sentences(text)] == cited


SOURCES = "\n\n## Sources\n[1] The handbook.\n\n[2] The manual, p. 3."


@pytest.mark.parametrize(
    "listed",
    [
        SOURCES,
        "\n\nSources:\n\n[1] The handbook.",
        "\n\n**Sources**\n- [1] The handbook.\n- [2] The manual.",
        "\n\n出典：\n【1】 ハンドブック",
        "\n\n[1] The handbook.\n[4] The manual.\n",
        "\n\n[^1]: The handbook.",
        "\n\n[1]: https://example.org",
    ],
)
def test_a_list_of_sources_is_left_out(listed: str) -> None:
    """It says what the numbers mean; it is no sentence and cites nothing."""
    text = f"Otters float [1]. They dive.{listed}"
    assert [citation.numbers for citation in find_citations(text)] == [(1,)]
    assert [sentence.text for sentence in cited_sentences(text)] == ["Otters float.", "They dive."]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        # nothing was cited before
        ("Findings:\n[1] Otters float.\n[2] They dive.", 2),
        # one line without a heading is a sentence
        ("Otters float [1].\n[1] They dive.", 2),
        # the text goes on
        ("Otters float [1].\n[1] They dive.\n[2] They sleep.\nThat is all.", 3),
    ],
)
def test_what_only_looks_like_a_list_of_sources(text: str, count: int) -> None:
    """Statements with the mark in front are statements."""
    assert len(find_citations(text)) == count


@given(st.text(alphabet="ab .\n[]1２,-–^¹²(）(`<sup>/!:水。", max_size=60))
@example(" ² a")
def test_places_are_those_of_the_text(text: str) -> None:
    """Citations stand in order and do not overlap; sentences begin and end where they do in the text."""
    citations = find_citations(text)
    ends = [0, *(citation.end for citation in citations)]
    assert all(end <= citation.start < citation.end for end, citation in zip(ends, citations, strict=False))
    numbers = {number for citation in citations for number in citation.numbers}
    sentences = cited_sentences(text)
    for sentence in sentences:
        assert 0 <= sentence.start < sentence.end <= len(text)
        assert not text[sentence.start].isspace()
        assert not text[sentence.end - 1].isspace()
    if sentences:
        assert {number for sentence in sentences for number in sentence.numbers} == numbers


HOSTILE = ["[", "[1", "[1](", "[1]", "[1, ", "\n[1] x", "[1-99]", "<sup>", "<sup>1</sup>", "¹", "[source 1, ", "_[1]"]


@pytest.mark.parametrize("piece", [*HOSTILE, "a [1].\n"])
def test_time_grows_with_the_text(piece: str) -> None:
    """However many marks there are, or beginnings of them; finding the citations is the first part of it."""
    assert is_linear(lambda size: cited_sentences((piece * size)[:size]), short=2_500, long=20_000)
