"""Test the answer quality of a RAG application in a pytest suite.

Public names are imported when they are first used: loading the plugin imports almost nothing. The parts, from the
values up; a module imports only from its own layer and those below:

- ``result``, ``sample``, ``errors``: a scored sample, its score with verdicts and evidence, and what can go wrong.
- ``text``: quotations, their alignment with contexts, sentences, numbers, names, citations. ``stats``: intervals,
  thresholds, agreement. ``datasets``: rows of JSON, CSV and objects as samples.
- ``context``: the scoring that is in progress: its judge, votes, usage and requests.
- ``judges``: tasks (``judges/tasks``) are rendered with the prompts of ``prompts``, sent through a chain of transports
  (cache, single flight, budget, circuit breaker, limiter) to a provider, and the replies are parsed. ``embedders``.
- ``cache``: the store of replies on this machine, the cassette to commit, keys and single flight.
- ``records``, ``codec``: a run as values, and their JSON. ``comparison``: two runs compared.
- ``explain``: the wording of scores, failures, sets and runs, for every output.
- ``metrics``: every metric beside its assertion helper; ``metrics/registry`` finds them by name. ``assertions``,
  ``suites``: several metrics of one sample, and thresholds of whole sets. ``calibration``: a judge against labels.
- ``engine``, ``evaluation``, ``dry_run``: judge, embedder and transports of a run; tables of samples; forecasts.
- ``plugin``, ``settings``, ``session``, ``reporting``: the pytest side. ``gates`` and ``gate_plugin``: thresholds over
  data sets. ``prefetch``: rows answered and scored ahead of their tests. ``report``: page, terminal, Markdown, junit.
- ``cli``, ``commands``, ``generate``, ``probes``: the ``ragmetrics`` command.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ragmetrics.assertions import assert_sample as assert_sample
    from pytest_ragmetrics.calibration.calibrate import rag_calibrated as rag_calibrated
    from pytest_ragmetrics.errors import BudgetExceededError as BudgetExceededError
    from pytest_ragmetrics.errors import CacheMissError as CacheMissError
    from pytest_ragmetrics.errors import DatasetError as DatasetError
    from pytest_ragmetrics.errors import JudgeError as JudgeError
    from pytest_ragmetrics.errors import JudgeNotConfiguredError as JudgeNotConfiguredError
    from pytest_ragmetrics.errors import RagMetricsError as RagMetricsError
    from pytest_ragmetrics.errors import UnscoredError as UnscoredError
    from pytest_ragmetrics.evaluation import Evaluation as Evaluation
    from pytest_ragmetrics.evaluation import aevaluate as aevaluate
    from pytest_ragmetrics.evaluation import evaluate as evaluate
    from pytest_ragmetrics.interop import sample_from as sample_from
    from pytest_ragmetrics.metrics.agents import assert_goal_reached as assert_goal_reached
    from pytest_ragmetrics.metrics.agents import assert_topics_kept as assert_topics_kept
    from pytest_ragmetrics.metrics.answers import assert_answer_correct as assert_answer_correct
    from pytest_ragmetrics.metrics.answers import assert_answer_relevant as assert_answer_relevant
    from pytest_ragmetrics.metrics.answers import assert_refusal_correct as assert_refusal_correct
    from pytest_ragmetrics.metrics.answers import assert_semantically_similar as assert_semantically_similar
    from pytest_ragmetrics.metrics.answers import assert_summarizes as assert_summarizes
    from pytest_ragmetrics.metrics.assertion import assert_metric as assert_metric
    from pytest_ragmetrics.metrics.attribution import assert_citations_precise as assert_citations_precise
    from pytest_ragmetrics.metrics.attribution import assert_citations_recalled as assert_citations_recalled
    from pytest_ragmetrics.metrics.citations import assert_citations_valid as assert_citations_valid
    from pytest_ragmetrics.metrics.claims import assert_factually_correct as assert_factually_correct
    from pytest_ragmetrics.metrics.claims import assert_faithful as assert_faithful
    from pytest_ragmetrics.metrics.claims import assert_noise_resisted as assert_noise_resisted
    from pytest_ragmetrics.metrics.claims import assert_not_hallucinated as assert_not_hallucinated
    from pytest_ragmetrics.metrics.contexts import assert_context_precision as assert_context_precision
    from pytest_ragmetrics.metrics.contexts import assert_context_recalled as assert_context_recalled
    from pytest_ragmetrics.metrics.contexts import assert_context_relevant as assert_context_relevant
    from pytest_ragmetrics.metrics.contexts import assert_context_utilization as assert_context_utilization
    from pytest_ragmetrics.metrics.contexts import assert_entities_recalled as assert_entities_recalled
    from pytest_ragmetrics.metrics.critiques import assert_aspect as assert_aspect
    from pytest_ragmetrics.metrics.critiques import assert_criteria as assert_criteria
    from pytest_ragmetrics.metrics.critiques import assert_rubric as assert_rubric
    from pytest_ragmetrics.metrics.grounding import assert_lexically_grounded as assert_lexically_grounded
    from pytest_ragmetrics.metrics.grounding import assert_lexically_recalled as assert_lexically_recalled
    from pytest_ragmetrics.metrics.grounding import assert_names_aligned as assert_names_aligned
    from pytest_ragmetrics.metrics.grounding import assert_numbers_aligned as assert_numbers_aligned
    from pytest_ragmetrics.metrics.own import metric as metric
    from pytest_ragmetrics.metrics.quotes import assert_quoted_spans_aligned as assert_quoted_spans_aligned
    from pytest_ragmetrics.metrics.ragas import assert_ragas_score as assert_ragas_score
    from pytest_ragmetrics.metrics.ratings import assert_answer_accurate as assert_answer_accurate
    from pytest_ragmetrics.metrics.ratings import assert_context_relevance as assert_context_relevance
    from pytest_ragmetrics.metrics.ratings import assert_contexts_precise as assert_contexts_precise
    from pytest_ragmetrics.metrics.ratings import assert_correct as assert_correct
    from pytest_ragmetrics.metrics.ratings import assert_grounded as assert_grounded
    from pytest_ragmetrics.metrics.ratings import assert_relevant as assert_relevant
    from pytest_ragmetrics.metrics.retrieval import assert_contexts_alike as assert_contexts_alike
    from pytest_ragmetrics.metrics.retrieval import assert_retrieved as assert_retrieved
    from pytest_ragmetrics.metrics.strings import assert_bleu as assert_bleu
    from pytest_ragmetrics.metrics.strings import assert_chrf as assert_chrf
    from pytest_ragmetrics.metrics.strings import assert_exact_match as assert_exact_match
    from pytest_ragmetrics.metrics.strings import assert_rouge as assert_rouge
    from pytest_ragmetrics.metrics.strings import assert_string_present as assert_string_present
    from pytest_ragmetrics.metrics.strings import assert_text_alike as assert_text_alike
    from pytest_ragmetrics.metrics.tool_calls import assert_tools_called as assert_tools_called
    from pytest_ragmetrics.result import Evidence as Evidence
    from pytest_ragmetrics.result import MetricResult as MetricResult
    from pytest_ragmetrics.result import Nearest as Nearest
    from pytest_ragmetrics.result import Usage as Usage
    from pytest_ragmetrics.result import Verdict as Verdict
    from pytest_ragmetrics.sample import Sample as Sample
    from pytest_ragmetrics.suites import assert_mean as assert_mean
    from pytest_ragmetrics.suites import assert_no_regression as assert_no_regression
    from pytest_ragmetrics.suites import assert_not_worse as assert_not_worse
    from pytest_ragmetrics.suites import assert_pass_rate as assert_pass_rate
    from pytest_ragmetrics.text.alignment import align as align
    from pytest_ragmetrics.text.quotations import Quotation as Quotation
    from pytest_ragmetrics.text.quotations import find_quotations as find_quotations

#: The public names by the module that defines them.
_MODULES = {
    "metrics.quotes": "assert_quoted_spans_aligned",
    "metrics.claims": "assert_faithful assert_not_hallucinated assert_factually_correct assert_noise_resisted",
    "metrics.contexts": (
        "assert_context_precision assert_context_utilization assert_context_recalled assert_context_relevant "
        "assert_entities_recalled"
    ),
    "metrics.answers": (
        "assert_answer_relevant assert_answer_correct assert_semantically_similar assert_refusal_correct "
        "assert_summarizes"
    ),
    "metrics.ratings": (
        "assert_context_relevance assert_grounded assert_answer_accurate assert_relevant assert_correct "
        "assert_contexts_precise"
    ),
    "metrics.critiques": "assert_aspect assert_rubric assert_criteria",
    "metrics.attribution": "assert_citations_recalled assert_citations_precise",
    "metrics.agents": "assert_goal_reached assert_topics_kept",
    "metrics.grounding": (
        "assert_lexically_grounded assert_lexically_recalled assert_numbers_aligned assert_names_aligned"
    ),
    "metrics.citations": "assert_citations_valid",
    "metrics.tool_calls": "assert_tools_called",
    "metrics.retrieval": "assert_retrieved assert_contexts_alike",
    "metrics.strings": (
        "assert_exact_match assert_string_present assert_text_alike assert_bleu assert_chrf assert_rouge"
    ),
    "metrics.ragas": "assert_ragas_score",
    "metrics.assertion": "assert_metric",
    "metrics.own": "metric",
    "assertions": "assert_sample",
    "suites": "assert_mean assert_no_regression assert_not_worse assert_pass_rate",
    "calibration.calibrate": "rag_calibrated",
    "errors": (
        "BudgetExceededError CacheMissError DatasetError JudgeError JudgeNotConfiguredError RagMetricsError "
        "UnscoredError"
    ),
    "evaluation": "Evaluation aevaluate evaluate",
    "interop": "sample_from",
    "result": "Evidence MetricResult Nearest Usage Verdict",
    "sample": "Sample",
    "text.alignment": "align",
    "text.quotations": "Quotation find_quotations",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

if not TYPE_CHECKING:  # type checkers are to refuse unknown names
    __all__ = list(_MODULE_OF)

    def __getattr__(name: str) -> object:
        if name in _MODULE_OF:
            return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        if name.startswith("assert_"):  # of a metric that is not listed above
            from pytest_ragmetrics.metrics.registry import helper_named

            helper = helper_named(name)
            if helper is not None:
                return helper
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
