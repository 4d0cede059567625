"""Which model a spec means, and what tells it apart from another one of the same name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_ragmetrics.errors import JudgeNotConfiguredError

# Configuration, vocabulary and weights; notes, pictures and the state of a training change nothing.
_TELLING = frozenset({".json", ".safetensors", ".bin", ".pt", ".txt", ".model"})
_DIGITS = 12
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A model as it is asked for: a folder, or a name on a hub that its library knows, maybe with a revision.

    ``identity`` is the name with the digest of the folder's files, or with the revision: what determines its answers.
    """

    place: str
    identity: str
    is_folder: bool
    revision: str | None = None

    @property
    def options(self) -> Mapping[str, Any]:
        """What the library is told beside the place: a folder is read and nothing else."""
        return {"local_files_only": True} if self.is_folder else {"revision": self.revision or "main"}


def find_source(model: str) -> Source:
    """Return what ``FOLDER``, ``NAME`` or ``NAME@REVISION`` means.

    A name without revision stands for whatever the hub has under it. Raises ``JudgeNotConfiguredError`` for what is
    written as a folder and is none.

    >>> find_source("house/entailment@v2").revision
    'v2'
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return Source(place=str(folder), identity=f"{folder.resolve().name}@{_digest(folder)}", is_folder=True)
    if model.startswith((".", "/", "~")) or "\\" in model or model.count("/") > 1:
        msg = f"nli:{model}: there is no such folder; save a model and its tokenizer to it first"
        raise JudgeNotConfiguredError(msg)
    place, _, revision = model.partition("@")
    return Source(place=place, identity=model, is_folder=False, revision=revision or None)


def _digest(folder: Path) -> str:
    """Return the digest of a folder's files: of their names and of every byte, wherever the folder stands."""
    whole = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in _TELLING and file.is_file():
            whole.update(f"{file.name}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    whole.update(chunk)
    return whole.hexdigest()[:_DIGITS]
