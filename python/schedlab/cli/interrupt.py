"""Lets Ctrl-C reach the engine: the work goes to a thread, so that the main one hears it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from schedlab.engine import Cancel
from schedlab.errors import Cancelled

T = TypeVar("T")

GRACE_S = 5.0
"""The engine stops within milliseconds, unless it waits for a pipe that nobody writes to."""


class Cancels(Protocol):
    """The engine, or an arm."""

    def cancel(self) -> Cancel: ...


def interruptible(engine: Cancels, work: Callable[[Cancel], T]) -> T:
    """What `work` returns or raises; Ctrl-C asks it to stop, waits for it and is raised again."""
    cancel, returned, raised = engine.cancel(), list[T](), list[BaseException]()
    # Not Thread.join: once interrupted, CPython 3.11's takes the thread for ended (bpo-45274).
    ended = threading.Event()

    def run() -> None:
        try:
            returned.append(work(cancel))
        except BaseException as e:  # raised again below
            raised.append(e)
        finally:
            ended.set()

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
        ended.wait()
    except KeyboardInterrupt:
        cancel.cancel()
        if thread.ident is not None:
            ended.wait(GRACE_S)
        raise
    if raised:
        raise KeyboardInterrupt if isinstance(raised[0], Cancelled) else raised[0]
    return returned[0]
