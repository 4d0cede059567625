"""The settings file of pytest, found and read without pytest, for ``init`` and ``doctor``."""

from __future__ import annotations

import configparser
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from pytest_ragmetrics.core.errors import RagMetricsError

_SECTIONS = {"tox.ini": "pytest", "setup.cfg": "tool:pytest"}
# The first pytest with native TOML settings.
_NATIVE = 9


class IniFileError(RagMetricsError):
    """A settings file cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IniFile:
    """A settings file of pytest, the ``section`` with the settings and its ``values`` by key."""

    path: Path
    section: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_toml(self) -> bool:
        """Whether values need quotation marks."""
        return self.path.suffix == ".toml"

    def text(self, key: str) -> str:
        """Return a setting as text: a list joined with spaces, a missing one empty."""
        value = self.values.get(key, "")
        return " ".join(map(str, value)) if isinstance(value, list) else str(value).strip()


def find_ini_file(folder: Path) -> IniFile | None:
    """Return the settings file that pytest uses when started in a folder.

    Raises :class:`IniFileError` for a file that cannot be read.
    """
    places = (folder, *folder.parents)
    return next((found for place in places for found in _in_folder(place)), None)


def read_ini_file(path: Path, text: str) -> IniFile | None:
    """Return the settings in the text of a file, ``None`` if pytest would not use the file."""
    try:
        return _from_toml(path, text) if path.suffix == ".toml" else _from_ini(path, text)
    except (ValueError, configparser.Error) as error:
        raise IniFileError(f"{path}: {' '.join(str(error).split())}") from error


def _in_folder(folder: Path) -> Iterator[IniFile]:
    native = ("pytest.toml", ".pytest.toml") if _native() else ()
    for name in (*native, "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"):
        path = folder / name
        if path.is_file():
            try:
                text = path.read_bytes().decode("utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                raise IniFileError(f"{path}: {error}") from error
            found = read_ini_file(path, text)
            if found is not None:
                yield found


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
    # Whether the installed pytest reads native TOML settings.
    found = re.match(r"\d+", metadata.version("pytest"))
    return found is not None and int(found[0]) >= _NATIVE
