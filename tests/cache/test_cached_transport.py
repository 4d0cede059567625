"""The cache: each question is paid for once, in every mode, and what was paid for is never lost."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

import pytest_ragmetrics
from pytest_ragmetrics.cache import store as store_module
from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import (
    CacheEntry,
    CacheUnavailableError,
    Redact,
    key_of,
    new_entry,
    request_row,
)
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cache.transport import CachedTransport, CacheTiers, Mode, Used
from pytest_ragmetrics.core.errors import CacheError, CacheMissError, JudgeError
from pytest_ragmetrics.judges.embedders.embedder import Embedder
from pytest_ragmetrics.judges.transports.values import (
    DIRECT,
    ChatMessage,
    Limiter,
    Reply,
    Request,
    Transport,
    UnreadableReplyError,
)
from tests.read_only import read_only

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pytest_ragmetrics.__file__).parent.parent)}

#: A worker that asks twenty questions at once and embeds their texts, and notes what it pays in a file.
WORKER = """
import asyncio, sys
from pathlib import Path
import numpy as np
from pytest_ragmetrics.cache.transport import CachedTransport
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.judges.embedders.embedder import Embedder
from pytest_ragmetrics.judges.transports.values import DIRECT, Reply, Request

folder, mode, run = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def pay(what):
    with (folder / "till").open("a") as till:
        till.write(what + "\\n")

class Lengths(Embedder):
    name, kind, model = "custom:v", "custom", "v"
    async def aembed(self, texts):
        await asyncio.sleep(0.02)
        for text in texts:
            pay("vector " + text)
        return np.array([[len(text), 1.0] for text in texts])

class Judge:
    name, is_paid, is_kept = "m", True, True
    async def complete(self, request):
        await asyncio.sleep(0.02)
        number = request.texts[0].split()[1]
        pay(f"answer {number}")
        return Reply(text=number)

async def main(store):
    cache = CachedTransport(DIRECT, store=store, mode=mode, run=run)
    async def ask(n):
        request = Request(task="t", kind="k", model="m", messages=({"role": "user", "content": f"Question {n}"},),
                          schema={}, parameters={}, provider=Judge())
        return (await cache.send(request)).text
    async def embed(texts):
        return (await cache.send(Lengths().request(texts))).vectors
    answers = await asyncio.gather(*(ask(n % 20) for n in range(60)))
    assert answers == [str(n % 20) for n in range(60)]
    texts = ["x" * n for n in range(1, 21)]
    vectors = await asyncio.gather(*(embed(texts[n:n + 4]) for n in range(17)))
    assert all(v.tolist() == [[n + k, 1.0] for k in range(1, 5)] for n, v in enumerate(vectors))

with Store(folder / "cache") as store:
    asyncio.run(main(store))
"""


def request(text: str = "Do ponds freeze?", **change: Any) -> Request:
    messages = (ChatMessage(role="user", content=text),)
    settings: dict[str, Any] = {"schema": {"type": "object"}, "parameters": {"temperature": 0}}
    return Request(
        **{"task": "list_claims", "kind": "openai", "model": "judge-1", "messages": messages, **settings, **change}
    )


def kept(asked: Request, text: str = "{}", redact: Redact | None = None) -> CacheEntry:
    row = request_row(asked)
    return new_entry(key_of(row), row, Reply(text=text), salt="", redact=redact)


class Provider:
    """Answers everything, with its question if it has no text, and notes what it is asked."""

    name = "judge-1"
    is_paid = is_kept = True

    def __init__(
        self, text: str | None = '{"claims": []}', *, delay: float = 0.0, error: Exception | None = None
    ) -> None:
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

    name = "openai:vectors-1"
    kind = "openai"
    model = "vectors-1"

    def __init__(self, width: int = 3, dimensions: int | None = None) -> None:
        self.asked: list[list[str]] = []
        self.width = width
        self.dimensions = dimensions

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
    async def main() -> T:
        return await asyncio.wait_for(awaitable, 60)

    return asyncio.run(main())


def ask(cache: Transport, provider: Provider, asked: Request | None = None) -> Reply:
    return run(cache.send(replace(asked or request(), provider=provider)))


def embed(cache: Transport, embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    vectors = run(cache.send(embedder.request(texts))).vectors
    assert vectors is not None
    return vectors


def test_the_second_time_is_free(store: Store) -> None:
    provider = Provider()
    cache = CachedTransport(DIRECT, store=store)
    first = ask(cache, provider)
    assert (first.cached, first.prompt_tokens, first.calls) == (False, 100, 2)
    assert ask(cache, provider) == replace(first, cached=True)
    assert ask(CachedTransport(DIRECT, store=store), provider) == replace(first, cached=True)
    assert len(provider.asked) == 1
    assert (cache.judged.calls, cache.judged.cached) == (2, 1)
    assert cache.save(complete=True) is None
    assert cache.used.tests == {}
    # Independent samples stay independent, and salted caches apart.
    assert not ask(CachedTransport(DIRECT, store=store), provider, request(vote=1)).cached
    assert not ask(CachedTransport(DIRECT, store=store, salt="mine"), provider).cached
    assert ask(CachedTransport(DIRECT, store=store, salt="mine"), provider).cached
    assert store.verify() == []


def test_an_error_is_not_kept(store: Store) -> None:
    cache = CachedTransport(DIRECT, store=store)
    with pytest.raises(JudgeError, match="overloaded"):
        ask(cache, Provider(error=JudgeError("overloaded")))
    with pytest.raises(UnreadableReplyError):
        ask(cache, Provider(error=UnreadableReplyError("nonsense", reply=Reply(text="", calls=2))))
    assert (cache.judged.calls, store.count()) == (2, 0)
    assert not ask(cache, Provider()).cached


def test_off_keeps_nothing_and_finds_nothing(store: Store) -> None:
    provider = Provider()
    cache = CachedTransport(DIRECT, store=store, mode="off")
    assert not ask(cache, provider).cached
    assert not ask(cache, provider).cached
    embedder = Lengths()
    embed(cache, embedder, ["a", "b"])
    embed(cache, embedder, ["a", "b"])
    assert (cache.judged.calls, cache.embedded.calls, len(embedder.asked)) == (4, 2, 2)
    assert not store.exists()


def test_refresh_pays_once_a_run(store: Store) -> None:
    provider = Provider()
    ask(CachedTransport(DIRECT, store=store), provider)
    with pytest.raises(JudgeError):
        ask(CachedTransport(DIRECT, store=store, mode="refresh"), Provider(error=JudgeError("down")))
    assert ask(CachedTransport(DIRECT, store=store), provider).cached
    provider.text = '{"claims": ["new"]}'
    first, second = (CachedTransport(DIRECT, store=store, mode="refresh", run="today") for _ in range(2))
    kept = [ask(cache, provider) for cache in (first, first, second)]
    assert [each.cached for each in kept] == [False, True, True]
    assert {each.text for each in kept} == {provider.text}
    assert ask(CachedTransport(DIRECT, store=store), provider).text == provider.text
    assert not ask(CachedTransport(DIRECT, store=store, mode="refresh", run="tomorrow"), provider).cached
    assert len(provider.asked) == 3


def test_replay_never_calls(store: Store, tmp_path: Path) -> None:
    provider, cassette = Provider(), Cassette(tmp_path / "c.jsonl")
    recording = CachedTransport(DIRECT, store=store, cassette=cassette)
    ask(recording, provider)
    recording.save(complete=True)
    empty = Store(tmp_path / "none")
    for cache in (
        CachedTransport(DIRECT, store=store, mode="replay"),
        CachedTransport(DIRECT, store=empty, cassette=cassette, mode="replay"),
    ):
        assert ask(cache, provider).cached
        with pytest.raises(CacheMissError) as raised:
            ask(cache, provider, request("Do lakes freeze?"))
        assert {"-Do ponds freeze?", "+Do lakes freeze?"} <= set(str(raised.value).splitlines())
        assert "--rag-cache=auto" in str(raised.value)
        with pytest.raises(CacheMissError, match="no request of verify_claims is recorded"):
            ask(cache, provider, request(task="verify_claims"))
    assert len(provider.asked) == 1
    empty.close()
    assert not (tmp_path / "none").exists()


def test_a_store_that_cannot_be_used_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    warned: list[str] = []
    provider = Provider()
    with Store(tmp_path / "file" / "cache") as store:
        cache = CachedTransport(DIRECT, store=store, warn=warned.append)
        assert [ask(cache, provider).cached for _ in range(3)] == [False, True, True]
        ask(cache, provider, request("Else?"))
    assert len(provider.asked) == 2
    (warning,) = warned
    assert str(tmp_path / "file" / "cache") in warning
    assert "without a local cache" in warning


@pytest.mark.skipif(sys.platform == "win32", reason="needs modes")
def test_a_store_that_is_read_only_is_read_on() -> None:
    provider = Provider()
    warned: list[str] = []
    with read_only(kept(request())) as folder, Store(folder) as store:
        assert ask(CachedTransport(DIRECT, store=store, mode="replay"), provider).cached
        cache = CachedTransport(DIRECT, store=store, warn=warned.append)
        new = [request("Else?"), request("Else?"), request("More?")]
        assert [ask(cache, provider, asked).cached for asked in new] == [False, True, False]
        assert ask(cache, provider).cached
    assert len(provider.asked) == 2
    (warning,) = warned
    assert str(folder) in warning
    assert "adds nothing to the local cache" in warning


def test_in_replay_a_broken_store_is_an_error(broken: Store, tmp_path: Path) -> None:
    """A replay must not pretend that nothing was recorded, but reads the cassette; otherwise it is a warning."""
    with pytest.warns(UserWarning, match="without a local cache"):
        ask(CachedTransport(DIRECT, store=broken), Provider())
    with pytest.raises(CacheUnavailableError, match="File exists"):
        ask(CachedTransport(DIRECT, store=broken, mode="replay"), Provider())
    cassette = Cassette(tmp_path / "c.jsonl")
    recording = CachedTransport(DIRECT, store=None, cassette=cassette)
    ask(recording, Provider())
    recording.save(complete=True)
    assert ask(CachedTransport(DIRECT, store=broken, cassette=cassette, mode="replay"), Provider()).cached


@pytest.mark.filterwarnings("error")
def test_where_warnings_are_errors_no_answer_is_lost(broken: Store, tmp_path: Path) -> None:
    """With ``-W error`` a warning raises where it is made, behind an answer that is paid for."""
    provider = Provider()
    ask(CachedTransport(DIRECT, store=broken), provider)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "cache.db").write_text("no database")
    for _ in range(2):
        with Store(tmp_path / "damaged") as store:
            ask(CachedTransport(DIRECT, store=store), provider)
    assert len(provider.asked) == 2
    assert (tmp_path / "damaged" / "cache.db.broken-1").exists()


def test_a_store_that_breaks_while_writing_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    warned: list[str] = []
    provider = Provider()
    cache = CachedTransport(Limiter(40), store=store, warn=warned.append)
    ask(cache, provider, request("earlier"))
    monkeypatch.setattr(store_module, "_put", lambda *_: fail)
    many(cache, provider)
    assert all(ask(cache, provider, asked).cached for asked in (request("earlier"), request("1?"), request("39?")))
    assert (len(provider.asked), len(cache.used.loose), len(warned)) == (41, 40, 1)
    gc.collect(1)
    assert not caplog.records


class Counted(Store):
    """A store that counts its writes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sizes: list[int] = []

    async def aput_many(self, entries: Sequence[CacheEntry], *, run: str = "") -> None:
        self.sizes.append(len(entries))
        await super().aput_many(entries, run=run)


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


def test_replies_that_come_together_are_stored_together(tmp_path: Path) -> None:
    provider = Provider()
    with Counted(tmp_path / "cache") as store:
        replies = many(CachedTransport(Limiter(40), store=store), provider)
        assert [type(reply) for reply in replies] == [asyncio.CancelledError] + [Reply] * 39
        assert (sum(store.sizes), store.count()) == (40, 40)
        assert len(store.sizes) <= 4
        again = CachedTransport(DIRECT, store=store)
        assert all(ask(again, provider, request(f"{number}?")).cached for number in range(40))


class Held(Counted):
    """A store whose writes wait to be let through."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.writing, self.let = asyncio.Event(), asyncio.Event()

    async def aput_many(self, entries: Sequence[CacheEntry], *, run: str = "") -> None:
        self.writing.set()
        await self.let.wait()
        await super().aput_many(entries, run=run)


def test_a_write_takes_what_came_during_the_one_before(tmp_path: Path) -> None:
    entries = [kept(request(f"{number}?")) for number in range(5)]

    async def keep(store: Held) -> list[BaseException | None]:
        tiers = CacheTiers(store=store, cassette=None, mode="auto", run="r", warn=warnings.warn)
        first = asyncio.ensure_future(tiers.keep(entries[:1]))
        await store.writing.wait()
        store.writing.clear()
        others = [asyncio.ensure_future(tiers.keep([entry])) for entry in entries[1:4]]
        await asyncio.sleep(0.01)
        assert not store.writing.is_set()
        others[0].cancel()
        await asyncio.sleep(0)
        store.let.set()
        ends = await asyncio.gather(first, *others, return_exceptions=True)
        await tiers.keep(entries[4:])
        return ends

    with Held(tmp_path / "cache") as store:
        assert [type(end) for end in run(keep(store))] == [type(None), asyncio.CancelledError, type(None), type(None)]
        assert (store.sizes, store.count()) == ([1, 3, 1], 5)


@pytest.mark.parametrize("mode", ["auto", "replay"])
def test_a_tampered_entry_is_an_error_in_every_mode(store: Store, mode: Mode) -> None:
    ask(CachedTransport(DIRECT, store=store), Provider())
    with closing(sqlite3.connect(store.database)) as connection, connection:
        connection.execute("UPDATE Cache SET mode = 4, value = x'80'")
    with pytest.raises(CacheError, match="tampered"):
        ask(CachedTransport(DIRECT, store=store, mode=mode), Provider())


def test_the_cassette_comes_before_the_store(store: Store, tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "c.jsonl")
    recording = CachedTransport(DIRECT, store=None, cassette=cassette)
    ask(recording, Provider('{"claims": ["committed"]}'))
    recording.save(complete=True)
    ask(CachedTransport(DIRECT, store=store), Provider('{"claims": ["local"]}'))
    assert "committed" in ask(CachedTransport(DIRECT, store=store, cassette=cassette), Provider()).text


def test_a_run_records_what_it_used(store: Store, tmp_path: Path) -> None:
    ask(CachedTransport(DIRECT, store=store), Provider(), request("earlier"))
    ask(CachedTransport(DIRECT, store=store), Provider(), request("not used"))
    cassette = Cassette(tmp_path / "c.jsonl")
    cache = CachedTransport(DIRECT, store=store, cassette=cassette)
    for text in ("earlier", "now"):
        ask(cache, Provider(), request(text))
    embed(cache, Lengths(), ["a text"])
    with pytest.raises(JudgeError):
        ask(cache, Provider(error=JudgeError("down")), request("failed"))
    saved = cache.save(complete=True)
    assert saved is not None
    assert saved.entries == 3
    second = CachedTransport(DIRECT, store=None, cassette=Cassette(cassette.file), mode="replay")
    assert ask(second, Provider(), request("earlier")).cached
    assert embed(second, Lengths(), ["a text"]).tolist() == run(Lengths().aembed(["a text"])).tolist()


def test_workers_hand_over_what_they_used(store: Store, broken: Store, tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "c.jsonl")
    parts = []
    for number, shelf in enumerate((store, broken)):
        test = f"test_{number}"
        worker = CachedTransport(DIRECT, store=shelf, cassette=cassette, asker=partial(str, test), warn=lambda _: None)
        ask(worker, Provider(), request(f"asked by {number}"))
        parts.append(Used.from_row(json.loads(json.dumps(worker.used.to_row()))))
    assert [list(part.tests.values()) for part in parts] == [["test_0"], ["test_1"]]
    assert [len(part.loose) for part in parts] == [0, 1]
    saved = CachedTransport(DIRECT, store=store, cassette=cassette).save(complete=True, others=parts)
    assert saved is not None
    assert saved.entries == 2


def test_a_refreshing_run_records_the_new_answers(store: Store, tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "c.jsonl")
    cache = CachedTransport(DIRECT, store=store, cassette=cassette)
    for text in ("one", "two"):
        ask(cache, Provider(), request(text))
    cache.save(complete=True)
    refreshing = CachedTransport(DIRECT, store=store, cassette=cassette, mode="refresh")
    ask(refreshing, Provider('{"claims": ["new"]}'), request("one"))
    with pytest.raises(JudgeError):
        ask(refreshing, Provider(error=JudgeError("down")), request("two"))
    refreshing.save(complete=True)
    texts = sorted(entry.answer().text for entry in Cassette(cassette.file).entries.values())
    assert texts == ['{"claims": ["new"]}', '{"claims": []}']


def test_what_is_kept_is_redacted(store: Store) -> None:
    def redact(text: str) -> str:
        return text.replace("Meadow", '"the client"')

    provider = Provider('{"claims": ["Mrs Meadow skates."]}')
    cache = CachedTransport(DIRECT, store=store, redact=redact)
    asked = request("Does Mrs Meadow skate?")
    live = ask(cache, provider, asked)
    assert json.loads(live.text) == {"claims": ['Mrs "the client" skates.']}
    replaying = CachedTransport(DIRECT, store=store, mode="replay", redact=redact)
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


def forged(key: str, change: dict[str, Any]) -> CacheEntry:
    redact = _bracketed if change is FORGED["redacted by a hook"] else None
    made = kept(request("Is Meadow warm?"), '{"claims": ["forged"]}', redact)
    return CacheEntry(**{**made.to_row(), "key": key, **change})


def lines(*entries: CacheEntry) -> str:
    return "".join(f"{json.dumps(each.to_row())}\n".replace("Infinity", "1e999") for each in entries)


@pytest.mark.parametrize("redact", [None, lambda text: text.replace("pond", "lake")], ids=["plain", "redacting"])
@pytest.mark.parametrize(
    ("question", "change"),
    [
        *((QUESTIONS[0], change) for change in FORGED.values()),
        *((other, FORGED["redacted"]) for other in QUESTIONS[1:]),
    ],
)
def test_an_entry_of_another_request_is_never_used(
    tmp_path: Path, question: str, change: dict[str, Any], redact: Any
) -> None:
    asked, provider = request(question), Provider()
    warned: list[str] = []
    wrong = forged(key_of(request_row(asked)), change)
    file = tmp_path / "c.jsonl"
    file.write_text(lines(wrong), "utf-8")
    with Store(tmp_path / "cache") as store:
        with suppress(ValueError):  # no store has a row that is no JSON
            store.put(wrong)
        for place, tier in ((f"{file}:1: ", {"cassette": Cassette(file)}), (f"{store.database}: ", {"store": store})):
            if "store" in tier and not store.count():
                continue
            with pytest.raises(CacheError, match=f"entry {wrong.key[:8]}|not an entry") as raised:
                ask(CachedTransport(DIRECT, **tier, mode="replay", redact=redact), provider, asked)
            assert str(raised.value).startswith(place)
        if store.count():
            cache = CachedTransport(DIRECT, store=store, redact=redact, warn=warned.append)
            assert (ask(cache, provider, asked).text, len(provider.asked)) == (provider.text, 1)
            (said,) = warned
            assert said.startswith(f"{store.database}: entry {wrong.key[:8]} is of another request")
            replaying = CachedTransport(DIRECT, store=store, mode="replay", redact=redact)
            assert ask(replaying, provider, asked).text == provider.text


@pytest.mark.parametrize("redacted", [False, True, "0" * 64])
def test_a_vector_of_another_text_is_never_used(store: Store, redacted: bool | str) -> None:
    embedder, texts = Lengths(), ["Ponds freeze.", "水"]
    warned: list[str] = []
    cache = CachedTransport(DIRECT, store=store, redact=_bracketed, warn=warned.append)
    embed(cache, embedder, texts)
    first, second = store
    store.put_many(
        [replace(first, key=second.key, redacted=redacted), replace(second, key=first.key, redacted=redacted)]
    )
    assert embed(cache, embedder, texts).tolist() == embed(CachedTransport(DIRECT), Lengths(), texts).tolist()
    assert (embedder.asked, len(warned)) == ([texts, texts], 1)
    store.put(replace(first, key=second.key, redacted=redacted))
    with pytest.raises(CacheError, match="is of another request than its key says"):
        embed(CachedTransport(DIRECT, store=store, mode="replay", redact=_bracketed), embedder, texts)


def _bracketed(text: str) -> str:
    return text.replace("Meadow", "[name]").replace("草", "[name]").replace("Луг", "[name]")


def _counted() -> Callable[[str], str]:
    numbers = count()
    return lambda text: text.replace("Meadow", f"<{next(numbers)}>")


@pytest.mark.parametrize("text", ["Does Meadow skate?", "草さんは滑りますか", "Луг катается?", "Meadow " * 500])
@pytest.mark.parametrize(
    ("recorded", "replayed"),
    [
        (_bracketed, _bracketed),
        (_bracketed, None),
        (_bracketed, str.upper),
        (None, _bracketed),
        (None, None),
        (str.upper, _bracketed),
        (_counted(), _counted()),
    ],
    ids=["same", "hook-gone", "hook-changed", "hook-new", "none", "other", "counting"],
)
def test_what_was_redacted_is_found_however_a_later_run_redacts(
    tmp_path: Path, text: str, recorded: Any, replayed: Any
) -> None:
    """In cache and cassette: the hook may be in a folder that a later run leaves out, or have learnt a name."""
    provider, asked, file = Provider(), request(text), tmp_path / "c.jsonl"
    with Store(tmp_path / "cache") as store:
        first = CachedTransport(DIRECT, store=store, cassette=Cassette(file), redact=recorded)
        ask(first, provider, asked)
        first.save(complete=True)
        for tier in ({"cassette": Cassette(file)}, {"store": store}):
            ask(CachedTransport(DIRECT, **tier, mode="replay", redact=replayed), provider, asked)
        assert (len(provider.asked), store.verify(), Cassette(file).verify()) == (1, [], (1, []))
        # Entries of earlier versions say no more than that they are redacted: the same hook finds them.
        old = [replace(each, redacted=True) if each.redacted else each for each in store]
        file.write_text(lines(*old), "utf-8")
        if recorded in (_bracketed, None):
            ask(CachedTransport(DIRECT, cassette=Cassette(file), mode="replay", redact=recorded), provider, asked)


def test_texts_are_embedded_once_each(store: Store) -> None:
    embedder = Lengths()
    cache = CachedTransport(DIRECT, store=store)
    embed(cache, embedder, ["bb", "a"])
    vectors = embed(cache, embedder, ["a", "ccc", "bb", "dddd", "ccc"])
    assert embedder.asked == [["bb", "a"], ["ccc", "dddd"]]
    assert vectors[:, 0].tolist() == [1, 3, 2, 4, 3]
    assert vectors.dtype.name == "float32"
    assert (cache.embedded.calls, cache.embedded.cached) == (2, 2)


def test_dimensions_are_part_of_the_question(store: Store) -> None:
    """The same model cut down to fewer numbers gives others; one replaced under the same name is noticed."""
    cache = CachedTransport(DIRECT, store=store)
    assert embed(cache, Lengths(), ["a"]).shape == (1, 3)
    assert embed(cache, Lengths(width=2, dimensions=2), ["a"]).shape == (1, 2)
    with pytest.raises(CacheError, match="3 to 5 numbers"):
        embed(cache, Lengths(width=5), ["a", "b"])


def test_vectors_that_do_not_fit_are_not_kept(store: Store) -> None:
    import numpy as np

    class Wrong(Lengths):
        """Returns what it is told to."""

        async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            return self.answer

        answer: npt.NDArray[np.float32]

    cache = CachedTransport(DIRECT, store=store)
    embedder = Wrong()
    for answer in (np.ones((1, 3)), np.ones(2), np.ones((2, 0)), np.full((2, 3), np.nan)):
        embedder.answer = answer.astype(np.float32)
        with pytest.raises(JudgeError, match="openai:vectors-1"):
            embed(cache, embedder, ["a", "b"])
    assert store.count() == 0


def test_workers_pay_once_between_them(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", WORKER, str(tmp_path), "refresh", "one-run"]
    workers = [
        subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for worker in workers:
        _, err = worker.communicate(timeout=120)
        assert (worker.returncode, err) == (0, "")
    paid = (tmp_path / "till").read_text().splitlines()
    assert len(paid) == len(set(paid)) == 40
    with Store(tmp_path / "cache") as store:
        assert (store.count(), store.verify()) == (40, [])


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_loses_only_what_it_was_fetching(tmp_path: Path) -> None:
    """The others go on at once and pay for the rest alone."""
    slow = WORKER.replace("sleep(0.02)", "sleep(0.1)")
    command = [sys.executable, "-W", "error", "-c", slow, str(tmp_path), "auto", "r"]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE) as victim:
        while not (tmp_path / "till").exists():
            assert victim.poll() is None
        victim.kill()
        victim.communicate()
    with Store(tmp_path / "cache") as store:
        kept = store.count()
        assert store.verify() == []
    before = (tmp_path / "till").read_text().splitlines()
    command[4] = WORKER
    subprocess.run(command, env=ENVIRONMENT, check=True, timeout=60)
    paid = (tmp_path / "till").read_text().splitlines()
    assert len(set(paid)) == 40
    assert len(paid) - len(before) == 40 - kept


def test_answers_of_another_host_are_said_once(store: Store) -> None:
    here, there = (replace(request("one"), url=f"http://{host}/v1") for host in ("here:1", "there:2"))
    told: list[str] = []
    ask(CachedTransport(DIRECT, store=store), Provider(), here)
    (entry,) = store
    assert (entry.host, CacheEntry.from_row(entry.to_row())) == ("here:1", entry)
    same = replace(request("one"), url="HTTP://Here:1")
    mode: Any
    for mode, url in (("auto", here), ("auto", same), ("replay", there), ("auto", there), ("auto", request("one"))):
        cache = CachedTransport(DIRECT, store=store, mode=mode, warn=told.append)
        assert ask(cache, Provider(), url).cached
        assert ask(cache, Provider(), url).cached
    assert [text.partition(": ask anew")[0] for text in told] == [
        "stored answers of here:1 are used, and this run asks there:2",
        "stored answers of here:1 are used, and this run asks the provider itself",
    ]
    ask(CachedTransport(DIRECT, store=store), Provider(), request("two"))
    two = next(each for each in store if each.key != entry.key)
    assert "host" not in two.to_row()
