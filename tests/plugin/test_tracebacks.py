"""A failure shows the user's code and a message, and no code of this package."""

from __future__ import annotations

import fnmatch
import re

import pytest

from tests.plugin.conftest import RunPytest

SUITE = """
    from pytest_ragmetrics.metrics import Faithfulness
    ROW = {"id": "pump", "question": "How long?", "answer": FALSE, "contexts": [SOURCE]}
    @metric
    async def kindness(response, ask): return await ask("Is it kind?")
    def test_evaluate(): evaluate([ROW], ["faithfulness"])
    def test_rag_evaluate(rag_evaluate): rag_evaluate([ROW], ["faithfulness"])
    def test_sample(): assert_sample(ROW, faithfulness=0.8)
    def test_score(): assert Faithfulness().score(response=FALSE, retrieved_contexts=[SOURCE]) >= 0.8
    def test_calibrated(): rag_calibrated("faithfulness", "labels.jsonl", min_kappa=0.6)
    def test_labels(): rag_calibrated("faithfulness", [{**ROW, "label": 1}] * 2, min_kappa=0.6)
    def test_rag_file(rag_evaluate): rag_evaluate("labels.jsonl", ["faithfulness"])
    def test_unknown(): evaluate([ROW], ["faithfullness"])
    @pytest.mark.rag_dataset([ROW], metrics=["quoted_spans_alignment"])
    def test_rows(rag_scores): assert rag_scores["number_aligned"] >= 0.9
    def test_own(): assert_metric(kindness, ROW, min=0.5)
    def test_fixture(rag_embedder): pass
    @pytest.fixture(scope="session")
    def rag_respond(): return lambda: "Two minutes."
    @pytest.mark.rag_dataset([{"id": "pump", "question": "How long?"}])
    def test_call(rag_sample): pass
"""
SAID = {
    **dict.fromkeys(("test_evaluate", "test_rag_evaluate", "test_sample", "test_score"), "set OPENAI_API_KEY"),
    **dict.fromkeys(("test_calibrated", "test_rag_file"), "labels.jsonl: there is no such file"),
    "test_labels": "the id 'pump' is already used in rows[0]: give each row its own, or none",
    "test_unknown": "did you mean faithfulness?",
    "test_rows": "there is no metric 'number_aligned': did you mean numbers_aligned or names_aligned?",
    "test_own": "write await ask(Critique(definition='Is it kind?'",
    "test_fixture": "pytest_ragmetrics.JudgeNotConfiguredError: this metric needs an embedder",
    "test_call": "rag_respond raised TypeError: rag_respond.<locals>.<lambda>() takes 0 positional arguments",
}


def test_frames_of_this_package_are_hidden(run: RunPytest) -> None:
    result = run("--rag-judge=openai:m", test_it=SUITE)
    result.assert_outcomes(failed=len(SAID) - 2, errors=2)
    shown = result.stdout.str().replace("ERROR at setup of ", "").replace("= FAILURES", "\n= FAILURES")
    _, *sections = shown.partition("= ERRORS")[2].partition("= RAG metrics")[0].split("\n_____")
    assert len(sections) == len(SAID)
    for section in sections:
        name = section.strip("_ ").partition(" ")[0].partition("[")[0]
        assert SAID[name] in section
        assert "pytest_ragmetrics/" not in section
        assert not re.search("concurrent|direct cause", section)
        assert len(section.splitlines()) < 25
    whole = run("--rag-judge=openai:m", "--full-trace", "-k", "test_evaluate").stdout.str()
    assert "pytest_ragmetrics/evaluation/evaluate.py" in whole


APPLICATION = """
    import json
    class Lookup:
        def find(self, sample):
            {body}
    @pytest.fixture(scope="session")
    def rag_respond():
        {kind}def respond(sample):
            return Lookup().find(sample)
        return respond
    @pytest.mark.rag_dataset([{{"id": "a", "question": "Why?"}}], metrics={{"lexical_grounding": 0.5}})
    def test_row(rag_sample): pass
"""
NO_TEXT = "; a Sample is no text: its question is sample.user_input"


#: Bodies of an application that fails, and what is said of each.
RAISED = {
    "raise ConnectionError('database not reachable')": "ConnectionError: database not reachable",
    "return {}['answer']": "KeyError: 'answer'",
    "return sample.lower()": "AttributeError: a Sample has no attribute 'lower'; its texts are sample.user_input*",
    "return sample + '!'": f"TypeError: unsupported operand *{NO_TEXT}",
    "return 'Q: ' + sample": f"TypeError: can only concatenate str *{NO_TEXT}",
    "return len(sample)": f"TypeError: object of type 'Sample' has no len(){NO_TEXT}",
    "return 'why' in sample": f"TypeError: argument of type 'Sample' *{NO_TEXT}",
    "return sample[0]": f"TypeError: 'Sample' object is not subscriptable{NO_TEXT}",
    "return ' '.join([sample])": f"TypeError: sequence item 0: *{NO_TEXT}",
    "return json.dumps({'q': sample})": f"TypeError: Object of type Sample is not JSON serializable{NO_TEXT}",
    "return len(7)": "TypeError: object of type 'int' has no len()",
}


@pytest.mark.parametrize("kind", ["", "async "])
def test_an_error_of_an_application_shows_its_own_lines_alone(run: RunPytest, kind: str) -> None:
    result = run(**{f"test_{n:02}": APPLICATION.format(body=body, kind=kind) for n, body in enumerate(RAISED)})
    result.assert_outcomes(errors=len(RAISED))
    errors, _, summary = result.stdout.str().partition("= ERRORS =")[2].partition("short test summary")
    _, *sections = errors.split("\n_____")
    assert summary.count("::test_row[a] - pytest_ragmetrics.UnscoredError: row") == len(RAISED)
    for shown, (body, said) in zip(sections, RAISED.items(), strict=True):
        wanted = f"E   *pytest_ragmetrics.UnscoredError: row 'a': rag_respond raised {said.replace('[', '[[]')}"
        assert fnmatch.filter(shown.splitlines(), wanted), shown
        assert re.search(rf"^>? +{re.escape(body)}$", shown, re.MULTILINE)
        assert not re.search("direct cause|_called|pytest_fixture_setup", shown)


def test_an_error_with_a_cause_of_the_user_shows_both(run: RunPytest) -> None:
    lines = ("try:", "    1 / 0", "except ZeroDivisionError as error:", "    raise OSError('late') from error")
    result = run(test_it=APPLICATION.format(body="\n            ".join(lines), kind=""))
    shown = result.stdout.str()
    assert (shown.count("direct cause"), shown.count("1 / 0")) == (1, 2)
    result.shows("E   *ZeroDivisionError: division by zero", "E   *UnscoredError: row 'a': *OSError: late")
