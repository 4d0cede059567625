"""What several commands take, and how it is read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pytest_ragmetrics import paths

T = TypeVar("T")


def checked(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return the reader of an argument that says what is wrong with it, out of one that raises ``ValueError``."""

    def read(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


def writable_file(text: str) -> Path:
    """Return the path of a file to write; raise ``ValueError`` where none can be."""
    return paths.writable_file(text, Path.cwd())


@contextmanager
def local_modules() -> Iterator[None]:
    """Find the modules of the current folder, as ``python -m`` does: a spec may be ``MODULE:FACTORY``."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
