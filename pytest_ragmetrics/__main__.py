"""Runs the command `ragmetrics`: ``python -m pytest_ragmetrics``."""

from __future__ import annotations

from pytest_ragmetrics.cli import main

if __name__ == "__main__":
    raise SystemExit(main(prog="python -m pytest_ragmetrics"))
