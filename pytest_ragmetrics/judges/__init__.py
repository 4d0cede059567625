"""Judges: who answers the questions that metrics ask."""

from __future__ import annotations
