"""The digest of failures: what ``--rag-digest`` writes in place of pytest's sections and lines on them."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragmetrics.plugin.recorder import ATTRIBUTE, carried
from pytest_ragmetrics.plugin.report import failure_text

if TYPE_CHECKING:
    from pytest_ragmetrics.runs.wording.digest import Failure


class DigestReport:
    """The hook that writes the digest of the failures in place of pytest's sections and lines on them."""

    def __init__(self, config: pytest.Config) -> None:
        config.option.no_header = True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
        """Write the digest before all other sections, which do not see its failures."""
        reporter, stats = terminalreporter, terminalreporter.stats
        reports = [*reporter.getreports("error"), *reporter.getreports("failed")]
        if not reports:
            return (yield)
        from pytest_ragmetrics.runs.wording.digest import digest
        from pytest_ragmetrics.text.unicode import printable_lines

        reporter.ensure_newline()
        for line in digest(map(_failure, reports)):
            reporter.write_line(printable_lines(line))
        digested: dict[str, list[Any]] = {name: stats.pop(name) for name in ("error", "failed") if name in stats}
        try:
            return (yield)
        finally:
            stats.update(digested)


def _failure(report: Any) -> Failure:
    from pytest_ragmetrics.runs.wording.digest import Failure

    _, line, _ = report.location or ("", None, "")
    text, crash = failure_text(report), getattr(report.longrepr, "reprcrash", None)
    if crash is not None and not re.search("^E ", text, re.MULTILINE):
        # Without pytest's traceback.
        from pytest_ragmetrics.core.credentials import masked

        text = masked(f"E {crash.message}".replace("\n", "\nE "))
    return Failure(
        test=report.nodeid,
        line=None if line is None else line + 1,
        phase="" if report.when == "call" else report.when,
        message=text,
        records=(carried(report).records or ()) if hasattr(report, ATTRIBUTE) else (),
    )
