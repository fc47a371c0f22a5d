"""Runs every variant with every seed on threads; the engine frees the GIL, so threads are enough."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from schedlab.engine import Cancel
from schedlab.errors import Cancelled, RunError, SchedlabError
from schedlab.outcome import Failure, Outcome, Run
from schedlab.scenario import Scenario

TRACE_SUFFIX = ".ftrace"


@dataclass(frozen=True, slots=True)
class Job:
    """One run to do."""

    variant: str
    seed: int
    trace: Path | None = None


def plan(scenario: Scenario, seeds: Sequence[int], traces: Path | None = None) -> list[Job]:
    """All variants of a seed in succession, so that an interrupted comparison has complete pairs."""
    return [
        Job(v.name, seed, traces / f"{v.name}-seed{seed}{TRACE_SUFFIX}" if traces else None)
        for seed in seeds
        for v in scenario.variants
    ]


class Runs(Protocol):
    """What executes the runs: the engine, or an arm."""

    def run(self, scenario: Scenario, variant: str, seed: int, *, trace: str | None, cancel: Cancel) -> Run: ...

    def cancel(self) -> Cancel: ...


class Runner:
    """Gives outcomes in the order in which they finish; what they say does not depend on the number of threads."""

    def __init__(self, arm: Runs, scenario: Scenario, jobs: Sequence[Job], threads: int) -> None:
        self._arm = arm
        self._scenario = scenario
        self._todo: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Outcome | BaseException | None] = queue.SimpleQueue()
        self._cancel: Cancel = arm.cancel()
        self._stopping = threading.Event()
        for job in jobs:
            self._todo.put(job)
        count = max(1, min(threads, len(jobs)))
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]

    def outcomes(self) -> Iterator[Outcome]:
        """Run everything. An exception in the caller, Ctrl-C included, stops the runs that are under way."""
        for thread in self._threads:
            thread.start()
        working = len(self._threads)
        try:
            while working:
                item = self._done.get()
                if item is None:
                    working -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            self.stop()

    def stop(self) -> None:
        """Start no more runs, stop the ones under way and wait for their threads."""
        self._stopping.set()
        self._cancel.cancel()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def finished(self) -> list[Outcome]:
        """Outcomes that had finished before `stop` and have not been returned yet."""
        rest = []
        while not self._done.empty():
            item = self._done.get()
            if item is not None and not isinstance(item, BaseException):
                rest.append(item)
        return rest

    def _work(self) -> None:
        try:
            while not self._stopping.is_set():
                self._done.put(self._one(self._todo.get_nowait()))
        except (queue.Empty, Cancelled):
            pass
        except BaseException as e:  # handed to the caller's thread, which reports it
            self._done.put(e)
        finally:
            self._done.put(None)

    def _one(self, job: Job) -> Outcome:
        trace = str(job.trace) if job.trace else None
        try:
            return self._arm.run(self._scenario, job.variant, job.seed, trace=trace, cancel=self._cancel)
        except Cancelled:
            raise
        except RunError as e:
            return Failure(job.variant, job.seed, e.message, e.hint)
        except MemoryError:
            return Failure(job.variant, job.seed, "out of memory", "fewer --jobs need less")


Observer = Callable[[Outcome], None]
"""Called with every run as it ends."""

__all__ = ["Job", "Observer", "Runner", "SchedlabError", "plan"]
