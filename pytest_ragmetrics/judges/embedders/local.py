"""Embedders on this machine: hashed words and character n-grams without a key, and models in a folder."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.core.errors import JudgeError, JudgeNotConfiguredError, optional
from pytest_ragmetrics.core.loop import in_child
from pytest_ragmetrics.judges.embedders.embedder import Embedder, as_vectors
from pytest_ragmetrics.text.words import telling_words

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_DIMENSIONS = 512
_GRAMS = (3, 4)
# The weight of a whole word relative to one n-gram.
_WORD_WEIGHT = 2.0


class LocalEmbedder(Embedder):
    """Hashed character n-grams of the content words: deterministic, in any language, blind to synonyms.

    Vectors have length 1, and are the same in every process and on every machine.

    >>> import asyncio
    >>> first, second, third = asyncio.run(LocalEmbedder().aembed(["red roses", "a red rose", "tax law"]))
    >>> bool(first @ second > 0.8), bool(first @ third < 0.2)
    (True, True)
    """

    name = "local (heuristic)"
    kind = "local"
    model = f"hashed-ngrams-{_DIMENSIONS}"
    is_kept = False
    is_paid = False

    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text."""
        return self.embed(texts)

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text."""
        import numpy as np

        vectors = np.zeros((len(texts), _DIMENSIONS), dtype=np.float64)
        for vector, text in zip(vectors, texts, strict=True):
            for feature, weight in _features(text).items():
                code = zlib.crc32(feature.encode("utf-8", "replace"))
                # The lowest bit is a sign, so that colliding features cancel out on average.
                vector[(code >> 1) % _DIMENSIONS] += weight if code & 1 else -weight
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[:] = np.divide(vectors, lengths, where=lengths > 0, out=np.zeros_like(vectors))
        return vectors.astype(np.float32)


def _features(text: str) -> dict[str, float]:
    counts = Counter(word.key for word in telling_words(text)) or Counter([" ".join(text.split())])
    weights: defaultdict[str, float] = defaultdict(float)
    for key, count in counts.items():
        # A repeated word adds less each time.
        once = count**0.5
        padded = f" {key} "
        grams = [padded[start : start + size] for size in _GRAMS for start in range(len(padded) - size + 1)]
        weights[f"={key}"] += _WORD_WEIGHT * once
        for gram in grams:
            weights[gram] += once / len(grams) ** 0.5
    return weights


class SentenceTransformersEmbedder(Embedder):
    """A model in a folder, loaded when it is first used and never from the network.

    ``device`` is that of the library, such as ``"cpu"``. Raises ``JudgeNotConfiguredError`` if the library is not
    installed or the folder does not exist.

    >>> SentenceTransformersEmbedder("models/tiny").name
    'sentence-transformers:models/tiny'
    """

    kind = "sentence-transformers"
    is_paid = False

    def __init__(self, folder: str | Path, *, device: str | None = None) -> None:
        """Take the ``folder`` of the saved model; its name is the model in cache keys."""
        self.name = f"sentence-transformers:{folder}"
        self.model = Path(folder).name
        self._folder = Path(folder)
        self._device = device
        self._encoder: Any = None
        # The models of the library are not thread-safe.
        self._alone = threading.Lock()
        in_child(self, _alone=threading.Lock)

    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector of length 1 a text; raise ``JudgeError`` if the model cannot be used."""
        return await asyncio.to_thread(self._encode, list(texts))

    def _encode(self, texts: list[str]) -> npt.NDArray[np.float32]:
        with self._alone:
            try:
                encoder = self._encoder = self._encoder or self._load()
                values = encoder.encode(
                    texts, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
                )
            except (OSError, RuntimeError, ValueError) as error:
                raise JudgeError(f"{self.name} cannot be used: {error}") from error
        return as_vectors(values, count=len(texts), name=self.name)

    def _load(self) -> Any:
        if not self._folder.is_dir():
            raise JudgeNotConfiguredError(f"{self.name}: there is no such folder; save a model to it first")
        extra = "sentence-transformers"
        library = optional("sentence_transformers", self.name, extra, error=JudgeNotConfiguredError)
        return library.SentenceTransformer(str(self._folder), device=self._device, local_files_only=True)
