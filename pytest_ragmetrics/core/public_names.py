"""The public names of a package, which its stub ``__init__.pyi`` lists for type checkers."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pkgutil import get_data

# An import of a name, or a function or class below the name of its module.
_NAME = re.compile(r"^(?:from|#) (\S+)(?:\n(?:def|class) | import (?:\(\s*)?)(\w+)(?:\(| as )", re.MULTILINE)


def is_module(package: str, name: str) -> bool:
    """Tell whether a name is one of Python's own or of a module of the package, which an import asks the package for.

    >>> is_module("pytest_ragmetrics", "plugin"), is_module("pytest_ragmetrics", "Sample")
    (True, False)
    """
    return name.startswith("__") or find_spec(f"{package}.{name}") is not None


def module_of_names(package: str) -> dict[str, str]:
    """Return the module of each public name of a package.

    >>> module_of_names("pytest_ragmetrics")["Sample"]
    'pytest_ragmetrics.core.sample'
    """
    stub = get_data(package, "__init__.pyi") or b""
    return {name: module for module, name in _NAME.findall(stub.decode())}
