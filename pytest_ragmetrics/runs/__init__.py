"""Runs as values: records, documents of a run, runs merged and compared, and how all of it is worded."""

from __future__ import annotations
