"""The desk of a run: what was answered before is not asked again."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pytest_ragmetrics.cache.cassette import Cassette, Saved
from pytest_ragmetrics.cache.entry import CacheError, Entry, Redact, new_entry, redacted_request
from pytest_ragmetrics.cache.flight import Flight, Landed
from pytest_ragmetrics.cache.key import embedding_row, key_of, request_row
from pytest_ragmetrics.cache.nearest import explain_miss
from pytest_ragmetrics.cache.shelves import Mode, Shelves
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cache.used import Counts, Used
from pytest_ragmetrics.cache.vectors import read_vector, vector_text
from pytest_ragmetrics.errors import CacheMissError, JudgeError
from pytest_ragmetrics.judges.judge import Fetch, Kept, Reply, Request, UnreadableReplyError
from pytest_ragmetrics.judges.prices import estimated_tokens

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_ragmetrics.budget import Budget

Row = Mapping[str, Any]
#: Answers the requests of some keys: a judge's reply, or the text of a vector.
Answers = Callable[[Sequence[str]], Awaitable[Mapping[str, Reply | str]]]
Limit: TypeAlias = AbstractAsyncContextManager[object]

# How many more may be looked up, locked and stored than requests are in flight, so that one is always ready.
_READY = 2
_EMBEDDED = 8


class TextEmbedder(Protocol):
    """What the desk must know of an embedder; one with ``dimensions`` to choose has an attribute of that name."""

    @property
    def name(self) -> str:
        """How it is called in results."""

    @property
    def kind(self) -> str:
        """The kind of provider."""

    @property
    def model(self) -> str:
        """The model."""

    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text."""


class CachingDesk:
    """Answers from the cassette or the store, and fetches what is in neither, once however many ask for it.

    ``mode`` is that of :data:`~pytest_ragmetrics.cache.shelves.Mode`. ``limit`` is entered around each fetch, except
    around those of an embedder that has a ``limit`` of its own; it lets ``width`` requests through at once. ``run``
    names the run, the same in all its processes, so that what one of them refreshed is fresh to all. ``redact`` is
    applied to whatever is kept, and what is kept is what is handed out: a redacted answer leads to the same next
    question live as in replay. ``asker`` names the test that is asking. ``warn`` hears once of a store that cannot be
    used. ``budget`` is asked before an embedder is that does not ask it by itself. The store is closed by whoever
    opened it.
    """

    def __init__(
        self,
        *,
        store: Store | None,
        cassette: Cassette | None = None,
        mode: Mode = "auto",
        salt: str = "",
        limit: Limit | None = None,
        width: int = 32,
        redact: Redact | None = None,
        run: str | None = None,
        asker: Callable[[], str | None] = lambda: None,
        warn: Callable[[str], None] = warnings.warn,
        budget: Budget | None = None,
    ) -> None:
        self.mode: Mode = mode
        self.judged = Counts()
        self.embedded = Counts()
        self._salt = salt
        self._shelves = Shelves(store=store, cassette=cassette, mode=mode, run=run or uuid.uuid4().hex, warn=warn)
        locks = None if store is None else store.locks
        # Texts to embed wait for one another in batches, and must not keep a judge from being asked meanwhile.
        self._judging: Flight[Entry] = Flight(locks, width=_READY * width)
        self._embedding: Flight[Entry] = Flight(locks and locks / "vectors", width=_EMBEDDED * width)
        self._limit: Limit = limit or contextlib.nullcontext()
        self._redact = redact
        self._asker = asker
        self._budget = budget
        self._tests: dict[str, str] = {}

    async def obtain(self, request: Request, fetch: Fetch) -> Kept:
        """Return the reply to a request; raise what ``fetch`` raises, ``CacheMissError`` in replay, ``CacheError``."""
        if self.mode == "off":
            async with self._limit:
                return Kept(reply=await self._counted(fetch), cached=False)
        row = request_row(request)
        key = key_of(row, salt=self._salt, plain=True)

        async def answers(_: Sequence[str]) -> dict[str, Reply | str]:
            return {key: await self._counted(fetch)}

        landed = (await self._entries({key: row}, answers, self._judging, self._limit))[key]
        self.judged.cached += not landed.fetched
        return Kept(reply=landed.value.answer(), cached=not landed.fetched)

    async def embed(self, embedder: TextEmbedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of texts, shape (n, d); those that are kept nowhere are fetched in one call.

        Raises as :meth:`obtain`, and ``JudgeError`` when the embedder does not return one finite vector a text.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        # One that puts many calls into a request is limited there.
        limit = contextlib.nullcontext() if hasattr(embedder, "limit") else self._limit
        if self.mode == "off":
            async with limit:
                return await self._vectors(embedder, texts)
        keyed = [(key_of(row, salt=self._salt, plain=True), row) for row in (_row(embedder, text) for text in texts)]
        rows = dict(keyed)

        async def answers(keys: Sequence[str]) -> dict[str, Reply | str]:
            vectors = await self._vectors(embedder, [rows[key]["text"] for key in keys])
            return {key: vector_text(vector) for key, vector in zip(keys, vectors, strict=True)}

        landed = await self._entries(rows, answers, self._embedding, limit)
        self.embedded.cached += sum(not kept.fetched for kept in landed.values())
        return _stacked([read_vector(landed[key].value.reply["vector"]) for key, _ in keyed], embedder.name)

    async def find(self, request: Request) -> tuple[str | None, Reply | None]:
        """Return the key of a request and the reply that is kept, asking nobody and noting nothing.

        There is no key where nothing is kept. Raises ``CacheMissError`` in replay.
        """
        if self.mode == "off":
            return None, None
        row = request_row(request)
        key = key_of(row, salt=self._salt, plain=True)
        entry = (await self._found({key: row})).get(key)
        return key, None if entry is None else entry.answer()

    async def find_vectors(
        self, embedder: TextEmbedder, texts: Sequence[str]
    ) -> tuple[dict[str, str], dict[str, npt.NDArray[np.float32]]]:
        """Return the texts and the vectors that are kept, by key, as :meth:`find` does."""
        rows = {key_of(row, salt=self._salt, plain=True): row for row in (_row(embedder, text) for text in texts)}
        found = {} if self.mode == "off" else await self._found(rows)
        vectors = {key: read_vector(entry.reply["vector"]) for key, entry in found.items()}
        return {key: row["text"] for key, row in rows.items()}, vectors

    async def _found(self, rows: Mapping[str, Row]) -> dict[str, Entry]:
        found = await self._shelves.look(tuple(rows))
        missing = [key for key in rows if key not in found]
        if missing and self.mode == "replay":
            raise CacheMissError(self._miss(rows[missing[0]]))
        return found

    @property
    def used(self) -> Used:
        """What was asked for, for the process that writes the cassette."""
        return Used(tests=self._tests, loose=self._shelves.loose)

    @property
    def used_here(self) -> Used:
        """What was asked for, with all answers that the cassette lacks: for a process that cannot read this store."""
        entries = self._shelves.collect(self._tests, self._shelves.loose)
        recorded = {} if self._shelves.cassette is None else self._shelves.cassette.entries
        fresh = {key: entry for key, entry in entries.items() if recorded.get(key) != entry}
        return Used(tests=self._tests, loose=fresh)

    def save(self, *, complete: bool, keep: bool = False, others: Iterable[Used] = ()) -> Saved | None:
        """Write the cassette, if there is one: what this desk and those of ``others`` used; see ``Cassette.save``.

        Called once a run, by the process that reports, and not when replaying, which has nothing to add.
        """
        if self._shelves.cassette is None or self.mode == "off":
            return None
        used = Used()
        for part in (self.used, *others):
            used.add(part)
        entries = self._shelves.collect(used.tests, used.loose)
        return self._shelves.cassette.save(entries, complete=complete, keep=keep, tests=used.tests)

    async def settle(self) -> None:
        """Wait for what is being paid for on this loop, and call off the rest; before the loop is stopped."""
        await asyncio.gather(self._judging.settle(), self._embedding.settle())

    async def _entries(
        self, rows: Mapping[str, Row], answers: Answers, flight: Flight[Entry], limit: Limit
    ) -> dict[str, Landed[Entry]]:
        if self._shelves.cassette is not None:
            for key in rows:
                self._tests.setdefault(key, self._asker() or "")
        found = await self._shelves.look(tuple(rows))
        landed = {key: Landed(value=entry, fetched=False) for key, entry in found.items()}
        missing = [key for key in rows if key not in found]
        if missing and self.mode == "replay":
            raise CacheMissError(self._miss(rows[missing[0]]))

        async def fetch(keys: Sequence[str], depart: Callable[[], None]) -> dict[str, Entry]:
            async with limit:
                depart()
                made = await answers(keys)
            entries = [new_entry(key, rows[key], made[key], salt=self._salt, redact=self._redact) for key in keys]
            await self._shelves.keep(entries)
            return {entry.key: entry for entry in entries}

        return landed | (await flight.share(missing, self._shelves.look, fetch) if missing else {})

    async def _counted(self, fetch: Fetch) -> Reply:
        try:
            reply = await fetch()
        except UnreadableReplyError as error:
            self.judged.calls += error.spent.calls
            raise
        self.judged.calls += reply.calls
        return reply

    async def _vectors(self, embedder: TextEmbedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        import numpy as np

        vectors = np.asarray(await self._embedded(embedder, texts), dtype=np.float32)
        self.embedded.calls += 1
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1] or not np.isfinite(vectors).all():  # noqa: PLR2004 - rows and columns
            msg = f"{embedder.name}: not one finite vector for each of {len(texts)} texts, but shape {vectors.shape}"
            raise JudgeError(msg)
        return vectors

    async def _embedded(self, embedder: TextEmbedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        # One that puts many calls into a request pays for it there.
        if self._budget is None or hasattr(embedder, "budget") or not getattr(embedder, "is_paid", True):
            return await embedder.aembed(texts)
        with self._budget.request(embedder.name, kind=embedder.kind, model=embedder.model) as receipt:
            vectors = await embedder.aembed(texts)
            receipt.took(estimated_tokens(*texts))
        return vectors

    def _miss(self, row: Row) -> str:
        seen = row if self._redact is None else redacted_request(row, self._redact)
        return explain_miss(seen, self._shelves.nearest(seen))


def _row(embedder: TextEmbedder, text: str) -> Row:
    dimensions = getattr(embedder, "dimensions", None)
    return embedding_row(kind=embedder.kind, model=embedder.model, text=text, dimensions=dimensions)


def _stacked(vectors: Sequence[npt.NDArray[np.float32]], name: str) -> npt.NDArray[np.float32]:
    import numpy as np

    lengths = sorted({len(vector) for vector in vectors})
    if len(lengths) > 1:
        msg = f"{name}: its vectors have {lengths[0]} to {lengths[-1]} numbers; has the model behind it been replaced?"
        raise CacheError(msg)
    return np.stack(vectors)
