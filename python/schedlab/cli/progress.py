"""The progress of a command: one line that is redrawn on a terminal; elsewhere a line at every tenth of the work."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from schedlab import plain
from schedlab.cli.terminal import terminal_columns

if TYPE_CHECKING:
    from schedlab.engine import UnderWay

REDRAW_S = 0.5
QUIET_S = 10.0
"""Outside a terminal, runs under way are reported after this time."""
SHOWN_RUNS = 2
"""Of the runs that are under way."""
SMALLEST = 0.005
"""The fraction below which the remaining time cannot be estimated."""

LONG_S = 120.0
"""Work that takes longer is announced, with how to shorten it."""
SURE_S = 3.0
"""How long the work goes on before its duration is estimated for that."""

SOON_S = 1.0
"""A shorter remaining time is not shown."""


def nothing_under_way() -> list[UnderWay]:
    """For commands whose runs do not report their progress."""
    return []


def nothing_to_note() -> str:
    """For commands whose progress needs no more words."""
    return ""


class Progress:
    """Progress over a number of runs: how many have ended, the rate, the time that is left, and the runs under way."""

    def __init__(
        self,
        total: int,
        live: bool,
        under_way: Callable[[], Sequence[UnderWay]] = nothing_under_way,
        note: Callable[[], str] = nothing_to_note,
        what: str = "runs",
        quiet_s: float = 0.0,
        shorter: str = "",
    ) -> None:
        self._note, self._live, self._what, self._quiet_s = note, live, what, quiet_s
        self._shorter = shorter
        self._total, self._done, self._shown, self._last = total, 0, 0, ""
        self._under_way = under_way
        self._began = time.monotonic()
        self._over, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._watch, daemon=True) if total else None
        if self._thread:
            self._thread.start()

    def step(self, text: str) -> None:
        """One more run has ended."""
        with self._lock:
            self._done, self._last = self._done + 1, text
        if self._live and self._thread:
            self._draw()
        elif self._total:
            self._report(())

    def clear(self) -> None:
        """Leave the line to others; the progress is over."""
        self._over.set()
        if self._thread and self._thread.ident is not None:
            self._thread.join()
            self._thread = None
            if self._live:
                write("\r\x1b[K")

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _watch(self) -> None:
        while not self._over.wait(REDRAW_S):
            self._announce()
            if self._live:
                self._draw()
            elif self._elapsed() > QUIET_S:
                self._report(self._under_way())

    def _announce(self) -> None:
        """Once, as soon as it is known: that the work takes long, and how to shorten it."""
        if not self._shorter:
            return
        with self._lock:
            text = announcement(self._done, self._total, self._under_way(), self._elapsed(), self._shorter)
            if text and not self._over.is_set():
                self._shorter = ""
                write(f"\r\x1b[K{text}\n" if self._live else f"{text}\n")

    def _report(self, under_way: Sequence[UnderWay]) -> None:
        """A line for each tenth, of the runs that have ended and of long ones under way."""
        if self._elapsed() < self._quiet_s:
            return
        with self._lock:
            tenths = int(10 * fraction(self._done, self._total, under_way))
            if tenths <= self._shown or self._over.is_set():
                return
            self._shown = tenths
            words = pace(self._done, self._total, under_way, self._elapsed(), self._what)
            parts = [
                f"{self._done}/{self._total} {self._what}",
                *([f"{10 * tenths}%"] if under_way else []),
                self._note(),
                words,
            ]
            write(", ".join(part for part in parts if part) + "\n")

    def _draw(self) -> None:
        with self._lock:
            words = ", ".join(word for word in (self._last, self._note()) if word)
            text = plain.escaped(line(self._done, self._total, words, self._under_way(), self._elapsed(), self._what))
            if not self._over.is_set():
                # A line that wraps could not be redrawn.
                write(f"\r\x1b[K{text[: terminal_columns() - 1]}")


def line(done: int, total: int, last: str, under_way: Sequence[UnderWay], elapsed_s: float, what: str = "runs") -> str:
    """Runs that have ended, the rate, the time left, and the last of them or how far the longest-running ones are."""
    seen = [run for run in under_way if run.now_ns]
    runs = [f"{run.label} at {clock(run.now_ns)} of {clock(run.duration_ns)}" for run in seen[:SHOWN_RUNS]]
    words = [pace(done, total, under_way, elapsed_s, what), ", ".join(runs) or last]
    return " ".join([f"[{done}/{total}]", *([", ".join(word for word in words if word)] if any(words) else [])])


def fraction(done: int, total: int, under_way: Sequence[UnderWay]) -> float:
    """The share of all runs that is done, with the simulated time that those under way have reached."""
    reached = sum(min(1.0, run.now_ns / run.duration_ns) for run in under_way)
    return min(1.0, (done + reached) / total) if total else 1.0


def pace(done: int, total: int, under_way: Sequence[UnderWay], elapsed_s: float, what: str = "runs") -> str:
    """The rate, in simulated time where there is a single run, and the time that is left.

    A run may end before its duration, so the time left is an upper estimate.
    """
    part = fraction(done, total, under_way)
    if part <= SMALLEST or elapsed_s <= 0:
        return ""
    left_s = elapsed_s * (1 - part) / part
    left = "" if left_s < SOON_S else f"about {clock(1e9 * left_s)} left"
    if total == 1:
        reached = sum(run.now_ns for run in under_way)
        rate = f"{clock(reached / elapsed_s)} simulated per second" if reached else ""
    else:
        each_s = part * total / elapsed_s
        rate = f"{figures(each_s)} {what}/s" if each_s >= 1 else f"{figures(60 * each_s)} {what}/min"
    return ", ".join(word for word in (rate, left) if word)


def announcement(done: int, total: int, under_way: Sequence[UnderWay], elapsed_s: float, shorter: str) -> str:
    """How long all of it takes and how to shorten it, if that is long; empty as long as it is not known."""
    part = fraction(done, total, under_way)
    if elapsed_s < SURE_S or part <= SMALLEST or elapsed_s / part < LONG_S:
        return ""
    return f"this takes about {clock(1e9 * elapsed_s / part)} in all; to shorten it: {shorter}"


def figures(rate: float) -> str:
    """A rate with two figures, or all before the decimal point."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


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
