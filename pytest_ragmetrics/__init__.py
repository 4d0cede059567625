"""Test the answer quality of a RAG application in a pytest suite.

Public names are imported when they are first used: loading the plugin imports almost nothing. The rooms, from the top
down; a module imports from its own room and those below:

- ``cli``: the ``ragmetrics`` command, a module a command; ``probes`` of judges, golden sets to ``generate``.
- ``plugin``: the pytest side: options, fixtures, an object with hooks for each concern. ``plugin/gates``: bounds on
  sets, decided in ``decide``. ``plugin/rows``: rows of data sets, answered and scored ahead of their tests.
- ``report``: the page, Markdown, history and trends of a run.
- ``evaluation``: one sample, a table or a file of any size scored (``runner`` has the loop); the judge, the embedder
  and the transports of a run (``engine``); thresholds of sets; ``ray``; ``calibration`` of a judge by labels.
- ``metrics``: every metric beside its assertion helper; ``registry`` finds them by name.
- ``runs``: a run as values (``records``), several runs merged, two runs paired (``compare``) and their pairs in figures
  (``tables``); ``wording`` of failures, figures, sets and runs for every output.
- ``cache``: the answers kept on this machine, the cassette to commit, keys and single flight.
- ``judges``: ``tasks`` are rendered with ``prompts`` and sent through ``transports`` to one of the ``providers``, or
  answered in ``batches``; ``context`` has the scoring in progress; ``embedders``.
- ``datasets``: rows of JSON, CSV, objects and other tools as samples.
- ``stats``: intervals, bounds, paired comparisons, agreement, corrected means, of plain numbers.
- ``text``: words, sentences, numbers, names; ``text/quotes``: quotations and where they stand in the contexts.
- ``core``: a sample, its result with verdicts and evidence, errors, files, locks, the codec and the event loop.
"""

from __future__ import annotations

from importlib import import_module

from pytest_ragmetrics.core.public_names import is_module, module_of_names

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
