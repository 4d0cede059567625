"""Embedders from a model folder on disk, through the sentence-transformers library."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.embedders.embedder import Embedder, as_vectors
from pytest_ragmetrics.errors import JudgeError, JudgeNotConfiguredError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class SentenceTransformersEmbedder(Embedder):
    """A model in a folder, loaded when it is first used and never from the network.

    ``device`` is that of the library, such as ``"cpu"``. Raises ``JudgeNotConfiguredError`` when the library is not
    installed or the folder is not there.

    >>> SentenceTransformersEmbedder("models/tiny").name
    'sentence-transformers:models/tiny'
    """

    def __init__(self, folder: str | Path, *, device: str | None = None) -> None:
        """Take the ``folder`` that the model was saved to; its name stands for the model in what is kept."""
        self.name = f"sentence-transformers:{folder}"
        self.kind = "sentence-transformers"
        self.is_paid = False
        self.model = Path(folder).name
        self._folder = Path(folder)
        self._device = device
        self._encoder: Any = None
        # The library's models are not made to be used by several threads.
        self._alone = threading.Lock()

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
                msg = f"{self.name} cannot be used: {error}"
                raise JudgeError(msg) from error
        return as_vectors(values, count=len(texts), name=self.name)

    def _load(self) -> Any:
        if not self._folder.is_dir():
            msg = f"{self.name}: there is no such folder; save a model to it first"
            raise JudgeNotConfiguredError(msg)
        try:
            library = import_module("sentence_transformers")
        except ImportError as error:
            msg = f'{self.name} needs its library: pip install "pytest-ragmetrics[sentence-transformers]"'
            raise JudgeNotConfiguredError(msg) from error
        return library.SentenceTransformer(str(self._folder), device=self._device, local_files_only=True)
