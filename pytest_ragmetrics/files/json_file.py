"""Reading a file that holds one JSON value, as strictly as JSON is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn


def read_json(file: Path) -> Any:
    """Return what a file of JSON holds, in UTF-8 with or without a byte order mark.

    Raises ``OSError`` where it cannot be read, and ``ValueError`` for what is no JSON: NaN is none either.
    """
    try:
        return json.loads(file.read_bytes().decode("utf-8-sig"), parse_constant=_refuse_constant)
    except RecursionError as error:
        msg = "it is nested too deeply"
        raise ValueError(msg) from error


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is no JSON number"
    raise ValueError(msg)
