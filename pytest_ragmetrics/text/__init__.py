"""Text in, offsets out: finding quotations and finding passages."""

from __future__ import annotations
