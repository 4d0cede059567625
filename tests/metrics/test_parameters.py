"""What the parameters of all metrics take, and what is said of anything else and of samples in the wrong place."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from fractions import Fraction
from inspect import signature
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics import Sample, assert_faithful, metric, metrics
from pytest_ragmetrics import metrics as m
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.metrics.base import Metric, code_of, f_beta, f_of_counts, rule_of
from pytest_ragmetrics.metrics.critiques import ASPECTS
from pytest_ragmetrics.metrics.parameters import check_count, check_number
from tests.metrics.catalogue import KINDS, NEEDED

#: What is no number from 0 to 1; the last ones are none from 0 on either.
NO_SHARES: list[Any] = [1.1, 10**400, -0.1, True, "0.5", float("nan"), float("inf"), [1]]
NO_COUNTS: list[Any] = [0, -1, 2.5, 2.0, True, "2"]
NO_FLAGS: list[Any] = [0, 1, None, "no"]
SHARE, POSITIVE = "must be a number from 0 to 1, not", "must be a number from 0 on, not"
COUNT, FLAG = "must be a whole number from 1 on, not", "must be True or False, not"
#: What each parameter takes, by its name or by those of its metric and its own; and what it does not take.
TAKES: dict[str, tuple[str, list[Any]]] = {
    **dict.fromkeys(("if_empty", "coeff", "threshold"), (SHARE, NO_SHARES)),
    **dict.fromkeys(("strictness", "min_span_words", "highest", "k", "char_order", "max_calls"), (COUNT, NO_COUNTS)),
    "beta": (POSITIVE, NO_SHARES[2:]),
    "chrf_score beta": (COUNT, NO_COUNTS),
    "word_order": (COUNT, [-1, 1.5, True]),
}
#: All others, whose values have a meaning of their own.
STEPS: list[Any] = [[], ["One."], "One.", None, {}, ["A"] * 101]
KIND = {"definition": "Kind?"}
NO_SPECS: tuple[Any, ...] = (5, [])
ASKING = ((m.Relevance, "judge"), (m.AnswerRelevancy, "embedder"))
POLITE = m.AspectCritique(definition="Is it polite?")
OWN: list[tuple[type[Metric], dict[str, Any], type[Exception], str]] = [
    *(
        (m.AnswerCorrectness, {"weights": weights}, ValueError, "weights must")
        for weights in ((1,), (1, 1, 1), (-1, 1), (0, 0), 0.75, "11", None, (True, 1), (float("nan"), 1))
    ),
    (m.AspectCritique, {}, ValueError, "aspect_critique: definition is blank"),
    (m.AspectCritique, {"definition": " "}, ValueError, "aspect_critique: definition is blank"),
    (m.AspectCritique, {"name": "harmlesness"}, ValueError, r"did you mean harmlessness\?"),
    (m.AspectCritique, {"name": "correctness"}, ValueError, r"did you mean correctness_aspect\?"),
    (m.AspectCritique, {"name": "rude"}, ValueError, "'rude' is not one of the predefined aspects .*: give its def"),
    (m.AspectCritique, {**KIND, "strictness": 2}, ValueError, "strictness must be odd, .* majority, not 2"),
    (m.AspectCritique, {**KIND, "good": 2}, ValueError, "good must be 1 or 0"),
    *((m.Rubric, {"steps": steps}, ValueError, "rubric: .*at least two") for steps in STEPS),
    (m.Rubric, {"steps": ["One.", " "]}, ValueError, "step 2 has no description"),
    (m.Rubric, {"steps": [1, 2]}, ValueError, "step 1 has no description"),
    (m.Rubric, {"steps": {1: "One.", 3: "Three."}}, ValueError, "numbered from 1 on without a gap, not 1, 3"),
    (m.Rubric, {"steps": {"bad": "A", "good": "B"}}, ValueError, "rubric: steps must be numbered from 1 on"),
    (m.SimpleCriteria, {"definition": " "}, ValueError, "definition is blank"),
    (m.SimpleCriteria, {**KIND, "highest": 101}, ValueError, "highest must be at most 100"),
    (m.SimpleCriteria, {"evaluation_steps": "Look."}, TypeError, "^evaluation_steps must be a list of texts, not str$"),
    (m.SimpleCriteria, {"evaluation_steps": 5}, TypeError, "^evaluation_steps must be a list of texts, not int$"),
    (m.SimpleCriteria, {"evaluation_steps": None}, TypeError, "not NoneType$"),
    (m.SimpleCriteria, {"evaluation_steps": {"1": "Look."}}, TypeError, "not dict$"),
    (m.SimpleCriteria, {"evaluation_steps": ["Look.", " "]}, ValueError, "^evaluation_steps: step 2 has no text$"),
    (m.SimpleCriteria, {"evaluation_steps": [5]}, ValueError, "^evaluation_steps: step 1 has no text$"),
    (m.SimpleCriteria, {"evaluation_steps": []}, ValueError, "definition is blank"),
    *((m.Contains, {name: [5]}, TypeError, rf"^{name}\[0\] must be a text") for name in ("all", "any", "none")),
    (m.Contains, {"all": ["a", []]}, TypeError, r"^all\[1\] must be .* of which one is enough, not an empty list$"),
    (m.Contains, {"any": [["a"]]}, TypeError, r"^any\[0\] must be a text, not list$"),
    (m.Contains, {"none": {"a": 1}}, TypeError, "^none must be a text or a list of texts, not dict$"),
    (m.Contains, {"none": ["a", "\u200b"]}, ValueError, r"^none\[1\] is blank"),
    *((m.ValidJSON, {"schema": it}, TypeError, "^schema must be a JSON schema") for it in (5, "{", [], object())),
    (m.CriteriaMet, {"criteria": 5}, TypeError, "^criteria must be a text or a list of texts, not int$"),
    (m.CriteriaMet, {"criteria": ["a", None]}, TypeError, r"^criteria\[1\] must be a text, not NoneType$"),
    (m.CriteriaMet, {"criteria": ["a", " "]}, ValueError, r"^criteria\[1\] is blank"),
    (m.QuotedSpansAlignment, {"allowed": [None]}, TypeError, r"allowed\[0\] is None: give a str"),
    (m.BleuScore, {"kwargs": {"tokenise": "13a"}}, ValueError, "sacrebleu takes no tokenise; it takes smooth_method"),
    (m.BleuScore, {"kwargs": {"smooth_method": "best"}}, ValueError, "smooth_method must be 'none' or 'floor'"),
    (m.BleuScore, {"kwargs": {"lowercase": 1}}, ValueError, "lowercase must be True or False"),
    (m.CHRFScore, {"kwargs": {"beta": 0}}, ValueError, "beta must be a whole number from 1 on"),
    (m.CHRFScore, {"kwargs": {"lowercase": True}}, ValueError, "sacrebleu takes no lowercase; it takes char_order"),
    *(
        (m.ToolCallAccuracy, {"arg_comparison": metric}, ValueError, "must score response and reference, .* does not")
        for metric in (m.Faithfulness(), "hallucination", m.AnswerRelevancy())
    ),
    *((m.ExactMatch, {"name": name}, ValueError, "name must be a text that is not blank") for name in ("", " ", 3)),
    *((m.RoleAdherence, {"role": role}, ValueError, "^role is blank; say who") for role in ("", " \u200b")),
    (m.RoleAdherence, {"role": ["A clerk."]}, TypeError, "^role must be a text, not list$"),
    *((kind, {of: "gpt-5"}, ValueError, "'gpt-5' is not one of") for kind, of in ASKING),
    *((kind, {of: "openai:"}, ValueError, "'openai:' is not one of auto, local, openai:MODEL") for kind, of in ASKING),
    *((kind, {of: wrong}, TypeError, "such as 'o.* not (int|list)") for kind, of in ASKING for wrong in NO_SPECS),
    # Aspects do not count, one's own neither; a harmonic mean takes lower scores for bad.
    (m.RagasScore, {"metrics": [m.NumbersAligned()]}, ValueError, "ragas_score needs two metrics or more"),
    (m.RagasScore, {"metrics": [m.NumbersAligned(), POLITE, m.Harmfulness()]}, ValueError, "needs two metrics or more"),
    (m.RagasScore, {"metrics": [m.Faithfulness(), m.Hallucination()]}, ValueError, "of hallucination are better"),
]
#: The predefined aspects have the parameters of their base.
PARAMETERS = [
    (kind, name)
    for kind in KINDS
    if kind not in ASPECTS
    for name in signature(kind).parameters
    if name not in {"name", "judge", "embedder"}
]
ROW: Any = {"answer": "So it is.", "contexts": ["So it is."]}
SAMPLE: Any = Sample.from_mapping(ROW)
ALIGNED: Any = metrics.QuotedSpansAlignment()
FIELDS = r"takes fields by name, score\(response=\.\.\., retrieved_contexts=\.\.\.\); write score_sample\(sample\)"


@pytest.mark.parametrize(("kind", "name"), PARAMETERS, ids=lambda it: getattr(it, "name", it))
def test_a_wrong_value_is_refused_with_its_name(kind: Any, name: str) -> None:
    """Of every number, flag and choice; a score off the scale would only come up in the statistics, or never."""
    hint = get_type_hints(kind.__init__)[name]
    words, wrong = TAKES.get(f"{kind.name} {name}") or TAKES.get(name) or ("", [])
    if hint is bool:
        words, wrong = FLAG, NO_FLAGS
    elif get_origin(hint) is Literal:
        words, wrong = f"must be {' or '.join(map(repr, get_args(hint)))}, not", ["cosine", 2]
    needed = {key: value for key, value in NEEDED.get(kind.__name__, {}).items() if key != name}
    for value in wrong:
        with pytest.raises(ValueError, match=f"^{name} {words} "):
            kind(**needed, **{name: value})
    assert wrong or any(kind is it and name in given for it, given, _, _ in OWN), "a new one has to say what it takes"


@pytest.mark.parametrize(("kind", "parameters", "error", "said"), OWN)
def test_a_wrong_value_of_a_meaning_of_its_own(kind: Any, parameters: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        kind(**parameters)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_parameter_that_is_not_taken_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'threshhold'"):
        kind(threshhold=0.8)
    with pytest.raises(TypeError, match="positional"):
        kind(True)  # noqa: FBT003 - the error is the point


def test_numbers_of_numpy_are_numbers() -> None:
    """They become those of Python, so that nothing else reaches records and keys."""
    found = check_count("k", np.int64(5)), check_number("beta", np.float32(0.5)), check_number("coeff", Fraction(1, 4))
    assert found == (5, 0.5, 0.25)
    assert [type(value) for value in found] == [int, float, float]


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.just(0.0) | st.floats(0.01, 20))
def test_f_scores(found: int, surplus: int, missing: int, beta: float) -> None:
    precision = found / (found + surplus) if found + surplus else 0.0
    recall = found / (found + missing) if found + missing else 0.0
    below = beta * beta * precision + recall
    expected = (1 + beta * beta) * precision * recall / below if below else 0.0
    assert f_beta(precision, recall, beta) == pytest.approx(expected, abs=1e-9)
    assert f_of_counts(found, surplus, missing, beta=beta) == pytest.approx(f_beta(precision, recall, beta))
    assert f_of_counts(found, surplus, missing) == pytest.approx(f_beta(precision, recall))


@pytest.mark.parametrize(("score", "bound", "is_refused"), [(0.5, 50, True), (0.5, 0.5, False), (3.0, 2.5, False)])
def test_a_result_knows_the_scale_of_its_metric(score: float, bound: float, is_refused: bool) -> None:
    """A plain comparison with a number outside of it is refused, unless the metric has left it by itself."""
    result = metric(name="mine")(lambda response: len(response) * score).score(response=".")
    with pytest.raises(ValueError, match=r"of mine, 0 to 1: write 0\.5,") if is_refused else nullcontext():
        assert result >= bound


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ALIGNED.score(SAMPLE), FIELDS),
        (lambda: ALIGNED.score(ROW), FIELDS),
        (lambda: ALIGNED.score("So.", ["So."]), FIELDS),
        (lambda: ALIGNED.score(sample=SAMPLE), FIELDS),
        (lambda: ALIGNED.score(row=ROW), FIELDS),
        (lambda: asyncio.run(ALIGNED.ascore(SAMPLE)), FIELDS),
        (lambda: ALIGNED.score_sample(ROW), r"a Sample, not dict: .* score_sample\(Sample\.from_mapping\(row\)\)"),
        (lambda: asyncio.run(ALIGNED.ascore_sample("So.")), "a Sample, not str: write"),
        (lambda: assert_faithful(ROW, ["So."]), r"response must be a str, .*; assert_sample\(row, \.\.\.\) takes"),
    ],
)
def test_a_sample_in_the_wrong_place_is_told_where_it_goes(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def _brevity(limit: int) -> type[Metric]:
    if limit:

        class Brevity(Metric):
            limit = 80

            def measure(self, sample: Sample) -> MetricResult:
                return MetricResult(float(len(sample.response or "") <= self.limit), metric="brevity")

        return Brevity

    class Brevity(Metric):  # type: ignore[no-redef] # of the same name
        def measure(self, sample: Sample) -> MetricResult:
            return MetricResult(1.0, metric="brevity")

    return Brevity


def test_the_code_of_a_class_is_known_without_parsing_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two threads parse at once Python 3.11.7 raises SystemError in either, and a score would be lost."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr(ast, "parse", refuse)
    limited, unlimited = code_of(_brevity(1)), code_of(_brevity(0))
    assert "" not in (limited, unlimited)
    assert limited == code_of(_brevity(2)) != unlimited


@pytest.mark.parametrize("usual", [np.ones(2), 0.5])
def test_no_class_and_no_parameter_keeps_a_score_from_being_recorded(usual: Any) -> None:
    class Weighted(Metric):
        name = "weighted"

        def __init__(self, weights: Any = usual) -> None:
            super().__init__()
            self.weights = weights

        def measure(self, sample: Sample) -> MetricResult:
            return MetricResult(1.0, metric="weighted")

    assert rule_of(Weighted(weights=(0.5, 0.5))) != rule_of(Weighted())
    for module in (__name__, "nowhere"):
        made: Any = type("weighted (", (Weighted,), {"__module__": module, "__signature__": "none"})
        assert rule_of(made(weights=(0.5, 0.5))) == "/"
        assert made().score(response="Moths.").value == 1.0
