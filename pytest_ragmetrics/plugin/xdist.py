"""What the processes of xdist send each other: one value each way, beside the reports of tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

#: The key of what processes of xdist send each other in ``workerinput`` and ``workeroutput``.
KEY = "ragmetrics"


@dataclass(frozen=True, kw_only=True, slots=True)
class ToWorker:
    """What the controller of xdist sends each worker; fields are JSON builtins.

    ``folder`` and the file ``budget`` are those that workers on this machine share, ``cassette`` are the entries for a
    worker that cannot read the file.
    """

    run: str = ""
    seed: str | None = None
    folder: str | None = None
    budget: str | None = None
    cassette: Sequence[Mapping[str, Any]] | None = None

    @classmethod
    def of(cls, config: pytest.Config) -> ToWorker:
        """Return what this process was sent, all defaults in one that is no worker."""
        return cls(**getattr(config, "workerinput", {}).get(KEY, {}))


@dataclass(frozen=True, kw_only=True, slots=True)
class FromWorker:
    """What a worker of xdist sends the controller at its end, beside its reports; fields are JSON builtins.

    ``tasks`` are those that each metric asked a judge, ``deselected`` and ``left_out`` count the tests that were not
    run. ``used`` is what it used of the cassette, ``spent`` of the budget, ``remote`` of the shared cache, ``forecast``
    what it would ask for. ``served`` are the models that answered each metric, ``sentinels`` what it asked again.
    ``waits`` are the seconds that it waited, by cause. ``gates`` are the sets of gates that it collected, ``mutants``
    what became of those of its rows, ``metrics`` those that scored, where some may score again.
    """

    tasks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    served: Mapping[str, Any] = field(default_factory=dict)
    sentinels: Any = None
    deselected: int = 0
    left_out: int = 0
    used: Mapping[str, Any] | None = None
    spent: Mapping[str, Any] | None = None
    forecast: Mapping[str, Any] | None = None
    remote: Mapping[str, Any] = field(default_factory=dict)
    attempts: Mapping[str, int] = field(default_factory=dict)
    waits: Mapping[str, float] = field(default_factory=dict)
    gates: Sequence[Any] = ()
    mutants: Any = None
    metrics: Sequence[Any] = ()

    @classmethod
    def of(cls, node: Any) -> FromWorker | None:
        """Return what a worker sent, ``None`` for one that crashed."""
        sent = getattr(node, "workeroutput", {}).get(KEY)
        return None if sent is None else cls(**sent)


class Workers:
    """The hooks by which a controller sends its workers what they share, and gets back what they did.

    ``to_worker`` returns what a worker gets that is placed by a spec of execnet. ``rows`` is what each worker sent,
    ``None`` for one that crashed.
    """

    def __init__(self, to_worker: Callable[[Any], ToWorker], from_worker: Callable[[], FromWorker]) -> None:
        self.rows: list[FromWorker | None] = []
        self._to_worker = to_worker
        self._from_worker = from_worker
        self._nodes: list[Any] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker which run it belongs to, what it shares with the others, and what it cannot read."""
        self._nodes.append(node)
        node.workerinput[KEY] = asdict(self._to_worker(node.gateway.spec))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker did, once."""
        if node in self._nodes:
            self._nodes.remove(node)
            self.rows.append(FromWorker.of(node))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the controller what this worker did."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[KEY] = asdict(self._from_worker())

    def ended(self) -> Sequence[FromWorker | None]:
        """Return the rows of all workers, when all have ended: after an interrupt xdist does not announce it."""
        for node in tuple(self._nodes):
            self.pytest_testnodedown(node)
        return self.rows
