"""Showing records to whoever observes them, without letting an observer harm the run."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pluggy import HookCaller

    from pytest_ragmetrics.report.records import Record

_HOOK = "pytest_ragmetrics_result"
#: An observer may stop the run, but its own failures and skips are not those of the test.
_NOT_ITS_BUSINESS = (Exception, pytest.fail.Exception, pytest.skip.Exception)


class Observers:
    """Calls the observers of results one by one; each that raises is warned of once."""

    def __init__(self) -> None:
        self._warned: set[object] = set()

    def show(self, item: pytest.Item, records: Sequence[Record]) -> None:
        """Show every record of a test to every observer that its conftest.py files and the plugins offer."""
        all_of_them = _plugins(getattr(item.config.hook, _HOOK))
        for observer in _plugins(getattr(item.ihook, _HOOK)):
            others = [plugin for plugin in all_of_them if plugin is not observer]
            for record in records:
                self._show(item, record, observer, others)

    def _show(self, item: pytest.Item, record: Record, observer: object, others: Sequence[object]) -> None:
        manager = item.config.pluginmanager
        try:
            # A copy, because what an observer does with it must not change the report.
            manager.subset_hook_caller(_HOOK, others)(item=item, record=copy.deepcopy(record))
        except pytest.exit.Exception:
            raise
        except _NOT_ITS_BUSINESS as error:
            if observer not in self._warned:
                self._warned.add(observer)
                _warn(item, f"{manager.get_name(observer)}: {_HOOK} raised {type(error).__name__}: {error}")


def _plugins(caller: HookCaller) -> list[object]:
    return [implementation.plugin for implementation in caller.get_hookimpls()]


def _warn(item: pytest.Item, text: str) -> None:
    """Record a warning as pytest does; warn() would raise where warnings are errors, in the middle of the run."""
    warning = warnings.WarningMessage(pytest.PytestWarning(text), pytest.PytestWarning, __file__, 0)
    item.config.hook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": warning, "nodeid": item.nodeid, "when": "runtest", "location": None}
    )
