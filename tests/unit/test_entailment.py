"""The parts of a judge by an entailment model: labels, passages, batches and the identity of weights."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.core.errors import JudgeNotConfiguredError
from pytest_ragmetrics.judges.entailment import (
    BatchingScorer,
    EntailmentPassages,
    Labels,
    Pair,
    class_names,
    find_source,
    read_labels,
    window,
)
from pytest_ragmetrics.judges.nli import _find_best
from tests.word_scorer import WordScorer


@pytest.mark.parametrize(
    ("names", "entailment", "contradiction"),
    [
        (["entailment", "neutral", "contradiction"], 0, 2),
        (["CONTRADICTION", "Neutral", "ENTAILMENT"], 2, 0),
        (["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], 0, 1),
        (["not_entailment", "entailment"], 1, None),
        (["Non-Entailment", "Entailment"], 1, None),
        (["consistent", "hallucinated"], 0, None),
        (["LABEL_0", "LABEL_1"], 1, None),
        (["anything"], 0, None),
    ],
)
def test_labels_are_read_in_any_order_and_case(names: list[str], entailment: int, contradiction: int | None) -> None:
    """The name of a class is its meaning; two classes without names are hallucinated and consistent."""
    labels = read_labels(names, model="tiny")
    assert (labels.entailment, labels.contradiction, labels.inverted) == (entailment, contradiction, False)


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["LABEL_0", "LABEL_1", "LABEL_2"],
        ["positive", "negative"],
        ["entailment", "sarcasm"],
        ["entailment", "consistent"],
        ["neutral", "contradiction"],
        ["entailment", "contradiction", "refuted"],
    ],
)
def test_labels_that_say_nothing_are_listed(names: list[str]) -> None:
    """A guess could invert the verdicts, so the names are listed and can be given."""
    with pytest.raises(JudgeNotConfiguredError, match=r"^tiny has the labels .*NliJudge\(model, labels=") as raised:
        read_labels(names, model="tiny")
    assert all(repr(name) in str(raised.value) for name in names)


@pytest.mark.parametrize(
    ("names", "logits", "shares"),
    [
        (["LABEL_0"], [2.0], (0.8808, 0.0)),
        (["hallucination"], [2.0], (0.1192, 0.0)),
        (["hallucination"], [-1e6], (1.0, 0.0)),
        (["LABEL_0"], [-1e6], (0.0, 0.0)),
        (["contradiction", "entailment"], [-1e6, 1e6], (1.0, 0.0)),
        (["contradiction", "entailment", "neutral"], [math.log(2), 0.0, 0.0], (0.25, 0.5)),
    ],
)
def test_numbers_become_probabilities(names: list[str], logits: list[float], shares: tuple[float, float]) -> None:
    """A single class called hallucination counts against entailment, any other one for it; no number overflows."""
    assert read_labels(names, model="tiny").read(logits) == pytest.approx(shares, abs=1e-4)


@pytest.mark.parametrize("logits", [[], [1.0], [1.0, math.nan], [1.0, math.inf], [1.0, 2.0, 3.0]])
def test_other_numbers_are_refused(logits: list[float]) -> None:
    """Too many, too few, and those that are not finite."""
    with pytest.raises(ValueError, match="2 finite numbers a pair are wanted"):
        Labels(count=2, entailment=1).read(logits)


@given(
    contexts=st.lists(st.text("ab .\n", max_size=200), max_size=4).map(tuple),
    claim=st.text("ab .", max_size=30),
    room=st.integers(1, 40),
    most=st.integers(1, 5),
)
def test_passages_hold_every_sentence_and_fit(contexts: tuple[str, ...], claim: str, room: int, most: int) -> None:
    """Running passages leave no sentence out; one with several sentences is never longer than the room for it."""
    scorer = WordScorer()
    passages = EntailmentPassages(contexts, lengths=scorer.lengths, room=room)
    running = {index for passage in passages.running for index in passage.sentences}
    assert running == set(range(len(running)))
    tried = passages.candidates(claim, most=most)
    assert len({passage.sentences for passage in tried}) == len(tried)
    assert bool(tried) == bool(running)
    for passage in (*passages.running, *tried):
        assert len(passage.sentences) == 1 or scorer.lengths([passage.text])[0] <= room


def test_evidence_is_the_smallest_passage_inside_the_best() -> None:
    """A smaller one elsewhere is another finding, and not the best."""
    context = "Oaks grow. Elms grow. Firs grow slowly and very tall in the north."
    passages = EntailmentPassages((context,), lengths=WordScorer().lengths, room=50)
    tried = passages.candidates("Oaks and elms grow.", most=4)
    shares = [{(0,): 0.6, (0, 1, 2): 0.9}.get(passage.sentences, 0.1) for passage in tried]
    scored = list(zip(tried, shares, strict=True))
    found = _find_best("Oaks and elms grow.", scored, passages=passages, threshold=0.5)
    assert (found.share, found.sentences) == (0.9, (0,))


class Slow(WordScorer):
    """A scorer that waits for ``go_on``, and fails for a bomb."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def logits(self, pairs: Sequence[Pair]) -> Sequence[Sequence[float]]:
        """Wait."""
        self.begun.set()
        self.go_on.wait()
        if ("bomb", "bomb") in pairs:
            raise MemoryError
        return super().logits(pairs)


def test_a_batch_that_fails_is_scored_task_by_task() -> None:
    """Only the task at fault fails; a model that cannot be loaded is not loaded again."""
    scorer = Slow()
    batching = BatchingScorer(lambda: scorer)

    async def together() -> list[object]:
        first, bomb, good = (asyncio.create_task(batching.score([(word, word)])) for word in ("first", "bomb", "good"))
        await asyncio.to_thread(scorer.begun.wait)
        await asyncio.sleep(0)
        scorer.go_on.set()
        return list(await asyncio.gather(first, bomb, good, return_exceptions=True))

    first, bomb, good = asyncio.run(together())
    assert first == good == [[0.0, 4.0, 0.0]]
    assert isinstance(bomb, MemoryError)
    load = Mock(side_effect=JudgeNotConfiguredError("gone"))
    missing = BatchingScorer(load)
    uses: tuple[Any, ...] = (missing.score([("a", "a")]), missing.run(lambda _: None))
    for use in uses:
        with pytest.raises(JudgeNotConfiguredError, match="gone"):
            asyncio.run(use)
    load.assert_called_once_with()
    for each in (batching, missing):
        each.close()


def test_what_gathers_meanwhile_is_one_batch() -> None:
    """Tasks that arrive while a batch is scored share the next; cancelled ones are left out, closing cancels all."""
    scorer = Slow()
    batching = BatchingScorer(lambda: scorer, width=8)

    async def many() -> list[object]:
        first = asyncio.create_task(batching.score([("a b", "a")]))
        await asyncio.to_thread(scorer.begun.wait)
        others = [asyncio.create_task(batching.score([("a b", f"{number % 6}"), ("a b", "b")])) for number in range(9)]
        lost = asyncio.create_task(batching.score([("lost", "lost")]))
        await asyncio.sleep(0)
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
        scorer.go_on.set()
        return [await first, *[(await other)[1] for other in others]]

    async def closed() -> list[object]:
        scorer.begun.clear()
        scorer.go_on.clear()
        begun = asyncio.create_task(batching.score([("a", "a")]))
        await asyncio.to_thread(scorer.begun.wait)
        waiting = asyncio.create_task(batching.score([("b", "b")]))
        await asyncio.sleep(0)
        batching.close()
        scorer.go_on.set()
        return list(await asyncio.gather(begun, waiting, return_exceptions=True))

    assert asyncio.run(many()) == [[[0.0, 4.0, 0.0]], *[[0.0, 4.0, 0.0]] * 9]
    assert [len(pairs) for pairs in scorer.seen] == [1, 7]
    done, cancelled = asyncio.run(closed())
    assert done == [[0.0, 4.0, 0.0]]
    assert isinstance(cancelled, asyncio.CancelledError)


def test_a_folder_is_identified_by_its_files(tmp_path: Path) -> None:
    """Another place or a new read-me change nothing; another byte of the weights or another file of the model does."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    source = find_source(str(folder))
    assert (source.is_folder, source.options) == (True, {"local_files_only": True})
    assert source.identity.startswith("tiny@")
    (tmp_path / "elsewhere").mkdir()
    folder = folder.rename(tmp_path / "elsewhere" / "tiny")
    (folder / "README.md").write_text("Notes.")
    (folder / "runs").mkdir()
    assert find_source(f"{folder}/").identity == source.identity
    (folder / "model.safetensors").write_bytes(b"weightz")
    retrained = find_source(str(folder)).identity
    (folder / "vocab.txt").write_text("oak")
    assert len({source.identity, retrained, find_source(str(folder)).identity}) == 3


@pytest.mark.parametrize("written", ["./models/tiny", "/models/tiny", "~/tiny", "a/b/c", "models\\tiny"])
def test_what_is_written_as_a_folder_must_be_one(written: str) -> None:
    """It is never searched on a hub."""
    with pytest.raises(JudgeNotConfiguredError, match="there is no such folder"):
        find_source(written)


@pytest.mark.parametrize(
    ("family", "positions", "stated", "most"),
    [
        ("bert", 512, 512, 512),
        ("bert", 512, 128, 128),
        ("bert", 64, 10**30, 64),
        ("roberta", 514, 10**30, 512),
        ("deberta-v2", None, 10**30, 512),
        ("t5", "many", None, 512),
        ("xlnet", -1, 0, 512),
    ],
)
def test_the_window_is_the_smaller_of_two_that_are_known(
    family: str, positions: object, stated: float | None, most: int
) -> None:
    """Padding takes places in some families; a model may state nonsense."""
    assert window(family=family, positions=positions, stated=stated) == most


@pytest.mark.parametrize(("name", "revision"), [("house/entailment@v2", "v2"), ("house/entailment", None)])
def test_a_name_of_the_hub_is_its_own_identity(name: str, revision: str | None) -> None:
    """The hub is not asked for the identity; without a revision the current state is loaded."""
    source = find_source(name)
    assert (source.place, source.revision, source.identity) == ("house/entailment", revision, name)
    assert source.options == {"revision": revision or "main"}


def test_classes_without_a_name_have_a_number() -> None:
    """As in the library itself."""
    assert class_names({0: "yes", 5: "beyond"}, 2) == ["yes", "LABEL_1"]
