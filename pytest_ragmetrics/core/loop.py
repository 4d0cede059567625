"""One event loop in a background thread for everything that talks to a judge.

A client of a judge belongs to the event loop it was made on. Metrics are called from plain tests, from tests with
a loop of their own and from scripts, so their coroutines all run on this one.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
Close = Callable[[], Awaitable[object]]

# Waiting without a limit cannot be interrupted on Windows.
_GLANCE = 0.5
# A coroutine that will not be cancelled must not keep a process from ending.
_JOIN_TIMEOUT = 10.0


class _Background:
    """A running loop and its thread; raises ``RuntimeError`` where no thread can be started any more."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # asyncio ends a default executor of its own from one more thread, which Python 3.12 does not start at exit.
        self._workers = ThreadPoolExecutor(thread_name_prefix="ragmetrics-worker")
        self.loop.set_default_executor(self._workers)
        self.closers: list[Close] = []
        self._stopping = False
        self.thread = threading.Thread(target=self._serve, name="ragmetrics-loop", daemon=True)
        try:
            self.thread.start()
        except RuntimeError:
            self.loop.close()
            raise

    def submit(self, coro: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(coro, self.loop)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._end)
        self.thread.join(_JOIN_TIMEOUT)

    def _end(self) -> None:
        self._stopping = True
        self.loop.stop()

    def _serve(self) -> None:
        with closing(self.loop), self._workers:
            while not self._stopping:
                # These two end a loop after they were raised in the waiting thread; the others still need it.
                with suppress(KeyboardInterrupt, SystemExit):
                    self.loop.run_forever()
            self.loop.run_until_complete(self._wind_up())

    async def _wind_up(self) -> None:
        """Cancel what is left, then close what was to be closed, and generators; at exit no thread can be started."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for close in reversed(self.closers):
            # One that fails must not keep the others open.
            with suppress(Exception):
                await close()
        await self.loop.shutdown_asyncgens()


class _Call(Generic[T]):
    """A coroutine that can be cancelled from another thread at any time, even before its task exists."""

    def __init__(self, coro: Coroutine[Any, Any, T]) -> None:
        self._coro = coro
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False

    async def run(self) -> T:
        self._task = asyncio.current_task()
        if self._cancelled:
            self._coro.close()
            raise asyncio.CancelledError
        return await self._coro

    def cancel(self) -> None:
        self._cancelled = True
        if self._task is not None:
            # A closed loop has cancelled it.
            with suppress(RuntimeError):
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)


_lock = threading.Lock()
_background: _Background | None = None
#: The attributes that a forked child makes anew, by their owner.
_made_anew: WeakKeyDictionary[object, dict[str, Callable[[], object]]] = WeakKeyDictionary()
# A forked child shares sockets and selector with its parent: to close them would close those of the parent.
_inherited: list[object] = []
_pauses: list[threading.Event] = []


def run(coro: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop and wait for it, from any thread, whether or not a loop runs there.

    An interrupt while waiting cancels the coroutine. Raises what the coroutine raises, and ``RuntimeError`` on the
    background loop's own thread, which would wait for itself.

    >>> run(asyncio.sleep(0, "done"))
    'done'
    """
    if _is_own_thread():
        coro.close()
        msg = "a coroutine of this loop cannot wait for another by blocking: await ascore() instead of calling score()"
        raise RuntimeError(msg)
    call = _Call(coro)
    try:
        future = _submit(call.run(), coro)
        while not future.done():
            wait((future,), timeout=_GLANCE)
    except BaseException:
        call.cancel()
        raise
    return future.result()


async def arun(coro: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop and await it from any loop; cancelling this cancels it.

    >>> asyncio.run(arun(asyncio.sleep(0, "done")))
    'done'
    """
    if _is_own_thread():
        return await coro
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # awaited by another framework, which can at least be given the result
        return run(coro)
    return await asyncio.wrap_future(_submit(coro))


async def gather_or_cancel(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Await all at the same time; when one raises, or this is cancelled, cancel the others and wait for them.

    >>> asyncio.run(gather_or_cancel([asyncio.sleep(0, "one"), asyncio.sleep(0, "two")]))
    ['one', 'two']
    """
    tasks: list[asyncio.Future[T]] = []
    try:
        tasks.extend(map(asyncio.ensure_future, awaitables))
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def stop() -> None:
    """Cancel what still runs and close the background loop; the next call starts a new one.

    Raises ``RuntimeError`` on the loop's own thread.
    """
    global _background
    if _is_own_thread():
        raise RuntimeError("the background loop cannot stop itself")
    with _lock:
        background, _background = _background, None
    if background is not None and background.thread.is_alive():
        background.stop()


def on_stop(close: Close) -> None:
    """Have the loop await ``close()`` before it ends, the last one first: the way to give a client back."""
    with _lock:
        _started().closers.append(close)


def on_stop_here(close: Close) -> None:
    """Do as :func:`on_stop` if this is the loop's own thread, so that its end is also that of the client."""
    if _background is not None and _is_own_thread():
        # No lock, which a thread that waits for this loop may hold.
        _background.closers.append(close)


def closed_here(close: Close) -> None:
    """Take back :func:`on_stop_here`."""
    if _background is not None and _is_own_thread():
        with suppress(ValueError):
            _background.closers.remove(close)


def _submit(coro: Coroutine[Any, Any, T], *awaited: Coroutine[Any, Any, Any]) -> Future[T]:
    """Hand over a coroutine; where no loop can be started, close it and those that it would have ``awaited``."""
    # The lock is held until the coroutine is scheduled, so that a loop that is stopping gets no more of them.
    with _lock:
        try:
            background = _started()
        except RuntimeError:
            for unused in (coro, *awaited):
                unused.close()
            raise
        return background.submit(coro)


def _started() -> _Background:
    """Return the loop, started if it does not run; the lock must be held."""
    global _background  # noqa: PLW0603 - one loop a process is the purpose of this module
    if _background is None or not _background.thread.is_alive():
        _background = _Background()
    return _background


def _is_own_thread() -> bool:
    return _background is not None and _background.thread is threading.current_thread()


def in_child(owner: object, **attributes: Callable[[], object]) -> None:
    """Have a forked child give its copy of an object new attributes, for those of the parent's loop and threads.

    Each is what the call of its value returns. The parent keeps its own.
    """
    _made_anew[owner] = attributes


def pause() -> None:
    """Have the loop wait between two turns until a fork is made: a lock that it held would stay locked in the child."""
    background = _background
    if background is None or _pauses or _is_own_thread() or not background.thread.is_alive():
        return
    reached, go_on = threading.Event(), threading.Event()
    _pauses.append(go_on)

    def wait() -> None:
        reached.set()
        go_on.wait()

    # A loop that is stopped meanwhile is closed.
    with suppress(RuntimeError):
        background.loop.call_soon_threadsafe(wait)
        reached.wait(_JOIN_TIMEOUT)


def _resume() -> None:
    while _pauses:
        _pauses.pop().set()


def _forget() -> None:
    """Start afresh in a forked child."""
    global _background, _lock  # noqa: PLW0603 - as above
    _lock = threading.Lock()
    _pauses.clear()
    if _background is not None:
        _inherited.append(_background)
        inherited, _background = _background.loop, None
        inherited.set_exception_handler(lambda *_: None)
        # Finalisers of connections take them from the selector of a loop that is not closed, and close() does too.
        with suppress(AttributeError):  # uvloop's has none to set
            inherited.is_closed = lambda: True  # type: ignore[method-assign]
    for owner, attributes in _made_anew.items():
        _inherited.extend(vars(owner)[name] for name in attributes)
        vars(owner).update({name: make() for name, make in attributes.items()})


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=pause, after_in_parent=_resume, after_in_child=_forget)
atexit.register(stop)
