"""Imports point down the layers, and start-up stays light."""

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
    {"calibration.correction", "calibration.labels", "calibration.marks", "calibration.result"}
    | {"interop", "datasets", "stats", "text", "revision"},
    {"result", "sample", "errors", "codec", "files", "locks", "loop", "progress", "public_names", "running"}
    | {"other_tools", "typed", "text.credentials", "text.patterns"},
)
_LAYER = {name: number for number, layer in enumerate(LAYERS) for name in layer}
#: The pytest side; everything else works without a session.
PYTEST_SIDE = {"plugin", "settings", "hookspec", "session", "session_resources", "reporting", "tracebacks"}
PYTEST_SIDE |= {"gate_plugin", "prefetch.dataset_tests", "prefetch.sharing", "report.terminal"}


@cache
def trees() -> dict[str, ast.Module]:
    """Return what stands in each module of the package, by its name."""
    gc.disable()  # A tree has thousands of nodes, and they stay: going through them takes twice as long as parsing.
    try:
        names = {path: ".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}
        parsed = {name: ast.parse(path.read_text("utf-8")) for path, name in names.items()}
        return {name.removesuffix("__init__").rstrip("."): tree for name, tree in parsed.items()}
    finally:
        gc.enable()


@cache
def imports(module: str) -> frozenset[str]:
    """Return the names of all modules that a module imports, anywhere in it and for type checkers too."""
    return frozenset(names_of(ast.walk(trees()[module])))


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
    """Return the modules of the package that a module imports, anywhere in it and for type checkers too."""
    names = (name for name in imports(module) if name.partition(".")[0] == "pytest_ragmetrics")
    return {name.partition(".")[2] for name in names} - {module}


def layer_of(module: str) -> int:
    """Return the number of a module's layer, counted from the top."""
    return _LAYER[module] if module in _LAYER else _LAYER[module.partition(".")[0]]


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
        tops = {name.split(".")[0] for name in names_of(at_import(tree))}
        assert tops <= {"pytest_ragmetrics", *sys.stdlib_module_names} | side, module
        used = {name.split(".")[0] for name in imports(module)}
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
    """Both are where users and type checkers look; each helper is one of a metric, or for any metric or several."""
    for kind in built_in_metrics():
        assert getattr(metrics, kind.__name__) is kind
        assert vars(metrics)["_MODULE_OF"][kind.__name__] == kind.__module__
        assert vars(pytest_ragmetrics)["_MODULE_OF"][kind.helper] == kind.__module__
    others = {"assert_mean", "assert_metric", "assert_ragas_score"}
    others |= {"assert_no_regression", "assert_not_worse", "assert_pass_rate"}
    helpers = {name for name in dir(pytest_ragmetrics) if name.startswith("assert_")}
    assert {kind.helper for kind in built_in_metrics()} == helpers - others - {"assert_sample"}
