"""The fake server counts and embeds as the tests that use it rely on."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from tests.fake_openai import FakeOpenAI


def embed(server: FakeOpenAI, texts: list[str], **options: Any) -> list[list[float]]:
    """Return the vectors of texts as the official SDK reads them."""

    async def call() -> list[list[float]]:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="sk-fake") as client:
            made = await client.embeddings.create(model="e", input=texts, **options)
        return [list(item.embedding) for item in made.data]

    return asyncio.run(call())


def test_both_encodings_hold_the_same_vectors(server: FakeOpenAI) -> None:
    """Base64, the SDK's default, and numbers give equal unit vectors, alike for texts that are alike."""
    texts = ["The lake is deep.", "The lakes are deep.", "Xylophone quiz"]
    vectors = embed(server, texts)
    for packed, plain in zip(vectors, embed(server, texts, encoding_format="float"), strict=True):
        assert packed == pytest.approx(plain, abs=1e-6)
        assert sum(value * value for value in plain) == pytest.approx(1.0)
    near, far = (sum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in vectors[1:])
    assert near > far
    assert server.requests[0].body["encoding_format"] == "base64"


def test_it_counts(server: FakeOpenAI) -> None:
    """Requests, repetitions among the successful ones, and how many were in flight at most."""

    async def call() -> None:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="sk-fake") as client:
            messages: Any = [{"role": "user", "content": "Hello"}]
            await asyncio.gather(*(client.chat.completions.create(model="m", messages=messages) for _ in range(4)))

    server.latency = 0.1
    asyncio.run(call())
    assert (server.calls, server.answered, server.duplicates, server.in_flight_max) == (4, 4, 3, 4)
    assert server.in_flight == 0
