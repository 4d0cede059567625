"""A metric of conversations in a data set: a test of its own beside those of the turns, in any process."""

from __future__ import annotations

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import MANY, RunPytest

TALKS = [
    {
        "id": name,
        "messages": [
            {"role": "user", "content": f"Ich komme nach {town}. Wann geöffnet?"},
            {"role": "assistant", "content": "Von neun an geöffnet.", "contexts": ["Von neun an geöffnet."]},
            {"role": "user", "content": f"{town}は雨ですか。"},
            {"role": "assistant", "content": f"In welche Stadt? Nach {town}?", "contexts": ["雨。"]},
        ],
    }
    for name, town in (("pump", "Köln"), ("valve", "京都"))
]
SUITE = f"""
    TALKS = {TALKS!r}
    METRICS = dict(knowledge_retention=1.0, ConversationCompletenessMetric=0.0, numbers_aligned=1.0)
    @pytest.mark.rag_dataset(TALKS, metrics=METRICS, turns="each")
    def test_talk(rag_scores): ...
"""


def test_a_conversation_is_a_test_beside_its_turns(run: RunPytest, server: FakeOpenAI) -> None:
    names = {f"test_talks.py::test_talk[{name}{turn}]" for name in ("pump", "valve") for turn in ("", "-t1", "-t2")}
    result = run("--rag-judge=openai:gpt-5.4-mini", "--rag-json=out.json", *MANY, test_talks=SUITE)
    assert {*result.tests} == names
    scored = {name: {it["metric"] for it in test["records"]} for name, test in result.tests.items()}
    whole = {"knowledge_retention", "conversation_completeness"}
    assert all(found == ({"numbers_aligned"} if "-t" in name else whole) for name, found in scored.items())
    result.shows('*turn 1  not kept: "Ich komme nach Köln."', '*reason: asked again, turn 2: "Nach Köln?"*')
    assert server.calls == 8
    run("--rag-judge=openai:gpt-5.4-mini").shows("judge calls: 0 made (0 tokens, *), 8 saved by the cache (*)")
    assert server.calls == 8


def test_a_dry_run_counts_both_requests(run: RunPytest, server: FakeOpenAI) -> None:
    result = run("--rag-judge=openai:gpt-5.4-mini", "--rag-dry-run", test_talks=SUITE)
    result.shows("conversation_completeness * 2 * 4 * 0 *", "knowledge_retention * 2 * 4 * 0 *")
    assert server.calls == 0
