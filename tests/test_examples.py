"""Every example in a docstring is true."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest_ragmetrics


def test_docstring_examples() -> None:
    """The examples of all modules show what the docstrings say they show; those that do not are printed."""
    names = [module.name for module in pkgutil.walk_packages(pytest_ragmetrics.__path__, "pytest_ragmetrics.")]
    results = {name: doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE) for name in names}
    assert not [name for name, result in results.items() if result.failed]
    assert sum(result.attempted for result in results.values()) > 200
