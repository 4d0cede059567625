"""The keyword arguments of ``score()`` and ``assert_sample()``, for type checkers; nothing imports this at run time."""

from __future__ import annotations

from typing import Any, TypedDict


class Fields(TypedDict, total=False):
    """What ``score()`` takes: the fields of a sample, and what some metrics take beside them."""

    user_input: Any
    response: Any
    retrieved_contexts: Any
    reference: Any
    reference_contexts: Any
    retrieved_context_ids: Any
    reference_context_ids: Any
    id: Any
    metadata: Any
    rubric: Any
    rubrics: Any
    criteria: Any
    messages: Any
    reference_topics: Any
    chatbot_role: Any
    role: Any
    tool_calls: Any
    tools_called: Any
    reference_tool_calls: Any
    expected_tools: Any
    relevance: Any
    must_contain: Any
    must_not_contain: Any
    json_schema: Any
    latency: Any
    completion_time: Any
    first_token: Any
    cost: Any
    token_cost: Any
    usage: Any
    model: Any


class Bounds(TypedDict, total=False):
    """What ``assert_sample()`` takes: the bound of each metric of this package; ``metrics=`` takes those of others."""

    quoted_spans_alignment: float
    faithfulness: float
    hallucination: float
    factual_correctness: float
    noise_sensitivity: float
    context_precision: float
    context_utilization: float
    context_recall: float
    context_relevancy: float
    context_entity_recall: float
    answer_relevancy: float
    answer_correctness: float
    semantic_similarity: float
    refusal_correctness: float
    summary_score: float
    context_relevance: float
    response_groundedness: float
    answer_accuracy: float
    relevance: float
    correctness: float
    context_precision_proportion: float
    aspect_critique: float
    harmfulness: float
    maliciousness: float
    coherence: float
    correctness_aspect: float
    conciseness: float
    harmlessness: float
    rubric: float
    simple_criteria: float
    criteria_met: float
    citation_recall: float
    citation_precision: float
    agent_goal_accuracy: float
    topic_adherence: float
    knowledge_retention: float
    conversation_completeness: float
    turn_relevancy: float
    role_adherence: float
    lexical_grounding: float
    lexical_context_recall: float
    numbers_aligned: float
    names_aligned: float
    citation_validity: float
    tool_call_accuracy: float
    tool_call_f1: float
    precision_at_k: float
    recall_at_k: float
    hit_rate: float
    mrr: float
    map: float
    ndcg: float
    id_based_context_precision: float
    id_based_context_recall: float
    non_llm_context_precision: float
    non_llm_context_recall: float
    exact_match: float
    string_presence: float
    non_llm_string_similarity: float
    token_f1: float
    bleu_score: float
    chrf_score: float
    rouge_score: float
    contains: float
    valid_json: float
    no_secrets: float
    latency: float
    first_token: float
    cost: float
    llm_context_precision_with_reference: float
    contextual_precision: float
    llm_context_precision_without_reference: float
    contextual_recall: float
    response_relevancy: float
    answer_similarity: float
    summarization_score: float
    nv_context_relevance: float
    nv_response_groundedness: float
    nv_accuracy: float
    aspect_critic: float
    rubrics_score: float
    simple_criteria_score: float
    row_criteria: float
    goal_reached: float
    hit_at_k: float
    reciprocal_rank: float
    mean_reciprocal_rank: float
    average_precision: float
    mean_average_precision: float
    ndcg_at_k: float
    non_llm_context_precision_with_reference: float
    string_present: float
    f1: float
    bleu: float
    chrf: float
    rouge: float
