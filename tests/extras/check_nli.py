"""A real entailment model through the real libraries; run by name where the extra is installed.

python -m pytest tests/extras/check_nli.py
"""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.core.errors import JudgeError, JudgeNotConfiguredError
from pytest_ragmetrics.judges.nli import NliJudge
from pytest_ragmetrics.judges.tasks import FindContradictions, Judgement, VerifyClaims
from pytest_ragmetrics.metrics import Faithfulness

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "not", "basil", "wilts", "ivy", "is", "edible", "climbs", "."]
POSITIONS = 48


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Save a model whose weights are written here: a pair is contradicted if "not" stands in it, else entailed."""
    return saved(tmp_path / "tiny", "CONTRADICTION", "neutral", "Entailment")


def saved(folder: Path, *labels: str) -> Path:
    save_tokenizer(folder)
    save_model(folder, list(labels))
    return folder


def save_tokenizer(folder: Path) -> None:
    parts: Any = import_module("tokenizers")
    library: Any = import_module("transformers")
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = parts.Tokenizer(parts.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = parts.normalizers.Lowercase()
    tokenizer.pre_tokenizer = parts.pre_tokenizers.Whitespace()
    tokenizer.post_processor = parts.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    roles = zip(("pad_token", "unk_token", "cls_token", "sep_token"), WORDS, strict=False)
    library.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **dict(roles)).save_pretrained(folder)


def save_model(folder: Path, labels: list[str]) -> None:
    """Save a BERT of one layer that averages its words; two dimensions tell "not" from what never occurs."""
    torch: Any = import_module("torch")
    library: Any = import_module("transformers")
    configuration = library.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
        max_position_embeddings=POSITIONS,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    )
    model = library.BertForSequenceClassification(configuration)
    with torch.no_grad():
        for name, values in model.named_parameters():
            values.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
        words = model.bert.embeddings.word_embeddings.weight
        words[4:, 0] = 1.0
        words[4] = torch.eye(8)[1]
        attention = model.bert.encoder.layer[0].attention
        for layer in (attention.self.value, attention.output.dense, model.bert.pooler.dense):
            layer.weight.copy_(torch.eye(8))
        model.classifier.bias[-1] = 5.0
        model.classifier.weight[0, 1], model.classifier.weight[0, 2] = 1000.0, -1000.0
    model.save_pretrained(folder)


def verified(judge: NliJudge, contexts: tuple[str, ...], *claims: str) -> tuple[Judgement, ...]:
    return asyncio.run(judge.ask(VerifyClaims(claims=claims, contexts=contexts))).answer


def test_a_saved_model_verifies_claims_offline(folder: Path) -> None:
    judge = NliJudge(str(folder), device="cpu")
    assert judge.name.startswith("nli:tiny@")
    first, second = verified(judge, ("Ivy climbs. Basil wilts.",), "Ivy climbs.", "Basil is not edible.")
    assert (first.ok, first.sentences, second.ok) == (True, (0,), False)
    assert first.reason.endswith("entails it with 0.99.")
    task = FindContradictions(response="Ivy is edible.", contexts=("Ivy climbs.", "Ivy is not edible."))
    found = asyncio.run(judge.ask(task)).answer
    assert [(each.ok, each.sentences) for each in found] == [(False, ()), (True, (1,))]
    asyncio.run(judge.aclose())


def test_a_metric_takes_the_judge(folder: Path) -> None:
    result = Faithfulness(judge=NliJudge(str(folder))).score(
        response="Ivy climbs. Basil is not edible.", retrieved_contexts=["Ivy climbs."]
    )
    assert (result.value, result.judge) == (0.5, NliJudge(str(folder)).name)


def test_long_contexts_fit_into_the_model(folder: Path) -> None:
    context = " ".join(["Ivy climbs."] * 200 + [" ".join(["ivy"] * 100) + "."])
    assert verified(NliJudge(str(folder)), (context,), "Ivy climbs.")[0].ok
    with pytest.raises(JudgeError, match="the model takes 48 tokens, and a sentence has 43 of them"):
        verified(NliJudge(str(folder)), (context,), " ".join(["ivy"] * 41))


@pytest.mark.parametrize("labels", [["LABEL_0"], ["LABEL_0", "LABEL_1"], ["hallucinated", "consistent"]])
def test_models_with_one_class_or_two(tmp_path: Path, labels: list[str]) -> None:
    place = saved(tmp_path / "small", *labels)
    assert "0.99" in verified(NliJudge(str(place)), ("Ivy climbs.",), "Ivy climbs.")[0].reason


def test_labels_without_names_are_an_error_that_lists_them(tmp_path: Path) -> None:
    """Three classes called by numbers could stand in any order, unless they are named."""
    place = saved(tmp_path / "unnamed", "LABEL_0", "LABEL_1", "LABEL_2")
    with pytest.raises(JudgeNotConfiguredError, match="has the labels 'LABEL_0', 'LABEL_1', 'LABEL_2'"):
        verified(NliJudge(str(place)), ("Ivy climbs.",), "Ivy climbs.")
    named = NliJudge(str(place), labels=("contradiction", "neutral", "entailment"))
    assert verified(named, ("Ivy climbs.",), "Ivy climbs.")[0].ok


def test_a_model_that_is_no_classifier_is_refused(folder: Path) -> None:
    """The library would make up the missing weights, and with them every verdict."""
    library: Any = import_module("transformers")
    library.BertModel.from_pretrained(folder).save_pretrained(folder)
    with pytest.raises(JudgeNotConfiguredError, match=r"is no trained classifier, but BertModel"):
        verified(NliJudge(str(folder)), ("Ivy climbs.",), "Ivy climbs.")


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(JudgeNotConfiguredError, match="cannot be loaded"):
        verified(NliJudge(str(tmp_path)), ("Ivy climbs.",), "Ivy climbs.")
    with pytest.raises(JudgeNotConfiguredError, match=r"no-such-model cannot be loaded \(nor is it a folder here\)"):
        verified(NliJudge("house/no-such-model"), ("Ivy climbs.",), "Ivy climbs.")


SUITE = """
    from pytest_ragmetrics import assert_faithful

    def test_faithful():
        assert_faithful("Ivy climbs.", ["Ivy climbs. Basil wilts."], min=0.9)

    def test_unfaithful():
        assert_faithful("Basil is not edible.", ["Ivy climbs. Basil wilts."], min=0.9)
"""


def test_a_suite_is_judged_and_replayed(pytester: pytest.Pytester, folder: Path) -> None:
    pytester.makepyfile(SUITE)
    plugin = ("-p", "ragmetrics", "--rag-cassette=judge.jsonl", "-p", "no:cacheprovider")
    result = pytester.runpytest(*plugin, f"--rag-judge=nli:{folder}")
    result.assert_outcomes(passed=1, failed=1)
    rows = [json.loads(line) for line in (pytester.path / "judge.jsonl").read_text().splitlines()]
    (model,) = {row["request"]["model"] for row in rows}
    folder.rename(folder.parent / "gone")
    replayed = pytester.runpytest(*plugin, f"--rag-judge=nli:{model}", "--rag-cache=replay", "--rag-cache-dir=other")
    replayed.assert_outcomes(passed=1, failed=1)
