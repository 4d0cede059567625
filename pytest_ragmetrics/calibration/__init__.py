"""How far a judge can be trusted: its scores held against the labels of people."""

from __future__ import annotations
