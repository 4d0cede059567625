"""The files that GitHub reads: pinned actions, least permissions, and claims that pyproject.toml makes as well."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
PROJECT = (ROOT / "pyproject.toml").read_text("utf-8")
FILES = sorted(path for path in GITHUB.rglob("*.y*ml"))
WORKFLOWS = sorted((GITHUB / "workflows").iterdir())
#: What a job may do besides reading the repository.
GRANTS = {("release.yml", "publish"): {"id-token": "write"}}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def jobs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = load(GITHUB / "workflows" / name)["jobs"]
    return found


def test_every_action_is_pinned_to_one_version() -> None:
    pins = set()
    for path in FILES:
        load(path)
        for used in re.findall(r"^[ -]*uses: *(.*)$", path.read_text("utf-8"), re.MULTILINE):
            pin = re.fullmatch(r"\./\S+|([\w.-]+(?:/[\w.-]+)+)(@[0-9a-f]{40} # v\d+\.\d+\.\d+)", used)
            assert pin, (path, used)
            pins |= {pin.groups()} - {(None, None)}
    assert len({action for action, _ in pins}) == len(pins) >= 5


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_permissions_are_the_least(path: Path) -> None:
    assert load(path)["permissions"] == {"contents": "read"}
    assert not re.search(r"pull_request_target|secrets\.", path.read_text("utf-8"))
    for name, job in jobs(path.name).items():
        assert job.get("permissions", {}) == GRANTS.get((path.name, name), {})
        assert job["timeout-minutes"] <= 90
        for step in job["steps"]:
            assert set(re.findall(r"\$\{\{ *(\w+)", step.get("run", ""))) <= {"matrix"}
            if "actions/checkout@" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


def test_a_release_is_attested_and_has_no_token() -> None:
    build, publish = (jobs("release.yml")[name] for name in ("build", "publish"))
    assert (publish["environment"], publish["needs"]) == ("pypi", "build")
    download, upload = publish["steps"]
    assert download["with"].items() <= build["steps"][-1]["with"].items()
    assert (download["with"].keys(), upload["with"]) == ({"name", "path"}, {"attestations": True})


def test_what_is_claimed_is_tested() -> None:
    tests = jobs("tests.yml")
    pythons = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)
    assert tests["suite"]["strategy"]["matrix"]["python"] == pythons
    assert f'requires-python = ">={pythons[0]}"' in PROJECT
    lowest = re.findall(r'"pytest>=([\d.]+)"', PROJECT)
    tried = {each["pytest"]: each["requirement"] for each in tests["pytest"]["strategy"]["matrix"]["include"]}
    assert [f"pytest=={version}.0" for version in lowest] == [tried["minimum"]]


FORMS = [path for path in FILES if path.parent.name == "ISSUE_TEMPLATE" and path.stem != "config"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_ask_for_what_is_needed(path: Path) -> None:
    form = load(path)
    assert {"name", "description", "body"} <= form.keys()
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_commands_and_files_that_are_named_exist() -> None:
    pages = [GITHUB / "CONTRIBUTING.md", GITHUB / "RELEASING.md"]
    texts = "".join(path.read_text("utf-8") for path in [*pages, *WORKFLOWS])
    named = set(re.findall(r"(?:\.ci|tests|pytest_ragmetrics|conftest_examples)/[\w/.]*\w", texts))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
