"""The file that pytest takes its settings from, found and read without pytest."""

from __future__ import annotations

import configparser
import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NoReturn

from pytest_ragmetrics.errors import RagMetricsError

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def read_json(file: Path) -> Any:
    """Return what a file of JSON holds, in UTF-8 with or without a byte order mark.

    Raises ``OSError`` where it cannot be read, and ``ValueError`` for what is no JSON: NaN is none either.
    """
    try:
        return json.loads(file.read_bytes().decode("utf-8-sig"), parse_constant=_refuse_constant)
    except RecursionError as error:
        msg = "it is nested too deeply"
        raise ValueError(msg) from error


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is no JSON number"
    raise ValueError(msg)


_STREAMS = (Path("/dev"), Path("/dev/fd"))


def write_atomically(file: Path, text: str) -> None:
    """Write a file as UTF-8 so that readers see the old content or the new, never a part; raises ``OSError``.

    Folders on the way are made. A file that is replaced keeps its mode, a new one is as public as any of the user's.
    What is no file, a device or a pipe, is written to as it is.
    """
    if _is_stream(file):
        with file.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        if file.exists():
            part.chmod(stat.S_IMODE(file.stat().st_mode))
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _is_stream(file: Path) -> bool:
    # /dev/stdout is a file where the output goes into one, and must not be replaced all the same.
    return file.parent in _STREAMS or (file.exists() and not (file.is_file() or file.is_dir()))


#: Names the file that GitHub Actions shows beside a job; it is added to, never replaced.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def a_path(text: str, base: Path) -> Path:
    """Return the path."""
    # abspath and not resolve(): a link is to be replaced or followed by whoever opens it, not here.
    return Path(os.path.abspath(base / Path(text.strip()).expanduser()))  # noqa: PTH100 - as above


def prompt_folder(text: str, base: Path) -> Path:
    """Return the path of a folder, which must be there."""
    path = a_path(text, base)
    if not path.is_dir():
        msg = f"{text.strip()!r} is not a folder: name one that holds TASK.md files"
        raise ValueError(msg)
    return path


def html_file(text: str, base: Path) -> Path:
    """Return the path of a page to write."""
    if not text.endswith(".html"):
        msg = f"{text!r} is not a *.html file: write --rag-report=FILE.html, or --rag-report after the test paths"
        raise ValueError(msg)
    return writable_file(text, base)


def markdown_file(text: str, base: Path) -> Path:
    """Return the path of a table to write; ``auto`` is the step summary of GitHub Actions."""
    if text.strip() != "auto":
        return writable_file(text, base)
    named = os.environ.get(STEP_SUMMARY, "").strip()
    if not named:
        msg = f"'auto' is the step summary of GitHub Actions, and {STEP_SUMMARY} is not set: name a file"
        raise ValueError(msg)
    return writable_file(named, base)


def existing_file(text: str, base: Path) -> Path:
    """Return the path of a file to read, which must be there."""
    path = a_file(text, base)
    if not path.exists():
        msg = f"{text.strip()!r} does not exist: write it first, with --rag-json={text.strip()}"
        raise ValueError(msg)
    return path


def writable_file(text: str, base: Path) -> Path:
    """Return the path of a file to write, where one can be made."""
    path = a_file(text, base)
    if path.suffix == ".py":
        msg = f"{text.strip()!r} is a file of Python: name one to write, and test paths without the option"
        raise ValueError(msg)
    if path.exists() and not path.is_file():
        return path  # a device or a pipe, in a folder where nothing may be made
    folder = next(parent for parent in path.parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        msg = f"{text!r} cannot be written: no file can be made in {str(folder)!r}"
        raise ValueError(msg)
    return path


def a_file(text: str, base: Path) -> Path:
    """Return the path of a file, which need not be there."""
    path = a_path(text, base)
    if not text.strip() or path.is_dir():
        msg = f"{text!r} is {'a folder' if text.strip() else 'no file name'}: name a file"
        raise ValueError(msg)
    return path


def portable(value: str | Path, root: Path) -> str:
    """Return a path, or a spec such as ``KIND:FOLDER``, as it reads on every machine.

    A path inside the root starts there, of one outside only the name is left; any other text stays as it is.

    >>> portable(Path("/home/me/shop/tests/judge.jsonl"), Path("/home/me/shop")), portable("openai:gpt-5", Path("/"))
    ('tests/judge.jsonl', 'openai:gpt-5')
    """
    if isinstance(value, str):
        kind, colon, rest = value.partition(":")
        return f"{kind}:{portable(Path(rest), root)}" if colon and Path(rest).is_absolute() else value
    return value.relative_to(root).as_posix() if value.is_relative_to(root) else value.name


_SECTIONS = {"tox.ini": "pytest", "setup.cfg": "tool:pytest"}
# The first pytest that has settings in TOML of its own.
_NATIVE = 9


class IniFileError(RagMetricsError):
    """A file of settings cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IniFile:
    """A file with settings of pytest: the ``section`` where they stand, and its ``values`` by key."""

    path: Path
    section: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_toml(self) -> bool:
        """Whether values are written in quotation marks."""
        return self.path.suffix == ".toml"

    def text(self, key: str) -> str:
        """Return the text of a setting; several are put together with blanks, and one that is not there is empty."""
        value = self.values.get(key, "")
        return " ".join(map(str, value)) if isinstance(value, list) else str(value).strip()


def find_ini_file(folder: Path) -> IniFile | None:
    """Return the file that pytest, started in a folder, takes its settings from; ``None`` if there is none.

    Raises :class:`IniFileError` for a file that cannot be read.
    """
    places = (folder, *folder.parents)
    return next((found for place in places for found in _in_folder(place)), None)


def read_ini_file(path: Path, text: str) -> IniFile | None:
    """Return a text as the file of settings that pytest reads from a path, ``None`` if it holds none."""
    try:
        return _from_toml(path, text) if path.suffix == ".toml" else _from_ini(path, text)
    except (ValueError, configparser.Error) as error:
        msg = f"{path}: {' '.join(str(error).split())}"
        raise IniFileError(msg) from error


def _in_folder(folder: Path) -> Iterator[IniFile]:
    native = ("pytest.toml", ".pytest.toml") if _native() else ()
    for name in (*native, "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"):
        path = folder / name
        if path.is_file():
            found = read_ini_file(path, _content(path))
            if found is not None:
                yield found


def _content(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: {error}"
        raise IniFileError(msg) from error


def _from_ini(path: Path, text: str) -> IniFile | None:
    parser = configparser.ConfigParser(interpolation=None, strict=False, default_section="\0")
    parser.read_string(text)
    section = _SECTIONS.get(path.name, "pytest")
    if section in parser:
        return IniFile(path=path, section=section, values=dict(parser[section]))
    return None if path.name in _SECTIONS else IniFile(path=path, section=section)


def _from_toml(path: Path, text: str) -> IniFile | None:
    document = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)
    if path.name != "pyproject.toml":
        return IniFile(path=path, section="pytest", values=document.get("pytest", {}))
    tables = document.get("tool", {}).get("pytest", {})
    if "ini_options" in tables:
        return IniFile(path=path, section="tool.pytest.ini_options", values=tables["ini_options"])
    return IniFile(path=path, section="tool.pytest", values=tables) if tables and _native() else None


def _native() -> bool:
    """Say whether the pytest that is installed has settings in TOML of its own."""
    found = re.match(r"\d+", metadata.version("pytest"))
    return found is not None and int(found[0]) >= _NATIVE
