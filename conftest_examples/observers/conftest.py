"""Hand the results of a run to the systems whose variables are set."""

from __future__ import annotations

import os
from importlib import import_module

import pytest

#: What to set, the module beside this one that is then used, and the package that it needs.
OBSERVERS = (
    ("MLFLOW_TRACKING_URI", "mlflow_observer", "mlflow-skinny"),
    ("LANGSMITH_API_KEY", "langsmith_observer", "langsmith"),
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the observers that are asked for; one whose package is missing stops the run before its first test."""
    for variable, module, package in OBSERVERS:
        if os.environ.get(variable):
            try:
                config.pluginmanager.register(import_module(module).Observer(config), module)
            except ModuleNotFoundError as error:
                msg = f"{variable} is set, but {error.name} is missing: pip install {package}"
                raise pytest.UsageError(msg) from error
