"""The markers of tests: what they say of the running test, and which cannot be used."""

from __future__ import annotations

import sys
from collections.abc import Generator

import pytest

from pytest_ragmetrics.plugin.settings import option_of, parsed

#: What is wrong with the markers of a test, found after its module was collected.
MARKER_FAULT = pytest.StashKey[str]()


def function_of(item: pytest.Item) -> str:
    """Return the node id of the function that a test belongs to."""
    name = getattr(item, "originalname", None) or item.name
    return f"{item.parent.nodeid}::{name}" if item.parent is not None else name


def marked_judge(item: pytest.Item) -> str | None:
    """Return the spec of a test's ``rag_judge`` marker, or ``None``; raise ``pytest.UsageError`` for a wrong one."""
    given = _given(item, "rag_judge")
    if given is None:
        return None
    problem = 'it takes one spec; write @pytest.mark.rag_judge("openai:MODEL")'
    if len(given) == 1 and isinstance(given[0], str):
        try:
            return str(parsed(option_of("judge"), given[0], item.config.rootpath, item.config))
        except ValueError as error:
            problem = str(error)
    raise _wrong(item, "rag_judge", given, problem)


def marked_votes(item: pytest.Item) -> int | None:
    """Return the number of a test's ``rag_votes`` marker, or ``None``; raise ``pytest.UsageError`` for a wrong one."""
    given = _given(item, "rag_votes")
    if given is None:
        return None
    if len(given) == 1 and type(given[0]) is int and given[0] >= 1:
        return given[0]
    raise _wrong(item, "rag_votes", given, "it takes one whole number from 1 on; write @pytest.mark.rag_votes(3)")


def _uncollected(item: pytest.Item) -> str:
    """Return why a marker that makes tests has made none of this one."""
    unittest = sys.modules.get("unittest")
    if unittest is not None and issubclass(getattr(item, "cls", None) or object, unittest.TestCase):
        return "it means nothing on a method of unittest.TestCase: write a function, or a method of another class"
    return "it is added too late, by a hook or pytest.param: write it above the function, its class or as pytestmark"


def _given(item: pytest.Item, name: str) -> tuple[object, ...] | None:
    marker = item.get_closest_marker(name)
    return None if marker is None else (*marker.args, *marker.kwargs.values())


def _wrong(item: pytest.Item, name: str, given: tuple[object, ...], problem: str) -> pytest.UsageError:
    return pytest.UsageError(f"{function_of(item)}: marker {name}({', '.join(map(repr, given))}): {problem}")


class Markers:
    """The hooks that fail what has a marker which cannot be used."""

    def __init__(self) -> None:
        self._collected: set[tuple[str, str]] = set()
        #: What is wrong with the markers of functions, by the node that collects them.
        self._faults: dict[str, list[str]] = {}

    def note_collected(self, marker: str, function: str, *, fault: str | None = None) -> None:
        """Note that a marker was seen on a function when it was collected, and what is wrong with it."""
        self._collected.add((marker, function))
        if fault is not None:
            self._faults.setdefault(function.rpartition("::")[0], []).append(f"{function}: marker {marker}: {fault}")

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Fail the collection of a module or class in which a marker cannot be used."""
        report = yield
        faults = self._faults.pop(collector.nodeid, [])
        if report.passed:
            faults += [fault for item in report.result if isinstance(item, pytest.Item) for fault in self._check(item)]
        if report.passed and faults:
            report.outcome, report.longrepr, report.result = "failed", "\n".join(dict.fromkeys(faults)), []
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Note the tests to which hooks added a marker that cannot be used."""
        for item in items:
            if faults := self._check(item):
                item.stash[MARKER_FAULT] = "\n".join(faults)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail a test with a marker that cannot be used."""
        if MARKER_FAULT in item.stash:
            pytest.fail(item.stash[MARKER_FAULT], pytrace=False)

    def _check(self, item: pytest.Item) -> list[str]:
        function, names = function_of(item), {marker.name for marker in item.iter_markers()}
        faults = [
            f"{function}: marker {name}: {_uncollected(item)}"
            for name in ("rag_dataset", "rag_gate")
            if name in names and (name, function) not in self._collected
        ]
        for name, read in (("rag_judge", marked_judge), ("rag_votes", marked_votes)):
            if name in names:
                try:
                    read(item)
                except pytest.UsageError as error:
                    faults.append(str(error))
        return faults
