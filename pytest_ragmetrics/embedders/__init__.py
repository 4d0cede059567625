"""Embedders: who turns texts into vectors, so that metrics can say how close two texts are."""

from __future__ import annotations
