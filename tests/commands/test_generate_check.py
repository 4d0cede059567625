"""`ragmetrics generate --check`: golden rows held against the documents of today, without a request."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.cli.generate.stale import check
from tests.commands.conftest import told
from tests.growth import is_linear
from tests.read_only import closed
from tests.unit.conftest import Call

OUT = Path("golden.jsonl")
PUMP = "# Pump\n\nThe pump needs two minutes to fill. Open the valve slowly before you start it.\n"
FERRY = "# Fähre\n\nDie Fähre nach Juist legt um neun ab. Am Sonntag fährt sie erst um zehn Uhr.\n"
LAKE = "太湖的面积是2338平方公里。湖中有四十八座岛屿。\n"
LAKE_JA = "琵琶湖の面積は669平方キロメートルです。湖には三つの島があります。\n"
PASSAGES = (
    '{"id": "k-1", "text": "The kettle holds 1.7 litres."}\n{"id": "k-2", "text": "It boils in three minutes."}\n'
)
FILES = {"pump.md": PUMP, "ferry.md": FERRY, "lake.txt": LAKE, "biwa.txt": LAKE_JA}


@pytest.fixture(autouse=True)
def _documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    for name, text in FILES.items():
        Path("docs", name).write_bytes(text.encode())


@pytest.fixture
def call(ragmetrics: Call) -> Callable[..., tuple[int, str, str]]:
    return lambda *more, docs=("docs",): ragmetrics("generate", *docs, "-o", OUT, "--check", *more)


def row(name: str, support: str, **more: Any) -> dict[str, Any]:
    text = FILES[name].strip()
    place = {"file": f"docs/{name}", "start": 0, "end": len(text), "judge": "m", "support": [support], **more}
    ids = {"reference_contexts": [text], "reference_context_ids": [f"docs/{name}#1"]}
    return {"id": name, "user_input": "Why?", "reference": support, **ids, "metadata": place}


def write(*rows: Any) -> bytes:
    text = "".join(f"{made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)}\n" for made in rows)
    OUT.write_bytes(text.encode())
    return text.encode()


ROWS = [
    row("pump.md", "The pump needs two minutes to fill."),
    row("ferry.md", "Die Fähre nach Juist legt um neun ab."),
    row("lake.txt", "湖中有四十八座岛屿。"),
    row("biwa.txt", "琵琶湖の面積は669平方キロメートルです。"),
]


@pytest.mark.parametrize(
    ("name", "old", "new", "states", "said"),
    [
        ("pump.md", "", "", "4 same, 0 moved, 0 changed, 0 gone", ()),
        # Layout, typography, case and punctuation, and other sentences of the passage, change no answer.
        ("pump.md", "Open the valve slowly", "**Open** the valve", "4 same, 0 moved, 0 changed, 0 gone", ()),
        ("ferry.md", "Die Fähre nach", "Die  FÄHRE\nnach", "4 same, 0 moved, 0 changed, 0 gone", ()),
        (
            *("pump.md", "# Pump", f"# Pumps\n\n{'There are two. ' * 6}", "3 same, 1 moved, 0 changed, 0 gone"),
            ("golden.jsonl:1: pump.md: moved: docs/pump.md[0:86] -> docs/pump.md[101:136]\n--fix writes",),
        ),
        (
            *("pump.md", "two minutes", "three minutes", "3 same, 0 moved, 1 changed, 0 gone"),
            (
                'golden.jsonl:1: pump.md: changed: "The pump needs two minutes to fill."\n  docs/pump.md[8:45]: "',
                ' needs three minutes to fill."\n  "two" became "three"\n',
            ),
        ),
        # A sentence that goes on is another one.
        (
            *("pump.md", "to fill.", "to fill, and the old one four.", "3 same, 0 moved, 1 changed, 0 gone"),
            ('", and the old one four" was added',),
        ),
        (
            *("ferry.md", "legt um neun ab", "legt nicht um neun ab", "3 same, 0 moved, 1 changed, 0 gone"),
            ('"nicht" was added',),
        ),
        # Which is not the one that is there as well, further down.
        (
            *(
                "pump.md",
                "# Pump",
                "The pump needs two minutes to fill, when cold.",
                "4 same, 0 moved, 0 changed, 0 gone",
            ),
            (),
        ),
        ("lake.txt", "四十八座", "五十一座", "3 same, 0 moved, 1 changed, 0 gone", ('became "五十一',)),
        ("biwa.txt", "669", "670", "3 same, 0 moved, 1 changed, 0 gone", ('"669" became "670"',)),
        ("biwa.txt", LAKE_JA, "", "3 same, 0 moved, 0 changed, 1 gone", ("golden.jsonl:4: biwa.txt: gone: ",)),
    ],
)
def test_what_became_of_the_rows(
    call: Callable[..., Any], name: str, old: str, new: str, states: str, said: tuple[str, ...]
) -> None:
    before = write(*ROWS)
    path = Path("docs", name)
    path.write_bytes(path.read_bytes().decode().replace(old, new).encode())
    stale = int("0 changed, 0 gone" not in states)
    told(call(), stale, f"golden.jsonl: 4 rows: {states}\n", *said)
    assert OUT.read_bytes() == before


def test_moved_rows_get_their_new_place_and_nothing_else_changes(call: Callable[..., Any]) -> None:
    mine = {"id": 7, "question": "Why?", "contexts": [], "reference_contexts": ["It boils in three minutes."]}
    given = row("pump.md", "It boils in three minutes.", file="docs/k.jsonl", line=1)
    del given["metadata"]["start"], given["metadata"]["end"]
    given |= {"reference_contexts": ["It boils in three minutes."], "reference_context_ids": ["k-2"]}
    talk = {"role": "user", "content": "Wann?", "reference_contexts": [FERRY.strip()], "reference": "Um neun."}
    ferry = {"id": "talk", "messages": [talk, talk], "metadata": ROWS[1]["metadata"]}
    compact = json.dumps({**ROWS[0], "n": 1.50}, separators=(",", ":"))
    lines = [f"\ufeff{json.dumps(ROWS[2])}\r", "", compact, ferry, "  " + json.dumps(mine), given]
    before = write(*lines).decode().split("\n")
    Path("docs/k.jsonl").write_text(PASSAGES, encoding="utf-8")
    Path("docs/pump.md").unlink()
    Path("docs/all.md").write_text(f"{'Intro. ' * 300}\n\n{PUMP}\n{FERRY}", encoding="utf-8")
    Path("docs/ferry.md").write_text("Nichts.", encoding="utf-8")
    docs = ("docs", "docs/k.jsonl")
    told(call(docs=docs), 0, "5 rows: 2 same, 3 moved, 0 changed, 0 gone", "docs/k.jsonl:1 -> docs/k.jsonl:2\n")
    assert OUT.read_bytes().decode().split("\n") == before
    told(call("--fix", docs=docs), 0, "the new places of 3 rows are written")
    after = OUT.read_bytes().decode().split("\n")
    assert [one == two for one, two in zip(before, after, strict=True)] == [True, True, False, False, True, False, True]
    text = Path("docs/all.md").read_text(encoding="utf-8")
    pump, first, kettle = (json.loads(after[line]) for line in (2, 3, 5))
    start = text.index("# Pump")
    place = {"file": "docs/all.md", "start": start, "end": start + len(PUMP.strip())}
    assert pump["metadata"] == {**ROWS[0]["metadata"], **place}
    assert pump["reference_context_ids"][0].startswith("docs/all.md#")
    # Written as it was, where that can be told.
    expected = json.loads(compact) | {name: pump[name] for name in ("metadata", "reference_context_ids")}
    assert after[2] == json.dumps(expected, separators=(",", ":"))
    assert first["messages"] == [talk, talk]
    assert text[first["metadata"]["start"] : first["metadata"]["end"]] == FERRY.strip()
    assert (kettle["metadata"]["line"], kettle["reference_context_ids"]) == (2, ["k-2"])
    told(call(docs=docs), 0, "5 rows: 5 same, 0 moved")
    assert [path.name for path in Path().iterdir() if path.name.startswith(".golden")] == []


def test_rows_of_two_passages_and_of_none(call: Callable[..., Any]) -> None:
    both = row("pump.md", "The pump needs two minutes to fill.", second=ROWS[1]["metadata"])
    both["reference_contexts"].append(FERRY.strip())
    both["metadata"]["support"].append("Am Sonntag fährt sie erst um zehn Uhr.")
    nothing = {"id": "n", "user_input": "Why?", "metadata": {"support": "all of it"}}
    write(both, nothing, {**nothing, "metadata": {"support": ["Ein Satz, den es nirgends gibt."]}})
    told(call(), 1, "3 rows: 1 same, 0 moved, 0 changed, 1 gone\n1 row without support or reference_contexts\n")
    Path("docs/ferry.md").write_text(FERRY.replace("zehn", "elf"), encoding="utf-8")
    told(call(), 1, "3 rows: 0 same, 0 moved, 1 changed, 1 gone", '"zehn" became "elf"')
    # Sentences that stand apart now have no one place.
    write(
        ROWS[0] | {"metadata": {**both["metadata"], "support": ["Pump", "Open the valve slowly before you start it."]}}
    )
    Path("docs/pump.md").write_text("# Pump\n", encoding="utf-8")
    Path("docs/valve.md").write_text("Open the valve slowly before you start it.", encoding="utf-8")
    told(call("--fix"), 0, "moved: docs/pump.md[0:86] -> several places\nthe new places of 0 rows are written")


def test_hostile_rows_and_documents(call: Callable[..., Any]) -> None:
    """Nothing that a row or a document has breaks the check or steers the terminal."""
    made = row("pump.md", "The pump needs two minutes to fill.")
    metadata = made["metadata"]
    odd: list[dict[str, Any]] = [
        {**metadata, "file": ["docs/pump.md"]},
        {**metadata, "start": -7, "end": 10**30},
        {**metadata, "start": True, "second": 3},
        {**metadata, "support": [None, "", " ", "\ud800 \x1b[31m", "?!", "(" * 5000]},
        {**metadata, "support": ["The pump needs two minutes to fill."], "note": "\ud800 é"},
    ]
    rows = [json.dumps({**made, "id": "\x1b[31m", "metadata": each}).replace("\\u00e9", "é") for each in odd]
    rows[3] = rows[3].replace("# Pump", "# Pipe")
    write(*rows, {"reference_contexts": [PUMP] * 3}, {"reference_contexts": []}, {})
    for name, text in (
        ("empty.md", ""),
        ("blank.txt", " \n\u3000\n"),
        ("signs.md", "<" * 9000),
        ("line.txt", "ab " * 9000),
    ):
        Path("docs", name).write_text(text, encoding="utf-8")
    Path("docs/pump.md").rename("docs/pümp.md")
    said = (
        "8 rows: 1 same, 4 moved, 0 changed, 1 gone\n2 rows without support",
        "the new places of 4 rows are written",
    )
    assert "\x1b" not in told(call("--fix"), 1, *said)
    assert "\\ud800 \\u00e9" in OUT.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "more", "message"),
    [
        (b"[1]\n", (), r"golden.jsonl:1: is no row of a golden set: a row is a mapping"),
        (b"{}\n{", (), r"golden.jsonl:2: is no row of a golden set: Expecting"),
        (b"\xff", (), "golden.jsonl cannot be read: "),
        (b"{}", ("--questions", "3"), "--check asks nothing: leave out --questions"),
        (None, (), "golden.jsonl is no file: write the set first, with --questions"),
    ],
)
def test_what_is_no_golden_set_is_refused(
    call: Callable[..., Any], content: bytes | None, more: tuple[str, ...], message: str
) -> None:
    if content is not None:
        OUT.write_bytes(content)
    told(call(*more), 2, message)
    assert content is None or OUT.read_bytes() == content


def test_other_options(ragmetrics: Call) -> None:
    for more, message in (
        (("--fix", "--questions=1"), "--fix belongs to --check"),
        ((), "--questions is missing"),
        (("--questions=1", "--hops=2", "--follow-ups"), "exclude each other"),
    ):
        told(ragmetrics("generate", "docs", "-o", OUT, *more), 2, message)


@pytest.mark.skipif(os.name == "nt", reason="needs folders that are closed")
def test_a_folder_that_is_closed_is_read_and_not_written(ragmetrics: Call) -> None:
    with closed({"golden.jsonl": json.dumps(ROWS[0]), "a.md": f"Intro.\n\n{PUMP}"}) as folder:
        command = ("generate", folder / "a.md", "-o", folder / "golden.jsonl", "--check")
        told(ragmetrics(*command), 0, "1 row: 0 same, 1 moved")
        told(ragmetrics(*command, "--fix"), 2, "golden.jsonl cannot be written: Permission denied")
        assert (folder / "golden.jsonl").read_text(encoding="utf-8") == json.dumps(ROWS[0])


@pytest.mark.parametrize("kind", ["in place", "changed", "one file"])
def test_the_time_grows_with_rows_and_documents(kind: str) -> None:
    """Of twice as many rows over twice the text not every row may read all of the text: that would be four times."""
    words = ["pump", "valve", "ferry", "lake", "crane", "harbour", "timber", "storm", "kettle", "isle", "sheep", "oar"]

    def run(size: int) -> None:
        texts = [
            f"The {words[n % 12]} {n * 7919 % 9973} holds {n} {words[n // 12 % 12]} parts." for n in range(8 * size)
        ]
        whole = "\n\n".join(texts)
        name = f"docs/{kind}.md"
        Path(name).write_text(whole.replace("holds", "takes") if kind == "changed" else f"Intro.\n\n{whole}")
        place = {"file": name, "start": 0, "end": 10}
        made = [{"id": text, "reference_contexts": [text], "metadata": place} for text in texts[::8]]
        write(*made)
        check(OUT, {name: Path(name)}, fix=False)

    assert is_linear(run, short=40, long=320)
