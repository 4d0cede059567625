"""What every room is built on: samples, results, errors, files, locks, the codec and the event loop."""

from __future__ import annotations
