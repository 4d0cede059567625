"""The parts of a judge by an entailment model: labels, passages and the identity of weights."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.core.errors import JudgeNotConfiguredError
from pytest_ragmetrics.judges.nli import Labels, NliJudge, Premises, identity, read_labels
from pytest_ragmetrics.text.sentences import sentence_table
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
    assert read_labels(names, model="tiny").read(logits) == pytest.approx(shares, abs=1e-4)


@pytest.mark.parametrize("logits", [[], [1.0], [1.0, math.nan], [1.0, math.inf], [1.0, 2.0, 3.0]])
def test_other_numbers_are_refused(logits: list[float]) -> None:
    with pytest.raises(ValueError, match="2 finite numbers a pair are wanted"):
        Labels(count=2, entailment=1).read(logits)


@given(
    contexts=st.lists(st.text("ab .\n", max_size=200), max_size=4).map(tuple),
    claim=st.text("ab .", max_size=30),
    most=st.integers(1, 5),
)
def test_passages_hold_every_sentence(contexts: tuple[str, ...], claim: str, most: int) -> None:
    table = sentence_table(contexts)
    premises = Premises(contexts)
    all_of_them = list(premises.of(claim, most=1000))
    assert len(set(all_of_them)) == len(all_of_them)
    assert {index for rows in all_of_them for index in rows} == set(range(len(table)))
    assert len(list(premises.of(claim, most=most))) <= 4 + most
    for context in range(len(contexts)):
        inside = {index for rows in premises.of(claim, most=most, context=context) for index in rows}
        assert {table[index].context for index in inside} <= {context}
        assert bool(inside) is any(sentence.context == context for sentence in table)


def test_evidence_is_the_smallest_passage_inside_the_best() -> None:
    premises = Premises(("Oaks grow. Elms grow. Firs grow slowly and very tall in the north.",))
    shares = dict.fromkeys(premises.of("Oaks and elms grow.", most=4), 0.1) | {(0,): 0.6, (0, 1, 2): 0.9}
    found = NliJudge("words", scorer=WordScorer())._finding("Oaks and elms grow.", shares, premises)
    assert (found.share, found.sentences) == (0.9, (0,))


def test_a_folder_is_identified_by_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    known = identity(str(folder))
    assert known.startswith("tiny@")
    (tmp_path / "elsewhere").mkdir()
    folder = folder.rename(tmp_path / "elsewhere" / "tiny")
    (folder / "README.md").write_text("Notes.")
    (folder / "runs").mkdir()
    assert identity(f"{folder}/") == known
    (folder / "model.safetensors").write_bytes(b"weightz")
    retrained = identity(str(folder))
    (folder / "vocab.txt").write_text("oak")
    assert len({known, retrained, identity(str(folder))}) == 3


@pytest.mark.parametrize("written", ["./models/tiny", "/models/tiny", "~/tiny", "a/b/c", "models\\tiny"])
def test_what_is_written_as_a_folder_must_be_one(written: str) -> None:
    with pytest.raises(JudgeNotConfiguredError, match="there is no such folder"):
        identity(written)


@pytest.mark.parametrize("name", ["house/entailment@v2", "house/entailment"])
def test_a_name_of_the_hub_is_its_own_identity(name: str) -> None:
    assert identity(name) == name
