"""The ledger of batches in the cache folder: what was or may have been submitted, and what came back.

A file ``NAME.json`` is written before a batch is posted, and replaced when its ID is known; ``NAME.jsonl`` has the
replies, and is written before the batch counts as ended. Each is replaced as a whole, so a process that is killed
leaves one state or the next.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pytest_ragmetrics.core.errors import CacheError
from pytest_ragmetrics.core.files import PRIVATE_FOLDER, read_json, write_atomically
from pytest_ragmetrics.core.locks import lock_file
from pytest_ragmetrics.judges.transports.values import Reply

_REPLY = tuple(field.name for field in fields(Reply) if field.name not in ("vectors", "answered", "cached", "parts"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Requests that were or may have been submitted together, by key.

    ``name`` is ours, and is sent along where a provider keeps it. ``ids`` are the provider's: none before it answered,
    and several where one of them is ours and only its results will tell which.
    """

    name: str
    judge: str
    created: str
    keys: tuple[str, ...]
    ids: tuple[str, ...] = ()
    ended: bool = False
    #: Whether the IDs were looked for, so that a batch may be somebody else's.
    found: bool = False
    #: What the server was known to accept when it was posted, as :func:`~pytest_ragmetrics.core.codec.dump` has it.
    terms: Any = None

    @property
    def shown(self) -> str:
        """How messages name it."""
        return " or ".join(self.ids) or self.name

    @property
    def created_at(self) -> datetime:
        """When it was about to be posted."""
        return datetime.fromisoformat(self.created)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """Why a request of a batch has no reply."""

    reason: str


#: What a batch says about one request.
BatchAnswer = Reply | Failed


def new_name() -> str:
    """Return a name that no other batch has."""
    return f"rag-{secrets.token_hex(6)}"


class Ledger:
    """The batches of a cache folder, for one process at a time.

    Raises :class:`~pytest_ragmetrics.cache.entry.CacheError` for a folder that another run uses, and a file that cannot
    be read: what it says was paid for.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "batches"
        self._lock = lock_file(self._folder / "run.lock")
        if not self._lock.take():
            raise CacheError(f"another run submits or collects the batches in {self._folder}: wait until it has ended")
        self._folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        self._batches: dict[str, Batch] = {}
        self._of: dict[str, str] = {}
        self._answers: dict[str, dict[str, BatchAnswer]] = {}
        self._served: set[str] = set()
        for file in sorted(self._folder.glob("*.json")):
            try:
                row = read_json(file)
                self._note(Batch(**{**row, "keys": tuple(row["keys"]), "ids": tuple(row["ids"])}))
            except (OSError, ValueError, TypeError, KeyError) as error:
                self._lock.release()
                msg = f"{file} cannot be read ({error}); it says which requests are paid for: restore it, or delete it"
                raise CacheError(msg) from error

    def __iter__(self) -> Any:
        return iter(tuple(self._batches.values()))

    def batch_of(self, key: str) -> Batch | None:
        """Return the batch that a request is in."""
        return self._batches.get(self._of.get(key, ""))

    def begin(self, name: str, judge: str, keys: Iterable[str], terms: Any = None) -> Batch:
        """Note a batch that is about to be posted."""
        created = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        return self.write(Batch(name=name, judge=judge, created=created, keys=tuple(keys), terms=terms))

    def write(self, batch: Batch) -> Batch:
        """Note the state of a batch."""
        write_atomically(self._folder / f"{batch.name}.json", json.dumps(asdict(batch)))
        self._note(batch)
        return batch

    def end(self, batch: Batch, answers: Mapping[str, BatchAnswer]) -> Batch:
        """Keep what a batch says about its requests; those that it says nothing about are in no batch any more."""
        rows = ({"key": key, **_row(answer)} for key, answer in answers.items())
        # ASCII only: UTF-8 has no lone surrogates.
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        write_atomically(self._file(batch), text)
        self._answers[batch.name] = dict(answers)
        self._forget_keys(batch)
        return self.write(replace(batch, keys=tuple(key for key in batch.keys if key in answers), ended=True))

    def remove(self, batch: Batch) -> None:
        """Forget a batch that was never posted, or whose replies are all used."""
        self._forget_keys(batch)
        del self._batches[batch.name]
        (self._folder / f"{batch.name}.json").unlink(missing_ok=True)
        self._file(batch).unlink(missing_ok=True)

    def answer(self, key: str) -> BatchAnswer | None:
        """Return what a batch says about a request, ``None`` before it has ended."""
        batch = self.batch_of(key)
        if batch is None or not batch.ended:
            return None
        if batch.name not in self._answers:
            self._answers[batch.name] = self._read(batch)
        self._served.add(key)
        return self._answers[batch.name].get(key)

    def clear_used(self, is_stored: Any) -> None:
        """Forget the batches whose replies were all used or are stored elsewhere.

        While one is waited for none of the others is: a reply that was repaired is stored when its repair is there.
        """
        for batch in self:
            # Nobody will ask for what another machine had answered meanwhile.
            if not batch.ended and is_stored(batch.keys):
                self.remove(batch)
        if not all(batch.ended for batch in self):
            return
        for batch in self:
            rest = [key for key in batch.keys if key not in self._served]
            if not rest or is_stored(rest):
                self.remove(batch)

    def close(self) -> None:
        """Let another run use the folder."""
        self._lock.release()

    def _file(self, batch: Batch) -> Path:
        return self._folder / f"{batch.name}.jsonl"

    def _read(self, batch: Batch) -> dict[str, BatchAnswer]:
        try:
            # Not splitlines(): replies contain other line separators.
            rows = [json.loads(line) for line in self._file(batch).read_text("utf-8").split("\n") if line]
            return {row.pop("key"): _answer(row) for row in rows}
        except (OSError, ValueError, TypeError, KeyError) as error:
            msg = f"{self._file(batch)} cannot be read ({error}): set ended to false in {batch.name}.json to fetch it"
            raise CacheError(msg) from error

    def _note(self, batch: Batch) -> None:
        self._batches[batch.name] = batch
        self._of.update(dict.fromkeys(batch.keys, batch.name))

    def _forget_keys(self, batch: Batch) -> None:
        for key in batch.keys:
            if self._of.get(key) == batch.name:
                del self._of[key]


def _row(answer: BatchAnswer) -> dict[str, Any]:
    if isinstance(answer, Failed):
        return {"failed": answer.reason}
    return {name: getattr(answer, name) for name in _REPLY}


def _answer(row: Mapping[str, Any]) -> BatchAnswer:
    return Failed(reason=row["failed"]) if "failed" in row else Reply(**row)
