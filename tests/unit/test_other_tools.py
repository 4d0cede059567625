"""Names of Ragas and DeepEval used as ours are answered with what to write instead."""

from __future__ import annotations

import copy
import pickle
import re
from types import SimpleNamespace
from typing import Any

import pytest

import pytest_ragmetrics
from pytest_ragmetrics import Sample, assert_sample, evaluate, metrics
from pytest_ragmetrics.core.other_tools import equivalent_of, names_of_metrics, written_instead
from pytest_ragmetrics.metrics import Metric, metric_named
from pytest_ragmetrics.metrics.registry import built_in_metrics, metric_for, missing_name
from pytest_ragmetrics.plugin.rows.dataset_tests import Scores
from pytest_ragmetrics.plugin.rows.dataset_tests import _arguments as marker_arguments
from pytest_ragmetrics.plugin.settings import OPTIONS

#: What Ragas 0.0.22, 0.1.21, 0.2.15, 0.3.9 and 0.4.3 export as metrics, and the names that these have in results.
RAGAS = """
AgentGoalAccuracy AgentGoalAccuracyWithReference AgentGoalAccuracyWithoutReference AnswerAccuracy AnswerCorrectness
AnswerRelevancy AnswerSimilarity AspectCritic AspectCritique BleuScore CHRFScore ChrfScore ContextEntityRecall
ContextPrecision ContextPrecisionWithReference ContextPrecisionWithoutReference ContextRecall ContextRelevance
ContextRelevancy ContextUtilization DataCompyScore DiscreteMetric DomainSpecificRubrics ExactMatch FactualCorrectness
Faithfulness FaithfulnesswithHHEM FaithulnesswithHHEM IDBasedContextPrecision IDBasedContextRecall InstanceRubrics
InstanceSpecificRubrics LLMContextPrecisionWithReference LLMContextPrecisionWithoutReference LLMContextRecall
LLMMetric LLMSQLEquivalence LabelledRubricsScore MetricWithEmbeddings MetricWithLLM MultiModalFaithfulness
MultiModalRelevance MultiTurnMetric NoiseSensitivity NonLLMContextPrecisionWithReference NonLLMContextRecall
NonLLMStringSimilarity NumericMetric QuotedSpansAlignment RankingMetric ReferenceFreeRubricsScore ResponseGroundedness
ResponseRelevancy RougeScore RubricsScore RubricsScoreWithReference RubricsScoreWithoutReference
SQLSemanticEquivalence SemanticSimilarity SimpleCriteriaScore SingleTurnMetric StringPresence SummarizationScore
SummaryScore ToolCallAccuracy ToolCallF1 TopicAdherence TopicAdherenceScore agent_goal_accuracy answer_correctness
answer_relevancy answer_similarity bleu_score chrf_score context_entity_recall context_precision context_recall
context_relevancy context_utilization data_compare_score discrete_metric exact_match factual_correctness faithful_rate
faithfulness faithfulness_with_hhem id_based_context_precision id_based_context_recall labelled_rubrics_score
llm_context_precision_with_reference llm_context_precision_without_reference llm_sql_equivalence_with_reference
multimodal_faithness multimodal_relevance noise_sensitivity noise_sensitivity_irrelevant noise_sensitivity_relevant
non_llm_context_precision_with_reference non_llm_context_recall non_llm_string_similarity numeric_metric
nv_accuracy nv_context_relevance nv_response_groundedness ranking_metric reference_free_rubrics_score relevance_rate
rouge_score semantic_similarity string_present summarization_score summary_score tool_call_accuracy tool_call_f1
topic_adherence harmfulness maliciousness coherence conciseness
"""
#: The same of DeepEval 0.21.78, 1.6.2, 2.9.7, 3.9.9 and 4.3.1.
DEEPEVAL = """
AgentLoopDetectionMetric AgentResponsivenessMetric AnswerRelevancyMetric ArenaGEval ArgumentCorrectnessMetric
AudioGlitchMetric AudioIntegrityMetric BaseArenaMetric BaseConversationalMetric BaseMetric BaseMultimodalMetric
BiasMetric CitationFaithfulnessMetric ContextualPrecisionMetric ContextualRecallMetric ContextualRelevancyMetric
ConversationCompleteness ConversationCompletenessMetric ConversationRelevancy ConversationRelevancyMetric
ConversationalDAGMetric ConversationalGEval ConversationalJevEval DAGMetric DeepAcyclicGraph ExactMatchMetric
FaithfulnessMetric GEval GoalAccuracyMetric HallucinationMetric ImageCoherenceMetric ImageEditingMetric
ImageHelpfulnessMetric ImageReferenceMetric JevEval JsonCorrectnessMetric KnowledgeRetentionMetric
MCPTaskCompletionMetric MCPUseMetric MisuseMetric MultiTurnMCPUseMetric MultimodalAnswerRelevancyMetric
MultimodalContextualPrecisionMetric MultimodalContextualRecallMetric MultimodalContextualRelevancyMetric
MultimodalFaithfulnessMetric MultimodalToolCorrectnessMetric NonAdviceMetric PIILeakageMetric PatternMatchMetric
PlanAdherenceMetric PlanQualityMetric PromptAlignmentMetric RAGASAnswerRelevancyMetric RAGASContextualEntitiesRecall
RAGASContextualPrecisionMetric RAGASContextualRecallMetric RAGASFaithfulnessMetric RagasMetric RoleAdherenceMetric
RoleViolationMetric SpeechIntelligibilityMetric StepEfficiencyMetric SummarizationMetric TaskCompletionMetric
TextToImageMetric ToolCorrectnessMetric ToolPermissionMetric ToolUseMetric TopicAdherenceMetric ToxicityMetric
TranscriptionAccuracyMetric TurnContextualPrecisionMetric TurnContextualRecallMetric TurnContextualRelevancyMetric
TurnFaithfulnessMetric TurnRelevancyMetric TurnTakingNaturalnessMetric VoiceConsistencyMetric VoiceNaturalnessMetric
VoiceReliabilityMetric
"""
ROW = {"question": "What flies at night?", "answer": "Moths fly at night.", "contexts": ["Moths fly at night."]}


def theirs(module: str, name: str, **attributes: Any) -> Any:
    return type(name, (), {"__module__": module, **attributes})()


def test_every_name_of_theirs_has_an_answer() -> None:
    for name in (*RAGAS.split(), *DEEPEVAL.split()):
        try:
            found = metric_named(name)
        except ValueError as error:
            assert str(error) == equivalent_of(name)  # noqa: PT017 - both ways are right
        else:
            assert found in built_in_metrics(), name
            assert name not in names_of_metrics()


def test_every_answer_can_be_written() -> None:
    for name, found in names_of_metrics().items():
        assert name in {"Ragas": RAGAS, "DeepEval": DEEPEVAL}[found.tool].split()
        assert found.same <= bool(found.write)
        assert found.write or found.differs
        if found.write:
            written = eval(found.write, {it: getattr(metrics, it) for it in dir(metrics)})
            assert isinstance(metric_for(written), Metric)


def test_what_answers_mention_exists() -> None:
    flags = {option.flag for option in OPTIONS}
    texts = [*written_instead("names").values(), *written_instead("marker").values()]
    for text in [*texts, *(found.differs for found in names_of_metrics().values())]:
        assert {*re.findall(r"--rag-[a-z-]+", text)} <= flags
        for helper in re.findall(r"\b(?:assert_(?!frame)\w+|sample_from|a?evaluate)\b", text):
            assert hasattr(pytest_ragmetrics, helper), helper


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("AnswerRelevancyMetric", r"^'AnswerRelevancyMetric' is of DeepEval: write \"answer_relevancy\"; it compares"),
        ("Contextual Relevancy", r"^'Contextual Relevancy' is of DeepEval: write \"context_relevancy\""),
        ("hallucination_metric", "lower is better, as before DeepEval 4"),
        ("DiscreteMetric", r'write AspectCritique\(name="politeness"'),
        ("Numeric Metric", r"is of Ragas: write SimpleCriteria\("),
        ("discrete_metric", "write a function with @metric"),
        ("G-Eval", r"write SimpleCriteria\(name=.*, highest=10\)"),
        ("BiasMetric", r"^'BiasMetric' is of DeepEval and has no equivalent here: the nearest is AspectCritique\("),
        ("Json Correctness", r"is of DeepEval: write ValidJSON\(schema=.*; a JSON schema"),
        (
            "TurnFaithfulnessMetric",
            r"is of DeepEval: write \"faithfulness\"; with turns=\"each\" every",
        ),
        ("turn contextual recall", r'is of DeepEval: write "context_recall"; with turns="each"'),
        ("ConversationalGEval", r"write SimpleCriteria\(name=.* every turn of a conversation"),
        ("noise_sensitivity_relevant", r"write NoiseSensitivity\(mode=\"relevant\"\) \(ragmetrics docs from-ragas\)$"),
        ("faithfullness", "^there is no metric 'faithfullness': did you mean"),
        ("Answer Relevancy", r"^there is no metric 'Answer Relevancy': did you mean answer_relevancy\?$"),
        ("BLEU_SCORE", r": did you mean bleu_score\?$"),
        ("llm-context-recall", r": did you mean context_recall\?$"),
    ],
)
def test_a_metric_by_their_name(name: str, message: str) -> None:
    for call in (
        lambda: evaluate([ROW], [name]),
        lambda: assert_sample(ROW, **{name: 0.5}),  # type: ignore[arg-type]
        lambda: metric_for(name),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(KeyError, match=message.lstrip("^")):
        Scores({})[name]


BASE = theirs("deepeval.metrics.base_metric", "BaseMetric")


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (theirs("deepeval.metrics.faithfulness.faithfulness", "FaithfulnessMetric", threshold=0.7),
         r'is of DeepEval: write "faithfulness"; its threshold is a bound here: metrics=\{"faithfulness": 0.7\}$'),
        (theirs("ragas.metrics._faithfulness", "Faithfulness"), 'this Faithfulness is of Ragas: write "faithfulness"$'),
        (type(theirs("ragas.metrics._context_recall", "LLMContextRecall")), 'is of Ragas: write "context_recall"$'),
        (theirs("deepeval.metrics.bias.bias", "BiasMetric", threshold=0.5), "^'BiasMetric' is of DeepEval and has no"),
        (type("Mine", (type(BASE),), {})(), "^'BaseMetric' is of DeepEval and has no equivalent here: write a func"),
        (SimpleNamespace(name="x"), "is no metric: give one, or its name"),
        (metrics.Faithfulness, r"is the class of a metric: write Faithfulness\(\)"),
    ],
)  # fmt: skip
def test_an_object_of_theirs_as_a_metric(metric: Any, message: str) -> None:
    nobodys = isinstance(metric, SimpleNamespace)
    for given in ([metric],) if nobodys else ([metric], metric):
        with pytest.raises((TypeError, ValueError), match=message):
            evaluate([ROW], given)
        with pytest.raises((TypeError, ValueError), match="are no metrics; write" if nobodys else message):
            marker_arguments(ROW, metrics=given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threshold": 0.7}, r"no threshold=: write assert_sample\(sample, faithfulness"),
        ({"min": 0.7}, r"takes no min=: write assert_sample\(sample, faithfulness=0.8"),
        ({"faithfulness": 0.7, "llm": 1}, r"^assert_sample\(\) takes no llm=: write judge=$"),
        ({"faithfulness": 0.7, "embeddings": 1}, "takes no embeddings=: write embedder=$"),
        # Of the marker rag_dataset.
        ({"dataset": [ROW]}, r"^it knows no dataset \(the rows come first, without a name\); write @pytest.mark"),
        ({"source": [ROW], "threshold": 1}, r'no threshold \(a bound stands in metrics=\{"faithfulness": 0.8\}\);'),
        ({"source": [ROW], "model": "gpt", "llm": 1}, r"no llm, model \(@pytest.mark.rag_judge\(\"openai:MODEL\"\) na"),
        ({"source": [ROW], "metric": []}, "^it knows no metric; write"),
    ],
)
def test_a_keyword_of_theirs(given: dict[str, Any], message: str) -> None:
    of_the_marker = not {"source", "dataset"}.isdisjoint(given)
    with pytest.raises(ValueError if of_the_marker else TypeError, match=message):
        marker_arguments(**given) if of_the_marker else assert_sample(ROW, **given)


@pytest.mark.parametrize("package", [pytest_ragmetrics, metrics])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("LLMTestCase", r": write Sample\(user_input=..., response=..., "),
        ("SingleTurnSample", ": write Sample"),
        ("ConversationalTestCase", r": write the messages, or a row with them: assert_conversation\(messages, "),
        ("MultiTurnSample", ": write the messages, or a row with them"),
        ("multi_turn_score", r": write metric.score_sample\(sample\), or await"),
        ("EvaluationDataset", ": write @pytest.mark.rag_dataset"),
        ("assert_test", r": write assert_sample\(sample_from\(test_case\), faithfulness=0.8\)"),
        ("LangchainLLMWrapper", ': write judge="openai:MODEL"'),
        ("GEval", ": 'GEval' is of DeepEval: write SimpleCriteria"),
        ("faithfulness", ": write from pytest_ragmetrics.metrics import Faithfulness$"),
        ("FaithfulnessMetric", ": write from pytest_ragmetrics.metrics import Faithfulness$"),
        ("LLMContextRecall", ": write from pytest_ragmetrics.metrics import ContextRecall$"),
    ],
)
def test_an_import_of_theirs(package: Any, name: str, message: str) -> None:
    """An ``ImportError``: ``from package import name`` drops the text of an ``AttributeError``."""
    for ask in (lambda: exec(f"from {package.__name__} import {name}"), lambda: getattr(package, name)):
        with pytest.raises(ImportError, match=f"^cannot import name '{name}' from '{package.__name__}'{message}"):
            ask()


@pytest.mark.parametrize("package", [pytest_ragmetrics, metrics])
def test_no_error_advises_what_was_just_written(package: Any) -> None:
    kinds = [kind.__name__ for kind in built_in_metrics()]
    for name in (*kinds, *RAGAS.split(), *DEEPEVAL.split(), *written_instead("names")):
        error = missing_name(package.__name__, name)
        assert not re.search(rf"from {re.escape(package.__name__)} import {name}$", str(error))


def test_other_names_that_are_missing() -> None:
    for name in ("assert_faithful", "evaluate", "Sample", "metric"):
        with pytest.raises(ImportError, match=f": write from pytest_ragmetrics import {name}$"):
            exec(f"from pytest_ragmetrics.metrics import {name}")
    for name in ("wonderful", "__wrapped__", "load_tests", "pytest_plugins", "setup_module"):
        with pytest.raises(AttributeError, match=f"^module 'pytest_ragmetrics' has no attribute '{name}'"):
            getattr(pytest_ragmetrics, name)


def test_a_table_is_no_mapping() -> None:
    table: Any = evaluate([ROW], ["lexical_grounding"])
    with pytest.raises(
        TypeError, match=r"^a table has no keys: write table.mean\('lexical_grounding'\), or table.scores\("
    ):
        table["lexical_grounding"]
    for loop in (lambda: table[0], lambda: list(table)):
        with pytest.raises(TypeError, match=r"^a table has no places: write table\.rows for the rows"):
            loop()
    assert copy.copy(table) == pickle.loads(pickle.dumps(table)) == table


def test_a_test_case_of_theirs_where_a_sample_is_meant() -> None:
    case = theirs("deepeval.test_case.llm_test_case", "LLMTestCase", model_dump=lambda _: {**ROW})
    for call in (lambda: assert_sample(case, lexical_grounding=0.5), lambda: Sample.from_mapping(case)):
        with pytest.raises(TypeError, match=r"not LLMTestCase; write sample_from\(it\)$"):
            call()
    with pytest.raises(TypeError, match=r"not LLMTestCase: write score_sample\(sample_from\(it\)\)$"):
        metrics.LexicalGrounding().score_sample(case)
    assert evaluate([case], ["lexical_grounding"]).mean("lexical_grounding") == 1.0
