"""The observers of results, which users offer as hooks."""

from __future__ import annotations

import warnings
from collections.abc import Generator

import pytest

from pytest_ragmetrics.plugin.recorder import Recorder

_HOOK = "pytest_ragmetrics_result"


class Observers:
    """Calls the observers of results one by one; each that raises is warned of once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._warned: set[object] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Show each record of a test, when all of it has run, to all that its conftest.py files and plugins offer."""
        ran = yield
        if self._recorder.test == item.nodeid and self._recorder.records:
            self._show(item)
        return ran

    def _show(self, item: pytest.Item) -> None:
        from pytest_ragmetrics.core.codec import dump

        manager = item.config.pluginmanager
        plugins = [each.plugin for each in item.config.hook.pytest_ragmetrics_result.get_hookimpls()]
        for observer in [each.plugin for each in item.ihook.pytest_ragmetrics_result.get_hookimpls()]:
            show = manager.subset_hook_caller(_HOOK, [plugin for plugin in plugins if plugin is not observer])
            for record in self._recorder.records:
                try:
                    show(item=item, record=dump(record))
                except pytest.exit.Exception:
                    raise  # it ends the run
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001 - not the test's
                    self._warn(item, observer, error)

    def _warn(self, item: pytest.Item, observer: object, error: BaseException) -> None:
        """Record a warning as pytest does; warn() would raise where warnings are errors, in the middle of the run."""
        if observer in self._warned:
            return
        self._warned.add(observer)
        from pytest_ragmetrics.core.credentials import masked

        problem = f"{type(error).__name__}: {masked(str(error))}"
        text = f"{item.config.pluginmanager.get_name(observer)}: {_HOOK} raised {problem}"
        warning = warnings.WarningMessage(pytest.PytestWarning(text), pytest.PytestWarning, __file__, 0)
        item.config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": warning, "nodeid": item.nodeid, "when": "runtest", "location": None}
        )
