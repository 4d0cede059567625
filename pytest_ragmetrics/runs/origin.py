"""Where a run comes from, as the reports say it: project, branch, commit and CI run, with links that are safe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_ragmetrics.runs.records import RunRecord, TestRecord
from pytest_ragmetrics.runs.revision import commit_link, short_commit, source_link, web_link
from pytest_ragmetrics.text.unicode import shortened


@dataclass(frozen=True, kw_only=True, slots=True)
class OriginView:
    """Where a run comes from; every text and link is "" where it is not known.

    ``commit`` is short, with a "+" where files were changed since, ``ci`` names the run of the CI. ``title`` is all
    that names the run, for the title of a page.
    """

    project: str
    branch: str
    commit: str
    commit_link: str
    message: str
    author: str
    ci: str
    ci_link: str
    started: str

    @property
    def title(self) -> str:
        """Project, branch and commit."""
        return " ".join(filter(None, (self.project, self.branch, self.commit)))


def build_origin(run: RunRecord) -> OriginView:
    """Return where a run comes from; links of a file are checked, whoever wrote it."""
    link = web_link(run.ci)
    return OriginView(
        commit=short_commit(run.commit),
        commit_link=commit_link(run.repository, run.commit, ci=run.ci),
        **{name: getattr(run, name) for name in ("project", "branch", "message", "author")},
        ci=f"CI {run.ci_number}".strip() if link or run.ci_number else "",
        ci_link=link,
        started=started_text(run),
    )


def started_text(run: RunRecord) -> str:
    """Return when a run started, in UTC."""
    return run.started.replace("T", " ").replace("+00:00", " UTC").replace("Z", " UTC")


def origin_parts(run: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield where a run comes from in words, each with its address or "", without its project and what is unknown."""
    found = build_origin(run)
    if found.branch:
        yield f"branch {found.branch}", ""
    if found.commit:
        message = f' "{shortened(found.message, 72)}"' if found.message else ""
        author = f" by {found.author}" if found.author else ""
        yield f"commit {found.commit}{message}{author}", found.commit_link
    if found.ci:
        yield found.ci, found.ci_link


def place_link(run: RunRecord, test: TestRecord) -> str:
    """Return the address of a test's line in the repository at the commit that ran, "" where that is not known."""
    file = f"{run.folder}/{test.file}" if run.folder else test.file
    return "" if test.line is None else source_link(run.repository, run.commit, file, test.line, ci=run.ci)
