"""How far a command is: one line that is redrawn on a terminal; elsewhere a line at every tenth of the runs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from schedlab import plain

if TYPE_CHECKING:
    from schedlab.engine import UnderWay

REDRAW_S = 0.5
SHOWN_RUNS = 2
"""Of the runs that are under way."""
SMALLEST = 0.005
"""The fraction below which nothing can be said about the time that is left."""


def nothing_under_way() -> list[UnderWay]:
    """For commands whose runs cannot be looked into."""
    return []


def nothing_to_note() -> str:
    """For commands whose progress needs no more words."""
    return ""


class Progress:
    """Progress over a number of runs. A terminal also shows how far the runs under way are."""

    def __init__(
        self,
        total: int,
        live: bool,
        under_way: Callable[[], Sequence[UnderWay]] = nothing_under_way,
        note: Callable[[], str] = nothing_to_note,
    ) -> None:
        self._note = note
        self._total, self._done, self._shown, self._last = total, 0, 0, ""
        self._under_way = under_way
        self._began = time.monotonic()
        self._over, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._redraw, daemon=True) if live and total else None
        if self._thread:
            self._thread.start()

    def step(self, text: str) -> None:
        """One more run has ended."""
        with self._lock:
            self._done, self._last = self._done + 1, text
        if self._thread:
            self._draw()
        elif self._total and self._done * 10 // self._total > self._shown:
            self._shown = self._done * 10 // self._total
            note = self._note()
            left = self._elapsed() * (self._total - self._done) / self._done
            write(f"{self._done}/{self._total} runs{f', {note}, {clock(1e9 * left)} left' if note else ''}\n")

    def clear(self) -> None:
        """Leave the line to others; the progress is over."""
        self._over.set()
        if self._thread and self._thread.ident is not None:
            self._thread.join()
            self._thread = None
            write("\r\x1b[K")

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _redraw(self) -> None:
        while not self._over.wait(REDRAW_S):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            words = ", ".join(word for word in (self._last, self._note()) if word)
            text = line(self._done, self._total, words, self._under_way(), self._elapsed())
            if not self._over.is_set():
                write(f"\r\x1b[K{plain.escaped(text)}")


def line(done: int, total: int, last: str, under_way: Sequence[UnderWay], elapsed_s: float) -> str:
    """Runs that have ended, the last of them or how far the longest-running ones are, and the time that is left.

    A run may end before its duration, so the time left is an upper estimate.
    """
    seen = [run for run in under_way if run.now_ns]
    runs = [f"{run.label} at {clock(run.now_ns)} of {clock(run.duration_ns)}" for run in seen[:SHOWN_RUNS]]
    words = [f"[{done}/{total}]", ", ".join(runs) or last]
    fraction = (done + sum(min(1.0, run.now_ns / run.duration_ns) for run in seen)) / total if total else 1.0
    left = f", about {clock(1e9 * elapsed_s * (1 - fraction) / fraction)} left" if fraction > SMALLEST else ""
    return " ".join(word for word in words if word) + left


def clock(ns: float) -> str:
    """A time with the unit that suits it."""
    seconds = ns / 1e9
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == 0 else f"{seconds:.2g} s"


def write(text: str) -> None:
    """To stderr, where an error cannot be reported any more."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass
