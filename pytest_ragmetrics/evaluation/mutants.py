"""Mutants: answers with one planted fault each, to see whether the metrics of a suite notice it.

An operator refuses a change that leaves the answer right: a number that stands in a passage too, a half whose words
stand in the other half. The words that operators put in are in ``mutants.txt``, by language; a language without words
for a kind has no mutants of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from random import Random
from typing import NamedTuple

from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges.local import refuses
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.citations import find_citations
from pytest_ragmetrics.text.names import NamesIn, find_names
from pytest_ragmetrics.text.numbers import TIME_OF_DAY, Number, NumbersIn, find_numbers
from pytest_ragmetrics.text.quotes.negations import turns_round
from pytest_ragmetrics.text.quotes.quotations import find_quotations
from pytest_ragmetrics.text.sentences import ends_sentence, guess_language, split_sentences
from pytest_ragmetrics.text.words import WordsIn, content_words, read_word_lists, telling_words

# A sentence with fewer content words and numbers makes no claim that could be turned round.
_SHORTEST_CLAIM = 3
# What is dropped must have so many words, and such a share of them, that the rest has not.
_LOST_WORDS, _LOST_SHARE = 6, 0.6
# An answer is cut off within this part of its words, and so many words off the ends of a sentence.
_CUT_FROM, _CUT_TO, _OFF_THE_END = 0.4, 0.8, 3
_SHORTEST_CUT = 12
# Digits that are a year, and how far off another one is.
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
_YEARS_OFF = range(2, 30)
_LAST_DAY = 28
_HOURS, _HOURS_OFF = 12, range(2, 9)
_UNKNOWN_SOURCE = 99
_WORD = re.compile(r"[^\W\d_]+")
_POSSESSIVE = re.compile(f"['{unicode.RIGHT_SINGLE}]s$")
_ANY = "*"


class Change(NamedTuple):
    """What replaces a part of an answer, or the contexts of ``other``."""

    start: int
    end: int
    text: str = ""
    other: Sample | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """A sample with a planted fault: at ``start`` of the ``original`` response ``before`` became ``after``.

    Both are empty where the passages were changed.
    """

    kind: str
    original: Sample
    sample: Sample
    start: int
    before: str
    after: str


class _Answer:
    """A response and what operators ask of it; each draws from a ``random`` of its own."""

    random: Random

    def __init__(self, sample: Sample, others: Sequence[Sample]) -> None:
        self.sample, self.others = sample, others
        self.text = sample.response or ""
        self.question = sample.user_input or ""
        self.passages = "\n\n".join(sample.retrieved_contexts or ())
        self.language = guess_language(self.text)

    def words(self, section: str) -> list[str]:
        """Return the entries for its language, and for any."""
        return [*_entries(section).get(self.language, ()), *_entries(section).get(_ANY, ())]

    @cached_property
    def known_words(self) -> WordsIn:
        return WordsIn(f"{self.passages}\n\n{self.question}")

    @cached_property
    def known_numbers(self) -> NumbersIn:
        return NumbersIn(f"{self.passages}\n\n{self.question}")

    @cached_property
    def sentences(self) -> list[tuple[int, int]]:
        return [*split_sentences(self.text)]

    @cached_property
    def claims(self) -> list[tuple[int, int]]:
        """The sentences that claim what the passages may say: no questions, no refusals, no words about the answer."""
        return [place for place in self.sentences if self._is_claim(self.text[slice(*place)])]

    def _is_claim(self, sentence: str) -> bool:
        words = [*content_words(sentence)]
        if (
            len([*telling_words(sentence)]) < _SHORTEST_CLAIM
            or sentence.rstrip()[-1] in f"?:{unicode.COLONS}"
            or refuses(sentence)
        ):
            return False
        return not self.passages or 2 * sum(word in self.known_words for word in words) > len(words)

    def claim_at(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the claim that has a part of the response."""
        return next(((first, last) for first, last in self.claims if first <= start and end <= last), None)

    def loses(self, kept: str, dropped: str) -> bool:
        """Tell whether a part has much to say that the rest does not say."""
        rest, words = WordsIn(f"{kept}\n\n{self.question}"), {word.key: word for word in content_words(dropped)}
        missing = sum(word not in rest for word in words.values())
        return missing >= _LOST_WORDS and missing >= _LOST_SHARE * len(words)

    def invented(self) -> list[str]:
        """Return the sentences of the list that no passage has: most of their words stand in none."""
        return [
            sentence
            for sentence in self.words("sentences")
            if 2 * sum(word in self.known_words for word in content_words(sentence))
            < len([*content_words(sentence)]) - 1
        ]


@cache
def _entries(section: str) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for line in read_word_lists("mutants.txt")[section].splitlines():
        language, _, body = line.partition(" ")
        found.setdefault(language, []).append(body)
    return found


def _pairs(lines: Sequence[str]) -> dict[str, str]:
    """Return what becomes of what, of entries such as ``is>is not are>are not``."""
    return dict(re.findall(r"(\S+)>(.+?)(?=\s\S+>|$)", " ".join(lines)))


def _changed_digits(run: str, random: Random) -> str:
    """Return as many digits of a value at least half as large again, or a third smaller."""
    first = int(run[0])
    far = [digit for digit in range(1, 10) if 2 * digit >= 3 * first or 3 * digit <= 2 * first]
    return f"{random.choice(far)}{run[1:]}"


def _numbers(answer: _Answer) -> Iterator[tuple[Number, tuple[int, int]]]:
    """Yield the numbers in claims that the passages bear out, with the place of their first digits."""
    for number in find_numbers(answer.text):
        run = re.search(r"\d+", answer.text[number.start : number.end])
        known = not answer.passages or answer.known_numbers.locate(number)
        if run and known and answer.claim_at(number.start, number.end):
            yield number, (number.start + run.start(), number.start + run.end())


def _is_new(answer: _Answer, change: Change) -> bool:
    """Tell whether a changed number is read as one, which no passage and not the question has."""
    text = answer.text[: change.start] + change.text + answer.text[change.end :]
    there = [it for it in find_numbers(text) if it.start <= change.start < it.end]
    return bool(there) and not any(answer.known_numbers.locate(it) for it in there)


def _number(answer: _Answer) -> Iterator[Change]:
    for number, (start, end) in _numbers(answer):
        run = answer.text[start:end]
        beside = answer.text[max(0, start - 1) : start] + answer.text[number.end : number.end + 1]
        # One end of a range leaves the other, which may be right.
        in_range = any(char in f"-{unicode.HYPHENS}{unicode.PAUSES}{unicode.MINUS}" for char in beside)
        if number.dates or _YEAR.fullmatch(number.text) or in_range or int(run) == 0:
            continue
        is_time = number.unit == TIME_OF_DAY
        hour = (int(run) + answer.random.choice(_HOURS_OFF)) % _HOURS + 1
        change = Change(start, end, str(hour) if is_time else _changed_digits(run, answer.random))
        if _is_new(answer, change):
            yield change


def _date(answer: _Answer) -> Iterator[Change]:
    for number, _ in _numbers(answer):
        if not (number.dates or _YEAR.fullmatch(number.text)):
            continue
        for run in re.finditer(r"\d+", answer.text[number.start : number.end]):
            old, off = int(run[0]), answer.random.choice(_YEARS_OFF)
            is_year = _YEAR.fullmatch(run[0])
            new = old - off if is_year else (old + off) % _LAST_DAY + 1
            change = Change(number.start + run.start(), number.start + run.end(), str(new))
            if new != old and _is_new(answer, change):
                yield change


def _unit(answer: _Answer) -> Iterator[Change]:
    pairs = _pairs(answer.words("units"))
    known = " ".join(f"{answer.passages} {answer.question}".casefold().split())
    for number in find_numbers(answer.text):
        near = answer.text[number.end - 1 : number.end + 40]
        behind = re.match(r".(?:[\s-]|\sdegrees?\s|°)?([^\W\d_]+/?[^\W\d_]*|°[CF])", near)
        if not answer.claim_at(number.start, number.end) or number.dates:
            continue
        symbol = number.text[:1]
        if symbol in pairs and not symbol.isalnum():
            yield Change(number.start, number.start + 1, pairs[symbol])
        new = pairs.get(behind[1].casefold()) if behind else None
        value = answer.text[number.start : number.end].casefold()
        if (
            behind
            and new
            and not re.search(rf"{re.escape(value)}[\s-]?(?:degrees? |°)?{re.escape(new.casefold())}", known)
        ):
            place = number.end - 1 + behind.start(1)
            yield Change(place, place + len(behind[1]), new)


def _name(answer: _Answer) -> Iterator[Change]:
    asked, known = NamesIn(answer.question), NamesIn(answer.passages)
    in_question = {key for name in find_names(answer.question) for key in name.keys}
    quoted = [(it.start, it.end) for it in find_quotations(answer.text)]
    new = [it for it in " ".join(answer.words("names")).split() if it.casefold() not in answer.passages.casefold()]
    for name in find_names(answer.text) if new else ():
        is_title = any(start <= name.start < end for start, end in quoted)
        is_asked = asked.locate(name) or not in_question.isdisjoint(name.keys)
        is_unit = name.text[0].islower() or answer.text[name.start - 1 : name.start] == "/"
        if is_title or is_asked or is_unit or (answer.passages and not known.locate(name)):
            continue
        if answer.claim_at(name.start, name.end):
            ending = _POSSESSIVE.search(name.text)
            yield Change(name.start, name.end, answer.random.choice(new) + (ending[0] if ending else ""))


def _negation(answer: _Answer) -> Iterator[Change]:
    pairs = _pairs(answer.words("negation"))
    hedges, beside = (
        {*" ".join(answer.words(section)).split()} for section in ("no negation with", "no negation beside")
    )
    for first, last in answer.claims if pairs else ():
        words = [*_WORD.finditer(answer.text, first, last)]
        small = [word[0].casefold() for word in words]
        if not hedges.isdisjoint(small) or turns_round(answer.text[first:last]):
            continue
        for before, word, after in zip(words, words[1:], words[2:], strict=False):
            near = {before[0].casefold(), after[0].casefold()}
            if word[0] in pairs and beside.isdisjoint(near) and not answer.text[word.end() : after.start()].strip():
                yield Change(*word.span(), pairs[word[0]])
                break  # the first verb is that of the main clause


def _citation(answer: _Answer) -> Iterator[Change]:
    sample = answer.sample
    if not sample.retrieved_contexts or len(sample.retrieved_contexts) >= _UNKNOWN_SOURCE:
        return
    marks = find_citations(answer.text, sample.retrieved_context_ids or ())
    found = [mark for mark in marks if answer.claim_at(mark.start, mark.end)]
    for mark in found:
        yield Change(mark.start, mark.end, f"[{_UNKNOWN_SOURCE}]")
    for start, end in () if found else answer.claims:
        stop = re.search(r"[.!]?\s*$", answer.text[start:end])
        at = start + stop.start() if stop else end
        yield Change(at, at, f" [{_UNKNOWN_SOURCE}]")


def _added(answer: _Answer, sentence: str) -> Change:
    """Return the change that ends an answer with a sentence."""
    end = len(answer.text.rstrip())
    return Change(end, len(answer.text), (" " if ends_sentence(answer.text) else "\n\n") + sentence)


def _quotation(answer: _Answer) -> Iterator[Change]:
    for template in answer.words("quotation")[:1]:
        yield from (_added(answer, template.replace("{}", sentence.rstrip("."))) for sentence in answer.invented())


def _sentence(answer: _Answer) -> Iterator[Change]:
    yield from (_added(answer, sentence) for sentence in answer.invented())


def _injection(answer: _Answer) -> Iterator[Change]:
    for order in answer.words("instruction"):
        yield from (_added(answer, f"{sentence} {order}") for sentence in answer.invented())


def _half(answer: _Answer) -> Iterator[Change]:
    middle = len(answer.sentences) // 2
    if not middle:
        return
    at = answer.sentences[middle][0]
    for start, end in ((0, at), (at, len(answer.text))):
        kept, dropped = answer.text[:start] + answer.text[end:], answer.text[start:end]
        is_said = [start <= first < end for first, _ in answer.claims]
        if any(is_said) and not all(is_said) and answer.loses(kept, dropped):
            yield Change(start, end)


def _truncated(answer: _Answer) -> Iterator[Change]:
    words = [*re.finditer(r"\S+", answer.text)]
    if len(words) < _SHORTEST_CUT:
        return
    places = range(int(_CUT_FROM * len(words)), int(_CUT_TO * len(words)))
    for number in answer.random.sample(places, len(places)):
        at = words[number].end()
        inside = words[number - _OFF_THE_END].start(), words[min(number + _OFF_THE_END, len(words) - 1)].end()
        if answer.claim_at(*inside) and answer.loses(answer.text[:at], answer.text[at:]):
            yield Change(at, len(answer.text))
            return


def _passages(answer: _Answer) -> Iterator[Change]:
    if not answer.passages:
        return
    said = [*content_words(answer.text)]
    asked = [*content_words(answer.question)] or said
    for other in answer.random.sample(answer.others, len(answer.others)):
        words = WordsIn("\n\n".join(other.retrieved_contexts or ()))
        is_other = other.retrieved_contexts and not any(word in words for word in asked)
        if is_other and 2 * sum(word in words for word in said) < len(said):
            yield Change(0, 0, other=other)
            return


def _refusal(answer: _Answer) -> Iterator[Change]:
    if not any(refuses(answer.text[start:end]) for start, end in answer.sentences):
        yield from (Change(0, len(answer.text), text) for text in answer.words("refusal"))


_OPERATORS: Mapping[str, Callable[[_Answer], Iterator[Change]]] = {
    "number": _number,
    "date": _date,
    "unit": _unit,
    "name": _name,
    "negation": _negation,
    "citation": _citation,
    "quotation": _quotation,
    "sentence": _sentence,
    "half": _half,
    "passages": _passages,
    "injection": _injection,
    "refusal": _refusal,
    "truncated": _truncated,
}
#: What may be wrong with a mutant.
MUTANT_KINDS = tuple(_OPERATORS)


def mutants_of(
    sample: Sample, kinds: Sequence[str] = MUTANT_KINDS, *, others: Sequence[Sample] = (), seed: int | str = 0
) -> Iterator[Mutant]:
    """Yield a mutant of each kind that can be made of a sample, drawn by a seed; its response must be a right answer.

    ``others`` lend their passages. An answer that claims nothing, such as a refusal, has no mutants. The same seed
    makes the same mutants, whatever other kinds and rows there are.

    >>> sample = Sample(response="The pump needs 20 minutes to fill.",
    ...                 retrieved_contexts=["The pump needs 20 minutes to fill."])
    >>> [(it.kind, it.before, it.after) for it in mutants_of(sample, ["unit", "date"])]
    [('unit', 'minutes', 'days')]
    """
    answer = _Answer(sample, others)
    for kind in kinds if answer.claims else ():
        answer.random = Random(f"{seed} {kind} {sample.id} {sample.response}")  # noqa: S311 - no secret
        changes = [*_OPERATORS[kind](answer)]
        if changes:
            yield _mutant(kind, sample, answer.random.choice(changes))


def _mutant(kind: str, sample: Sample, change: Change) -> Mutant:
    text = sample.response or ""
    changed = replace(sample, response=(text[: change.start] + change.text + text[change.end :]).strip())
    if change.other is not None:
        passages = {name: getattr(change.other, name) for name in ("retrieved_contexts", "retrieved_context_ids")}
        changed = replace(sample, **passages)
    changed = replace(changed, id=f"{sample.id}-{kind}" if sample.id else kind)
    before = text[change.start : change.end]
    return Mutant(kind=kind, original=sample, sample=changed, start=change.start, before=before, after=change.text)
