"""CitationValidity: whether the citations of a response point to contexts that exist; needs no judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.core.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.conversations import Numbering, looked_back_for, numbered_contexts
from pytest_ragmetrics.metrics.parameters import choice, declared
from pytest_ragmetrics.metrics.verdicts import share_of
from pytest_ragmetrics.runs.wording.figures import agreeing
from pytest_ragmetrics.text.citations import Citation, find_citations

# How much of a cited context is shown as evidence, and of how many: which one it is, not what supports the sentence.
_OPENING = 80
_SHOWN = 10


@declared
class CitationValidity(Metric):
    """The share of the citations in ``response`` that point to contexts that exist, counted from 1.

    Use it when answers cite passages by number or file, and a citation may point to nothing. A mark counts once, and is
    valid if all its numbers are: [1], [1, 2], [2-3], [^1], [1](url), ¹, (Passage 1), "as Passage 1 says" and others.
    Files and ids ([handbook.pdf], [kb-7]) are looked up in ``retrieved_context_ids``; a file does not count if no id is
    one, and :class:`UnscoredError` is raised if nothing else is cited. Without citations: 1.0 and vacuous, or 0.0 with
    ``require_citations=True``. In a conversation ``numbering="turn"`` counts the turn's contexts; "conversation" those
    of earlier turns first, each once.

    >>> result = CitationValidity().score(
    ...     response="Otters float [1]. They dive for crabs [3].", retrieved_contexts=["Otters float.", "Crabs dig."]
    ... )
    >>> result.value, result.verdicts[1].reason
    (0.5, 'there is no context 3, there are 2')
    """

    name = "citation_validity"
    blind_spots = "Whether the cited context supports the sentence: CitationRecall."
    noun = "citation"
    complaint = "without a context"
    helper = "assert_citations_valid"
    requires = ("response", "retrieved_contexts")

    require_citations: bool = False
    numbering: Numbering = choice("turn", Numbering)

    def __post_init__(self) -> None:
        vars(self)["looks_back_for"] = looked_back_for(self.numbering)

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share of valid citations."""
        response, (contexts, ids) = sample.response or "", numbered_contexts(sample, self.numbering)
        citations = find_citations(response, ids)
        # With a number or an id that is wrong it is wrong, whatever else it names.
        unchecked = [name for citation in citations if not citation.unknown for name in citation.unchecked]
        verdicts = [
            _verdict(citation, response, contexts) for citation in citations if citation.numbers or citation.unknown
        ]
        rest = f"{unchecked[0]} was not compared: no id in retrieved_context_ids is a file" if unchecked else ""
        if rest and not verdicts:
            raise UnscoredError(f"{self.name}: {rest}; give the id of each context")
        if not verdicts:
            reason = "No citations found in response"
            if self.require_citations and sample.retrieved_contexts is not None:
                return MetricResult(0.0, metric=self.name, reason=f"{reason}, and require_citations asks for one")
            return MetricResult(1.0, metric=self.name, reason=reason, vacuous=True)
        return share_of(self.name, verdicts, f"citations point to a context{rest and '; '}{rest}")


assert_citations_valid = asserting(
    CitationValidity,
    optional=("context_ids",),
    min=1.0,
    example='"Otters float [1].", ["Otters float."]',
    note="``context_ids`` are the files or ids of the contexts, for citations such as [handbook.pdf].",
)


def _verdict(citation: Citation, response: str, contexts: Sequence[Evidence]) -> Verdict:
    cited = [number for number in citation.numbers if 0 < number <= len(contexts)]
    wrong = [str(number) for number in citation.numbers if not 0 < number <= len(contexts)]
    there = f"there {agreeing(len(contexts), 'is')} {len(contexts) or 'none'}"
    reasons = [f"there is no context {', '.join(wrong)}, {there}"] if wrong else []
    reasons += [f"no id in retrieved_context_ids is {', '.join(citation.unknown)}"] if citation.unknown else []
    return Verdict(
        text=response[citation.start : citation.end],
        ok=not reasons,
        start=citation.start,
        end=citation.end,
        reason="; ".join(reasons) or None,
        evidence=tuple(_opening(contexts[number - 1]) for number in cited[:_SHOWN]),
    )


def _opening(context: Evidence) -> Evidence:
    return replace(context, end=min(context.end, _OPENING), text=context.text[:_OPENING])
