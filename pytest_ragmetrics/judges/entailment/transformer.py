"""An entailment model through the transformers library."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from pytest_ragmetrics.errors import JudgeNotConfiguredError
from pytest_ragmetrics.judges.entailment.bench import Logits, Pair
from pytest_ragmetrics.judges.entailment.labels import class_names
from pytest_ragmetrics.judges.entailment.weights import Source
from pytest_ragmetrics.judges.entailment.window import window


class TransformerScorer:
    """A cross-encoder for sequence classification, on ``device`` (such as ``"cuda"``), else where it is loaded.

    A folder is read and nothing else; a name is handed to the library, which looks into its cache and asks its hub.
    Raises ``JudgeNotConfiguredError`` when the libraries are missing, the model cannot be loaded, or its weights lack
    the classifier, which would then be made up.
    """

    def __init__(self, source: Source, *, device: str | None = None) -> None:
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
