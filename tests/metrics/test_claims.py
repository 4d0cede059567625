"""Claims compared with texts, and whether the sentences cited for them bear them out, in any language."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.metrics import ContextRecall, FactualCorrectness, Faithfulness, Hallucination, NoiseSensitivity
from pytest_ragmetrics.metrics.judged import JudgedMetric
from pytest_ragmetrics.metrics.verdicts import EvidenceCheck, missing_from, place_in
from tests.growth import is_linear
from tests.scripted_judge import Answer, ScriptedJudge, claims, contradicted, verdicts

CONTEXTS = ["Moths fly at night. They like lamps.", "Bats eat moths."]
Row = Sequence[bool]
PAIR: dict[str, Any] = {"response": "The response.", "reference": "The reference."}


def score(judge: ScriptedJudge, response: str = "They fly at night.", **changes: Any) -> Any:
    metric = Faithfulness(judge=judge, **{key: changes.pop(key) for key in ("unit", "if_empty") if key in changes})
    return metric.score(**{"response": response, "retrieved_contexts": CONTEXTS, **changes})


@pytest.mark.parametrize(
    ("cited", "value"),
    [([[1]], 1.0), ([None], 0.0), ([[1], [2, 3], None], 2 / 3), ([[1]] * 3, 1.0), ([None, None, None, [3]], 0.25)],
)
def test_it_is_the_share_of_claims_supported(cited: list[list[int] | None], value: float) -> None:
    listed = [f"Claim {word}." for word in "abcd"[: len(cited)]]
    result = score(ScriptedJudge(list_claims=claims(*listed), verify_claims=verdicts(*cited)))
    assert result == value
    assert [verdict.text for verdict in result.verdicts] == listed
    assert result.reason == f"{sum(c is not None for c in cited)} of {len(cited)} claims supported"


def test_evidence_points_into_the_contexts() -> None:
    judge = ScriptedJudge(list_claims=claims("It flies.", "It swims."), verify_claims=verdicts([2, 3], None))
    first, second = score(judge, user_input="What do moths do?").verdicts
    found = [(piece.context, piece.start, piece.end, piece.text) for piece in first.evidence]
    assert found == [(0, 20, 36, "They like lamps."), (1, 0, 15, "Bats eat moths.")]
    assert (second.evidence, second.reason, second.ok) == ((), "Reason 2.", False)
    assert ["What do moths do?" in judge.prompt(task) for task in ("list_claims", "verify_claims")] == [True, False]


def test_sentences_instead_of_claims_take_one_request() -> None:
    judge = ScriptedJudge(verify_claims=verdicts([1], None))
    result = score(judge, "Moths fly.\n\n- They sing.", unit="sentences")
    assert (result, result.reason, judge.tasks) == (0.5, "1 of 2 sentences supported", ["verify_claims"])
    assert [(v.text, v.start, v.end) for v in result.verdicts] == [("Moths fly.", 0, 10), ("They sing.", 14, 24)]


@pytest.mark.parametrize("contexts", [[], ["  ", "\n\n"], ["---"]])
def test_without_contexts_nothing_is_supported(contexts: list[str]) -> None:
    judge, none = ScriptedJudge(list_claims=claims("Moths fly.", "Bats too.")), "there is no context"
    result = score(judge, "Moths fly. Bats too.", retrieved_contexts=contexts)
    assert (result, result.reason, judge.tasks) == (0.0, f"0 of 2 claims supported: {none}", ["list_claims"])
    assert [(v.ok, v.start, v.reason) for v in result.verdicts] == [(False, 0, none), (False, 11, none)]


@pytest.mark.parametrize(
    ("claim", "sentences", "missing"),
    [
        ("It cost 1,200 euros.", ["The price was 1200 €."], []),
        ("It cost 1,300 euros.", ["The price was 1200 €."], ["1,300 euros"]),
        ("It opened on 6 March 1998.", ["Opening day: 5 March 1998."], ["6 March 1998"]),
        ("A third of them left. It is one of the highest.", ["Some left."], []),
        ("The mayor was Ada Novak.", ["Novak became mayor."], ["Ada Novak"]),
        ("The mayor was Novak.", ["Ada Novak became mayor."], []),
        ("They moved to Oslo in 1950.", ["They moved there in 1950.", "Oslo is cold."], []),
        ("They moved to Oslo in 1950.", [], ["1950", "Oslo"]),
        ("يبلغ ارتفاع البرج ٩٦ مترا.", ["ارتفاعه 90 مترا."], ["٩٦"]),
        ("这座塔高96米。", ["塔高90米。"], ["96"]),
    ],
)
def test_support_without_number_or_name_is_suspicious(claim: str, sentences: list[str], missing: list[str]) -> None:
    """A claim needs its numbers and names in all cited sentences together, however written; where none is cited not."""
    assert list(missing_from(claim, sentences)) == missing
    for numbers, marked in ((range(1, len(sentences) + 1), bool(missing and sentences)), (None, False)):
        judge = ScriptedJudge(list_claims=claims(claim), verify_claims=verdicts(numbers or None))
        assert score(judge, retrieved_contexts=[*sentences, "Rain."]).verdicts[0].suspicious is marked


@pytest.mark.parametrize(
    ("response", "text", "place"),
    [
        ("So moths fly, too.", "moths fly.", (3, 12)),
        ("Mammoths fly.", "moths fly.", None),
        ("Moths flying.", "Moths fly.", None),
        ("Costs (net): 5 €.", "Costs (net): 5 €.", (0, 17)),
        ("蛾在夜间飞行。", "蛾在夜间飞行。", (0, 7)),
        ("...", "...", (0, 3)),
        ("Moths fly.", "...", None),
        ("", "Moths.", None),
        ("Mammoths fly, moths fly.", "moths fly.", (14, 24)),
        ("Moths fly_, moths fly2, moths fly at night.", "moths fly.", (24, 33)),
        ("moths_moths-moths fly", "moths fly", (12, 21)),
        ("moths²moths", "moths.", None),
    ],
)
def test_places_are_those_of_whole_words(response: str, text: str, place: tuple[int, int] | None) -> None:
    assert place_in(response, text) == place


@pytest.mark.parametrize("coverage", ["low", "high"])
@pytest.mark.parametrize("atomicity", ["low", "high"])
def test_claims_are_listed_to_a_degree(atomicity: Any, coverage: Any) -> None:
    """The prompt says it; the degree of other metrics, and the default, is the highest, whose prompt is unchanged."""
    usual = (atomicity, coverage) == ("high", "high")
    task = "list_claims" if usual else "list_chosen_claims"
    judge = ScriptedJudge(**{task: claims("Moths fly."), "verify_claims": verdicts([1])})
    metric = FactualCorrectness(atomicity=atomicity, coverage=coverage, judge=judge)
    assert metric.score(**PAIR) == 1.0
    assert judge.tasks.count(task) == 2
    instruction = f"List claims that the text makes, with {atomicity} atomicity and {coverage} coverage."
    assert (instruction in judge.prompt(task)) is not usual


@pytest.mark.parametrize("cited", [[[], []], [[1], []], [[], [3]], [[1, 2], [3]]])
def test_it_is_the_share_of_contexts_contradicted(cited: list[list[int]]) -> None:
    judge, wrong = ScriptedJudge(find_contradictions=contradicted(*cited)), sum(map(bool, cited))
    result = Hallucination(judge=judge).score(response="Moths fly by day.", retrieved_contexts=CONTEXTS)
    assert (result, result.reason) == (wrong / 2, f"{wrong} of 2 contexts contradicted")
    assert Hallucination.better == "lower"
    sentences = ["", "Moths fly at night.", "They like lamps.", "Bats eat moths."]
    for index, (numbers, verdict) in enumerate(zip(cited, result.verdicts, strict=True)):
        assert (verdict.text, verdict.ok, verdict.reason) == (CONTEXTS[index], not numbers, f"Reason {index + 1}.")
        assert [piece.text for piece in verdict.evidence] == [sentences[number] for number in numbers]


def by_claims(said: int, wanted: int, supports: Callable[[bool, str], Row]) -> ScriptedJudge:
    """Return a judge that lists so many claims of either text; which of them hold depends on the side and prompt."""

    def listed(prompt: str) -> Answer:
        side, count = ("R", said) if "The response." in prompt else ("S", wanted)
        return claims(*(f"{side}{number}" for number in range(count)))

    def verified(prompt: str) -> Answer:
        return verdicts(*([1] if holds else None for holds in supports("1. R0" in prompt, prompt)))

    return ScriptedJudge(list_claims=listed, verify_claims=verified)


def comparing(said: Row, wanted: Row) -> ScriptedJudge:
    """Return a judge by which these claims of the response, and these of the reference, are supported."""

    def supports(is_said: bool, prompt: str) -> Row:
        assert ("The reference." in prompt) == is_said
        return said if is_said else wanted

    return by_claims(len(said), len(wanted), supports)


@pytest.mark.parametrize(
    ("said", "wanted", "precision", "recall", "f1"),
    [
        ([True, True, True], [True, True], 1.0, 1.0, 1.0),
        ([False], [False], 0.0, 0.0, 0.0),
        # Ten claims of the response say over and over what is half of the reference.
        ([True] * 10, [True, False], 1.0, 0.5, 2 / 3),
        ([True, False, False, False], [True], 0.25, 1.0, 0.4),
        ([True], [False], 1.0, 0.0, 0.0),
    ],
)
def test_precision_recall_and_their_mean(said: Row, wanted: Row, precision: float, recall: float, f1: float) -> None:
    mode: Any
    for mode, value, count in (("precision", precision, 1), ("recall", recall, 1), ("f1", f1, 2)):
        judge = comparing(said, wanted)
        assert FactualCorrectness(judge=judge, mode=mode).score(**PAIR) == pytest.approx(value)
        assert (judge.tasks, judge.depth) == (["list_claims"] * count + ["verify_claims"] * count, 2)
    refusing = comparing([], wanted)
    assert (FactualCorrectness(judge=refusing).score(**PAIR), refusing.tasks) == (0.0, ["list_claims"] * 2)
    weighed = FactualCorrectness(judge=comparing(said, wanted), beta=2).score(**PAIR)
    assert weighed == pytest.approx(5 * precision * recall / (4 * precision + recall) if f1 else 0.0)


def test_verdicts_quote_the_other_text() -> None:
    listed: list[Answer] = [claims("Moths fly."), claims("Moths live 9 weeks.", "They hum.")]
    judge = ScriptedJudge(list_claims=listed, verify_claims=[verdicts([1]), verdicts([1], None)])
    texts = {"response": "Moths fly. They live.", "reference": "Moths fly by night. They hum."}
    result = FactualCorrectness(judge=judge).score(**texts)
    assert [(v.start, v.ok, v.suspicious, v.evidence, v.reason) for v in result.verdicts] == [
        (0, True, False, (), 'Reason 1. (reference: "Moths fly by night.")'),
        (None, True, True, (), 'Reason 1. (response: "Moths fly.")'),
        (None, False, False, (), "Reason 2."),
    ]
    assert result.reason == "1 of 1 claims of the response, 1 of 2 claims of the reference supported"


def table(correct: Row, said: Sequence[Row], wanted: Sequence[Row]) -> ScriptedJudge:
    """Return a judge by tables: which claims the reference supports, and which of either text each context does."""

    def supports(is_first: bool, prompt: str) -> Row:
        found = re.search(r"Source (\d+)\.", prompt)
        sides = (said, wanted) if is_first else (wanted, said)
        return [holds for side in sides for holds in side[int(found[1])]] if found else correct

    return by_claims(len(correct), len(wanted[0]), supports)


def noise_score(judge: ScriptedJudge, count: int, **parameters: Any) -> Any:
    sources = [f"Source {number}." for number in range(count)]
    return NoiseSensitivity(judge=judge, **parameters).score(**PAIR, retrieved_contexts=sources)


def rows(width: int, count: int) -> st.SearchStrategy[list[list[bool]]]:
    return st.lists(st.lists(st.booleans(), min_size=width, max_size=width), min_size=count, max_size=count)


TABLES = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)).flatmap(
    lambda sizes: st.tuples(rows(sizes[0], 1), rows(sizes[0], sizes[2]), rows(sizes[1], sizes[2]))
)


@given(TABLES, st.sampled_from(["relevant", "irrelevant"]))
def test_it_is_the_published_formula(tables: tuple[list[list[bool]], ...], mode: str) -> None:
    """Against the formula as it is written, over tables at random; lower is better."""
    (correct,), said, wanted = tables
    relevant = [any(row) for row in wanted]
    total = 0
    for i, is_correct in enumerate(correct):
        by_relevant = any(relevant[j] and said[j][i] for j in range(len(said)))
        by_irrelevant = any(not relevant[j] and said[j][i] for j in range(len(said)))
        total += not is_correct and (by_relevant if mode == "relevant" else by_irrelevant and not by_relevant)
    result = noise_score(table(correct, said, wanted), len(said), mode=mode)
    assert (result, NoiseSensitivity.better) == (total / len(correct), "lower")
    assert sum(not verdict.ok for verdict in result.verdicts) == total
    assert result.reason == f"{total} of {len(correct)} claims wrong as {mode} contexts have them"


def test_a_claim_shows_which_contexts_have_it() -> None:
    judge = table([True, False], [[True, False], [False, True], [False, True]], [[True], [False], [True]])
    good, bad = noise_score(judge, 3).verdicts
    assert (good.text, good.ok, [piece.context for piece in good.evidence]) == ("R0", True, [0])
    assert [(piece.context, piece.text) for piece in bad.evidence] == [(1, "Source 1."), (2, "Source 2.")]
    assert (bad.ok, bad.reason) == (False, "contexts 2 and 3 have it, the reference does not. Reason 2.")
    assert (judge.tasks, judge.depth) == (["list_claims"] * 2 + ["verify_claims"] * 4, 2)


def test_evidence_that_does_not_bear_a_claim_out_is_suspicious() -> None:
    script: Any = {"list_claims": [claims("Moths live 9 weeks."), claims("Moths fly.")]}
    script["verify_claims"] = lambda prompt: verdicts([1], [1]) if "They fly." in prompt else verdicts(None)
    judge = ScriptedJudge(**script)
    fields = {"response": "Moths live 9 weeks.", "reference": "Moths.", "retrieved_contexts": [" ", "They fly."]}
    (verdict,) = NoiseSensitivity(judge=judge).score(**fields).verdicts
    assert (verdict.suspicious, verdict.start, verdict.end, verdict.ok) == (True, 0, 19, False)
    assert verdict.reason == "context 2 has it, the reference does not. Reason 1."
    assert (verdict.evidence[0].context, len(judge.requests)) == (1, 4)


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


@pytest.mark.parametrize(
    ("claim", "context", "compared"),
    [
        ("The recipe needs three eggs and some sugar.", "Everest, Nepal. Height: 8848 m.", True),
        ("Das Rezept braucht drei Eier und Zucker.", "Everest, Nepal. Height: 8848 m.", True),
        ("Rome conquered Carthage Corinth.", "Das Wetter ist gut und der Himmel blau.", True),
        ("Rome conquered Carthage Corinth.", "Everest, Nepal. Height: 8848 m.", True),
        ("Rome conquered Carthage Corinth.", "ローマはカルタゴを征服した。それは古代の出来事である。", False),
        ("猫は庭で眠っている。犬は走る。", "Everest, Nepal. Height: 8848 m.", False),
    ],
)
def test_a_text_without_common_words_may_be_in_any_language_of_its_script(
    claim: str, context: str, compared: bool
) -> None:
    assert EvidenceCheck([context]).shares_hardly_a_word(claim, [context]) is compared


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
