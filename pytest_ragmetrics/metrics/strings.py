"""Metrics that compare the response with the reference as strings.

BLEU, chrF and ROUGE are those of the libraries that define them: ``pip install "pytest-ragmetrics[text]"``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias, get_args
from unicodedata import normalize

from pytest_ragmetrics.core.errors import UnscoredError, optional
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.base import Metric, f_of_counts
from pytest_ragmetrics.metrics.parameters import (
    called,
    check_choice,
    check_count,
    check_flag,
    check_number,
    choice,
    count,
    declared,
    parameter,
)
from pytest_ragmetrics.metrics.verdicts import on_response
from pytest_ragmetrics.text.unicode import is_unspaced, plain
from pytest_ragmetrics.text.words import answer_tokens, word_tokens

Measure: TypeAlias = Literal["levenshtein", "indel", "hamming", "jaro", "jaro_winkler"]
_EXTRA = "Needs the extra ``[text]``."


def likeness(measure: Measure) -> Callable[[str, str], float]:
    """Return the function that says how alike two texts are, from 0.0 to 1.0; 1.0 for the same text.

    Runs of white space are one space, and characters are composed. Levenshtein, indel and Hamming similarities are
    1 - edits / the most that there could be.

    >>> likeness("levenshtein")("moth", "moths"), likeness("hamming")("moth", "math")
    (0.8, 0.75)
    """
    module = import_module(f"rapidfuzz.distance.{measure.title().replace('_', '')}")
    function: Callable[[str, str], float] = module.normalized_similarity
    return lambda one, other: function(plain(one), plain(other))


class ReferenceMetric(Metric):
    """A metric that compares the texts of ``response`` and ``reference``."""

    requires = ("response", "reference")

    def measure(self, sample: Sample) -> MetricResult:
        """Return the result of comparing them."""
        return self._compare(sample.response or "", sample.reference or "")

    @abstractmethod
    def _compare(self, response: str, reference: str) -> MetricResult: ...


class ExactMatch(ReferenceMetric):
    """1.0 if ``response`` is ``reference``, character for character, else 0.0.

    Use it when answers are labels, codes or names with one right form.

    >>> ExactMatch().score(response="Oslo.", reference="Oslo").value
    0.0
    """

    name = "exact_match"
    blind_spots = "Right answers in other words, or with another full stop."
    noun = "response"
    complaint = "not the reference"
    helper = "assert_exact_match"
    aliases = ("ExactMatchMetric",)

    def _compare(self, response: str, reference: str) -> MetricResult:
        if response != reference and response.split() == reference.split():
            return self._result(response, ok=False, reason="it differs from the reference in white space")
        return self._result(response, ok=response == reference, reason=f'the reference is "{reference}"')

    def _result(self, response: str, *, ok: bool, reason: str) -> MetricResult:
        verdict = on_response(response, ok=ok, reason=reason)
        return MetricResult(float(ok), metric=self.name, reason=reason, verdicts=[verdict])


assert_exact_match = asserting(ExactMatch, min=1.0, example='"Oslo", "Oslo"')


class StringPresence(ExactMatch):
    """1.0 if ``response`` contains ``reference``, character for character, else 0.0.

    Use it when an answer must contain one exact text.

    >>> StringPresence().score(response="The capital is Oslo.", reference="Oslo").value
    1.0
    """

    name = "string_presence"
    blind_spots = 'What is said of the string: "not Oslo" contains it.'
    complaint = "without the reference"
    helper = "assert_string_present"
    aliases = ("string_present",)

    def _compare(self, response: str, reference: str) -> MetricResult:
        found = reference in response
        if not found and reference.casefold() in response.casefold():
            return self._result(response, ok=False, reason=f'"{reference}" is in it in another case')
        return self._result(response, ok=found, reason=f'"{reference}" is {"" if found else "not "}in it')


assert_string_present = asserting(StringPresence, min=1.0, example='"The capital is Oslo.", "Oslo"')


@declared
class NonLLMStringSimilarity(ReferenceMetric):
    """How alike ``response`` and ``reference`` are, from 0.0 to 1.0.

    Use it when answers should be nearly the reference, and small differences do not matter. ``measure`` is levenshtein,
    indel, hamming (1 - edits / the most that there could be), jaro or jaro_winkler.

    >>> NonLLMStringSimilarity().score(response="moth", reference="moths").value
    0.8
    """

    name = "non_llm_string_similarity"
    blind_spots = "Meaning: a changed digit or a negation is a small edit."
    helper = "assert_text_alike"

    alike_by: Measure = called(alias="measure", default="levenshtein", of=Measure)

    def _compare(self, response: str, reference: str) -> MetricResult:
        alike = likeness(self.alike_by)(response, reference)
        return MetricResult(alike, metric=self.name, reason=f"{alike:.0%} alike by {self.alike_by}")


class TokenF1(ReferenceMetric):
    """The F1 of the words that ``response`` and ``reference`` share, with their counts, as in SQuAD.

    Use it when right answers are a few words, in any order. Words are compared without case, punctuation and English
    articles (Rajpurkar et al., 2016); in scripts without spaces each character is a word. Blank texts have a score: two
    without words 1.0, one without words 0.0.

    >>> TokenF1().score(response="In May 1903.", reference="May 1903").value
    0.8
    """

    name = "token_f1"
    blind_spots = "The order of words, synonyms, and what a negation changes."
    helper = "assert_text_alike"
    aliases = ("f1",)
    may_be_empty = ("response", "reference")

    def _compare(self, response: str, reference: str) -> MetricResult:
        return token_f1(response, reference, metric=self.name)


assert_text_alike = asserting(
    NonLLMStringSimilarity,
    TokenF1,
    called=("similarity", "token_f1"),
    min=0.8,
    example='"In May 1903.", "May 1903", metric="token_f1"',
    shows=0.8,
)


def token_f1(response: str, reference: str, *, metric: str) -> MetricResult:
    """Return the F1 of the words of two texts, as the result of a metric."""
    said, wanted = Counter(answer_tokens(response)), Counter(answer_tokens(reference))
    common = (said & wanted).total()
    value = f_of_counts(common, (said - wanted).total(), (wanted - said).total())
    reason = f"{common} words in common of {said.total()} and {wanted.total()}"
    return MetricResult(value if said or wanted else 1.0, metric=metric, reason=reason)


Tokenizer: TypeAlias = Literal["auto", "13a", "intl", "zh", "char", "none"]
RougeType: TypeAlias = Literal["rouge1", "rouge2", "rouge3", "rouge4", "rougeL", "rougeLsum"]
RougeMode: TypeAlias = Literal["fmeasure", "precision", "recall"]


def _word_order(value: object) -> int:
    # 0, its default, is no count.
    return check_count("word_order", value) if value else 0


#: The keyword arguments of ``sacrebleu.corpus_bleu`` and ``corpus_chrf``, with the check of each.
_BLEU: Mapping[str, Callable[[str, Any], Any]] = {
    "smooth_method": lambda name, value: check_choice(name, value, ("none", "floor", "add-k", "exp")),
    "smooth_value": lambda name, value: value if value is None else check_number(name, value),
    "force": check_flag,
    "lowercase": check_flag,
    "tokenize": lambda name, value: check_choice(name, value, get_args(Tokenizer)),
    "use_effective_order": check_flag,
}
_CHRF: Mapping[str, Callable[[str, Any], Any]] = {
    "char_order": check_count,
    "word_order": lambda _, value: _word_order(value),
    "beta": check_count,
    "remove_whitespace": check_flag,
    "eps_smoothing": check_flag,
}


def _checked(given: Any, *, known: Mapping[str, Callable[[str, Any], Any]]) -> dict[str, Any]:
    """Return keyword arguments of sacrebleu; raise ``ValueError`` for one that it does not take, or a wrong value."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"kwargs must map the names of sacrebleu's arguments to values, not be of type {type(given).__name__}"
        )
    if unknown := sorted(map(str, given.keys() - known.keys())):
        raise ValueError(f"kwargs: sacrebleu takes no {unknown[0]}; it takes {', '.join(known)}")
    return {each: known[each](each, value) for each, value in given.items()}


@declared
class BleuScore(ReferenceMetric):
    """BLEU of ``response`` against ``reference``, each taken whole as one segment, brought to [0, 1].

    Use it when you compare with published BLEU figures, as for translations. The geometric mean of the precisions of
    runs of 1 to 4 words, as far as there are any so long, with exponential smoothing, times the brevity penalty
    (Papineni et al., 2002; sacrebleu, Post 2018). ``tokenize`` is 13a, intl, zh, char or none of sacrebleu; "auto" is
    13a, or char for a reference without spaces. ``kwargs``, as in Ragas, are those of ``sacrebleu.corpus_bleu`` and
    take precedence; ``use_effective_order`` defaults to true.

    >>> BleuScore().score(response="The pump needs two minutes.", reference="The pump needs two minutes.").value
    1.0
    """

    name = "bleu_score"
    blind_spots = "Synonyms and paraphrases; what a negation or a number changes; it is noisy on single sentences."
    helper = "assert_bleu"
    aliases = ("bleu",)

    tokenize: Tokenizer = choice("auto", Tokenizer)
    kwargs: Mapping[str, Any] | None = parameter(None, partial(_checked, known=_BLEU))

    def __post_init__(self) -> None:
        self.tokenize = (self.kwargs or {}).get("tokenize", self.tokenize)

    def _compare(self, response: str, reference: str) -> MetricResult:
        letters = [char for char in reference if char.isalpha()]
        usual = "char" if 2 * sum(map(is_unspaced, letters)) > len(letters) else "13a"
        chosen = usual if self.tokenize == "auto" else self.tokenize
        options = {"use_effective_order": True, **(self.kwargs or {}), "tokenize": chosen}
        options["effective_order"] = options.pop("use_effective_order")
        bleu = optional("sacrebleu.metrics", self.name, "text").BLEU(**options)
        score = bleu.corpus_score([plain(response)], [[plain(reference)]])
        precisions = ", ".join(f"{precision / 100:.2f}" for precision in score.precisions)
        reason = f"precisions {precisions}; brevity penalty {score.bp:.2f}"
        return MetricResult(_share(score.score), metric=self.name, reason=reason)


assert_bleu = asserting(
    BleuScore, min=0.3, example='"The pump needs two minutes.", "The pump needs two minutes."', note=_EXTRA
)


@declared
class CHRFScore(ReferenceMetric):
    """chrF of ``response`` against ``reference``: the F-score of runs of 1 to 6 characters, brought to [0, 1].

    Use it when you compare wording in a language with many word forms. Recall counts ``beta`` times; ``word_order=2``
    makes it chrF++ (Popović, 2015; sacrebleu). White space is left out. ``kwargs``, as in Ragas, are those of
    ``sacrebleu.corpus_chrf`` and take precedence.

    >>> CHRFScore().score(response="Das Ventil öffnen.", reference="Das Ventil öffnen.").value
    1.0
    """

    name = "chrf_score"
    blind_spots = "Synonyms and paraphrases; what a negation or a number changes."
    helper = "assert_chrf"
    aliases = ("chrf", "ChrfScore")

    char_order: int = count(6)
    word_order: int = parameter(0, _word_order)
    beta: int = count(2)
    kwargs: Mapping[str, Any] | None = parameter(None, partial(_checked, known=_CHRF))

    def _compare(self, response: str, reference: str) -> MetricResult:
        given = {"char_order": self.char_order, "word_order": self.word_order, "beta": self.beta}
        options = {**given, **(self.kwargs or {})}
        options["whitespace"] = not options.pop("remove_whitespace", True)
        chrf = optional("sacrebleu.metrics", self.name, "text").CHRF(**options)
        score = chrf.corpus_score([normalize("NFC", response)], [[normalize("NFC", reference)]])
        return MetricResult(_share(score.score), metric=self.name)


assert_chrf = asserting(CHRFScore, min=0.5, note=_EXTRA)


@declared
class RougeScore(ReferenceMetric):
    """ROUGE of ``response`` against ``reference``: the runs of words they share.

    Use it when you compare with published ROUGE figures, as for summaries. ``rouge_type`` is rouge1 to rouge4, the
    length of the runs, or rougeL (rougeLsum, line by line), the longest common sequence of words, whose time grows with
    the product of the lengths. ``mode`` is fmeasure, precision (of the response) or recall (of the reference). Words
    are runs of letters and digits without case, in any script; ``use_stemmer=True`` stems Latin ones as English (Lin,
    2004; rouge-score). :class:`UnscoredError` if neither text has a run of words so long.

    >>> RougeScore().score(response="The pump needs two minutes.", reference="It needs two minutes.").value
    0.6666666666666665
    """

    name = "rouge_score"
    blind_spots = "Synonyms and paraphrases; what a negation or a number changes."
    helper = "assert_rouge"
    aliases = ("rouge",)

    rouge_type: RougeType = choice("rougeL", RougeType)
    mode: RougeMode = choice("fmeasure", RougeMode)
    use_stemmer: bool = False

    def _compare(self, response: str, reference: str) -> MetricResult:
        library = optional("rouge_score.rouge_scorer", self.name, "text")
        run = int(self.rouge_type[-1]) if self.rouge_type[-1].isdigit() else 1
        if max(len(word_tokens(response)), len(word_tokens(reference))) < run:
            what = "a word" if run == 1 else f"a run of {run} words"
            raise UnscoredError(f"{self.name}: neither response nor reference has {what} to compare")
        scorer = library.RougeScorer([self.rouge_type], tokenizer=_WordTokenizer(stem=self.use_stemmer))
        score = scorer.score(reference, response)[self.rouge_type]
        reason = f"{self.rouge_type}: precision {score.precision:.2f}, recall {score.recall:.2f}"
        return MetricResult(float(getattr(score, self.mode)), metric=self.name, reason=reason)


assert_rouge = asserting(RougeScore, min=0.5, note=_EXTRA)


class _WordTokenizer:
    """Splits texts into words for rouge-score, whose own tokenizer keeps a-z and 0-9 alone."""

    def __init__(self, *, stem: bool) -> None:
        self._stem = import_module("nltk.stem.porter").PorterStemmer().stem if stem else None

    def tokenize(self, text: str) -> list[str]:
        """Return the words; as in rouge-score, those of up to three letters are not stemmed."""
        tokens = word_tokens(text)
        if self._stem is None:
            return tokens
        return [self._stem(token) if len(token) > 3 and token.isascii() else token for token in tokens]  # noqa: PLR2004 - as rouge-score


def _share(percent: float) -> float:
    """Return percent as a share; the same text must give 1.0, and logarithms round to slightly more or less."""
    return min(round(percent / 100, 12), 1.0)
