"""`ragmetrics cache`: maintains the answers kept on this machine."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import click

from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.folder import FOLDER, VARIABLE, default_folder
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cli.command import (
    A_FOLDER,
    Arguments,
    Checked,
    argument,
    command,
    fitted,
    option,
    stated,
    terminal_width,
    write,
)
from pytest_ragmetrics.core.errors import CacheError, RagMetricsError
from pytest_ragmetrics.core.files import a_folder, exists
from pytest_ragmetrics.evaluation.session import shared_cache
from pytest_ragmetrics.runs.wording.figures import counted, text_table
from pytest_ragmetrics.text.unicode import printable

_MODE = "RAGMETRICS_CACHE"
MOUNTS = Path("/proc/self/mounts")
_NETWORK = re.compile(r"(?:nfs|cifs|smb|9p|afs|ceph|gluster|lustre|fuse\.(?:sshfs|s3fs|gcsfuse))")
_OTHER = "name another with --rag-cache-dir=DIR, or run with --rag-cache=off"
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def _folder(given: Path | None) -> Path:
    """Return the folder that is given, else that of the suite."""
    try:
        return a_folder(str(given or stated("cache_dir")() or default_folder()), Path.cwd())
    except ValueError as error:
        raise CacheError(f"{error} in {VARIABLE}") from error


def session_options(arguments: Arguments, command: str) -> dict[str, Any]:
    """Return the options of the session of a command that judges: its caches, and how fast and wide it asks."""
    mode = os.environ.get(_MODE, "").strip() or "auto"
    if mode not in ("auto", "off"):
        msg = f"{_MODE}={mode} is for runs of pytest: {command} knows auto and off"
        raise RagMetricsError(f"{msg}. Use rag_calibrated() in a test" if command == "calibrate" else msg)
    folder = None if mode == "off" else _folder(arguments.cache_dir)
    return {
        "cache_dir": folder,
        "concurrency": arguments.concurrency,
        "pace": arguments.pace,
        **shared_cache(folder, stated("cache_url")(), stated("cache_url_mode")()),
    }


def read_age(text: str) -> timedelta:
    """Return the length of time in ``90m``, ``12h``, ``30d`` or ``8w``; raise ``ValueError`` for anything else.

    >>> read_age("30d").days
    30
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdigit()):
        raise ValueError(f"{text!r} is not a length of time such as 90m, 12h, 30d or 8w")
    try:
        return timedelta(**{_UNITS[unit]: int(number)})
    except OverflowError as error:
        raise ValueError(f"{text!r} is longer than can be counted") from error


@click.group("cache", no_args_is_help=False)
@click.option(
    "--dir",
    "folder",
    type=A_FOLDER,
    metavar="DIR",
    help=f"the folder of the cache (default: ${VARIABLE}, else {FOLDER} here or above)",
)
def run(**_: object) -> None:
    """Maintain the local cache."""


@run.result_callback()
def _fit(lines: Sequence[str], **_: object) -> list[str]:
    return fitted(lines)


@contextmanager
def _store(arguments: Arguments, *, made: bool = False) -> Iterator[Store]:
    """Open the store of the arguments; raise ``CacheError`` where there is none and none is ``made``."""
    with Store(_folder(arguments.folder), warn=lambda text: write(sys.stderr, f"ragmetrics: {text}\n")) as store:
        if not made and not store.exists():
            raise CacheError(f"{store.folder}: there is no cache")
        yield store


@run.add_command
@command("stats")
def _stats(arguments: Arguments) -> list[str]:
    """Print what the cache contains."""
    with _store(arguments) as store:
        contents = store.contents()
        kib = contents.size / 1024
        size = f"{kib:,.0f} KiB" if kib < 1024 else f"{kib / 1024:,.1f} MiB"  # noqa: PLR2004 - KiB in a MiB
        lines = [f"{store.folder}: {counted(contents.entries, 'entry')}, {size}"]
        if contents.oldest and contents.newest:
            tokens = f"{contents.prompt_tokens:,} prompt and {contents.completion_tokens:,} completion tokens"
            lines.append(f"made {contents.oldest:%Y-%m-%d} to {contents.newest:%Y-%m-%d}, for {tokens}")
            kinds = contents.kinds.items()
            rows = [("", printable(task), printable(model), f"{count:,}") for (task, model), count in kinds]
            lines += text_table(rows, width=terminal_width(), left=3)
        aside = (f"  {file.name} was moved aside: it cannot be read; `clear` drops it" for file in store.aside())
        return [*lines, *aside]


@run.add_command
@command("verify")
@option("--remove", help="remove invalid entries")
@argument("cassette [CASSETTE]", "check this file instead")
def _verify(arguments: Arguments) -> list[str]:
    """Check the database and its entries, or a cassette."""
    if arguments.cassette is not None:
        return _verify_cassette(arguments.cassette)
    with _store(arguments) as store:
        if arguments.remove:
            store.mend()
        faults = store.verify()
        lines = [f"{printable(fault.key)}: {fault.problem}" for fault in faults]
        if not faults:
            redacted = sum(bool(entry.redacted) for entry in store)
            unseen = f"; {redacted:,} redacted, which are checked where they are used" if redacted else ""
            return [f"{store.folder}: {counted(store.count(), 'entry')}, all sound{unseen}"]
        if arguments.remove:
            store.remove(faults)
            return [*lines, f"{store.folder}: removed {counted(len(faults), 'entry')}"]
        raise CacheError("\n".join([*lines, f"{store.folder}: {len(faults)} unsound; --remove drops them"]))


def _cassette(file: Path) -> Cassette:
    if not exists(file):
        raise CacheError(f"{file}: there is no such cassette")
    return Cassette(file)


def _verify_cassette(file: Path) -> list[str]:
    cassette = _cassette(file)
    count, faults = cassette.verify()
    if faults:
        to_do = "take the file as it was committed, or delete these lines: they are recorded again"
        raise CacheError("\n".join([*map(str, faults), f"{file}: {len(faults)} unsound; {to_do}"]))
    bare = sum(not entry.digest for entry in cassette.entries.values())
    unseen = f"; {bare:,} without a digest: of these an edited reply is not seen" if bare else ""
    return [f"{file}: {counted(count, 'entry')}, all sound{unseen}"]


@run.add_command
@command("prune")
@option("--older-than AGE", Checked(read_age), "such as 12h, 30d or 8w", required=True)
def _prune(arguments: Arguments) -> list[str]:
    """Remove entries older than an age."""
    with _store(arguments) as store:
        try:
            limit = datetime.now(timezone.utc) - arguments.older_than
        except OverflowError:
            limit = datetime.min.replace(tzinfo=timezone.utc)
        dropped = store.prune(limit)
        return [f"{store.folder}: dropped {counted(dropped, 'entry')}, kept {store.count()}"]


@run.add_command
@command("export")
@argument("file FILE", "the cassette")
def _export(arguments: Arguments) -> list[str]:
    """Write all entries into a cassette."""
    with _store(arguments) as store:
        file, entries = arguments.file, {entry.key: entry for entry in store}
        if faults := [f"{key}: {problem}" for key, entry in entries.items() if (problem := entry.problem())]:
            to_do = "`ragmetrics cache verify --remove` drops what is unsound"
            raise CacheError("\n".join([*faults, f"{file}: NOT written; {to_do}"]))
        saved = Cassette(file).save(entries, complete=True)
        if saved.refused:
            written = f"{file}: written without them, {counted(saved.entries, 'entry')}"
            raise CacheError("\n".join([*map(str, saved.refused), written]))
        return [f"{file}: {counted(saved.entries, 'entry')}"]


@run.add_command
@command("import")
@argument("files FILE...", "the cassettes")
def _import(arguments: Arguments) -> list[str]:
    """Add the entries of cassettes."""
    with _store(arguments, made=True) as store:
        lines = []
        for file in arguments.files:
            entries = _cassette(file).entries
            kept = store.get_many(tuple(entries))
            # The later of two entries with one key is kept.
            news = [entry for key, entry in entries.items() if key not in kept or entry.made_at > kept[key].made_at]
            store.put_many(news)
            lines.append(f"{file}: took {len(news)} of {counted(len(entries), 'entry')}")
        return lines


@run.add_command
@command("clear")
def _clear(arguments: Arguments) -> list[str]:
    """Remove everything."""
    with _store(arguments) as store:
        return [f"{store.folder}: dropped {counted(store.clear(), 'entry')}"]


def folder_findings(folder: Path, mounts: Path = MOUNTS) -> Iterator[tuple[str, str]]:
    """Yield whether the folder of a cache can be used, which is not created, and the remedy."""
    there = next(place for place in (folder, *folder.parents) if os.path.exists(place))  # noqa: PTH110 - never raises
    kind = _file_system(there, mounts)
    if _NETWORK.match(kind):
        text = f"{there} is on a network file system ({kind}), where SQLite is not safe"
        to_do = "name a folder of this machine with --rag-cache-dir=DIR, and share answers as a cassette"
        yield text, to_do
    yield _state(folder, there)


def _state(folder: Path, there: Path) -> tuple[str, str]:
    """Return the state of the cache in a folder, of which ``there`` is what exists, and the remedy."""
    if not there.is_dir():
        return f"{folder}: {'it' if there == folder else there} is not a folder", _OTHER
    is_own = not hasattr(os, "geteuid") or there.stat().st_uid == os.geteuid()
    owner = "" if is_own else " (it belongs to another account)"
    try:
        exists(folder)
        # Access rights do not show a read-only file system.
        with TemporaryFile(dir=there):
            pass
    except OSError as error:
        return f"{folder} cannot be written{owner}: {error.strerror}", _OTHER
    if there != folder:
        return f"{folder} will be made when the first answer is kept", ""
    try:
        with Store(folder) as store:
            if problem := store.damage():
                return f"{store.database}: {problem}", "the next run moves it aside, and asks all anew"
            contents = store.contents() if store.exists() else None
    except CacheError as error:
        return str(error), f"delete the folder, or {_OTHER}"
    if contents is None:
        return f"{folder}: empty{owner}", ""
    return f"{folder}: {counted(contents.entries, 'answer')}, {contents.size / 1024:,.0f} KiB{owner}", ""


def _file_system(folder: Path, mounts: Path) -> str:
    """Return the kind of the file system that a folder is on, by the list of mounts, which only Linux has."""
    found, here = [(0, "")], folder.resolve()
    with suppress(OSError):
        for line in filter(str.strip, mounts.read_text("utf-8", "replace").splitlines()):
            _, name, kind, *_ = line.split()
            point = Path(name.replace("\\040", " "))
            if here.is_relative_to(point):
                found.append((len(point.parts), kind))
    return max(found)[1]
