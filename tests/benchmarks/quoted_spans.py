"""How right and how quick the quoted-spans metric is.

``python tests/benchmarks/quoted_spans.py [--data LABELLED.jsonl]``

A line of the data is one answer: response, contexts, spans (text, start, end, counted, supported,
supported_editorial), expected_score and expected_score_editorial. Without data only the speed is measured, on generated
text, as a ratio to the plain approach: collapse white space, lower-case, join, one regular expression, ``in``.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from pytest_ragmetrics.metrics import QuotedSpansAlignment
from pytest_ragmetrics.text.quotes.alignment import Sources
from pytest_ragmetrics.text.quotes.quotations import find_quotations

MIN_WORDS = 3
Row = dict[str, Any]


def measure_extraction(rows: list[Row]) -> None:
    right = found = labelled = 0
    for row in rows:
        gold = {(span["start"], span["end"]) for span in row["spans"] if span["counted"]}
        spans = {(span.start, span.end) for span in find_quotations(row["response"]) if span.words >= MIN_WORDS}
        right, found, labelled = right + len(gold & spans), found + len(spans), labelled + len(gold)
    precision, recall = right / max(found, 1), right / max(labelled, 1)
    f1 = 2 * right / max(found + labelled, 1)
    print(f"extraction            precision {precision:.4f}  recall {recall:.4f}  F1 {f1:.4f}  ({labelled} spans)")


def measure_support(rows: list[Row], matching: Literal["editorial", "verbatim"]) -> None:
    """Print how often the labelled spans are judged right, and the error of the whole score."""
    suffix = "" if matching == "verbatim" else "_editorial"
    label, expected = f"supported{suffix}", f"expected_score{suffix}"
    right = total = false_accepts = 0
    errors = []
    for row in rows:
        verdicts = Sources(row["contexts"], matching=matching).align(span["text"] for span in row["spans"])
        for span, verdict in zip(row["spans"], verdicts, strict=True):
            total += 1
            right += verdict.ok is span[label]
            false_accepts += verdict.ok and not span[label]
        metric = QuotedSpansAlignment(matching=matching)
        result = metric.score(response=row["response"], retrieved_contexts=row["contexts"])
        errors.append(abs(result.value - row[expected]))
    accuracy = f"accuracy {right / max(total, 1):.4f}  false accepts {false_accepts}"
    print(f"support, {matching:<12} {accuracy}  score error {statistics.fmean(errors):.4f}  ({total} spans)")


@dataclass(frozen=True)
class Load:
    name: str
    response: str
    contexts: list[str]
    rounds: int


_SPACE = re.compile(r"\s+")
_QUOTED = re.compile(r'"([^"]+)"')


def score_plainly(load: Load) -> float:
    source = _SPACE.sub(" ", " ".join(load.contexts)).lower()
    spans = [_SPACE.sub(" ", span).lower().strip() for span in _QUOTED.findall(load.response)]
    return sum(span in source for span in spans) / len(spans)


def score_fully(load: Load) -> float:
    return QuotedSpansAlignment().score(response=load.response, retrieved_contexts=load.contexts).value


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a kind of text is written: its syllables, what is set between words, and what ends a sentence."""

    onsets: str = "bcdfghklmnprstvw"
    rimes: tuple[str, ...] = ("a", "e", "i", "o", "u", "an", "er", "is")
    short: tuple[str, ...] = ("the", "of", "and", "to", "in", "a", "that", "it")
    inner: tuple[str, ...] = (",", "", "", "'s", " -")
    ends: tuple[str, ...] = (". ", ". ", ".\n", ".\n\n")
    space: str = " "


#: The kinds of text: without and with typographic signs, with many different letters, with markup, without spaces.
STYLES = {
    "plain": Style(),
    "typographic": Style(inner=(",", "", "", "\u2019s", " \u2014", "\u2026"), ends=(". ", ".\n", "!\u201d ", "?\n\n")),
    "German": Style(
        rimes=("a", "e", "i", "ö", "ü", "äu", "en", "er", "eß", "ich"),
        short=("der", "die", "und", "in", "zu", "für", "daß", "es"),
        inner=(",", "", ",", " \u2013"),
    ),
    "Polish": Style(
        onsets="bcćdfghklłmnńprsśtwzźż",
        rimes=("a", "ą", "e", "ę", "i", "o", "ó", "u", "ych", "ów"),
        short=("i", "w", "na", "z", "że", "się", "nie", "do"),
        inner=(",", "", ",", " \u2013"),
        ends=(". ", ".\n", "\u201d. ", "?\n\n"),
    ),
    "Markdown": Style(
        inner=(",", " **so**", " [there](https://example.org/a_b)", " `x_y`", " *far*", "[3]", " &amp;"),
        ends=(". ", ".\n", ".\n\n- ", ".\n\n## ", ":\n\n> "),
    ),
    "HTML": Style(
        inner=(",", " <b>so</b>", " <a href=#f>there</a>", "<sup>2</sup>", "&nbsp;"), ends=(". ", ".</p>\n<p>")
    ),
    "Korean": Style(
        onsets="가나다라마바사자하도고로서지기이",
        rimes=("는", "을", "에", "가", "의", "서", "다"),
        short=("그", "이", "수", "것"),
    ),
    "Chinese": Style(
        onsets="山水風雨人天日月大小上下中出入生",
        rimes=("", "國", "年", "時", "心"),
        short=("的", "了", "在", "是"),
        space="",
        inner=("\uff0c", "", "\u3001"),
        ends=("\u3002", "\u3002\n", "\uff01"),
    ),
}


class Prose:
    """Generated text: words of a made-up language in sentences, frequent words as frequent as in real ones."""

    def __init__(self, style: Style) -> None:
        self._random = random.Random(7)
        self._style = style
        syllables = [a + b for a in style.onsets for b in style.rimes]
        lengths = self._random.choices((1, 2, 2, 3), k=4000)
        self._words = [*style.short, *("".join(self._random.choices(syllables, k=length)) for length in lengths)]
        # Zipf's law.
        self._weights = list(accumulate(1 / (rank + 2) for rank in range(len(self._words))))

    def write(self, length: int) -> str:
        sentences: list[str] = []
        written = 0
        while written < length:
            sentences.append(self._sentence())
            written += len(sentences[-1])
        return "".join(sentences)[:length]

    def _sentence(self) -> str:
        style = self._style
        words = self._random.choices(self._words, cum_weights=self._weights, k=self._random.randint(7, 20))
        words[0] = words[0].capitalize()
        words[3] += self._random.choice(style.inner)
        return style.space.join(words) + self._random.choice(style.ends)

    def quote(self, text: str) -> str:
        """Return a stretch of about twelve words of a text."""
        if not self._style.space:
            start = self._random.randrange(len(text) - 30)
            return text[start : start + 30].strip()
        words = text.split()
        start = self._random.randrange(len(words) - 12)
        return " ".join(words[start : start + 12]).strip(".,").replace("\u201d", "")

    def forge(self, text: str) -> str:
        quoted = self.quote(text)
        middle = quoted.find(self._style.space, len(quoted) // 2) if self._style.space else 15
        return f"{quoted[:middle]}{self._style.space}zebra{quoted[middle:]}"


def loads(style: Style) -> Iterator[Load]:
    prose = Prose(style)
    contexts = [prose.write(2048) for _ in range(10)]
    quotes = [prose.quote(contexts[3]), prose.forge(contexts[7])]
    yield Load("2 quotes, 10 contexts of 2 KB", answer(quotes), contexts, 200)
    large = prose.write(5_000_000)
    yield Load("1 absent quote, 5 MB", answer([prose.forge(large)]), [large], 5)
    long = prose.write(2_000_000)
    pieces = [long[at : at + 5000] for at in range(0, len(long), 1000)]
    yield Load("2,000 true quotes, 2 MB", answer([prose.quote(piece) for piece in pieces]), [long], 3)
    mixed = answer([prose.forge(piece) if number % 2 else prose.quote(piece) for number, piece in enumerate(pieces)])
    yield Load("2,000 quotes, 2 MB", mixed, [long], 3)
    chunks = [long[at : at + 2000] for at in range(0, len(long), 2000)]
    yield Load("2,000 quotes, 1,000 contexts of 2 KB", mixed, chunks, 3)


def huge(style: Style) -> Load:
    prose = Prose(style)
    contexts = [prose.write(1_000_000) for _ in range(50)]
    quotes = [prose.forge(context) for context in contexts[::5]]
    return Load("10 absent quotes, 50 contexts of 1 MB", answer(quotes), contexts, 1)


def answer(quotes: list[str]) -> str:
    return " ".join(f'The report says "{quote}" in one place.' for quote in quotes)


def processor_time(score: Callable[[Load], float], load: Load) -> float:
    start = time.process_time()
    score(load)
    return time.process_time() - start


def measure_speed(load: Load) -> None:
    """Print the median ratio of both approaches, measured in turns."""
    score_fully(load)
    pairs = [[processor_time(score, load) for score in (score_plainly, score_fully)] for _ in range(load.rounds)]
    # Other processes slow single calls, and make none faster.
    plain, full = map(min, zip(*pairs, strict=True))
    print(f"{load.name:<38} plain {plain * 1e3:9.3f} ms  metric {full * 1e3:9.3f} ms  time ratio {full / plain:.2f}")


def measure_memory(load: Load) -> None:
    tracemalloc.start()
    score_fully(load)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"{load.name:<38} {peak / 1e6:.0f} MB more for {sum(map(len, load.contexts)) / 1e6:.0f} million characters")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the quoted-spans metric.")
    parser.add_argument("--data", type=Path, help="labelled answers, JSON Lines")
    path = parser.parse_args().data
    if path is not None:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        measure_extraction(rows)
        measure_support(rows, "verbatim")
        measure_support(rows, "editorial")
    for name, style in STYLES.items():
        print(f"{name}:")
        for load in loads(style):
            measure_speed(load)
    load = huge(STYLES["typographic"])
    measure_speed(load)
    measure_memory(load)


if __name__ == "__main__":
    main()
