"""The commands of `ragmetrics`, a module each."""

from __future__ import annotations
