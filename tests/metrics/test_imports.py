"""A metric without a judge loads itself and what it computes with: no judge, no engine, no other metrics."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
{call}
print(*sorted(name for name in sys.modules if name.startswith("pytest_ragmetrics.")))
"""
CALLS = {
    "quotes": "assert_quoted_spans_aligned('It says \"open the valve slowly\".', ['Open the valve slowly.'])",
    "grounding": "assert_numbers_aligned('It has 12 lamps.', ['There are 12 lamps.'])",
    "citations": "assert_citations_valid('Otters float [1].', ['Otters float.'])",
    "tool_calls": "assert_tools_called([{'role': 'assistant', 'tool_calls': [{'name': 'stop'}]}], [{'name': 'stop'}])",
    "retrieval": "assert_retrieved([1, 2], [1])",
    "strings": "assert_text_alike('moth', 'moth')",
}
#: What only metrics with a judge, tables and reports need.
HEAVY = ("judges", "embedders", "engine", "evaluation", "cache", "stats", "loop", "metrics.judged", "metrics.registry")
ALLOWED = {"quotes": {"quotes"}, "retrieval": {"retrieval", "strings"}}


@pytest.mark.parametrize("module", CALLS)
def test_a_helper_without_a_judge_is_light(module: str) -> None:
    """About 35 modules of this package, in a process that uses one helper."""
    call = f"from pytest_ragmetrics import {CALLS[module].partition('(')[0]}\n{CALLS[module]}"
    run = subprocess.run(
        [sys.executable, "-c", CODE.format(call=call)], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = [name.removeprefix("pytest_ragmetrics.") for name in run.stdout.split()]
    assert not [name for name in loaded if name.startswith(HEAVY)]
    assert len(loaded) <= 35
    metrics = {name.partition(".")[2] for name in loaded if name.startswith("metrics.")}
    assert metrics - {"assertion", "base", "votes", "verdicts"} == ALLOWED.get(module, {module})
