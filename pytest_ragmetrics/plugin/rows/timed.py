"""One answer of an application by the clock: how long it took, and what it yielded meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.core.sample import ALIASES
from pytest_ragmetrics.datasets.interop import sample_from

_RESPONSE = {"response", *ALIASES["response"]}


class Timed:
    """The clock of one answer, and the pieces that it came in, if it did.

    >>> timed = Timed()
    >>> for piece in ({"contexts": ["It takes two."]}, "Two ", "minutes."):
    ...     timed.take(piece)
    >>> timed.end()
    >>> timed.answer
    {'response': 'Two minutes.', 'contexts': ['It takes two.']}
    >>> 0 <= timed.took["first_token"] <= timed.took["latency"]
    True
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._fields: list[Any] = []
        self.start()

    def start(self) -> None:
        """Start the clock, or start it again."""
        self._started = perf_counter()
        #: The seconds until the clock was stopped, and until the first text, if there were pieces.
        self.took: dict[str, float] = {"latency": 0.0}

    def end(self) -> None:
        """Stop the clock; it may go on until it is stopped again."""
        self.took["latency"] = self._seconds()

    def take(self, piece: Any) -> None:
        """Take a text of the answer, or other fields of it; None is what some models send between texts."""
        if not isinstance(piece, str):
            self._fields += [] if piece is None else [piece]
            return
        if piece:
            self.took.setdefault("first_token", self._seconds())
        self._texts.append(piece)

    def _seconds(self) -> float:
        return round(perf_counter() - self._started, 6)

    @property
    def answer(self) -> Any:
        """The answer that the pieces are of: the texts together are its response, unless the fields have one.

        Raises ``UnscoredError`` for what is neither a text nor fields of an answer.
        """
        answer: dict[str, Any] = {}
        for fields in self._fields:
            try:
                answer |= fields if isinstance(fields, Mapping) else sample_from(fields).to_mapping()
            except (TypeError, ValueError) as error:
                msg = f"rag_respond yielded an object of type {type(fields).__name__}; it must yield texts, and what "
                raise UnscoredError(f"{msg}else belongs to the answer as a mapping of fields or a Sample") from error
        has_response = not self._texts or not _RESPONSE.isdisjoint(answer)
        return answer if has_response else {"response": "".join(self._texts), **answer}
