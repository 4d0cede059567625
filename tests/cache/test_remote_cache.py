"""The shared cache: what is paid for on one machine is free on others, and nothing there can fail or stop a run."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pytest_ragmetrics.cache import remote as remote_module
from pytest_ragmetrics.cache.entry import CacheEntry, CacheReadOnlyError, CacheUnavailableError, key_of, request_row
from pytest_ragmetrics.cache.remote import RemoteCache, check_cache_url, open_remote, pack, shown_url, unpack
from pytest_ragmetrics.cache.remote_objects import ObjectBackend
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cache.transport import CachedTransport
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import CacheMissError
from pytest_ragmetrics.evaluation.engine import Engine
from pytest_ragmetrics.judges.batches.queue import Batching
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import Reply
from tests import backend_contract
from tests.cache.test_cached_transport import Lengths, Provider, request
from tests.on_a_loop import on_a_loop
from tests.virtual_time import Clock, virtual_time

SECRET = "a secret of the team"
DEAD = CacheUnavailableError("it cannot be reached")


@dataclass
class Shelf:
    """A place that all machines of a test share, which notes what it is asked and may be slow or broken."""

    parcels: dict[str, bytes] = field(default_factory=dict)
    said: list[tuple[str, int]] = field(default_factory=list)
    #: Raised by the operations of these names.
    errors: dict[str, Exception] = field(default_factory=dict)
    delay: float = 0.0
    many: int = 100

    async def _do(self, name: str, count: int = 1) -> None:
        self.said.append((name, count))
        await asyncio.sleep(self.delay)
        if name in self.errors:
            raise self.errors[name]

    async def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        await self._do("get", len(keys))
        return {key: self.parcels[key] for key in keys if key in self.parcels}

    async def put(self, key: str, parcel: bytes, *, replace: bool) -> bool:
        await self._do("put")
        is_new = replace or key not in self.parcels
        if is_new:
            self.parcels[key] = parcel
        return is_new

    async def probe(self) -> None:
        await self._do("probe")

    async def sample(self, count: int) -> list[str]:
        await self._do("sample", count)
        return list(self.parcels)[:count]

    async def aclose(self) -> None:
        self.said.append(("close", 1))


class Machine:
    """A machine with a local folder of its own, in front of a shared place."""

    def __init__(self, folder: Path, connect: Any, judge: Provider | None = None, **options: Any) -> None:
        cache = {name: options.pop(name) for name in ("mode", "redact", "salt") if name in options}
        self.warned: list[str] = []
        self.judge = judge or Provider(None)
        self.remote = RemoteCache(connect, shown="redis://cache", warn=self.warned.append, **options)
        self.store = Store(folder)
        self.cache = CachedTransport(DIRECT, store=self.store, remote=self.remote, **cache)

    async def ask(self, *texts: str) -> list[Reply]:
        return await asyncio.gather(*(self.cache.send(request(text, provider=self.judge)) for text in texts))

    async def end(self) -> None:
        await self.cache.settle()
        await self.remote.aclose()
        self.store.close()


async def asked_once(folder: Path, shelf: Shelf, *texts: str, **options: Any) -> Machine:
    machine = Machine(folder, lambda: shelf, **options)
    await machine.ask(*texts)
    await machine.end()
    return machine


@pytest.mark.parametrize("url", ["file", "memory:///"])
def test_objects_do_what_is_agreed(tmp_path: Path, url: str) -> None:
    """A folder, which has no conditional update, and a store that has one, decide races alike."""
    asyncio.run(backend_contract.parcels(ObjectBackend(tmp_path.as_uri() if url == "file" else url, url)))


@on_a_loop
async def test_what_one_machine_paid_for_is_free_on_the_next(tmp_path: Path) -> None:
    shelf, texts = Shelf(), [f"Question {number}?" for number in range(120)]
    first, second = (Machine(tmp_path / name, lambda: shelf) for name in ("a", "b"))
    paid = await first.ask(*texts)
    await first.end()
    assert (first.remote.counts.added, first.remote.counts.found) == (120, 0)
    shelf.said.clear()
    assert await second.ask(*texts) == [replace(reply, cached=True) for reply in paid]
    assert (second.judge.asked, second.cache.judged.cached, second.cache.judged.calls) == ([], 120, 0)
    assert await second.ask(*texts) == [replace(reply, cached=True) for reply in paid]
    assert (shelf.said, second.remote.counts.found) == ([("get", 100), ("get", 20)], 120)
    await second.end()


@on_a_loop
async def test_two_machines_at_once_pay_twice_and_agree(tmp_path: Path) -> None:
    shelf, texts = Shelf(delay=0.001), [f"Question {number}?" for number in range(60)]
    machines = [Machine(tmp_path / name, lambda: shelf, judge=Provider(None, delay=0.01)) for name in "ab"]
    replies = await asyncio.gather(*(machine.ask(*texts) for machine in machines))
    assert replies[0] == replies[1]
    assert [sorted(machine.judge.asked) for machine in machines] == [sorted(texts)] * 2
    embedders = Lengths(), Lengths()
    groups = [texts[start : start + 7] for start in range(0, 60, 3)]
    ways = zip(machines, embedders, (1, -1), strict=True)
    sent = [machine.cache.send(embedder.request(group[::way])) for machine, embedder, way in ways for group in groups]
    vectors: list[Any] = [reply.vectors for reply in await asyncio.gather(*sent)]
    assert vectors[0][:, 0].tolist() == [len(text) for text in groups[0]]
    for embedder in embedders:
        assert sorted(text for asked in embedder.asked for text in asked) == sorted(texts)
    for machine in machines:
        await machine.end()
        assert not machine.warned
    assert sum(machine.remote.counts.added for machine in machines) == len(shelf.parcels) == 120
    assert not (await asked_once(tmp_path / "c", shelf, *texts)).judge.asked


@on_a_loop
async def test_a_run_that_only_reads_writes_nothing(tmp_path: Path) -> None:
    shelf = Shelf()
    await asked_once(tmp_path / "a", shelf, "Old?")
    shelf.said.clear()
    reading = await asked_once(tmp_path / "b", shelf, "Old?", "New?", writes=False)
    assert (reading.judge.asked, {name for name, _ in shelf.said}) == (["New?"], {"get", "close"})
    replaying = await asked_once(tmp_path / "c", shelf, "Old?", mode="replay")
    assert not replaying.judge.asked
    with pytest.raises(CacheMissError):
        await asked_once(tmp_path / "d", shelf, "New?", mode="replay")


@on_a_loop
async def test_refresh_replaces_what_is_there(tmp_path: Path) -> None:
    shelf = Shelf()
    await asked_once(tmp_path / "a", shelf, "Old?")
    ((key, parcel),) = shelf.parcels.items()
    shelf.said.clear()
    shelf.parcels[key] = pack(replace(unpack(key, parcel), created="2020-01-01T00:00:00+00:00"))
    refreshing = await asked_once(tmp_path / "a", shelf, "Old?", mode="refresh")
    assert (refreshing.judge.asked, [name for name, _ in shelf.said]) == (["Old?"], ["put", "close"])
    assert not unpack(key, shelf.parcels[key]).created.startswith("2020")
    assert not (await asked_once(tmp_path / "b", shelf, "Old?")).judge.asked


def entry(text: str = "Do ponds freeze?", **change: Any) -> CacheEntry:
    row = request_row(request(text))
    reply = {"text": '{"said": "yes"}', "prompt_tokens": 1, "completion_tokens": 1, "calls": 1}
    made = CacheEntry(key=key_of(row), request=row, reply=reply, created="2026-01-01T00:00:00+00:00")
    return replace(made, **change)


LONG = "Is it? " * 2_000


@pytest.mark.parametrize("text", ["Do ponds freeze?", "\ud800 ü", LONG])
@pytest.mark.parametrize("secret", ["", SECRET])
def test_a_parcel_keeps_its_entry(text: str, secret: str) -> None:
    parcel = pack(entry(text), secret)
    assert unpack(entry(text).key, parcel, secret) == entry(text)
    assert unpack(entry(text).key, parcel) == entry(text)
    assert len(parcel) < 5_000


def test_which_runs_share(tmp_path: Path) -> None:
    given: Any = {"cache_dir": tmp_path / "a", "cache_url": tmp_path.as_uri()}
    sharing: list[Any] = [{}, {"batching": Batching(mode="wait")}, {"cache": "replay"}]
    others: list[Any] = [{"cassette": tmp_path / "c.jsonl"}, {"cache": "off"}]
    assert all(Engine(**given, **options).remote for options in sharing)
    assert not any(Engine(**given, **options).remote for options in others)


GOOD = pack(entry(), SECRET)
REDACTED = entry(redacted=True, request=request_row(request("Do *** freeze?")))


@pytest.mark.parametrize(
    ("parcel", "secret"),
    [
        (pack(entry()), SECRET),
        (pack(entry(), "another secret"), SECRET),
        (GOOD.replace(b"yes", b"no!"), SECRET),
        (GOOD.replace(b"json", b"zlib"), SECRET),
        *((pack(entry("Else?"), SECRET), secret) for secret in (SECRET, "")),
        (pack(entry("Else?", key=entry().key), SECRET), ""),
        *((pack(entry(reply=wrong)), "") for wrong in ({"text": 7}, {"vector": "AACAPw=="})),
        *((pack(wrong), "") for wrong in (entry(salt="other"), REDACTED)),
        (GOOD[: len(GOOD) // 2], SECRET),
        *((cut, "") for cut in (GOOD[:-1], pack(entry(LONG))[:-4], b"")),
        *((other, "") for other in (b"\x80\x04cos\nsystem\n", b'{"key": "x"}', b"ragmetrics/2" + GOOD[12:])),
        (GOOD.partition(b"\n")[0] + b"\n" + b"[" * 100_000, ""),
    ],
    ids=itertools.count(1),
)
@on_a_loop
async def test_what_is_forged_or_damaged_is_refused_and_replaced(tmp_path: Path, parcel: bytes, secret: str) -> None:
    """It is counted, asked for anew, and the next machine finds a good one; no test fails for it."""
    shelf = Shelf(parcels={entry().key: parcel})
    was_redacted = b"***" in parcel
    machine = await asked_once(tmp_path / "a", shelf, "Do ponds freeze?", secret=secret)
    assert (len(machine.judge.asked), machine.remote.counts.refused, machine.warned) == (1, 1, [])
    # What another machine redacted is not replaced by what is not.
    assert len((await asked_once(tmp_path / "b", shelf, "Do ponds freeze?", secret=secret)).judge.asked) == was_redacted


@on_a_loop
async def test_an_answer_must_fit_its_task(tmp_path: Path) -> None:
    forged = entry("It hums.", reply={"text": '{"nonsense": 1}'})
    machine = Machine(tmp_path / "a", lambda: Shelf(parcels={forged.key: pack(forged)}))
    asked = request("It hums.", provider=Provider(), asked=ListClaims(text="It hums."))
    assert ((await machine.cache.send(asked)).text, machine.remote.counts.refused) == ('{"claims": []}', 1)
    await machine.end()


@on_a_loop
async def test_what_is_shared_is_redacted(tmp_path: Path) -> None:
    shelf, hide = Shelf(), partial(re.sub, "Ada", "***")
    await asked_once(tmp_path / "a", shelf, "Who is Ada?", redact=hide)
    assert b"Ada" not in b"".join(shelf.parcels.values())
    assert not (await asked_once(tmp_path / "b", shelf, "Who is Ada?", redact=hide)).judge.asked
    assert (await asked_once(tmp_path / "c", shelf, "Who is Ada?")).judge.asked
    await asked_once(tmp_path / "d", shelf, "Where is Ada?")
    machine = Machine(tmp_path / "e", lambda: shelf, redact=hide)
    (reply,) = await machine.ask("Where is Ada?")
    assert (reply.text, machine.judge.asked) == ('{"said": "Where is ***?"}', [])
    assert "Ada" not in str([each.to_row() for each in machine.store])
    await machine.end()


ALONE = "this run goes on with the local cache alone and asks it again after 60 s"
SHUT = CacheReadOnlyError("writing is forbidden")


@pytest.mark.parametrize(
    ("errors", "said", "asked_next"),
    [
        ({"get": DEAD}, f"it cannot be reached; {ALONE}", 3),
        ({"put": DEAD}, f"it cannot be reached; {ALONE}", 3),
        ({"put": SHUT}, "writing is forbidden; this run goes on and adds nothing to it", 1),
    ],
)
@on_a_loop
async def test_a_broken_place_costs_one_warning(tmp_path: Path, errors: Any, said: str, asked_next: int) -> None:
    shelf = Shelf()
    await asked_once(tmp_path / "a", shelf, "Old?", "Older?")
    shelf.errors = errors
    machine = Machine(tmp_path / "b", lambda: shelf)
    await machine.ask("New?")
    await asyncio.sleep(0.05)
    await machine.ask("Old?", "Older?")
    await machine.ask("New?")
    assert len(machine.judge.asked) == asked_next
    await machine.end()
    assert machine.warned == [f"shared cache redis://cache: {said}"]
    assert machine.remote.counts.problem


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModuleNotFoundError("No module named 'obstore'"), "ModuleNotFoundError: No module named 'obstore'"),
        (RuntimeError("redis://ci:secret@cache is no address"), "RuntimeError"),
    ],
)
@on_a_loop
async def test_a_place_that_cannot_be_opened_keeps_nobody_waiting(tmp_path: Path, error: Exception, said: str) -> None:
    machine = Machine(tmp_path, mock.Mock(side_effect=error))
    (reply,) = await asyncio.wait_for(machine.ask("New?"), 60)
    assert not reply.cached
    await machine.end()
    assert machine.warned == [f"shared cache redis://cache: it cannot be used: {said}; {ALONE}"]


@on_a_loop
async def test_a_warning_that_is_an_error_fails_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lambda: Shelf(errors={"get": DEAD}))
    machine.remote._warn = mock.Mock(side_effect=UserWarning)
    assert len(await machine.ask("New?")) == 1
    await machine.end()
    (line,) = remote_module.counts_line("redis://u:p@cache/0", [asdict(machine.remote.counts)])
    assert line == (
        "shared cache redis://cache/0: 0 answers found, 0 added; "
        "it cannot be reached; the run went on with the local cache alone and asked it again after 60 s"
    )


class Line(Shelf):
    """A place that takes for its operations what is given, one after another, or keeps our processor for so long."""

    def __init__(self, clock: Clock, seconds: Iterable[float | Exception], *, is_ours: bool = False) -> None:
        super().__init__()
        self.clock, self.seconds, self.is_ours = clock, iter(seconds), is_ours
        #: When it was asked.
        self.times: list[float] = []

    async def _do(self, name: str, count: int = 1) -> None:
        self.times.append(self.clock.now)
        took = next(self.seconds, 0.01)
        if isinstance(took, Exception):
            raise took
        self.clock.now += took * self.is_ours
        await asyncio.sleep(0.01 if self.is_ours else took)


def looked(seconds: Any, count: int, *, wide: int = 1, pause: float = 0.1, **options: Any) -> tuple[Line, list[str]]:
    """Return a place that was asked so often, so many times at once, and what was warned of."""
    warned: list[str] = []

    async def main() -> None:
        remote = RemoteCache(lambda: line, shown="redis://cache", warn=warned.append)
        line.many = 1
        for number in range(count):
            keys = [f"{number * wide + each:064x}" for each in range(wide)]
            await remote.look(keys, lambda _: None)
            # What the tests do between two questions.
            await asyncio.sleep(pause)
        await remote.aclose()

    with virtual_time() as clock:
        line = Line(clock, seconds, **options)
        loop.run(main())
    return line, warned


@pytest.mark.parametrize(
    ("seconds", "options"),
    [
        *(([slow, *[0.01] * 99] * 5, {}) for slow in (1.2, 60.0)),
        ([0.01, 4.9, 4.9, 4.9, 4.9] * 40, {}),
        ([60.0, 0.01, 0.01] * 66, {}),
        *((seconds, {}) for seconds in ([1.2] * 4, [60.0, 60.0], [0.99] * 300)),
        # The time for which our own loop does not run is not the place's, also where it is beyond the deadline.
        *(([seconds] * 40, {"is_ours": True}) for seconds in (1.2, 4.0, 6.0, 60.0)),
        # Operations at the same time are slow once.
        ([1.2] * 16 + [0.01] * 304, {"wide": 16}),
    ],
)
def test_a_place_that_is_slow_now_and_then_is_kept(seconds: list[float], options: Any) -> None:
    line, warned = looked(seconds, len(seconds) // options.get("wide", 1), **options)
    assert (warned, len(line.times)) == ([], len(seconds))


@pytest.mark.parametrize(
    ("seconds", "tries", "said"),
    [
        ([1.2] * 50, 5, "too slow: again and again longer than 1 s"),
        ([60.0] * 50, 3, "no answer within 5 s"),
        ([1.2, 60.0] * 50, 4, "no answer within 5 s"),
        ([DEAD] * 50, 1, "it cannot be reached"),
        ([0.01, 0.01, *[1.2] * 50], 7, "too slow: again and again longer than 1 s"),
    ],
)
def test_a_place_that_stays_slow_or_away_is_asked_once_a_minute(seconds: list[Any], tries: int, said: str) -> None:
    """One warning in all; in between nothing is asked, so that it takes no more than a twelfth of the time."""
    line, warned = looked(seconds, 600, pause=0.5)
    assert warned == [f"shared cache redis://cache: {said}; {ALONE}"]
    after = [later - earlier for earlier, later in itertools.pairwise(line.times[tries - 1 :])]
    assert len(after) >= 4
    assert all(60 <= pause < 67 for pause in after)


@pytest.mark.parametrize("seconds", [[1.2] * 7, [60.0] * 3, [DEAD], [DEAD] * 3, [DEAD, 1.2, 1.2]])
def test_a_place_that_is_well_again_is_used_again(seconds: list[float | Exception]) -> None:
    line, warned = looked(seconds, 600, pause=0.5)
    assert len(warned) == 1
    assert len(line.times) > 100


@on_a_loop
async def test_writing_ends_with_the_run(tmp_path: Path) -> None:
    shelf = Shelf()
    machine = Machine(tmp_path / "a", lambda: shelf)
    await machine.ask("New?")
    shelf.delay = 60
    machine.remote.write([entry("More?")])
    await asyncio.sleep(0)
    await machine.remote.flush(0.05)
    assert "answers could not be written within 0.05 s" in machine.warned[0]
    start = time.monotonic()
    await machine.end()
    assert time.monotonic() - start < 3


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://host/answers", "'ftp://host/answers' is none of s3://BUCKET/FOLDER, gs://"),
        ("ftp://me:hidden@host?password=hidden", "'ftp://host' is none of"),
        ("redis", "'redis' is none of"),
        ("s3://", "'s3://' is none of"),
        ("file://shared", "'file://shared' has no absolute path: write file:///FOLDER"),
        ("redis:/me:hidden@host", "'redis' is none of"),
        ("redis://me:hidden@[::1/0", "'redis://[::1/0' has no valid host and port: write %40"),
        ("redis://me:hidden/0", "'redis://me:***/0' has no valid host and port"),
        ("redis://:hid/den@host:1/0", "'redis://***' has no valid host and port"),
        ("redis://host:99999/0", "'redis://host:99999/0' has no valid host and port"),
    ],
)
def test_a_wrong_url_is_explained(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"none of|absolute|valid") as raised:
        check_cache_url(url)
    assert str(raised.value).startswith(said)
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(("scheme", "package", "extra"), [("s3", "obstore", "remote"), ("redis", "redis", "redis")])
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, scheme: str, package: str, extra: str) -> None:
    assert check_cache_url(f" {scheme}://b ") == f"{scheme}://b"
    monkeypatch.setattr(remote_module, "find_spec", lambda _: None)
    said = f'^{scheme}:// needs the package {package}: pip install "pytest-ragmetrics\\[{extra}]"$'
    with pytest.raises(ValueError, match=said):
        check_cache_url(f"{scheme}://b")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rediss://me:p@ss@host:1/0?password=p#p", "rediss://host:1/0"),
        *((f"redis://me:hid{sign}den@host/0", "redis://***") for sign in "/?#"),
        ("redis://host/0?password=hid@den", "redis://***"),
        ("ftp://me:hid/den@host", "ftp://***"),
        ("redis://me:hidden", "redis://me:***"),
        ("redis://:hidden@[::1]/0", "redis://[::1]/0"),
        ("redis://:hidden@[::1]:6379/0", "redis://[::1]:6379/0"),
        ("s3://bucket/team@home", "s3://bucket/team@home"),
        ("az://box?sig=hidden", "az://box"),
        ("no url?password=p", "no url"),
        ("redis:me:hidden@host", "redis"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@on_a_loop
async def test_what_a_client_does_not_take_is_told() -> None:
    warned: list[str] = []
    remote = open_remote("redis://me:hidden@127.0.0.1:1/0?unknown=hidden", warn=warned.append)
    await remote.look(["a" * 64], lambda _: None)
    await remote.aclose()
    (warning,) = warned
    assert re.match(r"shared cache redis://127\.0\.0\.1:1/0: redis-py takes no such URL, .* TypeError", warning)
    assert "hidden" not in warning


def test_only_a_place_that_can_be_written_is() -> None:
    places: tuple[tuple[str, Any], ...] = (
        ("redis://cache", "readwrite"),
        ("redis://cache", "read"),
        ("https://c", "readwrite"),
    )
    assert [remote_module.is_written(*place) for place in places] == [True, False, False]
