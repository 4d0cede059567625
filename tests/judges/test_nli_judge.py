"""The judge by an entailment model, with a scorer that compares words in the place of its weights."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import NliJudge
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cache.transport import CachedTransport
from pytest_ragmetrics.core.errors import CacheMissError, JudgeError, JudgeNotConfiguredError, UnscoredError
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.nli import Pair
from pytest_ragmetrics.judges.specs import make_judge
from pytest_ragmetrics.judges.tasks import FindContradictions, Judgement, ListClaims, Task, VerifyClaims
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import Answered
from pytest_ragmetrics.metrics import ContextRecall, Faithfulness, Hallucination, ResponseGroundedness
from tests.metrics.fake_session import FakeSession
from tests.word_scorer import WordScorer

GARDEN = (
    "Basil wilts when it is cold. It likes sun and water. Mint spreads fast.",
    "Ivy climbs walls. Ivy is not edible. Deer eat ivy in winter.",
)
NAMES = ("Alpha", "Bravo", "Charlie", "Delta")


def verified(judge: NliJudge, *claims: str, contexts: tuple[str, ...] = GARDEN) -> tuple[Judgement, ...]:
    return asyncio.run(judge.ask(VerifyClaims(claims=claims, contexts=contexts))).answer


def contradicted(judge: NliJudge, response: str, contexts: tuple[str, ...] = GARDEN) -> tuple[Judgement, ...]:
    return asyncio.run(judge.ask(FindContradictions(response=response, contexts=contexts))).answer


def judge(scorer: WordScorer | None = None, **parameters: Any) -> NliJudge:
    return NliJudge("words", scorer=scorer or WordScorer(), **parameters)


def test_a_claim_is_supported_by_the_sentence_that_entails_it() -> None:
    first, second = verified(judge(), "Ivy climbs walls.", "Ivy climbs trees.")
    assert first == Judgement(ok=True, sentences=(3,), reason="The best passage of 5 entails it with 0.96.")
    assert (second.ok, second.sentences) == (False, ())
    assert second.reason.startswith("No passage of 5 entails it: at most 0.02")


@pytest.mark.parametrize(
    ("claim", "contexts", "cited"),
    [
        # Sentences of several contexts, joined.
        ("Basil likes walls.", ("Basil likes sun.", "Nothing here.", "Ivy likes walls."), (0, 2)),
        # In a passage of more than three sentences, those that share words with the claim.
        (f"{' '.join(NAMES)} oaks.", (" ".join(f"{name} oaks. It rains." for name in NAMES),), (0, 2, 4, 6)),
    ],
)
def test_several_sentences_support_a_claim_together(claim: str, contexts: Any, cited: Any) -> None:
    (found,) = verified(judge(), claim, contexts=contexts)
    assert (found.ok, found.sentences) == (True, cited)


def test_a_long_context_is_cut_into_passages_that_overlap() -> None:
    sentences = [f"Tree {number} stands in the garden of the castle." for number in range(60)]
    claim, contexts = "Tree 59 stands in the castle.", (" ".join(sentences),)
    for most, tried in ((100, 18), (2, 6)):
        scorer = WordScorer()
        (found,) = verified(judge(scorer, passages=most), claim, contexts=contexts)
        premises = [premise for batch in scorer.seen for premise, _ in batch]
        assert max(premise.count("Tree") for premise in premises) == 8
        assert all(any(sentence in premise for premise in premises) for sentence in sentences) is (most == 100)
        assert len(premises) <= tried
        assert sum("Tree 30 " in premise for premise in premises) == (2 if most == 100 else 0)
        assert found.sentences == (59,)


def test_the_threshold_decides() -> None:
    assert verified(judge(labels=("refuted", "supported", "NEI")), "Mint spreads fast.")[0].ok
    for threshold, ok in ((0.9, True), (0.99, False)):
        assert verified(judge(threshold=threshold), "Mint spreads fast.")[0].ok is ok
    for name in ("threshold", "passages"):
        impossible: Any = {name: 0}
        with pytest.raises(ValueError, match=f"{name} must be"):
            judge(**impossible)


@pytest.mark.parametrize("contexts", [(), ("",), ("  \n ", "---")])
def test_without_a_passage_nothing_is_supported_or_contradicted(contexts: tuple[str, ...]) -> None:
    assert [found.ok for found in verified(judge(), "Mint spreads.", contexts=contexts)] == [False]
    none = Judgement(ok=False, reason="There is no passage to hold it against.")
    assert contradicted(judge(), "Mint spreads.", contexts) == (none,) * len(contexts)


def test_a_context_is_contradicted_by_the_sentence_that_says_the_contrary() -> None:
    assert not any(found.ok for found in contradicted(judge(), "I don't know."))
    first, second = contradicted(judge(), "We grow ivy. Ivy is edible.")
    assert (first.ok, second.ok, second.sentences) == (False, True, (4,))
    assert 'contradicts "Ivy is edible."' in second.reason


def test_a_model_without_contradiction_says_so() -> None:
    binary = judge(WordScorer(labels=("hallucinated", "entailment")))
    assert verified(binary, "Mint spreads fast.")[0].ok
    grounded = tasks.RateGroundedness(response="A.", contexts=("B.",))
    unanswered: list[tuple[Task[Any], str]] = [
        (FindContradictions(response="Mint spreads.", contexts=GARDEN), "^nli:words knows no contradiction"),
        (grounded, "rate_groundedness needs a language model; Faithfulness"),
        (tasks.RateRelevance(question="Q?", response="A."), "rate_relevance needs a language model$"),
    ]
    for task, message in unanswered:
        with pytest.raises(JudgeError, match=message):
            asyncio.run(binary.ask(task))


def test_claims_are_sentences() -> None:
    scorer = WordScorer()
    answered = asyncio.run(judge(scorer).ask(ListClaims(text="Mint spreads. It likes water. I don't know more.")))
    assert (answered.answer, answered.usage.calls, scorer.seen) == (("Mint spreads.", "It likes water."), 0, [])


def test_metrics_are_scored_with_evidence() -> None:
    words = judge()
    result = Faithfulness(judge=words).score(response="Mint spreads fast. Ivy climbs trees.", retrieved_contexts=GARDEN)
    assert (result.value, result.judge, result.usage.calls, result.usage.cost) == (0.5, "nli:words", 1, 0.0)
    assert [piece.text for piece in result.verdicts[0].evidence] == ["Mint spreads fast."]
    assert ContextRecall(judge=words).score(reference="Deer eat ivy.", retrieved_contexts=GARDEN) == 1.0
    assert Hallucination(judge=words).score(response="Ivy is edible.", retrieved_contexts=GARDEN) == 0.5
    with pytest.raises(UnscoredError, match="Faithfulness does not"):
        ResponseGroundedness(judge=words).score(response="Mint.", retrieved_contexts=GARDEN)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "kept") as opened:
        yield opened


def asked(words: NliJudge, transport: CachedTransport, *claims: str) -> Answered[tuple[Judgement, ...]]:
    return asyncio.run(words.ask(VerifyClaims(claims=claims, contexts=GARDEN), vote=3, transport=transport))


def test_an_answer_is_kept_by_model_and_threshold(store: Store) -> None:
    scorer = WordScorer()
    transport = CachedTransport(DIRECT, store=store)
    first = asked(judge(scorer), transport, "Mint spreads fast.")
    scored = len(scorer.seen)
    again = asked(judge(scorer), transport, "Mint  spreads\nfast.")
    assert (first.usage.calls, again.usage.calls, again.usage.cached_calls, again.usage.saved) == (1, 0, 1, 0.0)
    assert (first.answer, len(scorer.seen)) == (again.answer, scored)
    replay = CachedTransport(DIRECT, store=store, mode="replay")
    assert asked(judge(scorer), replay, "Mint spreads fast.").answer == first.answer
    for other in (judge(scorer, threshold=0.6), NliJudge("others", scorer=scorer), judge(scorer, passages=3)):
        with pytest.raises(CacheMissError):
            asked(other, replay, "Mint spreads fast.")
    assert len(scorer.seen) == scored


def test_an_exchange_shows_the_texts_and_the_answer(store: Store) -> None:
    session = FakeSession(judge=judge(), transport=CachedTransport(DIRECT, store=store))
    replay = FakeSession(judge=judge(), transport=CachedTransport(DIRECT, mode="replay"))
    for each in (session, replay):
        with each.running(), suppress(CacheMissError):
            Faithfulness().score(response="Mint spreads fast.", retrieved_contexts=list(GARDEN))
    (done,), (missed,) = (each.scorings[0].exchanges for each in (session, replay))
    assert "Basil wilts" in done.prompt
    assert '"verdict": "supported"' in (done.reply or "")
    assert (missed.reply, missed.cached) == (None, False)


class Broken(WordScorer):
    def logits(self, pairs: Sequence[Pair]) -> Sequence[Sequence[float]]:
        if any("bomb" in hypothesis for _, hypothesis in pairs):
            raise RuntimeError("out of memory")
        numbers = zip(super().logits(pairs), pairs, strict=True)
        return [[float("nan")] * 3 if "hole" in hypothesis else row for row, (_, hypothesis) in numbers]


def test_a_failing_model_fails_the_task_at_fault_alone() -> None:
    async def together(words: NliJudge) -> list[object]:
        tasks = [VerifyClaims(claims=(claim,), contexts=GARDEN) for claim in ("A bomb.", "Mint spreads.", "A hole.")]
        return list(await asyncio.gather(*map(words.ask, tasks), return_exceptions=True))

    bomb, mint, hole = asyncio.run(together(judge(Broken())))
    assert str(bomb) == "nli:words failed: RuntimeError: out of memory"
    assert isinstance(mint, Answered)
    assert mint.answer[0].ok
    assert "3 finite numbers a pair are wanted" in str(hole)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (("yes", "no"), r"has 3 classes \(contradiction, entailment, neut"),
        (("yes", "no", "maybe"), "has the labels 'yes', 'no', 'maybe'"),
    ],
)
def test_a_model_that_cannot_be_asked(labels: tuple[str, ...], message: str) -> None:
    with pytest.raises(JudgeNotConfiguredError, match=message):
        verified(judge(labels=labels), " ".join(["word"] * 12))


def test_a_spec_makes_the_judge_without_its_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    made = make_judge("nli:house/entailment@v2")
    assert repr(made) == "<NliJudge nli:house/entailment@v2>"
    message = r'needs sentence_transformers: pip install "pytest-ragmetrics\[nli\]"'
    raised = []
    for _ in range(2):
        with pytest.raises(JudgeNotConfiguredError, match=message) as caught:
            asyncio.run(made.ask(VerifyClaims(claims=("Mint.",), contexts=GARDEN)))
        raised.append(caught.value)
    # It is not loaded again.
    assert raised[0] is raised[1]
    asyncio.run(made.aclose())


def test_a_judge_that_was_closed_asks_its_scorer_again() -> None:
    asked = judge()
    before = verified(asked, "Ivy climbs walls.")
    asyncio.run(asked.aclose())
    assert verified(asked, "Ivy climbs walls.") == before
