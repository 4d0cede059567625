"""What became of each test since the baseline, and why: rules over what both runs recorded.

Tests and scores are paired by :mod:`pytest_ragmetrics.runs.compare`. Every test that is no gate has one kind; one that
went wrong, and did not before, has one cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from pytest_ragmetrics.core.result import Verdict
from pytest_ragmetrics.report.judging import kind_of
from pytest_ragmetrics.runs.blame import Part
from pytest_ragmetrics.runs.compare import Obstacle, RunComparison
from pytest_ragmetrics.runs.records import Document, Record, TestRecord, flips
from pytest_ragmetrics.runs.wording.runs import WRONG, Status, blamed, status_of
from pytest_ragmetrics.text.markup import as_readable
from pytest_ragmetrics.text.quotes.alignment import Sources
from pytest_ragmetrics.text.quotes.search import comparison_key
from pytest_ragmetrics.text.sentences import split_sentences
from pytest_ragmetrics.text.unicode import shortened
from pytest_ragmetrics.text.words import telling_words

#: What became of a test; ``fails`` and ``passes`` are those of a run without a baseline.
TestKind = Literal[
    "newly fails",
    "fails, new",
    "fails as before",
    "fails",
    "no score",
    "fixed",
    "passes, new",
    "passes as before",
    "passes",
    "skipped",
]
#: Every kind, the worst news first.
TEST_KINDS: tuple[TestKind, ...] = get_args(TestKind)

#: Why a test went wrong; the first that is true of it, unless crossed texts say which part is to blame.
Cause = Literal["error", "run", "bound", "judge", "altered", "retrieval", "answer", "interplay", "chance"]
#: Every cause in words, the first checked first.
CAUSES: Mapping[Cause, str] = {
    "error": "The test failed before it asserted a score",
    "run": "There is no score",
    "bound": "The same score, held against another threshold",
    "judge": "The judge decided otherwise",
    "altered": "A quotation was altered",
    "retrieval": "A passage is no longer retrieved",
    "answer": "The answer is not supported",
    "interplay": "Answer and passages fail together alone",
    "chance": "The set shows no drop beyond chance",
}
#: The cause that each part to blame stands for, those that a test has first.
_BLAMED: Mapping[Part, Cause] = {
    "retriever": "retrieval",
    "generator": "answer",
    "interplay": "interplay",
    "judge": "judge",
    "chance": "chance",
}
#: The kinds whose tests have a cause.
_EXPLAINED: tuple[TestKind, ...] = ("newly fails", "fails, new", "fails", "no score")
#: Why a pair of scores is not of the same sample, or not of the same metric.
_OTHER_SAMPLE: frozenset[Obstacle] = frozenset({"question", "metric", "ambiguous"})
_DETAIL_LENGTH = 100


def kind_label(kind: TestKind, number: int) -> str:
    """Return a kind as the label of so many tests.

    >>> kind_label("newly fails", 1), kind_label("newly fails", 2), kind_label("passes, new", 0)
    ('newly fails', 'newly fail', 'pass, new')
    """
    return kind if number == 1 else kind.replace("fails", "fail").replace("passes", "pass")


def owners_of(text: str) -> dict[Cause, str]:
    """Return who owns the tests of a cause, by lines like ``retrieval = @ana``; raise ``ValueError`` for another line.

    >>> owners_of("retrieval = @ana, @bo")
    {'retrieval': '@ana, @bo'}
    """
    owners: dict[Cause, str] = {}
    for line in filter(str.strip, text.splitlines()):
        cause, _, owner = (part.strip() for part in line.partition("="))
        known = next((name for name in CAUSES if name == cause), None)
        if known is None or not owner:
            raise ValueError(f"{line.strip()!r} is not CAUSE = OWNER with one of the causes {', '.join(CAUSES)}")
        owners[known] = owner
    return owners


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedTest:
    """A test, its counterpart in the baseline (``None`` where there is none), and what became of it.

    ``detail`` is the piece that shows the ``cause``: a quotation, a passage that is gone, a claim.
    """

    test: TestRecord
    before: TestRecord | None
    kind: TestKind
    cause: Cause | None
    detail: str = ""


def paired_tests(document: Document, comparison: RunComparison | None = None) -> tuple[PairedTest, ...]:
    """Return every test that is no gate with its counterpart, in the order of the document."""
    found = []
    for at, test in enumerate(document.tests):
        if test.gate is not None:
            continue
        then = None if comparison is None else comparison.counterparts.get(at)
        before = None if comparison is None or then is None else comparison.baseline.tests[then]
        status = status_of(test)
        kind = _kind(status, None if before is None else status_of(before), compared=comparison is not None)
        cause, detail = _blamed_cause(test, comparison, status) if kind in _EXPLAINED else (None, "")
        detail = shortened(detail, _DETAIL_LENGTH)
        found.append(PairedTest(test=test, before=before, kind=kind, cause=cause, detail=detail))
    return tuple(found)


def gone_tests(comparison: RunComparison) -> tuple[TestRecord, ...]:
    """Return the tests of the baseline that have no counterpart now, in its order."""
    taken, tests = {*comparison.counterparts.values()}, comparison.baseline.tests
    return tuple(test for at, test in enumerate(tests) if test.gate is None and at not in taken)


def _kind(status: Status, before: Status | None, *, compared: bool) -> TestKind:
    if status in ("unscored", "skipped"):
        return "no score" if status == "unscored" else "skipped"
    fails = status in WRONG
    if not compared:
        return "fails" if fails else "passes"
    if before in (None, "skipped"):
        return "fails, new" if fails else "passes, new"
    if fails:
        return "fails as before" if before in ("failed", "error") else "newly fails"
    return "fixed" if before in WRONG else "passes as before"


def _blamed_cause(test: TestRecord, comparison: RunComparison | None, status: Status) -> tuple[Cause, str]:
    """Return the cause that crossed texts tell, with the piece of the rules where these say the same, else theirs."""
    cause, detail = _cause(test, comparison, status)
    parts = {it.blame.part for it in blamed(test) if it.blame is not None and it.outcome == "failed"}
    told = next((_BLAMED[part] for part in _BLAMED if part in parts), cause)
    # An altered quotation is one of an answer.
    return (cause, detail) if told == cause or (told, cause) == ("answer", "altered") else (told, "")


def _cause(test: TestRecord, comparison: RunComparison | None, status: Status) -> tuple[Cause, str]:
    """Return the first cause whose rule holds, and the piece that shows it.

    Of a score that another judge or another prompt gave the cause can be told, of one of another question it cannot.
    """
    if status == "unscored":
        return "run", next((record.reason or "" for record in test.records if record.outcome == "unscored"), "")
    failed = [record for record in blamed(test) if record.outcome == "failed"]
    if not failed:
        return "error", ""
    known = {} if comparison is None else comparison.pairs
    pairs = [
        (now, pair.old.record, pair.kind)
        for now in failed
        if (pair := known.get(id(now))) and pair.old and not pair.obstacles.keys() & _OTHER_SAMPLE
    ]
    same = [
        (kind, now.threshold != then.threshold)
        for now, then, kind in pairs
        if len({(it.sample.response, it.sample.retrieved_contexts) for it in (now, then)}) == 1
    ]
    if ("same", True) in same:
        return "bound", ""
    if same or any(flips(record.samples, record.threshold) for record in failed):
        return "judge", ""
    wrong = [verdict for record in failed for verdict in record.verdicts if not verdict.ok and verdict.counts]
    for verdict in wrong:
        if verdict.kind is not None and verdict.nearest is not None and verdict.nearest.changes:
            return "altered", verdict.text
    for lost in filter(None, (_lost_piece(now, then) for now, then, _ in pairs)):
        return "retrieval", lost
    if any(now.judge is not None and _borne_out(then) and _is_same_answer(now, then) for now, then, _ in pairs):
        return "judge", ""
    return "answer", wrong[0].text if wrong else ""


def _is_same_answer(now: Record, before: Record) -> bool:
    this, that = now.sample.response, before.sample.response
    return this is not None and that is not None and comparison_key(this) == comparison_key(that)


def _borne_out(record: Record) -> list[Verdict]:
    return [verdict for verdict in record.verdicts if verdict.ok and verdict.evidence]


def _lost_piece(now: Record, before: Record) -> str:
    """Return a sentence of the former evidence that is not retrieved now, and that what is wrong is about; else "".

    What is wrong is about the former verdict that has, with its evidence, most of its words; of two that have as many,
    about the one whose evidence is kept. A metric that judges no answer needs all of its evidence.
    """
    known, passages = _borne_out(before), now.sample.retrieved_contexts or ()
    lost = {at: piece for at, verdict in enumerate(known) if (piece := _missing_piece(verdict, passages))}
    if not lost:
        return ""
    kind = kind_of(now.metric)
    if len(lost) == len(known) or (kind is not None and "response" not in kind.requires):
        return next(iter(lost.values()))
    words = [_words(" ".join([it.text, *(piece.text for piece in it.evidence)])) for it in known]
    for verdict in now.verdicts:
        if not verdict.ok and verdict.counts:
            said = _words(verdict.text)
            _, is_kept, at = max((len(said & these), at not in lost, at) for at, these in enumerate(words))
            if not is_kept:
                return lost[at]
    return ""


def _words(text: str) -> set[str]:
    return {word.key for word in telling_words(text)}


def _missing_piece(verdict: Verdict, passages: Sequence[str]) -> str:
    """Return a sentence of a verdict's evidence that stands in no passage, "" if there is none."""
    for evidence in verdict.evidence:
        sentences = [evidence.text[start:end] for start, end in split_sentences(evidence.text)]
        missing = [sentence for sentence in sentences if not _stands_in(sentence, tuple(passages))]
        # Evidence may be a whole passage, which may have had a heading.
        if 2 * len(missing) > len(sentences):
            return missing[0]
    return ""


def _stands_in(sentence: str, passages: tuple[str, ...]) -> bool:
    """Tell whether a sentence stands in a passage or, cut in two, in two of them, which may come in any order.

    Layout, case, typography and markup are overlooked.
    """
    sources, keys = _sources(passages)
    if sources.find(sentence):
        return True
    key = comparison_key(as_readable(sentence))
    return any(
        (any(each.endswith(key[:at]) for each in keys) and any(key[at:] in each for each in keys))
        or (any(each.startswith(key[at:]) for each in keys) and any(key[:at] in each for each in keys))
        for at in range(1, len(key))
    )


# The evidence of a sample is looked for in the same passages.
@lru_cache(maxsize=4)
def _sources(passages: tuple[str, ...]) -> tuple[Sources, list[bytes]]:
    return Sources(passages), [comparison_key(as_readable(passage)) for passage in passages]
