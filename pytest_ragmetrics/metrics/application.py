"""What an answer took of the application: seconds, seconds to its first text, and dollars; without a judge.

The figures are in the metadata of a sample: ``plugin.rows`` measures them around ``rag_respond``, logs have them.
"""

from __future__ import annotations

import math
from typing import ClassVar

from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.core.result import Direction, MetricResult
from pytest_ragmetrics.core.sample import MEASURED, Sample
from pytest_ragmetrics.judges.prices import bill_of, from_zero
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.base import Metric


class FigureOfAnswer(Metric):
    """A figure of one answer that stands in the metadata of its sample, a number or the text of one."""

    requires: ClassVar[tuple[str, ...]] = ()
    scale: ClassVar[tuple[float, float]] = (0.0, math.inf)
    better: ClassVar[Direction] = "lower"
    #: What to do where there is none.
    remedy: ClassVar[str]

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` where there is no figure, and for one that is no number from 0 on."""
        if self._given(sample) is None:
            raise ValueError(f"{self.name}: {type(self).name} is missing; {self.remedy}")

    def measure(self, sample: Sample) -> MetricResult:
        """Return the figure, with where it is from."""
        is_measured = type(self).name in sample.metadata.get(MEASURED, ())
        reason = "measured around rag_respond" if is_measured else "given with the answer"
        return MetricResult(self._given(sample) or 0.0, metric=self.name, reason=reason)

    def _given(self, sample: Sample) -> float | None:
        found = ((name, value) for name in self.extra_inputs[:2] if (value := sample.metadata.get(name)) is not None)
        name, given = next(found, ("", None))
        # In files of columns it is a text.
        return None if given is None or given == "" else from_zero(f"{self.name}: {name}", given)


class Latency(FigureOfAnswer):
    """The seconds that the application took for an answer.

    Use it when users wait for answers. It is measured from the call of ``rag_respond`` to its end or the last piece
    that it yields, without the time in which the row waited for its turn; rows are answered many at a time. A row with
    an answer, and what ``rag_respond`` returns, may have its own ``latency`` (DeepEval: ``completion_time``).
    ``reason`` says which it is. ``ValueError`` without one.

    >>> Latency().score(latency=1.84).value
    1.84
    """

    name = "latency"
    score_unit = "s"
    helper = "assert_latency"
    blind_spots = "What users wait for besides the application: the network, a page that is drawn."
    extra_inputs = ("latency", "completion_time")
    remedy = "rag_respond is timed where it answers the row; give a row that has its answer the latency, in seconds"


class FirstToken(FigureOfAnswer):
    """The seconds until the first text of an answer that comes in pieces.

    Use it when users read along. It is measured where ``rag_respond`` is a generator, asynchronous or not, that yields
    texts: from its call to the first one that is not empty. A row, and what ``rag_respond`` returns, may have its own
    ``first_token``. ``ValueError`` without one.

    >>> FirstToken().score(first_token=0.31).value
    0.31
    """

    name = "first_token"
    score_unit = "s"
    helper = "assert_first_token"
    blind_spots = "How long the rest takes: that is in Latency."
    extra_inputs = ("first_token",)
    remedy = "the answer came whole: let rag_respond yield its texts, or give the row first_token, in seconds"


class Cost(FigureOfAnswer):
    """The US dollars that an answer cost the application.

    Use it when a change of model or prompt may cost more than it gains. ``rag_respond`` returns ``cost`` beside its
    response, or the ``usage`` of the model: that of a provider's SDK, a mapping of tokens, or a list of one for each
    request, with the ``model`` in it or beside it, such as "openai:gpt-5.4-mini". So may rows with an answer (DeepEval:
    ``token_cost``). Prices are those of ``genai-prices``; of a model that it does not know: ``UnscoredError``.
    ``ValueError`` without cost and usage.

    >>> Cost().score(cost=0.0031).value
    0.0031
    >>> usage = {"model": "gpt-5.4-mini", "prompt_tokens": 1000, "completion_tokens": 100}
    >>> f"{Cost().score(usage=usage).value:.4f}"
    '0.0012'
    """

    name = "cost"
    score_unit = "$"
    helper = "assert_cost"
    blind_spots = "Retrieval, tools and servers, unless the cost of the row has them."
    extra_inputs = ("cost", "token_cost", "usage", "model")
    remedy = 'let rag_respond return {"response": ..., "usage": ..., "model": ...}, or a "cost" in dollars'

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` where there is neither cost nor usage, and for a cost that is no number from 0 on."""
        if self._given(sample) is not None or sample.metadata.get("usage") is None:
            super().require(sample)

    def measure(self, sample: Sample) -> MetricResult:
        """Return the cost that is given, or else that of the usage; raise ``UnscoredError`` if it is not known."""
        if self._given(sample) is not None:
            return super().measure(sample)
        try:
            cost, what = bill_of(sample.metadata["usage"], sample.metadata.get("model"))
        except ValueError as error:
            raise UnscoredError(f"{self.name}: {error}; {self.remedy}") from error
        return MetricResult(cost, metric=self.name, reason=what)


assert_latency = asserting(Latency, takes=("sample",), example='{"latency": 1.84}, max=2.0', shows=1.84)
assert_first_token = asserting(FirstToken, takes=("sample",), example='{"first_token": 0.31}, max=1.0', shows=0.31)
assert_cost = asserting(Cost, takes=("sample",), example='{"cost": 0.0031}, max=0.01', shows=0.0031)
