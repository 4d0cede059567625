"""CitationRecall and CitationPrecision, as ALCE defines them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.metrics import CitationPrecision, CitationRecall
from tests.scripted_judge import Answer, ScriptedJudge, verdicts

CONTEXTS = [f"Source number {number} says so." for number in range(1, 6)]
#: For each sentence the sets of contexts that support it, or any larger set.
Supports = Mapping[str, list[set[int]]]


def judging(supports: Supports) -> ScriptedJudge:
    """Return a judge by which a sentence is supported where one of its sets is among the contexts shown."""

    def verified(prompt: str) -> Answer:
        shown = {int(number) for number in re.findall(r"Source number (\d+) says", prompt)}
        (claim,) = re.findall(r"(?m)^1\. (.*)$", prompt)
        return verdicts([1] if any(enough <= shown for enough in supports[claim]) else None)

    return ScriptedJudge(verify_claims=verified)


def scores(supports: Supports, response: str) -> tuple[float, float]:
    """Return the recall and the precision of a response."""
    fields: dict[str, Any] = {"response": response, "retrieved_contexts": CONTEXTS}
    recall = CitationRecall(judge=judging(supports)).score(**fields)
    return recall.value, CitationPrecision(judge=judging(supports)).score(**fields).value


@pytest.mark.parametrize(
    ("response", "supports", "recall", "precision"),
    [
        ("Moths fly [1].", {"Moths fly.": [{1}]}, 1.0, 1.0),
        ("Moths fly [1].", {"Moths fly.": [{2}]}, 0.0, 0.0),
        # Both are needed.
        ("Moths fly [1][2].", {"Moths fly.": [{1, 2}]}, 1.0, 1.0),
        # One is enough, and the other neither needed nor enough.
        ("Moths fly [1][2].", {"Moths fly.": [{1}]}, 1.0, 0.5),
        # Each is enough: neither is needed, and both are sufficient.
        ("Moths fly [1, 2].", {"Moths fly.": [{1}, {2}]}, 1.0, 1.0),
        # Two of three are needed together.
        ("Moths fly [1][2][3].", {"Moths fly.": [{1, 3}]}, 1.0, 2 / 3),
        # Any two do: none is needed, and none is enough alone.
        ("Moths fly [1-3].", {"Moths fly.": [{1, 2}, {1, 3}, {2, 3}]}, 1.0, 0.0),
        # A sentence without a citation counts for recall alone.
        ("Moths fly [1]. They sing.", {"Moths fly.": [{1}]}, 0.5, 1.0),
        # A context that is not there supports nothing, whatever stands beside it.
        ("Moths fly [1][9].", {"Moths fly.": [{1}]}, 0.0, 0.0),
        ("Moths fly [0].", {"Moths fly.": [{1}]}, 0.0, 0.0),
        ("Moths fly [1]. Bats sing [2][3].", {"Moths fly.": [{1}], "Bats sing.": [{4}]}, 0.5, 1 / 3),
        ("飞蛾在夜间飞行[1]。", {"飞蛾在夜间飞行。": [{1}]}, 1.0, 1.0),
    ],
)
def test_by_hand(response: str, supports: Supports, recall: float, precision: float) -> None:
    """Both figures, by the definitions."""
    assert scores(supports, response) == pytest.approx((recall, precision))


NUMBERS = st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True)
ENOUGH = st.lists(st.sets(st.integers(1, 5), min_size=1, max_size=3), max_size=3)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.just([]) | NUMBERS, ENOUGH), min_size=1, max_size=4))
def test_it_is_what_alce_computes(sentences: list[tuple[list[int], list[set[int]]]]) -> None:
    """Against the definitions, straight from the paper, over sentences at random."""
    names = ["Ants dig", "Bees hum", "Cats nap", "Dogs run"]
    supports = {f"{name}.": enough for name, (_, enough) in zip(names, sentences, strict=False)}
    marked = [f"{name} {''.join(f'[{n}]' for n in cited)}" for name, (cited, _) in zip(names, sentences, strict=False)]
    recalled = precise = cites = 0
    for cited, enough in sentences:

        def entails(numbers: set[int], enough: list[set[int]] = enough) -> bool:
            return any(one <= numbers for one in enough)

        joint = bool(cited) and entails(set(cited))
        recalled += joint
        for number in cited:
            cites += 1
            precise += joint and (entails({number}) or not entails(set(cited) - {number}))
    response = " ".join(f"{text.strip()}." for text in marked)
    fields: dict[str, Any] = {"response": response, "retrieved_contexts": CONTEXTS}
    assert CitationRecall(judge=judging(supports)).score(**fields) == pytest.approx(recalled / len(sentences))
    result = CitationPrecision(judge=judging(supports), if_empty=1).score(**fields)
    assert result.value == pytest.approx(precise / cites if cites else 1)
    assert result.vacuous is not bool(cites)


def test_recall_asks_once_for_each_sentence_that_cites() -> None:
    """All at the same time, each with what it cites alone."""
    judge = judging({"Ants dig.": [{1}], "Bees hum.": [{2, 3}], "Cats nap.": []})
    fields: dict[str, Any] = {"response": "Ants dig [1]. Bees hum [2][3]. Cats nap.", "retrieved_contexts": CONTEXTS}
    result = CitationRecall(judge=judge).score(**fields)
    assert result == pytest.approx(2 / 3)
    assert (judge.tasks, judge.depth) == (["verify_claims"] * 2, 1)
    shown = [re.findall(r"Source number (\d)", request.messages[1]["content"]) for request in judge.requests]
    assert sorted(shown) == [["1"], ["2", "3"]]


def test_precision_takes_two_rounds() -> None:
    """First with all that is cited; then each alone and all without it, where several are and they do support it."""
    judge = judging({"Ants dig.": [{1}], "Bees hum.": [{2}], "Cats nap.": [{5}]})
    response = "Ants dig [1][2][3]. Bees hum [2][3]. Cats nap [1][2]."
    CitationPrecision(judge=judge).score(response=response, retrieved_contexts=CONTEXTS)
    assert (len(judge.requests), judge.depth) == (3 + 6 + 2, 2)


def test_verdicts_show_what_supports_a_sentence() -> None:
    """The sentence and its place, the contexts by their own index, and why not."""
    judge = ScriptedJudge(verify_claims=lambda prompt: verdicts([1, 2]))
    response = "Bees hum [5][2]. Ants dig 9 holes [1][7]. Cats nap."
    first, second, third = CitationRecall(judge=judge).score(response=response, retrieved_contexts=CONTEXTS).verdicts
    assert (first.text, response[first.start : first.end]) == ("Bees hum.", "Bees hum [5][2].")
    assert [piece.context for piece in first.evidence] == [1, 4]
    assert (second.ok, second.reason) == (False, "there is no context 7")
    assert (third.ok, third.reason) == (False, "it cites nothing")


def test_a_citation_of_no_use_is_named() -> None:
    """One verdict a citation, and why; one that is needed shows its own part of what supports the sentence."""
    judge = judging({"Bees hum.": [{1}]})
    metric = CitationPrecision(judge=judge)
    useful, useless = metric.score(response="Bees hum [1][2].", retrieved_contexts=CONTEXTS).verdicts
    assert (useful.text, useful.ok, [piece.context for piece in useful.evidence]) == ("[1] Bees hum.", True, [0])
    assert (useless.text, useless.ok, useless.evidence) == ("[2] Bees hum.", False, ())
    assert useless.reason == "the others support the sentence without it, and it does not alone"
    needed = ScriptedJudge(
        verify_claims=lambda prompt: verdicts([1, 2] if "number 1" in prompt and "number 2" in prompt else None)
    )
    both = CitationPrecision(judge=needed).score(response="Bees hum [1][2].", retrieved_contexts=CONTEXTS).verdicts
    assert [(verdict.ok, [piece.context for piece in verdict.evidence]) for verdict in both] == [
        (True, [0]),
        (True, [1]),
    ]


def test_a_number_that_the_cited_sentence_lacks_is_suspicious() -> None:
    """Whatever the judge says."""
    judge = ScriptedJudge(verify_claims=verdicts([1]))
    result = CitationRecall(judge=judge).score(response="Ants dig 90 holes [1].", retrieved_contexts=["Ants dig."])
    assert (result, result.verdicts[0].suspicious) == (1.0, True)


def test_without_contexts_nothing_is_supported() -> None:
    """No request is spent on that, nor on a blank context."""
    judge = ScriptedJudge()
    for contexts in ([], [""]):
        for metric in (CitationRecall(judge=judge), CitationPrecision(judge=judge)):
            assert metric.score(response="Ants dig [1].", retrieved_contexts=contexts) == 0.0
    assert judge.requests == []


def test_without_citations() -> None:
    """Nothing is recalled, and there is no precision, unless the caller says what it is worth."""
    fields: dict[str, Any] = {"response": "Ants dig. Bees hum.", "retrieved_contexts": CONTEXTS}
    assert CitationRecall(judge=ScriptedJudge()).score(**fields) == 0.0
    with pytest.raises(UnscoredError, match="citation_precision: the response has no citations"):
        CitationPrecision(judge=ScriptedJudge()).score(**fields)
    assert CitationPrecision(judge=ScriptedJudge(), if_empty=0.0).score(**fields).vacuous
    with pytest.raises(UnscoredError, match="citation_recall: the response has no sentences"):
        CitationRecall(judge=ScriptedJudge()).score(response="...", retrieved_contexts=CONTEXTS)
