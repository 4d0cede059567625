"""One test against its counterpart in the baseline, as the page shows it: answer, passages, verdicts and scores.

Made of the records of both runs; ``templates/compare.html.jinja`` renders it. Of the texts that are the same in both
runs only beginnings are here: the test itself shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from pytest_ragmetrics.core.result import Verdict
from pytest_ragmetrics.report.outcomes import PairedTest
from pytest_ragmetrics.report.text_changes import Piece, Text, TextChange, folded, marked, text_change, versions
from pytest_ragmetrics.runs.compare import Kind, RunComparison, TestChange, judging_changes
from pytest_ragmetrics.runs.records import Record, TestRecord, flips
from pytest_ragmetrics.runs.wording.figures import counted, noun_for
from pytest_ragmetrics.text.unicode import shortened

#: What a reader may want to see of the tests that have changed.
Chip = Literal["changed", "worse", "better", "passages", "rescored", "new", "gone", "flips"]
#: Every chip as the page calls it.
CHIPS: Mapping[Chip, str] = {
    "changed": "Changed",
    "worse": "Worse",
    "better": "Better",
    "passages": "Other passages",
    "rescored": "Same answer, other score",
    "new": "New",
    "gone": "Gone",
    "flips": "Flips",
}
#: What of a score that changed is worse, also that it was lost, and what is better.
_RESCORED: Mapping[Kind, Chip] = {"worse": "worse", "unscored": "worse", "better": "better", "scored again": "better"}
#: What became of a passage: ``edited`` has nearly the same text, ``moved`` stands elsewhere among those of both runs.
PassageState = Literal["lost", "new", "edited", "moved", "kept"]
_STATES: tuple[PassageState, ...] = get_args(PassageState)

_NAME_LENGTH, _PREVIEW_LENGTH = 80, 110
#: Verdicts that are this short on average are on single words: they are listed in a line.
_WORD_LENGTH, _WORDS_SHOWN = 20, 30
#: As many claims that are as before are listed.
_FEW = 3
#: What became of a verdict, ok or not then and now, in the order of the list; ``None`` where it was not made.
_ORDER = (
    *((True, False), (None, False), (False, False)),
    *((False, True), (None, True), (True, True), (True, None), (False, None)),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageChange:
    """A passage and its ranks, from 1, ``None`` where it was or is not retrieved.

    ``name`` is its id, "" without one, ``preview`` its beginning. ``pieces`` are all of one that is lost, and what
    changed of an edited one. ``carried`` are the claims that one that is lost was evidence for, by their numbers.
    """

    then: int | None
    now: int | None
    state: PassageState
    name: str
    preview: str
    pieces: tuple[Piece, ...] = ()
    carried: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictChange:
    """A claim then and now, ``None`` where it was not made; ``number`` is its place among all claims of the sample."""

    number: int
    old: Verdict | None
    new: Verdict | None

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Both texts as one."""
        if self.old is not None and self.new is not None:
            return text_change(self.old.text, self.new.text).pieces
        old, new = ("" if it is None else it.text for it in (self.old, self.new))
        return folded([*marked(old, "removed"), *marked(new, "added")])


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictsChange:
    """The verdicts of a score: what changed and what did not, or single words in ``lines`` of their own."""

    record: Record
    changed: tuple[VerdictChange, ...] = ()
    kept: tuple[VerdictChange, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()

    @property
    def rows(self) -> tuple[VerdictChange, ...]:
        """Those that are listed: what changed, and what did not if it is little."""
        return (*self.changed, *self.kept) if len(self.kept) <= _FEW else self.changed


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleChange:
    """One sample then and now; ``facts`` say whether question and judging are the same.

    ``passages`` are empty where they are the same; ``passages_title`` then says so, and is "" without any.
    """

    pairs: tuple[TestChange, ...]
    facts: tuple[str, ...]
    question: TextChange | None
    answer: TextChange | None
    passages: tuple[PassageChange, ...]
    passages_title: str
    verdicts: tuple[VerdictsChange, ...]

    @property
    def changed(self) -> float:
        """How much of the answer and of the passages changed, both as shares."""
        pieces = self.answer.pieces if self.answer else ()
        letters = sum(len(piece.text) for piece in pieces if piece.kind != "same")
        others = sum(passage.state != "kept" for passage in self.passages)
        return letters / max(sum(len(piece.text) for piece in pieces), 1) + others / max(len(self.passages), 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareView:
    """A test against its counterpart; ``size`` orders tests by how much changed: of scores, then of texts.

    There are no ``samples`` where there is nothing to compare: of a new test, and of one that only flips.
    """

    chips: tuple[Chip, ...]
    size: tuple[float, float] = (0.0, 0.0)
    samples: tuple[SampleChange, ...] = ()


def build_compare_view(paired: PairedTest, comparison: RunComparison) -> CompareView | None:
    """Return what changed of a test of a run with a baseline; ``None`` where nothing did."""
    test, before = paired.test, paired.before
    flipping: list[Chip] = ["flips"] if any(flips(it.samples, it.threshold) for it in test.records) else []
    if before is None:
        return CompareView(chips=("new", *flipping))
    pairs = [comparison.pairs[id(record)] for record in test.records]
    pairs += [pair for record in before.records if (pair := comparison.pairs[id(record)]).new is None]
    found = {*_chips(paired, pairs), *flipping}
    chips = tuple(chip for chip in CHIPS if chip in found)
    if "changed" not in found:
        return CompareView(chips=chips) if chips else None
    samples = tuple(_sample_changes(pairs, comparison))
    rescored = max((abs(pair.change or 0.0) for pair in pairs if not pair.obstacles), default=0.0)
    return CompareView(
        chips=chips, size=(rescored, max((sample.changed for sample in samples), default=0.0)), samples=samples
    )


def build_gone_view(test: TestRecord, comparison: RunComparison) -> CompareView:
    """Return what a test of the baseline was that has no counterpart now."""
    pairs = [replace(comparison.pairs[id(record)], new=None) for record in test.records]
    return CompareView(chips=("gone",), samples=tuple(_sample_changes(pairs, comparison)))


def count_chips(views: Iterable[CompareView | None]) -> tuple[tuple[Chip, str, int], ...]:
    """Return the chips that occur, each as the page calls it and with the number of its tests."""
    counts = Counter(chip for view in views if view is not None for chip in view.chips)
    return tuple((chip, label, counts[chip]) for chip, label in CHIPS.items() if counts[chip])


def _chips(paired: PairedTest, pairs: Iterable[TestChange]) -> Iterator[Chip]:
    """Yield the chips of a test with a counterpart, some more than once."""
    if paired.kind in ("newly fails", "fixed"):
        yield from ("changed", "worse" if paired.kind == "newly fails" else "better")
    for pair in pairs:
        if pair.old is None or pair.new is None:
            yield "changed"
            continue
        before, now = pair.old.record, pair.new.record
        other_passages = before.sample.retrieved_contexts != now.sample.retrieved_contexts
        other_answer = before.sample.response != now.sample.response
        rescored = None if pair.obstacles else _RESCORED.get(pair.kind)
        if other_passages:
            yield "passages"
        if rescored:
            yield rescored
        if rescored and not other_answer and not other_passages:
            yield "rescored"
        if rescored or other_answer or other_passages or "question" in pair.obstacles or before.outcome != now.outcome:
            yield "changed"


# All fields of a sample, none where there is none.
_Sample = dict[str, Any]


def _sample_changes(pairs: Iterable[TestChange], comparison: RunComparison) -> Iterator[SampleChange]:
    """Yield the pairs by their samples, each with all fields then and now: metrics take different fields of one."""
    groups: list[tuple[list[TestChange], _Sample, _Sample]] = []
    for pair in pairs:
        before, now = ({} if it is None else it.record.sample.to_mapping() for it in (pair.old, pair.new))
        for found, old, new in groups:
            both = ((old, before), (new, now))
            is_same = all(known[name] == it[name] for known, it in both for name in known.keys() & it.keys())
            if is_same and all((old or new).get(name) == (before or now).get(name) for name in ("id", "user_input")):
                found.append(pair)
                old.update(before)
                new.update(now)
                break
        else:
            groups.append(([pair], before, now))
    for group in groups:
        yield _sample_change(*group, comparison)


def _sample_change(
    pairs: Sequence[TestChange], before: _Sample, now: _Sample, comparison: RunComparison
) -> SampleChange:
    """Return what changed of a sample; that of a test that is gone has no fields ``now``."""
    asks_else = bool(before and now) and before.get("user_input") != now.get("user_input")
    verdicts = list(_verdict_changes(pairs))
    passages = _passage_changes(_passages(before), _passages(now), verdicts)
    states = Counter(passage.state for passage in passages)
    differing = ", ".join(f"{states[state]} {state}" for state in _STATES if states[state] and state != "kept")
    title = differing or f"the same {len(passages)} as before" if now else counted(len(passages), "passage")
    return SampleChange(
        pairs=tuple(pairs),
        facts=tuple(_facts(pairs, comparison, asks_else=asks_else)),
        question=_field_change("user_input", before, now) if asks_else else None,
        answer=_field_change("response", before, now),
        passages=passages if differing else (),
        passages_title=title if passages else "",
        verdicts=tuple(change for change in verdicts if change.changed or change.lines),
    )


def _field_change(field: str, *samples: _Sample) -> TextChange | None:
    before, now = (sample.get(field) for sample in samples)
    if before is not None and now is not None:
        return text_change(before, now)
    known = now if before is None else before
    title = "not in the baseline" if before is None else "of the baseline"
    return None if known is None else TextChange(pieces=folded([Piece(text=known)]), title=title)


def _facts(pairs: Iterable[TestChange], comparison: RunComparison, *, asks_else: bool) -> Iterator[str]:
    both = [(pair.old.record, pair.new.record, pair) for pair in pairs if pair.old and pair.new]
    if not both:
        return
    yield "another question" if asks_else else "same question"
    then, now = comparison.baseline.run.judging, comparison.document.run.judging
    metrics = sorted({pair.metric for *_, pair in both})
    known = [metric for metric in metrics if metric in then and metric in now]
    changes = [f"{metric}: {change}" for metric in known for change in judging_changes(then[metric], now[metric])]
    stated = ("question", "rules", "judge") if changes else ("question",)
    changes += [it for *_, pair in both for name, why in pair.obstacles.items() if name not in stated for it in why]
    yield from dict.fromkeys(changes)
    olds, news = ({record.judge for record in side if record.judge} for side in (*zip(*both, strict=True),)[:2])
    if not changes and olds == news != set():
        yield "same judge and prompts" if known == metrics else "same judge"


def _passages(sample: _Sample) -> list[Text]:
    texts, ids = (sample.get(name) or () for name in ("retrieved_contexts", "retrieved_context_ids"))
    return [Text(text, str(ids[place]) if len(ids) == len(texts) else None) for place, text in enumerate(texts)]


def _passage_changes(
    olds: Sequence[Text], news: Sequence[Text], verdicts: Iterable[VerdictsChange]
) -> tuple[PassageChange, ...]:
    from rapidfuzz.distance import Indel

    found = versions(olds, news)
    carried = _carried(olds, verdicts)
    in_order = sorted(found)
    # The longest row in the order of then stayed; a passage that is not in it moved.
    steps = Indel.opcodes(sorted(found.values()), [found[place] for place in in_order])
    stayed = {place for step in steps if step.tag == "equal" for place in in_order[step.dest_start : step.dest_end]}
    lost = [(at, None) for at in range(len(olds)) if at not in found.values()]
    changes = []
    for at, now in [*((found.get(now), now) for now in range(len(news))), *lost]:
        shown = olds[at or 0] if now is None else news[now]
        state: PassageState = "new" if at is None else "lost" if now is None else "kept" if now in stayed else "moved"
        pieces = folded([Piece(text=shown.text)]) if now is None else ()
        if at is not None and now is not None and olds[at].text.split() != shown.text.split():
            state, pieces = "edited", text_change(olds[at].text, shown.text).pieces
        words = " ".join(shown.text[: 2 * _PREVIEW_LENGTH].split())
        cut = words[:_PREVIEW_LENGTH]
        changes.append(
            PassageChange(
                then=None if at is None else at + 1,
                now=None if now is None else now + 1,
                state=state,
                name=shortened(shown.id or "", _NAME_LENGTH),
                preview=words if words == cut else f"{cut.rpartition(' ')[0] or cut} \u2026",
                pieces=pieces,
                carried="" if at is None or now is not None else carried.get(at, ""),
            )
        )
    # One that is lost stands where it was.
    return tuple(sorted(changes, key=lambda it: it.now or (it.then or 0) - 0.5))


def _carried(passages: Sequence[Text], verdicts: Iterable[VerdictsChange]) -> dict[int, str]:
    """Return by passage the claims it was evidence for, by noun and number; evidence may also be of other contexts."""
    found: dict[int, dict[str, list[int]]] = {}
    for change in verdicts:
        listed = change.rows if change.changed else ()
        for row in (*change.changed, *change.kept):
            evidence = row.old.evidence if row.old is not None and row.old.ok else ()
            for place in {
                piece.context
                for piece in evidence
                if 0 <= piece.context < len(passages)
                and piece.text.split() == passages[piece.context].text[max(piece.start, 0) : piece.end].split() != []
            }:
                numbers = found.setdefault(place, {}).setdefault(change.record.noun, [])
                numbers.append(row.number if row in listed else 0)
    return {
        place: " and ".join(_numbered(noun, numbers) for noun, numbers in by_noun.items())
        for place, by_noun in found.items()
    }


def _numbered(noun: str, numbers: Sequence[int]) -> str:
    """Return claims by their numbers, of those that are not listed (0) how many there are."""
    shown = sorted(filter(None, numbers))
    if not shown:
        return counted(len(numbers), noun)
    more = f" and {numbers.count(0)} as before" if 0 in numbers else ""
    return f"{noun_for(len(numbers), noun)} {', '.join(map(str, shown))}{more}"


def _verdict_changes(pairs: Iterable[TestChange]) -> Iterator[VerdictsChange]:
    number = 1
    for pair in pairs:
        if pair.old and pair.new and "metric" not in pair.obstacles:
            change = verdicts_change(pair.old.record, pair.new.record, number)
            number += len(change.changed) + len(change.kept) if change.changed else 0
            yield change


def verdicts_change(before: Record, now: Record, first: int = 1) -> VerdictsChange:
    """Return what became of the verdicts of a metric, numbered from ``first``."""
    olds, news = ([it for it in record.verdicts if it.counts] for record in (before, now))
    if sum(len(it.text) for it in (*olds, *news)) <= _WORD_LENGTH * len([*olds, *news]):
        return VerdictsChange(record=now, lines=tuple(_word_lines(olds, news, now.complaint)))
    found = versions([Text(it.text) for it in olds], [Text(it.text) for it in news])
    pairs: list[tuple[Verdict | None, Verdict | None]] = [
        (olds[found[at]] if at in found else None, new) for at, new in enumerate(news)
    ]
    pairs += [(old, None) for at, old in enumerate(olds) if at not in found.values()]
    kept = [(old, new) for old, new in pairs if old and new and (old.ok, old.text) == (new.ok, new.text)]
    changed = [pair for pair in pairs if pair not in kept]
    # What is not ok now comes first, and of that what was.
    changed.sort(key=lambda pair: _ORDER.index(tuple(None if it is None else it.ok for it in pair)))
    rows = [VerdictChange(number=at, old=old, new=new) for at, (old, new) in enumerate([*changed, *kept], start=first)]
    return VerdictsChange(record=now, changed=tuple(rows[: len(changed)]), kept=tuple(rows[len(changed) :]))


def _word_lines(olds: Iterable[Verdict], news: Iterable[Verdict], complaint: str) -> Iterator[tuple[str, str]]:
    then, now = ({it.text: None for it in side if not it.ok} for side in (olds, news))
    for title, words in (("newly", now.keys() - then.keys()), ("no longer", then.keys() - now.keys())):
        listed = [word for word in (*now, *then) if word in words]
        more = f" and {len(listed) - _WORDS_SHOWN} more" if len(listed) > _WORDS_SHOWN else ""
        if listed:
            yield f"{title} {complaint}", ", ".join(listed[:_WORDS_SHOWN]) + more
