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
from pytest_ragmetrics.report.text_changes import (
    Piece,
    Text,
    TextChange,
    folded,
    marked,
    text_change,
    versions,
)
from pytest_ragmetrics.runs.compare import Kind, Obstacle, RunComparison, TestChange, judging_changes
from pytest_ragmetrics.runs.records import Record, TestRecord, flips
from pytest_ragmetrics.runs.wording.figures import NOTHING_TO_CHECK, counted, named, score_text, threshold_text
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
#: What became of a passage: ``edited`` has nearly the same text, ``moved`` stands elsewhere among those of both runs.
PassageState = Literal["lost", "new", "edited", "moved", "kept"]
_STATES: tuple[PassageState, ...] = get_args(PassageState)
#: How a score compares: its outcome became worse or better, or there is none to compare.
Tone = Literal["bad", "good", "open", "same"]

_NAME_LENGTH, _PREVIEW_LENGTH, _CLAIM_LENGTH = 80, 110, 120
#: Verdicts that are this short on average are on single words: they are listed in a line.
_WORD_LENGTH, _WORDS_SHOWN = 20, 30
#: As many claims that are as before are listed.
_FEW = 3


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
    """A claim then and now, ``None`` where it was not made; ``reason`` is why it is not ok, and was not so before.

    ``number`` is its place among all claims of the sample, ``old`` the former one.
    """

    number: int
    old: Verdict | None
    then: bool | None
    now: bool | None
    pieces: tuple[Piece, ...]
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictsChange:
    """The verdicts of a metric: what changed and what did not, or single words in ``lines`` of their own."""

    metric: str
    noun: str
    changed: tuple[VerdictChange, ...] = ()
    kept: tuple[VerdictChange, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()

    @property
    def rows(self) -> tuple[VerdictChange, ...]:
        """Those that are listed: what changed, and what did not if it is little."""
        return (*self.changed, *self.kept) if len(self.kept) <= _FEW else self.changed


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreChange:
    """A score then and now; ``needs`` is its threshold, ``word`` says what became of it."""

    metric: str
    then: str
    now: str
    needs: str
    word: str
    tone: Tone


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleChange:
    """One sample then and now; ``facts`` say whether question and judging are the same.

    ``passages`` are empty where they are the same; ``passages_title`` then says so, and is "" without any.
    """

    facts: tuple[str, ...]
    question: TextChange | None
    answer: TextChange | None
    passages: tuple[PassageChange, ...]
    passages_title: str
    scores: tuple[ScoreChange, ...]
    verdicts: tuple[VerdictsChange, ...]


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
    builders = [_SampleBuilder(group, comparison) for group in _samples(pairs)]
    rescored = max((abs(pair.change or 0.0) for pair in pairs if not pair.obstacles), default=0.0)
    return CompareView(
        chips=chips,
        size=(rescored, max((builder.changed for builder in builders), default=0.0)),
        samples=tuple(builder.build() for builder in builders),
    )


def build_gone_view(test: TestRecord, comparison: RunComparison) -> CompareView:
    """Return what a test of the baseline was that has no counterpart now."""
    pairs = [replace(comparison.pairs[id(record)], new=None) for record in test.records]
    builders = [_SampleBuilder(group, comparison) for group in _samples(pairs)]
    return CompareView(chips=("gone",), samples=tuple(builder.build() for builder in builders))


def count_chips(views: Iterable[CompareView | None]) -> tuple[tuple[Chip, str, int], ...]:
    """Return the chips that occur, each as the page calls it and with the number of its tests."""
    counts = Counter(chip for view in views if view is not None for chip in view.chips)
    return tuple((chip, label, counts[chip]) for chip, label in CHIPS.items() if counts[chip])


_Sample = dict[str, Any] | None
_Group = tuple[list[TestChange], _Sample, _Sample]


def _samples(pairs: Iterable[TestChange]) -> list[_Group]:
    """Return the pairs by their samples, each with all fields then and now: metrics take different fields of one."""
    groups: list[_Group] = []
    for pair in pairs:
        before, now = (None if it is None else it.record.sample.to_mapping() for it in (pair.old, pair.new))
        for place, (found, old, new) in enumerate(groups):
            if _is_same(old, before) and _is_same(new, now) and _is_asked(old or new, before or now):
                groups[place] = ([*found, pair], _united(old, before), _united(new, now))
                break
        else:
            groups.append(([pair], before, now))
    return groups


def _is_same(known: _Sample, sample: _Sample) -> bool:
    return not known or not sample or all(known[name] == sample[name] for name in known.keys() & sample.keys())


def _is_asked(known: _Sample, sample: _Sample) -> bool:
    """Tell whether two samples, one of which may be of the other run, have the same id and question."""
    return all((known or {}).get(name) == (sample or {}).get(name) for name in ("id", "user_input"))


def _united(known: _Sample, sample: _Sample) -> _Sample:
    return sample if known is None else {**known, **(sample or {})}


# What of a score that changed is worse, also that it was lost, and what is better.
_RESCORED: Mapping[Kind, Chip] = {"worse": "worse", "unscored": "worse", "better": "better", "scored again": "better"}


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


class _SampleBuilder:
    """Builds what changed of one sample; of a test that is gone there is none now."""

    def __init__(self, group: _Group, comparison: RunComparison) -> None:
        (self._pairs, self._before, self._now), self._comparison = group, comparison
        self._answer = self._text_change("response")
        self._verdicts = tuple(self._verdict_changes())
        self._passages = self._passage_changes()

    @property
    def changed(self) -> float:
        """How much of the answer and of the passages changed, both as shares."""
        pieces = self._answer.pieces if self._answer else ()
        letters = sum(len(piece.text) for piece in pieces if piece.kind != "same")
        others = sum(passage.state != "kept" for passage in self._passages)
        return letters / max(sum(len(piece.text) for piece in pieces), 1) + others / max(len(self._passages), 1)

    def build(self) -> SampleChange:
        """Return the change."""
        both = [(pair.old.record, pair.new.record) for pair in self._pairs if pair.old and pair.new]
        differ = any(passage.state != "kept" for passage in self._passages)
        return SampleChange(
            facts=tuple(self._facts(both)),
            question=self._text_change("user_input") if self._asks_else else None,
            answer=self._answer,
            passages=self._passages if differ else (),
            passages_title=self._passages_title(),
            scores=tuple(map(score_change, self._pairs)),
            verdicts=tuple(change for change in self._verdicts if change.changed or change.lines),
        )

    def _text_change(self, field: str) -> TextChange | None:
        before, now = ((sample or {}).get(field) for sample in (self._before, self._now))
        if before is not None and now is not None:
            return text_change(before, now)
        known = now if before is None else before
        title = "not in the baseline" if before is None else "of the baseline"
        return None if known is None else TextChange(pieces=folded([Piece(text=known)]), title=title)

    @property
    def _asks_else(self) -> bool:
        before, now = self._before, self._now
        return before is not None and now is not None and before.get("user_input") != now.get("user_input")

    def _facts(self, both: Sequence[tuple[Record, Record]]) -> Iterator[str]:
        if not both:
            return
        yield "another question" if self._asks_else else "same question"
        judging = [run.judging for run in (self._comparison.baseline.run, self._comparison.document.run)]
        metrics = sorted({now.metric for _, now in both})
        changes = {
            metric: list(judging_changes(*(by_metric[metric] for by_metric in judging)))
            for metric in metrics
            if all(metric in by_metric for by_metric in judging)
        }
        then, now = ({record.judge for record in side if record.judge} for side in zip(*both, strict=True))
        if any(changes.values()):
            yield from (f"{metric}: {change}" for metric, found in changes.items() for change in found)
        elif then != now:
            names = (", ".join(map(named, sorted(side))) or "none" for side in (then, now))
            yield "judge {}, then {}".format(*names)
        elif now:
            yield "same judge and prompts" if len(changes) == len(metrics) else "same judge"

    def _passage_changes(self) -> tuple[PassageChange, ...]:
        from rapidfuzz.distance import Indel

        olds, news = _passages(self._before), _passages(self._now)
        found = versions(olds, news)
        carried = self._carried(olds)
        in_order = sorted(found)
        # The longest row in the order of then stayed; a passage that is not in it moved.
        steps = Indel.opcodes(sorted(found.values()), [found[place] for place in in_order])
        stayed = {place for step in steps if step.tag == "equal" for place in in_order[step.dest_start : step.dest_end]}
        changes = [_passage("new", new, now=now) for now, new in enumerate(news) if now not in found]
        for at, old in enumerate(olds):
            if at not in found.values():
                pieces = folded([Piece(text=old.text)])
                changes.append(_passage("lost", old, then=at, pieces=pieces, carried=carried.get(at, "")))
        for now, at in found.items():
            then, new = olds[at].text, news[now]
            edited = then.split() != new.text.split()
            state: PassageState = "edited" if edited else "kept" if now in stayed else "moved"
            pieces = text_change(then, new.text).pieces if edited else ()
            changes.append(_passage(state, new, then=at, now=now, pieces=pieces))
        # One that is lost stands where it was.
        return tuple(sorted(changes, key=lambda it: it.now or (it.then or 0) - 0.5))

    def _verdict_changes(self) -> Iterator[VerdictsChange]:
        number = 1
        for pair in self._pairs:
            if pair.old and pair.new and "metric" not in pair.obstacles:
                change = verdicts_change(pair.old.record, pair.new.record, number)
                number += len(change.changed) + len(change.kept) if change.changed else 0
                yield change

    def _passages_title(self) -> str:
        number = len(self._passages)
        if self._now is None or not number:
            return counted(number, "passage") if number else ""
        states = Counter(passage.state for passage in self._passages)
        parts = [f"{states[state]} {state}" for state in _STATES if states[state] and state != "kept"]
        return ", ".join(parts) or f"the same {number} as before"

    def _carried(self, olds: Sequence[Text]) -> dict[int, str]:
        found: dict[int, list[tuple[str, int]]] = {}
        for change in self._verdicts:
            listed = change.rows if change.changed else ()
            for row in (*change.changed, *change.kept):
                for place in _evidence_of(row.old, olds) if row.old is not None and row.old.ok else ():
                    found.setdefault(place, []).append((change.noun, row.number if row in listed else 0))
        return {place: _numbered(claims) for place, claims in found.items()}


def _evidence_of(verdict: Verdict, passages: Sequence[Text]) -> set[int]:
    """Return the places of the passages that are evidence for a verdict; it may also stand in other contexts."""
    return {
        piece.context
        for piece in verdict.evidence
        if 0 <= piece.context < len(passages)
        and piece.text.split() == passages[piece.context].text[max(piece.start, 0) : piece.end].split() != []
    }


def _numbered(claims: Iterable[tuple[str, int]]) -> str:
    """Return the claims by noun and number, of those that are not listed how many there are."""
    by_noun: dict[str, list[int]] = {}
    for noun, number in claims:
        by_noun.setdefault(noun, []).append(number)
    parts = []
    for noun, numbers in by_noun.items():
        shown = sorted(filter(None, numbers))
        more = f" and {numbers.count(0)} as before" if 0 in numbers else ""
        parts.append(
            f"{noun}{'s'[: len(numbers) > 1]} {', '.join(map(str, shown))}{more}"
            if shown
            else counted(len(numbers), noun)
        )
    return " and ".join(parts)


def _passages(sample: _Sample) -> list[Text]:
    texts, ids = ((sample or {}).get(name) or () for name in ("retrieved_contexts", "retrieved_context_ids"))
    return [Text(text, str(ids[place]) if len(ids) == len(texts) else None) for place, text in enumerate(texts)]


def _passage(
    state: PassageState,
    shown: Text,
    *,
    then: int | None = None,
    now: int | None = None,
    pieces: tuple[Piece, ...] = (),
    carried: str = "",
) -> PassageChange:
    """Return a passage that was and is at these places, from 0."""
    return PassageChange(
        then=None if then is None else then + 1,
        now=None if now is None else now + 1,
        state=state,
        name=shortened(shown.id or "", _NAME_LENGTH),
        preview=_preview(shown.text),
        pieces=pieces,
        carried=carried,
    )


def _preview(text: str) -> str:
    words = " ".join(text[: 2 * _PREVIEW_LENGTH].split())
    return words if len(words) <= _PREVIEW_LENGTH else f"{words[:_PREVIEW_LENGTH].rpartition(' ')[0] or words} \u2026"


def verdicts_change(before: Record, now: Record, first: int = 1) -> VerdictsChange:
    """Return what became of the verdicts of a metric, numbered from ``first``."""
    olds, news = ([it for it in record.verdicts if it.counts] for record in (before, now))
    if _are_words([*olds, *news]):
        lines = tuple(_word_lines(olds, news, now.complaint))
        return VerdictsChange(metric=now.metric, noun=now.noun, lines=lines)
    found = versions([Text(it.text) for it in olds], [Text(it.text) for it in news])
    pairs: list[tuple[Verdict | None, Verdict | None]] = [
        (olds[found[at]] if at in found else None, new) for at, new in enumerate(news)
    ]
    pairs += [(old, None) for at, old in enumerate(olds) if at not in found.values()]
    changed = sorted((pair for pair in pairs if _has_changed(*pair)), key=_verdict_order)
    kept = [pair for pair in pairs if not _has_changed(*pair)]
    rows = [_verdict_change(number, old, new) for number, (old, new) in enumerate([*changed, *kept], start=first)]
    return VerdictsChange(
        metric=now.metric, noun=now.noun, changed=tuple(rows[: len(changed)]), kept=tuple(rows[len(changed) :])
    )


def _has_changed(old: Verdict | None, new: Verdict | None) -> bool:
    return old is None or new is None or (old.ok, old.text) != (new.ok, new.text)


def _verdict_order(pair: tuple[Verdict | None, Verdict | None]) -> int:
    """Return the place of what became of a verdict: what is not ok now comes first, and of that what was."""
    then, now = (None if verdict is None else verdict.ok for verdict in pair)
    return [
        *((True, False), (None, False), (False, False)),
        *((False, True), (None, True), (True, True), (True, None), (False, None)),
    ].index((then, now))


def _are_words(verdicts: Sequence[Verdict]) -> bool:
    return sum(len(verdict.text) for verdict in verdicts) <= _WORD_LENGTH * len(verdicts)


def _word_lines(olds: Iterable[Verdict], news: Iterable[Verdict], complaint: str) -> Iterator[tuple[str, str]]:
    then, now = ({it.text: None for it in side if not it.ok} for side in (olds, news))
    for title, words in (("newly", now.keys() - then.keys()), ("no longer", then.keys() - now.keys())):
        listed = [word for word in (*now, *then) if word in words]
        more = f" and {len(listed) - _WORDS_SHOWN} more" if len(listed) > _WORDS_SHOWN else ""
        if listed:
            yield f"{title} {complaint}", ", ".join(listed[:_WORDS_SHOWN]) + more


def _verdict_change(number: int, old: Verdict | None, new: Verdict | None) -> VerdictChange:
    if old is not None and new is not None:
        pieces = text_change(old.text, new.text).pieces
    else:
        pieces = folded([*marked(old.text if old else "", "removed"), *marked(new.text if new else "", "added")])
    newly_wrong = new is not None and not new.ok and (old is None or old.ok)
    return VerdictChange(
        number=number,
        old=old,
        then=None if old is None else old.ok,
        now=None if new is None else new.ok,
        pieces=pieces,
        reason=(new.reason or "") if new is not None and newly_wrong else "",
    )


def score_change(pair: TestChange) -> ScoreChange:
    """Return a score then and now, one of which may be missing."""
    before, now = (None if it is None else it.record for it in (pair.old, pair.new))
    then, needed = (None if it is None else it.threshold for it in (before, now))
    bound = needed or then
    needs = "" if bound is None else threshold_text(bound)
    if then is not None and needed is not None and then != needed:
        needs += f", was {threshold_text(then)}"
    word, tone = _score_word(pair, before, now)
    if bound is not None and now is not None and now.outcome == "measured" and not now.vacuous:
        # An earlier assert of the test failed, or this one was taken out.
        word = f"{word}, not asserted now"
    return ScoreChange(
        metric=f"{pair.metric} (lower is better)" if pair.better == "lower" else pair.metric,
        then=_score(before),
        now=_score(now),
        needs=needs,
        word=word,
        tone=tone,
    )


def _score(record: Record | None) -> str:
    if record is None or record.score is None or record.vacuous:
        return "\u2013"
    return score_text(record.score, record.threshold.bound if record.threshold else None)


def _score_word(pair: TestChange, before: Record | None, now: Record | None) -> tuple[str, Tone]:
    if now is None or before is None:
        word = "not scored now" if now is None else "fails, new" if now.outcome == "failed" else "new"
        return word, "bad" if word == "fails, new" else "same"
    word, tone = _outcome_word(pair, before, now)
    why = next((text for obstacle, text in _OTHERS.items() if obstacle in pair.obstacles), "")
    return word + why, tone


_OTHERS: Mapping[Obstacle, str] = {"metric": ", another metric of this name then", "judge": ", by another judge"}


def _outcome_word(pair: TestChange, before: Record, now: Record) -> tuple[str, Tone]:
    if now.score is None:
        return ("no score, both", "open") if before.score is None else ("no score now", "open")
    if now.vacuous and now.outcome != "failed":
        both = before.vacuous and before.score is not None
        return f"{NOTHING_TO_CHECK}, both" if both else f"{NOTHING_TO_CHECK} now", "same"
    then = "no score then" if before.score is None else f"{NOTHING_TO_CHECK} then" if before.vacuous else ""
    failed, did = now.outcome == "failed", before.outcome == "failed"
    if now.outcome == "measured":
        return then or _measured_word(pair), "same"
    if then:
        return f"{'fails' if failed else 'passes'}, {then}", "bad" if failed else "same"
    if before.outcome == "measured":
        return ("fails" if failed else "passes"), "same"
    if failed == did:
        return ("fails, both" if failed else "passes, both"), "same"
    return ("newly fails", "bad") if failed else ("fixed", "good")


def _measured_word(pair: TestChange) -> str:
    if pair.change is None or pair.obstacles:
        return ""
    return "as before" if pair.kind == "same" else f"{score_text(abs(pair.change))} {pair.kind}"
