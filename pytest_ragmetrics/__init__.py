"""Test the answer quality of a RAG application in a pytest suite.

Public names are imported when they are first used: loading the plugin imports almost nothing. The parts, from the
values up; a module imports only from its own layer and those below:

- ``result``, ``sample``, ``errors``: a scored sample, its score with verdicts and evidence, and what can go wrong.
- ``text``: quotations, their alignment with contexts, sentences, numbers, names, citations. ``stats``: intervals,
  thresholds, agreement. ``datasets``: rows of JSON, CSV and objects as samples.
- ``context``: the scoring that is in progress: its judge, votes, usage and requests.
- ``judges``: tasks (``judges/tasks``) are rendered with the prompts of ``prompts``, sent through a chain of transports
  (cache, single flight, budget, circuit breaker, limiter) to a provider, and the replies are parsed. ``embedders``.
- ``cache``: the store of replies on this machine, the cassette to commit, keys and single flight. ``batching``: the
  link that has requests answered in batches, their ledger in the cache folder, and the routes of the providers.
- ``records``, ``codec``: a run as values, and their JSON. ``comparison``: two tables compared,
  ``run_comparison``: two runs.
- ``explain``: the wording of scores, failures, sets and runs, for every output.
- ``metrics``: every metric beside its assertion helper; ``metrics/registry`` finds them by name, ``other_tools`` says
  what to write for names of Ragas and DeepEval. ``assertions``, ``suites``: several metrics of one sample, and
  thresholds of whole sets. ``calibration``: a judge against labels.
- ``engine``, ``evaluation``, ``dry_run``: judge, embedder and transports of a run; tables of samples; forecasts.
- ``logged_answers``, ``score_files``: rows of any number scored one after the other, and the files of their scores.
  ``batch_scorer``, ``ray``: the same on the parts of a table, and by the actors of a cluster.
- ``plugin``, ``settings``, ``session``, ``reporting``, ``tracebacks``: the pytest side. ``gates``, ``gate_decisions``,
  ``gate_plugin``: thresholds over data sets. ``prefetch``: rows answered and scored ahead of their tests. ``report``:
  page, terminal, Markdown, junit. ``typed``: names of keyword arguments for type checkers.
- ``cli``, ``commands``, ``generate``, ``probes``: the ``ragmetrics`` command. ``docs``: the documentation, in Markdown.
"""

from __future__ import annotations

from importlib import import_module

from pytest_ragmetrics.public_names import is_module, module_of_names

_MODULE_OF = module_of_names(__name__)
__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("pytest-ragmetrics")
    if name.startswith("assert_"):  # of a metric that is not listed
        from pytest_ragmetrics.metrics.registry import helper_named

        helper = helper_named(name)
        if helper is not None:
            return helper
    if is_module(__name__, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pytest_ragmetrics.metrics.registry import missing_name

    raise missing_name(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
