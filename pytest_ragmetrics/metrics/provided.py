"""Where a metric gets its judge and its embedder from: what it was given, else the session, else the environment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from pytest_ragmetrics import loop, session
from pytest_ragmetrics.embedders.custom import Embeds, as_embedder
from pytest_ragmetrics.embedders.embedder import Embedder
from pytest_ragmetrics.embedders.specs import check_embedder_spec, make_embedder
from pytest_ragmetrics.judges.custom import Completes, as_judge
from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.specs import check_spec, make_judge
from pytest_ragmetrics.session import Session

#: What may be given as a judge: one, its spec (``openai:gpt-5-mini``), or what can be made into one.
JudgeLike: TypeAlias = Judge | str | Completes | Callable[[str], str | Awaitable[str]]
#: What may be given as an embedder.
EmbedderLike: TypeAlias = Embedder | str | Embeds | Callable[[list[str]], Any]


class _Closes(Protocol):
    async def aclose(self) -> None: ...


P = TypeVar("P", bound=_Closes)


class Provided(Generic[P]):
    """A judge or an embedder: a given one, one made of its spec when it is first needed, or that of the session."""

    def __init__(
        self,
        given: P | str | None,
        *,
        make: Callable[[str], P],
        of_session: Callable[[Session, P | str | None], P],
    ) -> None:
        self._given = given
        self._make = make
        self._of_session = of_session
        self._made: P | None = None

    def get(self) -> P:
        """Return it, on the background loop; raise ``JudgeNotConfiguredError`` where there is none."""
        running = session.current()
        if running is not None:
            return self._of_session(running, self._given)
        if self._given is None or isinstance(self._given, str):
            return self._made or self._make_it(self._given or "auto")
        return self._given

    def _make_it(self, spec: str) -> P:
        made = self._made = self._make(spec)

        async def close() -> None:
            self._made = None
            await made.aclose()

        loop.on_stop(close)
        return made


def provided_judge(judge: JudgeLike | None) -> Provided[Judge]:
    """Return the source of the judge that a metric was given; raise ``ValueError`` or ``TypeError`` if it is none."""
    given = _checked(judge, check_spec, as_judge)
    return Provided(given, make=make_judge, of_session=lambda running, it: running.judge(it))


def provided_embedder(embedder: EmbedderLike | None) -> Provided[Embedder]:
    """Return the source of the embedder that a metric was given; raises like :func:`provided_judge`."""
    given = _checked(embedder, check_embedder_spec, as_embedder)
    return Provided(given, make=make_embedder, of_session=lambda running, it: running.embedder(it))


def _checked(given: object, check: Callable[[str], str], adapt: Callable[[object], P]) -> P | str | None:
    if isinstance(given, str):
        return check(given)
    return None if given is None else adapt(given)
