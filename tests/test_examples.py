"""Every example in a docstring is true."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest_ragmetrics


def test_docstring_examples() -> None:
    modules = pkgutil.walk_packages(pytest_ragmetrics.__path__, "pytest_ragmetrics.")
    found = [test for module in modules for test in doctest.DocTestFinder().find(import_module(module.name))]
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    # Running a docstring without examples takes as long as running one with them.
    results = {test.name: runner.run(test) for test in found if test.examples}
    assert not [name for name, result in results.items() if result.failed]
    assert sum(result.attempted for result in results.values()) > 200
