"""Embedders behind the OpenAI API, or any server that speaks it."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.judges.embedders.batches import split
from pytest_ragmetrics.judges.embedders.embedder import Embedder, as_vectors
from pytest_ragmetrics.judges.prices import known_sum
from pytest_ragmetrics.judges.providers.connection import (
    Connection,
    counted_reply,
    field_of,
    refused_parameter,
    said_by,
)
from pytest_ragmetrics.judges.providers.errors import came
from pytest_ragmetrics.judges.providers.vendor import OPENAI
from pytest_ragmetrics.judges.transports.values import EmbeddingRequest, Reply, UnusableReplyError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack

    from pytest_ragmetrics.judges.providers.connection import ConnectionOptions

# How servers say that a request has too many texts or tokens; most take fewer than OpenAI.
_TOO_MANY = re.compile(r"(?i)\bbatch|too many|per request|input array|at most \d+ (?:texts|inputs|items|strings)")

# The most bytes of an answer: of all but the vectors, and of a vector of 8,192 numbers in decimals.
_FRAME = 1_000_000
_VECTOR = 200_000


class _TooManyTextsError(JudgeError):
    """A server takes ``most`` texts in one request."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the server takes {most} texts at most")
        self.most = most


class OpenAIEmbedder(Embedder):
    """A model behind the OpenAI API; ``base_url`` names another server that speaks it.

    ``api_key`` and ``base_url`` are as in ``OpenAIJudge``. Texts requested within a few milliseconds share a request.
    Use it in one event loop, and ``aclose`` it there.

    >>> OpenAIEmbedder("text-embedding-3-small").name
    'openai:text-embedding-3-small'
    """

    # What the API takes in one request: inputs, and tokens, of which a text has at most as many as bytes.
    batch = (2048, 300_000)

    def __init__(self, model: str, *, dimensions: int | None = None, **connection: Unpack[ConnectionOptions]) -> None:
        """Ask for vectors of ``dimensions`` numbers where the model lets one choose."""
        self.name = f"openai:{model}"
        self.kind = "openai"
        self.model = model
        self.dimensions = dimensions
        self._connection = Connection(OPENAI, "base64", model=model, **connection)
        self.url = self._connection.elsewhere

    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text; raise ``JudgeError`` if the provider fails or sends anything else."""
        vectors: dict[str, Any] = {}
        for batch in split(dict.fromkeys(texts), *self.batch):
            found: Any = (await self.complete(self.request(batch))).vectors
            vectors.update(zip(batch, found, strict=True))
        return as_vectors([vectors[text] for text in texts], count=len(texts), name=self.name)

    async def complete(self, request: EmbeddingRequest) -> Reply:
        """Return the vectors of texts, of several requests where the server takes fewer; raises as :meth:`aembed`."""
        texts = list(split(request.texts, *self.batch))
        try:
            if not texts[1:]:
                return await self._complete(request)
        except _TooManyTextsError as error:
            self.batch = (min(error.most, self.batch[0]), self.batch[1])
            return await self.complete(request)
        # In turn: the limits of requests in flight count one.
        replies = [await self.complete(replace(request, texts=part)) for part in texts]
        rows = [row for reply in replies for row in (() if reply.vectors is None else reply.vectors)]
        return Reply(
            vectors=as_vectors(rows, count=len(rows), name="it"),
            prompt_tokens=sum(reply.prompt_tokens for reply in replies),
            billed=known_sum(reply.billed for reply in replies),
        )

    async def _complete(self, request: EmbeddingRequest) -> Reply:
        # The API refuses empty texts, and nothing can encode half a surrogate pair.
        sent = [text.encode("utf-8", "replace").decode("utf-8") or " " for text in request.texts]
        chosen = {} if request.dimensions is None else {"dimensions": request.dimensions}
        answer = await self._connection.call(
            lambda client, encoding: client.post(
                "/embeddings",
                body={"model": self.model, "input": sent, "encoding_format": encoding, **chosen},
                cast_to=object,
            ),
            lambda encoding, error: _concede(encoding, error, len(sent)),
            single=request.is_single,
            most=_FRAME + len(sent) * _VECTOR,
        )
        try:
            return self._read(answer, len(sent))
        except (JudgeError, ValueError) as error:
            answer = self._connection.without_secrets(answer)
            raise UnusableReplyError(f"{self.name}: {error}; it sent {came(answer)}") from None

    def _read(self, answer: Any, count: int) -> Reply:
        """Return the vectors of an answer; raise ``JudgeError`` or ``ValueError`` for another one."""
        rows = field_of(answer, "data")
        indexed = [(field_of(row, "index"), row) for row in rows] if isinstance(rows, list) else []
        found = {index: row["embedding"] for index, row in indexed if type(index) is int and "embedding" in row}
        if sorted(found) != list(range(count)):
            raise JudgeError(f"asked for the vectors of {count} texts, the server sent {len(found)} of them")
        vectors = as_vectors([_numbers(found[index]) for index in range(count)], count=count, name="it")
        usage = field_of(answer, "usage")
        tokens, billed = (field_of(usage, name) for name in ("prompt_tokens", "cost"))
        return replace(counted_reply(self.name, prompt=tokens, billed=billed), vectors=vectors)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()


def _concede(encoding: str, error: Any, count: int) -> str | None:
    """Return the encoding to ask for after a rejection; raise an error for too many texts."""
    if encoding != "float" and refused_parameter(error, ["encoding_format"]):
        return "float"
    said = said_by(error)
    if count > 1 and (error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or _TOO_MANY.search(said)):
        stated = [number for number in map(int, re.findall(r"\b\d{1,6}\b", said)) if 0 < number < count]
        raise _TooManyTextsError(max(stated, default=count // 2))
    return None


def _numbers(embedding: Any) -> Any:
    """Return the numbers of a vector; raise ``ValueError`` if it has something else."""
    import numpy as np

    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    # Some servers send numbers even if asked for base64.
    numbers = np.asarray(embedding)
    if numbers.dtype.kind not in "fiu":
        raise ValueError("a vector has something else than numbers")
    return numbers
