"""Marks that cite sources by number, and the sentences they stand behind."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ragmetrics.text.citations import cited_sentences, find_citations

#: Code, powers, indexes, years, intervals, images, definitions.
NO_CITATIONS = [
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
    "Array[1.5] and [-1].",
    "It rained (2019), see (Part 3), (Figure 2), (Chapter 4), (Step 2), (3), (a) and (v. 2).",
    "Of [3 of 5] and [12 x 3] and (12 and 3) and [Figure 2, Table 3].",
    "It takes 5 sources 3 hours, and 3 documents 4 people. Fragment 12 of the vase. See doc 5 of the series.",
    "Open the source of 2019, or version 3 of the document; 3 sources and 4 documents.",
    "Document 3.2, context 3%, passage 12th, source 4a, documentation 2, resources 3, datasource 2",
    "Edit (config.json) or (README.md), e.g. (see below), or the handbook.pdf.",
    "`(Passage 3)` and `<cite>9</cite>` and `[handbook.pdf]`",
    "[handbook.pdf]: https://example.org",
]


CITATIONS: dict[str, list[tuple[int, ...]]] = {
    "Otters float [1].": [(1,)],
    "Otters float[1].": [(1,)],
    "Otters float [1, 3].": [(1, 3)],
    "Otters float [1,3;4].": [(1, 3, 4)],
    "Otters float [1-3].": [(1, 2, 3)],
    "Otters float [1–3, 7].": [(1, 2, 3, 7)],
    "Otters float [3-1].": [(1, 2, 3)],
    "Otters float [1 and 2].": [(1, 2)],
    "Otters float [1, 1].": [(1,)],
    "Otters float [1][2].": [(1,), (2,)],
    "Otters float ([1], [2]).": [(1,), (2,)],
    "Otters float [^1].": [(1,)],
    "Otters float [^1, ^2].": [(1, 2)],
    "Otters float [1](https://example.org/a_(b)).": [(1,)],
    "Otters [float][2] here.\n\n[2]: https://example.org": [(2,)],
    "Otters float \\[1\\].": [(1,)],
    "Otters float [Source 2].": [(2,)],
    "Otters float [doc 1, doc 3].": [(1, 3)],
    "Otters float [#4].": [(4,)],
    "水獺浮在水上［1］。鰻魚【2、3】。蟹〔4〕。": [(1,), (2, 3), (4,)],
    "水獺［１］": [(1,)],
    "Otters float¹ and dive.²": [(1,), (2,)],
    "Otters float¹² and dive.²,³": [(12,), (2, 3)],
    "Otters float<sup>1</sup> and dive<sup>2, 3</sup>.": [(1,), (2, 3)],
    "Otters **float** [1]!": [(1,)],
    "Otters float, wow![1] Yes![2](https://example.org)": [(1,), (2,)],
    "Vitamin C[1] helps (see below)¹.": [(1,), (1,)],
    # what points to nothing is a citation all the same
    "Otters float [0] [999].": [(0,), (999,)],
    # No list of sources: nothing was cited before, one line without a heading, the text goes on.
    "Findings:\n[1] Otters float.\n[2] They dive.": [(1,), (2,)],
    "Otters float [1].\n[1] They dive.": [(1,), (1,)],
    "Otters float [1].\n[1] They dive.\n[2] They sleep.\nThat is all.": [(1,), (1,), (2,)],
}


def test_citations_are_found() -> None:
    assert {text: [citation.numbers for citation in find_citations(text)] for text in CITATIONS} == CITATIONS
    assert [text for text in NO_CITATIONS if find_citations(text)] == []


CITED: dict[str, list[tuple[str, tuple[int, ...]]]] = {
    "Otters float [1]. They dive [2].": [("Otters float.", (1,)), ("They dive.", (2,))],
    # behind the full stop, too
    "Otters float. [1] They dive.[2] Why?": [("Otters float.", (1,)), ("They dive.", (2,)), ("Why?", ())],
    "Otters float.[1]They dive.": [("Otters float.", (1,)), ("They dive.", ())],
    "Otters [2, 1] float [1][3].": [("Otters float.", (2, 1, 3))],
    "Otters float [1], [2] and [3].": [("Otters float.", (1, 2, 3))],
    "Otters float ([1], [2]).": [("Otters float.", (1, 2))],
    "Otters float.\n[1]\nThey dive.": [("Otters float.", (1,)), ("They dive.", ())],
    "[1] Otters float.\n[2] They dive.": [("Otters float.", (1,)), ("They dive.", (2,))],
    "- [1] Otters float.\n- They dive [2].": [("Otters float.", (1,)), ("They dive.", (2,))],
    "[1] says that otters float.": [("[1] says that otters float.", (1,))],
    "[1][2]\nOtters float.": [("Otters float.", (1, 2))],
    "水獺浮在水上。[1]鰻魚游泳［2］。": [("水獺浮在水上。", (1,)), ("鰻魚游泳。", (2,))],
    "浮[1]水。": [("浮水。", (1,))],
    "Otters[1]float.": [("Otters float.", (1,))],
    "Otters [float](https://example.org) [1](https://example.org).": [("Otters [float](https://example.org).", (1,))],
    "": [],
    "[1][2]": [],
}


#: A source that a sentence names is cited, and stays a part of it.
NAMED: dict[str, tuple[int, ...]] = {
    "According to Passage 2, otters float.": (2,),
    "Passages 1, 2 and 3 say that otters float.": (1, 2, 3),
    "In passage 1, 2 otters float.": (1,),
    "Passage 2 and 15 minutes of patience.": (2,),
    "Laut Quelle 3 schwimmen Otter.": (3,),
    "Selon la source 2, les loutres flottent.": (2,),
    "Согласно источнику 2, выдры плавают.": (2,),
    "根据来源2，水獭浮在水上。": (2,),
    "資料3によると、ラッコは浮く。": (3,),
}


def test_sentences_with_what_they_cite() -> None:
    expected = CITED | {text: [(text, numbers)] for text, numbers in NAMED.items()}
    assert {text: [(it.text, it.numbers) for it in cited_sentences(text)] for text in expected} == expected


@pytest.mark.parametrize(
    ("mark", "numbers"),
    [
        *(("(Passage 3)", (3,)), ("( passage 3)", (3,)), ("(Passage 2, step 7)", (2,))),
        *(("(Passage 2, p. 3-5)", (2,)), ("(Passage 1, Passage 3)", (1, 3)), ("(see Passages 1 and 3)", (1, 3))),
        *(("(as said in Passage 2)", (2,)), ("(Source 9)", (9,)), ("(Source: 9)", (9,))),
        *(("(Document 1, 2)", (1, 2)), ("(Context 2; Context 3)", (2, 3)), ("[1, 2, and 3]", (1, 2, 3))),
        *(("[1 und 2]", (1, 2)), ("[1 et 2]", (1, 2)), ("[1, 2 y 4]", (1, 2, 4)), ("[2, p. 3]", (2,))),
        *(("[2, pp. 3-5]", (2,)), ("[2, S. 12]", (2,)), ("[1, 2, § 4]", (1, 2)), ("[chunk_3]", (3,))),
        *(("[doc-2]", (2,)), ("[Doc 3]", (3,)), ("[ID:9]", (9,)), ("[S1]", (1,)), ("[^9^]", (9,))),
        *(("[source: 2]", (2,)), ("[cite: 1, 2]", (1, 2)), ("[web:1]", (1,)), ("[Document no. 3]", (3,))),
        *(("【9†source】", (9,)), ("【3:0†source】", (1,)), ("【4:2†handbook.pdf】", (3,)), ("【7†L1-L5】", (7,))),
        *(("<cite>9</cite>", (9,)), ("<cite>Passage 2</cite>", (2,)), ("<cite>1, 2</cite>", (1, 2))),
        *(("(Quelle 2)", (2,)), ("(vgl. Quellen 1 und 2)", (1, 2)), ("(source 3)", (3,))),
        *(("(voir document n° 3)", (3,)), ("(Fuente 1)", (1,)), ("(fuentes 1 y 3)", (1, 3)), ("(Fonte 2)", (2,))),
        *(("(trecho 2)", (2,)), ("(Bron 1 en 2)", (1, 2)), ("(Źródło 2)", (2,)), ("(Zdroj 2)", (2,))),
        *(("(Källa 2)", (2,)), ("(Kilde 2)", (2,)), ("(Lähde 2)", (2,)), ("(Kaynak 2)", (2,))),
        *(("(Источник 2)", (2,)), ("(см. источники 1 и 2)", (1, 2)), ("(Джерело 3)", (3,)), ("(Πηγή 2)", (2,))),
        *(("(المصدر 2)", (2,)), ("(מקור 2)", (2,)), ("(स्रोत 2)", (2,)), ("(Nguồn 1)", (1,)), ("【来源2】", (2,))),
        *(("（来源2、3）", (2, 3)), ("（資料２）", (2,)), ("(출처 2)", (2,)), ("(แหล่งที่มา 2)", (2,))),
    ],
)
def test_citations_as_people_write_them(mark: str, numbers: tuple[int, ...]) -> None:
    (citation,) = find_citations(f"Otters float {mark}.")
    assert citation.numbers == numbers
    assert [sentence.text for sentence in cited_sentences(f"Otters float {mark}.")] == ["Otters float."]


IDS = ["docs/handbook.pdf", "faq.md#2", "chunk_7", "kb-12", "docs/handbook.pdf"]


@pytest.mark.parametrize(
    ("mark", "numbers", "unknown"),
    [
        ("[handbook.pdf]", (1, 5), ()),
        ("[Handbook.pdf, p. 3]", (1, 5), ()),
        ("【faq.md】", (2,), ()),
        ("(Source: faq.md)", (2,), ()),
        ("(see faq.md)", (2,), ()),
        ("[faq.md](https://example.org/faq)", (2,), ()),
        ("[chunk_7, kb-12]", (3, 4), ()),
        ("(chunk 7)", (3,), ()),
        ("[other.pdf]", (), ("other.pdf",)),
        ("(Quelle: other.pdf)", (), ("other.pdf",)),
        ("[kb-13]", (), ("kb-13",)),
        ("[chunk_2; kb-12]", (4,), ("chunk_2",)),
        ("[2]", (2,), ()),
    ],
)
def test_names_are_looked_up_in_the_ids(mark: str, numbers: tuple[int, ...], unknown: tuple[str, ...]) -> None:
    """A file without its path, an id however it is punctuated, all contexts of one file; numbers are places."""
    (citation,) = find_citations(f"Otters float {mark}.", IDS)
    assert (citation.numbers, citation.unknown, citation.unchecked) == (numbers, unknown, ())


@pytest.mark.parametrize("ids", [(), (7, 12), ("kb-12",)])
def test_a_file_is_not_compared_with_what_is_no_file(ids: tuple[str | int, ...]) -> None:
    """Whether it is one of the contexts is not known; a number behind ID: is an id where there is one."""
    (citation,) = find_citations("Otters float [handbook.pdf].", ids)
    assert (citation.numbers, citation.unknown, citation.unchecked) == ((), (), ("handbook.pdf",))
    assert [citation.numbers for citation in find_citations("[ID:12] [12]", [7, 12])] == [(2,), (12,)]


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
    text = f"Otters float [1]. They dive.{listed}"
    assert [citation.numbers for citation in find_citations(text)] == [(1,)]
    assert [sentence.text for sentence in cited_sentences(text)] == ["Otters float.", "They dive."]


@given(st.text(alphabet="ab .\n[]1２,-–^¹²(）(`<sup>/!:水。来源S†", max_size=60))
@example(" ² a")
def test_places_are_those_of_the_text(text: str) -> None:
    citations = find_citations(text)
    ends = [0, *(citation.end for citation in citations)]
    assert all(end <= citation.start < citation.end for end, citation in zip(ends, citations, strict=False))
    numbers = {number for citation in citations for number in citation.numbers}
    sentences = cited_sentences(text)
    for sentence in sentences:
        assert 0 <= sentence.start < sentence.end <= len(text)
        assert not {text[sentence.start], text[sentence.end - 1]} & set(" \n")
    assert not sentences or {number for sentence in sentences for number in sentence.numbers} == numbers
