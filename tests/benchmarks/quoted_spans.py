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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_ragmetrics.metrics import QuotedSpansAlignment
from pytest_ragmetrics.text.alignment import Sources
from pytest_ragmetrics.text.quotations import find_quotations

MIN_WORDS = 3
Row = dict[str, Any]


def measure_extraction(rows: list[Row]) -> None:
    """Print precision, recall and F1 of the spans found, by exact offsets, over spans that count."""
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
        result = QuotedSpansAlignment(matching=matching).score(
            response=row["response"], retrieved_contexts=row["contexts"]
        )
        errors.append(abs(result.value - row[expected]))
    print(
        f"support, {matching:<12} accuracy {right / max(total, 1):.4f}  false accepts {false_accepts}  "
        f"score error {statistics.fmean(errors):.4f}  ({total} spans)"
    )


@dataclass(frozen=True, kw_only=True)
class Load:
    """One thing to score over and over: a response against contexts."""

    name: str
    response: str
    contexts: list[str]
    rounds: int


_SPACE = re.compile(r"\s+")
_QUOTED = re.compile(r'"([^"]+)"')


def score_plainly(load: Load) -> float:
    """Score the way a few lines of code would."""
    source = _SPACE.sub(" ", " ".join(load.contexts)).lower()
    spans = [_SPACE.sub(" ", span).lower().strip() for span in _QUOTED.findall(load.response)]
    return sum(span in source for span in spans) / len(spans)


def score_fully(load: Load) -> float:
    """Score with the metric, diagnosis of what is absent included."""
    return QuotedSpansAlignment().score(response=load.response, retrieved_contexts=load.contexts).value


class Prose:
    """Generated text: words of a made-up language in sentences, with or without typographic signs."""

    def __init__(self, *, typographic: bool) -> None:
        self._random = random.Random(7)  # noqa: S311 - nothing to keep secret
        syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
        lengths = self._random.choices((1, 1, 2, 2, 3), k=4000)
        self._words = ["".join(self._random.choices(syllables, k=length)) for length in lengths]
        self._typographic = typographic

    def write(self, length: int) -> str:
        """Return text of about a length."""
        sentences: list[str] = []
        written = 0
        while written < length:
            sentences.append(self._sentence())
            written += len(sentences[-1])
        return "".join(sentences)[:length]

    def _sentence(self) -> str:
        words = self._random.choices(self._words, k=self._random.randint(7, 20))
        words[0] = words[0].capitalize()
        words[3] += self._random.choice((",", "", "", "'s", " -"))
        text = " ".join(words) + self._random.choice((". ", ". ", ".\n", ".\n\n"))
        if self._typographic:
            text = text.replace("'", "\u2019").replace(" -", " \u2014")
        return text

    def quote(self, text: str) -> str:
        """Return a stretch of twelve words of a text."""
        words = text.split()
        start = self._random.randrange(len(words) - 12)
        return " ".join(words[start : start + 12]).strip(".,")

    def forge(self, text: str) -> str:
        """Return a stretch of twelve words of which one is another."""
        words = self.quote(text).split()
        words[len(words) // 2] = "zebra"
        return " ".join(words)


def loads(*, typographic: bool) -> Iterator[Load]:
    """Yield what the speed is measured on."""
    prose = Prose(typographic=typographic)
    contexts = [prose.write(2048) for _ in range(10)]
    quotes = [prose.quote(contexts[3]), prose.forge(contexts[7])]
    yield Load(name="2 quotes, 10 contexts of 2 KB", response=answer(quotes), contexts=contexts, rounds=400)
    large = prose.write(5_000_000)
    yield Load(name="1 absent quote, 5 MB", response=answer([prose.forge(large)]), contexts=[large], rounds=5)
    long = prose.write(2_000_000)
    pieces = [long[at : at + 5000] for at in range(0, len(long), 1000)]
    quotes = [prose.forge(piece) if number % 2 else prose.quote(piece) for number, piece in enumerate(pieces)]
    yield Load(name="2,000 quotes, 2 MB", response=answer(quotes), contexts=[long], rounds=3)
    chunks = [long[at : at + 2000] for at in range(0, len(long), 2000)]
    yield Load(name="2,000 quotes, 1,000 contexts of 2 KB", response=answer(quotes), contexts=chunks, rounds=3)


def answer(quotes: list[str]) -> str:
    """Return a response with quotations in it."""
    return " ".join(f'The report says "{quote}" in one place.' for quote in quotes)


def seconds(score: Callable[[Load], float], load: Load) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    score(load)
    return time.process_time() - start


def measure_speed(load: Load) -> None:
    """Print the median ratio of both approaches, measured in turns."""
    score_fully(load)
    pairs = [(seconds(score_plainly, load), seconds(score_fully, load)) for _ in range(load.rounds)]
    plain, full = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(full / max(plain, 1e-9) for plain, full in pairs)
    print(f"{load.name:<38} plain {plain * 1e3:9.3f} ms  metric {full * 1e3:9.3f} ms  time ratio {ratio:.2f}")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure the quoted-spans metric.")
    parser.add_argument("--data", type=Path, help="labelled answers, JSON Lines")
    path = parser.parse_args().data
    if path is not None:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        measure_extraction(rows)
        measure_support(rows, "verbatim")
        measure_support(rows, "editorial")
    for typographic in (False, True):
        print("typographic text:" if typographic else "plain text:")
        for load in loads(typographic=typographic):
            measure_speed(load)


if __name__ == "__main__":
    main()
