"""Reading the file of a data set: which kind it is, and its bytes as text."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_ragmetrics.datasets.csv_rows import read_csv
from pytest_ragmetrics.datasets.json_rows import read_json, read_jsonl
from pytest_ragmetrics.datasets.row import Raw
from pytest_ragmetrics.errors import DatasetError

KINDS: Mapping[str, Callable[[str, str], Sequence[Raw]]] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".json": read_json,
    ".csv": read_csv,
}
_GZIP = b"\x1f\x8b"


def read_file(path: Path, file: str) -> Sequence[Raw]:
    """Return the rows of a file, which messages call ``file``; raise ``DatasetError`` when it cannot be read."""
    name = path.name.lower()
    packed = name.endswith(".gz")
    kind = KINDS.get(Path(name.removesuffix(".gz")).suffix)
    if kind is None:
        msg = f"a data set is a file that ends in {', '.join(KINDS)} (or these with .gz)"
        raise DatasetError(msg, file=file)
    data = _bytes(path, file)
    return kind(_text(_unpacked(data, file) if packed else data, file), file)


def _bytes(path: Path, file: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        msg = "there is no such file; in a test a relative path starts at the folder of the test file"
        raise DatasetError(msg, file=file) from error
    except (OSError, ValueError) as error:
        msg = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise DatasetError(msg, file=file) from error


def _unpacked(data: bytes, file: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        msg = f"ends in .gz and cannot be unpacked: {error}"
        raise DatasetError(msg, file=file) from error


def _text(data: bytes, file: str) -> str:
    if data.startswith(_GZIP):
        msg = "is packed by gzip: let its name end in .gz"
        raise DatasetError(msg, file=file)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:4]:
        msg = "is UTF-16 or UTF-32: save it as UTF-8"
        raise DatasetError(msg, file=file, line=1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        msg = f"byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        raise DatasetError(msg, file=file, line=line) from error
