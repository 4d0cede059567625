"""What Ragas and DeepEval call things: what to write here instead of each of their names.

Of their metrics the tables of ``docs/how-to/from-ragas.md`` and ``from-deepeval.md`` say it, which are read here. Their
names for a metric that means the same are aliases of it (see :mod:`~pytest_ragmetrics.metrics.registry`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple, NoReturn

from pytest_ragmetrics.core.files import packaged_text


class Equivalent(NamedTuple):
    """What stands here for a name of another tool.

    ``write`` is an expression for ``metrics=[...]``, empty where nothing comes near; ``differs`` says how its meaning
    differs, or what to do where nothing comes near. ``same`` tells an equivalent from what merely comes nearest.
    """

    tool: str
    write: str
    differs: str
    same: bool


#: The tools by the name that their modules begin with.
_TOOLS = {"ragas": "Ragas", "deepeval": "DeepEval"}
_ROW = re.compile(r"^\| (`.+?) \| (.+?) \| (?:(.+) )?\|$", re.MULTILINE)
_ALIAS = re.compile(r"`[A-Z]\w+`")


@cache
def names_of_metrics() -> Mapping[str, Equivalent]:
    """Return what to write for their names of metrics that are no names of ours, as the tables of the pages have it."""
    found: dict[str, Equivalent] = {}
    for module, tool in _TOOLS.items():
        page = packaged_text(f"docs/how-to/from-{module}.md")
        for names, here, differs in _ROW.findall(page.partition("\n## Metrics")[2].partition("\n## ")[0]):
            if not _ALIAS.fullmatch(here):
                write = here.removeprefix("none").removeprefix("; ").strip("`")
                equivalent = Equivalent(tool, write, differs.replace("`", ""), same=not here.startswith("none"))
                found.update(dict.fromkeys(re.findall("`([^`]+)`", names), equivalent))
    return found


@cache
def _folded_names() -> Mapping[str, str]:
    # The first of names that differ in case and separators: a class comes before the decorator that is called like it.
    return {folded(name): name for name in reversed(tuple(names_of_metrics()))}


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


def equivalent_of(name: str) -> str | None:
    """Return what to write for a name of a metric of Ragas or DeepEval, ``None`` for any other name.

    Case and separators do not matter, and a name that DeepEval shows lacks the "Metric" of its class.

    >>> print(equivalent_of("RAGAS Faithfulness"))
    'RAGAS Faithfulness' is of DeepEval: write "faithfulness" (ragmetrics docs from-deepeval)
    """
    wanted = folded(name)
    listed, names = names_of_metrics(), _folded_names()
    known = name if name in listed else names.get(wanted) or names.get(wanted + "metric")
    if known is None:
        return None
    tool, write, differs, same = listed[known]
    page = f"(ragmetrics docs from-{tool.lower()})"
    if same:
        return f"{name!r} is of {tool}: write {write}" + (f"; {differs} {page}" if differs else f" {page}")
    nearest = f": the nearest is {write}; {differs}" if write else f": {differs}"
    return f"{name!r} is of {tool} and has no equivalent here{nearest} {page}"


def class_of_theirs(thing: object) -> tuple[str, str] | None:
    """Return the tool and the name of the class of theirs that an object or a class is, or is derived from.

    >>> class_of_theirs(dict) is None
    True
    """
    kind = thing if isinstance(thing, type) else type(thing)
    for base in kind.__mro__:
        tool = _TOOLS.get(base.__module__.partition(".")[0])
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
