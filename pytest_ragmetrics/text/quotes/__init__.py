"""Quotations: their marks, the texts between them, and where these stand in the contexts."""

from __future__ import annotations
