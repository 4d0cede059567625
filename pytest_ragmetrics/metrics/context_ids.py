"""Which passages were retrieved, by their ids and whatever their order; Ragas has these two under these names."""

from __future__ import annotations

from typing import ClassVar

from pytest_ragmetrics.metrics.retrieval import PrecisionAtK, RecallAtK


class IDBasedContextPrecision(PrecisionAtK):
    """The share of the different ids retrieved that are relevant; nothing retrieved: 0.0.

    Takes ``retrieved_context_ids`` and ``reference_context_ids``, compared as given. :class:`PrecisionAtK` without k.

    >>> IDBasedContextPrecision().score(retrieved_context_ids=[1, 2, 3, 3], reference_context_ids=[3, 4]).reason
    '1 of 2 reference ids among 3 retrieved'
    """

    name = "id_based_context_precision"
    aliases: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__()


class IDBasedContextRecall(RecallAtK):
    """The share of the relevant ids that were retrieved.

    Takes ``retrieved_context_ids`` and ``reference_context_ids``, compared as given. :class:`RecallAtK` without k.

    >>> IDBasedContextRecall().score(retrieved_context_ids=[1, 2, 3], reference_context_ids=[3, 4]).value
    0.5
    """

    name = "id_based_context_recall"
    aliases: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
