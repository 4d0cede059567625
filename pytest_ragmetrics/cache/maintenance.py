"""The actions of `ragmetrics cache` on the local store; each returns the lines to print."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import CacheError
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.text.characters import printable

FOLDER = ".ragmetrics"
VARIABLE = "RAGMETRICS_CACHE_DIR"

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def default_folder() -> Path:
    """Return the folder named in the environment, else the nearest ``.ragmetrics`` here or above, else one here."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    here = Path.cwd()
    return next((place / FOLDER for place in (here, *here.parents) if (place / FOLDER).is_dir()), here / FOLDER)


def read_age(text: str) -> timedelta:
    """Return the length of time in ``90m``, ``12h``, ``30d`` or ``8w``; raise ``ValueError`` for anything else.

    >>> read_age("30d").days
    30
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdigit()):
        msg = f"{text!r} is not a length of time such as 90m, 12h, 30d or 8w"
        raise ValueError(msg)
    try:
        return timedelta(**{_UNITS[unit]: int(number)})
    except OverflowError as error:
        msg = f"{text!r} is longer than can be counted"
        raise ValueError(msg) from error


def describe(store: Store) -> list[str]:
    """Return figures about the store."""
    contents = _existing(store).contents()
    kib = contents.size / 1024
    size = f"{kib:,.0f} KiB" if kib < 1024 else f"{kib / 1024:,.1f} MiB"  # noqa: PLR2004 - KiB in a MiB
    lines = [f"{store.folder}: {_entries(contents.entries)}, {size}"]
    if contents.oldest and contents.newest:
        tokens = f"{contents.prompt_tokens:,} prompt and {contents.completion_tokens:,} completion tokens"
        lines.append(f"made {contents.oldest:%Y-%m-%d} to {contents.newest:%Y-%m-%d}, for {tokens}")
        width = max(len(task) for task, _ in contents.kinds)
        lines += [f"  {task:<{width}}  {model}  {count:,}" for (task, model), count in contents.kinds.items()]
    return lines


def verify(store: Store, *, remove: bool = False) -> list[str]:
    """Check the database and every entry; raise :class:`CacheError` naming what is wrong, unless it is removed."""
    faults = _existing(store).verify()
    lines = [f"{printable(fault.key)}: {fault.problem}" for fault in faults]
    if not faults:
        return [f"{store.folder}: {_entries(store.count())}, all sound"]
    if remove:
        store.remove(faults)
        return [*lines, f"{store.folder}: removed {_entries(len(faults))}"]
    msg = "\n".join([*lines, f"{store.folder}: {len(faults)} unsound; --remove drops them"])
    raise CacheError(msg)


def prune(store: Store, age: timedelta) -> list[str]:
    """Delete the entries older than ``age``."""
    try:
        limit = datetime.now(timezone.utc) - age
    except OverflowError:
        limit = datetime.min.replace(tzinfo=timezone.utc)
    dropped = _existing(store).prune(limit)
    return [f"{store.folder}: dropped {_entries(dropped)}, kept {store.count()}"]


def clear(store: Store) -> list[str]:
    """Delete all entries."""
    return [f"{store.folder}: dropped {_entries(_existing(store).clear())}"]


def export(store: Store, file: Path) -> list[str]:
    """Write all entries to a cassette, replacing its content; raise if one seems to contain a secret."""
    entries = {entry.key: entry for entry in _existing(store)}
    saved = Cassette(file).save(entries, complete=True)
    if saved.refused:
        msg = "\n".join([*map(str, saved.refused), f"{file}: written without them, {_entries(saved.entries)}"])
        raise CacheError(msg)
    return [f"{file}: {_entries(saved.entries)}"]


def import_(store: Store, files: Sequence[Path]) -> list[str]:
    """Add the entries of cassettes; of two with the same key the later one is kept."""
    lines = []
    for file in files:
        if not file.exists():
            msg = f"{file}: there is no such cassette"
            raise CacheError(msg)
        entries = Cassette(file).entries
        kept = store.get_many(tuple(entries))
        news = [entry for key, entry in entries.items() if key not in kept or entry.made_at > kept[key].made_at]
        store.put_many(news)
        lines.append(f"{file}: took {len(news)} of {_entries(len(entries))}")
    return lines


def _existing(store: Store) -> Store:
    if not store.exists():
        msg = f"{store.folder}: there is no cache"
        raise CacheError(msg)
    return store


def _entries(count: int) -> str:
    return f"{count:,} {'entry' if count == 1 else 'entries'}"
