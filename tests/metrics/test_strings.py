"""The response compared with the reference as strings; BLEU, chrF and ROUGE against the libraries that define them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import RagMetricsError, UnscoredError
from pytest_ragmetrics import metrics as m

SAID = "The pump needs two minutes to fill. Then close the valve."
WANTED = "The pump needs nine minutes to fill. Close the valve then."
WORDS = st.lists(st.sampled_from(["Pump", "valve.", "two", "the", "the", "fills,", "don't"]), min_size=1).map(" ".join)
SEVERAL = WORDS.filter(lambda text: " " in text)
MEASURES: Any = {"levenshtein": 0.8, "indel": 8 / 9, "hamming": 0.8, "jaro": 14 / 15, "jaro_winkler": 0.96}
SCRIPTS = ["Two words", "Das Ventil öffnen.", "東京タワーは高い", "Насос наполняется", "المضخة تمتلئ", "पंप भर रहा है"]
SCRIPTS += ["ปั๊มเต็ม", "x"]
OTHER = [
    ("Насос наполняется две минуты.", "Насос наполняется девять минут."),
    ("東京タワーは高いです", "東京タワーは赤いです"),
    ("पंप दो मिनट में भरता है", "पंप नौ मिनट में भरता है"),
]
EFFECTIVE, NOT_EFFECTIVE = {"use_effective_order": True}, {"use_effective_order": False}
BLEU: list[dict[str, Any]] = [
    *({"lowercase": True}, NOT_EFFECTIVE, {"smooth_value": None, **EFFECTIVE}),
    *({"smooth_method": "floor", "smooth_value": 0.2, **NOT_EFFECTIVE}, {"smooth_method": "add-k", **NOT_EFFECTIVE}),
    {"smooth_method": "none", "force": True, "tokenize": "char"},
]
CHRF: list[dict[str, Any]] = [{"remove_whitespace": False}, {"eps_smoothing": True}, {}]
CHRF.append({"char_order": 3, "word_order": 2, "beta": 1})


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
    for metric, value in ((m.ExactMatch(), same), (m.StringPresence(), present)):
        result = metric.score(response=response, reference=reference)
        assert result.value == value
        (verdict,) = result.verdicts
        assert (verdict.text, verdict.ok, verdict.start, verdict.end) == (response, bool(value), 0, len(response))


@pytest.mark.parametrize(
    ("metric", "response", "reference", "reason"),
    [
        (m.ExactMatch(), "Bergen", "Oslo", 'the reference is "Oslo"'),
        (m.ExactMatch(), "Oslo  is\n", "Oslo is", "it differs from the reference in white space"),
        (m.StringPresence(), "Bergen", "Oslo", '"Oslo" is not in it'),
        (m.StringPresence(), "In OSLO.", "Oslo", '"Oslo" is in it in another case'),
        (m.NonLLMStringSimilarity(measure="indel"), "moth", "moths", "89% alike by indel"),
        (m.TokenF1(), "big moth", "small moth", "1 words in common of 2 and 2"),
        (m.BleuScore(), "a b c x d", "a b c d e", "precisions 0.80, 0.50, 0.33, 0.25; brevity penalty 1.00"),
        (m.RougeScore(), "the pump fills", "then the pump is full", "rougeL: precision 0.67, recall 0.40"),
    ],
)
def test_the_reason_says_what_is_different(metric: m.Metric, response: str, reference: str, reason: str) -> None:
    assert metric.score(response=response, reference=reference).reason == reason


@pytest.mark.parametrize(
    ("metric", "response", "reference", "value"),
    [
        *((m.NonLLMStringSimilarity(measure=measure), "moth", "moths", value) for measure, value in MEASURES.items()),
        # In token F1, as in SQuAD, a word counts as often as it occurs.
        *((m.TokenF1(), *row) for row in (("no no no", "no no", 0.8), ("red red blue", "red blue blue", 2 / 3))),
        *((m.TokenF1(), *row) for row in (("Answer!", "“answer”", 1.0), ("برج طوكيو", "برج", 2 / 3))),
        *((m.TokenF1(), *row) for row in (("Der Köder", "der ko\u0308der", 1.0), ("东京塔", "东京", 0.8))),
        *((m.TokenF1(), *row) for row in (("the a an", "…", 1.0), ("", "", 1.0), ("", "May", 0.0), ("May", " ", 0.0))),
    ],
)
def test_values_by_hand(metric: m.Metric, response: str, reference: str, value: float) -> None:
    assert metric.score(response=response, reference=reference).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("response", "reference", "chosen", "other"),
    [("高い塔です", "高い山です", "char", "13a"), (SAID, WANTED, "13a", "char")],
)
def test_the_tokenizer_of_bleu_can_be_chosen(response: str, reference: str, chosen: Any, other: Any) -> None:
    """By itself it is char where the reference is written without spaces, else 13a."""
    auto, same, another = (
        m.BleuScore(tokenize=tokenizer).score(response=response, reference=reference).value
        for tokenizer in ("auto", chosen, other)
    )
    assert auto == same != another


@given(WORDS, WORDS)
def test_bleu_and_chrf_are_those_of_sacrebleu(response: str, reference: str) -> None:
    """Brought to [0, 1]; the whole text is one segment, even where it has several sentences."""
    fields = {"response": response, "reference": reference}
    bleu, chrf, plus = m.BleuScore(), m.CHRFScore(), m.CHRFScore(word_order=2, beta=1, char_order=4)
    peers = sacrebleu.BLEU(effective_order=True), sacrebleu.CHRF(), sacrebleu.CHRF(word_order=2, beta=1, char_order=4)
    for metric, peer in zip((bleu, chrf, plus), peers, strict=True):
        score = metric.score(**fields)
        assert score.value == pytest.approx(peer.sentence_score(response, [reference]).score / 100)
        assert 0 <= score <= 1


@given(SEVERAL, WORDS, st.sampled_from(["rouge1", "rouge2", "rougeL", "rougeLsum"]), st.booleans())
def test_rouge_is_that_of_rouge_score_for_english(response: str, reference: str, kind: Any, stem: bool) -> None:
    from rouge_score import rouge_scorer

    peer = rouge_scorer.RougeScorer([kind], use_stemmer=stem).score(reference, response)[kind]
    for mode in ("fmeasure", "precision", "recall"):
        metric = m.RougeScore(rouge_type=kind, mode=mode, use_stemmer=stem)
        assert metric.score(response=response, reference=reference).value == pytest.approx(getattr(peer, mode))


@pytest.mark.parametrize(
    ("metric", "peer", "usual", "kwargs"),
    [
        *((m.BleuScore, sacrebleu.corpus_bleu, {"tokenize": "13a"}, kwargs) for kwargs in BLEU),
        *((m.CHRFScore, sacrebleu.corpus_chrf, {"beta": 3}, kwargs) for kwargs in CHRF),
    ],
)
def test_keyword_arguments_of_sacrebleu(metric: Any, peer: Any, usual: Any, kwargs: dict[str, Any]) -> None:
    """They go there before the parameters of ours; only the effective order is true by itself."""
    effective = EFFECTIVE if metric is m.BleuScore else {}
    for response in ("A Pump", "The PUMP  needs two minutes today", WANTED):
        theirs = peer([response], [[WANTED]], **{**effective, **usual, **kwargs}).score / 100
        found = metric(**usual, kwargs=kwargs).score(response=response, reference=WANTED)
        assert found.value == pytest.approx(min(theirs, 1.0))


@pytest.mark.parametrize("metric", [m.BleuScore, m.CHRFScore, m.RougeScore])
def test_every_script_has_words(metric: Any) -> None:
    """The same text is exactly 1.0, however short; texts that share most words are between nothing and all."""
    assert [metric().score(response=text, reference=text).value for text in SCRIPTS] == [1.0] * 8
    for response, reference in OTHER:
        assert 0.2 < metric().score(response=response, reference=reference).value < 0.95


@pytest.mark.parametrize(
    ("kind", "response", "reference", "wanted", "longer"),
    [
        # Signs are no words: two texts of them have nothing to share, and one has nothing of the other.
        ("rougeL", "?!", "🦦", "a word", "Otters."),
        # Of two equal words there is no run of four to share, and equal texts are never 0.0.
        ("rouge4", "Otters float.", "Otters float.", "a run of 4 words", "Sea otters float asleep."),
    ],
)
def test_rouge_without_anything_to_compare(kind: Any, response: str, reference: str, wanted: str, longer: str) -> None:
    metric = m.RougeScore(rouge_type=kind)
    with pytest.raises(UnscoredError, match=f"rouge_score: neither response nor reference has {wanted} to compare"):
        metric.score(response=response, reference=reference)
    assert metric.score(response=response, reference=longer).value == 0.0


@pytest.mark.parametrize("metric", [m.BleuScore, m.CHRFScore, m.RougeScore])
def test_without_the_extra_the_error_names_it(metric: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library = "rouge_score" if metric is m.RougeScore else "sacrebleu"
    for module in ("sacrebleu.metrics", "rouge_score.rouge_scorer"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RagMetricsError, match=rf'{metric.name} needs {library}: pip install "pytest-ragmet.*\[text\]"'):
        metric().score(response="Oslo", reference="Oslo")
