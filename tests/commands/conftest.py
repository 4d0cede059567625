"""Commands are run as in the tests of units."""

from __future__ import annotations

from tests.unit.conftest import ragmetrics, server

__all__ = ["ragmetrics", "server"]
