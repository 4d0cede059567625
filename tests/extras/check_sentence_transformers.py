"""A real model folder through the real library; run by name where the extra is installed.

python -m pytest tests/extras/check_sentence_transformers.py
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_ragmetrics.judges.embedders.local import SentenceTransformersEmbedder


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """Save a tiny model that is made here: word counts, no weights, nothing fetched."""
    models: Any = import_module("sentence_transformers.sentence_transformer.modules")
    library: Any = import_module("sentence_transformers")
    words = ["moth", "lamp", "night", "tax", "office"]
    model = library.SentenceTransformer(modules=[models.BoW(vocab=words)], device="cpu")
    folder = tmp_path / "bag-of-words"
    model.save(str(folder))
    return folder


def test_a_saved_model_embeds_offline(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    embedder = SentenceTransformersEmbedder(model_folder, device="cpu")
    vectors = asyncio.run(embedder.aembed(["moth lamp", "lamp moth night", "tax office"]))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert vectors[0] @ vectors[1] > 0.8
    assert vectors[0] @ vectors[2] == pytest.approx(0.0)
