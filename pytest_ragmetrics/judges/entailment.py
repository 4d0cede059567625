"""An entailment model through the transformers library."""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pytest_ragmetrics.errors import JudgeNotConfiguredError
from pytest_ragmetrics.judges.local import keys, sentences_of
from pytest_ragmetrics.text.sentences import sentence_table

T = TypeVar("T")

Pair = tuple[str, str]
#: The numbers of a model for one pair, one a class.
Logits = Sequence[float]


class EntailmentScorer(Protocol):
    """A model that scores pairs of premise and hypothesis; it is used by one thread alone."""

    @property
    def labels(self) -> Sequence[str]:
        """What its classes are called, in the order of its numbers."""

    @property
    def limit(self) -> int:
        """How many tokens premise and hypothesis may have together."""

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        """Return how many tokens each text has."""

    def logits(self, pairs: Sequence[Pair]) -> Sequence[Logits]:
        """Return the numbers for each pair, in order."""


@dataclass(frozen=True, slots=True, eq=False)
class _PendingPairs:
    pairs: Sequence[Pair]
    answer: Future[list[Logits]] = field(default_factory=Future)


class BatchingScorer:
    """Where a scorer works, loaded by ``load`` when it is first needed and in its own thread.

    While it works on a batch, the pairs of other tasks gather, and are the next one; ``width`` of them are scored in
    one go, those of similar length together. A batch that fails is tried again task by task, so that none fails
    because of another.
    """

    def __init__(self, load: Callable[[], EntailmentScorer], *, width: int = 32) -> None:
        self._load = load
        self._width = width
        self._scorer: EntailmentScorer | None = None
        self._failure: Exception | None = None
        self._waiting: deque[_PendingPairs] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="nli")

    async def run(self, function: Callable[[EntailmentScorer], T]) -> T:
        """Return what a function makes of the scorer; raise what loading it raises."""
        return await asyncio.wrap_future(self._thread.submit(lambda: function(self._loaded())))

    async def score(self, pairs: Sequence[Pair]) -> list[Logits]:
        """Return the numbers for each pair; raise what the scorer raises."""
        if not pairs:
            return []
        asked = _PendingPairs(pairs)
        self._waiting.append(asked)
        self._thread.submit(self._answer)
        return await asyncio.wrap_future(asked.answer)

    def close(self) -> None:
        """Do what is begun and no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        while self._waiting:
            self._waiting.popleft().answer.cancel()

    def _loaded(self) -> EntailmentScorer:
        if self._failure is not None:
            # To try again would take its time for every task, and come to the same.
            raise self._failure
        if self._scorer is None:
            try:
                self._scorer = self._load()
            except Exception as error:
                self._failure = error
                raise
        return self._scorer

    def _answer(self) -> None:
        """Score all that waits; who was called off in the meantime is left out."""
        batch = []
        while self._waiting:
            asked = self._waiting.popleft()
            if asked.answer.set_running_or_notify_cancel():
                batch.append(asked)
        try:
            self._score(batch)
        except Exception:  # noqa: BLE001 - it may be any one's fault; each is told its own below
            for asked in batch:
                self._score_alone(asked)

    def _score_alone(self, asked: _PendingPairs) -> None:
        try:
            self._score([asked])
        except Exception as error:  # noqa: BLE001 - it is raised where the pairs were asked about
            asked.answer.set_exception(error)

    def _score(self, batch: Sequence[_PendingPairs]) -> None:
        # The same pair is scored once, in the order of length: short ones are not padded to long ones.
        pairs = sorted({pair for asked in batch for pair in asked.pairs}, key=lambda pair: (sum(map(len, pair)), pair))
        scored: dict[Pair, Logits] = {}
        for start in range(0, len(pairs), self._width):
            some = pairs[start : start + self._width]
            scored.update(zip(some, self._loaded().logits(some), strict=True))
        for asked in batch:
            asked.answer.set_result([scored[pair] for pair in asked.pairs])


_ENTAILMENT = frozenset(
    {"entailment", "entail", "entails", "entailed", "consistent", "faithful", "factual", "grounded"}
    | {"support", "supports", "supported", "attributable"}
)
_CONTRADICTION = frozenset({"contradiction", "contradict", "contradicts", "contradicted", "contradictory"}) | {
    "refute",
    "refutes",
    "refuted",
}
#: What is neither: what a class is called that only says that the other one does not apply is among them.
_OTHER = frozenset(
    {"neutral", "nei", "not_enough_info", "unknown", "unrelated", "none"}
    | {"inconsistent", "hallucinated", "hallucination", "unfaithful", "unsupported", "unattributable", "ungrounded"}
    | {f"{no}_{word}" for no in ("not", "non", "no") for word in _ENTAILMENT}
)
_UNNAMED = re.compile(r"label_\d+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Entailment:
    """What a model says of one pair: two probabilities; ``contradiction`` is ``None`` for one that cannot tell."""

    entailment: float
    contradiction: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Labels:
    """Which of a model's classes say what, by index; ``contradiction`` is ``None`` for a model without that class.

    ``inverted`` is set for a model with one class whose probability speaks against entailment.
    """

    count: int
    entailment: int
    contradiction: int | None = None
    inverted: bool = False

    def read(self, logits: Sequence[float]) -> Entailment:
        """Return what the model's numbers for one pair say; raise ``ValueError`` for others than it can have.

        >>> Labels(count=3, entailment=2, contradiction=0).read([0.0, 0.0, math.log(2)])
        Entailment(entailment=0.5, contradiction=0.25)
        """
        if len(logits) != self.count or not all(map(math.isfinite, logits)):
            msg = f"{self.count} finite numbers a pair are wanted, not {list(logits)[:8]}"
            raise ValueError(msg)
        if self.count == 1:
            share = _sigmoid(-logits[0] if self.inverted else logits[0])
            return Entailment(entailment=share)
        highest = max(logits)
        weights = [math.exp(logit - highest) for logit in logits]
        shares = [weight / sum(weights) for weight in weights]
        against = None if self.contradiction is None else shares[self.contradiction]
        return Entailment(entailment=shares[self.entailment], contradiction=against)


def read_labels(names: Sequence[str], *, model: str) -> Labels:
    """Return what the classes of a model mean by their names, in the order of its numbers.

    Names are read in any order, case and spelling (``not-entailment``, ``SUPPORTS``). A single class, however it is
    called unless for the contrary, is the probability of entailment. Of two that have no names (``LABEL_0``,
    ``LABEL_1``) the second is taken for it, as models that tell consistent from hallucinated answers have it. Raises
    ``JudgeNotConfiguredError`` that lists the names where they say nothing.

    >>> read_labels(["contradiction", "entailment", "neutral"], model="tiny")
    Labels(count=3, entailment=1, contradiction=0, inverted=False)
    """
    plain = [re.sub(r"[\W_]+", "_", name.casefold()).strip("_") for name in names]
    if len(plain) == 1:
        return Labels(count=1, entailment=0, inverted=plain[0] in _OTHER | _CONTRADICTION)
    if len(plain) == 2 and all(map(_UNNAMED.fullmatch, plain)):  # noqa: PLR2004 - consistent and hallucinated
        return Labels(count=2, entailment=1)
    entailing = [index for index, name in enumerate(plain) if name in _ENTAILMENT]
    opposing = [index for index, name in enumerate(plain) if name in _CONTRADICTION]
    known = len(entailing) + len(opposing) + sum(name in _OTHER for name in plain)
    if len(entailing) != 1 or len(opposing) > 1 or known < len(plain):
        listed = ", ".join(map(repr, names)) or "none"
        msg = (
            f"{model} has the labels {listed}, which do not say what entailment is; "
            'name them in its order, as in NliJudge(model, labels=("entailment", "neutral", "contradiction"))'
        )
        raise JudgeNotConfiguredError(msg)
    return Labels(count=len(plain), entailment=entailing[0], contradiction=opposing[0] if opposing else None)


def class_names(named: Mapping[int, str], count: int) -> list[str]:
    """Return what so many classes are called, in the order of their numbers; one without a name by its number.

    >>> class_names({1: "entailment"}, 2)
    ['LABEL_0', 'entailment']
    """
    return [named.get(index, f"LABEL_{index}") for index in range(count)]


def _sigmoid(logit: float) -> float:
    # Each form overflows on the side of the other.
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))


# Of the sentences that share most words with a claim: how many are tried alone, and how many together.
_ALONE = 3
_TOGETHER = 6

#: Returns how many tokens each of some texts has.
Lengths = Callable[[Sequence[str]], Sequence[int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class EntailmentPassage:
    """Some sentences of the contexts as one premise; ``sentences`` are 0-based indexes into their sentence table."""

    sentences: tuple[int, ...]
    text: str


class EntailmentPassages:
    """The sentences of some contexts, cut into passages of at most ``room`` tokens.

    A longer sentence is a passage of its own.
    """

    def __init__(self, contexts: tuple[str, ...], *, lengths: Lengths, room: int) -> None:
        self._table = sentence_table(contexts)
        self._texts = [plain(sentence.text) for sentence in self._table]
        self._index = sentences_of(contexts)
        self._lengths = lengths(self._texts) if self._texts else ()
        self._room = room
        #: All sentences, those of a context in order, each passage beginning in the middle of the one before.
        self.running = tuple(
            passage
            for _, rows in groupby(range(len(self._table)), key=lambda index: self._table[index].context)
            for passage in self._run(list(rows))
        )

    def candidates(self, claim: str, *, most: int, context: int | None = None) -> tuple[EntailmentPassage, ...]:
        """Return the passages to hold a claim against, of all contexts or of one; empty where there is no sentence.

        They are: the sentences that share most words with the claim, each alone; these together, wherever they stand;
        and the running passages, those ``most`` that share most words with it where there are more.
        """
        shared = self._index.shared(keys(claim))
        near = [
            index for index in sorted(shared, key=lambda index: (-shared[index], index)) if self._is_in(index, context)
        ]
        chosen = [self._passage((index,)) for index in near[:_ALONE]]
        gathered = self._fitting(near[:_TOGETHER])
        if len(gathered) > 1:
            chosen.append(self._passage(gathered))
        running = [passage for passage in self.running if self._is_in(passage.sentences[0], context)]
        # Sorting is stable: where nothing is shared, the first ones are taken.
        running.sort(key=lambda passage: -sum(shared[index] for index in passage.sentences))
        unique = {passage.sentences: passage for passage in (*chosen, *running[:most])}
        return tuple(unique.values())

    def sharing(self, claim: str, sentences: Sequence[int]) -> tuple[int, ...]:
        """Return those of some sentences that share words with a claim."""
        shared = self._index.shared(keys(claim))
        return tuple(index for index in sentences if index in shared)

    def _run(self, inside: Sequence[int]) -> Sequence[EntailmentPassage]:
        passages = []
        start = 0
        while start < len(inside):
            end, room = start + 1, self._room - self._lengths[inside[start]]
            while end < len(inside) and self._lengths[inside[end]] <= room:
                room -= self._lengths[inside[end]]
                end += 1
            passages.append(self._passage(tuple(inside[start:end])))
            start = len(inside) if end == len(inside) else max(start + 1, (start + end) // 2)
        return passages

    def _fitting(self, ranked: Sequence[int]) -> tuple[int, ...]:
        """Return the first of some sentences that fit together, in the order of the contexts."""
        chosen, room = [], self._room
        for index in ranked:
            if self._lengths[index] <= room:
                chosen.append(index)
                room -= self._lengths[index]
        return tuple(sorted(chosen))

    def _passage(self, sentences: tuple[int, ...]) -> EntailmentPassage:
        return EntailmentPassage(sentences=sentences, text=" ".join(self._texts[index] for index in sentences))

    def _is_in(self, index: int, context: int | None) -> bool:
        return context is None or self._table[index].context == context


def plain(text: str) -> str:
    r"""Return a text on one line, as the model is given it and as its answer is kept.

    >>> plain("Ivy\n  climbs.")
    'Ivy climbs.'
    """
    return " ".join(text.split())


# Up to so many sentences are all evidence; of a longer passage those are that share words with the claim.
_FEW = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class EntailmentFinding:
    """The highest probability that a passage says something of a claim, out of ``tried`` passages.

    ``sentences`` are those that carry it, 0-based; none where it stays under the threshold.
    """

    claim: str
    share: float = 0.0
    sentences: tuple[int, ...] = ()
    tried: int = 0

    @property
    def ok(self) -> bool:
        """Whether the threshold was reached."""
        return bool(self.sentences)


def find_best(
    claim: str,
    candidates: Sequence[EntailmentPassage],
    shares: Sequence[float],
    *,
    passages: EntailmentPassages,
    threshold: float,
) -> EntailmentFinding:
    """Return what the best passage says: its sentences are those of the smallest one inside it that says it as well."""
    if not candidates:
        return EntailmentFinding(claim=claim)
    tried = list(zip(candidates, shares, strict=True))
    best, share = max(tried, key=lambda each: each[1])
    if share < threshold:
        return EntailmentFinding(claim=claim, share=share, tried=len(tried))
    whole = set(best.sentences)
    inside = [each.sentences for each, reached in tried if reached >= threshold and whole.issuperset(each.sentences)]
    smallest = min(inside, key=len)
    carrying = smallest if len(smallest) <= _FEW else passages.sharing(claim, smallest) or smallest
    return EntailmentFinding(claim=claim, share=share, sentences=carrying, tried=len(tried))


# Configuration, vocabulary and weights; notes, pictures and the state of a training change nothing.
_TELLING = frozenset({".json", ".safetensors", ".bin", ".pt", ".txt", ".model"})
_DIGITS = 12
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightSource:
    """A model as it is asked for: a folder, or a name on a hub that its library knows, maybe with a revision.

    ``identity`` is the name with the digest of the folder's files, or with the revision: what determines its answers.
    """

    place: str
    identity: str
    is_folder: bool
    revision: str | None = None

    @property
    def options(self) -> Mapping[str, Any]:
        """What the library is told beside the place: a folder is read and nothing else."""
        return {"local_files_only": True} if self.is_folder else {"revision": self.revision or "main"}


def find_source(model: str) -> WeightSource:
    """Return what ``FOLDER``, ``NAME`` or ``NAME@REVISION`` means.

    A name without revision stands for whatever the hub has under it. Raises ``JudgeNotConfiguredError`` for what is
    written as a folder and is none.

    >>> find_source("house/entailment@v2").revision
    'v2'
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return WeightSource(place=str(folder), identity=f"{folder.resolve().name}@{_digest(folder)}", is_folder=True)
    if model.startswith((".", "/", "~")) or "\\" in model or model.count("/") > 1:
        msg = f"nli:{model}: there is no such folder; save a model and its tokenizer to it first"
        raise JudgeNotConfiguredError(msg)
    place, _, revision = model.partition("@")
    return WeightSource(place=place, identity=model, is_folder=False, revision=revision or None)


def _digest(folder: Path) -> str:
    """Return the digest of a folder's files: of their names and of every byte, wherever the folder stands."""
    whole = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in _TELLING and file.is_file():
            whole.update(f"{file.name}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    whole.update(chunk)
    return whole.hexdigest()[:_DIGITS]


# Of a tokenizer and a configuration that say nothing about it.
_LIMIT = 512
# A tokenizer that knows no limit has an enormous one.
_LARGEST = 1_000_000
# Families whose first positions are those of padding.
_OFFSET = frozenset({"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "longformer"})
_PADDING = 2


def window(*, family: str, positions: object, told: float | None) -> int:
    """Return the most tokens of one input.

    ``family`` is the ``model_type`` of a configuration, ``positions`` its ``max_position_embeddings``, which may be
    anything, and ``told`` the ``model_max_length`` of the tokenizer.

    >>> window(family="roberta", positions=514, told=1e30)
    512
    """
    counted = positions if isinstance(positions, int) else None
    if counted is not None and family in _OFFSET:
        counted -= _PADDING
    known = [limit for limit in (told, counted) if limit is not None and 0 < limit < _LARGEST]
    return int(min(known, default=_LIMIT))


class TransformerScorer:
    """A cross-encoder for sequence classification, on ``device`` (such as ``"cuda"``), else where it is loaded.

    A folder is read and nothing else; a name is handed to the library, which looks into its cache and asks its hub.
    Raises ``JudgeNotConfiguredError`` when the libraries are missing, the model cannot be loaded, or its weights lack
    the classifier, which would then be made up.
    """

    def __init__(self, source: WeightSource, *, device: str | None = None) -> None:
        name = f"nli:{source.identity}"
        try:
            self._torch: Any = import_module("torch")
            library: Any = import_module("transformers")
        except ImportError as error:
            msg = f'{name} needs its libraries: pip install "pytest-ragmetrics[nli]" ({error})'
            raise JudgeNotConfiguredError(msg) from error
        try:
            self._tokenizer: Any = library.AutoTokenizer.from_pretrained(source.place, **source.options)
            model, loading = library.AutoModelForSequenceClassification.from_pretrained(
                source.place, output_loading_info=True, **source.options
            )
        except Exception as error:
            hint = "" if source.is_folder else " (nor is it a folder here)"
            msg = f"{name} cannot be loaded{hint}: {type(error).__name__}: {error}"
            raise JudgeNotConfiguredError(msg) from error
        if loading["missing_keys"]:
            msg = f"{name} is no trained classifier: its weights lack {', '.join(sorted(loading['missing_keys'])[:4])}"
            raise JudgeNotConfiguredError(msg)
        self._model: Any = model.eval() if device is None else model.eval().to(device)

    @property
    def labels(self) -> Sequence[str]:
        """What its classes are called, in the order of its numbers."""
        return class_names(self._model.config.id2label, self._model.config.num_labels)

    @property
    def limit(self) -> int:
        """How many tokens premise and hypothesis may have together, without those that mark them."""
        return self._whole - int(self._tokenizer.num_special_tokens_to_add(pair=True))

    @property
    def _whole(self) -> int:
        configuration = self._model.config
        positions = getattr(configuration, "max_position_embeddings", None)
        told = self._tokenizer.model_max_length
        return window(family=configuration.model_type, positions=positions, told=told)

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        """Return how many tokens each text has."""
        tokens = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return [len(each) for each in tokens]

    def logits(self, pairs: Sequence[Pair]) -> Sequence[Logits]:
        """Return the numbers for each pair, in order; a premise that is too long is cut at its end."""
        premises, hypotheses = ([pair[side] for pair in pairs] for side in (0, 1))
        tokens = self._tokenizer(
            premises, hypotheses, padding=True, truncation="only_first", max_length=self._whole, return_tensors="pt"
        ).to(self._model.device)
        with self._torch.inference_mode():
            numbers: list[Logits] = self._model(**tokens).logits.float().cpu().tolist()
        return numbers
