"""Folders where nothing can be changed, whoever runs the tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pytest_ragmetrics.cache.entry import CacheEntry
from pytest_ragmetrics.cache.store import Store

_NOBODY = 65534


@contextmanager
def read_only(*entries: CacheEntry) -> Iterator[Path]:
    """Yield a folder with entries, closed to changes; root, who may change all, is nobody meanwhile."""

    def fill(folder: Path) -> None:
        with Store(folder) as store:
            store.put_many(entries)

    with _closed(fill) as folder:
        yield folder


@contextmanager
def closed(files: Mapping[str, str]) -> Iterator[Path]:
    """Yield a folder with files by their names, closed to changes like that of :func:`read_only`."""

    def fill(folder: Path) -> None:
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")

    with _closed(fill) as folder:
        yield folder


@contextmanager
def _closed(fill: Callable[[Path], None]) -> Iterator[Path]:
    is_root = os.geteuid() == 0
    # Nobody can enter the folders that pytest makes for root.
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "closed")
        fill(folder)
        folders = [Path(place), *(path for path in Path(place).rglob("*") if path.is_dir())]
        if is_root:
            for path in (Path(place), *Path(place).rglob("*")):
                os.chown(path, _NOBODY, -1)
            os.setresuid(_NOBODY, _NOBODY, 0)
        try:
            for path in folders:
                path.chmod(0o500)
            yield folder
        finally:
            for path in folders:
                path.chmod(0o700)
            if is_root:
                os.setresuid(0, 0, 0)
