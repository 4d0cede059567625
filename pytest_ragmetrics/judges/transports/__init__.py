"""The chain of links from a rendered request to a reply: its values, and the links that every judge has."""

from __future__ import annotations
