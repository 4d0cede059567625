"""Whether Python, pytest and the plugin fit together, and the plugin is loaded once."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from pytest_ragmetrics.diagnosis.sign import Sign
from pytest_ragmetrics.files.ini_file import IniFile

PLUGIN = "ragmetrics"
MODULE = "pytest_ragmetrics.plugin"
_GROUP = "pytest11"
_OLDEST_PYTEST = (8, 4)
_NAMED_MODULE = re.compile(rf"-p[ =]?{re.escape(MODULE)}\b")
_SWITCHED_OFF = re.compile(rf"-p[ =]?no:{PLUGIN}\b")
_NAMED = re.compile(rf"-p[ =]?{PLUGIN}\b")
_IN_CONFTEST = re.compile(rf"^pytest_plugins\b[^\n]*(?:\n[^\n\]\)]*)*?[\"']{re.escape(MODULE)}[\"']", re.MULTILINE)


def version_signs() -> Iterator[Sign]:
    """Yield the versions that matter."""
    named = [f"{name} {_version(name)}" for name in ("pytest", "pytest-ragmetrics", "openai")]
    old = tuple(map(int, re.findall(r"\d+", _version("pytest"))[:2])) < _OLDEST_PYTEST
    to_do = 'run: python -m pip install "pytest>=8.4"' if old else ""
    yield Sign(topic="versions", text=", ".join([f"Python {platform.python_version()}", *named]), to_do=to_do)


def plugin_signs(ini: IniFile | None, folder: Path) -> Iterator[Sign]:
    """Yield whether pytest, started in a folder, loads the plugin, and once."""
    twice = "leave it out: pytest finds the plugin by itself, and the other way to load it is -p ragmetrics"
    registered = [point for point in metadata.entry_points(group=_GROUP) if MODULE in (point.value, point.module)]
    options = {"addopts": ini.text("addopts") if ini else "", "PYTEST_ADDOPTS": os.environ.get("PYTEST_ADDOPTS", "")}
    faults = list(_faults(options, folder, twice))
    if not [point for point in registered if point.name == PLUGIN]:
        faults.append(_sign("the plugin is not installed", 'run: python -m pip install "pytest-ragmetrics"'))
    if _is_twice(registered):
        faults.append(_sign("the plugin is installed twice", "uninstall all of pytest-ragmetrics, and install it once"))
    if _not_loaded(options):
        faults.append(
            _sign(
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD is set, and nothing loads the plugin",
                f"add -p {PLUGIN} to the addopts of pytest",
            )
        )
    yield from faults or [Sign(topic="plugin", text=f"loaded by pytest as {PLUGIN}")]


def _faults(options: dict[str, str], folder: Path, twice: str) -> Iterator[Sign]:
    for place, text in options.items():
        if _SWITCHED_OFF.search(text):
            yield _sign(f"{place} switches the plugin off", f"take -p no:{PLUGIN} out of it")
        if _NAMED_MODULE.search(text):
            yield _sign(f"{place} loads {MODULE} by its module, a second time", twice)
    if MODULE in re.split(r"[,\s]+", os.environ.get("PYTEST_PLUGINS", "")):
        yield _sign(f"PYTEST_PLUGINS loads {MODULE} by its module, a second time", twice)
    conftest = folder / "conftest.py"
    if conftest.is_file() and _IN_CONFTEST.search(conftest.read_text("utf-8", "replace")):
        yield _sign(f"pytest_plugins in {conftest} loads {MODULE} by its module, a second time", twice)


def _is_twice(registered: Sequence[metadata.EntryPoint]) -> bool:
    # One distribution may be seen in two places of the path: pytest takes it once.
    homes = {(point.dist.name if point.dist else "", point.name) for point in registered}
    return len(homes) > 1


def _not_loaded(options: dict[str, str]) -> bool:
    return bool(os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")) and not any(map(_NAMED.search, options.values()))


def _sign(text: str, to_do: str) -> Sign:
    return Sign(topic="plugin", text=text, to_do=to_do)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "(not installed)"
