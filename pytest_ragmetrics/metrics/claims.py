"""Metrics that check claims: Faithfulness, Hallucination, FactualCorrectness and NoiseSensitivity."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal, TypeAlias

from pytest_ragmetrics.core.errors import CacheMissError, JudgeError, JudgeNotConfiguredError, UnscoredError
from pytest_ragmetrics.core.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.schema import listed
from pytest_ragmetrics.judges.tasks import FindContradictions, Judgement, ListChosenClaims, ListClaims, VerifyClaims
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.base import Metric, f_beta
from pytest_ragmetrics.metrics.conversations import (
    Earlier,
    History,
    Origin,
    asked,
    asked_after,
    earlier_texts,
    seen_earlier,
)
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric, both, together
from pytest_ragmetrics.metrics.parameters import amount, choice, declared, share
from pytest_ragmetrics.metrics.verdicts import (
    EvidenceCheck,
    Place,
    cited_in,
    on_claim,
    place_in,
    supported_verdicts,
)
from pytest_ragmetrics.text.quotes.alignment import Sources
from pytest_ragmetrics.text.sentences import sentence_table, split_sentences
from pytest_ragmetrics.text.words import content_words

#: What is counted: claims that the judge lists, or sentences, which need no request.
Unit: TypeAlias = Literal["claims", "sentences"]

_NO_CONTEXT = "there is no context"
# Claims of several metrics in one request: a long answer may be cut short, and all of them would be asked again.
_MOST_TOGETHER = 60


async def verify(claims: Sequence[str], contexts: Sequence[str], ask: Ask) -> Sequence[Judgement]:
    """Return for each claim whether the contexts support it; if they have no sentence, none is, without a request."""
    if not sentence_table(contexts):
        return [Judgement(ok=False, reason=_NO_CONTEXT)] * len(claims)
    return await ask(VerifyClaims(claims=tuple(claims), contexts=tuple(contexts)))


class ContextClaimsMetric(JudgedMetric):
    """A metric that verifies claims against the retrieved contexts; those of one row ask in one request.

    A request for each would show the contexts again: 4,100 tokens for eight of 2,000 characters. Each finds out the
    claims of the others, which are asked for once, and sends the same request, which is answered once.
    """

    @abstractmethod
    async def claims(self, sample: Sample, ask: Ask) -> Sequence[str]:
        """Return the claims of a sample."""

    async def verified(self, claims: Sequence[str], sample: Sample, ask: Ask) -> Sequence[Judgement]:
        """Return for each claim whether the contexts support it."""
        contexts, beside = tuple(sample.retrieved_contexts or ()), context.current().beside
        by_metric = {self.name: claims}
        # A metric that is a part of another score is not known to the others.
        for other in beside if self in beside and sentence_table(contexts) else ():
            # Its own score says why there are none.
            with suppress(UnscoredError, JudgeError, JudgeNotConfiguredError, CacheMissError):
                if other is not self and ask.is_shared_by(other):
                    by_metric[other.name] = await other.claims(sample, ask)
        # The order of the metrics is no part of the request.
        texts = [*dict.fromkeys(text for name in sorted(by_metric) for text in by_metric[name])]
        if len(by_metric) == 1 or len(texts) > max(_MOST_TOGETHER, len(claims)):
            return await verify(claims, contexts, ask)
        judgements = dict(zip(texts, await verify(texts, contexts, ask), strict=True))
        return [judgements[claim] for claim in claims]

    async def share_supported(self, claims: Sequence[str], counted: str, sample: Sample, ask: Ask) -> MetricResult:
        """Return the share of the claims that the contexts support."""
        contexts = tuple(sample.retrieved_contexts or ())
        judgements = await self.verified(claims, sample, ask)
        verdicts = supported_verdicts(claims, judgements, contexts, question=sample.user_input)
        return ask.share(verdicts, counted if sentence_table(contexts) else f"{counted}: {_NO_CONTEXT}")


def asked_together(metrics: Iterable[Metric], sample: Sample) -> tuple[ContextClaimsMetric, ...]:
    """Return those metrics of a row that verify claims against its contexts: they ask in one request."""
    found = []
    for metric in metrics:
        # A subclass may take its claims from another text than that of the sample.
        if isinstance(metric, ContextClaimsMetric) and type(metric).__module__.startswith("pytest_ragmetrics."):
            with suppress(ValueError):
                metric.require(sample)
                # A turn without a field of theirs they score without a request.
                found += [metric] if metric.vacuous_score(sample) is None else []
    return tuple(found)


@declared
class Faithfulness(ContextClaimsMetric):
    """The share of the response's claims that the contexts support.

    Use it when answers state things that the retrieved passages do not say. ``unit="sentences"`` takes sentences as
    claims, in one request. ``user_input`` resolves pronouns. Without contexts: 0.0. A turn of a conversation without
    claims is vacuous. :class:`ContextRecall` shares the second request. After Es et al., "RAGAS" (2023).

    In a conversation one more request looks for unsupported claims in the contexts of earlier turns, which count. What
    only the user says is not counted, and earlier answers are no evidence. ``history="none"`` takes the turn's contexts
    alone.

    >>> judge = lambda prompt: (
    ...     '{"verdicts": [{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}]}'
    ... )
    >>> metric = Faithfulness(unit="sentences", judge=judge)
    >>> metric.score(response="Moths fly.", retrieved_contexts=["Moths fly at night."]).reason
    '1 of 1 sentences supported'
    """

    name = "faithfulness"
    blind_spots = "Whether the answer fits the question, is complete or true: claims of wrong contexts are supported."
    noun = "claim"
    complaint = "not supported"
    helper = "assert_faithful"
    aliases = ("FaithfulnessMetric",)
    requires = ("response", "retrieved_contexts")
    looks_back_for = ("retrieved_contexts",)
    rounds = 2

    history: History = choice("contexts", History)
    unit: Unit = choice("claims", Unit)
    if_empty: float | None = share(None)

    async def claims(self, sample: Sample, ask: Ask) -> Sequence[str]:
        """Return what the judge lists of the response, or its sentences."""
        response = sample.response or ""
        if self.unit == "sentences":
            return [response[start:end] for start, end in split_sentences(response)]
        contexts = tuple(sample.retrieved_contexts or ())
        return await ask(ListClaims(text=response, **asked(sample)), then=VerifyClaims(claims=(), contexts=contexts))

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return supported claims / claims."""
        response, claims = sample.response or "", await self.claims(sample, ask)
        if not claims:
            return ask.nothing(f"the response has no {self.unit}")
        places: list[Place | None] = [*split_sentences(response)]
        if self.unit == "claims":
            places = [place_in(response, claim) for claim in claims]
        contexts = tuple(sample.retrieved_contexts or ())
        judgements = await self.verified(claims, sample, ask)
        verdicts = supported_verdicts(claims, judgements, contexts, places, question=sample.user_input)
        texts = closest(earlier_texts(sample, self.history), [it.text for it in verdicts if not it.ok])
        if texts:
            verdicts = tuple(await _second_look(verdicts, texts, contexts, ask))
        is_bare = not (sentence_table(contexts) or texts)
        return ask.share(verdicts, f"{self.unit} supported{f': {_NO_CONTEXT}' if is_bare else ''}")


# Characters of each origin that a second look shows; texts with the most words of the claims come first.
_MOST_EARLIER = 40_000


def closest(texts: Sequence[Earlier], claims: Sequence[str]) -> Sequence[Earlier]:
    """Return the texts of a second look at claims; nothing where none is left."""
    if not claims or sum(len(it.text) for it in texts) <= _MOST_EARLIER:
        return texts if claims else ()
    words = {word.key for claim in claims for word in content_words(claim)}
    shared = {it: len(words & {word.key for word in content_words(it.text)}) for it in texts}
    sizes, kept = Counter[Origin](), set[Earlier]()
    for it in sorted(texts, key=lambda it: -shared[it]):
        is_first = not sizes[it.origin]
        sizes[it.origin] += len(it.text)
        if is_first or sizes[it.origin] <= _MOST_EARLIER:
            kept.add(it)
    return [it for it in texts if it in kept]


async def _second_look(
    verdicts: Sequence[Verdict], texts: Sequence[Earlier], contexts: Sequence[str], ask: Ask
) -> Sequence[Verdict]:
    """Return verdicts on claims, of which those that the contexts do not support are looked for earlier on.

    A claim that several support is of the first origin whose sentences do so as far as words can tell.
    """
    left = [verdict.text for verdict in verdicts if not verdict.ok]
    shown = tuple(it.text for it in texts)
    judgements = dict(zip(left, await verify(left, shown, ask), strict=True))
    table, check, own = sentence_table(shown), EvidenceCheck(shown), Sources(contexts)
    found = []
    for verdict in verdicts:
        judgement = judgements.get(verdict.text) if not verdict.ok else None
        cited = [] if judgement is None or not judgement.ok else [table[number] for number in judgement.sentences]
        by_origin: dict[Origin, list[Evidence]] = {}
        for piece in sorted(cited, key=lambda piece: piece.context):
            by_origin.setdefault(texts[piece.context].origin, []).append(piece)
        sound = [it for it in by_origin.values() if not check.is_suspicious(verdict.text, [each.text for each in it])]
        pieces = next(iter([*sound, *by_origin.values()]), [])
        if pieces:
            verdict = seen_earlier(verdict, texts, pieces)  # noqa: PLW2901 - what it becomes
        elif not verdict.ok:
            verdict = replace(verdict, nearest=own.align([verdict.text])[0].nearest)  # noqa: PLW2901 - as above
        found.append(verdict)
    return found


assert_faithful = asserting(
    Faithfulness, optional=("question",), min=0.8, example='"Moths fly at night.", "Moths fly at night.", judge="local"'
)


class Hallucination(JudgedMetric):
    """The share of the contexts that the response contradicts; lower is better.

    Use it when answers say the opposite of a passage. After earlier turns the judge also sees ``user_input``. After
    DeepEval.

    >>> judge = lambda prompt: (
    ...     '{"verdicts": [{"number": 1, "reason": "By night.", "sentences": [1], "verdict": "contradicted"}]}'
    ... )
    >>> Hallucination(judge=judge).score(response="Moths fly by day.", retrieved_contexts=["They fly by night."]).value
    1.0
    """

    name = "hallucination"
    blind_spots = "Invented facts that no context mentions: Faithfulness counts them."
    noun = "context"
    complaint = "contradicted"
    helper = "assert_not_hallucinated"
    requires = ("response", "retrieved_contexts")
    may_be_empty = ()
    better = "lower"

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return contexts contradicted / contexts."""
        contexts = tuple(sample.retrieved_contexts or ())
        task = FindContradictions(response=sample.response or "", contexts=contexts, **asked_after(sample))
        judgements = await ask(task)
        table = sentence_table(contexts)
        verdicts = [
            Verdict(
                text=context,
                ok=not judgement.ok,
                reason=judgement.reason or None,
                evidence=tuple(table[index] for index in judgement.sentences) if judgement.ok else (),
            )
            for context, judgement in zip(contexts, judgements, strict=True)
        ]
        return ask.share(verdicts, "contexts contradicted", of_ok=False)


assert_not_hallucinated = asserting(
    Hallucination, max=0.0, example='"Moths fly at night.", ["Moths fly at night."], judge="local"', shows=0.0
)


Mode: TypeAlias = Literal["precision", "recall", "f1"]
Degree: TypeAlias = Literal["low", "high"]
#: Which text a mode takes claims from; each is compared with the other.
_SIDES = {"precision": ("response",), "recall": ("reference",), "f1": ("response", "reference")}


@declared
class FactualCorrectness(JudgedMetric):
    """How far the response and the reference support each other's claims.

    Use it when you have right answers, and want to know which facts are wrong and which are missing. Precision is the
    share of the response's claims that the reference supports, recall the reverse; ``mode="f1"`` is their F-beta, where
    recall counts ``beta`` times. ``atomicity="low"`` keeps a sentence together, ``coverage="low"`` counts main
    statements alone (language models only). ``user_input`` resolves pronouns. A response without claims has an F-beta
    of 0.0. After Ragas, whose degrees default to low; here its two directions are apart.

    >>> yes = '{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}'
    >>> judge = lambda prompt: f'{{"verdicts": [{yes}]}}' if "<<<claims" in prompt else '{"claims": ["Moths fly."]}'
    >>> FactualCorrectness(judge=judge).score(response="They fly.", reference="Moths do.").value
    1.0
    """

    name = "factual_correctness"
    blind_spots = "True claims that the reference lacks, which count as unsupported; errors of the reference."
    noun = "claim"
    complaint = "not supported"
    helper = "assert_factually_correct"
    requires = ("response", "reference")
    rounds = 2

    mode: Mode = choice("f1", Mode)
    beta: float = amount(1.0)
    atomicity: Degree = choice("high", Degree)
    coverage: Degree = choice("high", Degree)
    if_empty: float | None = share(None)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return precision, recall or the F-beta of both."""
        texts = {"response": sample.response or "", "reference": sample.reference or ""}
        sides = _SIDES[self.mode]
        listed = await together(ask(self._listing(texts[side], sample)) for side in sides)
        claims = dict(zip(sides, listed, strict=True))
        if not claims[sides[-1]]:
            return ask.nothing(f"the {sides[-1]} has no claims")
        if not claims[sides[0]]:
            return ask.result(0.0, reason="the response has no claims")
        judged = await together(verify_against(claims[side], side, texts, ask, sample.user_input) for side in sides)
        shares = [sum(verdict.ok for verdict in verdicts) / len(verdicts) for verdicts in judged]
        verdicts = [verdict for side in judged for verdict in side]
        counts = zip(sides, judged, strict=True)
        reason = ", ".join(f"{sum(v.ok for v in found)} of {len(found)} claims of the {side}" for side, found in counts)
        score = shares[0] if len(shares) == 1 else f_beta(shares[0], shares[1], self.beta)
        return ask.result(score, reason=f"{reason} supported", verdicts=verdicts)

    def _listing(self, text: str, sample: Sample) -> ListClaims | ListChosenClaims:
        if (self.atomicity, self.coverage) == ("high", "high"):
            return ListClaims(text=text, **asked(sample))
        return ListChosenClaims(text=text, atomicity=self.atomicity, coverage=self.coverage, **asked(sample))


assert_factually_correct = asserting(
    FactualCorrectness,
    optional=("question",),
    min=0.7,
    example='"Moths fly at night.", "Moths fly at night.", judge="local"',
)


async def verify_against(
    claims: Sequence[str], side: str, texts: dict[str, str], ask: Ask, question: str | None
) -> list[Verdict]:
    """Return for each claim of one side, ``response`` or ``reference``, whether the text of the other supports it.

    That text is no context, where evidence has its place: the reason quotes it.
    """
    other = "reference" if side == "response" else "response"
    source = (texts[other],)
    judgements = await ask(VerifyClaims(claims=tuple(claims), contexts=source))
    places = [place_in(texts[side], claim) if side == "response" else None for claim in claims]
    verdicts = []
    for verdict in supported_verdicts(claims, judgements, source, places, question=question):
        quoted = " ".join(piece.text for piece in verdict.evidence)
        reason = f'{verdict.reason or ""} ({other}: "{quoted}")'.strip() if quoted else verdict.reason
        verdicts.append(replace(verdict, evidence=(), reason=reason))
    return verdicts


Noise: TypeAlias = Literal["relevant", "irrelevant"]


@declared
class NoiseSensitivity(JudgedMetric):
    """The share of the response's claims that are wrong because a context has them; lower is better.

    Use it when answers repeat wrong facts of the passages they were given. A context is relevant if it supports a claim
    of the reference. ``mode="relevant"`` counts claims that a relevant context supports and the reference does not,
    ``mode="irrelevant"`` those that only irrelevant contexts support. ``user_input`` resolves pronouns. After
    RAGChecker (Ru et al., 2024), as in Ragas.

    >>> yes = '{"number": %d, "reason": "It says so.", "sentences": [1], "verdict": "supported"}'
    >>> def judge(prompt):
    ...     if "<<<claims" not in prompt:
    ...         return '{"claims": ["Moths fly."]}'
    ...     numbers = [1, 2] if "2. Moths fly." in prompt else [1]
    ...     return '{"verdicts": [%s]}' % ", ".join(yes % number for number in numbers)
    >>> fields = {"response": "They fly.", "reference": "Moths do.", "retrieved_contexts": ["Moths fly."]}
    >>> NoiseSensitivity(judge=judge).score(**fields).value
    0.0
    """

    name = "noise_sensitivity"
    blind_spots = "Wrong claims that no context has: Faithfulness counts them."
    noun = "claim"
    complaint = "wrong as contexts have it"
    helper = "assert_noise_resisted"
    requires = ("response", "reference", "retrieved_contexts")
    may_be_empty = ()
    better = "lower"
    rounds = 2

    mode: Noise = choice("relevant", Noise)
    if_empty: float | None = share(None)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return claims wrong by noise / claims."""
        response, reference = sample.response or "", sample.reference or ""
        said, wanted = await together(ask(ListClaims(text=text, **asked(sample))) for text in (response, reference))
        if not (said and wanted):
            blank = "response" if wanted else "reference"
            return ask.nothing(f"the {blank} has no claims")
        contexts = sample.retrieved_contexts or ()
        correct, sources = await both(
            ask(VerifyClaims(claims=said, contexts=(reference,))),
            together(_supported_by(context, said, wanted, ask) for context in contexts),
        )
        relevant = [any(judgement.ok for judgement in of_wanted) for _, of_wanted in sources]
        verdicts, check = [], EvidenceCheck(contexts, sample.user_input)
        for number, (claim, judgement) in enumerate(zip(said, correct, strict=True)):
            of_claim = [of_said[number] for of_said, _ in sources]
            having = [index for index, found in enumerate(of_claim) if found.ok]
            noisy = is_noise(self.mode, correct=judgement.ok, relevant=[relevant[index] for index in having])
            evidence = [piece for index in having for piece in cited_in(contexts, (index,), of_claim[index])]
            blamed = ""
            if noisy:
                numbers = [index + 1 for index in having]
                have = f"contexts {listed(numbers)} have" if len(having) > 1 else f"context {numbers[0]} has"
                blamed = f"{have} it, the reference does not. "
            reason, place = f"{blamed}{judgement.reason}", place_in(response, claim)
            verdicts.append(on_claim(claim, ok=not noisy, reason=reason, evidence=evidence, check=check, place=place))
        return ask.share(verdicts, f"claims wrong as {self.mode} contexts have them", of_ok=False)


assert_noise_resisted = asserting(
    NoiseSensitivity, takes=("response", "contexts", "reference"), optional=("question",), max=0.2
)


def is_noise(mode: Noise, *, correct: bool, relevant: Sequence[bool]) -> bool:
    """Tell whether a claim counts: ``correct`` by the reference, ``relevant`` or not are the contexts that have it.

    >>> is_noise("irrelevant", correct=False, relevant=[False]), is_noise("irrelevant", correct=False, relevant=[])
    (True, False)
    """
    return not correct and bool(relevant) and any(relevant) == (mode == "relevant")


async def _supported_by(
    context: str, said: Sequence[str], wanted: Sequence[str], ask: Ask
) -> tuple[Sequence[Judgement], Sequence[Judgement]]:
    # In one request: two would both show the context.
    judgements = await verify((*said, *wanted), (context,), ask)
    return judgements[: len(said)], judgements[len(said) :]
