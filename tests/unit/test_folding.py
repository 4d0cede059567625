"""Folding texts, their comparison keys, and reading markup: what is overlooked, and the way back to the original."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.text.markup import Readable, as_readable
from pytest_ragmetrics.text.quotes import search
from pytest_ragmetrics.text.quotes.ellipses import may_be_inserted
from pytest_ragmetrics.text.quotes.folding import FOLDS, Tolerance, agree, describe, fold
from pytest_ragmetrics.text.quotes.search import SourceIndex, comparison_key
from pytest_ragmetrics.text.words import stands_alone

ALL = FOLDS | Tolerance.PUNCTUATION
#: Letters, marks and signs that change their length, or stand for others, when they are folded.
TRICKY = st.text(
    alphabet="aBſßẞİıΣς\u0345\u0301ﬁ½²①…—-\u00ad\u200b\u00a0 \n\t\r'’“«\"`*_>&;#.,[]()x1２한か\u3099漢、\ud800\x00\x1e"
)


FOLDED = {
    "Two  words\n\tand more": "two words and more",
    "**bold** and _italic_ and ~~gone~~ and `code`": "bold and italic and gone and code",
    "a *b*c*d* e": "a bcd e",
    "2*3 and 2 * 3 and **5** men": "2*3 and 2 * 3 and 5 men",
    "snake_case and __init__": "snake_case and init",
    "> one\n> > two\n>three": "one two three",
    "con-\nvert, 10-\n20": "convert, 10-20",
    "“A” „B“ «C» ‹D› 「E」 ``F''": '"a"b"c"d"e"f"',
    "it’s itʼs it's it＇s": "it's it's it's it's",
    "a—b – c -- d − e ‐ f": "a-b-c-d-e-f",
    "wait . . . no … yes…… so": "wait...no...yes...so",
    "one. Two": "one. two",
    "ﬁne Ｗｉｄｅ ㎏ Ⅷ": "fine wide kg viii",
    "10³ and 1½ and x²": "10^3 and 1^1/2 and x2",
    "soft\u00adly zero\u200b\u200dwidth \ufeffmark": "softly zerowidth mark",
    "STRASSE Straße İki ΣΑΣ": "strasse strasse iki σασ",
    "你 好，\n世界 and 世 界": "你好,世界and世界",
    "R&amp;D &lt;b&gt; &nosuch;": "r&d <b> &nosuch;",
    'He said \\"no\\"': 'he said"no"',
}


def test_folds_what_verbatim_quoting_may_change() -> None:
    assert {text: fold(text) for text in FOLDED} == FOLDED


def test_each_tolerance_folds_its_own_part() -> None:
    text = "The\u00a0‘Old’ *Mill*"
    assert fold(text, Tolerance.EXACT) == text
    assert fold(text, Tolerance.CASE) == "the\u00a0‘old’ *mill*"
    assert fold(text, Tolerance.LAYOUT) == "The ‘Old’ Mill"
    assert fold(text, Tolerance.TYPOGRAPHY) == 'The"Old"*Mill*'
    assert fold(text, FOLDS & ~Tolerance.CASE) == 'The"Old"Mill'


#: Texts that differ in marks, ornaments and spaces between words.
SAME = [
    *(("he does n't know , they say", "he doesn't know, they say"), ("the pilot 's log", "the pilot's log")),
    *(("l' homme d' hier", "l'homme d'hier"), ("the “best” men", "the best men")),
    *(("Quoi ! dit-il ; non .", "Quoi! dit-il; non."), ("( only in May )", "(only in May)")),
    ("Dr. Jekyll and Mr. Hyde", "Dr Jekyll and Mr Hyde"),
    ("J. R. Smith of the U.S. Navy", "J R Smith of the US Navy"),
    *(("a Ph.D. at 5 p.m., e.g. here", "a PhD at 5 pm, eg here"), ("1, 2, 3, and 5", "1,2,3 and 5")),
    *(("on May 5, 1990, at noon", "on May 5,1990 at noon"), ("one,two;three", "one, two; three")),
    *(("sea \u2014 calm; blue", "sea, calm, blue"), ("noon\u2014the bell \u2013 rang", "noon, the bell: rang")),
    ("the old\U0001f525 mill\u2600\ufe0f is it", "the old mill \U0001f600\U0001f3fd is it"),
    *(("wait... no, really!", "wait \u2026 no \u2013 really"), ("eat, Ann", "eat Ann")),
    *(("他来了，她走了", "他来了。她走了"), ("他来了，她走了", "他来了她走了"), ("ไป, แล้ว", "ไปแล้ว")),
    *(("the end -", "the end"), ("- the end", "the end")),
    *(("नहीं, हम आए।", "नहीं हम आए"), ("Wow\u00ae \u2022 5 %", "Wow 5%")),
]
#: Texts that differ in a word, a number or a sign.
OTHER = [
    *(("battle-field", "battle field"), ("re-sign", "resign"), ("we're", "were")),
    *(("in 1990, 20 men", "in 1990,20 men"), ("10³", "103"), ("1½", "11/2"), ("２²", "22"), ("2*3", "23")),
    *(("3 - x", "3 + x"), ("5 %", "5"), ("sınır", "sinir"), ("año", "ano"), ("か\u3099", "か"), ("पानी", "पान")),
    *(("a < b", "a > b"), ("1,5 l", "15 l"), ("1.5 l", "1, 5 l"), ("2, 500 men", "2,500 men")),
    *(("2, 500 men", "2 500 men"), ("1,000,000 men", "1, 000, 000 men"), ("is -5 now", "is 5 now")),
    *(("mass \u2212 load, then", "mass, load, then"), ("is (\u22125) now", "is (5) now"), ("x - 5", "x 5")),
    *(("5% more", "5 more"), ("pay $5, then", "pay 5, then"), ("at 5°, dry", "at 5, dry")),
    *(("is <5, say", "is >5, say"), ("C++, then", "C#, then"), ("\u2705 in use", "\u274c in use")),
    *(("its, own", "it's, own"), ("R&D, too", "RD, too"), ("and/or, too", "and or, too"), ("5′, too", "5″, too")),
    *(("三、四个", "三四个"), ("at 10:30, noon", "at 10, 30, noon"), ("1920-25, then", "1920, 25, then")),
    ("म क", "मक"),
]


def test_punctuation_folds_what_is_between_words_alone() -> None:
    assert [pair for pair in SAME if not agree(*pair, ALL) or agree(*pair, FOLDS)] == []
    assert [pair for pair in OTHER if agree(*pair, ALL)] == []


def test_hyphens_at_line_ends_are_decided_by_the_other_text() -> None:
    broken = "a well-\nknown and re-\nmarkable find"
    assert agree(broken, "a well-known and remarkable find", FOLDS)
    assert agree("a wellknown and re-markable find", broken, FOLDS)
    assert agree(broken, broken, FOLDS)
    assert not agree(broken, "a well known and remarkable find", FOLDS)
    assert not agree("a well-\nknown", "a well\ufdd0 known", FOLDS)


def test_a_tolerance_is_said_in_words() -> None:
    assert describe(Tolerance.EXACT) == "found, exact"
    assert describe(FOLDS) == "found after folding layout, case and typography"
    assert (
        describe(Tolerance.CHUNKS | Tolerance.CASE | Tolerance.BRACKET | Tolerance.PUNCTUATION)
        == "found across adjoining chunks, after folding case, allowing for punctuation and bracket"
    )


@pytest.mark.parametrize("tolerance", [FOLDS, ALL])
def test_folding_never_changes_the_key(tolerance: int) -> None:
    chars = [chr(code) for code in range(0x3100) if unicodedata.category(chr(code)) not in ("Cn", "Co")]
    chars += [chr(code) for code in range(0xF900, 0x10000) if unicodedata.category(chr(code)) not in ("Cn", "Co")]
    wrong = [char for char in chars if comparison_key(fold(f"x{char}y", tolerance)) != comparison_key(f"x{char}y")]
    assert wrong == []


@given(one=TRICKY, other=TRICKY)
def test_a_key_is_made_character_by_character(one: str, other: str) -> None:
    """The key of a text is those of its pieces, wherever it is cut: offsets can be found by counting."""
    assert comparison_key(one + other) == comparison_key(one) + comparison_key(other)


@pytest.mark.parametrize(
    ("first", "last"),
    [(0x80, 0x2FFF), (0xAC00, 0xD7A3), (0xD800, 0xDFFF), (0xF900, 0xFFFF), (0x1D400, 0x1D7FF), (0x1F300, 0x2FA1F)],
)
def test_the_key_of_many_different_characters_is_the_same(first: int, last: int) -> None:
    chars = [chr(code) for code in range(first, last + 1)]
    few = [f"{char} well, \0" for char in chars[-300:]]
    for text in ("".join(chars), "".join(chars[-300:]), "".join(chars[-70:]), "".join(few), "".join(few[-70:])):
        assert comparison_key(text) == b"".join(map(comparison_key, text))


def test_a_decomposed_text_has_the_key_of_the_composed() -> None:
    text = "Ça va — 3 × «Ünïcödé» ＡＢ ʼ 한국어 여덟 ß "
    for times in (1, 10, 4000):
        assert comparison_key(unicodedata.normalize("NFD", text * times)) == comparison_key(text * times)
        assert comparison_key(text * times).startswith(b"cava3unicodeab" + comparison_key("\u1112\u1161\u11ab\u1100"))


@given(one=TRICKY, other=TRICKY)
def test_agreeing_is_mutual(one: str, other: str) -> None:
    for text in (other, fold(one), one.upper()):
        assert agree(one, text, ALL) is agree(text, one, ALL)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("R&amp;D &#8220;x&#x201d; &nbsp;y &bogus; AT&T;", "R&D “x” \u00a0y &bogus; AT&T;"),
        ("<b>a</b> <SPAN class='x'>b</SPAN><br/>c<p>d", "a b\nc\n\nd"),
        ("a < b and c > d, <nobody>, 1 <b 2", "a < b and c > d, <nobody>, 1 <b 2"),
        ("10<sup>3</sup> H<sub>2</sub>O", "10^3 H2O"),
        ("[a report](https://x.org/a_b), ![fig](./f.png), [note](later)", "a report, fig, [note](later)"),
    ],
)
def test_reads_markup_as_it_is_shown(source: str, text: str) -> None:
    assert as_readable(source) == text
    assert Readable(source).text == text
    assert (
        Readable(f"{source} one[3] two[4, 5] three[six] 1990[12]", notes=False).text
        == f"{text} one two three[six] 1990"
    )


WITHOUT_NOTES = {
    "the quay[5](https://x.org/a#n5), rebuilt[6][7](#f)": "the quay, rebuilt",
    "the quay[5](later)": "the quay(later)",
    "the harbour\u00b2 and the quay<sup>3</sup>": "the harbour and the quay",
    "at 40 feet per sec\u00b2, two words": "at 40 feet per sec\u00b2, two words",
    "at 40 feet per sec<sup>2</sup>, two words": "at 40 feet per sec^2, two words",
    "spread over 7 mil\u00b2 as 90 mil<SUP>2</SUP>": "spread over 7 mil\u00b2 as 90 mil^2",
    "7 long mil\u00b2 <b>of</b> it\u00b2": "7 long mil of it\u00b2",
    "(a plus b)\u00b3 &amp; (c)<sup>3</sup>": "(a plus b)\u00b3 & (c)^3",
}


def test_marks_of_notes_are_left_out_on_request() -> None:
    assert {source: Readable(source, notes=False).text for source in WITHOUT_NOTES} == WITHOUT_NOTES


@pytest.mark.parametrize(
    ("context", "needle", "passage"),
    [
        ("of ﬁne sand", "ines", "ﬁne s"),
        ("Straße 7", "sse7", "ße 7"),
        ("the Æther", "eæth", "e Æth"),
        ("그는 갔다.", "\u11ab\u1100\u1161", "는 갔"),
    ],
)
def test_a_passage_may_begin_inside_a_character(context: str, needle: str, passage: str) -> None:
    sources = SourceIndex(["", context])
    key = comparison_key(needle)
    start = sources.key.index(key)
    number, first, last = sources.passage(start, start + len(key))
    assert (number, context[first:last]) == (1, passage)


@given(
    parts=st.lists(st.sampled_from(["a", "bc", " ", "&amp;", "&hellip;", "<b>", "</b>", "<br>", "&", "<"]), max_size=20)
)
def test_offsets_of_a_readable_text_map_back(parts: list[str]) -> None:
    source = "".join(parts)
    readable = Readable(source)
    for start in range(len(readable.text)):
        for end in range(start + 1, len(readable.text) + 1):
            piece = source[readable.start(start) : readable.end(end)]
            assert as_readable(piece) == readable.text[start:end]


@given(contexts=st.lists(TRICKY, max_size=4), data=st.data())
def test_positions_map_back_to_the_passage(contexts: list[str], data: st.DataObject) -> None:
    sources = SourceIndex(contexts)
    for number, context in enumerate(contexts):
        start, end = sources.bounds[number]
        assert sources.key[start:end] == comparison_key(as_readable(context))
        if start == end:
            continue
        first = data.draw(st.integers(start, end - 1))
        last = data.draw(st.integers(first + 1, end))
        passage = sources.passage(first, last)
        assert passage.context == number
        assert sources.key[first:last] in comparison_key(sources.text(number)[passage.start : passage.end])
        source_start, source_end, text = sources.original(passage)
        assert context[source_start:source_end] == text


@given(text=st.text(alphabet="ab", min_size=30, max_size=300), start=st.integers(0, 250), length=st.integers(16, 60))
def test_looking_all_quotations_up_finds_what_searching_finds(text: str, start: int, length: int) -> None:
    quotations = [
        text[start : start + length],
        f"{text[start : start + length]}{'z' * 16}",
        "not expected, and so not known",
    ]
    once, singly = SourceIndex([text], expected=quotations[:2]), SourceIndex([text])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_INDEXED", 0)
        patch.setattr(once, "_searched", 10**6)
        for key in map(comparison_key, quotations):
            assert list(once.occurrences(key)) == list(singly.occurrences(key))
            assert list(once.occurrences(key, 3, 200)) == list(singly.occurrences(key, 3, 200))


#: A text, a piece of it, and whether the piece stands alone.
ALONE = {
    ("They grow faster", "grow faster"): True,
    ("They grow faster", "row faster"): False,
    ("They grow faster", "grow fast"): False,
    ("a co-op shop", "op shop"): True,
    ("don't go", "don"): False,
    ("the dog's bone", "the dog"): True,
    ("they do n't go", "they do"): False,
    ("they do nothing", "they do"): True,
    ("non-toxic paint", "toxic paint"): False,
    ("3.5 per cent", "5 per cent"): False,
    ("in 1,250 days", "in 1"): False,
    ("1\u202f250 days", "250 days"): False,
    ("sold 250 days", "250 days"): True,
    ("in May 2020 250 came", "250 came"): True,
    ("at 10:30 sharp", "30 sharp"): False,
    ("it is -5 now", "5 now"): False,
    ("1939-45 was war", "45 was war"): True,
    ("cafe\u0301 noir", "cafe"): False,
    ("हिन्दी", "हिन्द"): False,
    ("漢字仮名", "字仮"): True,
    ("二十日間", "十日間"): False,
    ("soft\u00adware", "ware"): False,
    ("soft-\nware", "ware"): False,
}


def test_passages_begin_and_end_on_word_boundaries() -> None:
    wrong = [
        (text, piece)
        for (text, piece), alone in ALONE.items()
        if stands_alone(text, start := text.index(piece), start + len(piece)) is not alone
    ]
    assert wrong == []


FORBIDDEN = (
    "not|no|sin|non|allegedly|may have|the former|Never|n'est|doesn't|kein Mensch|aucune|ningún|nunca|inte|nie|"
    "не|δεν|لا|לא|नहीं|不|没有|しない|ません|않은|ไม่|değil|không|5|٣|five|zwölf|trois|三百"
)
ALLOWED = "|the company|et|en mai|se|die Mitte|le narrateur|der Erzähler|el narrador|berättaren|会社|один из них"


def test_brackets_may_hold_anything_but_negations_and_numbers() -> None:
    assert [words for words in FORBIDDEN.split("|") if may_be_inserted(words)] == []
    assert [words for words in ALLOWED.split("|") if not may_be_inserted(words)] == []
