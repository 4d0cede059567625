"""The cache: each question is paid for once, in every mode, and what was paid for is never lost."""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import re
import sqlite3
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from unittest import mock

import pytest

from pytest_ragmetrics.cache import store as store_module
from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import CacheEntry, CacheUnavailableError, Redact, key_of, new_entry, request_row
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cache.transport import CachedTransport, CacheTiers, Mode, Used
from pytest_ragmetrics.core.errors import CacheError, CacheMissError, JudgeError
from pytest_ragmetrics.judges.embedders.embedder import Embedder
from pytest_ragmetrics.judges.transports import values
from pytest_ragmetrics.judges.transports.limiter import DIRECT, Limiter
from pytest_ragmetrics.judges.transports.values import ChatMessage, Reply, Request
from tests.read_only import read_only

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")


def request(text: str = "Do ponds freeze?", **change: Any) -> Request:
    messages = (ChatMessage(role="user", content=text),)
    named = {"task": "list_claims", "kind": "openai", "model": "judge-1", "messages": messages}
    settings: dict[str, Any] = {"schema": {"type": "object"}, "parameters": {"temperature": 0}}
    return Request(**{**named, **settings, **change})


def kept(asked: Request, text: str = "{}", redact: Redact | None = None) -> CacheEntry:
    row = request_row(asked)
    return new_entry(key_of(row), row, Reply(text=text), salt="", redact=redact)


#: Of a provider that is away, and of one that answered before.
DOWN, OLD, NEW = JudgeError("down"), '{"claims": []}', '{"claims": ["new"]}'


class Provider:
    """Answers everything, with its question if it has no text, and notes what it is asked."""

    name = "judge-1"
    is_paid = is_kept = True

    def __init__(self, text: str | None = OLD, *, delay: float = 0.0, error: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.answering = asyncio.Event()
        self.text, self.delay, self.error = text, delay, error

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request.texts[0])
        await asyncio.sleep(self.delay)
        if self.error is not None:
            raise self.error
        self.answering.set()
        text = json.dumps({"said": request.texts[0]}) if self.text is None else self.text
        return Reply(text=text, prompt_tokens=100, completion_tokens=7, calls=2)


class Lengths(Embedder):
    """Measures a text, and remembers what it was asked."""

    name, kind, model = "openai:vectors-1", "openai", "vectors-1"

    def __init__(self, width: int = 3, dimensions: int | None = None) -> None:
        self.asked: list[list[str]] = []
        self.width, self.dimensions = width, dimensions

    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        import numpy as np

        self.asked.append(list(texts))
        return np.array([[len(text), 0.1, *[1.0] * (self.width - 2)] for text in texts], dtype=np.float32)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "cache") as opened:
        yield opened


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Store]:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "cache.db").write_bytes(b"no database" * 1000)
    # Neither can it be mended.
    (folder / "locks").write_text("")
    with Store(folder) as opened:
        yield opened


def run(awaitable: Awaitable[T]) -> T:
    return asyncio.run(asyncio.wait_for(awaitable, 60))


def ask(cache: values.Transport, provider: Provider, asked: Request | None = None) -> Reply:
    return run(cache.send(replace(asked or request(), provider=provider)))


def embed(cache: values.Transport, embedder: Embedder, texts: Sequence[str]) -> Any:
    return run(cache.send(embedder.request(texts))).vectors


def cached(store: Store | None, **options: Any) -> CachedTransport:
    return CachedTransport(options.pop("send", DIRECT), store=store, **options)


def recorded(file: Path, *texts: str, store: Store | None = None, provider: Provider | None = None) -> Cassette:
    """Return a cassette with the answers to requests, by default to one."""
    recording = cached(store, cassette=Cassette(file))
    for text in texts or ("Do ponds freeze?",):
        ask(recording, provider or Provider(), request(text))
    recording.save(complete=True)
    return Cassette(file)


def test_the_second_time_is_free(store: Store) -> None:
    provider = Provider()
    cache = cached(store)
    first = ask(cache, provider)
    assert (first.cached, first.prompt_tokens, first.calls) == (False, 100, 2)
    assert [ask(each, provider) for each in (cache, cached(store))] == [replace(first, cached=True)] * 2
    assert (len(provider.asked), cache.judged.calls, cache.judged.cached) == (1, 2, 1)
    assert (cache.save(complete=True), cache.used.tests) == (None, {})
    # Independent samples stay independent, and salted caches apart.
    assert not ask(cached(store), provider, request(vote=1)).cached
    assert [ask(cached(store, salt="mine"), provider).cached for _ in range(2)] == [False, True]
    assert store.verify() == []


def test_an_error_is_not_kept(store: Store) -> None:
    cache = cached(store)
    unreadable = values.UnreadableReplyError("nonsense", reply=Reply(text="", calls=2))
    for error in (DOWN, unreadable):
        with pytest.raises(type(error), match=str(error)):
            ask(cache, Provider(error=error))
    # A reply that cannot be used was paid for.
    assert (cache.judged.calls, store.count()) == (2, 0)
    assert not ask(cache, Provider()).cached


def test_off_keeps_nothing_and_finds_nothing(store: Store) -> None:
    cache, embedder = cached(store, mode="off"), Lengths()
    for _ in range(2):
        assert not ask(cache, Provider()).cached
        embed(cache, embedder, ["a", "b"])
    assert (cache.judged.calls, cache.embedded.calls, len(embedder.asked)) == (4, 2, 2)
    assert not store.exists()


def test_refresh_pays_once_a_run(store: Store) -> None:
    provider = Provider()
    ask(cached(store), provider)
    with pytest.raises(JudgeError):
        ask(cached(store, mode="refresh"), Provider(error=DOWN))
    assert ask(cached(store), provider).cached
    provider.text = NEW
    first, second = (cached(store, mode="refresh", run="today") for _ in range(2))
    kept = [ask(cache, provider) for cache in (first, first, second)]
    assert [(each.cached, each.text) for each in kept] == [(False, NEW), (True, NEW), (True, NEW)]
    assert ask(cached(store), provider).text == NEW
    assert not ask(cached(store, mode="refresh", run="tomorrow"), provider).cached
    assert len(provider.asked) == 3


def test_replay_never_calls(store: Store, tmp_path: Path) -> None:
    provider = Provider()
    cassette = recorded(tmp_path / "c.jsonl", store=store, provider=provider)
    with Store(tmp_path / "none") as empty:
        for cache in (cached(store, mode="replay"), cached(empty, cassette=cassette, mode="replay")):
            assert ask(cache, provider).cached
            with pytest.raises(CacheMissError, match="--rag-cache=auto") as raised:
                ask(cache, provider, request("Do lakes freeze?"))
            assert {"-Do ponds freeze?", "+Do lakes freeze?"} <= set(str(raised.value).splitlines())
            with pytest.raises(CacheMissError, match="no request of verify_claims is recorded"):
                ask(cache, provider, request(task="verify_claims"))
    assert (len(provider.asked), (tmp_path / "none").exists()) == (1, False)


def test_a_store_that_cannot_be_used_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    warned: list[str] = []
    provider = Provider()
    with Store(tmp_path / "file" / "cache") as store:
        cache = cached(store, warn=warned.append)
        assert [ask(cache, provider).cached for _ in range(3)] == [False, True, True]
        ask(cache, provider, request("Else?"))
    (warning,) = warned
    assert len(provider.asked) == 2
    assert re.search(re.escape(str(tmp_path / "file" / "cache")) + ".*without a local cache", warning)


@pytest.mark.skipif(sys.platform == "win32", reason="needs modes")
def test_a_store_that_is_read_only_is_read_on() -> None:
    provider = Provider()
    warned: list[str] = []
    with read_only(kept(request())) as folder, Store(folder) as store:
        assert ask(cached(store, mode="replay"), provider).cached
        cache = cached(store, warn=warned.append)
        new = [request("Else?"), request("Else?"), request("More?"), request()]
        assert [ask(cache, provider, asked).cached for asked in new] == [False, True, False, True]
    (warning,) = warned
    assert len(provider.asked) == 2
    assert warning == f"{folder}: the cache is read-only; this run goes on and adds nothing to the local cache"


def test_in_replay_a_broken_store_is_an_error(broken: Store, tmp_path: Path) -> None:
    """A replay must not pretend that nothing was recorded, but reads the cassette; otherwise it is a warning."""
    with pytest.warns(UserWarning, match="without a local cache"):
        ask(cached(broken), Provider())
    with pytest.raises(CacheUnavailableError, match="File exists"):
        ask(cached(broken, mode="replay"), Provider())
    cassette = recorded(tmp_path / "c.jsonl")
    assert ask(cached(broken, cassette=cassette, mode="replay"), Provider()).cached


@pytest.mark.filterwarnings("error")
def test_where_warnings_are_errors_no_answer_is_lost(broken: Store, tmp_path: Path) -> None:
    """With ``-W error`` a warning raises where it is made, behind an answer that is paid for."""
    provider, damaged = Provider(), tmp_path / "damaged"
    ask(cached(broken), provider)
    damaged.mkdir()
    (damaged / "cache.db").write_text("no database")
    for _ in range(2):
        with Store(damaged) as store:
            ask(cached(store), provider)
    assert (len(provider.asked), (damaged / "cache.db.broken-1").exists()) == (2, True)


def test_a_store_that_breaks_while_writing_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    warned: list[str] = []
    provider = Provider()
    cache = cached(store, send=Limiter(40), warn=warned.append)
    ask(cache, provider, request("earlier"))
    full = mock.Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(store_module, "_put", lambda *_: full)
    many(cache, provider)
    assert all(ask(cache, provider, asked).cached for asked in (request("earlier"), request("1?"), request("39?")))
    assert (len(provider.asked), len(cache.used.loose), len(warned)) == (41, 40, 1)
    gc.collect(1)
    assert not caplog.records


def many(cache: CachedTransport, provider: Provider) -> list[Reply | BaseException]:
    """Ask forty questions at the same time, and give up on the first."""

    async def all_but_one() -> list[Reply | BaseException]:
        asked = [replace(request(f"{number}?"), provider=provider) for number in range(40)]
        tasks = [asyncio.ensure_future(cache.send(each)) for each in asked]
        provider.answering.clear()
        await provider.answering.wait()
        tasks[0].cancel()
        replies = await asyncio.gather(*tasks, return_exceptions=True)
        await cache.settle()
        return replies

    return run(all_but_one())


def test_replies_that_come_together_are_stored_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives up takes nothing from the others, and what was paid for is stored."""
    provider, writes = Provider(), mock.Mock(wraps=store.aput_many)
    monkeypatch.setattr(store, "aput_many", writes)
    replies = many(cached(store, send=Limiter(40)), provider)
    assert [type(reply) for reply in replies] == [asyncio.CancelledError] + [Reply] * 39
    sizes = [len(call.args[0]) for call in writes.call_args_list]
    assert (sum(sizes), store.count(), len(sizes) <= 4) == (40, 40, True)
    assert all(ask(cached(store), provider, request(f"{number}?")).cached for number in range(40))


def test_a_write_takes_what_came_during_the_one_before(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one at a time; a caller that gives up cancels neither it nor the others, and what it brought is kept."""
    entries, put = [kept(request(f"{number}?")) for number in range(5)], store.aput_many
    sizes: list[int] = []

    async def keep() -> list[BaseException | None]:
        writing, let = asyncio.Event(), asyncio.Event()

        async def held(entries: Sequence[CacheEntry], *, run: str) -> None:
            sizes.append(len(entries))
            writing.set()
            await let.wait()
            await put(entries, run=run)

        monkeypatch.setattr(store, "aput_many", held)
        tiers = CacheTiers(store=store, cassette=None, mode="auto", run="r", warn=warnings.warn)
        first = asyncio.ensure_future(tiers.keep(entries[:1]))
        await writing.wait()
        others = [asyncio.ensure_future(tiers.keep([entry])) for entry in entries[1:4]]
        await asyncio.sleep(0.01)
        assert sizes == [1]
        others[0].cancel()
        await asyncio.sleep(0)
        let.set()
        ends = await asyncio.gather(first, *others, return_exceptions=True)
        await tiers.keep(entries[4:])
        return ends

    assert [type(end) for end in run(keep())] == [type(None), asyncio.CancelledError, type(None), type(None)]
    assert (sizes, store.count()) == ([1, 3, 1], 5)


@pytest.mark.parametrize("mode", ["auto", "replay"])
def test_a_tampered_entry_is_an_error_in_every_mode(store: Store, mode: Mode) -> None:
    ask(cached(store), Provider())
    with closing(sqlite3.connect(store.database)) as connection, connection:
        connection.execute("UPDATE Cache SET mode = 4, value = x'80'")
    with pytest.raises(CacheError, match="tampered"):
        ask(cached(store, mode=mode), Provider())


def test_the_cassette_comes_before_the_store(store: Store, tmp_path: Path) -> None:
    cassette = recorded(tmp_path / "c.jsonl", provider=Provider(NEW))
    ask(cached(store), Provider())
    assert ask(cached(store, cassette=cassette), Provider()).text == NEW


def test_a_run_records_what_it_used(store: Store, tmp_path: Path) -> None:
    for text in ("earlier", "not used"):
        ask(cached(store), Provider(), request(text))
    cassette = Cassette(tmp_path / "c.jsonl")
    cache = cached(store, cassette=cassette)
    for text in ("earlier", "now"):
        ask(cache, Provider(), request(text))
    embed(cache, Lengths(), ["a text"])
    with pytest.raises(JudgeError):
        ask(cache, Provider(error=DOWN), request("failed"))
    saved: Any = cache.save(complete=True)
    assert saved.entries == 3
    second = cached(None, cassette=Cassette(cassette.file), mode="replay")
    assert ask(second, Provider(), request("earlier")).cached
    assert embed(second, Lengths(), ["a text"]).tolist() == run(Lengths().aembed(["a text"])).tolist()


def test_workers_hand_over_what_they_used(store: Store, broken: Store, tmp_path: Path) -> None:
    """Keys cross as JSON, and whole entries where a worker could store none."""
    cassette = Cassette(tmp_path / "c.jsonl")
    parts = []
    for number, shelf in enumerate((store, broken)):
        asker = partial(str, f"test_{number}")
        worker = cached(shelf, cassette=cassette, asker=asker, warn=lambda _: None)
        ask(worker, Provider(), request(f"asked by {number}"))
        parts.append(Used.from_row(json.loads(json.dumps(worker.used.to_row()))))
    assert [(list(part.tests.values()), len(part.loose)) for part in parts] == [(["test_0"], 0), (["test_1"], 1)]
    saved: Any = cached(store, cassette=cassette).save(complete=True, others=parts)
    assert saved.entries == 2


def test_a_refreshing_run_records_the_new_answers(store: Store, tmp_path: Path) -> None:
    """And for a question whose refresh failed, the answer that was recorded before."""
    cassette = recorded(tmp_path / "c.jsonl", "one", "two", store=store)
    refreshing = cached(store, cassette=cassette, mode="refresh")
    ask(refreshing, Provider(NEW), request("one"))
    with pytest.raises(JudgeError):
        ask(refreshing, Provider(error=DOWN), request("two"))
    refreshing.save(complete=True)
    texts = sorted(entry.answer().text for entry in Cassette(cassette.file).entries.values())
    assert texts == [NEW, OLD]


def test_what_is_kept_is_redacted(store: Store) -> None:
    """The answer stays JSON, live and replayed answers are the same, and no name is in the error of a miss."""
    redact = partial(re.sub, "Meadow", '"the client"')
    provider, asked = Provider('{"claims": ["Mrs Meadow skates."]}'), request("Does Mrs Meadow skate?")
    cache = cached(store, redact=redact)
    live = ask(cache, provider, asked)
    assert json.loads(live.text) == {"claims": ['Mrs "the client" skates.']}
    replaying = cached(store, mode="replay", redact=redact)
    assert ask(replaying, provider, asked) == replace(live, cached=True)
    with pytest.raises(CacheMissError) as raised:
        ask(replaying, provider, request("Does Mr Meadow skate?"))
    assert "Meadow" not in str(raised.value)
    # The key is that of the words that were sent.
    assert not ask(cache, provider, request('Does Mrs "the client" skate?')).cached


QUESTIONS = ("Do ponds freeze?", "ما هو الماء؟", "水は濡れていますか", "Is it \ud800 half?", "")
#: What may be done to the row of another request so that it is taken for that of the one that is asked.
FORGED: dict[str, Any] = {
    "as it is": {},
    "redacted": {"redacted": True},
    "sealed": {"redacted": "0" * 64},
    "redacted by a hook": {},
    "with a digest": {"redacted": True, "digest": "0" * 64},
    "salted": {"redacted": True, "salt": "s"},
    "endless": {"redacted": True, "request": {"task": "list_claims", "n": float("inf")}},
    "deep": {"redacted": True, "request": {"task": "list_claims", "n": json.loads("[" * 400 + "]" * 400)}},
    "huge": {"redacted": True, "request": {"task": "list_claims", "n": 10**4000}},
    "empty": {"redacted": True, "request": {"task": "list_claims"}},
}


def lines(*entries: CacheEntry) -> str:
    return "".join(f"{json.dumps(each.to_row())}\n".replace("Infinity", "1e999") for each in entries)


@pytest.mark.parametrize("redact", [None, partial(re.sub, "pond", "lake")], ids=["plain", "redacting"])
@pytest.mark.parametrize(
    ("question", "change"),
    [*((QUESTIONS[0], change) for change in FORGED), *((other, "redacted") for other in QUESTIONS[1:])],
)
def test_an_entry_of_another_request_is_never_used(tmp_path: Path, question: str, change: str, redact: Any) -> None:
    asked, provider, file = request(question), Provider(), tmp_path / "c.jsonl"
    warned: list[str] = []
    made = kept(request("Is Meadow warm?"), NEW, _bracketed if change == "redacted by a hook" else None)
    wrong = CacheEntry(**{**made.to_row(), "key": key_of(request_row(asked)), **FORGED[change]})
    file.write_text(lines(wrong), "utf-8")
    with Store(tmp_path / "cache") as store:
        with suppress(ValueError):  # no store has a row that is no JSON
            store.put(wrong)
        with pytest.raises(CacheError, match=f"^{re.escape(str(file))}:1: (entry {wrong.key[:8]}|not an entry)"):
            ask(cached(None, cassette=Cassette(file), mode="replay", redact=redact), provider, asked)
        if store.count():
            said = f"^{re.escape(str(store.database))}: entry {wrong.key[:8]} is of another request"
            replaying = cached(store, mode="replay", redact=redact)
            with pytest.raises(CacheError, match=said):
                ask(replaying, provider, asked)
            cache = cached(store, redact=redact, warn=warned.append)
            assert (ask(cache, provider, asked).text, len(provider.asked)) == (OLD, 1)
            (warning,) = warned
            assert re.search(said, warning)
            assert ask(cached(store, mode="replay", redact=redact), provider, asked).text == OLD


@pytest.mark.parametrize("redacted", [False, True, "0" * 64])
def test_a_vector_of_another_text_is_never_used(store: Store, redacted: bool | str) -> None:
    embedder, texts = Lengths(), ["Ponds freeze.", "水"]
    warned: list[str] = []
    cache = cached(store, redact=_bracketed, warn=warned.append)
    embed(cache, embedder, texts)
    first, second = store
    moved = replace(first, key=second.key, redacted=redacted)
    store.put_many([moved, replace(second, key=first.key, redacted=redacted)])
    assert embed(cache, embedder, texts).tolist() == embed(cached(None), Lengths(), texts).tolist()
    assert (embedder.asked, len(warned)) == ([texts, texts], 1)
    store.put(moved)
    with pytest.raises(CacheError, match="is of another request than its key says"):
        embed(cached(store, mode="replay", redact=_bracketed), embedder, texts)


def _bracketed(text: str) -> str:
    return text.replace("Meadow", "[name]").replace("草", "[name]").replace("Луг", "[name]")


def _counted() -> Callable[[str], str]:
    numbers = count()
    return lambda text: text.replace("Meadow", f"<{next(numbers)}>")


@pytest.mark.parametrize("text", ["Does Meadow skate?", "草さんは滑りますか", "Луг катается?", "Meadow " * 500])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        *((_bracketed, after) for after in (_bracketed, None, str.upper)),
        *((before, _bracketed) for before in (None, str.upper)),
        *((None, None), (_counted(), _counted())),
    ],
)
def test_what_was_redacted_is_found_however_a_later_run_redacts(
    tmp_path: Path, text: str, before: Any, after: Any
) -> None:
    """In cache and cassette: the hook may be in a folder that a later run leaves out, or have learnt a name."""
    provider, asked, file = Provider(), request(text), tmp_path / "c.jsonl"
    with Store(tmp_path / "cache") as store:
        first = cached(store, cassette=Cassette(file), redact=before)
        ask(first, provider, asked)
        first.save(complete=True)
        for tier in ({"store": None, "cassette": Cassette(file)}, {"store": store}):
            ask(cached(**tier, mode="replay", redact=after), provider, asked)
        assert (len(provider.asked), store.verify(), Cassette(file).verify()) == (1, [], (1, []))
        # Entries of earlier versions say no more than that they are redacted: the same hook finds them.
        old = [replace(each, redacted=True) if each.redacted else each for each in store]
        file.write_text(lines(*old), "utf-8")
        if before in (_bracketed, None):
            ask(cached(None, cassette=Cassette(file), mode="replay", redact=before), provider, asked)


def test_texts_are_embedded_once_each(store: Store) -> None:
    cache, embedder = cached(store), Lengths()
    embed(cache, embedder, ["bb", "a"])
    vectors = embed(cache, embedder, ["a", "ccc", "bb", "dddd", "ccc"])
    assert embedder.asked == [["bb", "a"], ["ccc", "dddd"]]
    assert (vectors[:, 0].tolist(), vectors.dtype.name) == ([1, 3, 2, 4, 3], "float32")
    assert (cache.embedded.calls, cache.embedded.cached) == (2, 2)


def test_dimensions_are_part_of_the_question(store: Store) -> None:
    """The same model cut down to fewer numbers gives others; one replaced under the same name is noticed."""
    cache = cached(store)
    assert embed(cache, Lengths(), ["a"]).shape == (1, 3)
    assert embed(cache, Lengths(width=2, dimensions=2), ["a"]).shape == (1, 2)
    with pytest.raises(CacheError, match="3 to 5 numbers"):
        embed(cache, Lengths(width=5), ["a", "b"])


def test_vectors_that_do_not_fit_are_not_kept(store: Store) -> None:
    import numpy as np

    for answer in (np.ones((1, 3)), np.ones(2), np.ones((2, 0)), np.full((2, 3), np.nan)):
        embedder: Any = Lengths()
        embedder.aembed = mock.AsyncMock(return_value=answer.astype(np.float32))
        with pytest.raises(JudgeError, match="openai:vectors-1"):
            embed(cached(store), embedder, ["a", "b"])
    assert store.count() == 0


def _work(folder: Path, mode: Mode, run: str, seconds: float) -> None:
    """Ask twenty questions at once and embed their texts; note in a file what is paid for."""
    warnings.simplefilter("error")

    def pay(*texts: str) -> None:
        with (folder / "till").open("a") as till:
            till.writelines(f"{text}\n" for text in texts)

    class PaidProvider(Provider):
        async def complete(self, request: Request) -> Reply:
            reply = await super().complete(request)
            pay(request.texts[0])
            return reply

    class PaidLengths(Lengths):
        async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            await asyncio.sleep(seconds)
            pay(*texts)
            return await super().aembed(texts)

    async def main(store: Store) -> None:
        cache, provider = cached(store, mode=mode, run=run), PaidProvider(None, delay=seconds)
        asked = [replace(request(f"{n % 20}?"), provider=provider) for n in range(60)]
        replies = await asyncio.gather(*map(cache.send, asked))
        assert [json.loads(reply.text)["said"] for reply in replies] == [f"{n % 20}?" for n in range(60)]
        texts = ["x" * n for n in range(1, 21)]
        sent = await asyncio.gather(*(cache.send(PaidLengths().request(texts[n : n + 4])) for n in range(17)))
        vectors: list[Any] = [reply.vectors for reply in sent]
        assert all(found[:, 0].tolist() == [n + k for k in range(1, 5)] for n, found in enumerate(vectors))

    with Store(folder / "cache") as store:
        asyncio.run(main(store))


def working(*args: Any) -> Any:
    """Start a process that works."""
    context: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    if sys.platform != "win32":
        context.set_forkserver_preload([__name__])
    process = context.Process(target=_work, args=args)
    process.start()
    return process


def test_workers_pay_once_between_them(tmp_path: Path) -> None:
    """Two that create the store at once, even when refreshing."""
    workers = [working(tmp_path, "refresh", "one-run", 0.02) for _ in range(2)]
    for each in workers:
        each.join(120)
    assert [each.exitcode for each in workers] == [0, 0]
    paid = (tmp_path / "till").read_text().splitlines()
    assert len(paid) == len(set(paid)) == 40
    with Store(tmp_path / "cache") as store:
        assert (store.count(), store.verify()) == (40, [])


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_loses_only_what_it_was_fetching(tmp_path: Path) -> None:
    """The others go on at once and pay for the rest alone."""
    till = tmp_path / "till"
    victim = working(tmp_path, "auto", "r", 0.1)
    while not till.exists():
        assert victim.is_alive()
    victim.kill()
    victim.join()
    with Store(tmp_path / "cache") as store:
        kept = store.count()
        assert store.verify() == []
    before = till.read_text().splitlines()
    other = working(tmp_path, "auto", "r", 0.02)
    other.join(60)
    paid = till.read_text().splitlines()
    assert (other.exitcode, len(set(paid)), len(paid) - len(before)) == (0, 40, 40 - kept)


def test_answers_of_another_host_are_said_once(store: Store) -> None:
    """An entry notes the server that made it, where it is not the provider's own; replaying asks no server."""
    here, there = (replace(request("one"), url=f"http://{host}/v1") for host in ("here:1", "there:2"))
    told: list[str] = []
    ask(cached(store), Provider(), here)
    (entry,) = store
    assert (entry.host, CacheEntry.from_row(entry.to_row())) == ("here:1", entry)
    same = replace(request("one"), url="HTTP://Here:1")
    for mode, asked in (("auto", here), ("auto", same), ("replay", there), ("auto", there), ("auto", request("one"))):
        cache = cached(store, mode=mode, warn=told.append)
        assert [ask(cache, Provider(), asked).cached for _ in range(2)] == [True, True]
    assert [text.partition(": ask anew")[0] for text in told] == [
        "stored answers of here:1 are used, and this run asks there:2",
        "stored answers of here:1 are used, and this run asks the provider itself",
    ]
    ask(cached(store), Provider(), request("two"))
    two = next(each for each in store if each.key != entry.key)
    assert "host" not in two.to_row()
