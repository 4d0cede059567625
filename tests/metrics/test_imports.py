"""A metric without a judge loads itself and what it computes with: no judge, no engine, no other metrics."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
for module, call in {calls}.items():
    exec("from pytest_ragmetrics import " + call.partition("(")[0] + "; " + call)
    ours = [name for name in sys.modules if name.partition(".")[0] == "pytest_ragmetrics"]
    print(module, *sorted(name.partition(".")[2] for name in ours if "." in name))
    for name in ours:
        del sys.modules[name]
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
HEAVY = ("judges", "evaluation", "cache", "stats", "core.loop", "metrics.judged", "metrics.registry")
#: The scoring in progress, which every metric asks, and its room, which is empty.
LIGHT = {"judges", "judges.context"}
ALLOWED = {"quotes": {"quotes", "conversations"}, "retrieval": {"retrieval", "strings"}}


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    run = subprocess.run(
        [sys.executable, "-c", CODE.format(calls=CALLS)], capture_output=True, text=True, check=True, timeout=60
    )
    return {line.split()[0]: line.split()[1:] for line in run.stdout.splitlines()}


@pytest.mark.parametrize("module", CALLS)
def test_a_helper_without_a_judge_is_light(loaded: dict[str, list[str]], module: str) -> None:
    """At most 39 modules of this package, the rooms counted, in a process that uses one helper."""
    assert not [name for name in {*loaded[module]} - LIGHT if name.startswith(HEAVY)]
    assert len(loaded[module]) <= 39
    metrics = {name.partition(".")[2] for name in loaded[module] if name.startswith("metrics.")}
    assert metrics - {"asserting", "base", "parameters", "votes", "verdicts"} == ALLOWED.get(module, {module})
