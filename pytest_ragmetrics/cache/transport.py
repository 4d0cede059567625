"""The cache as a link of the transports: what was answered before is not asked again.

Replies come from the cassette or the store, else from the link below, once for all that ask at the same time.
"""

from __future__ import annotations

import asyncio
import uuid
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pytest_ragmetrics.cache.cassette import Cassette, Saved
from pytest_ragmetrics.cache.entry import (
    CacheEntry,
    CacheUnavailableError,
    Redact,
    embedding_row,
    key_of,
    new_entry,
    read_vector,
    redacted_entry,
    redacted_request,
    request_row,
    vector_text,
)
from pytest_ragmetrics.cache.nearest import Neighbours
from pytest_ragmetrics.cache.single_flight import SingleFlight
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.core.errors import CacheError, CacheMissError, JudgeError, UnscoredError
from pytest_ragmetrics.core.loop import in_child
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.schema import InvalidAnswer
from pytest_ragmetrics.judges.transports.values import (
    AnyRequest,
    EmbeddingRequest,
    Reply,
    Request,
    Transport,
    UnreadableReplyError,
    fitting,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_ragmetrics.cache.remote import RemoteCache


@dataclass(kw_only=True, slots=True)
class Counts:
    """Requests made, and answers found instead of making one."""

    calls: int = 0
    cached: int = 0


@dataclass(kw_only=True, slots=True)
class Used:
    """The keys that were asked for, with the test that asked first, and the entries that are in no store.

    ``refused`` are the keys whose kept entries are of another request. Crosses processes as JSON builtins.
    """

    tests: dict[str, str] = field(default_factory=dict)
    loose: dict[str, CacheEntry] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def add(self, other: Used) -> None:
        """Take over what another process used."""
        for key, test in other.tests.items():
            self.tests.setdefault(key, test)
        self.loose.update(other.loose)
        self.refused.update(other.refused)

    def to_row(self) -> dict[str, Any]:
        """Return it as JSON builtins."""
        loose = [entry.to_row() for entry in self.loose.values()]
        return {"tests": dict(self.tests), "loose": loose, "refused": sorted(self.refused)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Used:
        """Read what :meth:`to_row` made."""
        loose = {entry.key: entry for entry in map(CacheEntry.from_row, row["loose"])}
        return cls(tests=dict(row["tests"]), loose=loose, refused=set(row["refused"]))


#: ``auto`` reads, calls on a miss and writes; ``replay`` never calls; ``refresh`` calls and overwrites, once a run;
#: ``off`` neither reads nor writes.
Mode = Literal["auto", "replay", "refresh", "off"]


class _Writes:
    """Writes entries to a store for the callers of one loop: together what comes while a write is under way.

    Handing one to the thread of the store and waiting for it takes as long as writing it.
    """

    def __init__(self, store: Store, run: str) -> None:
        self._store = store
        self._run = run
        self._waiting: list[CacheEntry] = []
        self._next: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def write(self, entries: Sequence[CacheEntry]) -> None:
        """Return when the entries are stored; raise what the write raises that they were part of."""
        self._waiting += entries
        if self._next is None:
            self._next = asyncio.ensure_future(self._write())
            # Its error is retrieved also where nobody waits any more: asyncio logs others.
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        # A caller that is cancelled must not cancel what others wait for.
        await asyncio.shield(self._next)

    async def _write(self) -> None:
        async with self._turn:
            entries, self._waiting, self._next = self._waiting, [], None
            await self._store.aput_many(entries, run=self._run)


class CacheTiers:
    """The places that hold entries, in one mode of one run.

    A store that cannot be used is given up after one warning, and entries are kept in memory from then on; one that
    can be read is read on. In replay it is an error instead: :class:`CacheUnavailableError`.
    """

    def __init__(
        self,
        *,
        store: Store | None,
        cassette: Cassette | None,
        mode: Mode,
        run: str,
        warn: Callable[[str], None],
        redact: Redact | None = None,
    ) -> None:
        self.cassette = cassette
        #: What could be put into no store.
        self.loose: dict[str, CacheEntry] = {}
        self._store = store
        self._is_writable = store is not None
        self._mode = mode
        self._run = run
        self._warn = warn
        self._redact = redact
        #: Keys under which another request is kept than the one asked.
        self.refused: set[str] = set()
        self._neighbours: dict[str, Neighbours] = {}
        self._writes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Writes] = WeakKeyDictionary()

    def look(
        self, keys: Sequence[str], asked: Mapping[str, Row] = MappingProxyType({}), *, fresh: bool = False
    ) -> dict[str, CacheEntry]:
        """Return the entries of those keys that have one; ``fresh`` ones, as when refreshing, are those this run made.

        ``asked`` are the requests of keys, where they are known: what was kept of another one is passed over, which is
        said once, and is an error in replay.
        """
        refreshing = fresh or self._mode == "refresh"
        found: dict[str, CacheEntry] = {}
        if self.cassette is not None and not refreshing:
            kept = self.cassette.pick([key for key in keys if key not in self.refused], asked)
            found = self._own(kept, asked, self.cassette.place)
        found |= {key: self.loose[key] for key in keys if key in self.loose}
        rest = [key for key in keys if key not in found]
        if rest and self._store is not None:
            place = str(self._store.database)
            try:
                kept = self._store.get_many(rest, run=self._run if refreshing else None)
                found |= self._own(kept, asked, lambda _: place)
            except CacheUnavailableError as error:
                if self._mode == "replay":
                    raise
                self._store = None
                self._stop_writing(error)
        return found

    def _own(
        self, kept: Mapping[str, CacheEntry], asked: Mapping[str, Row], place: Callable[[str], str]
    ) -> dict[str, CacheEntry]:
        """Return the entries that are of the requests asked."""
        others = {key for key, entry in kept.items() if key in asked and not entry.is_of(asked[key], self._redact)}
        for key in sorted(others):
            msg = f"{place(key)}: entry {key[:8]} is of another request than its key says"
            if self._mode == "replay":
                raise CacheError(f"{msg}; without --rag-cache=replay it is asked for anew")
            if not self.refused:
                self.say(f"{msg}; it is asked for anew, as all such entries are")
            self.refused.add(key)
        return {key: entry for key, entry in kept.items() if key not in others}

    async def keep(self, entries: Sequence[CacheEntry]) -> None:
        """Keep entries, overwriting those of their keys."""
        store = self._store
        if store is not None and self._is_writable:
            loop = asyncio.get_running_loop()
            writes = self._writes.get(loop) or self._writes.setdefault(loop, _Writes(store, self._run))
            try:
                await writes.write(entries)
            except CacheUnavailableError as error:
                self._stop_writing(error)
            else:
                return
        self.loose.update({entry.key: entry for entry in entries})

    def collect(self, keys: Iterable[str]) -> dict[str, CacheEntry]:
        """Return the entries behind keys that a run used; those that got no answer are left out."""
        wanted = tuple(keys)
        # A request that could not be refreshed keeps the reply recorded before.
        return ({} if self.cassette is None else self.cassette.pick(wanted)) | self.look(wanted)

    def explain_miss(self, request: Mapping[str, Any]) -> str:
        """Compare a request with the nearest one of its task in the cassette, or in the store if there is none."""
        task = request["task"]
        if task not in self._neighbours:
            recorded = () if self.cassette is None else self.cassette.entries.values()
            entries = [entry for entry in recorded if entry.task == task]
            if not entries and self._store is not None:
                entries = [entry for entry in self._store if entry.task == task]
            self._neighbours[task] = Neighbours(entries)
        return self._neighbours[task].explain_miss(request)

    def _stop_writing(self, error: CacheUnavailableError) -> None:
        if self._is_writable:
            self._is_writable = False
            is_read = self._store is not None and self._store.exists()
            kept = "and adds nothing to the local cache" if is_read else "without a local cache"
            self.say(f"{error}; this run goes on {kept}")

    def say(self, text: str) -> None:
        """Warn; where warnings are errors, no test fails and no answer is lost for it."""
        with suppress(Warning):
            self._warn(text)


E = TypeVar("E", bound=Exception)
Row = Mapping[str, Any]
#: Asks for the replies of some keys, and calls the function once that costs something.
Fetch = Callable[[Sequence[str], Callable[[], None]], Awaitable[Mapping[str, Reply | str]]]

# How many more may be looked up, locked and stored than requests are in flight, so that one is always ready.
_READY = 4
_UNBOUNDED = 10**9
_EMBEDDED = 8


class CachedTransport:
    """Answers from the cassette or the store, and sends on what is in neither, once however many ask for it.

    ``mode`` is that of :data:`~pytest_ragmetrics.cache.transport.Mode`. ``width`` is how many requests the links below
    let through at once, ``None`` where they hold them back until there are no more: then no lock is held meanwhile,
    for which other runs would wait. ``run`` names the run, the same in all its processes, so that what one of them
    refreshed is fresh to all. ``redact`` is applied to what is stored, and what is stored is what is returned: a
    redacted answer leads to the same next question live as in replay. ``asker`` names the test that asks. ``warn`` is
    called once for a store that cannot be used. ``remote`` is the tier behind the store, which is shared with other
    machines. Neither is closed here. ``witness`` sees the replies of judges.
    """

    def __init__(
        self,
        following: Transport,
        *,
        store: Store | None = None,
        cassette: Cassette | None = None,
        mode: Mode = "auto",
        salt: str = "",
        width: int | None = 32,
        redact: Redact | None = None,
        run: str | None = None,
        asker: Callable[[], str | None] = lambda: None,
        warn: Callable[[str], None] = warnings.warn,
        remote: RemoteCache | None = None,
        witness: Callable[[str, Request, Reply], None] | None = None,
    ) -> None:
        #: Called for each reply of a judge with the key of its request.
        self.witness = witness
        self.mode: Mode = mode
        self.judged = Counts()
        self.embedded = Counts()
        self._following = following
        self._salt = salt
        run = run or uuid.uuid4().hex
        self._tiers = CacheTiers(store=store, cassette=cassette, mode=mode, run=run, warn=warn, redact=redact)
        locks = None if store is None or width is None else store.locks
        # What a batch answered is of an earlier run.
        self._asks_fresh = width is not None and mode != "replay"
        width = _UNBOUNDED if width is None else width
        # Texts to embed wait for one another in batches, and must not keep a judge from being asked meanwhile.
        self._judging: SingleFlight[CacheEntry] = SingleFlight(locks, width=_READY * width)
        self._embedding: SingleFlight[CacheEntry] = SingleFlight(locks and locks / "vectors", width=_EMBEDDED * width)
        self._redact = redact
        self._asker = asker
        self._remote = remote
        self._tests: dict[str, str] = {}
        self._noted_hosts = False
        # The threads of its libraries are not there.
        in_child(self, _remote=lambda: None)

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply; raise what the links below raise, ``CacheMissError`` in replay, ``CacheError``.

        Of texts to embed, those whose vectors are stored nowhere are sent on together.
        """
        if not self._keeps(request):
            return await self._counted(request)
        return await (self._embed(request) if isinstance(request, EmbeddingRequest) else self._judge(request))

    async def again(self, request: Request) -> Reply:
        """Return a reply that is asked for whatever is stored, which stays as it is; raise as the links below."""
        return await self._counted(replace(request, answers={}))

    def find(self, request: Request) -> tuple[str | None, Reply | None]:
        """Return the key of a request and the reply that is stored, making no request and noting nothing.

        There is no key where nothing is stored. Raises ``CacheMissError`` in replay.
        """
        if not self._keeps(request):
            return None, None
        rows = self._rows(request)
        ((key, entry),) = {**dict.fromkeys(rows), **self._found(rows, request)}.items()
        return key, None if entry is None else entry.answer(cached=True)

    def find_vectors(self, request: EmbeddingRequest) -> tuple[dict[str, str], dict[str, npt.NDArray[np.float32]]]:
        """Return the texts and the vectors that are stored, by key, as :meth:`find` does."""
        rows = self._rows(request)
        found = {} if self.mode == "off" else self._found(rows, request)
        vectors = {key: read_vector(entry.reply["vector"]) for key, entry in found.items()}
        return {key: row["text"] for key, row in rows.items()}, vectors

    def holds(self, keys: Sequence[str]) -> bool:
        """Tell whether there is an entry for each of some keys."""
        return len(self._tiers.look(keys)) == len(keys)

    @property
    def used(self) -> Used:
        """What was asked for, for the process that writes the cassette."""
        return Used(tests=self._tests, loose=self._tiers.loose, refused=self._tiers.refused)

    @property
    def used_here(self) -> Used:
        """What was asked for, with all answers that the cassette lacks: for a process that cannot read this store."""
        entries = self._tiers.collect(self._tests)
        recorded = {} if self._tiers.cassette is None else self._tiers.cassette.pick(entries)
        fresh = {key: entry for key, entry in entries.items() if recorded.get(key) != entry}
        return Used(tests=self._tests, loose=fresh, refused=self._tiers.refused)

    def edited(self, others: Iterable[Used] = ()) -> list[str]:
        """Return the keys of edited replies in the cassette that this process and ``others`` used."""
        cassette = self._tiers.cassette
        if cassette is None:
            return []
        keys = {key for used in (self.used, *others) for key in used.tests.keys() - used.refused}
        return sorted(key for key, entry in cassette.pick(keys).items() if entry.is_edited)

    def save(self, *, complete: bool, keep: bool = False, others: Iterable[Used] = ()) -> Saved | None:
        """Write the cassette, if there is one: what this process and ``others`` used; see ``Cassette.save``.

        Called once a run, by the process that reports; replaying has nothing to add.
        """
        if self._tiers.cassette is None or self.mode in ("off", "replay"):
            return None
        used = self.used
        for part in others:
            used.add(part)
        return self._tiers.cassette.save(
            self._tiers.collect(used.tests), complete=complete, keep=keep, tests=used.tests
        )

    async def settle(self) -> None:
        """Wait for what is being paid for on this loop, and cancel the rest; before the loop is stopped."""
        await asyncio.gather(self._judging.settle(), self._embedding.settle())

    @property
    def _is_fresh(self) -> bool:
        replies = context.current().replies
        return replies is not None and replies.fresh and self._asks_fresh

    def _keeps(self, request: AnyRequest) -> bool:
        return self.mode != "off" and (request.provider is None or request.provider.is_kept)

    async def _judge(self, request: Request) -> Reply:
        ((key, row),) = self._rows(request).items()
        pays = False

        async def fetch(_: Sequence[str], started: Callable[[], None]) -> dict[str, Reply | str]:
            nonlocal pays
            pays = True
            return {key: await self._counted(replace(request, started=started))}

        try:
            entries, fetched = await self._entries({key: row}, fetch, request)
        except (UnscoredError, JudgeError) as error:
            if pays:
                raise
            raise _unpaid(error) from error.__cause__
        self.judged.cached += key not in fetched
        reply = entries[key].answer(cached=key not in fetched)
        if (replies := context.current().replies) is not None:
            replies.made.append(entries[key].created)
        if self.witness is not None:
            self.witness(key, request, reply)
        return reply

    async def _embed(self, request: EmbeddingRequest) -> Reply:
        rows = self._rows(request)
        spent = Reply()

        async def fetch(keys: Sequence[str], started: Callable[[], None]) -> dict[str, Reply | str]:
            nonlocal spent
            texts = tuple(rows[key]["text"] for key in keys)
            spent = await self._counted(replace(request, texts=texts, started=started))
            vectors = () if spent.vectors is None else spent.vectors
            return {key: vector_text(vector) for key, vector in zip(keys, vectors, strict=True)}

        entries, fetched = await self._entries(rows, fetch, request)
        self.embedded.cached += len(entries) - len(fetched)
        of_text = {rows[key]["text"]: read_vector(entry.reply["vector"]) for key, entry in entries.items()}
        return replace(spent, vectors=_stacked([of_text[text] for text in request.texts], request))

    def _note_hosts(self, entries: Iterable[CacheEntry], request: AnyRequest) -> None:
        """Say once that answers of another server are used than the one that this run asks."""
        if self._noted_hosts or self.mode == "replay":
            return
        here = _host(request)
        other = next((entry.host for entry in entries if entry.host not in ("", here)), None)
        if other is not None:
            self._noted_hosts = True
            asked = here or "the provider itself"
            to_do = "ask anew with --rag-cache=refresh, or keep them apart with rag_cache_salt"
            self._tiers.say(f"stored answers of {other} are used, and this run asks {asked}: {to_do}")

    def _rows(self, request: AnyRequest) -> dict[str, Row]:
        """Return what determines the replies to a request, by key."""
        if isinstance(request, EmbeddingRequest):
            row_of = partial(embedding_row, kind=request.kind, model=request.model, dimensions=request.dimensions)
            rows = [row_of(text=text) for text in dict.fromkeys(request.texts)]
        else:
            rows = [request_row(request)]
        return {key_of(row, salt=self._salt, plain=True): row for row in rows}

    def _found(self, rows: Mapping[str, Row], request: AnyRequest) -> dict[str, CacheEntry]:
        found = self._tiers.look(tuple(rows), rows, fresh=self._is_fresh)
        self._refuse_in_replay(rows, found)
        self._note_hosts(found.values(), request)
        return found

    def _refuse_in_replay(self, rows: Mapping[str, Row], found: Mapping[str, CacheEntry]) -> None:
        missing = next((row for key, row in rows.items() if key not in found), None)
        if missing is not None and self.mode == "replay":
            seen = missing if self._redact is None else redacted_request(missing, self._redact)
            raise CacheMissError(self._tiers.explain_miss(seen))

    async def _entries(
        self, rows: Mapping[str, Row], fetch: Fetch, request: AnyRequest
    ) -> tuple[dict[str, CacheEntry], frozenset[str]]:
        """Return the entries of all keys, and which of them were fetched."""
        if self._tiers.cassette is not None:
            for key in rows:
                self._tests.setdefault(key, self._asker() or "")
        is_fresh, redact = self._is_fresh, self._redact
        look = partial(self._tiers.look, asked=rows, fresh=is_fresh)
        found = look(tuple(rows))
        missing = [key for key in rows if key not in found]
        if missing and self._remote is not None and not (is_fresh or self.mode == "refresh"):
            arrived = (await self._remote.look(missing, partial(self._problem, rows, request))).values()
            if kept := [entry if redact is None else redacted_entry(entry, redact) for entry in arrived]:
                await self._tiers.keep(kept)
            found |= {entry.key: entry for entry in kept}
            missing = [key for key in missing if key not in found]
        self._refuse_in_replay(rows, found)
        host = _host(request)

        async def pay(keys: Sequence[str], started: Callable[[], None]) -> Mapping[str, CacheEntry]:
            replies = await fetch(keys, started)
            made = [new_entry(key, rows[key], replies[key], salt=self._salt, redact=redact, host=host) for key in keys]
            await self._tiers.keep(made)
            if self._remote is not None:
                self._remote.write(made, replace=is_fresh or self.mode == "refresh")
            return {entry.key: entry for entry in made}

        fetched: frozenset[str] = frozenset()
        if missing:
            flight = self._embedding if isinstance(request, EmbeddingRequest) else self._judging
            paid, fetched = await flight.share(missing, look, pay)
            found |= paid
        self._note_hosts(found.values(), request)
        return found, fetched

    def _problem(self, rows: Mapping[str, Row], request: AnyRequest, entry: CacheEntry) -> str | None:
        """Say why the entry of another machine is no answer to a request."""
        row = rows[entry.key]
        # Equal requests have equal keys: that of the entry need not be computed.
        is_alike = entry.request == row or (
            entry.redacted and self._redact is not None and entry.request == redacted_request(row, self._redact)
        )
        if not is_alike or entry.salt != self._salt:
            return "it answers another request"
        try:
            if isinstance(request, EmbeddingRequest):
                read_vector(entry.reply["vector"])
            else:
                fitting(request, entry.answer())
        except (CacheError, InvalidAnswer) as error:
            return str(error)
        return None

    async def _counted(self, request: AnyRequest) -> Reply:
        counts = self.embedded if isinstance(request, EmbeddingRequest) else self.judged
        try:
            reply = await self._following.send(request)
        except UnreadableReplyError as error:
            counts.calls += error.reply.calls
            raise
        counts.calls += reply.calls
        return reply


def _unpaid(error: E) -> E:
    """Return the error of a request for another that waited for it: what it took is counted once."""
    other: E = type(error).__new__(type(error), *error.args)
    other.__dict__.update(vars(error), usage=None)
    return other


def _host(request: AnyRequest) -> str:
    """Return the host that a request goes to, empty for the provider's own; addresses here have no account."""
    return "" if request.url is None else urlsplit(request.url).netloc.lower()


def _stacked(vectors: Sequence[npt.NDArray[np.float32]], request: EmbeddingRequest) -> npt.NDArray[np.float32]:
    import numpy as np

    lengths = sorted({len(vector) for vector in vectors})
    if len(lengths) > 1:
        name = request.model if request.provider is None else request.provider.name
        msg = f"{name}: its vectors have {lengths[0]} to {lengths[-1]} numbers; has the model behind it been replaced?"
        raise CacheError(msg)
    return np.stack(vectors)
