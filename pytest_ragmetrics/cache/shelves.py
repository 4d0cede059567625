"""Where answers are looked for and kept in a run: the cassette first, then the local store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import CacheUnavailableError, Entry
from pytest_ragmetrics.cache.nearest import Nearest, Neighbours
from pytest_ragmetrics.cache.store import Store

#: ``auto`` reads, calls on a miss and writes; ``replay`` never calls; ``refresh`` calls and overwrites, once a run;
#: ``off`` neither reads nor writes.
Mode = Literal["auto", "replay", "refresh", "off"]


class Shelves:
    """The places that hold entries, in one mode of one run.

    A store that cannot be used is given up after one warning, and entries are kept in memory from then on; one that
    can be read is read on. In replay it is an error instead: :class:`CacheUnavailableError`.
    """

    def __init__(
        self, *, store: Store | None, cassette: Cassette | None, mode: Mode, run: str, warn: Callable[[str], None]
    ) -> None:
        self.cassette = cassette
        #: What could be put into no store.
        self.loose: dict[str, Entry] = {}
        self._store = store
        self._is_writable = store is not None
        self._mode = mode
        self._run = run
        self._warn = warn
        self._neighbours: dict[str, Neighbours] = {}

    async def look(self, keys: Sequence[str]) -> dict[str, Entry]:
        """Return the entries of those keys that have one; when refreshing, only those this run made."""
        found = {} if self.cassette is None or self._mode == "refresh" else self.cassette.pick(keys)
        found |= {key: self.loose[key] for key in keys if key in self.loose}
        store = self._store
        rest = [key for key in keys if key not in found]
        if not rest or store is None or self._is_replay_without(store):
            return found
        try:
            return found | store.get_many(rest, run=self._run if self._mode == "refresh" else None)
        except CacheUnavailableError as error:
            self._give_up(store, error)
            return found

    async def keep(self, entries: Sequence[Entry]) -> None:
        """Keep entries, overwriting those of their keys."""
        store = self._store
        if store is not None and self._is_writable:
            try:
                await store.aput_many(entries, run=self._run)
            except CacheUnavailableError as error:
                self._stop_writing(error)
            else:
                return
        self.loose.update({entry.key: entry for entry in entries})

    def collect(self, keys: Iterable[str], loose: Mapping[str, Entry]) -> dict[str, Entry]:
        """Return the entries behind keys that a run used; those that got no answer are left out."""
        wanted = tuple(keys)
        refreshing = self._mode == "refresh"
        recorded = {} if self.cassette is None else self.cassette.pick(wanted)
        made = {key: loose[key] for key in wanted if key in loose}
        missing = [key for key in wanted if key not in made and (refreshing or key not in recorded)]
        store = self._store
        if missing and store is not None:
            try:
                made |= store.get_many(missing, run=self._run if refreshing else None) if store.exists() else {}
            except CacheUnavailableError as error:
                self._give_up(store, error)
        return recorded | made if refreshing else made | recorded

    def nearest(self, request: Mapping[str, Any]) -> Nearest | None:
        """Return the recorded entry nearest to a request of its task: from the cassette, else from the store."""
        found = None if self.cassette is None else self.cassette.nearest(request)
        store = self._store
        if found is not None or store is None or not store.exists():
            return found
        task = request["task"]
        if task not in self._neighbours:
            self._neighbours[task] = Neighbours(entry for entry in store if entry.task == task)
        return self._neighbours[task].nearest(request)

    def _is_replay_without(self, store: Store) -> bool:
        # A replay from a cassette alone must not leave a folder behind, nor need one that can be written.
        return self._mode == "replay" and not store.exists()

    def _give_up(self, store: Store, error: CacheUnavailableError) -> None:
        if self._mode == "replay":
            raise error
        if self._store is store:
            self._store = None
            # A folder that cannot be used says so when it is first looked into, or once it is written to.
            self._stop_writing(error)

    def _stop_writing(self, error: CacheUnavailableError) -> None:
        if self._is_writable:
            self._is_writable = False
            kept = "without a local cache" if self._store is None else "and adds nothing to the local cache"
            self._warn(f"{error}; this run goes on {kept}")
