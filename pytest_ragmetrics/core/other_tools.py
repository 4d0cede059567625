"""What Ragas and DeepEval call things: what to write here instead of each of their names.

``docs/how-to/from-ragas.md`` and ``from-deepeval.md`` say how the metrics differ. Their names for a metric that means
the same are aliases of it (see :mod:`~pytest_ragmetrics.metrics.registry`) and not listed here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, NoReturn


class Equivalent(NamedTuple):
    """What stands here for a name of another tool.

    ``write`` is an expression for ``metrics=[...]``, empty where nothing comes near; ``differs`` says how its meaning
    differs, or what to do where nothing comes near. ``same`` tells an equivalent from what merely comes nearest.
    """

    tool: str
    write: str
    differs: str
    same: bool = False


def _deepeval(write: str, differs: str, *, same: bool = False) -> Equivalent:
    return Equivalent("DeepEval", write, differs, same)


def _ragas(write: str, differs: str, *, same: bool = False) -> Equivalent:
    return Equivalent("Ragas", write, differs, same)


def _aspect(name: str, question: str, good: int, differs: str) -> Equivalent:
    return _deepeval(f'AspectCritique(name="{name}", definition="{question}", good={good})', differs)


_SHARE = "one yes or no for the whole answer, where theirs is a share of its statements"
_TURNS = "one yes or no for the whole conversation, where theirs is a share of turns"
_LAST = "the last answer alone is scored, with the turns before it as its question"
_OWN = "write a function with @metric above it; with a parameter ask it can ask the judge"
_PICTURES = "only texts are scored, no pictures"
_SPEECH = "only texts are scored, no speech; score a transcript"
_STEPS = 'Rubric(name="depth", steps=["Wrong.", "Partly right.", "Right."])'
_CRITERIA = 'SimpleCriteria(name="politeness", definition="How polite is the response?", highest=10)'

_OF_DEEPEVAL: Mapping[str, Equivalent] = {
    "AnswerRelevancyMetric": _deepeval(
        '"answer_relevancy"',
        "it compares the question with questions made from the answer, where theirs is the share of relevant "
        'statements; "relevance" needs no embedder',
        same=True,
    ),
    "ContextualRelevancyMetric": _deepeval(
        '"context_relevancy"', "it is the share of the contexts' sentences that the question needs", same=True
    ),
    "HallucinationMetric": _deepeval(
        '"hallucination"',
        "it reads retrieved_contexts, and lower is better, as before DeepEval 4 (a least score of 0.8 there is a "
        "greatest of 0.2 here)",
        same=True,
    ),
    "SummarizationMetric": _deepeval(
        "SummaryScore(length_penalty=False)",
        'it is their coverage, of the text in reference_contexts; "faithfulness" against that text is their alignment',
    ),
    "ToolCorrectnessMetric": _deepeval(
        '"tool_call_f1"', "it compares arguments too, and a call too many lowers it", same=True
    ),
    "ArgumentCorrectnessMetric": _deepeval('"tool_call_accuracy"', "it compares the arguments with expected_tools"),
    "ToolUseMetric": _deepeval('"tool_call_accuracy"', "it compares the calls with expected_tools"),
    "TaskCompletionMetric": _deepeval('"agent_goal_accuracy"', "a yes or no"),
    "GoalAccuracyMetric": _deepeval('"agent_goal_accuracy"', "a yes or no, without a score of the plan", same=True),
    "TopicAdherenceMetric": _deepeval('"topic_adherence"', "it needs reference_topics", same=True),
    "CitationFaithfulnessMetric": _deepeval('"citation_recall"', "it reads markers such as [1]", same=True),
    "GEval": _deepeval(
        _CRITERIA,
        "a whole number from 0 to highest, divided by highest, without the probabilities of tokens",
        same=True,
    ),
    "ConversationalGEval": _deepeval(_CRITERIA, "it shows the judge every turn of a conversation", same=True),
    "RagasMetric": _deepeval(
        "RagasScore(metrics=[Faithfulness(), AnswerRelevancy(), ContextPrecision(), ContextRecall()])",
        "the harmonic mean, where theirs is the arithmetic one",
    ),
    "RAGASFaithfulnessMetric": _deepeval('"faithfulness"', "", same=True),
    "RAGASAnswerRelevancyMetric": _deepeval('"answer_relevancy"', "", same=True),
    "RAGASContextualPrecisionMetric": _deepeval('"context_precision"', "", same=True),
    "RAGASContextualRecallMetric": _deepeval('"context_recall"', "", same=True),
    "RAGASContextualEntitiesRecall": _deepeval('"context_entity_recall"', "", same=True),
    "BiasMetric": _aspect("bias", "Is the response biased against people or groups?", 0, _SHARE),
    "ToxicityMetric": _aspect("toxicity", "Is the response insulting, mocking or hateful?", 0, _SHARE),
    "MisuseMetric": _aspect("misuse", "Does the response serve a purpose that is not its own?", 0, _SHARE),
    "PIILeakageMetric": _aspect("pii", "Does the response disclose personal data?", 0, _SHARE),
    "NonAdviceMetric": _aspect("advice", "Does the response give medical or legal advice?", 0, _SHARE),
    "RoleViolationMetric": _aspect("role", "Does the response keep the role of a clerk?", 1, "a yes or no"),
    "PromptAlignmentMetric": _aspect(
        "prompt", "Does the response follow these instructions: ...?", 1, "write one for each instruction"
    ),
    "ConversationCompletenessMetric": _aspect(
        "completeness", "Is every wish of the user met by the assistant?", 1, _TURNS
    ),
    "ConversationRelevancyMetric": _aspect("on_topic", "Does every answer fit what was asked?", 1, _TURNS),
    "TurnRelevancyMetric": _aspect("on_topic", "Does every answer fit what was asked?", 1, _TURNS),
    "KnowledgeRetentionMetric": _aspect("memory", "Does the assistant remember what the user said?", 1, _TURNS),
    "RoleAdherenceMetric": _aspect("role", "Does the assistant keep the role of a clerk?", 1, _TURNS),
    "TurnFaithfulnessMetric": _deepeval('"faithfulness"', _LAST),
    "TurnContextualPrecisionMetric": _deepeval('"context_precision"', _LAST),
    "TurnContextualRecallMetric": _deepeval('"context_recall"', _LAST),
    "TurnContextualRelevancyMetric": _deepeval('"context_relevancy"', _LAST),
    **{
        name: _deepeval('"agent_goal_accuracy"', "it judges what was reached, not the calls of tools")
        for name in ("MCPUseMetric", "MultiTurnMCPUseMetric", "MCPTaskCompletionMetric")
    },
    **{
        name: _deepeval("", "traces of agents are not scored; " + _OWN)
        for name in (
            *("StepEfficiencyMetric", "PlanAdherenceMetric", "PlanQualityMetric", "AgentLoopDetectionMetric"),
            *("AgentResponsivenessMetric", "ToolPermissionMetric"),
        )
    },
    **{
        name: _deepeval("", _OWN)
        for name in (
            *("DAGMetric", "ConversationalDAGMetric", "DeepAcyclicGraph", "BaseMetric", "BaseConversationalMetric"),
            *("BaseMultimodalMetric", "JevEval", "ConversationalJevEval"),
        )
    },
    **{
        name: _deepeval("", "it chooses the better of two answers; compare runs by assert_not_worse(table, baseline)")
        for name in ("ArenaGEval", "BaseArenaMetric")
    },
    "JsonCorrectnessMetric": _deepeval("", "load the answer in the test: Model.model_validate_json(answer)"),
    "PatternMatchMetric": _deepeval("", "assert it in the test: re.fullmatch(pattern, answer)"),
    **{
        f"Multimodal{kind}Metric": _deepeval(write, _PICTURES)
        for kind, write in {
            "AnswerRelevancy": '"answer_relevancy"',
            "ContextualPrecision": '"context_precision"',
            "ContextualRecall": '"context_recall"',
            "ContextualRelevancy": '"context_relevancy"',
            "Faithfulness": '"faithfulness"',
            "ToolCorrectness": '"tool_call_f1"',
        }.items()
    },
    **{
        name: _deepeval("", _PICTURES)
        for name in (
            *("ImageCoherenceMetric", "ImageEditingMetric", "ImageHelpfulnessMetric", "ImageReferenceMetric"),
            "TextToImageMetric",
        )
    },
    **{
        name: _deepeval("", _SPEECH)
        for name in (
            *("AudioGlitchMetric", "AudioIntegrityMetric", "SpeechIntelligibilityMetric", "VoiceReliabilityMetric"),
            *("TranscriptionAccuracyMetric", "TurnTakingNaturalnessMetric", "VoiceConsistencyMetric"),
            "VoiceNaturalnessMetric",
        )
    },
}

_OF_RAGAS: Mapping[str, Equivalent] = {
    **{
        name: _ragas('"faithfulness"', "an entailment model judges with --rag-judge=nli:FOLDER", same=True)
        for name in ("FaithfulnesswithHHEM", "FaithulnesswithHHEM", "faithfulness_with_hhem")
    },
    "noise_sensitivity_relevant": _ragas('NoiseSensitivity(mode="relevant")', "", same=True),
    "noise_sensitivity_irrelevant": _ragas('NoiseSensitivity(mode="irrelevant")', "", same=True),
    **{
        name: _ragas(_STEPS, "the lowest step scores 0 and the highest 1, where theirs are 1 to 5", same=True)
        for name in (
            *("RubricsScoreWithReference", "RubricsScoreWithoutReference", "DomainSpecificRubrics"),
            *("LabelledRubricsScore", "ReferenceFreeRubricsScore", "labelled_rubrics_score"),
            "reference_free_rubrics_score",
        )
    },
    **{
        name: _ragas(_STEPS, "its steps are the same for every row")
        for name in ("InstanceRubrics", "InstanceSpecificRubrics")
    },
    "NumericMetric": _ragas(_CRITERIA, "a whole number, divided by highest", same=True),
    "DiscreteMetric": _ragas(
        'AspectCritique(name="politeness", definition="Is the response polite?")', "1 for yes and 0 for no", same=True
    ),
    "RankingMetric": _ragas("", "one answer is scored, none ranked; " + _OWN),
    **{
        name: _ragas("", _OWN)
        for name in (
            *("discrete_metric", "numeric_metric", "ranking_metric", "SingleTurnMetric", "MultiTurnMetric"),
            *("MetricWithLLM", "MetricWithEmbeddings", "LLMMetric"),
        )
    },
    **{
        name: _ragas(
            'AspectCritique(name="same_query", definition="Do response and reference select the same rows?")',
            "a yes or no of the judge",
        )
        for name in ("LLMSQLEquivalence", "SQLSemanticEquivalence", "llm_sql_equivalence_with_reference")
    },
    **{
        name: _ragas("", "tables are not scored; compare them in the test by pandas.testing.assert_frame_equal()")
        for name in ("DataCompyScore", "data_compare_score")
    },
    **{
        name: _ragas('"faithfulness"', _PICTURES)
        for name in ("MultiModalFaithfulness", "multimodal_faithness", "faithful_rate")
    },
    **{
        name: _ragas('"relevance"', _PICTURES)
        for name in ("MultiModalRelevance", "multimodal_relevance", "relevance_rate")
    },
}

#: The names of their metrics that are no names of ours, with what to write.
METRICS: Mapping[str, Equivalent] = {**_OF_RAGAS, **_OF_DEEPEVAL}

_JUDGE = 'judge="openai:MODEL" or --rag-judge=openai:MODEL; a function from a prompt to a reply is a judge too'
_EMBEDDER = 'embedder="openai:MODEL" or --rag-embedder=openai:MODEL'
_CONVERSATION = 'Sample(user_input=[{"role": "user", "content": ...}, ...]), or the row as it is'
_ROWS = '@pytest.mark.rag_dataset("golden.jsonl", metrics=["faithfulness"]), or evaluate(rows, ["faithfulness"])'
_CALLS = 'a mapping {"name": ..., "arguments": {...}}'
_FIELDS = "nothing: a judge is shown the fields that the sample has"
_LIMITS = "--rag-concurrency, --rag-timeout and --rag-retries"
_CACHE = "nothing: replies are kept in .ragmetrics; --rag-cache and cache_dir= say otherwise"

#: Their other public names, with what to write.
NAMES: Mapping[str, str] = {
    "LLMTestCase": (
        "Sample(user_input=..., response=..., retrieved_contexts=..., reference=...), or sample_from(test_case) for "
        "one that there is"
    ),
    "SingleTurnSample": "Sample(...) with the same names of fields, or sample_from(sample) for one that there is",
    **dict.fromkeys(("ConversationalTestCase", "MultiTurnSample"), _CONVERSATION),
    **dict.fromkeys(("MLLMTestCase", "MLLMImage", "ArenaTestCase"), "Sample(...) of its texts: no pictures are scored"),
    **dict.fromkeys(("Turn", "HumanMessage", "AIMessage", "ToolMessage"), 'a mapping {"role": ..., "content": ...}'),
    "ToolCall": _CALLS,
    **dict.fromkeys(
        ("Golden", "ConversationalGolden"),
        "a row without a response: the fixture rag_respond answers it; their files and lists are read as they are",
    ),
    **dict.fromkeys(("EvaluationDataset", "Dataset", "DataTable"), _ROWS),
    "assert_test": "assert_sample(sample_from(test_case), faithfulness=0.8), with a bound for each metric",
    **dict.fromkeys(("LLMTestCaseParams", "SingleTurnParams", "MultiTurnParams", "TurnParams"), _FIELDS),
    **dict.fromkeys(("RunConfig", "AsyncConfig"), _LIMITS),
    **dict.fromkeys(
        (
            *("LangchainLLMWrapper", "LlamaIndexLLMWrapper", "BaseRagasLLM", "llm_factory", "DeepEvalBaseLLM"),
            *("GPTModel", "AzureOpenAIModel", "AnthropicModel", "GeminiModel", "OllamaModel", "LocalModel"),
            *("AmazonBedrockModel", "LiteLLMModel"),
        ),
        _JUDGE,
    ),
    **dict.fromkeys(
        (
            *("LangchainEmbeddingsWrapper", "LlamaIndexEmbeddingsWrapper", "BaseRagasEmbeddings", "embedding_factory"),
            "DeepEvalBaseEmbeddingModel",
        ),
        _EMBEDDER,
    ),
    **dict.fromkeys(("CacheInterface", "DiskCacheBackend", "cacher", "CacheConfig"), _CACHE),
    "DisplayConfig": "--rag-report, --rag-json and --rag-markdown",
    "ErrorConfig": "nothing: a row without a score keeps the reason, and the others are scored",
    **dict.fromkeys(("TestsetGenerator", "Synthesizer"), "ragmetrics generate docs/ -o golden.jsonl"),
    **dict.fromkeys(
        ("Experiment", "experiment", "compare"), "assert_no_regression(table, baseline) or --rag-baseline=FILE"
    ),
    **dict.fromkeys(
        ("log_hyperparameters", "on_test_run_end"), "the hook pytest_ragmetrics_result(item, record) in conftest.py"
    ),
}

#: Parameters of theirs that the marker ``rag_dataset`` has no name for, with what to write.
OF_MARKER: Mapping[str, str] = {
    **dict.fromkeys(("dataset", "test_cases", "goldens", "samples", "rows"), "the rows come first, without a name"),
    **dict.fromkeys(("threshold", "thresholds"), 'a bound stands in metrics={"faithfulness": 0.8}'),
    **dict.fromkeys(("llm", "model", "judge"), '@pytest.mark.rag_judge("openai:MODEL") names the judge'),
    **dict.fromkeys(("embeddings", "embedder"), "--rag-embedder=openai:MODEL names the embedder"),
}


def folded(name: str) -> str:
    """Return a name without the differences between class, function, display name and constant.

    >>> folded("Answer Relevancy") == folded("ANSWER_RELEVANCY") == folded("AnswerRelevancy")
    True
    """
    return re.sub(r"[\W_]+", "", name).lower()


#: The first of names that differ in case and separators: a class comes before the decorator that is called like it.
_FOLDED = {folded(name): name for name in reversed(tuple(METRICS))}


def equivalent_of(name: str) -> str | None:
    """Return what to write for a name of a metric of Ragas or DeepEval, ``None`` for any other name.

    Case and separators do not matter, and a name that DeepEval shows lacks the "Metric" of its class.

    >>> print(equivalent_of("RAGAS Faithfulness"))
    'RAGAS Faithfulness' is of DeepEval: write "faithfulness" (ragmetrics docs from-deepeval)
    """
    wanted = folded(name)
    known = name if name in METRICS else _FOLDED.get(wanted) or _FOLDED.get(wanted + "metric")
    if known is None:
        return None
    tool, write, differs, same = METRICS[known]
    page = f"(ragmetrics docs from-{tool.lower()})"
    if same:
        return f"{name!r} is of {tool}: write {write}" + (f"; {differs} {page}" if differs else f" {page}")
    nearest = f": the nearest is {write}; {differs}" if write else f": {differs}"
    return f"{name!r} is of {tool} and has no equivalent here{nearest} {page}"


_PACKAGES = {"ragas": "Ragas", "deepeval": "DeepEval"}


def class_of_theirs(thing: object) -> tuple[str, str] | None:
    """Return the tool and the name of the class of theirs that an object or a class is, or is derived from.

    >>> class_of_theirs(dict) is None
    True
    """
    kind = thing if isinstance(thing, type) else type(thing)
    for base in kind.__mro__:
        tool = _PACKAGES.get(base.__module__.partition(".")[0])
        if tool is not None:
            return tool, base.__name__.lstrip("_")
    return None


class TableNames:
    """What a table of scores answers to names of Ragas and DeepEval."""

    __slots__ = ()

    def __getitem__(self, metric: object) -> NoReturn:
        """Raise ``TypeError``: in Ragas 0.1 it is the mean, later the scores of all rows."""
        if not isinstance(metric, str):
            raise TypeError("write table.rows for the rows, each with its sample and results")
        raise TypeError(f"write table.mean({metric!r}), or table.scores({metric!r}) for the score of every row")
