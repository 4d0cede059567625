"""The embedder by rule, models in a folder, and embedders of one's own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.core.errors import BudgetExceededError, JudgeError, JudgeNotConfiguredError
from pytest_ragmetrics.judges.embedders.embedder import CustomEmbedder, as_embedder, as_vectors
from pytest_ragmetrics.judges.embedders.local import LocalEmbedder, SentenceTransformersEmbedder

EMBEDDER = LocalEmbedder()


def likeness(first: str, second: str) -> float:
    vectors = EMBEDDER.embed([first, second])
    return float(vectors[0] @ vectors[1])


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=60), max_size=5))
def test_vectors_have_length_one_and_depend_on_their_text_alone(texts: list[str]) -> None:
    vectors = EMBEDDER.embed(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(texts), 512)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    for text, vector in zip(texts, vectors, strict=True):
        assert (EMBEDDER.embed([text])[0] == vector).all()


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("How do moths find a lamp?", "Why do moths fly to lamps?", "What does the tax office want?"),
        ("Wie hoch ist der Turm?", "Der Turm ist 40 Meter hoch.", "Brot wird aus Mehl gebacken."),
        ("长城有多长？", "长城的长度是多少", "今天晚饭吃什么"),
        ("أين تقع مكتبة المدينة؟", "تقع المكتبة في وسط المدينة", "طبخت أمي الأرز"),
    ],
)
def test_texts_about_the_same_are_closer(text: str, near: str, far: str) -> None:
    assert likeness(text, near) > likeness(text, far) + 0.2


def test_a_repeated_word_counts_by_its_square_root() -> None:
    """Some features are negative, so that colliding ones cancel out."""
    assert likeness("ivy ivy ivy lamp", "ivy lamp") == pytest.approx(0.9659, abs=1e-4)
    assert (EMBEDDER.embed(["ivy lamp"]) < 0).sum() == 3


def test_a_vector_is_the_same_in_every_process() -> None:
    (vector,) = EMBEDDER.embed(["Roses."])
    (places,) = vector.nonzero()
    assert places.tolist() == [24, 39, 97, 122, 181, 353, 374, 505]
    expected = [0.169, 0.169, -0.8944, -0.169, -0.169, -0.169, 0.169, -0.169]
    assert vector[places].round(4).tolist() == pytest.approx(expected)


class Lengths:
    def embed(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts]


async def counted(texts: Sequence[str]) -> Any:
    return np.array([[len(text), 1] for text in texts])


@pytest.mark.parametrize("target", [Lengths(), Lengths().embed, counted, lambda texts: counted(texts)])  # noqa: PLW0108 - no coroutine function
def test_anything_that_embeds_makes_an_embedder(target: Any) -> None:
    vectors = asyncio.run(as_embedder(target).aembed(["one", "four"]))
    assert vectors.tolist() == [[3.0, 1.0], [4.0, 1.0]]
    assert vectors.dtype == np.float32
    assert as_embedder(EMBEDDER) is EMBEDDER
    with pytest.raises(TypeError, match="not int"):
        as_embedder(3)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([[1.0]], "shape"),
        ([1.0, 2.0], "shape"),
        ([[], []], "shape"),
        ([[1.0], [float("nan")]], "not finite"),
        ([[1.0], [1.0, 2.0]], "rows of numbers"),
        ("words", "rows of numbers"),
        (None, "shape|rows of numbers"),
    ],
)
def test_what_is_no_row_of_numbers_a_text_is_refused(values: Any, problem: str) -> None:
    with pytest.raises(JudgeError, match=f"mine.*({problem})"):
        as_vectors(values, count=2, name="mine")


@pytest.mark.parametrize(
    ("cause", "error", "message"),
    [
        (OSError("disk on fire"), JudgeError, "mine failed: OSError: disk on fire"),
        (BudgetExceededError("all spent"), BudgetExceededError, "^all spent$"),
    ],
)
def test_failures_of_a_custom_embedder_keep_their_cause(cause: Exception, error: type[Exception], message: str) -> None:
    def broken(_: list[str]) -> Any:
        raise cause

    with pytest.raises(error, match=message):
        asyncio.run(CustomEmbedder(broken, name="mine").aembed(["x"]))


def test_closing_closes_the_target() -> None:
    aclose = AsyncMock()
    asyncio.run(CustomEmbedder(SimpleNamespace(embed=Lengths().embed, aclose=aclose)).aclose())
    aclose.assert_awaited_once_with()
    asyncio.run(CustomEmbedder(Lengths()).aclose())


def test_a_model_folder_is_loaded_once_and_offline(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Mock()
    library.SentenceTransformer.return_value.encode = encode = Mock(return_value=np.ones((2, 4)))
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    embedder = SentenceTransformersEmbedder(tmp_path, device="cpu")
    for _ in range(2):
        assert asyncio.run(embedder.aembed(["a", "b"])).shape == (2, 4)
        assert encode.call_args.kwargs["normalize_embeddings"] is True
    library.SentenceTransformer.assert_called_once_with(str(tmp_path), device="cpu", local_files_only=True)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(JudgeNotConfiguredError, match=r"pytest-ragmetrics\[sentence-transformers\]"):
        asyncio.run(SentenceTransformersEmbedder(tmp_path).aembed(["x"]))
    with pytest.raises(JudgeNotConfiguredError, match="no such folder"):
        asyncio.run(SentenceTransformersEmbedder("no/such/folder").aembed(["x"]))
