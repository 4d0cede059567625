"""BLEU, chrF and ROUGE, against the libraries that define them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from pytest_ragmetrics import UnscoredError, assert_bleu, assert_chrf, assert_rouge
from pytest_ragmetrics.metrics import BleuScore, CHRFScore, RougeScore

SAID = "The pump needs two minutes to fill. Then close the valve."
WANTED = "The pump needs nine minutes to fill. Close the valve then."
WORDS = st.lists(st.sampled_from(["Pump", "valve.", "two", "the", "the", "fills,", "don't"]), min_size=1).map(" ".join)


def test_bleu_by_hand() -> None:
    """Precisions 4/5, 2/4, 1/3 (none of 2 runs of four, smoothed to 1/4), no brevity penalty."""
    result = BleuScore().score(response="a b c x d", reference="a b c d e")
    assert result.value == pytest.approx((4 / 5 * 2 / 4 * 1 / 3 * 1 / 4) ** 0.25)
    assert result.reason == "precisions 0.80, 0.50, 0.33, 0.25; brevity penalty 1.00"


@settings(deadline=None)  # the libraries load more when they are first used
@given(WORDS, WORDS)
def test_bleu_is_that_of_sacrebleu_for_one_segment(response: str, reference: str) -> None:
    """The whole text is one segment, even where it has several sentences."""
    score = BleuScore().score(response=response, reference=reference)
    assert score.value == pytest.approx(sacrebleu.sentence_bleu(response, [reference]).score / 100)
    assert 0 <= score <= 1


@settings(deadline=None)  # the libraries load more when they are first used
@given(WORDS, WORDS)
def test_chrf_is_that_of_sacrebleu(response: str, reference: str) -> None:
    """Brought to [0, 1]."""
    score = CHRFScore().score(response=response, reference=reference)
    assert score.value == pytest.approx(sacrebleu.corpus_chrf([response], [[reference]]).score / 100)
    plus = CHRFScore(word_order=2, beta=1, char_order=4).score(response=response, reference=reference)
    peer = sacrebleu.CHRF(word_order=2, beta=1, char_order=4).sentence_score(response, [reference])
    assert plus.value == pytest.approx(peer.score / 100)


@settings(deadline=None)  # the libraries load more when they are first used
@given(
    WORDS.filter(lambda text: " " in text),
    WORDS,
    st.sampled_from(["rouge1", "rouge2", "rougeL", "rougeLsum"]),
    st.booleans(),
)
def test_rouge_is_that_of_rouge_score_for_english(response: str, reference: str, kind: Any, stem: bool) -> None:  # noqa: FBT001 - drawn
    """For letters from a to z the words are the same, stemmed or not."""
    peer = rouge_scorer.RougeScorer([kind], use_stemmer=stem).score(reference, response)[kind]
    for mode in ("fmeasure", "precision", "recall"):
        metric = RougeScore(rouge_type=kind, mode=mode, use_stemmer=stem)
        assert metric.score(response=response, reference=reference).value == pytest.approx(getattr(peer, mode))


def test_rouge_by_hand() -> None:
    """Four words in order of five and six."""
    fields = {"response": "the pump needs two minutes", "reference": "then the pump needs nine minutes"}
    assert RougeScore(mode="precision").score(**fields).value == pytest.approx(4 / 5)
    assert RougeScore(mode="recall").score(**fields).value == pytest.approx(4 / 6)
    assert RougeScore(rouge_type="rouge2").score(**fields).value == pytest.approx(2 * (2 / 4 * 2 / 5) / (2 / 4 + 2 / 5))
    assert RougeScore().score(**fields).reason == "rougeL: precision 0.80, recall 0.67"


@pytest.mark.parametrize(
    "text",
    [
        "Two words",
        "Das Ventil öffnen.",
        "東京タワーは高い",
        "Насос наполняется",
        "المضخة تمتلئ",
        "पंप भर रहा है",
        "ปั๊มเต็ม",
        "x",
    ],
)
@pytest.mark.parametrize("metric", [BleuScore, CHRFScore, RougeScore])
def test_the_same_text_scores_one_in_every_script(metric: Any, text: str) -> None:
    """Exactly 1.0, however short."""
    assert metric().score(response=text, reference=text).value == 1.0


@pytest.mark.parametrize("metric", [BleuScore, CHRFScore, RougeScore])
def test_other_scripts_are_told_apart(metric: Any) -> None:
    """Texts that share most of their words score between nothing and all."""
    for response, reference in [
        ("Насос наполняется две минуты.", "Насос наполняется девять минут."),
        ("東京タワーは高いです", "東京タワーは赤いです"),
        ("पंप दो मिनट में भरता है", "पंप नौ मिनट में भरता है"),
    ]:
        assert 0.2 < metric().score(response=response, reference=reference).value < 0.95


def test_the_tokenizer_of_bleu_can_be_chosen() -> None:
    """By itself it is char where the reference is written without spaces, else 13a."""
    fields = {"response": "高い塔です", "reference": "高い山です"}
    auto = BleuScore().score(**fields)
    assert auto.value == BleuScore(tokenize="char").score(**fields).value
    assert BleuScore(tokenize="13a").score(**fields).value < auto.value
    english = {"response": SAID, "reference": WANTED}
    assert BleuScore().score(**english).value == BleuScore(tokenize="13a").score(**english).value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BleuScore(tokenize="spm"), "tokenize must be 'auto' or '13a'"),  # type: ignore[arg-type]
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


def test_rouge_of_texts_without_words_is_no_score() -> None:
    """Signs are no words: two texts of them have nothing to share, and one has nothing of the other."""
    with pytest.raises(UnscoredError, match="rouge_score: neither response nor reference has a word to compare"):
        RougeScore().score(response="?!", reference="🦦")
    assert RougeScore().score(response="?!", reference="Otters.").value == 0.0


def test_rouge_of_texts_shorter_than_its_runs_is_no_score() -> None:
    """Of two equal words there is no run of four to share, and equal texts are never 0.0."""
    metric = RougeScore(rouge_type="rouge4")
    with pytest.raises(UnscoredError, match="neither response nor reference has a run of 4 words to compare"):
        metric.score(response="Otters float.", reference="Otters float.")
    assert metric.score(response="Otters float.", reference="Sea otters float asleep.").value == 0.0


def test_the_helpers() -> None:
    """Response first, then the reference, with the parameters of the metrics."""
    assert assert_bleu(SAID, SAID, min=1.0).value == 1.0
    assert assert_chrf(SAID, WANTED, word_order=2).value > 0.5
    assert assert_rouge(SAID, WANTED, rouge_type="rouge1", mode="recall", use_stemmer=True).value > 0.5
    with pytest.raises(AssertionError, match=r"bleu_score 0\.01 < 0\.30: precisions 0"):
        assert_bleu("Moths fly.", WANTED)
    with pytest.raises(AssertionError, match=r"chrf_score 0\.\d+ < 0\.50"):
        assert_chrf("Moths fly.", WANTED)
    with pytest.raises(AssertionError, match=r"rouge_score 0\.00 < 0\.50: rougeL: precision 0\.00, recall 0\.00"):
        assert_rouge("Moths fly.", WANTED)


BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("sacrebleu", "rouge_score"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
from pytest_ragmetrics import RagMetricsError
from pytest_ragmetrics.metrics import BleuScore, CHRFScore, RougeScore
for metric in (BleuScore, CHRFScore, RougeScore):
    try:
        metric().score(response="Oslo", reference="Oslo")
    except RagMetricsError as error:
        print(error)
"""


def test_without_the_extra_the_error_names_it() -> None:
    """In a process where the libraries cannot be imported."""
    done = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=True)
    hint = 'pip install "pytest-ragmetrics[text]"'
    assert done.stdout.splitlines() == [
        f"bleu_score needs sacrebleu: {hint}",
        f"chrf_score needs sacrebleu: {hint}",
        f"rouge_score needs rouge_score: {hint}",
    ]
