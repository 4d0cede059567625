"""Imports point down the layers, and start-up stays light."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
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
#: From the top down; a module imports from its own layer and those below. A package stands for its other modules.
LAYERS = (
    {"plugin", "__main__", "cli", "commands", "ray"},
    {"session", "session_resources", "reporting", "tracebacks", "gate_plugin", "prefetch", "hookspec"},
    {"settings", "report", "gates", "gate_decisions", "assertions", "suites", "generate", "probes", "calibration"}
    | {"logged_answers", "score_files", "batch_scorer"},
    {"evaluation", "scoring", "engine", "dry_run"},
    {"batching"},
    {"metrics"},
    {"comparison", "run_comparison", "explain", "records"},
    {"context", "judges", "embedders", "cache", "budget", "prices", "circuit_breaker"},
    {
        "calibration.correction",
        "calibration.labels",
        "calibration.marks",
        "calibration.result",
        "interop",
        "datasets",
        "stats",
        "text",
    }
    | {"revision"},
    {"result", "sample", "errors", "codec", "files", "locks", "loop", "progress", "public_names", "running"}
    | {"other_tools", "typed", "text.credentials", "text.patterns"},
)
#: The pytest side; everything else works without a session.
PYTEST_SIDE = {
    "plugin",
    "settings",
    "hookspec",
    "session",
    "session_resources",
    "reporting",
    "tracebacks",
    "gate_plugin",
    "prefetch.dataset_tests",
    "prefetch.sharing",
    "report.terminal",
}


@cache
def trees() -> dict[str, ast.Module]:
    """Return what stands in each module of the package, by its name."""
    names = {path: ".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in sorted(PACKAGE.rglob("*.py"))}
    return {
        name.removesuffix("__init__").rstrip("."): ast.parse(path.read_text("utf-8")) for path, name in names.items()
    }


def imports(tree: ast.AST, *, at_import: bool = False) -> Iterator[str]:
    """Yield the names of imported modules; with ``at_import`` those that importing the module imports."""
    for node in ast.iter_child_nodes(tree):
        if at_import and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name.removeprefix("pytest_ragmetrics.") in trees() else node.module
        elif not (at_import and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
            yield from imports(node, at_import=at_import)


def own_imports(module: str) -> set[str]:
    """Return the modules of the package that a module imports, anywhere in it and for type checkers too."""
    names = (name for name in imports(trees()[module]) if name.partition(".")[0] == "pytest_ragmetrics")
    return {name.partition(".")[2] for name in names} - {module}


def layer_of(module: str) -> int:
    """Return the number of a module's layer, counted from the top."""
    found = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    return found[module] if module in found else found[module.partition(".")[0]]


def test_imports_point_down() -> None:
    """No module imports from a layer above its own or in a circle, not in functions and for type checkers either."""
    graph = {module: own_imports(module) for module in trees() if module}
    # Raises CycleError, which names the modules of a circle.
    TopologicalSorter(graph).prepare()
    upward = [
        f"{module} imports {imported}"
        for module, found in graph.items()
        for imported in found
        if imported and layer_of(imported) < layer_of(module)
    ]
    assert not upward


def test_every_module_keeps_to_its_side() -> None:
    """At the top only the standard library is imported, pytest on its side alone, and there is no bare assert."""
    for module, tree in trees().items():
        side = {"pytest"} if module in PYTEST_SIDE else set()
        tops = {name.split(".")[0] for name in imports(tree, at_import=True)}
        assert tops <= {"pytest_ragmetrics", *sys.stdlib_module_names} | side, module
        used = {name.split(".")[0] for name in imports(tree)}
        assert not {"pytest", "_pytest"} & used - side, module
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)], module


def star_import() -> dict[str, Any]:
    """Return what a star import brings: the list of names is made when it is asked for."""
    found: dict[str, Any] = {}
    exec("from pytest_ragmetrics import *", found)
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


@pytest.mark.parametrize("package", [pytest_ragmetrics, metrics])
def test_type_checkers_see_every_public_name(package: ModuleType) -> None:
    """Each line of a stub is read as a public name, and the name stands in the module named."""
    stub = ast.parse(Path(package.__file__ or "").with_suffix(".pyi").read_text("utf-8"))
    seen = {alias.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == package._MODULE_OF
    assert sorted(seen) == sorted(package.__all__)


def test_every_metric_and_helper_is_public() -> None:
    """A metric of the package and its helper are listed where users and type checkers look for them."""
    for kind in built_in_metrics():
        assert getattr(metrics, kind.__name__) is kind
        assert vars(metrics)["_MODULE_OF"][kind.__name__] == kind.__module__
        assert vars(pytest_ragmetrics)["_MODULE_OF"][kind.helper] == kind.__module__
