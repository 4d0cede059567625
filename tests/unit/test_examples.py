"""Every example in a docstring is true."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

import pytest_ragmetrics

MODULES = sorted(m.name for m in pkgutil.walk_packages(pytest_ragmetrics.__path__, "pytest_ragmetrics."))


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    """The examples of a module, run as they stand, show what the docstring says they show."""
    failed, _ = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_there_are_examples() -> None:
    """The public names are shown at work."""
    finder = doctest.DocTestFinder()
    shown = sum(bool(example.examples) for name in MODULES for example in finder.find(import_module(name)))
    assert shown >= 15
