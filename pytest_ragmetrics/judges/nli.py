"""A judge by an entailment model that runs on this machine: it verifies claims and finds contradictions only."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar, cast

from pytest_ragmetrics.core.errors import JudgeError, JudgeNotConfiguredError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges.entailment import (
    BatchingScorer,
    EntailmentPassage,
    EntailmentPassages,
    EntailmentScorer,
    Labels,
    TransformerScorer,
    WeightSource,
    find_source,
    plain,
    read_labels,
)
from pytest_ragmetrics.judges.judge import PromptedJudge
from pytest_ragmetrics.judges.local import sentence_claims, statements
from pytest_ragmetrics.judges.rendering import render_data
from pytest_ragmetrics.judges.tasks import FindContradictions, ListClaims, Task, VerifyClaims
from pytest_ragmetrics.judges.transports.values import (
    DIRECT,
    Answered,
    ChatMessage,
    Reply,
    Request,
    Transport,
    failures_of,
)
from pytest_ragmetrics.text.unicode import shortened

A = TypeVar("A")

# Part of the cache key: raise it when the rules here change the answers of a model.
_METHOD = 2
# The fewest tokens for a premise.
_LEAST_ROOM = 16
# Characters of a sentence in a reason.
_SHOWN = 80

#: The metric to use instead, by the name of a task that this judge cannot answer.
_INSTEAD = {
    "rate_groundedness": "Faithfulness",
    "review_groundedness": "Faithfulness",
    "judge_usefulness": "NonLLMContextPrecision",
    "judge_contexts": "NonLLMContextPrecision",
    "select_sentences": "NonLLMContextPrecision",
    "rate_contexts": "ContextRecall",
    "review_contexts": "ContextRecall",
    "rate_correctness": "FactualCorrectness",
    "rate_agreement": "FactualCorrectness",
    "write_closed_questions": "Faithfulness",
    "list_entities": "NamesAligned",
}


class NliJudge(PromptedJudge):
    """Verifies claims by a cross-encoder for natural language inference: premise a passage, hypothesis the claim.

    ``model`` is a folder with a model and its tokenizer, or a name for the transformers library, as
    ``NAME@REVISION`` to pin it. The claims of a text are its sentences, without those that refuse to answer;
    their pronouns are not resolved. Premises of a claim are single sentences, the sentences closest to it, and
    ``passages`` passages of as many consecutive sentences as the model takes; it is supported when the best of them
    entails it with a probability of at least ``threshold``. Evidence is the smallest passage inside the best one that
    does. A context is contradicted when one of its passages contradicts a sentence of the response as clearly.

    ``labels`` names the classes of a model without names, in the order of its logits; ``device`` is that
    of torch. A ``scorer`` replaces the transformers library: an object with ``labels`` (the names of the classes),
    ``limit`` (tokens of a pair), ``lengths(texts)`` (tokens of each) and ``logits(pairs)`` (a row of numbers for each
    premise and hypothesis), which one thread alone uses; ``model`` is then only the name in cache keys. The model runs
    locally: it costs nothing, and budgets do not limit it.

    The cache key contains the digest of the folder's files, or the name with its revision: with a name, answers are
    replayed without the model. Raises ``JudgeError`` for a task other than to list and verify claims or to find
    contradictions, ``JudgeNotConfiguredError`` for a model that cannot be used.

    >>> NliJudge("house/entailment@v2").name
    'nli:house/entailment@v2'
    """

    is_varied = False
    is_paid = False
    kind = "nli"

    def __init__(
        self,
        model: str,
        *,
        threshold: float = 0.5,
        passages: int = 16,
        labels: Sequence[str] | None = None,
        device: str | None = None,
        scorer: EntailmentScorer | None = None,
    ) -> None:
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold must be a probability over 0 and at most 1, not {threshold}")
        if passages < 1:
            raise ValueError(f"passages must be at least 1, not {passages}")
        source = WeightSource(place=model, identity=model, is_folder=False) if scorer else find_source(model)
        self._given = None if labels is None else tuple(labels)
        parameters: dict[str, Any] = {"method": _METHOD, "threshold": threshold, "passages": passages}
        if self._given is not None:
            parameters["labels"] = self._given
        super().__init__(name=f"nli:{source.identity}", model=source.identity, parameters=parameters)
        self._threshold = threshold
        self._passages = passages
        self._batching = BatchingScorer(lambda: scorer or TransformerScorer(source, device=device))

    async def ask(self, task: Task[A], *, vote: int = 0, transport: Transport = DIRECT) -> Answered[A]:  # noqa: ARG002 - deterministic
        """Return the answer to a task; all votes are alike."""
        if isinstance(task, ListClaims):
            # By rule: faster than a look-up in the cache.
            return Answered(answer=cast("A", sentence_claims(task.text)), usage=Usage())
        if not isinstance(task, (VerifyClaims, FindContradictions)):
            hint = f"; {_INSTEAD[task.prompt]} does not" if task.prompt in _INSTEAD else ""
            needed = f"{task.prompt} needs a language model{hint}"
            raise JudgeError(f"{self.name} only tells whether a text follows from another, and {needed}")
        return await super().ask(cast("Task[A]", task), transport=transport)

    def messages(self, task: Task[Any]) -> tuple[ChatMessage, ...]:
        """Return the texts without an instruction, as the cache key; the model gets pairs."""
        return (ChatMessage(role="user", content=render_data(task)),)

    async def complete(self, request: Request) -> Reply:
        """Return the verdicts of the model; raise ``JudgeError`` if it fails."""
        task: Any = request.asked
        with failures_of(self.name):
            found = await (self._verified(task) if isinstance(task, VerifyClaims) else self._contradictions(task))
        verdicts = [{"number": number, **verdict} for number, verdict in enumerate(found, start=1)]
        return Reply(text=json.dumps({"verdicts": verdicts}, ensure_ascii=False))

    async def aclose(self) -> None:
        """Release the model and end its thread."""
        self._batching.close()

    async def _verified(self, task: VerifyClaims) -> list[dict[str, Any]]:
        claims = [plain(claim) for claim in task.claims]
        passages, labels = await self._prepared(claims, task.contexts)
        asked = [(claim, passages.candidates(claim, most=self._passages)) for claim in claims]
        found = await self._found(asked, passages, lambda logits: labels.read(logits)[0])
        return [finding.verdict("entails it", ("supported", "unsupported")) for finding in found]

    async def _contradictions(self, task: FindContradictions) -> list[dict[str, Any]]:
        claims = list(dict.fromkeys(plain(sentence) for sentence in statements(task.response)))
        passages, labels = await self._prepared(claims, task.contexts)
        if labels.contradiction is None:
            msg = f"{self.name} knows no contradiction, only whether a text follows; Faithfulness needs no more"
            raise JudgeError(msg)
        contexts = range(len(task.contexts))
        asked = [
            (claim, passages.candidates(claim, most=self._passages, context=context))
            for context in contexts
            for claim in claims
        ]
        found = iter(await self._found(asked, passages, lambda logits: labels.read(logits)[1]))
        clearest = [
            max(islice(found, len(claims)), key=lambda finding: finding.share, default=_Finding()) for _ in contexts
        ]
        return [
            each.verdict(f'contradicts "{shortened(each.claim, _SHOWN)}"', ("contradicted", "compatible"))
            for each in clearest
        ]

    async def _prepared(self, claims: Sequence[str], contexts: tuple[str, ...]) -> tuple[EntailmentPassages, Labels]:
        """Return the passages that fit beside the longest claim, and the meaning of the classes."""

        def prepare(scorer: EntailmentScorer) -> tuple[EntailmentPassages, Labels]:
            names = tuple(scorer.labels)
            if self._given is not None and len(self._given) != len(names):
                msg = f"{self.name} has {len(names)} classes ({', '.join(names)}), but labels= names {len(self._given)}"
                raise JudgeNotConfiguredError(msg)
            labels = read_labels(self._given or names, model=self.name)
            room = scorer.limit - max(scorer.lengths(claims) if claims else (), default=0)
            if room < _LEAST_ROOM:
                msg = f"{self.name} takes {scorer.limit} tokens, and a sentence leaves {room} of them for its source"
                raise JudgeError(msg)
            return EntailmentPassages(contexts, lengths=scorer.lengths, room=room), labels

        return await self._batching.run(prepare)

    async def _found(
        self,
        asked: Sequence[tuple[str, Sequence[EntailmentPassage]]],
        passages: EntailmentPassages,
        read: Callable[[Sequence[float]], float],
    ) -> list[_Finding]:
        """Return the finding for each claim; all pairs are scored in one batch."""
        pairs = [(passage.text, claim) for claim, candidates in asked for passage in candidates]
        shares = map(read, await self._batching.score(pairs))
        return [
            _find_best(claim, list(zip(candidates, shares, strict=False)), passages=passages, threshold=self._threshold)
            for claim, candidates in asked
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Finding:
    """The highest probability of entailment or contradiction for a claim, out of ``tried`` passages.

    ``sentences`` are the evidence, 0-based; empty below the threshold.
    """

    claim: str = ""
    share: float = 0.0
    sentences: tuple[int, ...] = ()
    tried: int = 0

    def verdict(self, relation: str, verdicts: tuple[str, str]) -> dict[str, Any]:
        """Return the finding in the form of the task's answers, with 1-based sentence numbers."""
        reason = f"The best of {self.tried} passages {relation} with {self.share:.2f}."
        if not self.tried:
            reason = "There is no passage to hold it against."
        elif not self.sentences:
            reason = f"None of {self.tried} passages {relation}: at most {self.share:.2f}."
        sentences = [index + 1 for index in self.sentences]
        return {"reason": reason, "sentences": sentences, "verdict": verdicts[0 if sentences else 1]}


def _find_best(
    claim: str, tried: Sequence[tuple[EntailmentPassage, float]], *, passages: EntailmentPassages, threshold: float
) -> _Finding:
    """Return the best passage; its evidence is the smallest passage inside it that reaches the threshold too."""
    if not tried:
        return _Finding(claim=claim)
    best, share = max(tried, key=lambda each: each[1])
    reaching = (each.sentences for each, reached in tried if reached >= threshold)
    inside = (sentences for sentences in reaching if set(best.sentences).issuperset(sentences))
    smallest = min(inside, key=len, default=())
    return _Finding(claim=claim, share=share, sentences=passages.evidence(claim, smallest), tried=len(tried))
