"""The fake server counts and embeds as the tests that use it rely on."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from tests.fake_openai import FakeOpenAI


def test_it_counts_and_embeds(server: FakeOpenAI) -> None:
    """Repeated and simultaneous requests are counted; both encodings are equal unit vectors, alike for alike texts."""
    texts = ["The lake is deep.", "The lakes are deep.", "Xylophone quiz"]
    messages: Any = [{"role": "user", "content": "Hello"}]

    async def call() -> list[list[list[float]]]:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="sk-fake") as client:
            await asyncio.gather(*(client.chat.completions.create(model="m", messages=messages) for _ in range(4)))
            packed = await client.embeddings.create(model="e", input=texts)
            plain = await client.embeddings.create(model="e", input=texts, encoding_format="float")
        return [[list(item.embedding) for item in made.data] for made in (packed, plain)]

    server.waves = [4, 1, 1]
    packed, plain = asyncio.run(call())
    assert (server.calls, server.answered, server.duplicates, server.in_flight_max) == (6, 6, 3, 4)
    assert (server.in_flight, server.requests[4].body["encoding_format"]) == (0, "base64")
    for one, other in zip(packed, plain, strict=True):
        assert one == pytest.approx(other, abs=1e-6)
        assert sum(value * value for value in other) == pytest.approx(1.0)
    near, far = (sum(a * b for a, b in zip(plain[0], other, strict=True)) for other in plain[1:])
    assert near > far
