"""The settings of a project: those that pytest would read in a folder, without running it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_ragmetrics.cache import maintenance
from pytest_ragmetrics.diagnosis.provider import Spec
from pytest_ragmetrics.diagnosis.sign import Sign
from pytest_ragmetrics.files import paths
from pytest_ragmetrics.files.ini_file import IniFile
from pytest_ragmetrics.settings import OPTIONS, Option

_PREFIX = "rag_"


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A folder where pytest is started, and the file of settings that it finds, if there is one."""

    folder: Path
    ini: IniFile | None

    @property
    def root(self) -> Path:
        """The folder where paths of the ini file start."""
        return self.folder if self.ini is None else self.ini.path.parent

    def spec(self, field: str, given: str | None) -> Spec:
        """Return a setting: as it was given here, else that of the environment, else of the ini file, else auto."""
        option = _option(field)
        found = ((given or "", f"--{field}"), *((text, place) for place, text, _ in self._stated(option)))
        text, place = next(((text.strip(), place) for text, place in found if text.strip()), ("auto", "the default"))
        return Spec(text=text, place=place)

    def path(self, field: str, given: Path | None) -> Path | None:
        """Return the path of a setting, found as :meth:`spec` finds it; ``None`` if it is given nowhere."""
        if given is not None:
            return given.absolute()
        stated = self._stated(_option(field))
        return next((paths.a_path(text, base) for _, text, base in stated), None)

    def cache_dir(self, given: Path | None) -> Path:
        """Return the folder of the cache."""
        chosen = self.path("cache_dir", given)
        if chosen is not None:
            return chosen
        return self.root / maintenance.FOLDER if self.ini else maintenance.default_folder()

    def is_replaying(self) -> bool:
        """Say whether no judge is ever asked."""
        return self.spec("cache", None).text == "replay"

    def is_hooked(self, field: str) -> bool:
        """Say whether a hook of pytest, asked first, seems to make something of a setting."""
        hook = _option(field).hook
        files = (place / name for place in {self.folder, self.root} for name in ("conftest.py", "tests/conftest.py"))
        return hook is not None and any(
            file.is_file() and f"def {hook}" in file.read_text("utf-8", "replace") for file in files
        )

    def signs(self) -> Iterator[Sign]:
        """Yield where the settings come from, and each that pytest would refuse or not know."""
        known = {option.name: option for option in OPTIONS if option.in_ini}
        own = [key for key in self.ini.values if key.startswith(_PREFIX)] if self.ini else []
        faults = [self._unknown(key, known) for key in own if key not in known]
        for option in OPTIONS:
            faults += [
                fault for place, text, base in self._stated(option) if (fault := self._fault(option, text, place, base))
            ]
        if faults:
            yield from faults
        elif self.ini is None:
            yield Sign(topic="settings", text="no file with settings of pytest; `ragmetrics init` writes one")
        else:
            yield Sign(topic="settings", text=f"{self.ini.path}: {', '.join(own) or 'nothing of this plugin'}")

    def _stated(self, option: Option) -> Iterator[tuple[str, str, Path]]:
        """Yield where an option stands outside of a command line, with its text and the folder where a path starts."""
        variable = option.environment
        if variable and os.environ.get(variable, "").strip():
            yield variable, os.environ[variable], self.folder
        if self.ini is not None and option.in_ini and self.ini.text(option.name):
            yield f"{option.name} in {self.ini.path.name}", self.ini.text(option.name), self.root

    def _fault(self, option: Option, text: str, place: str, base: Path) -> Sign | None:
        try:
            option.parse(text, base)
        except ValueError as error:
            if self.is_hooked(option.field):
                return None
            return Sign(topic="settings", text=f"{place} is not usable", to_do=str(error))
        return None

    def _unknown(self, key: str, known: dict[str, Option]) -> Sign:
        from difflib import get_close_matches

        near = get_close_matches(key, known, n=1)
        hint = f"write {near[0]}, or take it out" if near else "take it out; `pytest --help` lists them all"
        return Sign(topic="settings", text=f"{key} is no setting of this plugin", to_do=hint)


def _option(field: str) -> Option:
    return next(option for option in OPTIONS if option.field == field)
