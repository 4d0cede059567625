"""Imports point down the floors of the house, and start-up stays light."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_ragmetrics

PACKAGE = Path(pytest_ragmetrics.__file__).parent
#: From the top down; a module may import those of its own floor and of the floors below.
FLOORS = (
    {"plugin", "cli", "commands", "settings", "run", "hookspec", "diagnosis", ""},
    {"assertions", "run_ahead", "gates", "generating", "report"},
    {"evaluation", "calibration", "explain", "engine", "dry_run", "probes"},
    {"metrics"},
    {"judges", "embedders", "cache", "budget"},
    {"stats", "text", "datasets", "interop"},
    {"sample", "messages", "result", "errors", "session", "loop", "files", "exchanges", "progress"},
)
#: The modules that may know pytest; the rest works without a session.
KNOW_PYTEST = {
    "plugin",
    "settings",
    "run.cassette",
    "run.markers",
    "run.running",
    "run.leavings",
    "run.observers",
    "hookspec",
    "run.rows",
    "gates.keeper",
    "run_ahead.marker",
    "run_ahead.progress",
    "run_ahead.suite",
    "run_ahead.wire",
    "report.junit",
    "report.terminal",
}

MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def floor_of(module: str) -> int:
    """Return the number of a module's floor, counted from the top."""
    top = module.partition(".")[0]
    return next(number for number, floor in enumerate(FLOORS) if top in floor)


def imports(tree: ast.AST, *, top_only: bool = False) -> Iterator[str]:
    """Yield the names of imported modules, those for type checkers left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not (top_only and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
            yield from imports(node, top_only=top_only)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    """No module imports one of a floor above its own, not even inside a function."""
    inside = (name for name in imports(ast.parse(MODULES[module].read_text("utf-8"))) if name.startswith("pytest_rag"))
    wrong = [name for name in inside if floor_of(name.partition(".")[2]) < floor_of(module) and name.partition(".")[2]]
    assert not wrong


@pytest.mark.parametrize("module", MODULES)
def test_third_party_imports_stand_where_they_are_used(module: str) -> None:
    """At the top of a module only the standard library is imported, and pytest where pytest is the subject."""
    allowed = {"pytest_ragmetrics", *sys.stdlib_module_names} | ({"pytest"} if module in KNOW_PYTEST else set())
    tops = {name.split(".")[0] for name in imports(ast.parse(MODULES[module].read_text("utf-8")), top_only=True)}
    assert tops <= allowed


@pytest.mark.parametrize("module", MODULES)
def test_only_the_plugin_side_knows_pytest(module: str) -> None:
    """The package scores without a pytest session: no other module imports pytest anywhere."""
    used = {name.split(".")[0] for name in imports(ast.parse(MODULES[module].read_text("utf-8")))}
    assert module in KNOW_PYTEST or "pytest" not in used
    assert "_pytest" not in used


@pytest.mark.parametrize("module", MODULES)
def test_there_is_no_bare_assert(module: str) -> None:
    """Without rewriting, or under -O, an assert statement in the package would say nothing or do nothing."""
    assert not [
        node for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))) if isinstance(node, ast.Assert)
    ]


def star_import() -> dict[str, Any]:
    """Return what a star import brings: the list of names is made when it is asked for."""
    found: dict[str, Any] = {}
    exec("from pytest_ragmetrics import *", found)  # noqa: S102 - in a function there is no other way
    del found["__builtins__"]
    return found


def test_every_public_name_is_there() -> None:
    """What the package lists it has, what it lacks it says, and dir() shows the names before they are loaded."""
    public = star_import()
    assert {"assert_faithful", "rag_calibrated", "Sample", "metric"} <= set(public)
    for name, value in public.items():
        assert value is getattr(pytest_ragmetrics, name)
        assert value.__name__ == name
    assert set(public) <= set(dir(pytest_ragmetrics))
    with pytest.raises(AttributeError, match="has no attribute 'assert_wonderful'"):
        pytest_ragmetrics.assert_wonderful  # type: ignore[attr-defined]  # noqa: B018 - mypy is to know it, too


def test_type_checkers_see_every_public_name() -> None:
    """The names looked up late are the names imported for type checkers."""
    tree = ast.parse(MODULES[""].read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (node.module, alias.name) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    homes = pytest_ragmetrics._HOMES.items()
    assert seen == {
        ("pytest_ragmetrics.assertions", "*"),
        *((f"pytest_ragmetrics.{home}", name) for home, names in homes for name in names),
    }
