"""Specs of embedders (``--rag-embedder``): checks their text and makes the embedder."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from pytest_ragmetrics.core import running
from pytest_ragmetrics.core.errors import JudgeNotConfiguredError
from pytest_ragmetrics.judges.specs import is_factory, made_by, no_spec, provider_advice

if TYPE_CHECKING:
    from pytest_ragmetrics.judges.embedders.embedder import Embedder

#: The choice of ``auto`` if a key or an address of an OpenAI server is set.
DEFAULT_OPENAI = "openai:text-embedding-3-small"

_PROVIDED = re.compile(r"openai:\S+|sentence-transformers:\S.*")


def check_embedder_spec(spec: str) -> str:
    """Return the spec of an embedder without outer white space; raise ``ValueError`` for another text.

    >>> check_embedder_spec("openai:text-embedding-3-small")
    'openai:text-embedding-3-small'
    """
    spec = spec.strip()
    provider = spec.partition(":")[0]
    if spec in ("auto", "local") or _PROVIDED.fullmatch(spec):
        return spec
    if provider not in ("openai", "anthropic") and is_factory(spec):
        return spec
    hint = "Anthropic has no embeddings" if provider == "anthropic" else provider_advice(spec)
    raise ValueError(no_spec(spec, "auto, local, openai:MODEL, sentence-transformers:FOLDER, MODULE:FACTORY", hint))


def make_embedder(spec: str, *, timeout: float = 60, retries: int = 5) -> Embedder:
    """Return the embedder of a spec.

    Raises ``ValueError`` for another text, and ``JudgeNotConfiguredError`` if ``auto`` finds no key or a factory
    makes no embedder. A missing key of an explicit spec is an error of the first request: replaying needs none.
    """
    spec = check_embedder_spec(spec)
    provider, _, model = (_chosen() if spec == "auto" else spec).partition(":")
    if provider == "openai":
        from pytest_ragmetrics.judges.embedders.openai import OpenAIEmbedder

        return OpenAIEmbedder(model, timeout=timeout, retries=retries)
    if provider == "sentence-transformers":
        from pytest_ragmetrics.judges.embedders.local import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(model)
    if provider == "local":
        from pytest_ragmetrics.judges.embedders.local import LocalEmbedder

        return LocalEmbedder()
    from pytest_ragmetrics.judges.embedders.embedder import as_embedder

    return made_by(spec, lambda made: as_embedder(made, name=spec), noun="embedder")


def _chosen() -> str:
    """Return the spec that ``auto`` chooses in this environment."""
    if any(os.environ.get(variable, "").strip() for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL")):
        return DEFAULT_OPENAI
    keys = "set OPENAI_API_KEY or OPENAI_BASE_URL"
    ways = (
        'name one with embedder="openai:MODEL", or --embedder of a command; or use the heuristic embedder="local"'
        if running.innermost() is None
        else "replay recorded vectors (--rag-cache=replay with --rag-cassette=FILE); or use the built-in heuristic "
        "(--rag-embedder=local)"
    )
    msg = f"this metric needs an embedder, and none is configured. Three ways on: {keys}; {ways}"
    raise JudgeNotConfiguredError(msg)
