"""`ragmetrics doctor`: why it does not run, and what to do about it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ragmetrics.commands.arguments import JUDGES, checked, local_modules
from pytest_ragmetrics.commands.command import Command, Finding
from pytest_ragmetrics.embedders.specs import check_embedder_spec
from pytest_ragmetrics.judges.specs import check_spec

if TYPE_CHECKING:
    from pytest_ragmetrics.diagnosis.project import Project
    from pytest_ragmetrics.diagnosis.sign import Sign


@local_modules()
def _examine(arguments: argparse.Namespace) -> Finding:
    from pytest_ragmetrics.diagnosis.project import Project
    from pytest_ragmetrics.files.ini_file import find_ini_file

    project = Project(folder=Path.cwd(), ini=find_ini_file(Path.cwd()))
    signs = list(_signs(arguments, project))
    open_ = sum(bool(sign.to_do) for sign in signs)
    last = "all well" if not open_ else f"{open_} {'thing' if open_ == 1 else 'things'} to do"
    return Finding(lines=[*(line for sign in signs for line in sign.lines()), last], status=int(open_ > 0))


def _signs(arguments: argparse.Namespace, project: Project) -> Iterator[Sign]:
    from pytest_ragmetrics.diagnosis.installation import plugin_signs, version_signs
    from pytest_ragmetrics.diagnosis.storage import cache_signs, cassette_signs

    yield from version_signs()
    yield from plugin_signs(project.ini, project.folder)
    yield from project.signs()
    yield from _provider_signs(arguments, project)
    yield from cache_signs(project.cache_dir(arguments.dir))
    cassette = project.path("cassette", arguments.cassette)
    if cassette is not None:
        needed = arguments.cassette is not None or project.is_replaying()
        yield from cassette_signs(cassette, project.spec("judge", arguments.judge).text, needed=needed)


def _provider_signs(arguments: argparse.Namespace, project: Project) -> Iterator[Sign]:
    from pytest_ragmetrics.diagnosis.provider import embedder_signs, judge_signs, key_signs
    from pytest_ragmetrics.diagnosis.sign import Sign

    judge, embedder = project.spec("judge", arguments.judge), project.spec("embedder", arguments.embedder)
    yield from key_signs(judge)
    if project.is_replaying() and arguments.judge is None:
        yield Sign(topic="judge", text=f"{judge.text} is not asked: answers are replayed")
        return
    yield from judge_signs(judge, hooked=project.is_hooked("judge"))
    if embedder.text != "auto":
        yield from embedder_signs(embedder, hooked=project.is_hooked("embedder"))


def _configure(parser: argparse.ArgumentParser) -> None:
    own = "default: as the settings here say"
    parser.add_argument("--judge", type=checked(check_spec), metavar="SPEC", help=f"{JUDGES} ({own})")
    parser.add_argument(
        "--embedder", type=checked(check_embedder_spec), metavar="SPEC", help=f"asked too where one is named ({own})"
    )
    parser.add_argument("--cassette", type=Path, metavar="FILE", help=f"the recorded answers ({own})")
    parser.add_argument("--dir", type=Path, metavar="DIR", help=f"the folder of the cache ({own})")


DOCTOR = Command(
    name="doctor",
    help="Look for what keeps a judge from being asked, with one request; exit with status 1 if there is something.",
    configure=_configure,
    run=_examine,
)
