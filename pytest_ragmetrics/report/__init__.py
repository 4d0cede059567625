"""Reports of a run: page, Markdown, terminal summary, junit properties, and several runs merged."""

from __future__ import annotations
