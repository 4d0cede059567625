"""CitationRecall and CitationPrecision, as ALCE defines them, and CitationValidity."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import UnscoredError
from pytest_ragmetrics.metrics import CitationPrecision, CitationRecall, CitationValidity
from tests.scripted_judge import Answer, ScriptedJudge, verdicts

CONTEXTS = [f"Source number {number} says so." for number in range(1, 6)]
#: For each sentence the sets of contexts that support it, or any larger set.
Supports = Mapping[str, list[set[int]]]
NUMBERS = st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True)
ENOUGH = st.lists(st.sets(st.integers(1, 5), min_size=1, max_size=3), max_size=3)
TWO = ["Otters float in kelp.", "Crabs dig in the sand."]


def judging(supports: Supports) -> ScriptedJudge:
    """Return a judge by which a sentence is supported where one of its sets is among the contexts shown."""

    def verified(prompt: str) -> Answer:
        shown = {int(number) for number in re.findall(r"Source number (\d+) says", prompt)}
        (claim,) = re.findall(r"(?m)^1\. (.*)$", prompt)
        return verdicts([1] if any(enough <= shown for enough in supports[claim]) else None)

    return ScriptedJudge(verify_claims=verified)


@pytest.mark.parametrize(
    ("response", "supports", "recall", "precision"),
    [
        # Two of three are needed together.
        ("Moths fly [1][2][3].", {"Moths fly.": [{1, 3}]}, 1.0, 2 / 3),
        # Each is enough: neither is needed, and both are sufficient; one of no use is beside one that is.
        ("Moths fly [1, 2].", {"Moths fly.": [{1}, {2}]}, 1.0, 1.0),
        ("Moths fly [1][2].", {"Moths fly.": [{1}]}, 1.0, 0.5),
        # Any two do: none is needed, and none is enough alone.
        ("Moths fly [1-3].", {"Moths fly.": [{1, 2}, {1, 3}, {2, 3}]}, 1.0, 0.0),
        # A context that is not there supports nothing, together with any other.
        ("Moths fly [1][9].", {"Moths fly.": [{1}]}, 0.0, 0.0),
        ("Moths fly [0].", {"Moths fly.": [{1}]}, 0.0, 0.0),
        ("飞蛾在夜间飞行[1]。", {"飞蛾在夜间飞行。": [{1}]}, 1.0, 1.0),
    ],
)
def test_by_hand(response: str, supports: Supports, recall: float, precision: float) -> None:
    for metric, value in ((CitationRecall, recall), (CitationPrecision, precision)):
        found = metric(judge=judging(supports)).score(response=response, retrieved_contexts=CONTEXTS)
        assert found == pytest.approx(value)


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


def test_each_sentence_and_each_part_is_asked_about_once() -> None:
    """Recall takes one round; precision two, the second where several are cited and do support the sentence."""
    judge = judging({"Ants dig.": [{1}], "Bees hum.": [{2, 3}], "Cats nap.": []})
    response = "Ants dig [1]. Bees hum [2][3]. Cats nap."
    result = CitationRecall(judge=judge).score(response=response, retrieved_contexts=CONTEXTS)
    assert (result, result.reason) == (2 / 3, "2 of 3 sentences supported by what they cite")
    shown = [re.findall(r"Source number (\d)", request.messages[1]["content"]) for request in judge.requests]
    assert (sorted(shown), judge.depth) == ([["1"], ["2", "3"]], 1)
    judge = judging({"Ants dig.": [{1}], "Bees hum.": [{2}], "Cats nap.": [{5}]})
    response = "Ants dig [1][2][3]. Bees hum [2][3]. Cats nap [1][2]."
    CitationPrecision(judge=judge).score(response=response, retrieved_contexts=CONTEXTS)
    assert (len(judge.requests), judge.depth) == (3 + 6 + 2, 2)


def test_verdicts_show_what_supports_a_sentence() -> None:
    judge = ScriptedJudge(verify_claims=lambda prompt: verdicts([1, 2] if "Bees" in prompt else [1]))
    response = "Bees hum [5][2]. Ants dig 9 holes [1][7]. Cats nap 9 hours [3]. Dogs run."
    metric = CitationRecall(judge=judge)
    first, second, third, fourth = metric.score(response=response, retrieved_contexts=CONTEXTS).verdicts
    assert (first.text, response[first.start : first.end]) == ("Bees hum.", "Bees hum [5][2].")
    assert [piece.context for piece in first.evidence] == [1, 4]
    assert (second.ok, second.reason) == (False, "there is no context 7")
    assert (third.ok, third.suspicious, first.suspicious) == (True, True, False)
    assert (fourth.ok, fourth.reason) == (False, "it cites nothing")


@pytest.mark.parametrize("needed", [False, True])
def test_a_citation_of_no_use_is_named(needed: bool) -> None:
    def verified(prompt: str) -> Answer:
        first, second = "number 1" in prompt, "number 2" in prompt
        return verdicts([1, 2] if first and second and needed else [1] if first and not needed else None)

    judge = ScriptedJudge(verify_claims=verified)
    result = CitationPrecision(judge=judge).score(response="Bees hum [1][2].", retrieved_contexts=CONTEXTS)
    useless: Any = (False, "the others support the sentence without it, and it does not alone", [])
    assert [(v.ok, v.reason, [piece.context for piece in v.evidence]) for v in result.verdicts] == [
        (True, "Reason 1.", [0]),
        (True, "Reason 1.", [1]) if needed else useless,
    ]
    assert [verdict.text for verdict in result.verdicts] == ["[1] Bees hum.", "[2] Bees hum."]
    assert result.reason == f"{1 + needed} of 2 citations of use"


def test_without_contexts_nothing_is_supported() -> None:
    judge = ScriptedJudge()
    for contexts, reason in (([], "there is no context 1"), ([""], "what it cites is blank")):
        for metric in (CitationRecall(judge=judge), CitationPrecision(judge=judge)):
            result = metric.score(response="Ants dig [1].", retrieved_contexts=contexts)
            assert (result, result.verdicts[0].reason) == (0.0, reason)
    assert CitationRecall(judge=judge).score(response="Ants dig. Bees hum.", retrieved_contexts=CONTEXTS) == 0.0
    assert judge.requests == []


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ("Otters float [1, 2].", 1.0),
        # a mark is valid when all its numbers are
        ("Otters float [1, 3]. Crabs dig [2].", 0.5),
        ("Otters float [0].", 0.0),
        ("Otters float¹ and crabs dig³.", 0.5),
        ("水獺【1】。蟹【2】。鰻【9】。海星【2】。", 0.75),
        ("Otters float [1].\n\nSources:\n[1] Handbook\n[7] Manual", 1.0),
    ],
)
def test_the_share_of_marks_that_point_to_contexts(response: str, value: float) -> None:
    assert CitationValidity().score(response=response, retrieved_contexts=TWO).value == value


def test_each_mark_has_a_verdict_at_its_place() -> None:
    response = "Otters float [1]. Crabs dig [2, 5, 7]. All [1-14]."
    long = [f"Otters {'float ' * 50}", TWO[1]]
    valid, wrong, _ = CitationValidity().score(response=response, retrieved_contexts=long).verdicts
    assert [(v.text, v.start, v.ok, v.reason) for v in (valid, wrong)] == [
        ("[1]", 13, True, None),
        ("[2, 5, 7]", 28, False, "there is no context 5, 7, there are 2"),
    ]
    shown = [[(piece.context, piece.text) for piece in verdict.evidence] for verdict in (valid, wrong)]
    assert shown == [[(0, long[0][:80])], [(1, TWO[1])]]
    for count, there in ((0, "there are none"), (1, "there is 1"), (12, "there are 12")):
        last = CitationValidity().score(response=response, retrieved_contexts=["Yes."] * count).verdicts[2]
        assert (str(last.reason).endswith(f"14, {there}"), len(last.evidence)) == (True, min(count, 10))


def test_no_citation_is_vacuous_unless_citations_are_asked_for() -> None:
    none, fields = "No citations found in response", {"response": "Otters float.", "retrieved_contexts": TWO}
    for asked, score, reason in ((False, 1.0, none), (True, 0.0, f"{none}, and require_citations asks for one")):
        result = CitationValidity(require_citations=asked).score(**fields)
        assert (result.value, result.vacuous, result.reason) == (score, not asked, reason)


def test_a_file_that_is_cited_is_compared_with_the_ids() -> None:
    """It is valid where an id is the file, not where none is, and without ids it is said that nothing was compared."""
    fields: dict[str, Any] = {"response": "Otters float [handbook.pdf].", "retrieved_contexts": TWO}
    assert CitationValidity().score(**fields, retrieved_context_ids=["docs/handbook.pdf", "faq.md"]) == 1.0
    missing = CitationValidity().score(**fields, retrieved_context_ids=["manual.pdf", "faq.md"])
    assert (missing, missing.verdicts[0].reason) == (0.0, "no id in retrieved_context_ids is handbook.pdf")
    unknown = "handbook.pdf was not compared: no id in retrieved_context_ids is a file"
    with pytest.raises(UnscoredError, match=f"citation_validity: {unknown}"):
        CitationValidity().score(**fields)
    fields["response"] += " They dive (Passage 2) [9]."
    result = CitationValidity().score(**fields)
    assert (result, result.reason) == (0.5, f"1 of 2 citations point to a context; {unknown}")


def test_recall_and_precision_look_names_up() -> None:
    judge = judging({"Ants dig.": [{2}], "Bees hum.": [{1}], "Passage 3 says that cats nap.": [{3}]})
    fields: dict[str, Any] = {
        "response": "Ants dig [b.pdf]. Bees hum [z.pdf]. Passage 3 says that cats nap.",
        "retrieved_contexts": CONTEXTS[:3],
        "retrieved_context_ids": ["a.pdf", "b.pdf", "c.pdf"],
    }
    result = CitationRecall(judge=judge).score(**fields)
    assert [verdict.ok for verdict in result.verdicts] == [True, False, True]
    assert result.verdicts[1].reason == "no id in retrieved_context_ids is z.pdf"
    assert len(judge.requests) == 2
    precise = CitationPrecision(judge=judge).score(**fields)
    assert [verdict.text for verdict in precise.verdicts][:2] == ["[2] Ants dig.", "[z.pdf] Bees hum."]
    assert precise == 2 / 3
