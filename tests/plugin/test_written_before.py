"""Caches and cassettes that an earlier version wrote are replayed without a call."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

WRITTEN = Path(__file__).parent.parent / "data" / "cache_version_1"
JUDGE = """
def make():
    def judge(prompt):
        raise AssertionError("a reply was recorded")

    return judge
"""
TEST = """
from pytest_ragmetrics import assert_faithful


def test_moths():
    text = "Moths fly at night and sleep by day."
    assert assert_faithful(text, [text], min=0.8).usage.cached_calls == 2
"""


@pytest.mark.parametrize(
    ("file", "to", "option"),
    [
        ("cache.db", "kept/cache.db", "--rag-cache-dir=kept"),
        ("judge.jsonl", "judge.jsonl", "--rag-cassette=judge.jsonl"),
    ],
    ids=["folder", "cassette"],
)
def test_a_file_of_version_1_is_replayed(pytester: pytest.Pytester, file: str, to: str, option: str) -> None:
    """Both replies of the test are found under the keys that were computed then."""
    pytester.makepyfile(jj=JUDGE, test_moths=TEST)
    (pytester.path / to).parent.mkdir(exist_ok=True)
    shutil.copy(WRITTEN / file, pytester.path / to)
    options = ("-p", "ragmetrics", "--rag-judge=jj:make", "--rag-cache=replay", option)
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)
