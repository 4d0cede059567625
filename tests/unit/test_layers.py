"""Imports point down the rooms, and start-up stays light."""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pytest_ragmetrics
from pytest_ragmetrics import metrics
from pytest_ragmetrics.metrics.registry import built_in_metrics

PACKAGE = Path(pytest_ragmetrics.__file__).parent
#: From the top down: a module imports from its own room and those below.
ROOMS = (
    *("cli", "plugin", "report", "evaluation", "metrics", "runs"),
    *("cache", "judges", "datasets", "stats", "text", "core"),
)
#: What stands beside them.
OTHERS = {"__init__.py", "__init__.pyi", "__main__.py", "py.typed", "docs"}


@cache
def trees() -> dict[str, ast.Module]:
    gc.disable()  # A tree has thousands of nodes, and they stay: going through them takes twice as long as parsing.
    try:
        names = {path: ".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}
        parsed = {name: ast.parse(path.read_text("utf-8")) for path, name in names.items()}
        return {name.removesuffix("__init__").rstrip("."): tree for name, tree in parsed.items()}
    finally:
        gc.enable()


def below(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements inside of a node, at any depth; imports are statements, and most nodes are expressions."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            yield child
            yield from below(child)


@cache
def statements(module: str) -> tuple[ast.AST, ...]:
    return tuple(below(trees()[module]))


@cache
def imports(module: str) -> frozenset[str]:
    return frozenset(names_of(statements(module)))


def names_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the modules that are named by those nodes that are imports."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name.removeprefix("pytest_ragmetrics.") in trees() else node.module


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements that importing a module runs, outside of functions and of what is for type checkers."""
    for child in ast.iter_child_nodes(node):
        checked = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if isinstance(child, ast.stmt) and not checked:
            yield child
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from at_import(child)
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from at_import(child)


def own_imports(module: str) -> set[str]:
    names = (name for name in imports(module) if name.partition(".")[0] == "pytest_ragmetrics")
    return {name.partition(".")[2] for name in names} - {module}


def room_of(module: str) -> int:
    room = module.partition(".")[0]
    return ROOMS.index(room) if room in ROOMS else -1


def test_there_is_nothing_but_rooms() -> None:
    assert {path.name for path in PACKAGE.iterdir()} - {"__pycache__"} == {*ROOMS, *OTHERS}


def test_imports_point_down() -> None:
    graph = {module: own_imports(module) for module in trees() if module}
    # Raises CycleError, which names the modules of a circle.
    TopologicalSorter(graph).prepare()
    pairs = [(module, imported) for module, found in graph.items() for imported in found if imported]
    assert not [(module, imported) for module, imported in pairs if room_of(imported) < room_of(module)]


def test_every_module_keeps_to_its_side() -> None:
    for module, tree in trees().items():
        # All else works without a session, and without a command.
        side = {"plugin": {"pytest"}, "cli": {"click"}}.get(module.partition(".")[0], set())
        tops = {name.split(".")[0] for name in names_of(at_import(tree))}
        assert tops <= {"pytest_ragmetrics", *sys.stdlib_module_names} | side, module
        used = {name.split(".")[0] for name in imports(module)}
        assert not {"pytest", "_pytest"} & used - side, module
        assert not [node for node in statements(module) if isinstance(node, ast.Assert)], module


def test_every_public_name_is_there() -> None:
    public: dict[str, Any] = {}
    exec("from pytest_ragmetrics import *", public)
    del public["__builtins__"]
    assert {"assert_faithful", "rag_calibrated", "Sample", "metric"} <= set(public)
    for name, value in public.items():
        assert value is getattr(pytest_ragmetrics, name)
        assert value.__name__ == name
    assert set(public) <= set(dir(pytest_ragmetrics))


@pytest.mark.parametrize("package", [pytest_ragmetrics, metrics])
def test_type_checkers_see_every_public_name(package: ModuleType) -> None:
    stub = ast.parse(Path(package.__file__ or "").with_suffix(".pyi").read_text("utf-8"))
    imports = [(node, alias) for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    seen = {alias.name: node.module for node, alias in imports if alias.asname}
    made = [node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    seen |= {name: getattr(package, name).__module__ for name in made}
    assert seen == package._MODULE_OF
    assert sorted(seen) == sorted(package.__all__)


def test_every_metric_and_helper_is_public() -> None:
    for kind in built_in_metrics():
        assert getattr(metrics, kind.__name__) is kind
        assert vars(metrics)["_MODULE_OF"][kind.__name__] == kind.__module__
        assert vars(pytest_ragmetrics)["_MODULE_OF"][kind.helper] == kind.__module__
    others = {"assert_conversation", "assert_mean", "assert_metric", "assert_ragas_score", "assert_sample"}
    others |= {"assert_no_regression", "assert_not_worse", "assert_pass_rate"}
    helpers = {name for name in dir(pytest_ragmetrics) if name.startswith("assert_")}
    assert {kind.helper for kind in built_in_metrics()} == helpers - others
