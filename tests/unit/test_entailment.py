"""The parts of a judge by an entailment model: labels, passages, batches and the identity of weights."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragmetrics.errors import JudgeNotConfiguredError
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


def test_one_number_is_a_probability_for_or_against() -> None:
    """A class called hallucination counts against entailment, any other one for it."""
    assert read_labels(["LABEL_0"], model="tiny").read([2.0])[0] == pytest.approx(0.8808, abs=1e-4)
    assert read_labels(["hallucination"], model="tiny").read([2.0])[0] == pytest.approx(0.1192, abs=1e-4)


@settings(max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3))
def test_numbers_become_probabilities(logits: list[float]) -> None:
    """However large they are, the shares lie between 0 and 1."""
    said = Labels(count=len(logits), entailment=0, contradiction=len(logits) - 1 or None).read(logits)
    assert all(0 <= share <= 1 for share in said)


@pytest.mark.parametrize("logits", [[], [1.0], [1.0, math.nan], [1.0, math.inf], [1.0, 2.0, 3.0]])
def test_other_numbers_are_refused(logits: list[float]) -> None:
    """Too many, too few and those that are none."""
    with pytest.raises(ValueError, match="2 finite numbers a pair are wanted"):
        Labels(count=2, entailment=1).read(logits)


@settings(max_examples=40, deadline=None)
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
    """A scorer whose first batch waits for ``go_on``."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def logits(self, pairs: Sequence[Pair]) -> Sequence[Sequence[float]]:
        """Wait, once."""
        self.begun.set()
        self.go_on.wait()
        return super().logits(pairs)


def test_what_gathers_meanwhile_is_one_batch() -> None:
    """While the model works for one task, those of others wait together; cancelled ones are left out."""
    scorer = Slow()
    batching = BatchingScorer(lambda: scorer, width=8)

    async def many() -> list[Sequence[float]]:
        first = asyncio.create_task(batching.score([("a b", "a")]))
        await asyncio.to_thread(scorer.begun.wait)
        others = [asyncio.create_task(batching.score([("a b", f"{number % 6}"), ("a b", "b")])) for number in range(9)]
        lost = asyncio.create_task(batching.score([("lost", "lost")]))
        await asyncio.sleep(0)
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
        scorer.go_on.set()
        await asyncio.gather(first, *others)
        return [(await other)[1] for other in others]

    assert asyncio.run(many()) == [[0.0, 4.0, 0.0]] * 9
    assert [len(pairs) for pairs in scorer.seen] == [1, 7]
    batching.close()


def test_closing_cancels_the_waiting_pairs() -> None:
    """The batch that has begun is finished."""
    scorer = Slow()
    batching = BatchingScorer(lambda: scorer)

    async def closed() -> list[object]:
        first = asyncio.create_task(batching.score([("a", "a")]))
        await asyncio.to_thread(scorer.begun.wait)
        second = asyncio.create_task(batching.score([("b", "b")]))
        await asyncio.sleep(0)
        batching.close()
        scorer.go_on.set()
        return list(await asyncio.gather(first, second, return_exceptions=True))

    done, cancelled = asyncio.run(closed())
    assert done == [[0.0, 4.0, 0.0]]
    assert isinstance(cancelled, asyncio.CancelledError)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a folder with the files of a model."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_a_folder_is_known_by_what_is_in_it(model: Path, tmp_path: Path) -> None:
    """Another place or a new read-me change nothing; another byte of the weights or another file of the model does."""
    source = find_source(str(model))
    assert source.is_folder
    assert source.identity.startswith("tiny@")
    moved = model.rename(tmp_path / "moved").rename(tmp_path / "elsewhere").rename(model)
    (moved / "README.md").write_text("Notes.")
    (moved / "runs").mkdir()
    assert find_source(f"{model}/").identity == source.identity
    (model / "model.safetensors").write_bytes(b"weightz")
    retrained = find_source(str(model)).identity
    (model / "vocab.txt").write_text("oak")
    assert len({source.identity, retrained, find_source(str(model)).identity}) == 3


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


def test_classes_without_a_name_have_a_number() -> None:
    """As the library calls them itself."""
    assert class_names({0: "yes", 5: "beyond"}, 2) == ["yes", "LABEL_1"]


def test_a_name_has_its_revision_and_a_folder_none(tmp_path: Path) -> None:
    """A name of the hub is its own identity, so the hub need not be asked; a folder is read without the network."""
    source = find_source("house/entailment@v2")
    assert (source.place, source.revision, source.identity) == ("house/entailment", "v2", "house/entailment@v2")
    assert source.options == {"revision": "v2"}
    source = find_source("house/entailment")
    assert (source.revision, source.options) == (None, {"revision": "main"})
    assert find_source(str(tmp_path)).options == {"local_files_only": True}
