"""What a command of `ragmetrics` is."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The lines to print and an exit status that says more than that the command worked."""

    lines: Sequence[str]
    status: int


Work = Callable[[argparse.Namespace], Sequence[str] | Finding]


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One command: how it is called, and the work that returns the lines to print."""

    name: str
    help: str
    run: Work | None = None
    configure: Callable[[argparse.ArgumentParser], object] = lambda _: None
    commands: tuple[Command, ...] = ()
