"""The public names of a package, which its stub ``__init__.pyi`` lists for type checkers."""

from __future__ import annotations

import re
from pkgutil import get_data

_IMPORT = re.compile(r"^from (\S+) import (?:\(\s*)?(\w+) as ", re.MULTILINE)


def module_of_names(package: str) -> dict[str, str]:
    """Return the module of each public name of a package.

    >>> module_of_names("pytest_ragmetrics")["Sample"]
    'pytest_ragmetrics.sample'
    """
    stub = get_data(package, "__init__.pyi") or b""
    return {name: module for module, name in _IMPORT.findall(stub.decode())}
