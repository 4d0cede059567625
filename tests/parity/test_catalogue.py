"""Every metric of Ragas 0.4 and of eval-ruby has an answer here, and a row says where it differs on purpose."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_ragmetrics import metrics
from pytest_ragmetrics.metrics import Metric, metric_named
from pytest_ragmetrics.metrics.registry import built_in_metrics


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A metric of another tool: what answers it here, and how it differs; ``ours`` is ``None`` where nothing does."""

    theirs: str
    ours: str | None
    differs: str = ""
    #: Whether their name is one of ours; it is not where that means something else.
    named: bool = True


RAGAS = (
    Row(
        theirs="AgentGoalAccuracy",
        ours="AgentGoalAccuracy",
        differs="one request, for the goal and whether it was reached",
    ),
    Row(
        theirs="AnswerAccuracy", ours="AnswerAccuracy", differs="one rating of two missing: unscored, not the other one"
    ),
    Row(
        theirs="AnswerCorrectness",
        ours="AnswerCorrectness",
        differs="every statement is classified once; an empty answer is 0.0, not 1.0; no similarity is below 0",
    ),
    Row(
        theirs="AnswerRelevancy",
        ours="AnswerRelevancy",
        differs="one request for different questions, not the same prompt three times",
    ),
    Row(
        theirs="AspectCritic",
        ours="AspectCritique",
        differs="strictness asks that often; even values are an error; the direction belongs to the aspect",
    ),
    Row(theirs="BleuScore", ours="BleuScore", differs="the whole text is one segment; no split at '. '"),
    Row(theirs="CHRFScore", ours="CHRFScore"),
    Row(
        theirs="ContextEntityRecall",
        ours="ContextEntityRecall",
        differs="no entities: unscored, not NaN or 0.0; case does not tell them apart",
    ),
    Row(theirs="ContextPrecision", ours="ContextPrecision", differs="a perfect score is 1.0, not 0.99999999997"),
    Row(theirs="ContextPrecisionWithReference", ours="ContextPrecision"),
    Row(theirs="ContextPrecisionWithoutReference", ours="ContextUtilization"),
    Row(theirs="ContextRecall", ours="ContextRecall", differs="sentences are counted here, not by the judge"),
    Row(
        theirs="ContextRelevance", ours="ContextRelevance", differs="a context that is part of the question is not 0.0"
    ),
    Row(theirs="ContextUtilization", ours="ContextUtilization"),
    Row(theirs="DataCompyScore", ours=None, differs="compares tables, not texts"),
    Row(theirs="DomainSpecificRubrics", ours="Rubric", named=False, differs="normalised to [0, 1]"),
    Row(theirs="ExactMatch", ours="ExactMatch", differs="blank texts are an error"),
    Row(
        theirs="FactualCorrectness",
        ours="FactualCorrectness",
        differs="F-beta of precision and of recall, not true positives of one with false negatives of the other",
    ),
    Row(theirs="Faithfulness", ours="Faithfulness", differs="claims are counted here; no claim: unscored, not NaN"),
    Row(
        theirs="IDBasedContextPrecision",
        ours="IDBasedContextPrecision",
        differs="7 is not '7'; nothing retrieved: 0.0, not NaN",
    ),
    Row(theirs="IDBasedContextRecall", ours="IDBasedContextRecall", differs="7 is not '7'; no reference: an error"),
    Row(theirs="InstanceSpecificRubrics", ours="Rubric", named=False, differs="normalised to [0, 1]"),
    Row(theirs="MultiModalFaithfulness", ours=None, differs="texts only"),
    Row(theirs="MultiModalRelevance", ours=None, differs="texts only"),
    Row(
        theirs="NoiseSensitivity",
        ours="NoiseSensitivity",
        differs="two rounds of requests, not 2n + 3 in a row; unequal counts are repaired",
    ),
    Row(
        theirs="NonLLMContextPrecisionWithReference",
        ours="NonLLMContextPrecision",
        differs="a perfect score is 1.0, not 0.9999999999; nothing retrieved: 0.0",
    ),
    Row(theirs="NonLLMContextRecall", ours="NonLLMContextRecall", differs="at the threshold is alike, as in precision"),
    Row(theirs="NonLLMStringSimilarity", ours="NonLLMStringSimilarity", differs="blank texts are an error"),
    Row(theirs="QuotedSpansAlignment", ours="QuotedSpansAlignment", differs="see the README"),
    Row(
        theirs="ResponseGroundedness", ours="ResponseGroundedness", differs="no special cases; blank texts are an error"
    ),
    Row(
        theirs="RougeScore",
        ours="RougeScore",
        differs="words of all scripts; stemmed only when asked (use_stemmer=True)",
    ),
    Row(theirs="SQLSemanticEquivalence", ours=None, differs="compares queries, not answers"),
    Row(theirs="SemanticSimilarity", ours="SemanticSimilarity"),
    Row(theirs="SimpleCriteriaScore", ours="SimpleCriteria", named=False, differs="divided by the highest number"),
    Row(theirs="StringPresence", ours="StringPresence", differs="an empty reference is an error, not 1.0"),
    Row(
        theirs="SummaryScore", ours="SummaryScore", differs="length_penalty=False is not halved; no question: unscored"
    ),
    Row(
        theirs="ToolCallAccuracy",
        ours="ToolCallAccuracy",
        differs="arguments are equal as JSON, not as text: 1 is 1.0 and not '1'; equal calls are paired first",
    ),
    Row(
        theirs="ToolCallF1",
        ours="ToolCallF1",
        differs="a call counts as often as it was made; both empty 1.0; not rounded",
    ),
    Row(theirs="TopicAdherence", ours="TopicAdherence", differs="nothing to take a share of: unscored, not 0.0"),
)
EVAL_RUBY = (
    Row(theirs="Faithfulness", ours="Faithfulness", differs="counted from the verdicts, not the judge's own score"),
    Row(theirs="Relevance", ours="Relevance", differs="five steps, not a free number"),
    Row(
        theirs="Correctness",
        ours="Correctness",
        differs="never words instead of a judge unasked; repeated words count as often as they stand there",
    ),
    Row(theirs="ContextPrecision", ours="ContextPrecisionProportion", named=False, differs="counted from the verdicts"),
    Row(theirs="ContextRecall", ours="ContextRecall", differs="counted from the verdicts"),
    Row(theirs="SemanticSimilarity", ours="SemanticSimilarity"),
    Row(theirs="PrecisionAtK", ours="PrecisionAtK", differs="of an id that comes twice the first rank counts"),
    Row(theirs="RecallAtK", ours="RecallAtK", differs="duplicates push nothing above 1; no reference: an error"),
    Row(theirs="MRR", ours="MRR"),
    Row(
        theirs="NDCG",
        ours="NDCG",
        differs="duplicates push nothing above 1; without k the ideal is not cut at what came",
    ),
)
#: What their packages export, so that a row cannot be forgotten.
RAGAS_EXPORTS = """
AgentGoalAccuracy AnswerAccuracy AnswerCorrectness AnswerRelevancy AspectCritic BleuScore CHRFScore ContextEntityRecall
ContextPrecision ContextPrecisionWithReference ContextPrecisionWithoutReference ContextRecall ContextRelevance
ContextUtilization DataCompyScore DomainSpecificRubrics ExactMatch FactualCorrectness Faithfulness
IDBasedContextPrecision IDBasedContextRecall InstanceSpecificRubrics MultiModalFaithfulness MultiModalRelevance
NoiseSensitivity NonLLMContextPrecisionWithReference NonLLMContextRecall NonLLMStringSimilarity QuotedSpansAlignment
ResponseGroundedness RougeScore SQLSemanticEquivalence SemanticSimilarity SimpleCriteriaScore StringPresence
SummaryScore ToolCallAccuracy ToolCallF1 TopicAdherence
""".split()  # noqa: SIM905 - a list of so many strings is not for reading
EVAL_RUBY_EXPORTS = """
Faithfulness Relevance Correctness ContextPrecision ContextRecall SemanticSimilarity PrecisionAtK RecallAtK MRR NDCG
""".split()  # noqa: SIM905


@pytest.mark.parametrize(("rows", "exports"), [(RAGAS, RAGAS_EXPORTS), (EVAL_RUBY, EVAL_RUBY_EXPORTS)])
def test_every_metric_of_theirs_has_a_row(rows: tuple[Row, ...], exports: list[str]) -> None:
    """Once, in order, and what has no answer says why."""
    assert sorted(row.theirs for row in rows) == sorted(exports)
    assert all(row.ours or row.differs for row in rows)


@pytest.mark.parametrize("row", [row for row in (*RAGAS, *EVAL_RUBY) if row.ours], ids=lambda row: row.theirs)
def test_what_answers_it_is_in_the_catalogue(row: Row) -> None:
    """A class that can be imported and is known by name, and by theirs where it means the same."""
    kind: type[Metric] = getattr(metrics, row.ours or "")
    assert kind in built_in_metrics()
    if row.named:
        assert metric_named(row.theirs) is kind
