"""Entailment models: their labels, premises from contexts, batches of pairs, and the transformers library.

``judges/nli.py`` asks them whether passages entail claims.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pytest_ragmetrics.core.errors import JudgeNotConfiguredError
from pytest_ragmetrics.core.loop import in_child
from pytest_ragmetrics.judges.local import keys, sentences_of
from pytest_ragmetrics.text.sentences import sentence_table

T = TypeVar("T")

Pair = tuple[str, str]
#: The output of a model for one pair, one number per class.
Logits = Sequence[float]


class EntailmentScorer(Protocol):
    """A model that scores pairs of premise and hypothesis; it is used by one thread alone."""

    @property
    def labels(self) -> Sequence[str]:
        """The names of the classes, in the order of the logits."""

    @property
    def limit(self) -> int:
        """The largest number of tokens of premise and hypothesis together."""

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        """Return the number of tokens of each text."""

    def logits(self, pairs: Sequence[Pair]) -> Sequence[Logits]:
        """Return the logits of each pair, in order."""


class BatchingScorer:
    """Scores pairs in batches in a thread of its own; ``load`` makes the scorer when it is first needed.

    Pairs that arrive while a batch is scored form the next one. Each call of the scorer takes ``width`` pairs of
    similar length. A batch that fails is scored again task by task, so that no task fails because of another.
    """

    def __init__(self, load: Callable[[], EntailmentScorer], *, width: int = 32) -> None:
        self._load = load
        self._width = width
        self._loaded: Future[EntailmentScorer] = Future()
        self._waiting: deque[tuple[Sequence[Pair], Future[list[Logits]]]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="nli")
        in_child(self, _waiting=deque, _thread=lambda: ThreadPoolExecutor(1))

    async def run(self, function: Callable[[EntailmentScorer], T]) -> T:
        """Call a function with the scorer in its thread; raises what loading raises."""
        return await asyncio.wrap_future(self._thread.submit(lambda: function(self._scorer())))

    async def score(self, pairs: Sequence[Pair]) -> list[Logits]:
        """Return the logits of each pair; raises what the scorer raises."""
        answer: Future[list[Logits]] = Future()
        self._waiting.append((pairs, answer))
        self._thread.submit(self._answer)
        return await asyncio.wrap_future(answer)

    def close(self) -> None:
        """Cancel all pairs whose batch has not begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        while self._waiting:
            self._waiting.popleft()[1].cancel()

    def _scorer(self) -> EntailmentScorer:
        if not self._loaded.done():
            try:
                self._loaded.set_result(self._load())
            except Exception as error:  # noqa: BLE001 - kept: loading again would take as long and fail again
                self._loaded.set_exception(error)
        return self._loaded.result()

    def _answer(self) -> None:
        batch = []
        while self._waiting:
            pairs, answer = self._waiting.popleft()
            if answer.set_running_or_notify_cancel():
                batch.append((pairs, answer))
        self._score(batch)

    def _score(self, batch: Sequence[tuple[Sequence[Pair], Future[list[Logits]]]]) -> None:
        # Equal pairs are scored once, ordered by length: short pairs are not padded to long ones.
        pairs = sorted({pair for asked, _ in batch for pair in asked}, key=lambda pair: (sum(map(len, pair)), pair))
        scored: dict[Pair, Logits] = {}
        try:
            for start in range(0, len(pairs), self._width):
                some = pairs[start : start + self._width]
                scored.update(zip(some, self._scorer().logits(some), strict=True))
        except Exception as error:  # noqa: BLE001 - any task may be the cause; each gets its own error
            for asked, answer in batch:
                if len(batch) == 1:
                    answer.set_exception(error)
                else:
                    self._score([(asked, answer)])
        else:
            for asked, answer in batch:
                answer.set_result([scored[pair] for pair in asked])


_ENTAILMENT = frozenset(
    {"entailment", "entail", "entails", "entailed", "consistent", "faithful", "factual", "grounded"}
    | {"support", "supports", "supported", "attributable"}
)
_CONTRADICTION = frozenset(
    {"contradiction", "contradict", "contradicts", "contradicted", "contradictory", "refute", "refutes", "refuted"}
)
#: Neither, and classes that are the complement of entailment.
_OTHER = frozenset(
    {"neutral", "nei", "not_enough_info", "unknown", "unrelated", "none"}
    | {"inconsistent", "hallucinated", "hallucination", "unfaithful", "unsupported", "unattributable", "ungrounded"}
    | {f"{no}_{word}" for no in ("not", "non", "no") for word in _ENTAILMENT}
)
_UNNAMED = re.compile(r"label_\d+")


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
        if self.count == 1:
            logit = -logits[0] if self.inverted else logits[0]
            # Each form overflows for the other sign.
            share = 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))
            return share, 0.0
        highest = max(logits)
        weights = [math.exp(logit - highest) for logit in logits]
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
        return Labels(count=1, entailment=0, inverted=plain[0] in _OTHER | _CONTRADICTION)
    if len(plain) == 2 and all(map(_UNNAMED.fullmatch, plain)):  # noqa: PLR2004 - consistent and hallucinated
        return Labels(count=2, entailment=1)
    entailing = [index for index, name in enumerate(plain) if name in _ENTAILMENT]
    opposing = [index for index, name in enumerate(plain) if name in _CONTRADICTION]
    known = len(entailing) + len(opposing) + sum(name in _OTHER for name in plain)
    if len(entailing) != 1 or len(opposing) > 1 or known < len(plain):
        listed = ", ".join(map(repr, names)) or "none"
        raise JudgeNotConfiguredError(
            f"{model} has the labels {listed}, which do not say what entailment is; "
            'name them in its order, as in NliJudge(model, labels=("entailment", "neutral", "contradiction"))'
        )
    return Labels(count=len(plain), entailment=entailing[0], contradiction=opposing[0] if opposing else None)


def class_names(named: Mapping[int, str], count: int) -> list[str]:
    """Return the names of ``count`` classes in order; a class without a name is named by its number.

    >>> class_names({1: "entailment"}, 2)
    ['LABEL_0', 'entailment']
    """
    return [named.get(index, f"LABEL_{index}") for index in range(count)]


# The number of sentences nearest to a claim that are tried alone, and together.
_ALONE = 3
_TOGETHER = 6
# The most sentences that are evidence whether or not they share words with the claim.
_FEW = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class EntailmentPassage:
    """Some sentences of the contexts as one premise; ``sentences`` are 0-based indexes into their sentence table."""

    sentences: tuple[int, ...]
    text: str


class EntailmentPassages:
    """The sentences of some contexts, cut into passages of at most ``room`` tokens.

    A longer sentence is a passage of its own.
    """

    def __init__(
        self, contexts: tuple[str, ...], *, lengths: Callable[[Sequence[str]], Sequence[int]], room: int
    ) -> None:
        self._table = sentence_table(contexts)
        self._texts = [plain(sentence.text) for sentence in self._table]
        self._index = sentences_of(contexts)
        self._lengths = lengths(self._texts) if self._texts else ()
        self._room = room
        #: Passages of consecutive sentences; each begins in the middle of the one before.
        self.running = tuple(
            passage
            for _, rows in groupby(range(len(self._table)), key=lambda index: self._table[index].context)
            for passage in self._run(list(rows))
        )

    def candidates(self, claim: str, *, most: int, context: int | None = None) -> tuple[EntailmentPassage, ...]:
        """Return the premises for a claim, from all contexts or from one; empty without sentences.

        They are the sentences that share most words with the claim, each alone; these sentences joined; and at most
        ``most`` of the running passages, those that share most words with the claim.
        """
        shared = self._index.shared(keys(claim))
        ranked = sorted(shared, key=lambda index: (-shared[index], index))
        near = [index for index in ranked if self._is_in(index, context)]
        chosen = [self._passage((index,)) for index in near[:_ALONE]]
        gathered = self._fitting(near[:_TOGETHER])
        if len(gathered) > 1:
            chosen.append(self._passage(gathered))
        running = [passage for passage in self.running if self._is_in(passage.sentences[0], context)]
        # Sorting is stable: without shared words the first passages are taken.
        running.sort(key=lambda passage: -sum(shared[index] for index in passage.sentences))
        return tuple({passage.sentences: passage for passage in (*chosen, *running[:most])}.values())

    def evidence(self, claim: str, sentences: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sentences of a passage that support a claim: of a long one those that share words with it."""
        shared = self._index.shared(keys(claim)) if len(sentences) > _FEW else {}
        return tuple(index for index in sentences if index in shared) or sentences

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
        chosen, room = [], self._room
        for index in ranked:
            if self._lengths[index] <= room:
                chosen.append(index)
                room -= self._lengths[index]
        return tuple(sorted(chosen))

    def _passage(self, sentences: tuple[int, ...]) -> EntailmentPassage:
        return EntailmentPassage(sentences=sentences, text=" ".join(self._texts[index] for index in sentences))

    def _is_in(self, index: int, context: int | None) -> bool:
        return context in (None, self._table[index].context)


def plain(text: str) -> str:
    r"""Return a text on one line, the form for the model and the cache key.

    >>> plain("Ivy\n  climbs.")
    'Ivy climbs.'
    """
    return " ".join(text.split())


# Configuration, vocabulary and weights; notes, pictures and training states do not change answers.
_MODEL_FILES = frozenset({".json", ".safetensors", ".bin", ".pt", ".txt", ".model"})
_DIGITS = 12
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightSource:
    """The place of a model: a folder, or a name on a hub, with or without a revision.

    ``identity`` determines the answers: the name with the digest of the folder's files, or with the revision.
    """

    place: str
    identity: str
    is_folder: bool
    revision: str | None = None

    @property
    def options(self) -> Mapping[str, Any]:
        """The options for loading: a folder is read without the network."""
        return {"local_files_only": True} if self.is_folder else {"revision": self.revision or "main"}


def find_source(model: str) -> WeightSource:
    """Return the source of ``FOLDER``, ``NAME`` or ``NAME@REVISION``.

    A name without revision is the current state on the hub. Raises ``JudgeNotConfiguredError`` for a path that is not
    a folder.

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
    whole = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in _MODEL_FILES and file.is_file():
            whole.update(f"{file.name}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    whole.update(chunk)
    return whole.hexdigest()[:_DIGITS]


# Families whose first two positions are those of padding.
_OFFSET = frozenset({"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "longformer"})
# A tokenizer without a limit states an enormous one.
_LARGEST = 1_000_000


def window(*, family: str, positions: object, stated: float | None) -> int:
    """Return the largest number of tokens of one input, 512 if neither tokenizer nor configuration has a limit.

    ``family`` is the ``model_type`` of a configuration, ``positions`` its ``max_position_embeddings``, which may be
    anything, and ``stated`` the ``model_max_length`` of the tokenizer.

    >>> window(family="roberta", positions=514, stated=1e30)
    512
    """
    counted = positions if isinstance(positions, int) else None
    if counted is not None and family in _OFFSET:
        counted -= 2
    known = [limit for limit in (stated, counted) if limit is not None and 0 < limit < _LARGEST]
    return int(min(known, default=512))


class TransformerScorer:
    """A cross-encoder for sequence classification, on ``device`` (such as ``"cuda"``), else where it is loaded.

    A folder is read without the network; for a name the library searches its cache and its hub.
    Raises ``JudgeNotConfiguredError`` when the libraries are missing, the model cannot be loaded, or its weights lack
    the classifier, which the library would initialise at random.
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
            raise JudgeNotConfiguredError(f"{name} cannot be loaded{hint}: {type(error).__name__}: {error}") from error
        if loading["missing_keys"]:
            msg = f"{name} is no trained classifier: its weights lack {', '.join(sorted(loading['missing_keys'])[:4])}"
            raise JudgeNotConfiguredError(msg)
        self._model: Any = model.eval() if device is None else model.eval().to(device)
        positions = getattr(model.config, "max_position_embeddings", None)
        stated = self._tokenizer.model_max_length
        self._window = window(family=model.config.model_type, positions=positions, stated=stated)

    @property
    def labels(self) -> Sequence[str]:
        """The names of the classes, in the order of the logits."""
        return class_names(self._model.config.id2label, self._model.config.num_labels)

    @property
    def limit(self) -> int:
        """The largest number of tokens of premise and hypothesis together, without special tokens."""
        return self._window - int(self._tokenizer.num_special_tokens_to_add(pair=True))

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        """Return the number of tokens of each text."""
        tokens = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return [len(each) for each in tokens]

    def logits(self, pairs: Sequence[Pair]) -> Sequence[Logits]:
        """Return the logits of each pair, in order; a premise that is too long is cut at its end."""
        premises, hypotheses = ([pair[side] for pair in pairs] for side in (0, 1))
        tokens = self._tokenizer(
            premises, hypotheses, padding=True, truncation="only_first", max_length=self._window, return_tensors="pt"
        ).to(self._model.device)
        with self._torch.inference_mode():
            numbers: list[Logits] = self._model(**tokens).logits.float().cpu().tolist()
        return numbers
