"""Judges behind the API of a provider: connections, attempts, parameters and errors."""

from __future__ import annotations
