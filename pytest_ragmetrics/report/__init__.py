"""Reports of a run: page, Markdown, terminal summary, junit properties."""

from __future__ import annotations
