"""Judges behind a provider's API: what those of all providers have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.connection import Connection, Vendor
from pytest_ragmetrics.judges.judge import PromptedJudge, Reply, Request
from pytest_ragmetrics.judges.negotiation import Negotiation
from pytest_ragmetrics.judges.rendering import PromptBook

Terms = TypeVar("Terms")

#: The sampling parameters of the first sample of a request, which is as steady as can be, and of further ones.
_STEADY = {"temperature": 0}
_VARIED = {"temperature": 1}


class ProvidedJudge(PromptedJudge, Generic[Terms]):
    """A judge behind the API of a ``vendor``, asked on terms that begin with ``offer``."""

    vendor: ClassVar[Vendor]
    #: The terms to begin with.
    offer: ClassVar[Any]
    #: What the API needs besides the sampling parameters.
    needed: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60,
        retries: int = 5,
        deadline: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        prompts: PromptBook | None = None,
    ) -> None:
        """Grant ``timeout`` seconds to each of ``retries`` + 1 attempts, ``deadline`` to all together."""
        asked = _STEADY if parameters is None else parameters
        super().__init__(name=f"{self.kind}:{model}", model=model, parameters={**self.needed, **asked}, prompts=prompts)
        self.varied = {} if parameters else dict(_VARIED)
        self._negotiation = Negotiation[Terms](self.offer)
        self._connection = Connection(
            self.vendor,
            model=model,
            api_key=api_key,
            base_url=base_url,
            timeout=timeout,
            retries=retries,
            deadline=deadline,
            rate_limited=self.rate_limited,
        )

    @property
    def terms(self) -> Terms:
        """What the server was found to accept so far."""
        return self._negotiation.terms

    async def complete(self, request: Request) -> Reply:
        """Return what the model writes; raise ``JudgeError`` if the provider fails, refuses or cuts it short."""
        return self._read(
            await self._connection.call(
                lambda client: self._negotiation.reach(
                    lambda terms: self._send(client, request, terms),
                    lambda terms, error: self._concede(terms, request, error),
                )
            )
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    def _failure(self, problem: str) -> JudgeError:
        return JudgeError(f"{self.name} {problem}")

    @abstractmethod
    async def _send(self, client: Any, request: Request, terms: Terms) -> Any:
        """Return the answer of the API to a request on these terms."""

    @abstractmethod
    def _concede(self, terms: Terms, request: Request, error: Any) -> Terms | None:
        """Return terms without what the server refused, or ``None`` if it is nothing that can be given up."""

    @abstractmethod
    def _read(self, answer: Any) -> Reply:
        """Return the reply in an answer of the API; raise ``JudgeError`` if there is none."""
