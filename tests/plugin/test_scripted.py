"""Conversations that an application answers turn by turn: rows of questions alone, and beginnings of conversations."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from tests.plugin.conftest import MANY, SERIAL, Run, RunPytest

SUITE = """
    import asyncio, json, os, threading
    from collections import Counter
    from pytest_ragmetrics.metrics.base import Metric
    def asks(text): return {"role": "user", "content": text}
    def says(text, **more): return {"role": "assistant", "content": text, **more}
    RULES = {"role": "system", "content": "Be brief."}
    ROWS = [
        {"id": "pump", "messages": [RULES, asks("Wie lange?"), asks("Danach?"), asks("Danke!")], "reference": "Zwei."},
        {"id": "valve", "messages": [asks("Open?"), says("Slowly.", contexts=["Slowly."]), asks("Close?")]},
        {"id": "pool", "messages": [asks("弁は?"), asks("弁は?")]},
        {"id": "alone", "question": "How long?"},
    ]
    @metric
    def hum(response): return 1.0
    class Whole(Metric):
        name, of_conversation = "whole", True
        def measure(self, sample):
            roles = [message["role"][0] for message in sample.metadata.get("messages", ())]
            return MetricResult(1.0, metric=self.name, reason="".join(roles))
    inside, most, lock, failed = Counter(), [0], threading.Lock(), set()
    def note(sample):
        own = sample.metadata
        row = [sample.id, own.get("conversation"), sample.user_input, own.get("session"), os.getpid()]
        with lock, open("asked.txt", "a") as file:
            file.write(json.dumps([*row, own.get("messages"), own.get("earlier_contexts")]) + "\\n")
        if sample.id in os.environ.get("SKIPPED", "").split():
            pytest.skip("closed today")
        if sample.id in os.environ.get("LOST", "").split() and sample.id not in failed:
            failed.update([sample.id] if os.environ.get("ONCE") else [])
            raise KeyError("lost")
    def enter(sample, step):
        with lock:
            inside[sample.metadata.get("session", sample.id)] += step
            assert inside[sample.metadata.get("session", sample.id)] <= 1, "two turns of one conversation at once"
            most[0] = max(most[0], sum(inside.values()))
    def answer(sample):
        if sample.metadata.get("turn") == 3:
            return f"A {sample.id}"
        return {"answer": f"A {sample.id}", "contexts": [f"C {sample.id}"]}
    APPLICATION
    @pytest.mark.rag_dataset(ROWS, metrics=[hum, "lexical_grounding", Whole()], turns="each")
    def test_each(rag_sample): check(rag_sample)
    @pytest.mark.rag_dataset(ROWS[:3], metrics=[hum])
    def test_last(rag_sample): check(rag_sample)
    def check(sample):
        assert "session" not in sample.metadata
        with lock, open("seen.txt", "a") as file:
            own = sample.metadata
            rest = own.get("messages"), own.get("earlier_contexts"), own.get("turn"), own.get("cluster")
            row = [sample.id, sample.response, sample.reference, *rest, sample.retrieved_contexts]
            file.write(json.dumps(row) + "\\n")
"""
SYNC = """
    @pytest.fixture(scope="SCOPE")
    def rag_respond():
        is_open = [True]
        def respond(sample):
            assert is_open, "asked after it was closed"
            enter(sample, 1)
            try:
                note(sample)
                threading.Event().wait(0.02)
                return answer(sample)
            finally:
                enter(sample, -1)
        yield respond
        is_open.clear()
"""
ASYNC = """
    @pytest.fixture(scope="session")
    def rag_respond():
        async def respond(sample):
            enter(sample, 1)
            try:
                note(sample)
                for _ in range(200 if "COUNT" in os.environ else 1):
                    await asyncio.sleep(0.01)
                    if most[0] == int(os.environ.get("COUNT", "0")):
                        break
                return answer(sample)
            finally:
                enter(sample, -1)
        return respond
"""
NAMES = [
    "alone",
    "pool",
    "pool-t1",
    "pool-t2",
    "pump",
    "pump-t1",
    "pump-t2",
    "pump-t3",
    "valve",
    "valve-t1",
    "valve-t2",
]
LAST = ["pool", "pump", "valve"]
OPTIONS = ("--rag-json=out.json", "-rA", "-p", "no:cacheprovider")


def suite(application: str) -> str:
    """Return the suite with an application."""
    return SUITE.replace("    APPLICATION\n", application.lstrip("\n"))


def lines(ran: Run, name: str) -> list[list[Any]]:
    """Return the rows that the suite has written into a file, and remove it."""
    file = ran.folder / name
    found = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    file.unlink(missing_ok=True)
    return found


def sessions(ran: Run) -> dict[str, list[list[Any]]]:
    """Return what the application was asked by session."""
    found: dict[str, list[list[Any]]] = defaultdict(list)
    for row in lines(ran, "asked.txt"):
        found[row[3] or ""].append(row)
    return found


def says(*texts: str) -> list[dict[str, str]]:
    """Return messages: ``"u Open?"`` is what the user says."""
    roles = {"u": "user", "a": "assistant", "s": "system"}
    return [{"role": roles[text[0]], "content": text[2:]} for text in texts]


def plain(messages: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{"role": each["role"], "content": each["content"]} for each in messages]


@pytest.mark.parametrize(
    ("how", "application"),
    [
        (["-o", "rag_respond_threads=1"], SYNC.replace("SCOPE", "function")),
        (MANY, SYNC.replace("SCOPE", "module")),
        ([*MANY, "--dist=worksteal", "--rag-concurrency=1"], ASYNC),
    ],
    ids=["function, one thread", "module, workers", "async, workers"],
)
def test_turns_are_answered_in_order(run: RunPytest, how: list[str], application: str) -> None:
    ran = run(*OPTIONS, *how, test_talks=suite(application))
    ran.shows(passed=len(NAMES) + len(LAST))
    asked = sessions(ran)
    # A session each of pump and pool for both functions, of valve for turns and for the last answer: it has no script.
    alone = asked.pop("")
    assert sorted(row[0] for row in alone) == ["alone", "valve"]
    assert sorted([row[0] for row in rows] for rows in asked.values()) == sorted(
        [["pool-t1", "pool-t2"], ["pump-t1", "pump-t2", "pump-t3"]] * 2 + [["valve-t2"]]
    )
    assert all(len({row[4] for row in rows}) == 1 for rows in asked.values())
    third = next(rows[2] for rows in asked.values() if rows[0][1] == "pump")
    told = says("s Be brief.", "u Wie lange?", "a A pump-t1", "u Danach?", "a A pump-t2", "u Danke!")
    assert (third[2], plain(third[5]), third[6]) == ("Danke!", told, [[1, "C pump-t1"], [2, "C pump-t2"]])
    assert plain(third[5]) == third[5], "providers refuse other keys"
    seen = {(row[0], row[5] if row[5] == "all" else None): row for row in lines(ran, "seen.txt")}
    whole = seen["pump", "all"]
    assert whole[1:4] == ["A pump-t3", "Zwei.", [*told, *says("a A pump-t3")]]
    assert seen["pump", None][1:4] == whole[1:4]
    assert seen["pump-t1", None][1:3] == ["A pump-t1", None]
    assert seen["pump-t3", None][1:4] == whole[1:4]
    assert seen["valve-t2", None][2:] == [
        None,
        [*lines_of_valve(), *says("a A valve-t2")],
        [[1, "Slowly."]],
        2,
        "valve",
        ["C valve-t2"],
    ]
    assert plain(seen["pool", "all"][3]) == says("u 弁は?", "a A pool-t1", "u 弁は?", "a A pool-t2")
    records = {name: test["records"] for name, test in ran.named.items()}
    assert [it["metric"] for it in records["test_each[pump-t2]"]] == ["hum", "lexical_grounding"]
    assert [(it["metric"], it["reason"]) for it in records["test_each[pump]"]] == [("whole", "suauaua")]
    (lacking,) = (it for it in records["test_each[pump-t3]"] if it["metric"] == "lexical_grounding")
    assert lacking["reason"] == "no contexts in this turn"


def lines_of_valve() -> list[dict[str, Any]]:
    return [*says("u Open?"), {**says("a Slowly.")[0], "contexts": ["Slowly."]}, *says("u Close?")]


def test_conversations_are_answered_at_the_same_time(run: RunPytest) -> None:
    """The application waits until four answers are under way: a conversation takes the room of one row."""
    ran = run(*OPTIONS, "--rag-concurrency=4", "-k", "each", env={"COUNT": "4"}, test_talks=suite(ASYNC))
    ran.shows(passed=len(NAMES))


def test_an_earlier_turn_is_answered_without_its_test(run: RunPytest) -> None:
    ran = run(*OPTIONS, "-k", "each and (pump-t2 or valve-t2)", test_talks=suite(ASYNC))
    ran.shows(passed=2)
    assert sorted(row[0] for row in lines(ran, "asked.txt")) == ["pump-t1", "pump-t2", "valve-t2"]


def test_a_turn_without_an_answer_ends_its_conversation(run: RunPytest) -> None:
    env = {"LOST": "pump-t2", "SKIPPED": "pool-t1"}
    ran = run(*OPTIONS, *MANY, env=env, test_talks=suite(SYNC.replace("SCOPE", "module")))
    ran.shows_all(
        "*row 'pump-t2': rag_respond raised *KeyError: 'lost'*",
        "*row 'pump-t3': turn 2 was not answered*",
        "*row 'pump': turn 2 was not answered*",
        passed=6,
        skipped=4,
        errors=4,
    )
    asked = [row[0] for row in lines(ran, "asked.txt")]
    assert "pump-t3" not in asked
    assert "pool-t2" not in asked
    ran = run(*OPTIONS, "-p", "rerunfailures", "--reruns=1", env={**env, "SKIPPED": "", "ONCE": "1"})
    ran.shows(passed=len(NAMES) + len(LAST))
    counts = [row[0] for row in lines(ran, "asked.txt")]
    # Both functions fail once together, and go on where they were.
    assert (counts.count("pump-t1"), counts.count("pump-t2"), counts.count("pump-t3")) == (2, 3, 2)


LOG = """
    def asks(text): return {"role": "user", "content": text}
    def says(text): return {"role": "assistant", "content": text}
    @metric
    def hum(response): return 1.0
    LOG = {"id": "log", "messages": [asks("Open?"), says("Slowly."), asks("Bye")]}
    @pytest.mark.rag_gate("hum", mean=0.5)
    @pytest.mark.rag_dataset([LOG], metrics=[hum], turns="each")
    def test_log(rag_scores): pass
    @pytest.mark.rag_dataset([{"id": "asks", "messages": [asks("Open?"), asks("Close?")]}], metrics=[hum], turns="each")
    def test_asks(rag_scores): pass
"""


def test_without_an_application(run: RunPytest) -> None:
    """A log that ends in the words of the user has one turn less; questions alone have no score."""
    ran = run(*OPTIONS, test_log=LOG)
    ran.shows_all("*row 'asks-t1' has no response, and no application answers it*", passed=2, errors=2)
    assert "test_log[log-t2]" not in ran.named
    answered = LOG + "    @pytest.fixture\n    def rag_respond(): return lambda sample: 'Bye!'\n"
    ran = run(*OPTIONS, test_log=answered)
    ran.shows(passed=5)
    assert ran.named["test_log[log-t2]"]["records"][0]["score"] == 1.0


def test_a_dry_run_asks_no_application(run: RunPytest) -> None:
    ran = run("--rag-dry-run", "-p", "no:cacheprovider", test_talks=suite(ASYNC))
    ran.assert_outcomes(skipped=len(NAMES) + len(LAST))
    assert not lines(ran, "asked.txt")


DRAWN = """
    import os
    def asks(text): return {"role": "user", "content": text}
    ROWS = [{"id": f"r{n}", "messages": [asks("A?"), asks("B?"), asks("C?")]} for n in range(20)]
    @metric
    def hum(response): return 1.0
    @pytest.fixture(scope="session")
    def rag_respond():
        def respond(sample):
            own = sample.metadata
            assert len(own["messages"]) == 2 * own["turn"] - 1
            with open("asked.txt", "a") as file:
                file.write(f'["{sample.id}"]\\n')
            return f"A {sample.id}"
        return respond
    @pytest.mark.rag_gate("hum", mean=0.6, confidence=0.9, stop_when_decided=True)
    @pytest.mark.rag_dataset(ROWS, metrics=[hum], turns="each")
    def test_drawn(rag_sample): assert rag_sample.response == f"A {rag_sample.id}"
"""


def test_a_drawn_set_is_asked_until_it_is_decided(run: RunPytest) -> None:
    found = []
    for how in (SERIAL, MANY):
        ran = run(*OPTIONS, "--rag-seed=north", *how, test_drawn=DRAWN)
        outcomes = ran.parseoutcomes()
        assert outcomes["passed"] + outcomes["skipped"] == 61
        assert outcomes["skipped"] > 10
        found.append(outcomes["passed"])
        asked = [row[0] for row in lines(ran, "asked.txt")]
        assert len(asked) == len({*asked})
    assert found[0] == found[1]


AGENT = """
    import json
    def asks(text): return {"role": "user", "content": text}
    CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "search", "arguments": "{}"}}]}
    def turn(n):
        found = {"role": "tool", "tool_call_id": "c1", "content": f"C{n}"}
        return [CALL, found, {"role": "assistant", "content": f"A{n}"}]
    RETURNS = {
        "whole": lambda sample, n: [*sample.metadata["messages"], *turn(n)],
        "turn": lambda sample, n: [asks(sample.user_input), *turn(n)],
        "answer": lambda sample, n: turn(n),
    }
    ROWS = [{"id": name, "messages": [asks("A?"), asks("B?"), asks("C?")]} for name in RETURNS]
    ROWS.append({"id": "odd", "messages": [asks("A?"), asks("B?")]})
    @metric
    def hum(retrieved_contexts): return float(len(retrieved_contexts))
    @pytest.fixture(scope="session")
    def rag_respond():
        def respond(sample):
            own = sample.metadata
            if own["conversation"] == "odd":
                return {"answer": "A1", "messages": [{"role": "referee", "content": "So."}]}
            return {"messages": RETURNS[own["conversation"]](sample, own["turn"])}
        return respond
    @pytest.mark.rag_dataset(ROWS, metrics=[hum], turns="each", contexts_from="tools")
    def test_agent(rag_sample):
        n = rag_sample.metadata["turn"]
        assert (rag_sample.response, rag_sample.retrieved_contexts) == (f"A{n}", (f"C{n}",))
        roles = [each["role"] for each in rag_sample.metadata["messages"]]
        assert roles == ["user", "assistant", "tool", "assistant"] * n
        assert len(rag_sample.metadata["earlier_contexts"]) == n - 1
"""


def test_an_agent_may_return_its_messages(run: RunPytest) -> None:
    """Those of the conversation, of the turn, or what comes after the question; results of tools are contexts."""
    ran = run(*OPTIONS, test_agent=AGENT)
    ran.shows_all("*row 'odd-t1': rag_respond returned messages that cannot be read: *referee*", passed=9, errors=2)


ENDING = """
    import os, time
    def asks(text): return {"role": "user", "content": text}
    ROWS = [{"id": f"r{n}", "messages": [asks(text) for text in "ABCD"], "session": n} for n in range(2)]
    @metric
    def hum(response): return 1.0
    @pytest.fixture(scope="module")
    def rag_respond():
        def respond(sample):
            with open("asked.txt", "a") as file:
                file.write(f'["{sample.id}", {os.getpid()}]\\n')
            assert len(sample.metadata["messages"]) == 2 * int(sample.id[-1]) - 1
            assert sample.metadata["session"] == int(sample.id[1]), "a row may have one of its own"
            time.sleep(float(os.environ.get("PAUSE", "0.3")))
            return sample.id
        return respond
    @pytest.mark.rag_dataset(ROWS, metrics=[hum], turns="each")
    def test_ending(rag_sample):
        if rag_sample.id == os.environ.get("CRASH"):
            time.sleep(1)  # xdist fails where it sends to a worker that ends
            os._exit(3)
        assert rag_sample.id != os.environ.get("FAIL")
        assert rag_sample.metadata["session"] == int(rag_sample.id[1])
"""


def test_the_turns_of_a_generated_conversation_have_references(run: RunPytest) -> None:
    """What `ragmetrics generate --follow-ups` writes on the messages of the user belongs to the answers to them."""
    suite = """
        FERRY = "On Mondays the ferry leaves at nine, on Sundays at ten."
        def asks(text, reference):
            return {"role": "user", "content": text, "reference": reference, "reference_contexts": [FERRY]}
        TALK = [asks("When does it leave on Mondays?", "At nine."), asks("And on Sundays?", "At ten.")]
        ROWS = [{"id": "ferry", "messages": TALK, "metadata": {"file": "a.md", "support": [FERRY]}}]
        @pytest.fixture(scope="session")
        def rag_respond():
            said = {"And on Sundays?": "At ten."}
            return lambda it: {"response": said.get(it.user_input, "At nine."), "contexts": [FERRY]}
        @pytest.mark.rag_dataset(ROWS, metrics={"exact_match": 1.0, "non_llm_context_recall": 1.0}, turns="each")
        def test_each(rag_sample): assert rag_sample.reference_contexts == (FERRY,)
        @pytest.mark.rag_dataset(ROWS, metrics={"exact_match": 1.0})
        def test_last(rag_sample): assert rag_sample.reference == "At ten."
    """
    run(test_generated=suite).assert_outcomes(passed=3)


def test_a_run_that_ends_early_does_not_go_on_with_conversations(run: RunPytest) -> None:
    ran = run(*OPTIONS, "-x", env={"FAIL": "r0-t1"}, test_ending=ENDING)
    ran.assert_outcomes(failed=1)
    asked = {row[0] for row in lines(ran, "asked.txt")}
    assert {"r0-t1"} <= asked <= {f"r{row}-t{turn}" for row in "01" for turn in "123"}


@pytest.mark.slow
def test_a_crashed_worker_leaves_its_conversation_to_another(run: RunPytest) -> None:
    """Which holds it from the beginning."""
    env = {"CRASH": "r0-t2", "PAUSE": "0.8"}
    ran = run(*OPTIONS, "-p", "xdist", "-n1", "--max-worker-restart=1", env=env, test_ending=ENDING)
    ran.assert_outcomes(passed=7, failed=1)
    asked = defaultdict(list)
    for name, worker in lines(ran, "asked.txt"):
        asked[worker, name[:2]].append(name[3:])
    assert all(turns == ["t1", "t2", "t3", "t4"][: len(turns)] for turns in asked.values())
    assert len({worker for worker, _ in asked}) == 2
