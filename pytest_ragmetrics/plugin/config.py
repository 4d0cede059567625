"""The config that pytest has in a folder, read by a pytest that stops before it collects tests."""

from __future__ import annotations

import io
import os
import re
import sys
import traceback
import warnings
from collections.abc import Generator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

import pytest

from pytest_ragmetrics.core import files as paths
from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.plugin.settings import OPTIONS, add_options

_LONGEST = 400


class SettingsFileError(RagMetricsError):
    """A file with settings of pytest cannot be read."""


class FolderConfig(NamedTuple):
    """The config of pytest, the settings in its file by key, and why pytest does not start (empty if it does)."""

    config: pytest.Config
    values: Mapping[str, Any]
    problem: str


def read_config(*arguments: str) -> FolderConfig:
    """Return what pytest reads when started in the current folder; no test is collected, and no file is written.

    Plugins and conftest.py files are imported. Raises :class:`SettingsFileError`.
    """
    reader = _Reader()
    before, folder = (sys.path[:], sys.dont_write_bytecode), Path.cwd()
    sys.dont_write_bytecode = True
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pytest puts its own filters in front
            # Rewriting would warn of the modules of this package, which are imported already.
            pytest.main(["--assert=plain", *arguments], plugins=[reader])
    except _Stopped:
        pass
    finally:
        sys.path[:], sys.dont_write_bytecode = before
        os.chdir(folder)
    config, problem = reader.config, "" if reader.error is None else _problem(reader.error)
    if not hasattr(config, "known_args_namespace"):
        file = getattr(config, "inipath", None)  # not there yet if no file was read
        raise SettingsFileError(f"{file}: {problem}" if file else problem)
    if problem:  # it has read its arguments, and not yet taken them over
        vars(config.option).update(vars(config.known_args_namespace))
    try:
        for option in OPTIONS:
            if option.in_ini:
                config.getini(option.name)
    except ValueError:  # the plugin is not loaded
        add_options(reader.parser)
    except (TypeError, pytest.UsageError) as error:
        raise SettingsFileError(_problem(error)) from error
    with warnings.catch_warnings():
        # inicfg is deprecated, and nothing else in pytest has the keys that nobody registered.
        warnings.simplefilter("ignore")
        return FolderConfig(config, dict(config.inicfg), problem)


class _Stopped(BaseException):
    """pytest was stopped on purpose."""


class _Reader:
    """A plugin that keeps the config, and stops pytest before the hooks that run tests."""

    config: pytest.Config
    parser: pytest.Parser
    error: BaseException | None = None

    def pytest_addoption(self, parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
        self.parser = parser
        self.config = pluginmanager.get_plugin("pytestconfig")  # type: ignore[assignment] # made before the plugins

    @pytest.hookimpl(wrapper=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Generator[None, object, object]:
        # pytest-cov would erase what the last run measured.
        early_config.known_args_namespace.no_cov = True
        return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)  # before what others do with the config
    def pytest_cmdline_parse(self) -> Generator[None, object, object]:
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a conftest.py may exit or skip
            self.error = error
        raise _Stopped


def _problem(error: BaseException) -> str:
    """Return in one line why pytest does not start, with the file at fault."""
    if isinstance(error, UnicodeDecodeError):
        files = (folder / name for folder in (Path.cwd(), *Path.cwd().parents) for name in paths.CONFIGURATIONS.split())
        broken = (str(file) for file in files if file.is_file() and "\ufffd" in file.read_text("utf-8", "replace"))
        return f"{next(broken, 'settings')}: {error}"
    text = re.sub(r"\Ausage: .*?error: ", "", str(error), flags=re.DOTALL)
    if (cause := error.__cause__) and str(cause) not in text:
        text = f"{text}: {type(cause).__name__}: {cause}"
    # An import that fails names the error and the file itself.
    if not isinstance(error, pytest.UsageError) and not hasattr(error, "cause"):
        files = (Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__))
        places = [f" (from {file})" for file in files if file.name == "conftest.py"]
        text = f"{type(error).__name__}: {text}" + "".join(places[-1:])
    return shorten(text, _LONGEST, placeholder=" ...")
