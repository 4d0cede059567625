"""Sentences cited for a claim that have hardly a word of it are noticed, in any language; true ones are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ragmetrics.metrics import ContextRecall, FactualCorrectness, Faithfulness, NoiseSensitivity
from pytest_ragmetrics.metrics.judged import JudgedMetric
from pytest_ragmetrics.metrics.verdicts import EvidenceCheck
from tests.growth import is_linear
from tests.scripted_judge import Answer, ScriptedJudge, claims, verdicts

DATA = json.loads((Path(__file__).parents[1] / "data" / "evidence.json").read_text("utf-8"))
#: By language the sentences of a document, each with what is claimed because of it in other words and forms.
DOCUMENTS = DATA["claimed"]
#: By language two sentences, one with a number, and what is claimed because of the first two.
COUNTED = DATA["counted"]
SPOKEN = ("en", "de", "es", "fr", "ru", "ja", "ar", "zh")
FERRY = "The ferry leaves at nine. A return ticket costs 1,200 crowns. Bicycles travel free on the ferry."


@pytest.mark.parametrize("language", DOCUMENTS)
def test_other_sentences_than_those_that_support_a_claim_are_noticed(language: str) -> None:
    pairs = DOCUMENTS[language]
    check = EvidenceCheck([sentence for sentence, _ in pairs])
    marked = [[check.shares_hardly_a_word(claim, [cited]) for cited, _ in pairs] for _, claim in pairs]
    assert not any(row[index] for index, row in enumerate(marked))
    # A claim in which no word tells the language, or that of another, is not compared.
    assert sum(map(sum, marked)) >= 25
    assert not any(check.shares_hardly_a_word(claim, [sentence for sentence, _ in pairs]) for _, claim in pairs)


@pytest.mark.parametrize("found", SPOKEN)
def test_claims_in_another_language_are_not_compared(found: str) -> None:
    """An answer in the language of the user says what contexts in another one say without a word of them."""
    check = EvidenceCheck([sentence for sentence, _ in DOCUMENTS[found]])
    for answered in SPOKEN:
        pairs = zip(DOCUMENTS[answered], DOCUMENTS[found], strict=True)
        assert not any(check.shares_hardly_a_word(claim, [sentence]) for (_, claim), (sentence, _) in pairs), answered


@pytest.mark.parametrize("language", COUNTED)
def test_a_number_that_stands_elsewhere_is_lacking_where_another_one_is_cited(language: str) -> None:
    """A claim may sum up more than is cited for it; a number in the place of another, or of no sentence, is noticed."""
    leaves, takes, has, both = COUNTED[language]
    check = EvidenceCheck([leaves + " " + takes, has.format(12)])
    for claim, *cited in ((both, leaves), (both, leaves, takes), (has.format(12), has.format(12))):
        assert not check.is_suspicious(claim, cited)
    for claim in (has.format(40), has.format(77), both):
        assert check.is_suspicious(claim, [has.format(12)])
    assert check.is_suspicious(both.replace("40", "41"), [leaves, takes])


@pytest.mark.parametrize(
    ("built", "owned"),
    [
        ("The bridge was built by {} in the old harbour.", "The mill belongs to {}."),
        ("Die Brücke wurde von {} im alten Hafen gebaut.", "Die Mühle gehört {}."),
        ("El puente fue construido por {} en el puerto viejo.", "El molino pertenece a {}."),
        ("Most zbudowała {} w starym porcie.", "Młyn dostała {}."),
        ("Köprüyü eski limanda {} yaptı.", "Değirmenin sahibi {} oldu."),
    ],
)
def test_a_name_that_stands_elsewhere_is_lacking_in_the_place_of_another(built: str, owned: str) -> None:
    """And where no sentence has it; not where it is one more than the cited sentences have."""
    weber, lind, braun = "Karl Weber", "Anna Lind", "Otto Braun"
    check = EvidenceCheck([built.format(weber), owned.format(lind)])
    marked = [check.is_suspicious(built.format(name), [built.format(weber)]) for name in (weber, lind, braun)]
    assert marked == [False, True, True]
    assert not check.is_suspicious(f"{built.format(weber)[:-1]}, {lind}.", [built.format(weber)])


@pytest.mark.parametrize(
    ("claim", "cited", "question", "suspicious"),
    [
        ("Bicycles travel free on the ferry.", 2, None, False),
        ("Bicycles travel free on the ferry.", 0, None, True),  # one word of four, and another sentence has all
        ("The ferry departs early.", 0, None, False),  # one of three, and no sentence has more
        ("Nobody inspected the rusty pillar.", 0, None, True),
        ("The ferry leaves with free bicycles.", 0, None, False),  # two of four, and another sentence has three
        ("Prices rise.", 0, None, False),  # two words
        ("The price is 1200 crowns.", 1, None, False),  # a number is the same however it is written
        ("A ticket for the Orla ferry costs 1200 crowns.", 1, None, True),  # a name
        ("A ticket for the Orla ferry costs 1200 crowns.", 1, "What does the Orla ferry cost?", False),
        ("A ticket for the Orla ferry costs 1300 crowns.", 1, "What does the Orla ferry cost?", True),
        ("Step 2: A return ticket costs 1200 crowns.", 1, None, False),  # the number of a step
        ("A return ticket costs 1/2 of 1200 crowns.", 1, None, True),
        ("", 0, None, False),
    ],
)
def test_words_numbers_and_names_are_looked_up(claim: str, cited: int, question: str | None, suspicious: bool) -> None:
    sentences = [f"{sentence}." for sentence in FERRY.rstrip(".").split(". ")]
    check = EvidenceCheck([FERRY], question)
    assert check.is_suspicious(claim, [sentences[cited]]) is suspicious
    assert not check.is_suspicious(claim, [])
    assert check.shares_hardly_a_word(claim, sentences) is (claim.startswith("Nobody"))


@pytest.mark.parametrize(("fish", "suspicious"), [("fish, bread and salt", True), ("fish and bread", False)])
def test_a_name_that_stands_elsewhere_is_lacking_where_much_else_is(fish: str, suspicious: bool) -> None:
    """Five words of eight are enough without a name, and too few with one that another sentence has with all eight."""
    claim, cited = f"The old ferry Orla brings mail, {fish}.", "The old ferry brings mail and bread."
    check = EvidenceCheck([cited, claim])
    assert check.is_suspicious(claim, [cited]) is suspicious
    assert not check.shares_hardly_a_word(claim, [cited])
    # A number is one word, however many it is written with.
    lost = "500,000,000 € vanished."
    assert not EvidenceCheck([lost]).shares_hardly_a_word("Losses ran to five hundred million euros.", [lost])


@pytest.mark.parametrize("metric", [Faithfulness, FactualCorrectness, NoiseSensitivity, ContextRecall])
def test_name_of_the_question_need_not_be_cited(metric: type[JudgedMetric]) -> None:
    said, long = "The ferry of Orla is long.", "It is a long ferry"

    def verified(prompt: str) -> Answer:
        return verdicts(*[[1] if long in prompt else None] * (1 + ("\n2. " in prompt)))

    for question, suspicious in ((None, True), ("How long is the ferry of Orla?", False)):
        judge = ScriptedJudge(list_claims=claims(said), verify_claims=verified)
        fields = {"response": said, "retrieved_contexts": [long], "user_input": question}
        result = metric(judge=judge).score(**fields, reference=long if metric is FactualCorrectness else said)
        assert result.verdicts[0].suspicious is suspicious


@pytest.mark.growth
def test_looking_words_up_is_linear() -> None:
    def work(size: int) -> None:
        check = EvidenceCheck(["The old ferry leaves at nine for the northern island. " * size])
        check.shares_hardly_a_word("The rusty pillar of the ferry moved.", ["The old ferry leaves at nine."])

    assert is_linear(work, short=100, long=1000)


@pytest.mark.parametrize(("cited", "suspicious"), [(1, True), (3, False)])
def test_judge_that_cites_another_sentence_is_noticed(cited: int, suspicious: bool) -> None:
    judge = ScriptedJudge(list_claims=claims("A bicycle is taken for free."), verify_claims=verdicts([cited]))
    result = Faithfulness(judge=judge).score(response="Bicycles are free.", retrieved_contexts=[FERRY])
    assert (result, result.verdicts[0].suspicious) == (1.0, suspicious)
