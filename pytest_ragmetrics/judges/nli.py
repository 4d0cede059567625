"""A judge by an entailment model that runs on this machine: it verifies claims and finds contradictions only."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from pytest_ragmetrics.core.errors import JudgeError, JudgeNotConfiguredError, optional
from pytest_ragmetrics.core.loop import in_child
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges.judge import PromptedJudge
from pytest_ragmetrics.judges.local import keys, sentence_claims, sentences_of
from pytest_ragmetrics.judges.rendering import render_data
from pytest_ragmetrics.judges.tasks import FindContradictions, ListClaims, Task, VerifyClaims
from pytest_ragmetrics.judges.tasks.task import on_one_line
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import Answered, ChatMessage, Reply, Request, Transport, failures_of
from pytest_ragmetrics.text.sentences import sentence_table
from pytest_ragmetrics.text.unicode import shortened

A = TypeVar("A")

Pair = tuple[str, str]

# Part of the cache key: raise it when the rules here change the answers of a model.
_METHOD = 3
# Characters of a sentence in a reason.
_SHOWN = 80
# Sentences that share most words with a claim: so many are premises alone, and so many joined.
_ALONE, _JOINED = 3, 6
# Consecutive sentences of a premise, about 200 of the 512 tokens of most models, and how far the next one is.
_RUN, _STEP = 8, 4
# The most sentences that are evidence whether or not they share words with the claim.
_FEW = 3

#: The metric to use instead, by the name of a task that this judge cannot answer.
_INSTEAD = {
    **dict.fromkeys(("rate_groundedness", "review_groundedness", "write_closed_questions"), "Faithfulness"),
    **dict.fromkeys(("judge_usefulness", "judge_contexts", "select_sentences"), "NonLLMContextPrecision"),
    **dict.fromkeys(("rate_contexts", "review_contexts"), "ContextRecall"),
    **dict.fromkeys(("rate_correctness", "rate_agreement"), "FactualCorrectness"),
    "list_entities": "NamesAligned",
}

_ENTAILMENT = re.compile(r"entail(?:ment|s|ed)?|consistent|faithful|factual|grounded|support(?:s|ed)?|attributable")
_CONTRADICTION = re.compile(r"contradict(?:ion|s|ed|ory)?|refute[sd]?")
#: Neither, and classes that are the complement of entailment.
_OTHER = re.compile(
    r"neutral|nei|not_enough_info|unknown|unrelated|none|inconsistent|hallucinat(?:ed|ion)|un(?:faithful|supported"
    rf"|attributable|grounded)|no[tn]?_(?:{_ENTAILMENT.pattern})"
)
_UNNAMED = re.compile(r"label_\d+")


class EntailmentScorer(Protocol):
    """A model that scores pairs of premise and hypothesis; it is used by one thread at a time."""

    @property
    def labels(self) -> Sequence[str]:
        """The names of the classes, in the order of the logits."""

    def logits(self, pairs: Sequence[Pair]) -> Sequence[Sequence[float]]:
        """Return the output of the model for each pair, one number per class."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Labels:
    """The meaning of a model's classes, by index; ``contradiction`` is ``None`` for a model without that class.

    ``inverted`` is set for a model with one class that is the opposite of entailment.
    """

    count: int
    entailment: int
    contradiction: int | None = None
    inverted: bool = False

    def read(self, logits: Sequence[float]) -> tuple[float, float]:
        """Return the probabilities of entailment and contradiction; raise ``ValueError`` for a wrong count or NaN.

        >>> Labels(count=3, entailment=2, contradiction=0).read([0.0, 0.0, math.log(2)])
        (0.5, 0.25)
        """
        if len(logits) != self.count or not all(map(math.isfinite, logits)):
            raise ValueError(f"{self.count} finite numbers a pair are wanted, not {list(logits)[:8]}")
        # One class is the same as two, of which the other has the logit 0.
        given = [-logits[0] if self.inverted else logits[0], 0.0] if self.count == 1 else logits
        weights = [math.exp(logit - max(given)) for logit in given]
        shares = [weight / sum(weights) for weight in weights]
        return shares[self.entailment], 0.0 if self.contradiction is None else shares[self.contradiction]


def read_labels(names: Sequence[str], *, model: str) -> Labels:
    """Return the meaning of a model's classes by their names, which are in the order of its logits.

    Names are read in any order, case and spelling (``not-entailment``, ``SUPPORTS``). A single class is
    the probability of entailment, unless its name is one of the contrary. Of two classes without names (``LABEL_0``,
    ``LABEL_1``) the second is entailment, as in models that separate consistent from hallucinated answers. Raises
    ``JudgeNotConfiguredError``, which lists the names, if they do not tell which class is entailment.

    >>> read_labels(["contradiction", "entailment", "neutral"], model="tiny")
    Labels(count=3, entailment=1, contradiction=0, inverted=False)
    """
    plain = [re.sub(r"[\W_]+", "_", name.casefold()).strip("_") for name in names]
    if len(plain) == 1:
        return Labels(
            count=1, entailment=0, inverted=bool(_OTHER.fullmatch(plain[0]) or _CONTRADICTION.fullmatch(plain[0]))
        )
    if len(plain) == 2 and all(map(_UNNAMED.fullmatch, plain)):  # noqa: PLR2004 - consistent and hallucinated
        return Labels(count=2, entailment=1)
    entailing, opposing, others = (
        [index for index, name in enumerate(plain) if meaning.fullmatch(name)]
        for meaning in (_ENTAILMENT, _CONTRADICTION, _OTHER)
    )
    known = len(entailing) + len(opposing) + len(others)
    if len(entailing) != 1 or len(opposing) > 1 or known < len(plain):
        listed = ", ".join(map(repr, names)) or "none"
        raise JudgeNotConfiguredError(
            f"{model} has the labels {listed}, which do not say what entailment is; "
            'name them in its order, as in NliJudge(model, labels=("entailment", "neutral", "contradiction"))'
        )
    return Labels(count=len(plain), entailment=entailing[0], contradiction=opposing[0] if opposing else None)


# Configuration, vocabulary and weights; notes, pictures and training states do not change answers.
_MODEL_FILES = frozenset({".json", ".safetensors", ".bin", ".pt", ".txt", ".model"})
_DIGITS = 12


def identity(model: str) -> str:
    """Return what determines the answers of ``FOLDER``, ``NAME`` or ``NAME@REVISION``.

    This is the name, of a folder with the digest of its files. A name without revision is the current state on the
    hub. Raises ``JudgeNotConfiguredError`` for a path that is not a folder.

    >>> identity("house/entailment@v2")
    'house/entailment@v2'
    """
    folder = Path(model).expanduser()
    if not folder.is_dir():
        if model.startswith((".", "/", "~")) or "\\" in model or model.count("/") > 1:
            msg = f"nli:{model}: there is no such folder; save a model and its tokenizer to it first"
            raise JudgeNotConfiguredError(msg)
        return model
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in _MODEL_FILES and file.is_file():
            digest.update(f"{file.name}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as stream:
                while chunk := stream.read(1 << 20):
                    digest.update(chunk)
    return f"{folder.resolve().name}@{digest.hexdigest()[:_DIGITS]}"


class CrossEncoderScorer:
    """A cross-encoder of sentence-transformers, which pads, batches and cuts long premises.

    A folder is read without the network; for a name the library searches its cache and its hub. Raises
    ``JudgeNotConfiguredError`` when the library is missing, the model cannot be loaded, or is no classifier: the
    library would initialise the missing part at random.
    """

    def __init__(self, model: str, *, name: str, device: str | None = None) -> None:
        folder = Path(model).expanduser()
        place, _, revision = (str(folder), "", "") if folder.is_dir() else model.partition("@")
        library = optional("sentence_transformers", name, "nli", error=JudgeNotConfiguredError)
        try:
            self._model: Any = library.CrossEncoder(
                place, device=device, revision=revision or None, local_files_only=folder.is_dir()
            )
        except Exception as error:
            hint = "" if folder.is_dir() else " (nor is it a folder here)"
            raise JudgeNotConfiguredError(f"{name} cannot be loaded{hint}: {type(error).__name__}: {error}") from error
        kinds = self._model.config.architectures or []
        if not any(kind.endswith("ForSequenceClassification") for kind in kinds):
            raise JudgeNotConfiguredError(f"{name} is no trained classifier, but {', '.join(kinds) or 'of no kind'}")
        named, count = self._model.config.id2label, self._model.config.num_labels
        self.labels = [named.get(index, f"LABEL_{index}") for index in range(count)]

    def logits(self, pairs: Sequence[Pair]) -> Sequence[Sequence[float]]:
        """Return the logits of each pair; raise ``JudgeError`` for a hypothesis that would be cut."""
        # The longer text of a pair is cut: half a claim may be true.
        room = (self._model.max_seq_length or 512) // 2
        hypotheses = list({hypothesis for _, hypothesis in pairs})
        longest = max(map(len, self._model.tokenizer(hypotheses, verbose=False)["input_ids"]))
        if longest > room:
            raise JudgeError(f"the model takes {2 * room} tokens, and a sentence has {longest} of them")
        values = self._model.predict(list(pairs), activation_fn=lambda scores: scores, show_progress_bar=False)
        rows: list[list[float]] = values.reshape(len(pairs), -1).tolist()
        return rows


class NliJudge(PromptedJudge):
    """Verifies claims by a cross-encoder for natural language inference: premise a passage, hypothesis the claim.

    ``model`` is a folder with a model and its tokenizer, or a name for sentence-transformers, pinned as
    ``NAME@REVISION``. Claims are the sentences of a text; pronouns are not resolved. Premises are the closest
    sentences, alone and joined, and ``passages`` passages of eight sentences. A claim is supported if the best entails
    it with a probability of at least ``threshold``; evidence is the smallest passage that does. A context is
    contradicted if one of its passages contradicts a sentence of the response as clearly.

    ``labels`` names the classes of a model without names, in the order of its logits; ``device`` is that of torch. A
    ``scorer`` replaces the library: an object with ``labels`` and ``logits(pairs)`` (a row of numbers for each premise
    and hypothesis), used by one thread at a time; ``model`` is then the name in cache keys. Otherwise they have the
    digest of the folder's files, or the name with its revision.

    Raises :class:`JudgeError` for other tasks than claims and contradictions, :class:`JudgeNotConfiguredError` for a
    model that cannot be used.

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
        known = model if scorer else identity(model)
        self._given = None if labels is None else tuple(labels)
        parameters: dict[str, Any] = {"method": _METHOD, "threshold": threshold, "passages": passages}
        if self._given is not None:
            parameters["labels"] = self._given
        super().__init__(name=f"nli:{known}", model=known, parameters=parameters)
        self._threshold = threshold
        self._passages = passages
        self._place, self._device = model, device
        self._replacement = scorer
        self._scorer: EntailmentScorer | JudgeNotConfiguredError | None = None
        self._alone = threading.Lock()
        in_child(self, _alone=threading.Lock)

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
        with failures_of(self.name):
            verdicts = await asyncio.to_thread(self._verdicts, request.asked)
        numbered = [{"number": number, **verdict} for number, verdict in enumerate(verdicts, start=1)]
        return Reply(text=json.dumps({"verdicts": numbered}, ensure_ascii=False))

    async def aclose(self) -> None:
        """Release the model."""
        self._scorer = None

    def _verdicts(self, task: Any) -> list[dict[str, Any]]:
        premises = Premises(task.contexts)
        if isinstance(task, VerifyClaims):
            found = self._findings([*map(on_one_line, task.claims)], premises)
            return [_verdict(finding, "entails it", ("supported", "unsupported")) for finding in found]
        verdicts = []
        claims = [*map(on_one_line, sentence_claims(task.response))]
        for context in range(len(task.contexts)):
            found = self._findings(claims, premises, context=context, contradiction=True)
            clearest = max(found, key=lambda finding: finding.share, default=_Finding("", 0.0, (), 0))
            relation = f'contradicts "{shortened(clearest.claim, _SHOWN)}"'
            verdicts.append(_verdict(clearest, relation, ("contradicted", "compatible")))
        return verdicts

    def _findings(
        self, claims: Sequence[str], premises: Premises, *, context: int | None = None, contradiction: bool = False
    ) -> list[_Finding]:
        """Return what is found for each claim, in all contexts or in one."""
        tried = [[*premises.of(claim, most=self._passages, context=context)] for claim in claims]
        asked = [[(premises.text(rows), claim) for rows in each] for claim, each in zip(claims, tried, strict=True)]
        pairs = list({pair: None for each in asked for pair in each})
        with self._alone:
            scorer = self._loaded()
            names = self._given or tuple(scorer.labels)
            if len(names) != len(scorer.labels):
                known = f"{len(scorer.labels)} classes ({', '.join(scorer.labels)})"
                raise JudgeNotConfiguredError(f"{self.name} has {known}, but labels= names {len(names)}")
            labels = read_labels(names, model=self.name)
            if contradiction and labels.contradiction is None:
                msg = f"{self.name} knows no contradiction, only whether a text follows; Faithfulness needs no more"
                raise JudgeError(msg)
            logits = dict(zip(pairs, scorer.logits(pairs) if pairs else (), strict=True))
        shares = {pair: labels.read(values)[contradiction] for pair, values in logits.items()}
        return [
            self._finding(claim, {rows: shares[pair] for rows, pair in zip(each, pairs, strict=True)}, premises)
            for claim, each, pairs in zip(claims, tried, asked, strict=True)
        ]

    def _finding(self, claim: str, shares: Mapping[tuple[int, ...], float], premises: Premises) -> _Finding:
        """Return the best passage; its evidence is the smallest passage inside it that reaches the threshold too."""
        best = max(shares, key=lambda rows: shares[rows], default=())
        reaching = (rows for rows, share in shares.items() if share >= self._threshold)
        smallest = min((rows for rows in reaching if set(best).issuperset(rows)), key=len, default=())
        return _Finding(claim, shares.get(best, 0.0), premises.evidence(claim, smallest), len(shares))

    def _loaded(self) -> EntailmentScorer:
        if self._scorer is None:
            try:
                self._scorer = self._replacement or CrossEncoderScorer(self._place, name=self.name, device=self._device)
            except JudgeNotConfiguredError as error:
                # Kept: loading again would take as long and fail again.
                self._scorer = error
        if isinstance(self._scorer, JudgeNotConfiguredError):
            raise self._scorer
        return self._scorer


class Premises:
    """The sentences of contexts, and the passages of them that a claim may follow from."""

    def __init__(self, contexts: tuple[str, ...]) -> None:
        self._index = sentences_of(contexts)
        counts = Counter(sentence.context for sentence in sentence_table(contexts))
        ends = list(accumulate((counts[number] for number in range(len(contexts))), initial=0))
        #: The passages of consecutive sentences of each context.
        self._runs = [
            [tuple(range(at, min(at + _RUN, end))) for at in range(start, max(end - _STEP, min(start + 1, end)), _STEP)]
            for start, end in pairwise(ends)
        ]

    def of(self, claim: str, *, most: int, context: int | None = None) -> Iterator[tuple[int, ...]]:
        """Yield the passages for a claim, from all contexts or from one, as indexes of sentences; none twice.

        They are the sentences that share most words with the claim, each alone and together, and at most ``most``
        rows of consecutive ones, each of which begins in the middle of the one before.
        """
        shared = self._index.shared(keys(claim), context)
        runs = [run for each in (self._runs if context is None else [self._runs[context]]) for run in each]
        near = [index for index, _ in shared.most_common()]
        # Sorting is stable: without shared words the first passages are taken.
        runs.sort(key=lambda run: -sum(shared[index] for index in run))
        chosen = [*((index,) for index in near[:_ALONE]), tuple(sorted(near[:_JOINED])), *runs[:most]]
        return filter(None, dict.fromkeys(chosen))

    def text(self, rows: tuple[int, ...]) -> str:
        """Return the premise of some sentences, on one line."""
        return " ".join(on_one_line(self._index.texts[index]) for index in rows)

    def evidence(self, claim: str, rows: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sentences of a passage that support a claim: of a long one those that share words with it."""
        shared = self._index.shared(keys(claim)) if len(rows) > _FEW else {}
        return tuple(index for index in rows if index in shared) or rows


class _Finding(NamedTuple):
    """The highest probability for a claim, the evidence, none below the threshold, and how many passages are tried."""

    claim: str
    share: float
    sentences: tuple[int, ...]
    tried: int


def _verdict(finding: _Finding, relation: str, verdicts: tuple[str, str]) -> dict[str, Any]:
    """Return a finding in the form of the task's answers, with 1-based sentence numbers."""
    reason = f"The best passage of {finding.tried} {relation} with {finding.share:.2f}."
    if not finding.tried:
        reason = "There is no passage to hold it against."
    elif not finding.sentences:
        reason = f"No passage of {finding.tried} {relation}: at most {finding.share:.2f}."
    sentences = [index + 1 for index in finding.sentences]
    return {"reason": reason, "sentences": sentences, "verdict": verdicts[0 if sentences else 1]}
