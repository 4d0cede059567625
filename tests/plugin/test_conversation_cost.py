"""What conversations cost: two requests a turn where all is found, and nothing for turns that were asked about."""

from __future__ import annotations

from tests.fake_answers import answer_sensibly
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import MANY, SERIAL, RunPytest

JUDGED = ("--rag-judge=openai:gpt-mine", "--rag-cache-dir=kept", "--rag-json=out.json")
CHAT = """
    def exchange(n):
        said = f"Die Pumpe {n} braucht {n} Minuten." if n % 2 else f"ポンプ{n}は{n}分かかる。"
        asked = {"role": "user", "content": f"Und Pumpe {n}?"}
        return [asked, {"role": "assistant", "content": said, "contexts": [said]}]
    LOG = [message for n in range(LENGTH) for message in exchange(n)]
    @pytest.mark.rag_dataset([{"id": "log", "messages": LOG}], metrics=METRICS, turns="each")
    def test_turn(rag_scores): assert rag_scores["faithfulness"] == 1.0
"""


def chat(length: int, *metrics: str) -> str:
    return CHAT.replace("LENGTH", str(length)).replace("METRICS", str([*metrics]))


def test_an_exchange_more_asks_for_itself_alone(run: RunPytest, server: FakeOpenAI) -> None:
    """Ten exchanges ask twenty times; a second run asks nothing, and one with an eleventh exchange twice."""
    for how, length, calls in ((MANY, 10, 20), (SERIAL, 10, 20), (SERIAL, 11, 22)):
        run(*JUDGED, *how, test_chat=chat(length, "faithfulness")).assert_outcomes(passed=length)
        assert server.calls == calls
    run(*JUDGED, "--rag-cache=replay", test_chat=chat(11, "faithfulness")).assert_outcomes(passed=11)
    assert server.calls == 22


def test_a_rating_of_each_turn_asks_twice(run: RunPytest, server: FakeOpenAI) -> None:
    """Where all is found: no turn is rated again."""
    server.answer = lambda body: (
        '{"reason": "All of it.", "rating": 2}' if "rating" in str(body) else answer_sensibly(body)
    )
    run(*JUDGED, test_chat=chat(10, "faithfulness", "response_groundedness")).assert_outcomes(passed=10)
    assert server.calls == 20 + 20
