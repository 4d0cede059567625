"""No message of this package has a key that another error said: on the terminal, in junit, in files and warnings."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_ragmetrics import evaluate, metric
from pytest_ragmetrics.cli import main
from pytest_ragmetrics.core.errors import DatasetError, RagMetricsError, UnscoredError
from pytest_ragmetrics.judges.embedders.specs import check_embedder_spec
from pytest_ragmetrics.judges.specs import check_spec
from tests.plugin.conftest import RunPytest

# Made up; none is a key of anything. The last has no form of its own, and is that of the environment.
KEYS = (
    "sk-proj-Zq0123456789abcdefghij",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "Bearer abcdef0123456789abcdef",
    "AKIA0123456789ABCDEF",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
)
SAID = " and ".join(KEYS)
SOURCES = {
    "test_application": """
        @pytest.fixture(scope="session")
        def rag_respond():
            def respond(sample): raise KeyError(SAID)
            return respond
        @pytest.mark.rag_dataset([{"user_input": "?"}], metrics=["token_f1"])
        def test_it(rag_sample): pass
    """,
    "test_metric": """
        @metric
        def own(response): raise ValueError(SAID)
        @pytest.mark.rag_dataset([{"user_input": "?", "response": "a"}], metrics=[own])
        def test_it(rag_sample): pass
    """,
    "test_judge": """
        def judge(prompt): raise RuntimeError(SAID)
        def test_it(): assert_faithful("Ivy climbs.", ["Ivy climbs."], judge=judge)
    """,
    "test_judge_of_ours": """
        def judge(prompt): raise JudgeError(SAID)
        def test_it(): Faithfulness(judge=judge).score(response="Ivy climbs.", contexts=["Ivy climbs."])
    """,
    "test_factory": """
        def made(): raise OSError(SAID)
        def test_it(): assert_faithful("Ivy climbs.", ["Ivy climbs."], judge=__name__ + ":made")
    """,
    "test_embedder": """
        def embed(texts): raise RuntimeError(SAID)
        def test_it(): SemanticSimilarity(embedder=embed).score(response="a", reference="b")
    """,
    "test_table": """
        def judge(prompt): raise RuntimeError(SAID)
        def test_it(rag_evaluate):
            table = rag_evaluate([{"response": "Ivy.", "contexts": ["Ivy."]}] * 2, [Faithfulness(judge=judge)])
    """,
    "test_secrets": """
        def test_helper(): assert_no_secrets(SAID)
        def test_plain(): assert NoSecrets().score(response=SAID) == 1.0
        def test_texts(): assert_contains(SAID, all=["Bearer abcdef"], none=[SAID.split()[0]])
        def test_values(): assert_json({"key": SAID}, schema={"properties": {"key": {"type": "number"}}})
        @pytest.mark.rag_dataset([{"user_input": "?", "answer": SAID}], metrics={"no_secrets": 1.0, "valid_json": 1.0})
        def test_row(rag_sample): pass
        @pytest.mark.rag_dataset([{"user_input": "?", "answer": {"key": SAID}}], metrics={"no_secrets": 1.0})
        def test_json(rag_sample): pass
        @pytest.mark.rag_gate("no_secrets", mean=1.0)
        @pytest.mark.rag_dataset([{"user_input": "?", "answer": SAID}], metrics=["no_secrets"])
        def test_gate(rag_scores): assert rag_scores["no_secrets"] == 1.0
    """,
    "test_choice": """
        def where(sample): raise RuntimeError(SAID)
        @pytest.mark.rag_dataset([{"user_input": "?"}], metrics=["token_f1"], where=where)
        def test_it(rag_sample): pass
    """,
    "test_row": """
        @pytest.mark.rag_dataset([{"user_input": "?", "response": ["a", SAID]}, {SAID: 1}], metrics=["token_f1"])
        def test_it(rag_sample): pass
    """,
}
HEAD = """
import pytest
from pytest_ragmetrics import JudgeError, assert_contains, assert_faithful, assert_json, assert_no_secrets, metric
from pytest_ragmetrics.metrics import Faithfulness, NoSecrets, SemanticSimilarity, TokenF1
SAID = "".join(map(chr, {codes}))
"""


def hidden(text: str) -> str:
    """Return a test file in which the keys are in no line that pytest could show."""
    return HEAD.format(codes=[*map(ord, SAID)]) + dedent(text)


def shown_in(text: str) -> list[str]:
    return [key for key in KEYS if key in text]


@pytest.fixture(autouse=True)
def _own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the environment name the last key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEYS[-1])


def test_no_message_has_a_key(run: RunPytest, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(hidden("def pytest_ragmetrics_result(item, record): raise ValueError(SAID)"))
    observed = f"{HEAD.format(codes=[97])}def test_it(): TokenF1().score(response='a', reference='a')\n"
    suite = {name: hidden(text) for name, text in SOURCES.items()}
    files = ("--junitxml=junit.xml", "--rag-json=run.json", "--rag-report=page.html", "--rag-markdown=table.md")
    shown = ("-rA", "--tb=long", "--continue-on-collection-errors")
    result = run(*files, *shown, test_observed=observed, **suite)
    assert "***" in result.stdout.str()
    written = {name: result.text(name) for name in ("junit.xml", "run.json", "page.html")}
    written |= {"out": result.stdout.str(), "err": result.stderr.str()}
    assert {name: shown_in(text) for name, text in written.items()} == {name: [] for name in written}
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] == 1
    assert outcomes["failed"] + outcomes["errors"] >= len(SOURCES) - 1


@pytest.mark.parametrize("key", KEYS)
def test_errors_show_no_key(key: str) -> None:
    for error in (RagMetricsError(f"a {key} b"), UnscoredError(f"a {key} b"), DatasetError(f"a {key} b", file=key)):
        assert not shown_in(f"{error} {error!r}")
        assert "a *** b" in str(error)
    for check in (check_spec, check_embedder_spec):
        with pytest.raises(ValueError, match=r"\*\*\*.* is not one of auto, local, openai:MODEL") as caught:
            check(key)
        assert not shown_in(str(caught.value))


@pytest.mark.parametrize("text", ["a risk-based, task-oriented approach", "an ollama key", "sk-learn", "€ş你"])
def test_words_stay(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "ollama")
    assert str(RagMetricsError(text)) == text


def test_tables_and_commands_show_no_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @metric
    def own(response: str) -> float:
        raise ValueError(SAID)

    rows = [{"response": "first", "contexts": ["Ivy."]}]
    table = evaluate(rows, [own])
    assert "***" in str(table.rows[0].unscored)
    assert not shown_in(f"{table} {table.to_json()} {[row.unscored for row in table.rows]}")
    scored = evaluate([{"response": SAID, "must_not_contain": [KEYS[0]]}], ["no_secrets", "contains"])
    assert not shown_in(f"{scored} {scored.to_json()} {scored.to_csv()}")
    (tmp_path / "factory.py").write_text(f"def made():\n    raise ValueError({SAID!r})\n", "utf-8")
    (tmp_path / "rows.jsonl").write_text(json.dumps(rows[0]) + "\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    judged = ["--metrics=faithfulness", "--judge=factory:made", f"--output={tmp_path / 'scores.jsonl'}"]
    assert main(["score", str(tmp_path / "rows.jsonl"), *judged]) == 1
    out, err = capsys.readouterr()
    assert "***" in err
    assert not shown_in(out + err)
