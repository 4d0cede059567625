"""A cache shared by runs with folders of their own."""

from __future__ import annotations

from pathlib import Path

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunPytest

SUITE = """
@pytest.mark.parametrize("number", range(4))
def test_it(number):
    assert_faithful(f"The pump needs {number} minutes.", [f"The pump needs {number} minutes to fill."], min=0.0)
"""
JUDGE = "--rag-judge=openai:fake"


def test_what_one_run_paid_for_is_free_to_others(server: FakeOpenAI, run: RunPytest, tmp_path: Path) -> None:
    shared = tmp_path.as_uri()
    env = {"RAGMETRICS_CACHE_URL": shared}
    first = run(JUDGE, "--rag-cache-dir=first", env=env, test_it=SUITE)
    calls, header = server.calls, "ragmetrics: judge openai:fake, *cache auto, shared cache"
    first.shows(f"{header} {shared} (readwrite)", f"*, {calls} added", passed=4)
    second = run(JUDGE, "--rag-cache-url-mode=read", "--rag-cache=replay", "--rag-cache-dir=second", env=env)
    second.shows(f"*shared cache {shared} (read)", f"*{shared}: {calls} answers found, 0 added*", passed=4)
    assert server.calls == calls
    third = run(JUDGE, "-Werror", "--rag-cache-dir=third", env={**env, "RAGMETRICS_CACHE_SECRET": "ours"})
    third.shows(f"*{shared}: 0 answers found, {calls} added, {calls} refused (*", passed=4)
    assert "ours" not in third.stdout.str() + third.stderr.str()


def test_a_place_that_is_gone_and_a_cassette(server: FakeOpenAI, run: RunPytest, tmp_path: Path) -> None:
    gone = (tmp_path / "gone").as_uri()
    result = run(JUDGE, f"--rag-cache-url={gone}", "-Wdefault", test_it=SUITE)
    said = "*UserWarning: shared cache file:///*gone: it cannot be*goes on with the local cache*"
    result.shows(said, passed=4, warnings=1)
    assert not (tmp_path / "gone").exists()
    recorded = run(JUDGE, f"--rag-cache-url={gone}", "--rag-cassette=all.jsonl")
    recorded.shows("*, shared cache not used beside a cassette", passed=4)
    refusal = "ERROR: --rag-cache-url: 'ftp://host' is none of s3://BUCKET/FOLDER*"
    run("--rag-cache-url=ftp://me:hidden@host").refused(refusal)
