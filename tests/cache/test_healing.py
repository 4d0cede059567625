"""A store whose file is damaged, not ours or deleted in use mends itself, and says so once."""

from __future__ import annotations

import multiprocessing
import shutil
import sqlite3
import stat
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest

from pytest_ragmetrics.cache.store import Store
from tests.cache.test_store import entry
from tests.read_only import read_only

COUNT = 40
ENTRIES = [entry(number, f'{{"claims": ["{number}{"x" * 900}"]}}') for number in range(COUNT)]


Change = Callable[[Path], object]


def sql(statement: str) -> Change:
    def change(database: Path) -> None:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute(statement)

    return change


def cut(part: float) -> Change:
    return lambda file: file.write_bytes(file.read_bytes()[: int(file.stat().st_size * part)])


def replaced(data: bytes) -> Change:
    return lambda file: file.write_bytes(data)


def overwrite(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2] + Random(1).randbytes(len(data) - len(data) // 2))


def in_its_place(make: Change) -> Change:
    def change(file: Path) -> None:
        file.unlink()
        make(file)

    return change


#: What happens to a database, what is said of it, and the fewest of its answers that are kept.
DAMAGES = {
    "empty": (replaced(b""), "it is empty", 0),
    "random": (replaced(Random(2).randbytes(20_000)), "file is not a database", 0),
    "text": (replaced(b"{}"), "file is not a database", 0),
    "cut to a half": (cut(0.5), "malformed", 0),
    "cut by a byte": (cut(0.99999), "it is cut short", COUNT - 3),
    "half noise": (overwrite, "malformed", 0),
    "another program's": (in_its_place(sql("CREATE TABLE users (name)")), "another program", 0),
    "another cache": (in_its_place(sql("CREATE TABLE Cache (name)")), "another program", 0),
    "settings": (sql("INSERT INTO Settings VALUES ('disk_surprise', 1)"), "settings are not ours", COUNT),
    "a folder with files": (in_its_place(lambda path: (path / "deep").mkdir(parents=True)), "it is a folder", 0),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_database_is_moved_aside(tmp_path: Path, name: str) -> None:
    change, said, least = DAMAGES[name]
    with Store(tmp_path) as store:
        store.put_many(ENTRIES)
    change(store.database)
    told: list[str] = []
    with Store(tmp_path, warn=told.append) as store:
        kept = store.get_many([each.key for each in ENTRIES])
        assert all(kept[each.key] == each for each in ENTRIES if each.key in kept)
        assert least <= len(kept) < COUNT or least == COUNT
        store.put_many(each for each in ENTRIES if each.key not in kept)
        assert store.verify() == []
    assert (tmp_path / "cache.db.broken-1").exists()
    with Store(tmp_path, warn=told.append) as store:
        assert len(store.get_many([each.key for each in ENTRIES])) == COUNT
    (warning,) = told
    assert said in warning
    assert "moved to cache.db.broken-1" in warning
    assert f" {len(kept)} answers" in warning or name == "half noise"


def test_what_goes_on_writing_in_a_database_that_was_moved_aside(tmp_path: Path) -> None:
    told: list[str] = []
    with Store(tmp_path, warn=told.append) as slow, Store(tmp_path, warn=told.append) as quick:
        slow.put(ENTRIES[0])
        (tmp_path / "cache.db").rename(tmp_path / "elsewhere")
        quick.put(ENTRIES[1])
        slow.put(ENTRIES[2])
        assert len(slow.get_many([each.key for each in ENTRIES[:3]])) == 3
    with Store(tmp_path, warn=told.append) as store:
        assert store.count() == 3
    assert not list(tmp_path.glob("*broken*"))


def open_files() -> list[str]:
    """Return the names of the files that this process has open, where the system tells them."""
    found = Path("/proc/self/fd")
    names = []
    for link in found.iterdir() if found.exists() else ():
        with suppress(FileNotFoundError):
            names.append(str(link.readlink()))
    return names


@pytest.mark.skipif(sys.platform == "win32", reason="a file in use cannot be deleted")
@pytest.mark.parametrize("what", ["folder", "files", "database"])
def test_what_is_deleted_in_use_is_made_again(tmp_path: Path, what: str) -> None:
    told: list[str] = []
    folder = tmp_path / "cache"
    with Store(folder, warn=told.append) as store:
        for number, each in enumerate(ENTRIES[:9]):
            if number == 5:
                paths = {"folder": [folder], "files": [*folder.iterdir()], "database": [store.database]}[what]
                for path in paths:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            store.put(each)
        assert len(told) == 1
        assert "deleted while in use; it is made again, with its 5 answers" in told[0]
        shutil.rmtree(folder)
        assert store.get(ENTRIES[0].key) == ENTRIES[0]
        assert not [name for name in open_files() if "cache.db" in name and name.endswith("(deleted)")]
    with Store(folder) as store:
        assert store.count() == 9
    assert (stat.S_IMODE(folder.stat().st_mode), (folder / "CACHEDIR.TAG").exists()) == (0o700, True)


def _write(folder: Path, name: str) -> None:
    """Put thirty entries; after ten of them say so, and wait until told to go on."""
    warnings.simplefilter("error")
    with Store(folder, warn=lambda _: None) as store:
        for count in range(30):
            store.put(entry(count, name=name))
            if count == 9:
                folder.with_suffix(f".{name}").touch()
                while not folder.with_suffix(".go-on").exists():
                    time.sleep(0.005)


@pytest.mark.skipif(sys.platform == "win32", reason="a file in use cannot be deleted")
def test_two_processes_lose_nothing_when_their_folder_is_deleted(tmp_path: Path) -> None:
    """Each writes on into the folder that one of them makes again."""
    folder, context = tmp_path / "cache", multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    writing = [context.Process(target=_write, args=(folder, name)) for name in "ab"]
    for process in writing:
        process.start()
    while not all(folder.with_suffix(f".{name}").exists() for name in "ab"):
        assert [process.exitcode for process in writing] == [None, None]
        time.sleep(0.01)
    shutil.rmtree(folder)
    folder.with_suffix(".go-on").touch()
    for process in writing:
        process.join(120)
    with Store(folder) as store:
        assert (*(process.exitcode for process in writing), store.count(), store.verify()) == (0, 0, 60, [])


@pytest.mark.skipif(sys.platform == "win32", reason="needs modes")
@pytest.mark.parametrize("mode", [0o000, 0o200, 0o400, 0o444])
def test_permissions_of_our_own_file_are_mended(mode: int) -> None:
    told: list[str] = []
    with read_only(ENTRIES[0]) as folder:
        folder.chmod(0o700)
        (folder / "locks").chmod(0o700)
        (folder / "cache.db").chmod(mode)
        with Store(folder, warn=told.append) as store:
            assert store.get(ENTRIES[0].key) == ENTRIES[0]
            store.put(ENTRIES[1])
            assert store.count() == 2
    assert told == [f"{folder}/cache.db: its permissions were {mode:03o}; they are 600 now"]
