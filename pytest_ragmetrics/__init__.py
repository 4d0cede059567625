"""Assert the answer quality of a RAG application in an ordinary pytest suite.

Names are looked up when they are first used, so that loading the plugin costs a suite without them nothing.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ragmetrics.assertions import *  # noqa: F403 - the helpers are listed there alone
    from pytest_ragmetrics.calibration.calibrate import rag_calibrated as rag_calibrated
    from pytest_ragmetrics.errors import BudgetExceededError as BudgetExceededError
    from pytest_ragmetrics.errors import CacheMissError as CacheMissError
    from pytest_ragmetrics.errors import DatasetError as DatasetError
    from pytest_ragmetrics.errors import JudgeError as JudgeError
    from pytest_ragmetrics.errors import JudgeNotConfiguredError as JudgeNotConfiguredError
    from pytest_ragmetrics.errors import RagMetricsError as RagMetricsError
    from pytest_ragmetrics.errors import UnscoredError as UnscoredError
    from pytest_ragmetrics.evaluation import Evaluation as Evaluation
    from pytest_ragmetrics.evaluation import aevaluate as aevaluate
    from pytest_ragmetrics.evaluation import evaluate as evaluate
    from pytest_ragmetrics.interop import sample_from as sample_from
    from pytest_ragmetrics.metrics.own import metric as metric
    from pytest_ragmetrics.result import Evidence as Evidence
    from pytest_ragmetrics.result import MetricResult as MetricResult
    from pytest_ragmetrics.result import Nearest as Nearest
    from pytest_ragmetrics.result import Usage as Usage
    from pytest_ragmetrics.result import Verdict as Verdict
    from pytest_ragmetrics.sample import Sample as Sample
    from pytest_ragmetrics.text.alignment import align as align
    from pytest_ragmetrics.text.quotations import Quotation as Quotation
    from pytest_ragmetrics.text.quotations import find_quotations as find_quotations

#: Where each public name stands; the helpers are those that ``assertions`` lists.
_HOMES = {
    "calibration.calibrate": ("rag_calibrated",),
    "errors": (
        "BudgetExceededError",
        "CacheMissError",
        "DatasetError",
        "JudgeError",
        "JudgeNotConfiguredError",
        "RagMetricsError",
        "UnscoredError",
    ),
    "evaluation": ("Evaluation", "aevaluate", "evaluate"),
    "interop": ("sample_from",),
    "metrics.own": ("metric",),
    "result": ("Evidence", "MetricResult", "Nearest", "Usage", "Verdict"),
    "sample": ("Sample",),
    "text.alignment": ("align",),
    "text.quotations": ("Quotation", "find_quotations"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # to type checkers it would say that there is every name

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return sorted([*_HOME_OF, *_module("assertions").__all__])
        home = "assertions" if name.startswith("assert_") else _HOME_OF.get(name)
        if home is not None and name in vars(_module(home)):
            return getattr(_module(home), name)
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF, *_module("assertions").__all__])


def _module(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name}")
