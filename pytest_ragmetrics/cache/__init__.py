"""Answers that were paid for: found again on this machine, and replayed from a file that is committed."""

from __future__ import annotations
