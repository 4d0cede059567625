"""The local store: entries are found again by later runs and other processes, and nothing in it is executed."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import re
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import diskcache
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_ragmetrics.cache.entry import CacheEntry, CacheUnavailableError, key_of, new_entry
from pytest_ragmetrics.cache.store import Store, text_disk
from pytest_ragmetrics.core.errors import CacheError
from pytest_ragmetrics.judges.transports.values import Reply
from tests.read_only import read_only


def entry(number: int, text: str = '{"claims": []}', **request: Any) -> CacheEntry:
    row = {"task": "list_claims", "model": "judge-1", "number": number, **request}
    reply = Reply(text=text, prompt_tokens=10, completion_tokens=2)
    return replace(new_entry(key_of(row), row, reply, salt="", redact=None), created="2026-01-01T00:00:00+00:00")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "cache") as opened:
        yield opened


def tamper(store: Store, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(store.database)) as connection, connection:
        connection.execute(statement, values)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_put_is_found_again(store: Store, tmp_path: Path) -> None:
    long = entry(1, "x" * 1_000_000)
    assert (store.exists(), store.get(long.key), store.verify(), [*tmp_path.iterdir()]) == (False, None, [], [])
    store.put(entry(1, "old"))
    store.put(long)
    assert (store.get(long.key), store.get(entry(2).key)) == (long, None)
    assert not list(store.folder.rglob("*.val"))  # no value is moved into a file of its own
    store.close()
    store.close()
    assert list(store) == [long]
    store.put_many([entry(2)], run="today")
    assert set(store.get_many([long.key, entry(2).key], run="today")) == {entry(2).key}
    with Store(store.folder) as second:
        assert second.exists()
        assert second.get_many([entry(n).key for n in (1, 2, 3)]) == {long.key: long, entry(2).key: entry(2)}


@given(
    st.text(st.characters(exclude_categories=()), max_size=20),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_survives(store: Store, text: str, model: str) -> None:
    kept = entry(1, text, model=model)
    store.put(kept)
    found: Any = store.get(kept.key)
    # Two halves of a pair that stand side by side are the character they make.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert (found.answer().text, found.request["model"]) == (whole, model)


def test_threads_may_come_and_go(store: Store) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(store.put, map(entry, range(8))))
    assert store.count() == 8


def test_the_folder_is_private_and_out_of_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    with Store(folder) as store:
        store.put(entry(1))
        assert {mode(path) for path in folder.glob("cache.db*")} == {0o600}
    assert (folder / ".gitignore").read_text().endswith("\n*\n")
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert mode(folder) == 0o700
    folder.chmod(0o755)
    (folder / "cache.db").chmod(0o644)
    with Store(folder) as store:
        assert store.get(entry(1).key) is not None
    assert (mode(folder), mode(folder / "cache.db")) == (0o700, 0o600)


def test_a_folder_with_other_things_in_it_stays_as_it_is(tmp_path: Path) -> None:
    """Naming the project's own folder must not hide the project from git or lock others out."""
    (tmp_path / "code.py").write_text("pass\n")
    tmp_path.chmod(0o755)
    with Store(tmp_path) as store:
        store.put(entry(1))
        assert store.get(entry(1).key) is not None
    assert (mode(tmp_path), (tmp_path / ".gitignore").exists()) == (0o755, False)


@pytest.mark.parametrize(
    "change",
    [
        *("mode = 4, value = ?", "raw = 0, key = ?", "mode = 4", "mode = 3", "filename = '../secret.txt'"),
        *(f"mode = {mode}, filename = '../secret.txt', value = NULL" for mode in (1, 2, 3, 4)),
    ],
)
def test_a_row_that_asks_to_be_unpickled_or_names_a_file_is_refused(store: Store, tmp_path: Path, change: str) -> None:
    (tmp_path / "secret.txt").write_text('"a secret"')
    store.put(entry(1))
    ran = tmp_path / "ran"
    payload = f"cos\nmkdir\n(V{ran}\ntR.".encode()
    # It must work, or refusing it shows nothing.
    assert pickle.loads(payload) is None
    ran.rmdir()
    tamper(store, f"UPDATE Cache SET {change}", *[payload] * change.count("?"))
    with diskcache.Cache(str(store.folder), disk=text_disk()) as cache:
        opened: Any
        for opened in (store, cache):
            with pytest.raises(CacheError, match="tampered"):
                list(opened) if "key" in change else opened.get(entry(1).key)
        for wrong in (partial(cache.set, "key", {}), partial(cache.get, ("key",))):
            with pytest.raises(TypeError, match="stores text, not"):
                wrong()
    with pytest.raises(CacheError, match="tampered"):
        list(store)
    assert not ran.exists()


def test_dropping_a_row_deletes_no_file(store: Store, tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("keep me")
    store.put_many([entry(1), entry(2)])
    tamper(store, "UPDATE Cache SET filename = '../precious.txt', mode = 4")
    store.put(entry(1))
    assert (store.get(entry(1).key), store.clear()) == (entry(1), 2)
    assert (tmp_path / "precious.txt").read_text() == "keep me"


@pytest.mark.parametrize("value", ["no JSON", "[]", "{}", "[" * 100_000, 7, b"bytes"], ids=repr)
def test_a_row_that_is_no_entry_is_refused(store: Store, value: object) -> None:
    store.put(entry(1))
    tamper(store, "UPDATE Cache SET value = ?", value)
    with pytest.raises(CacheError, match="ragmetrics cache verify"):
        store.get(entry(1).key)


def test_an_answer_cannot_be_moved_to_another_question(store: Store) -> None:
    store.put(entry(1))
    tamper(store, "UPDATE Cache SET key = ?", entry(2).key)
    with pytest.raises(CacheError, match="under another key"):
        store.get(entry(2).key)


def test_a_strangers_folder_in_a_public_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that somebody else could have planted are not read."""
    with Store(tmp_path / "cache") as store:
        store.put(entry(1))
    stranger = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    for folder, parent in ((0o777, 0o755), (0o755, 0o1777)):
        (tmp_path / "cache").chmod(folder)
        tmp_path.chmod(parent)
        with Store(tmp_path / "cache") as store, pytest.raises(CacheUnavailableError, match="another account"):
            store.get(entry(1).key)
    tmp_path.chmod(0o755)
    with Store(tmp_path / "cache") as store:
        assert store.get(entry(1).key) is not None


@pytest.mark.skipif(sys.platform == "win32", reason="needs modes")
def test_a_folder_that_is_read_only_is_read(tmp_path: Path) -> None:
    with read_only(entry(1), entry(2)) as folder, Store(folder) as store:
        assert (store.get(entry(1).key), store.count(), store.verify()) == (entry(1), 2, [])
        assert [kept.key for kept in store] == sorted(entry(number).key for number in (1, 2))
        with pytest.raises(CacheUnavailableError, match=r"closed: the cache is read-only$"):
            store.put(entry(3))
        assert store.count() == 2


@pytest.mark.parametrize("below", ["file", "file/cache", "file/a/b/cache"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    with Store(tmp_path / below) as store:
        assert (store.get(entry(1).key), store.count(), list(store)) == (None, 0, [])
        with pytest.raises(CacheUnavailableError, match=re.escape(str(tmp_path / below))):
            store.put(entry(1))


def test_a_folder_that_cannot_be_looked_at_is_not_empty(tmp_path: Path) -> None:
    with Store(tmp_path / ("x" * 300)) as store:
        for read in (store.exists, store.count, store.verify):
            with pytest.raises(CacheUnavailableError, match="File name too long"):
                read()


@pytest.mark.skipif(sys.platform == "win32", reason="has other limits")
def test_a_path_that_is_too_long_for_sqlite_is_named(tmp_path: Path) -> None:
    folder = tmp_path
    while len(str(folder)) < 495:
        folder /= "x" * max(1, min(100, 494 - len(str(folder))))
    with Store(folder.parent) as store:
        store.put(entry(1))
    with Store(folder / "xx") as store, pytest.raises(CacheUnavailableError, match=r"has 49\d bytes, .* than 495"):
        store.put(entry(1))


def test_a_database_that_can_be_mended_by_nobody_is_an_error(store: Store) -> None:
    store.folder.mkdir()
    store.locks.write_text("")
    store.database.write_bytes(b"this is no database" * 500)
    for use in (lambda: store.get("k"), lambda: store.put(entry(1)), store.count):
        with pytest.raises(CacheUnavailableError, match="cannot be used"):
            use()
    with pytest.raises(CacheUnavailableError, match=r"not a database; .*cache verify --remove"):
        store.verify()


def test_nothing_is_ever_evicted(store: Store) -> None:
    """What was paid for stays, whatever limit an earlier program wrote into the database."""
    store.put(entry(0))
    store.close()
    tamper(store, "UPDATE Settings SET value = 1000 WHERE key = 'size_limit'")
    tamper(store, "UPDATE Settings SET value = 'least-recently-stored' WHERE key = 'eviction_policy'")
    store.put_many([entry(number, "x" * 1000) for number in range(1, 100)])
    assert store.count() == 100


def test_all_entries_come_in_the_order_of_their_keys(store: Store) -> None:
    entries = [entry(number) for number in range(450)]
    store.put_many(entries)
    assert [kept.key for kept in store] == sorted(kept.key for kept in entries)


def test_verifying_finds_and_removes_every_unsound_row(store: Store) -> None:
    store.put_many([entry(number) for number in range(5)])
    row = {"task": "list_claims", "text": "Ask Mrs Meadow."}
    sound = new_entry(key_of(row), row, Reply(text="{}"), salt="", redact=lambda text: text.replace("Meadow", "X"))
    store.put(sound)
    edited, latin = "replace(value, '\"number\": 3', '\"number\": 9')", "cast(x'22ff22' AS TEXT)"
    changes = "x'80044b012e', mode = 4", "value, filename = 'x'", "'{'", edited, latin
    for number, change in enumerate(changes):
        tamper(store, f"UPDATE Cache SET value = {change} WHERE key = ?", entry(number).key)
    faults = store.verify()
    assert {fault.key for fault in faults} == {entry(number).key for number in range(5)}
    assert "its key is not that of its request" in {fault.problem for fault in faults}
    store.remove(faults)
    assert (store.verify(), [kept.key for kept in store]) == ([], [sound.key])


def put_together(store: Store, entries: list[CacheEntry]) -> list[BaseException | None]:
    """Put entries one by one at the same time, while the store is busy until all of them wait."""

    async def main() -> list[BaseException | None]:
        gate = threading.Event()
        store._submit(gate.wait)
        puts = [asyncio.ensure_future(store.aput_many((each,), run="r")) for each in entries]
        await asyncio.sleep(0.05)
        gate.set()
        return await asyncio.gather(*puts, return_exceptions=True)

    return asyncio.run(main())


def test_what_cannot_be_written_raises_for_everybody_who_waits(store: Store) -> None:
    store.put(entry(0))
    bad = replace(entry(1), reply={"text": "{}", "prompt_tokens": float("nan")})
    assert [type(error) for error in put_together(store, [bad, entry(2)])] == [ValueError, type(None)]
    tamper(store, "DROP TABLE Cache")
    errors = put_together(store, [entry(3), entry(4)])
    assert [type(error) for error in errors] == [CacheUnavailableError] * 2


def test_a_store_can_be_closed_while_the_interpreter_exits(store: Store) -> None:
    """By then Python has ended its thread: closing raises nothing, and what was put is there."""
    kept = entry(1)
    script = f"""if True:
        import atexit, json, pathlib, sys
        from pytest_ragmetrics.cache.entry import CacheEntry
        from pytest_ragmetrics.cache.store import Store
        store = Store(pathlib.Path({str(store.folder)!r}))
        store.put(CacheEntry.from_row(json.loads({json.dumps(kept.to_row())!r})))
        atexit.register(store.close)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stderr, store.get(kept.key)) == ("", kept)
