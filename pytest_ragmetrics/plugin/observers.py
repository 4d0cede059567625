"""The observers of results, which users offer as hooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from functools import partial

import pytest

from pytest_ragmetrics.plugin.recorder import Recorder

_HOOK = "pytest_ragmetrics_result"
# pytest.exit() in an observer ends the run; its failures and skips are not those of the test.
_HARMLESS = (Exception, pytest.fail.Exception, pytest.skip.Exception)


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
                problem = _problem_of(partial(show, item=item, record=dump(record)))
                if problem and observer not in self._warned:
                    self._warned.add(observer)
                    _warn(item, f"{manager.get_name(observer)}: {_HOOK} raised {problem}")


def _problem_of(show: Callable[[], object]) -> str | None:
    try:
        show()
    except pytest.exit.Exception:
        raise
    except _HARMLESS as error:
        from pytest_ragmetrics.core.credentials import masked

        return f"{type(error).__name__}: {masked(str(error))}"
    return None


def _warn(item: pytest.Item, text: str) -> None:
    """Record a warning as pytest does; warn() would raise where warnings are errors, in the middle of the run."""
    warning = warnings.WarningMessage(pytest.PytestWarning(text), pytest.PytestWarning, __file__, 0)
    item.config.hook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": warning, "nodeid": item.nodeid, "when": "runtest", "location": None}
    )
