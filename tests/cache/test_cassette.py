"""The cassette: a file that is read strictly, written whole, and names the entry nearest to a missing one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.cache.cassette import Cassette, CassetteError, line_of
from pytest_ragmetrics.cache.entry import CacheEntry, embedding_row, key_of, new_entry
from pytest_ragmetrics.cache.nearest import Neighbours, difference
from pytest_ragmetrics.core.credentials import find_credential, masked
from pytest_ragmetrics.judges.transports.values import Reply

# The default alphabet of hypothesis takes a second to compute.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=150)
MODEL_KEY = "sk-proj-" + "a1B2" * 8


def entry(
    prompt: str, text: str = '{"claims": []}', *, created: str = "2026-01-01T00:00:00+00:00", **request: Any
) -> CacheEntry:
    row = {"task": "list_claims", "kind": "openai", "model": "judge-1", "vote": 0, "parameters": {}}
    row |= {"messages": [{"role": "user", "content": prompt}], "schema": {"type": "object"}, **request}
    return replace(new_entry(key_of(row), row, Reply(text=text), salt="", redact=None), created=created)


def keyed(*entries: CacheEntry | str) -> dict[str, CacheEntry]:
    made = [entry(each) if isinstance(each, str) else each for each in entries]
    return {each.key: each for each in made}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cassettes" / "answers.jsonl"


def write(file: Path, *lines: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


VECTOR_ROW = embedding_row(kind="openai", model="m", text="Ponds freeze.")
VECTOR = new_entry(key_of(VECTOR_ROW), VECTOR_ROW, "AACAPwAAAL8=", salt="", redact=None)


def test_what_is_saved_is_read(file: Path) -> None:
    """A run that used nothing makes no file."""
    assert Cassette(file).entries == {}
    assert not Cassette(file).save({}, complete=True).written
    assert not file.exists()
    entries = keyed("one", "two", VECTOR)
    saved = Cassette(file).save(entries, complete=True)
    assert (saved.written, saved.entries, saved.added, saved.dropped, saved.refused) == (True, 3, 3, 0, ())
    assert Cassette(file).entries == entries


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=()), max_size=20), TEXT), max_size=3))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str]]) -> None:
    entries = keyed(*(entry(prompt, reply) for prompt, reply in texts if find_credential(prompt + reply) is None))
    file = tmp_path_factory.mktemp("any") / "c.jsonl"
    Cassette(file).save(entries, complete=True)
    read = Cassette(file).entries
    assert {key: line_of(kept) for key, kept in read.items()} == {key: line_of(kept) for key, kept in entries.items()}
    assert not entries or len(file.read_text(encoding="utf-8").splitlines()) == len(entries)


def test_a_line_is_an_entry_that_can_be_read(file: Path) -> None:
    entries = keyed(*(entry(f"Über die Brücke {n}\u202e", "größer") for n in range(5)))
    Cassette(file).save(entries, complete=True)
    *lines, end = file.read_text(encoding="utf-8").split("\n")
    assert (end, [json.loads(line)["key"] for line in lines]) == ("", sorted(entries))
    assert all("Über die Brücke" in line and "größer" in line and r"\u202e" in line for line in lines)


GOOD = line_of(entry("good"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("no JSON", "Expecting value"),
        (GOOD[:-20], "Expecting|Unterminated"),
        ("[]", "not a JSON object"),
        ("{}", "no field 'created'"),
        (GOOD[:-1] + ', "headers": {}}', "unknown field 'headers'"),
        (GOOD.replace('"text"', '"authorization"'), "the reply is not one"),
        *(
            (GOOD.replace('"calls": 1', it), "the reply is not one")
            for it in ('"calls": -1', '"calls": 1, "cookie": ""')
        ),
        (GOOD.replace('"key": "', '"key": "x'), "SHA-256"),
        (GOOD.replace('"task"', '"tusk"'), "names no task"),
        (GOOD.replace("+00:00", ""), "created must be a time with its zone"),
        ("[" * 100_000, "not an entry"),
        ("Br\udcfccke", "codec can't decode|not an entry"),
        *((mark, "a merge was left unresolved") for mark in ("<<<<<<< HEAD", "=======", ">>>>>>> x", "||||||| base")),
    ],
)
def test_a_line_that_cannot_be_read_is_named(file: Path, line: str, problem: str) -> None:
    file.parent.mkdir()
    file.write_bytes(f"{line_of(entry('one'))}\n\n{line}\n".encode(errors="surrogateescape"))
    with pytest.raises(CassetteError, match=problem) as raised:
        list(Cassette(file).entries.values())
    assert str(raised.value).startswith(f"{file}:3: ")
    assert (raised.value.file, raised.value.line) == (file, 3)


FAULTY = GOOD.replace('"calls": 1', '"calls": -1')


def test_a_line_is_parsed_where_its_entry_is_used(file: Path) -> None:
    one, good = entry("one"), entry("good")
    lines = sorted((line_of(one), FAULTY))
    write(file, *lines)
    before = file.read_bytes()
    assert Cassette(file).pick([one.key, "unknown"]) == {one.key: one}
    assert not Cassette(file).save(keyed(one), complete=False).written
    assert Cassette(file).save({}, complete=True).entries == 2
    place = f"{file}:{lines.index(FAULTY) + 1}: not an entry of a cassette: the reply is not one"
    for use in (
        lambda: Cassette(file).pick([good.key]),
        lambda: Cassette(file).save(keyed(good), complete=True),
        lambda: Cassette(file).save(keyed(one, entry("new")), complete=False),
    ):
        with pytest.raises(CassetteError, match=f"^{re.escape(place)}"):
            use()
    assert file.read_bytes() == before
    # What is not used is dropped, whatever it is.
    assert Cassette(file).save(keyed(one), complete=True).dropped == 1


def test_only_a_file_as_it_would_be_written_is_left_alone(file: Path) -> None:
    """Any other order or layout is read, and brought into order by the next run that writes."""
    entries = keyed(*(str(number) for number in range(5)))
    Cassette(file).save(entries, complete=True)
    text = file.read_text("utf-8")
    backwards = "".join(sorted(text.splitlines(keepends=True), reverse=True))
    spaced = text.replace("\n", "\n\n"), text.replace('{"key"', '{ "key"')
    for edited in (text.removesuffix("\n"), f"\ufeff{text}", backwards, text + text, *spaced):
        file.write_text(edited, "utf-8")
        assert Cassette(file).entries == entries
        assert Cassette(file).save(entries, complete=True).written, edited
        assert file.read_text("utf-8") == text
    # Where git changes line ends, that is nothing to commit.
    file.write_bytes(text.replace("\n", "\r\n").encode())
    before = file.stat().st_ino
    assert not Cassette(file).save(entries, complete=True).written
    assert file.stat().st_ino == before


def test_a_folder_is_no_cassette(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match=f"^{tmp_path}: "):
        _ = Cassette(tmp_path).entries


def test_lines_of_two_branches_merge_as_text(file: Path) -> None:
    """Any order, either line end, a byte order mark; of two lines with one key the entry made last counts."""
    old = entry("both", "old", created="2026-01-01T00:00:00+00:00")
    new = entry("both", "new", created="2026-01-01T01:00:00+01:00")
    newest = entry("both", "newest", created="2026-01-01T00:30:00+00:00")
    lines = [line_of(each) for each in (newest, entry("mine"), old, new, entry("theirs"))]
    for order in (lines, lines[::-1]):
        write(file)
        file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(order).encode())
        assert Cassette(file).entries == keyed(newest, "mine", "theirs")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"vote": 0', '"vote": 1', "its key is not that of its request"),
        ("freeze", "thaw", "its key is not that of its request"),
        *(('"vote": 0', f'"vote": {number}', f"{number} is not a JSON number") for number in ("NaN", "-Infinity")),
        ('"calls": 1', '"calls": 1, "calls": 2', "the name 'calls' is there twice"),
        ('"vote": 0', '"vote": 0, "vote": 0', "the name 'vote' is there twice"),
        ('"created": ', '"key": "' + "0" * 64 + '", "created": ', "the name 'key' is there twice"),
        *(("AACAPwAAAL8=", no, "its vector is not the base64 of 32-bit floats") for no in ("AACAPwAA", "water!!!")),
        *(("AACAPwAAAL8=", no, "its vector is empty or not finite") for no in ("", "AACAfw==")),
    ],
)
def test_a_line_that_was_edited_is_an_error_of_its_place(file: Path, old: str, new: str, said: str) -> None:
    edited = VECTOR if old in line_of(VECTOR) and "vote" not in old and "calls" not in old else entry("ice")
    sound = entry("Ponds dry up.")
    write(file, line_of(sound), line_of(edited).replace(old, new, 1))
    if '"key"' not in new:  # which of two keys counts is not known, so the line is read at once
        assert Cassette(file).pick([sound.key]) == keyed(sound)
    with pytest.raises(CassetteError, match=re.escape(said)) as raised:
        dict(Cassette(file).entries)
    assert str(raised.value).startswith(f"{file}:2: ")
    with pytest.raises(CassetteError, match=re.escape(said)):
        Cassette(file).pick([edited.key], {edited.key: edited.request})
    count, (error,) = Cassette(file).verify()
    assert (count, str(error)) == (1, str(raised.value))


@pytest.mark.parametrize(
    ("edit", "is_named"),
    [
        (lambda row: row["reply"].update(text="It was edited."), True),
        (lambda row: row["reply"].update(prompt_tokens=10**30), True),
        (lambda row: row["reply"].update(billed=0.5), True),
        (lambda row: row.update(redacted=True), True),
        (lambda row: row.update(digest="0" * 64), True),
        (lambda row: row.update(digest="0"), True),
        (lambda row: row.update(digest=""), False),
        (lambda row: row.pop("digest"), False),
        (lambda row: row.update(created="2027-01-01T00:00:00+00:00", host="other"), False),
        (lambda row: None, False),
    ],
)
def test_an_edited_reply_is_used_and_named(file: Path, edit: Any, is_named: bool) -> None:
    for text in ('{"claims": ["It froze."]}', "1.0", "水は濡れ\u2028ている", "\ud800 half", "", "𝔘" * 5000):
        row = json.loads(line_of(entry("ice", text)))
        edit(row)
        write(file, line_of(entry("Ponds dry up.")), json.dumps(row))
        assert Cassette(file).pick([row["key"]])[row["key"]].reply == row["reply"], text
        count, errors = Cassette(file).verify()
        assert (count, [error.line for error in errors]) == (2 - is_named, [2] * is_named), text
        said = f"entry {row['key'][:8]} was changed, its reply is not that of its digest"
        assert all(said in str(error) for error in errors), text


def test_a_file_that_is_written_has_digests_and_keeps_those_of_edited_replies(file: Path) -> None:
    """Lines of earlier versions get one; an edit stays named until the reply is recorded anew."""
    rows = [json.loads(line_of(entry(text))) for text in ("edited", "old")]
    rows[0]["reply"]["text"] = "It was edited."
    del rows[1]["digest"]
    write(file, *map(json.dumps, rows))
    used = Cassette(file).pick([row["key"] for row in rows])
    assert Cassette(file).save(used | keyed(entry("new")), complete=True).written
    assert all(len(json.loads(line)["digest"]) == 64 for line in file.read_text("utf-8").splitlines())
    assert [error.line is not None for error in Cassette(file).verify()[1]] == [True]
    assert Cassette(file).save(keyed(entry("edited")), complete=False).written
    assert Cassette(file).verify() == (3, [])


@pytest.mark.parametrize(
    ("used", "options", "after", "counts"),
    [
        ("two three", {"complete": True}, "two three", (1, 1)),
        ("two three", {"complete": True, "keep": True}, "one two three", (1, 0)),
        ("three", {"complete": False}, "one two three", (1, 0)),
        ("", {"complete": True}, "one two", (0, 0)),
    ],
)
def test_which_entries_a_run_drops(file: Path, used: str, options: Any, after: str, counts: tuple[int, int]) -> None:
    """A complete run drops what nothing used, unless ``keep``; a partial run and one without answers do not."""
    Cassette(file).save(keyed("one", "two"), complete=True)
    saved = Cassette(file).save(keyed(*used.split()), **options)
    assert (saved.added, saved.dropped, saved.entries) == (*counts, len(after.split()))
    assert Cassette(file).entries == keyed(*after.split())


def test_what_was_added_meanwhile_is_kept(file: Path) -> None:
    early = Cassette(file)
    assert early.entries == {}
    Cassette(file).save(keyed("other"), complete=False)
    early.save(keyed("mine"), complete=False)
    assert Cassette(file).entries == keyed("other", "mine") == early.entries


@pytest.mark.parametrize(
    "leak",
    [
        entry(f"Use {MODEL_KEY} to log in."),
        # Of an earlier version, which masked no reply.
        replace(entry("clean"), reply={"text": json.dumps({"claims": [f"The key is {MODEL_KEY}"]}), "calls": 1}),
        entry("clean", schema={"description": f"Authorization: Bearer {'0aB' * 10}"}),
        entry("clean", parameters={"user": "ghp_" + "a1" * 18}),
    ],
)
def test_what_looks_like_a_key_is_refused_with_the_tests_name(file: Path, leak: CacheEntry) -> None:
    tests = {leak.key: "test_bot.py::test_login"}
    saved = Cassette(file).save(keyed(leak, "fine"), complete=True, tests=tests)
    assert Cassette(file).entries == keyed("fine")
    (refusal,) = saved.refused
    assert str(refusal).startswith("test_bot.py::test_login: the list_claims answer")
    assert MODEL_KEY not in f"{refusal} {file.read_text()}"


def test_what_is_in_the_file_already_is_not_refused(file: Path) -> None:
    """A secret put there by hand is not taken out; base64 of a vector, which may spell one, is not searched."""
    leak = entry(MODEL_KEY)
    write(file, line_of(leak))
    vector = new_entry(VECTOR.key, VECTOR_ROW, "AIza" + "B" * 60, salt="", redact=None)
    assert Cassette(file).save(keyed(leak, vector), complete=True).refused == ()
    assert Cassette(file).entries == keyed(leak, vector)


SECRETS = [
    "sk-" + "a1" * 24,
    "sk-ant-api03-" + "A_b-1" * 10,
    "Authorization: Bearer eyJhbGciOi.J9x0-123456789",
    "github_pat_" + "1A" * 20,
    "glpat-" + "aB1_-" * 4,
    "xoxb-123456789012-abcdef",
    "AKIA" + "A1B2" * 4,
    "AIza" + "aB1-_" * 7,
    "pypi-" + "AgEI" * 12,
    "eyJ" + "A1" * 10 + ".eyJ" + "B2" * 10 + ".c2ln",
    "-----BEGIN RSA " + "PRIVATE KEY-----",
    '{"token": "hf_' + "aB1" * 10 + '"}',
]
WORDS = [
    "a task-oriented-and-thoroughly-tested-approach-2",
    "sk-learn pipelines, sk-something-hyphenated-without-numerals",
    "the bearer of this letter, bearer bonds of 1923",
    "risk-0123456789012345678901",
    "AKIA is a prefix",
    "a1" * 32,
]


@pytest.mark.parametrize("text", SECRETS + WORDS)
def test_secrets_are_told_from_words(text: str) -> None:
    found, is_secret = find_credential(text), text in SECRETS
    assert ((found is not None), len(found or "") < 40) == (is_secret, True)
    again = f"{text} "[:-1]
    assert (masked(text) is text, masked(again) is again) == (not is_secret,) * 2


@pytest.mark.parametrize("secret", SECRETS)
def test_what_looks_like_a_key_in_a_reply_is_masked(secret: str) -> None:
    for text in (json.dumps({"claims": [f"Log in with {secret}."]}), f"no JSON {secret}"):
        row = entry(secret).request
        made = new_entry(key_of(row), row, Reply(text=text), salt="", redact=None)
        assert (find_credential(made.reply["text"]), "***" in made.reply["text"]) == (None, True)
        assert (made.request, made.problem()) == (row, None)


def test_the_nearest_prompt_of_a_task_explains_a_miss() -> None:
    story = "\n".join(f"{n}: sentence number {n} about ponds" for n in range(30))
    near = entry(story.replace("number 7", "number seven" + "n" * 30), model="judge-2")
    # As long as the prompt that is asked for, which the nearest is not.
    far = [entry((f"Something else, number {n:03d}.\n" * 50)[: len(story)]) for n in range(200)]
    said = Neighbours([*far, near]).explain_miss(entry(story).request).splitlines()
    assert said[0].startswith("replaying, and this request was never recorded: list_claims (openai:judge-1); record it")
    assert said[1] == "the nearest recorded request is 98% alike:"
    assert said[2:4] == [f"--- recorded {near.created}", "+++ asked now"]
    assert [line for line in said[4:] if line[0] in "+-"] == [
        *("-model: judge-2", "+model: judge-1"),
        *(f"-7: sentence number seven{'n' * 30} about ponds", "+7: sentence number 7 about ponds"),
    ]
    assert Neighbours([]).explain_miss(near.request).endswith("\nno request of list_claims is recorded at all")


def test_a_difference_stays_readable() -> None:
    words = " ".join(f"word{n}" for n in range(500))
    old, new = difference([words], [words.replace("word250 ", "WORD ").replace("word258 ", "LAST ")], ("a", "b"))[-2:]
    assert re.search("word250 .* word258", old)
    assert re.search("WORD .* LAST", new)
    assert max(len(old), len(new)) < 170
    assert len(difference([f"{n}" for n in range(500)], ["none"], ("a", "b"))) <= 41
    assert "\x1b" not in "".join(difference(["a\x1b[31m"], ["b\x1b[31m"], ("a", "b")))


@given(TEXT, TEXT)
def test_a_difference_can_be_made_of_anything(old: str, new: str) -> None:
    assert (difference([old], [new], ("a", "b")) == []) == (old == new)


def test_a_secret_is_masked_whole() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIBogIBAAJ+/BALKZtKIe4\n4OM8aQ==\n-----END RSA PRIVATE KEY-----"
    for text in (key, key.replace("\n", "\\n"), "sk-proj-0123456789abcdefghij", "Bearer 0123456789abcdefgh=="):
        shown = masked(f"a {text} b")
        assert re.fullmatch(r"a \*\*\*.* b", shown, re.DOTALL)
        assert not re.search("0123|BALK", shown)
