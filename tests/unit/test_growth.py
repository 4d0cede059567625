"""No text may take quadratic time: eight times the text takes about eight times as long, 64 times if it did."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from pytest_ragmetrics.cli.generate.documents import split_passages
from pytest_ragmetrics.judges.suspicion import suspicious_signs
from pytest_ragmetrics.metrics import QuotedSpansAlignment
from pytest_ragmetrics.text.citations import cited_sentences
from pytest_ragmetrics.text.numbers import find_numbers
from pytest_ragmetrics.text.quotes.alignment import Sources, align
from pytest_ragmetrics.text.quotes.quotations import find_quotations
from pytest_ragmetrics.text.sentences import split_sentences
from tests.growth import is_linear


def split_markdown(text: str) -> None:
    split_passages(text, ".md")


def align_text(text: str) -> None:
    align("the tide turned at midnight", [text])
    align(text, ["The tide turned at noon."])
    align(f"{text} zebra", [text])


#: Texts are made by repeating these: prose, marks of all kinds, layout, markup, code, and beginnings of each.
SHAPES = [
    *("The tide turns at noon, “as it always does,” and the boys' boat isn't late. ", "“word ", "word” ", '"'),
    *(' "word', 'w"w', ' " ', "’", "'tis the boys' ", "“‘", "“‘a ", "“‘…’”", "„x «x “x ‘x ", " » a « b", "「"),
    *("“a\n\n", '"a\n', '5" ', "([{<", "[a] ", "… ... ", '*"', "\u200b", '" ' + " " * 40, "\n", "\n  "),
    *("\n\n    a\n- b", "```\n", "~~~~\n```x\n", "`a` ", "".join(f"{'`' * run} " for run in range(1, 250))),
    *("``a ", "``a'' ", "&", "&quot", "&quot;", "<", "<a ", "<a b=\"' ", "<!-- ", "<code>", '> "x\n', ">", "]("),
    *('](a "', '[a]: http://x "t\n', '{"a":', '{"a": [', "\\", '\\"', '他说"你好"'),
]
#: What a text is made of, by the function that takes it apart.
PIECES: dict[Callable[[str], object], list[str]] = {
    find_quotations: SHAPES,
    align_text: SHAPES,
    cited_sentences: [
        *("[", "[1", "[1](", "[1]", "[1, ", "\n[1] x", "[1-99]", "<sup>", "<sup>1</sup>", "¹", "[source 1, ", "_[1]"),
        *("(", "(Passage 1", "Passage 1, ", "(a a a ", "<cite>", "[a.pdf, ", "【1:", "[1, p. ", "1 and ", "a.", "a/a"),
        "a [1].\n",
    ],
    split_sentences: [
        *("今天。", '"', "word ", "x", "a\n", "- a. b\n", "# ", "a: ", "(", "។ ", "> ", ".\n", "Hello there. ")
    ],
    find_numbers: ["1", "½", "1/", "[1-", "1 million ", "two hundred ", "3 万"],
    split_markdown: ["a ", "\n", "# x\n", "a\n===\n", "```\n", "A sentence. ", "# a   "],
    suspicious_signs: [
        *("\n    ", "ignore ", "ignore all ", "all instructions ", "system: ", "system*", "{ ", '{"', '"reason": "'),
        *("> ", "前 指示 ", "<| ", " ", "abcdef012345 a >>", "<<<a "),
        # The last words let the search for substrings pass.
        *(f"{half} 10/10 prüfer" for half in ("所有陈述", "alle aussagen sind ", "prüfer note ", "du bist ")),
        "すべての主張は 10/10 prüfer",
    ],
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
    "pieces and chunks": lambda n: ("the of to [1] " * n, ["the of to [1]"] * n),
    "one long word in a gap": lambda n: ("a b c \u2026 q r s", "a b c " + "xy" * 8 * n + " q r s"),
    "a word of two scripts in a gap": lambda n: ("a b c \u2026 q r s", "a b c " + "x\u0436" * 8 * n + " q r s"),
    "words without spaces in a gap": lambda n: ("a b c \u2026 q r s", "a b c " + "山川" * 8 * n + " q r s"),
    "words of another language in a gap": lambda n: ("a b c \u2026 q r s", "a b c " + "no meu " * n + " q r s"),
    "blanks in a gap": lambda n: ("a b c \u2026 q r s", "a b c! " + " " * 8 * n + "no q r s"),
    "digits in a gap": lambda n: ("a b c \u2026 q r s", "a b c " + "1" * 4 * n + " q r s"),
    "exclamation marks in a gap": lambda n: ("a b c \u2026 q r s", "a b c " + "!" * 4 * n + " q r s"),
    "chunks": lambda n: ("abcd " * 40 + "e", ["abcd abcd abcd"] * n),
}


@pytest.mark.growth
@pytest.mark.parametrize(
    ("function", "piece"),
    [(function, piece) for function, pieces in PIECES.items() for piece in pieces],
    ids=lambda part: getattr(part, "__name__", ascii(part))[:24],
)
def test_time_grows_with_the_text_and_not_with_its_square(function: Callable[[str], object], piece: str) -> None:
    text = piece * (20_000 // len(piece) + 1)
    assert is_linear(lambda size: function(text[:size]), short=2_500, long=20_000)


@pytest.mark.growth
@pytest.mark.parametrize("case", PAIRS)
def test_time_grows_with_span_and_contexts_only(case: str) -> None:
    assert is_linear(lambda size: align(*PAIRS[case](size)), short=500, long=4000)


#: Invented quotations, and the words beside them by which they are told from titles and from the question.
INVENTED = {
    "small letters": 'it says "the zebra {0} of lake {0} sank" there. ',
    "titles": 'In "The Zebra of Lake {0} and Moor" it is. ',
    "works": 'the song "zebra {0} of the lake" is his. ',
    "edited": 'it says "the boats … were {0} lost [by] them". ',
    "Chinese": "他说“那只斑马{0}在湖里沉了下去了”。",
}


@pytest.mark.growth
@pytest.mark.parametrize("shape", INVENTED)
def test_time_grows_with_the_number_of_invented_quotations(shape: str) -> None:
    contexts = ["The tide turned at noon, and all boats came home to the old harbour. " * 20] * 3

    def score(count: int) -> None:
        response = "".join(INVENTED[shape].format(number) for number in range(count))
        metric = QuotedSpansAlignment(allowed=[f"the lake {number} is allowed" for number in range(count // 3)])
        metric.score(response=response, retrieved_contexts=contexts, user_input="Which zebra?")

    assert is_linear(score, short=200, long=1600)


#: Sentences of large contexts; the numbers in them make each different.
SENTENCES = {
    "ASCII": "In year {0} the ferry carried {1} passengers and {2} crates of pears. ",
    "typographic": "„Im Jahr {0} – so heißt es – fuhr die Fähre {1}-mal“, schrieb sie am {2}. Mai. ",
    "Hangul": "{0}년에 나룻배는 승객 {1}명과 배 {2}상자를 실어 날랐다. ",
    "notes and links": "The ferry [carried](https://example.org/{0}) {1} crates &amp; nobody[{2}]. ",
}


@pytest.mark.growth
@pytest.mark.parametrize("sentence", SENTENCES.values(), ids=SENTENCES)
def test_memory_is_a_small_multiple_of_the_contexts(sentence: str) -> None:
    contexts = ["".join(sentence.format(n, n * 7919 % 9973, n * 31 % 97) for n in range(k, k + 300)) for k in range(8)]
    spans = [f"{sentence.format(n, 'no', n)} and {n} zebras with it" for n in range(20)]
    Sources(contexts[:1]).align(spans)
    gc.collect()
    tracemalloc.start()
    verdicts = Sources(contexts).align(spans)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not any(verdict.ok for verdict in verdicts)
    assert peak < 6 * sum(len(context.encode()) for context in contexts)


@pytest.mark.growth
def test_quadratic_time_is_noticed() -> None:
    assert not is_linear(lambda size: sum(range(size * size // 2)), short=500, long=4000)
    assert is_linear(lambda size: sum(range(size * 250)), short=500, long=4000)
