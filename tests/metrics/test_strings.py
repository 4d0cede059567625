"""The response compared with the reference as strings; BLEU, chrF and ROUGE against the libraries that define them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from pytest_ragmetrics import (
    RagMetricsError,
    UnscoredError,
    assert_bleu,
    assert_chrf,
    assert_exact_match,
    assert_rouge,
    assert_string_present,
    assert_text_alike,
)
from pytest_ragmetrics.metrics import (
    BleuScore,
    CHRFScore,
    Correctness,
    ExactMatch,
    NonLLMStringSimilarity,
    RougeScore,
    StringPresence,
    TokenF1,
)


@pytest.mark.parametrize(
    ("response", "reference", "same", "present"),
    [
        ("Oslo", "Oslo", 1.0, 1.0),
        ("Oslo.", "Oslo", 0.0, 1.0),
        ("oslo", "Oslo", 0.0, 0.0),
        ("Oslo\n", "Oslo", 0.0, 1.0),
        ("cafe\u0301", "caf\u00e9", 0.0, 0.0),
        ("首都は東京です", "東京", 0.0, 1.0),
        ("abc", "a.c", 0.0, 0.0),
    ],
)
def test_the_same_and_present(response: str, reference: str, same: float, present: float) -> None:
    """Character for character; no character has a special meaning."""
    for metric, value in ((ExactMatch(), same), (StringPresence(), present)):
        result = metric.score(response=response, reference=reference)
        assert result.value == value
        (verdict,) = result.verdicts
        assert (verdict.text, verdict.ok, verdict.start, verdict.end) == (response, bool(value), 0, len(response))


@pytest.mark.parametrize(
    ("metric", "response", "reference", "reason"),
    [
        (ExactMatch(), "Bergen", "Oslo", 'the reference is "Oslo"'),
        (ExactMatch(), "Oslo  is\n", "Oslo is", "it differs from the reference in white space"),
        (StringPresence(), "Bergen", "Oslo", '"Oslo" stands not in it'),
        (StringPresence(), "In OSLO.", "Oslo", '"Oslo" stands in it in another case'),
    ],
)
def test_a_failure_says_what_is_different(metric: ExactMatch, response: str, reference: str, reason: str) -> None:
    """White space and case are named where only they differ."""
    assert metric.score(response=response, reference=reference).reason == reason


@pytest.mark.parametrize(
    ("measure", "value"),
    [("levenshtein", 0.8), ("indel", 8 / 9), ("hamming", 0.8), ("jaro", 14 / 15), ("jaro_winkler", 0.96)],
)
def test_similarity_by_hand(measure: Any, value: float) -> None:
    """Moth and moths, by every measure."""
    result = NonLLMStringSimilarity(measure=measure).score(response="moth", reference="moths")
    assert result.value == pytest.approx(value)
    assert result.reason == f"{value:.0%} alike by {measure}"


@pytest.mark.parametrize(
    ("response", "reference", "value"),
    [
        # a word counts as often as it occurs
        ("no no no", "no no", 0.8),
        ("red red blue", "red blue blue", 2 / 3),
        ("Answer!", "“answer”", 1.0),
        ("برج طوكيو", "برج", 2 / 3),
        ("Der Köder", "der ko\u0308der", 1.0),
        ("the a an", "…", 1.0),
        ("", "", 1.0),
        ("", "May", 0.0),
        ("May", " ", 0.0),
        ("东京塔", "东京", 0.8),
    ],
)
def test_token_f1(response: str, reference: str, value: float) -> None:
    """As in SQuAD, and as Correctness says without a judge."""
    result = TokenF1().score(response=response, reference=reference)
    assert result.value == pytest.approx(value)
    other = Correctness(method="token_f1").score(response=response, reference=reference)
    assert (result.value, result.reason) == (other.value, other.reason)


def test_the_helpers() -> None:
    """Response first, then the reference."""
    with pytest.raises(AssertionError, match=r"exact_match 0\.00 < 1\.00: 1 of 1 response not the reference\n"):
        assert_exact_match("Bergen", "Oslo")
    with pytest.raises(AssertionError, match=r"string_presence 0\.00 < 1\.00: 1 of 1 response without the reference"):
        assert_string_present("Bergen", "Oslo")
    with pytest.raises(AssertionError, match=r"non_llm_string_similarity 0\.40 < 0\.80: 40% alike by levenshtein"):
        assert_text_alike("abcde", "ab---")
    with pytest.raises(AssertionError, match=r"token_f1 0\.50 < 0\.80: 1 words in common of 2 and 2"):
        assert_text_alike("big moth", "small moth", metric="token_f1")
    with pytest.raises(ValueError, match="metric must be 'similarity' or 'token_f1'"):
        assert_text_alike("moth", "moth", metric="bleu")  # type: ignore[arg-type]


SAID = "The pump needs two minutes to fill. Then close the valve."
WANTED = "The pump needs nine minutes to fill. Close the valve then."
WORDS = st.lists(st.sampled_from(["Pump", "valve.", "two", "the", "the", "fills,", "don't"]), min_size=1).map(" ".join)


def test_bleu_by_hand() -> None:
    """Precisions 4/5, 2/4, 1/3 (none of 2 runs of four, smoothed to 1/4), no brevity penalty."""
    result = BleuScore().score(response="a b c x d", reference="a b c d e")
    assert result.value == pytest.approx((4 / 5 * 2 / 4 * 1 / 3 * 1 / 4) ** 0.25)
    assert result.reason == "precisions 0.80, 0.50, 0.33, 0.25; brevity penalty 1.00"


@given(WORDS, WORDS)
def test_bleu_and_chrf_are_those_of_sacrebleu(response: str, reference: str) -> None:
    """Brought to [0, 1]; the whole text is one segment, even where it has several sentences."""
    fields = {"response": response, "reference": reference}
    bleu, chrf, plus = BleuScore(), CHRFScore(), CHRFScore(word_order=2, beta=1, char_order=4)
    peers = sacrebleu.BLEU(effective_order=True), sacrebleu.CHRF(), sacrebleu.CHRF(word_order=2, beta=1, char_order=4)
    for metric, peer in zip((bleu, chrf, plus), peers, strict=True):
        score = metric.score(**fields)
        assert score.value == pytest.approx(peer.sentence_score(response, [reference]).score / 100)
        assert 0 <= score <= 1


@given(
    WORDS.filter(lambda text: " " in text),
    WORDS,
    st.sampled_from(["rouge1", "rouge2", "rougeL", "rougeLsum"]),
    st.booleans(),
)
def test_rouge_is_that_of_rouge_score_for_english(response: str, reference: str, kind: Any, stem: bool) -> None:
    """For letters from a to z the words are the same, stemmed or not."""
    peer = rouge_scorer.RougeScorer([kind], use_stemmer=stem).score(reference, response)[kind]
    for mode in ("fmeasure", "precision", "recall"):
        metric = RougeScore(rouge_type=kind, mode=mode, use_stemmer=stem)
        assert metric.score(response=response, reference=reference).value == pytest.approx(getattr(peer, mode))


SCRIPTS = [
    "Two words",
    "Das Ventil öffnen.",
    "東京タワーは高い",
    "Насос наполняется",
    "المضخة تمتلئ",
    "पंप भर रहा है",
    "ปั๊มเต็ม",
    "x",
]
OTHER = [
    ("Насос наполняется две минуты.", "Насос наполняется девять минут."),
    ("東京タワーは高いです", "東京タワーは赤いです"),
    ("पंप दो मिनट में भरता है", "पंप नौ मिनट में भरता है"),
]


@pytest.mark.parametrize(
    "kwargs",
    [
        {"lowercase": True},
        {"smooth_method": "floor", "smooth_value": 0.2, "use_effective_order": False},
        {"smooth_method": "add-k", "use_effective_order": False},
        {"smooth_method": "none", "force": True, "tokenize": "char"},
        {"smooth_value": None, "use_effective_order": True},
        {"use_effective_order": False},
    ],
)
def test_keyword_arguments_of_bleu(kwargs: dict[str, Any]) -> None:
    """They go to sacrebleu, before the parameters of ours; only the effective order is true by itself."""
    for response in ("A Pump", "The PUMP needs two minutes today", WANTED):
        peer = sacrebleu.corpus_bleu([response], [[WANTED]], **{"use_effective_order": True, **kwargs})
        metric = BleuScore(tokenize="13a", kwargs=kwargs)
        assert metric.score(response=response, reference=WANTED).value == pytest.approx(min(peer.score / 100, 1.0))


@pytest.mark.parametrize(
    "kwargs",
    [{"remove_whitespace": False}, {"eps_smoothing": True}, {"char_order": 3, "word_order": 2, "beta": 1}, {}],
)
def test_keyword_arguments_of_chrf(kwargs: dict[str, Any]) -> None:
    """They go to sacrebleu, before the parameters of ours."""
    for response in ("A pump", "The pump  needs two minutes", WANTED):
        peer = sacrebleu.corpus_chrf([response], [[WANTED]], **{"beta": 3, **kwargs})
        found = CHRFScore(beta=3, kwargs=kwargs).score(response=response, reference=WANTED)
        assert found.value == pytest.approx(min(peer.score / 100, 1.0))
    assert assert_chrf(response, WANTED, kwargs=kwargs) == assert_bleu(WANTED, WANTED, kwargs={"lowercase": True})


@pytest.mark.parametrize("metric", [BleuScore, CHRFScore, RougeScore])
def test_every_script_has_words(metric: Any) -> None:
    """The same text is exactly 1.0, however short; texts that share most words are between nothing and all."""
    assert [metric().score(response=text, reference=text).value for text in SCRIPTS] == [1.0] * 8
    for response, reference in OTHER:
        assert 0.2 < metric().score(response=response, reference=reference).value < 0.95


def test_the_tokenizer_of_bleu_can_be_chosen() -> None:
    """By itself it is char where the reference is written without spaces, else 13a."""
    chosen: Any
    other: Any
    for fields, chosen, other in (
        ({"response": "高い塔です", "reference": "高い山です"}, "char", "13a"),
        ({"response": SAID, "reference": WANTED}, "13a", "char"),
    ):
        auto = BleuScore().score(**fields).value
        assert auto == BleuScore(tokenize=chosen).score(**fields).value
        assert auto != BleuScore(tokenize=other).score(**fields).value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NonLLMStringSimilarity(measure="cosine"), "measure must be 'levenshtein' or .*, not 'cosine'"),  # type: ignore[arg-type]
        (lambda: BleuScore(tokenize="spm"), "tokenize must be 'auto' or '13a'"),  # type: ignore[arg-type]
        (lambda: BleuScore(kwargs={"tokenise": "13a"}), "kwargs: sacrebleu takes no tokenise; it takes smooth_method"),
        (lambda: BleuScore(kwargs={"smooth_method": "best"}), "smooth_method must be 'none' or 'floor'"),
        (lambda: BleuScore(kwargs={"lowercase": 1}), "lowercase must be True or False"),
        (lambda: CHRFScore(kwargs={"beta": 0}), "beta must be a whole number from 1 on"),
        (lambda: CHRFScore(kwargs={"lowercase": True}), "kwargs: sacrebleu takes no lowercase; it takes char_order"),
        (lambda: CHRFScore(char_order=0), "char_order must be a whole number from 1 on"),
        (lambda: CHRFScore(word_order=-1), "word_order must be a whole number from 1 on"),
        (lambda: CHRFScore(beta=0), "beta must be a whole number from 1 on"),
        (lambda: RougeScore(rouge_type="rouge"), "rouge_type must be 'rouge1'"),  # type: ignore[arg-type]
        (lambda: RougeScore(mode="f1"), "mode must be 'fmeasure' or 'precision' or 'recall'"),  # type: ignore[arg-type]
        (lambda: RougeScore(use_stemmer=1), "use_stemmer must be True or False"),  # type: ignore[arg-type]
    ],
)
def test_wrong_parameters(make: Any, message: str) -> None:
    """The error names the parameter."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("kind", "response", "reference", "wanted", "longer"),
    [
        # Signs are no words: two texts of them have nothing to share, and one has nothing of the other.
        ("rougeL", "?!", "🦦", "a word", "Otters."),
        # Of two equal words there is no run of four to share, and equal texts are never 0.0.
        ("rouge4", "Otters float.", "Otters float.", "a run of 4 words", "Sea otters float asleep."),
    ],
)
def test_rouge_without_anything_to_compare_is_no_score(
    kind: Any, response: str, reference: str, wanted: str, longer: str
) -> None:
    """Where only one text has a run of words it is 0.0."""
    metric = RougeScore(rouge_type=kind)
    with pytest.raises(UnscoredError, match=f"rouge_score: neither response nor reference has {wanted} to compare"):
        metric.score(response=response, reference=reference)
    assert metric.score(response=response, reference=longer).value == 0.0


def test_the_helpers_of_overlap() -> None:
    """Response first, then the reference, with the parameters of the metrics."""
    assert assert_bleu(SAID, SAID, min=1.0).value == 1.0
    assert assert_chrf(SAID, WANTED, word_order=2).value > 0.5
    assert assert_rouge(SAID, WANTED, rouge_type="rouge1", mode="recall", use_stemmer=True).value > 0.5
    with pytest.raises(AssertionError, match=r"bleu_score 0\.01 < 0\.30: precisions 0"):
        assert_bleu("Moths fly.", WANTED)
    with pytest.raises(AssertionError, match=r"chrf_score 0\.\d+ < 0\.50"):
        assert_chrf("Moths fly.", WANTED)
    with pytest.raises(AssertionError, match=r"rouge_score 0\.73 < 0\.80: rougeL: precision 0\.80, recall 0\.67"):
        assert_rouge("the pump needs two minutes", "then the pump needs nine minutes", min=0.8)


@pytest.mark.parametrize(
    ("metric", "module"),
    [(BleuScore, "sacrebleu.metrics"), (CHRFScore, "sacrebleu.metrics"), (RougeScore, "rouge_score.rouge_scorer")],
)
def test_without_the_extra_the_error_names_it(metric: Any, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the library cannot be imported."""
    monkeypatch.setitem(sys.modules, module, None)
    hint = rf'{metric.name} needs {module.partition(".")[0]}: pip install "pytest-ragmetrics\[text\]"'
    with pytest.raises(RagMetricsError, match=hint):
        metric().score(response="Oslo", reference="Oslo")
