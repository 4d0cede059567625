"""Values of judged metrics from given verdicts, against their formulas written out a second time, straight down.

The judge decides by a table of what supports what, so that each case is a matrix and nothing else. ``theirs_*`` are the
formulas of the other tool, where ours differs on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragmetrics.metrics import (
    AnswerCorrectness,
    CitationPrecision,
    CitationRecall,
    ContextPrecision,
    FactualCorrectness,
    NoiseSensitivity,
)
from tests.scripted_judge import ScriptedEmbedder, ScriptedJudge, claims, verdicts

RESPONSE, REFERENCE = "The response.", "The reference."
SAID, WANTED = ("Moths fly.", "Bats hang.", "Owls hoot."), ("Hens lay.", "Cats purr.")
CONTEXTS = ("Context one.", "Context two.", "Context three.")
Supports = Callable[[str, Collection[str]], bool]

some_flags = st.lists(st.booleans(), min_size=1, max_size=3)
few_examples = settings(max_examples=30)


def judge(supports: Supports, said: Sequence[str] = SAID, wanted: Sequence[str] = WANTED) -> ScriptedJudge:
    """Return a judge that lists these claims and finds those supported that are by the sources it is shown."""

    def verify(prompt: str) -> dict[str, Any]:
        shown = re.findall(r"^\d+\. (.*)$", block("claims", prompt), re.MULTILINE)
        sources = re.findall(r"^\[\d+\] (.*)$", block("contexts", prompt), re.MULTILINE)
        return verdicts(*([1] if supports(claim, sources) else None for claim in shown))

    def listed(prompt: str) -> dict[str, Any]:
        return claims(*(said if RESPONSE in block("text", prompt) else wanted))

    def useful(prompt: str) -> dict[str, Any]:
        ok = supports("useful", re.findall(r"^\[\d+\] (.*)$", block("contexts", prompt), re.MULTILINE))
        return {"reason": "So.", "sentences": [1] * ok, "verdict": "useful" if ok else "useless"}

    return ScriptedJudge(list_claims=listed, verify_claims=verify, judge_usefulness=useful)


def block(label: str, prompt: str) -> str:
    """Return a block of a prompt."""
    found = re.search(rf"<<<{label} (\w+)\n(.*?)\n\1 {label}>>>", prompt, re.DOTALL)
    return found[2] if found else ""


def pairs_of(table: dict[tuple[str, str], bool]) -> Supports:
    """Return what supports by a table of claim and source."""
    return lambda claim, sources: any(table[claim, source] for source in sources)


@given(st.data(), st.sampled_from(["relevant", "irrelevant"]))
@few_examples
def test_noise_sensitivity(data: st.DataObject, mode: Any) -> None:
    """As published, from the matrices: A of response and contexts, B of reference and contexts, C of both texts."""
    cells = list(product((*SAID, *WANTED), (REFERENCE, *CONTEXTS)))
    table = {cell: data.draw(st.booleans(), label=str(cell)) for cell in cells}
    relevant = [any(table[claim, context] for claim in WANTED) for context in CONTEXTS]
    by_relevant = [any(r and table[c, source] for r, source in zip(relevant, CONTEXTS, strict=True)) for c in SAID]
    by_others = [any(not r and table[c, source] for r, source in zip(relevant, CONTEXTS, strict=True)) for c in SAID]
    wrong = [not table[claim, REFERENCE] for claim in SAID]
    if mode == "relevant":
        noisy = [w and r for w, r in zip(wrong, by_relevant, strict=True)]
    else:
        noisy = [w and o and not r for w, o, r in zip(wrong, by_others, by_relevant, strict=True)]
    result = NoiseSensitivity(mode=mode, judge=judge(pairs_of(table))).score(
        response=RESPONSE, reference=REFERENCE, retrieved_contexts=CONTEXTS
    )
    assert result.value == sum(noisy) / len(noisy)


def compared(right: Sequence[bool], there: Sequence[bool]) -> ScriptedJudge:
    """Return a judge for whom so many claims of the response are right, and of the reference there."""
    said, wanted = SAID[: len(right)], WANTED[: len(there)]
    table = dict(zip((*said, *wanted), (*right, *there), strict=True))
    return judge(lambda claim, _: table[claim], said, wanted)


@given(some_flags, st.lists(st.booleans(), min_size=1, max_size=2), st.sampled_from([0.5, 1.0, 2.0]))
@few_examples
def test_factual_correctness(right: list[bool], there: list[bool], beta: float) -> None:
    """The F-beta of a share of the response and a share of the reference."""
    precision, recall = sum(right) / len(right), sum(there) / len(there)
    below = beta * beta * precision + recall
    expected = (1 + beta * beta) * precision * recall / below if below else 0.0
    fields = {"response": RESPONSE, "reference": REFERENCE}
    for mode, value in (("precision", precision), ("recall", recall), ("f1", expected)):
        metric = FactualCorrectness(mode=mode, beta=beta, judge=compared(right, there))  # type: ignore[arg-type]
        assert metric.score(**fields).value == pytest.approx(value)


def theirs_factual_correctness(right: Sequence[bool], there: Sequence[bool]) -> float:
    """Return what Ragas does: recall of the response's true positives and the reference's false negatives."""
    found, surplus, missing = sum(right), len(right) - sum(right), len(there) - sum(there)
    precision, recall = found / (found + surplus), found / (found + missing)
    return 2 * precision * recall / (precision + recall)


def test_one_direction_is_not_mixed_with_the_other() -> None:
    """A response of three true claims that misses one of two things recalls a half, not three quarters."""
    right, there = [True, True, True], [True, False]
    assert theirs_factual_correctness(right, there) == pytest.approx(6 / 7)
    fields = {"response": RESPONSE, "reference": REFERENCE}
    assert FactualCorrectness(judge=compared(right, there)).score(**fields).value == pytest.approx(2 / 3)


@given(some_flags, st.lists(st.booleans(), min_size=1, max_size=2), st.sampled_from([0.0, 0.6, 1.0, -1.0]))
@few_examples
def test_answer_correctness(right: list[bool], there: list[bool], cosine: float) -> None:
    """Three quarters of the F1 from TP, FP and FN, and one of the cosine, never below 0."""
    found, surplus, missing = sum(right), right.count(False), there.count(False)
    f1 = found / (found + 0.5 * (surplus + missing)) if found + surplus + missing else 0.0
    embedder = ScriptedEmbedder({RESPONSE: [1.0, 0.0], REFERENCE: [cosine, (1 - cosine**2) ** 0.5]})
    metric = AnswerCorrectness(judge=compared(right, there), embedder=embedder)
    expected = 0.75 * f1 + 0.25 * max(0.0, cosine)
    assert metric.score(response=RESPONSE, reference=REFERENCE).value == pytest.approx(expected)


def test_an_answer_without_statements_is_not_right() -> None:
    """In Ragas no statement on one side is 1.0."""
    embedder = ScriptedEmbedder({RESPONSE: [1.0, 0.0], REFERENCE: [1.0, 0.0]})
    metric = AnswerCorrectness(judge=judge(lambda *_: True, said=()), embedder=embedder)
    assert metric.score(response=RESPONSE, reference=REFERENCE).value == 0.0


@given(st.lists(st.booleans(), min_size=3, max_size=3))
def test_context_precision(useful: list[bool]) -> None:
    """The mean of the precisions down to each context of use."""
    table = dict(zip(CONTEXTS, useful, strict=True))
    metric = ContextPrecision(judge=judge(lambda _, sources: any(table[source] for source in sources)))
    precisions = [sum(useful[: n + 1]) / (n + 1) for n, it in enumerate(useful) if it]
    expected = sum(precisions) / len(precisions) if precisions else 0.0
    result = metric.score(user_input="Why?", reference=REFERENCE, retrieved_contexts=CONTEXTS)
    assert result.value == pytest.approx(expected)


def theirs_citations(cited: Sequence[Sequence[int]], supports: Callable[[int, frozenset[int]], bool]) -> list[float]:
    """Return recall and precision as the program of ALCE counts them, sentence by sentence."""
    recalled = precise = citations = 0
    for sentence, numbers in enumerate(cited):
        joint = bool(numbers) and supports(sentence, frozenset(numbers))
        recalled += joint
        citations += len(numbers)
        if not joint or len(numbers) == 1:
            precise += joint
            continue
        for number in numbers:
            alone = supports(sentence, frozenset([number]))
            precise += alone or not supports(sentence, frozenset(numbers) - {number})
    return [recalled / len(cited), precise / citations if citations else 0.0]


@given(
    st.lists(
        st.permutations([1, 2, 3]).flatmap(lambda p: st.integers(0, 3).map(lambda n: p[:n])), min_size=3, max_size=3
    ),
    st.data(),
)
@few_examples
def test_citations(cited: list[list[int]], data: st.DataObject) -> None:
    """As ALCE has them, whatever sets of contexts support a sentence; a set with one that does supports it too."""
    least = [data.draw(st.lists(st.frozensets(st.integers(1, 3), min_size=1), max_size=2)) for _ in cited]

    def supports(sentence: int, numbers: frozenset[int]) -> bool:
        return any(enough <= numbers for enough in least[sentence])

    def by_text(claim: str, sources: Collection[str]) -> bool:
        return supports(SAID.index(claim), frozenset(CONTEXTS.index(source) + 1 for source in sources))

    marks = ("".join(f" [{number}]" for number in numbers) for numbers in cited)
    response = " ".join(f"{claim[:-1]}{mark}." for claim, mark in zip(SAID, marks, strict=True))
    fields: dict[str, Any] = {"response": response, "retrieved_contexts": CONTEXTS}
    recall, precision = theirs_citations(cited, supports)
    assert CitationRecall(judge=judge(by_text)).score(**fields).value == recall
    assert CitationPrecision(if_empty=0.0, judge=judge(by_text)).score(**fields).value == precision
