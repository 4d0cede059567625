"""What lists metrics and tasks, made of their classes: both stubs, the keywords of two calls, the exported tasks."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest_ragmetrics
from pytest_ragmetrics import metrics
from pytest_ragmetrics.core.public_names import module_of_names
from pytest_ragmetrics.core.sample import FIELDS
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.metrics.registry import built_in_metrics, helper_of

_WIDTH = 120
#: What the parameters of helpers are annotated with.
_HEAD = """\
from collections.abc import Mapping, Sequence
from typing import Any, Literal

"""
_OWN = """\
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
"""
_TYPED = '''\
"""The keyword arguments of ``score()`` and ``assert_sample()``, for type checkers; nothing imports this at run time."""

from __future__ import annotations

from typing import Any, TypedDict


class Fields(TypedDict, total=False):
    """What ``score()`` takes: the fields of a sample, and what some metrics take beside them."""

{fields}


class Bounds(TypedDict, total=False):
    """What ``assert_sample()`` takes: the bound of each metric of this package; ``metrics=`` takes those of others."""

{bounds}
'''


def stubs() -> dict[str, str]:
    """Return the files by their paths in the package; names that are of no metric stay as they stand in the stubs."""
    kinds = built_in_metrics()
    helpers = {kind.helper: helper_of(kind) for kind in kinds}
    made = [helper for _, helper in sorted(helpers.items()) if "__signature__" in vars(helper)]
    others = {name: place for name, place in module_of_names(pytest_ragmetrics.__name__).items() if name not in helpers}
    others |= {name: it.__module__ for name, it in helpers.items() if it not in made}
    classes = module_of_names(metrics.__name__)
    classes |= {name: kind.__module__ for kind in kinds for name in (kind.__name__, *other_names(kind))}
    # To a type checker a row of a table is a variable, which is no type.
    rows = {kind.__name__: kind for kind in kinds if f"class {kind.__name__}(" not in inspect.getsource(_module(kind))}
    written = {name: module for name, module in classes.items() if name not in rows}
    bodies = (f"\n# {it.__module__}\nclass {name}({it.__bases__[0].__name__}): ...\n" for name, it in rows.items())
    functions = "".join(f"\n# {helper.__module__}\n{_definition(helper)}\n" for helper in made)
    return {
        "__init__.pyi": f"{_HEAD}{_imports(others, _OWN)}\n__version__: str\n{functions}",
        "metrics/__init__.pyi": _imports(written) + "".join(bodies),
        "core/typed.py": _typed(),
        "judges/tasks/__init__.py": _exported_tasks(),
    }


def other_names(kind: type[Any]) -> list[str]:
    """Return what else a class is called in its module."""
    return [name for name, it in vars(_module(kind)).items() if it is kind and name != kind.__name__]


def _module(kind: type[Any]) -> ModuleType:
    return sys.modules[kind.__module__]


def _imports(modules: Mapping[str, str], others: str = "") -> str:
    lines = [f"from {module} import {name} as {name}\n" for name, module in modules.items()] + others.splitlines(
        keepends=True
    )
    # As isort has them: modules, then constants before classes before functions.
    lines.sort(key=lambda line: ((parts := line.split())[1], not parts[3].isupper(), parts[3].islower(), parts[3]))
    return "".join(
        line if len(line) <= _WIDTH else re.sub(r"import (.*)\n", r"import (\n    \1,\n)\n", line) for line in lines
    )


def _definition(helper: Any) -> str:
    """Return a function of a stub."""
    hints, parts, by_name = get_type_hints(helper), [], False
    for name, it in inspect.signature(helper).parameters.items():
        if it.kind is it.KEYWORD_ONLY and not by_name:
            by_name = True
            parts.append("*")
        default = "" if it.default is it.empty else f" = {_quoted(it.default)}"
        choices = get_args(hints[name]) if get_origin(hints[name]) is Literal else ()
        form = f"Literal[{', '.join(map(_quoted, choices))}]" if choices else it.annotation
        parts.append(f"{name}: {form}{default}")
    line = f"def {helper.__name__}({', '.join(parts)}) -> MetricResult: ..."
    wrapped = f"def {helper.__name__}(\n    {', '.join(parts)}\n) -> MetricResult: ..."
    if max(map(len, wrapped.splitlines())) > _WIDTH:
        wrapped = f"def {helper.__name__}(\n" + "".join(f"    {part},\n" for part in parts) + ") -> MetricResult: ..."
    return line if len(line) <= _WIDTH else wrapped


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _typed() -> str:
    kinds = built_in_metrics()
    aliases = [name for kind in kinds for name in vars(kind).get("aliases", ())]
    bounds = [*(kind.name for kind in kinds), *(name for name in aliases if name.isidentifier() and name.islower())]
    fields = dict.fromkeys((*FIELDS, *(name for kind in kinds for name in kind.extra_inputs)))
    return _TYPED.format(fields=_listed(fields, "Any"), bounds=_listed(bounds, "float"))


def _exported_tasks() -> str:
    head, _, lines = inspect.getsource(tasks).partition("import annotations\n\n")
    names = {line.split()[-1]: line.split()[1] for line in lines.splitlines()}
    for each in iter_modules(tasks.__path__, f"{tasks.__name__}."):
        # On Python 3.10 list[str] is a type, but no class.
        found = (
            it for it in vars(import_module(each.name)).values() if isinstance(it, type) and get_origin(it) is None
        )
        own = (it for it in found if issubclass(it, Task) and it.__module__ == each.name and "prompt" in vars(it))
        names |= {kind.__name__: each.name for kind in own}
    return f"{head}import annotations\n\n{_imports(names)}"


def _listed(names: Iterable[str], kind: str) -> str:
    return "\n".join(f"    {name}: {kind}" for name in names)
