"""Several answers to a row: each is a test, and gates count those to one row together."""

from __future__ import annotations

import json
from collections import Counter

import pytest
import scipy

from pytest_ragmetrics.cli import main
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import MANY, RunPytest, unpacked

#: Of r1 the second answer is wrong, of r2 the first and the third; an own number says nothing.
SUITE = """
    ROWS = [{"id": f"r{n}", "question": "Is it blue?", "reference": "Yes."} for n in range(4)]
    OWN = {"id": "own", "question": "Is it?", "response": "Blue."}
    WRONG = {("r1", 2), ("r2", 1), ("r2", 3)}
    @metric
    def blue(response): return float(response != "Red.")
    @pytest.fixture(scope="session")
    def rag_respond():
        def respond(sample):
            number = sample.metadata.get("answer")
            with open("asked.txt", "a") as file:
                file.write(f"{sample.id} {number}\\n")
            own = {"metadata": {"answer": 9}} if number else {}
            return {"response": "Red." if (sample.id, number) in WRONG else "Blue.", **own}
        return respond
    @pytest.mark.rag_gate("blue", mean=0.8, confidence=0.95)
    @pytest.mark.rag_gate("blue", rate=0.9, min=0.5)
    @pytest.mark.rag_gate("blue", rate=0.9, min=0.5, all_pass=True)
    @pytest.mark.rag_gate("blue", rate=0.5, min=0.5, all_pass=True, confidence=0.9, inconclusive="pass")
    @pytest.mark.rag_dataset([*ROWS, OWN], metrics={blue: 0.5}, answers=3)
    def test_three(rag_sample): assert rag_sample.metadata.get("answer") in (1, 2, 3, None)
    @pytest.mark.rag_dataset(ROWS[:1], metrics=[blue])
    def test_plain(rag_sample): pass
    @pytest.mark.rag_dataset(ROWS[:1], metrics=[blue], answers=1)
    def test_once(rag_sample): assert "answer" not in rag_sample.metadata
"""
NAMES = [f"r{row}-answer{number}" for row in range(4) for number in (1, 2, 3)]


def test_each_answer_is_a_test(run: RunPytest) -> None:
    ran = run(*MANY, "-o", "rag_answers=2", "--rag-json=out.json", "--rag-report=out.html", "-v", test_it=SUITE)
    ran.shows_all(
        "blue pass rate 0.77 < 0.90 (10 of 13 scores >= 0.5): failed",
        "  13 answers to 5 rows: those to a row count together",
        "blue pass rate 0.60 < 0.90 (3 of 5 rows with every score >= 0.5): failed",
        "  0.00  r2, 2 of 3 answers",
        "  0.00  r1, 1 of 3 answers",
        "gate: share of rows with every blue >= 0.5 0.600, needed >= 0.9: failed (n 5), *",
        "1 row has a response already: it was scored once, answers= is for rows without one",
        passed=10 + 2 + 1 + 1,
        failed=3 + 3,
    )
    asked = Counter(ran.text("asked.txt").splitlines())
    assert asked == {f"r{row} {number}": 1 for row in range(4) for number in (1, 2, 3)} | {
        "r0 1": 2,
        "r0 2": 2,
        "r0 None": 1,
    }
    tests = ran.named
    samples = {name: tests[f"test_three[{name}]"]["records"][0]["sample"] for name in (*NAMES, "own")}
    assert {(it["id"], it.get("metadata", {}).get("answer")) for it in samples.values()} == {
        *((f"r{row}", number) for row in range(4) for number in (1, 2, 3)),
        ("own", None),
    }
    assert [name for name in tests if name.startswith(("test_plain", "test_once"))] == [
        "test_plain[r0-answer1]",
        "test_plain[r0-answer2]",
        "test_once[r0]",
    ]
    gates = {name.partition("[gate-blue-")[2][:-1]: gate for name, gate in ran.gates.items()}
    every = gates["rate-0.5-min-0.5-all-pass-confidence-0.9-inconclusive-pass"]
    assert (every["all_pass"], every["n"], every["total"], every["value"]) == (True, 5, 13, 0.6)
    # Clopper and Pearson's interval of 3 of 5 rows, whatever the answers.
    bounds = (scipy.stats.beta.ppf(0.05, 3, 3), scipy.stats.beta.ppf(0.95, 4, 2))
    assert (every["low"], every["high"]) == pytest.approx(bounds, abs=1e-6)
    # Answers that agree say no more than one: the interval is that of about four rows, not of 13 answers.
    assert gates["mean-0.8-confidence-0.95"]["low"] < 0.35
    page = unpacked(ran.text("out.html"))
    # Once for readers without scripts, and once packed.
    assert [page.count(f"<span>{n} of 3 answers passed</span>") for n in (1, 2, 3)] == [6, 6, 12]
    assert [page.count(f">{n} of 3 answers passed</p>") for n in (1, 2, 3)] == [6, 6, 12]
    assert page.count('aria-label="Answers to the row"') == 12 + 2
    assert 'title="answer"' not in page


def test_answers_are_paired_by_their_number(run: RunPytest, capsys: pytest.CaptureFixture[str]) -> None:
    run("--rag-json=before.json", test_it=SUITE)
    suite = SUITE.replace('("r1", 2)', '("r1", 3)').replace("def test_three", "def test_moved")
    for name in ("three", "moved"):
        text = suite if name == "moved" else suite.replace("test_moved", "test_three")
        ran = run("--rag-baseline=before.json", "--rag-json=out.json", "-k", name, test_it=text)
        ran.shows("against the baseline: 1 better, 1 worse, *")
    capsys.readouterr()
    assert main(["report", "diff", "before.json", "out.json", "out.json"]) == 0
    said = capsys.readouterr().out
    assert "  r1, answer 2: blue 0.00, 1.00, 1.00: tie" in said
    assert "  r1, answer 3: blue 1.00, 0.00, 0.00: before wins" in said


def test_shards_decide_as_one_run(run: RunPytest) -> None:
    ran = run("--rag-json=out.json", "-k", "three", test_it=SUITE)
    whole = ran.gates
    for shard, rows in {"a.json": "three and (r0 or r1)", "b.json": "three and not (r0 or r1)"}.items():
        run(f"--rag-json={shard}", "-rs", "-k", rows).shows("*of 13 tests of the set were skipped or not selected; *")
    assert main(["report", "merge", "a.json", "b.json", "-o", "out.json"]) == 1
    assert (len(ran.gates), ran.gates) == (4, whole)


def test_several_answers_stop_by_whole_rows(run: RunPytest) -> None:
    suite = SUITE.replace("range(4)", "range(30)").replace("{*", "{").partition("    @pytest.mark.rag_gate")[0]
    suite = suite.replace('WRONG = {("r1", 2), ("r2", 1), ("r2", 3)}', "WRONG = set()")
    suite += """
    @pytest.mark.rag_gate("blue", rate=0.5, min=0.5, confidence=0.95, stop_when_decided=True)
    @pytest.mark.rag_dataset(ROWS, metrics=[blue], answers=3)
    def test_three(rag_sample): pass
"""
    ran = run("--rag-json=out.json", "--rag-seed=north", test_it=suite)
    ((_, gate),) = ran.gates.items()
    assert gate["outcome"] == "passed"
    after = gate["stop"]["decided_after"]
    assert after % 3 == 0
    assert after < gate["stop"]["asked"] < 90
    decided = [line.split()[0] for line in ran.text("asked.txt").splitlines()]
    assert sum(count == 3 for count in Counter(decided).values()) >= after // 3


TALKS = """
    import threading
    def asks(text): return {"role": "user", "content": text}
    ROWS = [{"id": "pump", "messages": [asks("How long?"), asks("And then?")]}, {"id": "alone", "question": "Why?"}]
    @metric
    def hum(response): return 1.0
    lock = threading.Lock()
    @pytest.fixture(scope="session")
    def rag_respond():
        def respond(sample):
            own = sample.metadata
            with lock, open("asked.txt", "a") as file:
                said = [each["content"] for each in own.get("messages", [])]
                file.write(f"{sample.id} {own['answer']} {own.get('session')} {said}\\n")
            return f"{sample.id} {own['answer']}"
        return respond
    @pytest.mark.rag_gate("hum", rate=0.5, min=0.5, all_pass=True)
    @pytest.mark.rag_dataset(ROWS, metrics=[hum], turns="each")
    def test_each(rag_sample): check(rag_sample)
    @pytest.mark.rag_dataset(ROWS[:1], metrics=[hum])
    def test_last(rag_sample): check(rag_sample)
    def check(sample):
        assert sample.response.endswith(f" {sample.metadata['answer']}")
        said = [each["content"] for each in sample.metadata.get("messages", [])][1::2]
        assert {text[-1] for text in said} <= {str(sample.metadata["answer"])}
"""


def test_each_answer_to_a_conversation_is_held_by_itself(run: RunPytest) -> None:
    ran = run("--rag-answers=2", "--rag-json=out.json", "--rag-report=out.html", test_it=TALKS)
    ran.shows(passed=6 + 2 + 1)
    names = ["pump-t1-answer1", "pump-t1-answer2", "pump-t2-answer1", "pump-t2-answer2"]
    assert {f"test_each[{name}]" for name in names} < ran.named.keys()
    assert {"test_last[pump-answer1]", "test_last[pump-answer2]"} < ran.named.keys()
    asked = [line.split(" ", 3) for line in ran.text("asked.txt").splitlines()]
    sessions = {(row[1], row[2]) for row in asked if row[0] == "pump-t2"}
    assert len(sessions) == 4
    assert Counter(row[0] for row in asked) == {"pump-t1": 4, "pump-t2": 4, "alone": 2}
    ((_, gate),) = ran.gates.items()
    assert (gate["n"], gate["total"]) == (3, 6)
    page = unpacked(ran.text("out.html"))
    assert page.count('aria-label="Turns of the conversation"') == 4
    assert page.count('aria-label="Answers to the row"') == 8


def test_a_dry_run_counts_every_answer(run: RunPytest, server: FakeOpenAI) -> None:
    suite = """
        ROWS = [{"id": f"r{n}", "question": f"Is {n} blue?", "contexts": ["It is."]} for n in range(4)]
        @pytest.fixture
        def rag_respond(): raise RuntimeError("asked")
        @pytest.mark.rag_dataset(ROWS, metrics=["relevance", "context_relevancy"])
        def test_it(rag_scores): pass
    """
    dry = ("--rag-judge=openai:gpt-mine", "--rag-dry-run", "-p", "no:cacheprovider")
    # Contexts of a row are the same for each of its answers.
    run(*dry, test_it=suite).shows("context_relevancy        4         4       0 *", "relevance *4         4       0 *")
    run(*dry, "--rag-answers=3").shows(
        "context_relevancy       12         4       8 *", "relevance * 12        12       0 *", skipped=12
    )


def test_what_cannot_have_several_answers(run: RunPytest) -> None:
    suite = """
        @pytest.fixture
        def rag_respond(): return lambda sample: "Blue."
        BLUE = {"question": "Blue?"}
        @pytest.mark.rag_dataset([{**BLUE, "id": "a", "metadata": {"answer": "so"}}, {**BLUE, "id": "b"}], answers=2)
        def test_own(rag_sample): pass
        @pytest.mark.rag_dataset([{**BLUE, "id": "c"}, {"id": "c-answer2", "response": "Blue."}], answers=2)
        def test_taken(rag_sample): pass
    """
    ran = run("-v", test_it=suite)
    ran.shows_all(
        "*row a: its answers are numbered as 'answer' in its metadata, which has one: give that another name",
        "*row c: its answers have the id 'c-answer2' of another row: give one of the two another",
        "*test_own[[]b-answer2[]] PASSED*",
        passed=3,
        errors=2,
    )


#: Of markers of a test, and of options, that say something else than how many answers, and what to write.
WRONG = {
    "rag_dataset([], answers=0)": "answers=0 is no whole number from 1 on; write answers=3 for three answers a row",
    "rag_dataset([], answers=True)": "answers=True is no whole number from 1 on; *",
    'rag_gate("m", mean=0.5, all_pass=True)': "all_pass=True goes with rate= and the score that each answer *rate=0.9*",
    'rag_gate("m", rate=0.5, min=0.5, all_pass="yes")': "all_pass='yes' is neither True nor False; write *",
    'rag_gate("m", regression=True, all_pass=True)': "all_pass=True goes with rate= *",
    'rag_gate("m", rate=0.5, min=0.5, confidence=0.9, stop_when_decided=True, all_pass=True)': (
        "all_pass=True needs every answer to a row, and takes no stop_when_decided=; leave out one"
    ),
}


def test_wrong_arguments_say_what_to_write(run: RunPytest) -> None:
    tests = (f"@pytest.mark.{marker}\ndef test_it{number}(rag_sample): pass" for number, marker in enumerate(WRONG))
    run(test_wrong="\n".join(tests)).shows_all(*(f"*{message}" for message in WRONG.values()))
    run("--rag-answers=none", test_it=SUITE).refused("*--rag-answers: 'none' is not a whole number of at least 1")


def test_rows_without_an_application_are_scored_once(run: RunPytest) -> None:
    suite = """
        ROWS = [{"id": "r0", "contexts": ["Moss."], "reference": "Moss."}]
        @pytest.mark.rag_dataset(ROWS, metrics=["lexical_context_recall"])
        def test_it(rag_scores): pass
    """
    run("--rag-answers=3", "--rag-json=out.json", test_it=suite).shows(passed=1)


def test_all_answers_pass_with_the_stop_option(run: RunPytest) -> None:
    ran = run("--rag-stop-when-decided", "--rag-json=out.json", "-k", "three", test_it=SUITE)
    assert {gate["stop"] is None for gate in ran.gates.values() if gate["all_pass"]} == {True}
    assert len(json.loads(ran.text("out.json"))["tests"]) == 13 + 4
