"""Embedders: vectors of texts, by which metrics measure how similar two texts are."""

from __future__ import annotations
