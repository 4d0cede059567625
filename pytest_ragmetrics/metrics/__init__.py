"""The metrics: each a class that scores one sample, beside the ``assert_...`` helper for it.

To add one, write a class with a ``name`` in a module of this package; one that asks a judge has its task in
``judges/tasks`` and its prompt in ``judges/prompts``. The stub, ``__init__.pyi``, is made of the classes. Names are
looked up when they are first used: a metric that asks no judge loads neither judges nor other metrics.
"""

from __future__ import annotations

from importlib import import_module

from pytest_ragmetrics.core.public_names import is_module, module_of_names

#: The modules in the order in which tables list their metrics.
MODULES = (
    *("quotes", "claims", "contexts", "answers", "ratings", "critiques", "attribution", "agents", "dialogues"),
    *("grounding", "citations", "tool_calls", "retrieval", "strings", "checks", "application", "ragas"),
    *("base", "judged", "registry"),
)
_MODULE_OF = module_of_names(__name__)
__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    if is_module(__name__, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pytest_ragmetrics.metrics.registry import missing_name

    raise missing_name(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
