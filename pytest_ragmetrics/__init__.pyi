from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pytest_ragmetrics.core.errors import BudgetExceededError as BudgetExceededError
from pytest_ragmetrics.core.errors import CacheMissError as CacheMissError
from pytest_ragmetrics.core.errors import DatasetError as DatasetError
from pytest_ragmetrics.core.errors import JudgeError as JudgeError
from pytest_ragmetrics.core.errors import JudgeNotConfiguredError as JudgeNotConfiguredError
from pytest_ragmetrics.core.errors import RagMetricsError as RagMetricsError
from pytest_ragmetrics.core.errors import UnscoredError as UnscoredError
from pytest_ragmetrics.core.result import Evidence as Evidence
from pytest_ragmetrics.core.result import MetricResult as MetricResult
from pytest_ragmetrics.core.result import Nearest as Nearest
from pytest_ragmetrics.core.result import Usage as Usage
from pytest_ragmetrics.core.result import Verdict as Verdict
from pytest_ragmetrics.core.sample import Sample as Sample
from pytest_ragmetrics.datasets.interop import sample_from as sample_from
from pytest_ragmetrics.evaluation.assert_sample import assert_conversation as assert_conversation
from pytest_ragmetrics.evaluation.assert_sample import assert_sample as assert_sample
from pytest_ragmetrics.evaluation.assert_sets import assert_mean as assert_mean
from pytest_ragmetrics.evaluation.assert_sets import assert_no_regression as assert_no_regression
from pytest_ragmetrics.evaluation.assert_sets import assert_not_worse as assert_not_worse
from pytest_ragmetrics.evaluation.assert_sets import assert_pass_rate as assert_pass_rate
from pytest_ragmetrics.evaluation.batch_scorer import scorer as scorer
from pytest_ragmetrics.evaluation.calibration.calibrate import rag_calibrated as rag_calibrated
from pytest_ragmetrics.evaluation.evaluate import aevaluate as aevaluate
from pytest_ragmetrics.evaluation.evaluate import evaluate as evaluate
from pytest_ragmetrics.evaluation.score_files import load_scores as load_scores
from pytest_ragmetrics.evaluation.table import Evaluation as Evaluation
from pytest_ragmetrics.judges.embedders.openai import OpenAIEmbedder as OpenAIEmbedder
from pytest_ragmetrics.judges.nli import NliJudge as NliJudge
from pytest_ragmetrics.judges.providers.anthropic import AnthropicJudge as AnthropicJudge
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge as OpenAIJudge
from pytest_ragmetrics.metrics.asserting import assert_metric as assert_metric
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.critiques import assert_aspect as assert_aspect
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.own import metric as metric
from pytest_ragmetrics.metrics.ragas import assert_ragas_score as assert_ragas_score
from pytest_ragmetrics.metrics.retrieval import assert_retrieved as assert_retrieved
from pytest_ragmetrics.text.quotes.alignment import align as align
from pytest_ragmetrics.text.quotes.quotations import Quotation as Quotation
from pytest_ragmetrics.text.quotes.quotations import find_quotations as find_quotations

__version__: str

# pytest_ragmetrics.metrics.ratings
def assert_answer_accurate(
    question: str,
    response: str,
    reference: str,
    *,
    min: float = 0.5,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.answers
def assert_answer_correct(
    response: str,
    reference: str,
    *,
    question: str | None = None,
    min: float = 0.7,
    weights: Sequence[float] = (0.75, 0.25),
    beta: float = 1.0,
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.answers
def assert_answer_relevant(
    question: str,
    response: str,
    *,
    min: float = 0.7,
    strictness: int = 3,
    noncommittal: Literal["all", "any", "majority"] = "all",
    votes: int | None = None,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.strings
def assert_bleu(
    response: str,
    reference: str,
    *,
    min: float = 0.3,
    tokenize: Literal["auto", "13a", "intl", "zh", "char", "none"] = "auto",
    kwargs: Mapping[str, Any] | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.strings
def assert_chrf(
    response: str,
    reference: str,
    *,
    min: float = 0.5,
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    kwargs: Mapping[str, Any] | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.attribution
def assert_citations_precise(
    response: str,
    contexts: object,
    *,
    min: float = 0.8,
    numbering: Literal["turn", "conversation"] = "turn",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.attribution
def assert_citations_recalled(
    response: str,
    contexts: object,
    *,
    min: float = 0.8,
    numbering: Literal["turn", "conversation"] = "turn",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.citations
def assert_citations_valid(
    response: str,
    contexts: object,
    *,
    context_ids: Sequence[str | int] | None = None,
    min: float = 1.0,
    require_citations: bool = False,
    numbering: Literal["turn", "conversation"] = "turn",
) -> MetricResult: ...

# pytest_ragmetrics.metrics.checks
def assert_contains(
    response: str,
    *,
    min: float = 1.0,
    all: Sequence[str | Sequence[str]] = (),
    any: Sequence[str] = (),
    none: Sequence[str] = (),
) -> MetricResult: ...

# pytest_ragmetrics.metrics.contexts
def assert_context_precision(
    question: str,
    contexts: object,
    reference: str,
    *,
    min: float = 0.7,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.contexts
def assert_context_recalled(
    contexts: object,
    reference: str | Sequence[str],
    *,
    question: str | None = None,
    min: float = 0.8,
    unit: Literal["claims", "sentences"] = "sentences",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.ratings
def assert_context_relevance(
    question: str, contexts: object, *, min: float = 0.5, votes: int | None = None, judge: JudgeLike | None = None
) -> MetricResult: ...

# pytest_ragmetrics.metrics.contexts
def assert_context_relevant(
    question: str,
    contexts: object,
    *,
    min: float,
    strictness: int = 1,
    agreement: Literal["bert_score", "jaccard", "jaccard_score"] = "bert_score",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
    embedder: EmbedderLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.contexts
def assert_context_utilization(
    question: str,
    contexts: object,
    response: str,
    *,
    min: float = 0.7,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.retrieval
def assert_contexts_alike(
    contexts: object,
    reference_contexts: object,
    *,
    metric: Literal["recall", "precision"] = "recall",
    min: float = 0.8,
    threshold: float = 0.5,
    measure: Literal["levenshtein", "indel", "hamming", "jaro", "jaro_winkler"] = "levenshtein",
) -> MetricResult: ...

# pytest_ragmetrics.metrics.ratings
def assert_contexts_precise(
    question: str, contexts: object, *, min: float, votes: int | None = None, judge: JudgeLike | None = None
) -> MetricResult: ...

# pytest_ragmetrics.metrics.dialogues
def assert_conversation_complete(
    messages: object,
    *,
    reference: str | None = None,
    min: float = 0.8,
    declined: Literal["count", "skip"] = "count",
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.ratings
def assert_correct(
    response: str,
    reference: str,
    *,
    min: float,
    method: Literal["judge", "token_f1"] = "judge",
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.application
def assert_cost(sample: Sample | Mapping[str, Any], *, max: float) -> MetricResult: ...

# pytest_ragmetrics.metrics.critiques
def assert_criteria(
    sample: Sample | Mapping[str, Any],
    definition: str,
    *,
    name: str | None = None,
    min: float = 0.5,
    evaluation_steps: Sequence[str] = (),
    highest: int = 5,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.critiques
def assert_criteria_met(
    sample: Sample | Mapping[str, Any],
    *,
    min: float = 1.0,
    criteria: str | Sequence[str] = (),
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.contexts
def assert_entities_recalled(
    contexts: object,
    reference: str,
    *,
    min: float = 0.8,
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.strings
def assert_exact_match(response: str, reference: str, *, min: float = 1.0) -> MetricResult: ...

# pytest_ragmetrics.metrics.claims
def assert_factually_correct(
    response: str,
    reference: str,
    *,
    question: str | None = None,
    min: float = 0.7,
    mode: Literal["precision", "recall", "f1"] = "f1",
    beta: float = 1.0,
    atomicity: Literal["low", "high"] = "high",
    coverage: Literal["low", "high"] = "high",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.claims
def assert_faithful(
    response: str,
    contexts: object,
    *,
    question: str | None = None,
    min: float = 0.8,
    history: Literal["contexts", "none"] = "contexts",
    unit: Literal["claims", "sentences"] = "claims",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.application
def assert_first_token(sample: Sample | Mapping[str, Any], *, max: float) -> MetricResult: ...

# pytest_ragmetrics.metrics.agents
def assert_goal_reached(
    messages: object,
    *,
    reference: str | None = None,
    min: float = 0.5,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.ratings
def assert_grounded(
    response: str,
    contexts: object,
    *,
    min: float = 0.75,
    history: Literal["contexts", "none"] = "contexts",
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.checks
def assert_json(
    response: str, *, min: float = 1.0, schema: Mapping[str, Any] | bool | type | None = None
) -> MetricResult: ...

# pytest_ragmetrics.metrics.dialogues
def assert_knowledge_retained(
    messages: object, *, min: float = 0.8, votes: int | None = None, judge: JudgeLike | None = None
) -> MetricResult: ...

# pytest_ragmetrics.metrics.application
def assert_latency(sample: Sample | Mapping[str, Any], *, max: float) -> MetricResult: ...

# pytest_ragmetrics.metrics.grounding
def assert_lexically_grounded(
    response: str, contexts: object, *, min: float = 0.4, history: Literal["contexts", "none"] = "contexts"
) -> MetricResult: ...

# pytest_ragmetrics.metrics.grounding
def assert_lexically_recalled(contexts: object, reference: str | Sequence[str], *, min: float) -> MetricResult: ...

# pytest_ragmetrics.metrics.grounding
def assert_names_aligned(
    response: str, contexts: object, *, min: float = 1.0, history: Literal["contexts", "none"] = "contexts"
) -> MetricResult: ...

# pytest_ragmetrics.metrics.checks
def assert_no_secrets(response: str, *, min: float = 1.0) -> MetricResult: ...

# pytest_ragmetrics.metrics.claims
def assert_noise_resisted(
    response: str,
    contexts: object,
    reference: str,
    *,
    question: str | None = None,
    max: float = 0.2,
    mode: Literal["relevant", "irrelevant"] = "relevant",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.claims
def assert_not_hallucinated(
    response: str, contexts: object, *, max: float = 0.0, votes: int | None = None, judge: JudgeLike | None = None
) -> MetricResult: ...

# pytest_ragmetrics.metrics.grounding
def assert_numbers_aligned(
    response: str, contexts: object, *, min: float = 1.0, history: Literal["contexts", "none"] = "contexts"
) -> MetricResult: ...

# pytest_ragmetrics.metrics.quotes
def assert_quoted_spans_aligned(
    response: str,
    contexts: object,
    *,
    question: object = None,
    min: float = 0.9,
    history: Literal["contexts", "none"] = "contexts",
    casefold: bool = True,
    min_span_words: int = 3,
    matching: Literal["editorial", "verbatim"] = "editorial",
    require_quotes: bool = False,
    allowed: Sequence[str] = (),
    titles: Literal["count", "skip"] = "count",
) -> MetricResult: ...

# pytest_ragmetrics.metrics.answers
def assert_refusal_correct(
    question: str,
    response: str,
    contexts: object,
    *,
    min: float = 0.5,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.ratings
def assert_relevant(
    question: str, response: str, *, min: float, votes: int | None = None, judge: JudgeLike | None = None
) -> MetricResult: ...

# pytest_ragmetrics.metrics.dialogues
def assert_role_kept(
    messages: object,
    *,
    min: float = 1.0,
    role: str | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.strings
def assert_rouge(
    response: str,
    reference: str,
    *,
    min: float = 0.5,
    rouge_type: Literal["rouge1", "rouge2", "rouge3", "rouge4", "rougeL", "rougeLsum"] = "rougeL",
    mode: Literal["fmeasure", "precision", "recall"] = "fmeasure",
    use_stemmer: bool = False,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.critiques
def assert_rubric(
    sample: Sample | Mapping[str, Any],
    steps: Sequence[str] | Mapping[int, str] | Mapping[str, str],
    *,
    name: str | None = None,
    min: float = 0.5,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.answers
def assert_semantically_similar(
    response: str, reference: str, *, min: float, threshold: float | None = None, embedder: EmbedderLike | None = None
) -> MetricResult: ...

# pytest_ragmetrics.metrics.strings
def assert_string_present(response: str, reference: str, *, min: float = 1.0) -> MetricResult: ...

# pytest_ragmetrics.metrics.answers
def assert_summarizes(
    response: str,
    contexts: object,
    *,
    min: float = 0.5,
    length_penalty: bool = True,
    coeff: float = 0.5,
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.strings
def assert_text_alike(
    response: str,
    reference: str,
    *,
    metric: Literal["similarity", "token_f1"] = "similarity",
    min: float = 0.8,
    measure: Literal["levenshtein", "indel", "hamming", "jaro", "jaro_winkler"] = "levenshtein",
) -> MetricResult: ...

# pytest_ragmetrics.metrics.tool_calls
def assert_tools_called(
    messages: object,
    reference_tool_calls: object,
    *,
    metric: Literal["accuracy", "f1"] = "accuracy",
    min: float = 1.0,
    match: Literal["exact", "any order", "superset", "subset"] = "exact",
    max_calls: int | None = None,
    strict_order: bool = True,
    arg_comparison: Metric | str | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.agents
def assert_topics_kept(
    messages: object,
    topics: Sequence[str],
    *,
    min: float = 0.8,
    mode: Literal["precision", "recall", "f1"] = "f1",
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult: ...

# pytest_ragmetrics.metrics.dialogues
def assert_turns_relevant(
    messages: object, *, min: float = 0.8, votes: int | None = None, judge: JudgeLike | None = None
) -> MetricResult: ...
