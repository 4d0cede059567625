"""The response held against the reference, character by character or word by word; no judge, no network."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from pytest_ragmetrics.metrics.f_scores import f1_of_counts
from pytest_ragmetrics.metrics.metric import Metric
from pytest_ragmetrics.metrics.parameters import check_choice
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.text.facts.squad import answer_tokens
from pytest_ragmetrics.text.likeness import MEASURES, Measure, likeness


class ExactMatch(Metric):
    """1.0 if ``response`` is ``reference``, character for character, else 0.0.

    >>> ExactMatch().score(response="Oslo.", reference="Oslo").value
    0.0
    """

    name = "exact_match"
    aliases: ClassVar[tuple[str, ...]] = ("ExactMatchMetric",)
    requires: ClassVar[tuple[str, ...]] = ("response", "reference")

    def measure(self, sample: Sample) -> MetricResult:
        """Return whether they are the same."""
        response, reference = sample.response or "", sample.reference or ""
        if response != reference and response.split() == reference.split():
            return self._of(sample, holds=False, reason="it differs from the reference in white space")
        return self._of(sample, holds=response == reference, reason=f'the reference is "{reference}"')

    def _of(self, sample: Sample, *, holds: bool, reason: str) -> MetricResult:
        response = sample.response or ""
        verdict = Verdict(text=response, ok=holds, start=0, end=len(response), reason=reason)
        return MetricResult(float(holds), metric=self.name, reason=reason, verdicts=[verdict])


class StringPresence(ExactMatch):
    """1.0 if ``reference`` stands in ``response``, character for character, else 0.0.

    >>> StringPresence().score(response="The capital is Oslo.", reference="Oslo").value
    1.0
    """

    name = "string_presence"
    aliases: ClassVar[tuple[str, ...]] = ("string_present",)

    def measure(self, sample: Sample) -> MetricResult:
        """Return whether the reference is there."""
        response, reference = sample.response or "", sample.reference or ""
        found = reference in response
        if not found and reference.casefold() in response.casefold():
            return self._of(sample, holds=False, reason=f'"{reference}" stands in it in another case')
        return self._of(sample, holds=found, reason=f'"{reference}" stands {"" if found else "not "}in it')


class NonLLMStringSimilarity(Metric):
    """How alike ``response`` and ``reference`` are, from 0.0 to 1.0.

    ``measure`` is levenshtein, indel, hamming (1 - edits / the most that there could be), jaro or jaro_winkler.

    >>> NonLLMStringSimilarity().score(response="moth", reference="moths").value
    0.8
    """

    name = "non_llm_string_similarity"
    requires: ClassVar[tuple[str, ...]] = ("response", "reference")

    def __init__(self, *, measure: Measure = "levenshtein") -> None:
        self.alike_by: Measure = check_choice("measure", measure, MEASURES)

    def measure(self, sample: Sample) -> MetricResult:
        """Return the similarity."""
        alike = likeness(self.alike_by)(sample.response or "", sample.reference or "")
        return MetricResult(alike, metric=self.name, reason=f"{alike:.0%} alike by {self.alike_by}")


class TokenF1(Metric):
    """The F1 of the words that ``response`` and ``reference`` share, each as often as it stands there, as in SQuAD.

    Words are compared without case, punctuation and English articles (Rajpurkar et al., 2016); in scripts without
    spaces each character is a word. Blank texts have a score too: two without words 1.0, one without words 0.0.

    >>> TokenF1().score(response="In May 1903.", reference="May 1903").value
    0.8
    """

    name = "token_f1"
    aliases: ClassVar[tuple[str, ...]] = ("f1",)
    requires: ClassVar[tuple[str, ...]] = ("response", "reference")
    may_be_empty: ClassVar[tuple[str, ...]] = ("response", "reference")

    def measure(self, sample: Sample) -> MetricResult:
        """Return the F1."""
        return token_f1(sample.response or "", sample.reference or "", metric=self.name)


def token_f1(response: str, reference: str, *, metric: str) -> MetricResult:
    """Return the F1 of the words of two texts, as the result of a metric."""
    said, wanted = Counter(answer_tokens(response)), Counter(answer_tokens(reference))
    common = (said & wanted).total()
    value = f1_of_counts(common, (said - wanted).total(), (wanted - said).total())
    reason = f"{common} words in common of {said.total()} and {wanted.total()}"
    return MetricResult(value if said or wanted else 1.0, metric=metric, reason=reason)
