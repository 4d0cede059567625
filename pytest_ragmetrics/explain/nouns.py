"""What the verdicts of each metric are about, and what is wrong with one that is not ok."""

from __future__ import annotations

_NOUNS = {
    "quoted_spans_alignment": ("quoted span", "not found"),
    "faithfulness": ("claim", "not supported"),
    "answer_relevancy": ("generated question", "noncommittal"),
    "summary_score": ("question", "not answered by the summary"),
    "context_relevancy": ("context sentence", "not needed"),
    "context_recall": ("statement", "not in the contexts"),
    "context_precision_proportion": ("context", "not relevant"),
    **dict.fromkeys(("context_precision", "context_utilization"), ("context", "of no use")),
    "noise_sensitivity": ("claim", "wrong as contexts have it"),
    "factual_correctness": ("claim", "not borne out"),
    "answer_correctness": ("statement", "wrong or missing"),
    "context_relevance": ("rating", "not the highest"),
    "response_groundedness": ("rating", "not the highest"),
    "answer_accuracy": ("rating", "not the highest"),
    "hallucination": ("context", "contradicted"),
    "context_entity_recall": ("name", "not in the contexts"),
    "citation_recall": ("sentence", "not supported by the contexts cited"),
    "citation_precision": ("citation", "of no use"),
    "refusal_correctness": ("response", "wrong to refuse or to answer"),
    "rubric": ("step", "low"),
    "simple_criteria": ("judgement", "low"),
    "agent_goal_accuracy": ("goal", "missed"),
    "topic_adherence": ("topic", "wrongly dealt with or declined"),
    "relevance": ("response", "hardly relevant"),
    "correctness_rating": ("response", "hardly correct"),
    **dict.fromkeys(
        ("harmfulness", "maliciousness", "coherence", "correctness", "conciseness", "harmlessness"),
        ("judgement", "against"),
    ),
    "lexical_grounding": ("word", "in no context"),
    "lexical_context_recall": ("word", "in no context"),
    "numbers_aligned": ("number", "in no context"),
    "names_aligned": ("name", "in no context"),
    "citation_validity": ("citation", "without a context"),
    **dict.fromkeys(("recall_at_k", "hit_rate", "map", "ndcg", "id_based_context_recall"), ("reference id", "missed")),
    **dict.fromkeys(("precision_at_k", "mrr", "id_based_context_precision"), ("retrieved id", "not relevant")),
    "non_llm_context_recall": ("reference context", "not retrieved"),
    "non_llm_context_precision": ("context", "unlike the reference"),
    "exact_match": ("response", "not the reference"),
    "string_presence": ("response", "without the reference"),
    "tool_call_accuracy": ("tool call", "not as in the reference"),
    "tool_call_f1": ("tool call", "not matched"),
}


def noun_of(metric: str) -> str:
    """Return what one verdict of a metric is about."""
    return _NOUNS.get(metric, ("verdict", ""))[0]


def complaint_of(metric: str) -> str:
    """Return what is wrong with a verdict of a metric that is not ok; it is said of one and of several."""
    return _NOUNS.get(metric, ("", "failed"))[1]
