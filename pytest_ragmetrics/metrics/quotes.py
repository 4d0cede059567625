"""QuotedSpansAlignment: whether the quotations of a response are in its contexts; needs no judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias

from pytest_ragmetrics.core.result import MetricResult, Verdict, VerdictKind
from pytest_ragmetrics.core.sample import Sample, as_contexts
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.conversations import Earlier, History, conversation, earlier_texts, seen_earlier
from pytest_ragmetrics.metrics.parameters import check_count, check_flag, choice, count, declared, parameter
from pytest_ragmetrics.runs.wording.figures import describe_uncounted
from pytest_ragmetrics.text.quotes.alignment import Matching, Sources
from pytest_ragmetrics.text.quotes.kinds import is_attributed, looks_like_title
from pytest_ragmetrics.text.quotes.quotations import Quotation, find_quotations

#: Whether a span that looks like a title or a name, and that no context has, counts as not found.
Titles: TypeAlias = Literal["count", "skip"]


@declared
class QuotedSpansAlignment(Metric):
    """The fraction of quoted spans in the response that are found in one of the contexts.

    Use it when answers quote, and a quotation may be altered or invented. A span has at least ``min_span_words`` words.
    ``matching="verbatim"`` ignores white space, case (unless ``casefold=False``), typography and markup;
    ``"editorial"`` also ellipses, bracketed changes and punctuation at the ends. Not counted: spans that no context has
    and that are in ``allowed`` or in what the user says, unless a colon or a word like "says" right beside attributes
    them; with ``titles="skip"`` those in English title case, or beside a word like "novel". ``history`` is as in
    :class:`Faithfulness`. Without spans: 1.0 and vacuous, or 0.0 with ``require_quotes=True``.

    >>> result = QuotedSpansAlignment().score(
    ...     response='It says "the tide turned at noon" and "the boats were lost".',
    ...     retrieved_contexts=["The tide turned at noon, and all boats came home."],
    ... )
    >>> result.value, result.reason
    (0.5, 'Matched 1/2 quoted spans')
    """

    name = "quoted_spans_alignment"
    blind_spots = "Paraphrases without quotation marks; whether the source and the meaning of a quotation are right."
    noun = "quoted span"
    complaint = "not found"
    helper = "assert_quoted_spans_aligned"
    requires = ("response", "retrieved_contexts")
    looks_back_for = ("retrieved_contexts",)

    history: History = choice("contexts", History)
    casefold: bool = True
    min_span_words: int = count(3)
    matching: Matching = choice("editorial", Matching)
    require_quotes: bool = False
    allowed: Sequence[str] = parameter((), partial(as_contexts, name="allowed"))
    titles: Titles = choice("count", Titles)

    def measure(self, sample: Sample) -> MetricResult:
        """Score the quoted spans of ``response`` against ``retrieved_contexts``."""
        response = sample.response or ""
        spans = _spans_of(response, self.min_span_words)
        verdicts = self._verdicts(spans, sample) if spans else []
        counted = [verdict for verdict in verdicts if verdict.counts]
        apart = describe_uncounted(verdicts)
        if counted:
            matched = sum(verdict.ok for verdict in counted)
            reason = f"Matched {matched}/{len(counted)} quoted spans{apart}"
            return MetricResult(matched / len(counted), metric=self.name, reason=reason, verdicts=verdicts)
        reason = f"No quoted spans {'to check' if verdicts else 'found'} in response"
        if self.require_quotes:
            reason += f", and require_quotes asks for at least one of {self.min_span_words} or more words"
        vacuous = not self.require_quotes
        return MetricResult(vacuous, metric=self.name, reason=f"{reason}{apart}", verdicts=verdicts, vacuous=vacuous)

    def _verdicts(self, spans: Sequence[Quotation], sample: Sample) -> list[Verdict]:
        response = sample.response or ""
        asked = [turn.text for turn in conversation(sample) if turn.role == "user"]
        earlier = earlier_texts(sample, self.history)
        contexts, answers = ([it for it in earlier if it.origin == origin] for origin in ("contexts", "assistant"))
        apart: dict[VerdictKind, Sources] = {
            "quotes the question": self._sources(asked),
            "allowed": self._sources(self.allowed),
        }
        verdicts = self._sources(sample.retrieved_contexts or ()).align(span.text for span in spans)
        verdicts = self._looked_up(verdicts, contexts)
        both = zip(verdicts, spans, strict=True)
        return self._looked_up([self._classified(verdict, span, response, apart) for verdict, span in both], answers)

    def _looked_up(self, verdicts: Sequence[Verdict], texts: Sequence[Earlier]) -> list[Verdict]:
        """Return verdicts, of which those on spans that were not found are looked for in earlier texts."""
        sources = self._sources([it.text for it in texts])
        places = [None if verdict.ok else sources.find(verdict.text) for verdict in verdicts]
        return [
            verdict if found is None else seen_earlier(verdict, texts, found.evidence)
            for verdict, found in zip(verdicts, places, strict=True)
        ]

    def _sources(self, texts: object) -> Sources:
        return Sources(texts, casefold=self.casefold, matching=self.matching)

    def _classified(
        self, verdict: Verdict, span: Quotation, response: str, apart: Mapping[VerdictKind, Sources]
    ) -> Verdict:
        """Return a verdict with its kind and its place: a span that no context has may be one that is not counted."""
        classified = partial(replace, verdict, start=span.start, end=span.end)
        if verdict.ok:
            return classified(kind=verdict.kind or "found")
        for kind, texts in apart.items():
            found = texts.find(span.text)
            places = {each.context for each in found.evidence} if found else set()
            # They are no chunks of one text. What the answer says that a source says is a claim about the contexts.
            if len(places) == 1 and (kind == "allowed" or not is_attributed(response, span)):
                place = f": it is in allowed[{places.pop()}]" if kind == "allowed" else ""
                return classified(kind=kind, ok=True, reason=f"{kind}{place}", nearest=None)
        if not looks_like_title(response, span):
            return classified(kind="not found")
        if self.titles == "skip":
            return classified(kind="looks like a title", ok=True, reason="looks like a title", nearest=None)
        return classified(kind="not found", reason=f"{verdict.reason}; looks like a title")


assert_quoted_spans_aligned = asserting(
    QuotedSpansAlignment,
    optional=("question or messages",),
    min=0.9,
    example="'It says \"open the valve slowly\".', ['Open the valve slowly.']",
    note="``question`` is a text or the messages of a conversation.",
)


def quoted_spans_alignment(
    answers: Sequence[str], sources: Sequence[object], *, casefold: bool = True, min_len: int = 3
) -> dict[str, float]:
    """Return the fraction of quoted spans in all answers that are found in the sources of their answer.

    ``sources[i]`` are the contexts of ``answers[i]``; spans shorter than ``min_len`` words do not count. Without any
    span all three values are 0.0. Raises ``ValueError`` if the two lists differ in length.

    >>> quoted_spans_alignment(['He wrote "rain is on its way".'], [["Rain is on its way."]])
    {'citation_alignment_quoted_spans': 1.0, 'matched': 1.0, 'total': 1.0}
    """
    for name, value in (("answers", answers), ("sources", sources)):
        if isinstance(value, str):
            raise TypeError(f"{name} must be a list with one entry per answer, not one str")
    if len(answers) != len(sources):
        raise ValueError(f"answers and sources must be of the same length, not {len(answers)} and {len(sources)}")
    check_flag("casefold", casefold)
    check_count("min_len", min_len)
    for index, answer in enumerate(answers):
        if not isinstance(answer, str):
            raise TypeError(f"answers[{index}] must be a str, not {type(answer).__name__}")
    matched = total = 0
    for answer, contexts in zip(answers, sources, strict=True):
        if spans := _spans_of(answer, min_len):
            total += len(spans)
            verdicts = Sources(contexts, casefold=casefold).align(span.text for span in spans)
            matched += sum(verdict.ok for verdict in verdicts)
    return {
        "citation_alignment_quoted_spans": matched / total if total else 0.0,
        "matched": float(matched),
        "total": float(total),
    }


def _spans_of(response: str, min_words: int) -> list[Quotation]:
    return [span for span in find_quotations(response) if span.words >= min_words]
