"""Lets Ctrl-C reach the engine: the work runs in a thread, so that the main thread receives signals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from schedlab.engine import Cancel
from schedlab.errors import Cancelled

T = TypeVar("T")

GRACE_S = 5.0
"""The engine stops within milliseconds, unless it waits for a pipe without a writer."""


class Cancels(Protocol):
    """The engine, or an arm."""

    def cancel(self) -> Cancel: ...


def interruptible(engine: Cancels, work: Callable[[Cancel], T]) -> T:
    """What `work` returns or raises; Ctrl-C asks it to stop, waits for it and is raised again."""
    cancel, returned, raised = engine.cancel(), list[T](), list[BaseException]()
    # A bare lock: once interrupted, CPython 3.11's Thread.join takes the thread for ended (bpo-45274), and Event.wait
    # may release a lock that it does not hold.
    running = threading.Lock()
    running.acquire()

    def run() -> None:
        try:
            returned.append(work(cancel))
        except BaseException as e:  # raised again below
            raised.append(e)
        finally:
            running.release()

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
        running.acquire()
    except KeyboardInterrupt:
        cancel.cancel()
        if thread.ident is not None:
            running.acquire(timeout=GRACE_S)
        raise
    if raised:
        raise KeyboardInterrupt if isinstance(raised[0], Cancelled) else raised[0]
    return returned[0]
