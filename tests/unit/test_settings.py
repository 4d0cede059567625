"""Which of the places of a setting counts, what its text means, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_ragmetrics.plugin.settings import Settings, last_runs, read_settings


def read(
    root: Path, *, options: dict[str, str] | None = None, ini: dict[str, str] | None = None, hooks: bool = False
) -> Settings:
    """Return the settings of a run in ``root / "sub"``, with options by field and ini keys by name."""
    given = {f"rag_{name}": text for name, text in (options or {}).items()}
    (root / "sub").mkdir(exist_ok=True)
    hook = SimpleNamespace(get_hookimpls=lambda: [print] if hooks else [])
    hooked = SimpleNamespace(pytest_ragmetrics_make_judge=hook, pytest_ragmetrics_make_embedder=hook)
    place = {"rootpath": root, "invocation_params": SimpleNamespace(dir=root / "sub"), "hook": hooked}
    config = SimpleNamespace(getoption=given.get, getini=lambda name: (ini or {}).get(name, ""), **place)
    return read_settings(cast("pytest.Config", config))


def test_the_command_line_counts_before_environment_and_ini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ini = {"rag_concurrency": " 3 ", "rag_cache_salt": " "}
    assert (read(tmp_path).concurrency, read(tmp_path, ini=ini).concurrency) == (32, 3)
    assert read(tmp_path, ini=ini).cache_salt == ""
    monkeypatch.setenv("RAGMETRICS_CONCURRENCY", "4")
    assert read(tmp_path, ini=ini).concurrency == 4
    assert read(tmp_path, ini=ini, options={"concurrency": "5"}).concurrency == 5
    monkeypatch.setenv("RAGMETRICS_CONCURRENCY", " ")
    assert read(tmp_path, ini=ini).concurrency == 3


def test_paths_start_where_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny").mkdir()
    ini = {"rag_report": "reports/page.html", "rag_judge": "nli:tiny"}
    found = read(tmp_path, ini=ini, options={"json": "all.json"})
    assert found.files() == {"report": tmp_path / "reports/page.html", "json": tmp_path / "sub/all.json"}
    assert (found.cache_dir, found.judge) == (tmp_path / ".ragmetrics", f"nli:{tmp_path / 'tiny'}")
    several = {"rag_judge": "panel:local,nli:tiny"}
    assert read(tmp_path, ini=several).judge == f"panel:local,nli:{tmp_path / 'tiny'}"
    monkeypatch.setenv("RAGMETRICS_CACHE_DIR", "kept")
    assert read(tmp_path).cache_dir == tmp_path / "sub/kept"
    # What is no folder there is a name.
    assert read(tmp_path, options={"judge": "nli:tiny"}).judge == "nli:tiny"


#: What no file system takes, nor looks at.
LONG = "x" * 300


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("report", "test_it.py", "--rag-report: 'test_it.py' is not a *.html file: name one, such as rag-report.html"),
        ("report", "", "--rag-report: '' is not a *.html file"),
        ("report", "folder.html", "--rag-report: 'folder.html' is a folder: name a file"),
        ("json", "", "--rag-json: '' is no file name: name a file"),
        ("cassette", "/dev/full", "--rag-cassette: '/dev/full' is a device or a pipe: name a file"),
        ("json", "file/out.json", "--rag-json: 'file/out.json' cannot be written: no file can be made in "),
        *(
            (field, LONG, f"--rag-{field}: '{LONG}': File name too long")
            for field in ("json", "cassette", "baseline", "history")
        ),
        ("json", "test_it.py", "--rag-json: 'test_it.py' is a file of Python: name one to write"),
        ("markdown", "test_it.py", "--rag-markdown: 'test_it.py' is a file of Python: "),
        ("markdown", "", "--rag-markdown: '' is no file name: name a file"),
        ("markdown", "auto", "--rag-markdown: 'auto' is "),
        ("baseline", "other.json", "--rag-baseline: 'other.json' does not exist: write it first, with --rag-json="),
        *(
            ("baseline", text, f"--rag-baseline: '{text}': write history:5 for the last 5 runs in the folder of ")
            for text in ("history:", "history:x", "history:0", "history:-5", "history:5@", "history:5 runs")
        ),
        ("baseline", "./history:5", "--rag-baseline: './history:5' does not exist: write it first"),
        ("baseline", "history:5", "--rag-baseline: history:5 reads the folder of --rag-history: give --rag-history"),
        ("cache_dir", " ", "--rag-cache-dir: ' ' is no folder name: name a folder"),
        ("cache_dir", "file", "--rag-cache-dir: 'file' is not a folder: name a folder"),
        ("history", "", "--rag-history: '' is no folder name: name a folder"),
        ("history", "file/trend", "--rag-history: 'file/trend' cannot be written: no folder can be made in "),
        *(("alpha", text, f"--rag-alpha: '{text}' is not a number between 0 and 1, such as 0.05") for text in "015x"),
        *(
            ("mutate_min", text, f"--rag-mutate-min: '{text}' is not a number between 0 and 1, such as 0.8")
            for text in ("", "80", "80 %", "nan", "-0.1")
        ),
        ("votes", "0", "--rag-votes: '0' is not a whole number of at least 1"),
        ("cache", "sometimes", "--rag-cache: 'sometimes' is not one of auto, replay, refresh, off"),
        ("judge", "house", "--rag-judge: 'house' is not one of auto, local, openai:MODEL, "),
        ("judge", "nli:", "--rag-judge: 'nli:' is not one of auto, local, openai:MODEL, "),
        ("concurrency", "0", "--rag-concurrency: '0' is not a whole number of at least 1"),
        ("concurrency", "2.5", "--rag-concurrency: '2.5' is not a whole number of at least 1"),
        ("timeout", "soon", "--rag-timeout: 'soon' is not a number of at least 0.001"),
        ("timeout", "inf", "--rag-timeout: 'inf' is not a number of at least 0.001"),
        ("rpm", "0", "--rag-rpm: '0' is not a whole number of at least 1"),
        ("tpm", "-5", "--rag-tpm: '-5' is not a whole number of at least 1"),
        ("tpm", "many", "--rag-tpm: 'many' is not a whole number of at least 1"),
        ("max_calls", "-1", "--rag-max-calls: '-1' is not a whole number of at least 0"),
        ("max_tokens", "1.5", "--rag-max-tokens: '1.5' is not a whole number of at least 0"),
        ("max_cost", "-1", "--rag-max-cost: '-1' is not a number of at least 0"),
        ("max_cost", "nan", "--rag-max-cost: 'nan' is not a number of at least 0"),
    ],
)
def test_a_wrong_value_names_its_option(tmp_path: Path, field: str, text: str, said: str) -> None:
    (tmp_path / "sub/folder.html").mkdir(parents=True)
    (tmp_path / "sub/file").touch()
    with pytest.raises(pytest.UsageError) as caught:
        read(tmp_path, options={field: text})
    assert str(caught.value).startswith(said)


def test_a_baseline_is_a_file_or_runs_of_a_history(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/history:5").touch()
    ini = {"rag_history": "trend", "rag_baseline": " history:5@release/2 "}
    found = read(tmp_path, ini=ini)
    assert (found.baseline, found.history) == ("history:5@release/2", tmp_path / "trend")
    assert read(tmp_path, options={"baseline": "./history:5"}).baseline == tmp_path / "sub/history:5"
    assert [last_runs(text) for text in ("history:5", "history:12@main")] == [(5, ""), (12, "main")]


def test_a_wrong_value_names_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, text, said in (("rag_prompts", "nowhere", "a folder"), ("rag_report", "page.pdf", r"a \*.html file")):
        with pytest.raises(pytest.UsageError, match=f"^ini option {key}: '{text}' is not {said}"):
            read(tmp_path, ini={key: text})
    monkeypatch.setenv("RAGMETRICS_CACHE", "on")
    with pytest.raises(pytest.UsageError, match=r"^environment variable RAGMETRICS_CACHE: 'on' is not one of auto, "):
        read(tmp_path)


def test_hooks_know_other_judges_and_flags_are_on_or_off(tmp_path: Path) -> None:
    assert read(tmp_path, options={"judge": " house "}, hooks=True).judge == "house"
    assert (read(tmp_path).dry_run, read(tmp_path, options={"dry_run": "yes"}).dry_run) == (False, True)
    assert not cast("Any", read(tmp_path, ini={"rag_dry_run": "yes"})).dry_run
    assert [read(tmp_path, ini={"rag_blame": word}).blame for word in ("True", "on", "off", "0")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("verify_claim.md", "did you mean verify_claims.md?"),
        ("Verify_Claims.md", "did you mean verify_claims.md?"),
        ("verify-claims.md", "did you mean verify_claims.md?"),
        ("rate_relevance.txt", "did you mean rate_relevance.md?"),
        *(("list_claims.MD", "did you mean list_claims.md?"), ("critic.md", "did you mean critique.md?")),
        *(("faithfulness.md", "see ragmetrics docs tasks"), ("préfixe.md", "see ragmetrics docs tasks")),
        *(("verify_claims.md", None), ("README.md", None), ("readme.txt", None), (".gitkeep", None)),
        ("notes.json", None),
    ],
)
def test_a_prompt_of_no_task_is_refused(tmp_path: Path, name: str, hint: str | None) -> None:
    file = tmp_path / "prompts" / name
    file.parent.mkdir()
    file.write_text("Is it so?", "utf-8")
    if hint is None:
        assert read(tmp_path, ini={"rag_prompts": "prompts"}).prompts == file.parent
    else:
        with pytest.raises(pytest.UsageError) as caught:
            read(tmp_path, ini={"rag_prompts": "prompts"})
        assert str(caught.value).startswith(f"ini option rag_prompts: {file} is the prompt of no")
        assert str(caught.value).endswith(hint)
