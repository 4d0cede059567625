"""Whether answers can be kept and replayed: the folder of the cache, and the cassette."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import CacheError
from pytest_ragmetrics.cache.key import EMBEDDING
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.diagnosis.sign import Sign

MOUNTS = Path("/proc/self/mounts")
_NETWORK = re.compile(r"(?:nfs|cifs|smb|9p|afs|ceph|gluster|lustre|fuse\.(?:sshfs|s3fs|gcsfuse))")
_OTHER = "name another with --rag-cache-dir=DIR, or run with --rag-cache=off"


def cache_signs(folder: Path, mounts: Path = MOUNTS) -> Iterator[Sign]:
    """Yield whether the folder of the cache can be used; it is not made."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    problem = _problem(folder, there)
    if problem is not None:
        yield Sign(topic="cache", text=problem, to_do=_OTHER)
        return
    yield from _network_signs(there, mounts)
    if there != folder:
        yield Sign(topic="cache", text=f"{folder} will be made when the first answer is kept")
        return
    try:
        with Store(folder) as store:
            held = store.contents() if store.exists() else None
    except CacheError as error:
        yield Sign(topic="cache", text=str(error), to_do=f"delete the folder, or {_OTHER}")
        return
    what = "empty" if held is None else f"{held.entries:,} answers, {held.size / 1024:,.0f} KiB"
    yield Sign(topic="cache", text=f"{folder}: {what}{_owner(folder)}")


def cassette_signs(file: Path, spec: str, *, needed: bool) -> Iterator[Sign]:
    """Yield whether a cassette, which may be ``needed``, can be read and holds answers of the judge of a spec."""
    if not file.exists() and not needed:
        yield Sign(topic="cassette", text=f"{file} will be recorded by the first run that asks a judge")
        return
    if not file.exists():
        yield Sign(
            topic="cassette",
            text=f"{file} does not exist",
            to_do="run pytest once with a key to record it, and commit it",
        )
        return
    try:
        entries = Cassette(file).entries.values()
    except CacheError as error:
        to_do = "take the file as it was committed, or delete that line: it is recorded again"
        yield Sign(topic="cassette", text=str(error), to_do=to_do)
        return
    judged = [entry for entry in entries if entry.task != EMBEDDING]
    counts = Counter(_model(entry.request["kind"], entry.request["model"]) for entry in judged)
    held = ", ".join(f"{count:,} answers of {model}" for model, count in sorted(counts.items()))
    text = f"{file}: {held or 'no answers'}, {len(entries) - len(judged):,} vectors"
    named = spec not in ("auto", "local") and bool(counts) and spec not in counts
    to_do = f"replay with the judge that was recorded, or run pytest without --rag-cache=replay to record {spec}"
    yield Sign(topic="cassette", text=text, to_do=to_do if named else "")


def _model(kind: str, model: str) -> str:
    return model if kind == "custom" else f"{kind}:{model}"


def _problem(folder: Path, there: Path) -> str | None:
    """Return why nothing can be kept in a folder, of which ``there`` is the part that exists."""
    if not there.is_dir():
        return f"{folder}: {there} is not a folder"
    try:
        # What access rights say is not what a read-only file system does.
        with tempfile.TemporaryFile(dir=there):
            return None
    except OSError as error:
        return f"{folder} cannot be written{_owner(there)}: {error.strerror}"


def _owner(folder: Path) -> str:
    """Return a remark about a folder of another account."""
    is_own = not hasattr(os, "geteuid") or folder.stat().st_uid == os.geteuid()
    return "" if is_own else " (it belongs to another account)"


def _network_signs(there: Path, mounts: Path) -> Iterator[Sign]:
    """Yield a sign where the list of mounts says that the folder is one of another machine."""
    try:
        rows = [line.split() for line in mounts.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return
    points = [(Path(point.replace("\\040", " ")), kind) for _, point, kind, *_ in rows]
    here = there.resolve()
    below = [(len(point.parts), kind) for point, kind in points if here.is_relative_to(point)]
    kind = max(below, default=(0, ""))[1]
    if _NETWORK.match(kind):
        yield Sign(
            topic="cache",
            text=f"{there} is on a network file system ({kind}), where SQLite is not safe",
            to_do="name a folder of this machine with --rag-cache-dir=DIR, and share answers as a cassette",
        )
