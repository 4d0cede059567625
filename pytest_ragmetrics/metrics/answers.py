"""Metrics of the response: relevancy, correctness, similarity to a reference, refusals, and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from pytest_ragmetrics.core.result import MetricResult, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.metrics.asserting import MAJORITY, asserting
from pytest_ragmetrics.metrics.base import f_of_counts
from pytest_ragmetrics.metrics.claims import verify_against
from pytest_ragmetrics.metrics.conversations import asked, earlier_turns
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric, both, together
from pytest_ragmetrics.metrics.parameters import amount, check_number, choice, count, declared, parameter, share
from pytest_ragmetrics.metrics.verdicts import judged_verdict, on_response
from pytest_ragmetrics.text.sentences import sentence_table
from pytest_ragmetrics.text.unicode import plain

Rule: TypeAlias = Literal["all", "any", "majority"]


@declared
class AnswerRelevancy(JudgedMetric):
    """How close the question is to questions that the response answers, as the mean of cosine similarities.

    Use it when answers evade the question or answer another one. The judge writes ``strictness`` questions, each with a
    flag for a noncommittal response, and as they would follow earlier turns. 0.0 if ``noncommittal`` ("all", "any" or
    the "majority") of the flags are set; :class:`UnscoredError` for a vector of zeros. After Es et al., "RAGAS" (2023).

    A bound belongs to its embedder: ``ragmetrics doctor --embedder SPEC`` prints the similarity of unrelated texts.

    >>> judge = lambda prompt: '{"questions": [{"question": "Do moths fly?", "noncommittal": false}]}'
    >>> metric = AnswerRelevancy(strictness=1, judge=judge, embedder="local")
    >>> metric.score(user_input="Do moths fly?", response="They do.").value
    1.0
    """

    name = "answer_relevancy"
    blind_spots = (
        "Whether the answer is true or supported: a wrong answer to the question scores as high as a right one."
    )
    noun = "generated question"
    complaint = "noncommittal"
    helper = "assert_answer_relevant"
    asks = ("judge", "embedder")
    aliases = ("ResponseRelevancy", "response_relevancy")
    requires = ("user_input", "response")
    scale = (-1.0, 1.0)
    # The questions, the vectors asked for before, and its own.
    rounds = 3

    strictness: int = count(3)
    noncommittal: Rule = choice("all", Rule)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the mean cosine similarity of the question and the generated questions."""
        response, earlier = sample.response or "", earlier_turns(sample)
        written = await ask(tasks.WriteQuestions(response=response, count=self.strictness, earlier=earlier))
        flags = [flag for _, flag in written]
        rules_out = {"all": all(flags), "any": any(flags), "majority": sum(flags) * 2 > len(flags)}
        if rules_out[self.noncommittal]:
            verdicts = [Verdict(text=question, ok=not flag) for question, flag in written]
            counted = f"{sum(flags)} of {len(flags)} generated questions say so"
            return ask.result(0.0, reason=f"the response is noncommittal: {counted}", verdicts=verdicts)
        texts = [sample.user_input or "", *(question for question, _ in written)]
        likeness = (await ask.cosines(texts))[0, 1:].tolist()
        verdicts = [
            Verdict(text=question, ok=not flag, reason=f"cosine similarity {value:.2f} to the question")
            for (question, flag), value in zip(written, likeness, strict=True)
        ]
        mean = sum(likeness) / len(likeness)
        least = min(zip(likeness, written, strict=True))
        reason = f'mean similarity of {len(likeness)} generated questions; the least alike is "{least[1][0]}"'
        return ask.result(mean, reason=reason, verdicts=verdicts)


assert_answer_relevant = asserting(AnswerRelevancy, min=0.7)


_SIDES = ("response", "reference")


def _shares(weights: object) -> tuple[float, float]:
    if isinstance(weights, (str, bytes)) or not isinstance(weights, Sequence) or len(weights) != len(_SIDES):
        raise ValueError(f"weights must be two numbers, of the statements and of the similarity, not {weights!r}")
    facts, meaning = (check_number("weights", weight) for weight in weights)
    if not facts + meaning:
        raise ValueError("weights must not both be 0")
    return facts / (facts + meaning), meaning / (facts + meaning)


@declared
class AnswerCorrectness(JudgedMetric):
    """The F-beta of the response's statements and its similarity to the reference, 3 to 1 by ``weights``.

    Use it when you have right answers and want one figure for facts and wording. A statement of the response is a true
    positive (TP) if the reference supports it, else a false positive (FP); a false negative (FN) is a statement of the
    reference that the response does not support. Precision is TP / (TP + FP), recall TP / (TP + FN), which counts
    ``beta`` times. The similarity is the cosine of both texts, at least 0. A part of weight 0 is not requested.
    ``user_input`` resolves pronouns. 0.0 if one text has no statement. After Ragas.

    >>> yes = '{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}'
    >>> judge = lambda prompt: f'{{"verdicts": [{yes}]}}' if "<<<claims" in prompt else '{"claims": ["Moths fly."]}'
    >>> metric = AnswerCorrectness(judge=judge, embedder="local")
    >>> metric.score(response="Moths fly.", reference="Moths fly.").value
    1.0
    """

    name = "answer_correctness"
    blind_spots = "True statements that the reference lacks, which count as false positives; errors of the reference."
    noun = "statement"
    complaint = "wrong or missing"
    helper = "assert_answer_correct"
    asks = ("judge", "embedder")
    requires = ("response", "reference")
    rounds = 2

    weights: Sequence[float] = parameter((0.75, 0.25), _shares)
    beta: float = amount(1.0)
    if_empty: float | None = share(None)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the weighted mean of F-beta and similarity."""
        texts = {"response": sample.response or "", "reference": sample.reference or ""}
        of_facts, of_meaning = self.weights
        sides = _SIDES if of_facts else ()
        listed, similarity = await both(
            together(ask(tasks.ListClaims(text=texts[side], **asked(sample))) for side in sides),
            self._similarity(texts, ask),
        )
        if not of_facts:
            return ask.result(similarity, reason=f"similarity {similarity:.2f}")
        if not any(listed):
            return ask.nothing("neither text has a statement")
        if not all(listed):
            return ask.result(0.0, reason=f"the {_SIDES[bool(listed[0])]} has no statement")
        said, wanted = await together(
            verify_against(claims, side, texts, ask, sample.user_input)
            for side, claims in zip(_SIDES, listed, strict=True)
        )
        found, missing = sum(verdict.ok for verdict in said), sum(not verdict.ok for verdict in wanted)
        share = f_of_counts(found, surplus=len(said) - found, missing=missing, beta=self.beta)
        reason = f"{found} statements right, {len(said) - found} wrong, {missing} missing"
        if of_meaning:
            reason = f"{reason}; similarity {similarity:.2f}"
        # A statement of the reference that the response has is already counted with those of the response.
        verdicts = [*said, *(verdict for verdict in wanted if not verdict.ok)]
        return ask.result(of_facts * share + of_meaning * similarity, reason=reason, verdicts=verdicts)

    async def _similarity(self, texts: dict[str, str], ask: Ask) -> float:
        if not self.weights[1]:
            return 0.0
        return max(0.0, await _cosine(texts["response"], texts["reference"], ask))


assert_answer_correct = asserting(AnswerCorrectness, optional=("question",), min=0.7)


async def _cosine(one: str, other: str, ask: Ask) -> float:
    return float((await ask.cosines([one, other]))[0, 1])


@declared
class SemanticSimilarity(JudgedMetric):
    """The cosine similarity of ``response`` and ``reference`` by the embedder, without a judge.

    Use it when you want a cheap check that an answer is about the same thing as the right one. With ``threshold`` the
    score is 1.0 if the similarity reaches it, else 0.0. After Risch et al. (2021).

    A bound belongs to its embedder: unrelated texts are at 0.01 with all-MiniLM-L6-v2, at 0.73 with multilingual-e5.
    ``ragmetrics doctor --embedder SPEC`` prints yours.

    >>> metric = SemanticSimilarity(embedder="local")
    >>> metric.score(response="Moths fly at night.", reference="Moths fly at night.").value
    1.0
    """

    name = "semantic_similarity"
    blind_spots = (
        "Negations, numbers, names: to every embedder measured, one wrong word is nearer than a paraphrase in 9 of 10 "
        "pairs."
    )
    helper = "assert_semantically_similar"
    asks = ("embedder",)
    aliases = ("answer_similarity", "AnswerSimilarity")
    requires = ("response", "reference")
    scale = (-1.0, 1.0)

    threshold: float | None = share(None)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the cosine similarity, or whether it reaches the threshold."""
        similarity = await _cosine(sample.response or "", sample.reference or "", ask)
        if self.threshold is None:
            return ask.result(similarity, reason=f"cosine similarity {similarity:.2f}")
        met = similarity >= self.threshold
        sign = "≥" if met else "<"
        return ask.result(float(met), reason=f"cosine similarity {similarity:.2f} {sign} {self.threshold:g}")


assert_semantically_similar = asserting(SemanticSimilarity)


class RefusalCorrectness(JudgedMetric):
    """1.0 if the response refuses exactly when the contexts cannot answer the question, else 0.0.

    Use it when the application answers without knowing, or refuses although the passages have the answer. Without
    contexts it should refuse.

    >>> judge = lambda prompt: (
    ...     '{"reason": "It says so.", "verdict": "refuses"}' if "<<<response" in prompt else '{"sentences": []}'
    ... )
    >>> fields = {"user_input": "Who owns the mill?", "response": "The texts do not say."}
    >>> RefusalCorrectness(judge=judge).score(**fields, retrieved_contexts=["The mill burned down."]).value
    1.0
    """

    name = "refusal_correctness"
    blind_spots = "Whether an answer that is given is right."
    noun = "response"
    complaint = "wrong to refuse or to answer"
    helper = "assert_refusal_correct"
    requires = ("user_input", "response", "retrieved_contexts")

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return whether refusing and being able to answer exclude each other."""
        response = sample.response or ""
        refusal, chosen = await both(
            ask(tasks.JudgeRefusal(response=response, **asked(sample))), self._answering(sample, ask)
        )
        table = sentence_table(sample.retrieved_contexts or ())
        right = refusal.ok != bool(chosen)
        done, able = "refuses" if refusal.ok else "gives an answer", "can" if chosen else "cannot"
        reason = f"it {done}, and the contexts {able} answer the question"
        evidence = [table[index] for index in chosen]
        verdict = on_response(response, ok=right, reason=refusal.reason, evidence=evidence)
        return ask.result(float(right), reason=reason, verdicts=[verdict])

    async def _answering(self, sample: Sample, ask: Ask) -> Sequence[int]:
        contexts = tuple(sample.retrieved_contexts or ())
        if not sentence_table(contexts):
            return ()
        return await ask(tasks.SelectSentences(contexts=contexts, **asked(sample)))


assert_refusal_correct = asserting(
    RefusalCorrectness,
    min=0.5,
    example='"Who owns the mill?", "I do not know.", "Moths fly at night.", judge="local"',
    note=MAJORITY,
)


@declared
class SummaryScore(JudgedMetric):
    """The share of questions about the contexts that a summary answers, and how much shorter it is.

    Use it when the response is a summary, and may leave out what matters. ``reference_contexts`` are the texts. The
    judge writes closed questions about key phrases, which the contexts answer with yes, and answers them from the
    summary. Score = answered * (1 - coeff) + conciseness * coeff, where conciseness = 1 - min(len(summary),
    len(contexts)) / (len(contexts) + 1e-10) in characters, a run of white space as one, contexts joined by line breaks;
    with ``length_penalty=False`` the share alone. After Ragas.

    >>> judge = lambda prompt: (
    ...     '{"answers": [{"number": 1, "reason": "It does.", "answer": "yes"}]}' if "<<<questions" in prompt
    ...     else '{"questions": [{"phrase": "moths", "question": "Do moths fly?"}]}'
    ... )
    >>> metric = SummaryScore(length_penalty=False, judge=judge)
    >>> metric.score(response="Moths fly.", reference_contexts=["Moths fly at night."]).value
    1.0
    """

    name = "summary_score"
    blind_spots = (
        "What the summary invents, which Faithfulness finds; with length_penalty a short summary gains by length alone."
    )
    noun = "question"
    complaint = "not answered by the summary"
    helper = "assert_summarizes"
    aliases = ("SummarizationScore", "summarization_score")
    requires = ("response", "reference_contexts")
    rounds = 2

    length_penalty: bool = True
    coeff: float = share(0.5)
    if_empty: float | None = share(None)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the share of questions answered, weighed against the length."""
        summary, contexts = sample.response or "", tuple(sample.reference_contexts or ())
        questions = await ask(tasks.WriteClosedQuestions(contexts=contexts))
        if not questions:
            return ask.nothing("there is nothing to ask about the contexts")
        answers = await ask(tasks.AnswerQuestions(text=summary, questions=questions))
        verdicts = [judged_verdict(*pair) for pair in zip(questions, answers, strict=True)]
        counted = "questions answered by the summary"
        if not self.length_penalty:
            return ask.share(verdicts, counted)
        answered = sum(verdict.ok for verdict in verdicts)
        concise = conciseness(summary, contexts)
        score = answered / len(verdicts) * (1 - self.coeff) + concise * self.coeff
        reason = f"{answered} of {len(verdicts)} {counted}, conciseness {concise:.2f}"
        return ask.result(score, reason=reason, verdicts=verdicts)


assert_summarizes = asserting(SummaryScore, takes=("response", "source"), min=0.5)


def conciseness(summary: str, contexts: Sequence[str]) -> float:
    """Return by how much a summary is shorter than what it sums up, 0.0 when it is not; white space counts once.

    >>> round(conciseness("Moths fly.", ["Moths fly at night.", "So do bats."]), 6)
    0.677419
    """
    whole = len("\n".join(filter(None, map(plain, contexts))))
    return 1 - min(len(plain(summary)), whole) / (whole + 1e-10)


#: What Ragas calls them.
ResponseRelevancy, SummarizationScore = AnswerRelevancy, SummaryScore
