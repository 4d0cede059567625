"""Specs of embedders (``--rag-embedder``): checks their text and makes the embedder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_ragmetrics.judges.providers.vendor import VENDORS
from pytest_ragmetrics.judges.specs import is_factory, made_by, meant_by, no_spec, provider_advice

if TYPE_CHECKING:
    from pytest_ragmetrics.judges.embedders.embedder import Embedder

_EMBEDDING = [name for name, vendor in VENDORS.items() if "embedder" in vendor.kinds]
_PROVIDED = re.compile(rf"(?:{'|'.join(_EMBEDDING)}):\S+|sentence-transformers:\S.*")


def check_embedder_spec(spec: str) -> str:
    """Return the spec of an embedder without outer white space; raise ``ValueError`` for another text.

    >>> check_embedder_spec("openai:text-embedding-3-small")
    'openai:text-embedding-3-small'
    """
    spec = spec.strip()
    provider = spec.partition(":")[0]
    if spec in ("auto", "local") or _PROVIDED.fullmatch(spec):
        return spec
    if provider not in VENDORS and is_factory(spec):
        return spec
    is_without = provider in VENDORS and provider not in _EMBEDDING
    hint = f"{VENDORS[provider].label} has no embeddings" if is_without else provider_advice(spec)
    models = ", ".join(f"{name}:MODEL" for name in _EMBEDDING)
    raise ValueError(no_spec(spec, f"auto, local, {models}, sentence-transformers:FOLDER, MODULE:FACTORY", hint))


def make_embedder(spec: str, *, timeout: float = 60, retries: int = 5) -> Embedder:
    """Return the embedder of a spec.

    Raises ``ValueError`` for another text, and ``JudgeNotConfiguredError`` if ``auto`` finds no key or a factory
    makes no embedder. A missing key of an explicit spec is an error of the first request: replaying needs none.
    """
    spec = meant_by(check_embedder_spec(spec), "embedder")
    provider, _, model = spec.partition(":")
    if provider in _EMBEDDING:
        made: Embedder = VENDORS[provider].kind("embedder")(model, timeout=timeout, retries=retries)
        return made
    if provider == "sentence-transformers":
        from pytest_ragmetrics.judges.embedders.local import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(model)
    if provider == "local":
        from pytest_ragmetrics.judges.embedders.local import LocalEmbedder

        return LocalEmbedder()
    from pytest_ragmetrics.judges.embedders.embedder import as_embedder

    return made_by(spec, lambda made: as_embedder(made, name=spec), noun="embedder")
