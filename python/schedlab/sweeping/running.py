"""Executes the runs of a plan that have not ended yet, here or on a cluster, and stores each before reporting it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from schedlab.errors import OutputError
from schedlab.sweeping import TIME_LIMIT_S
from schedlab.sweeping.job import Answer, Executor, Limits, job
from schedlab.sweeping.local import Local
from schedlab.sweeping.plan import Plan, Planned, shard
from schedlab.sweeping.writer import Writer

LEAST_MB = 1024


class Running:
    """An experiment that is being written."""

    def __init__(
        self,
        planned: Plan,
        out: Path,
        provenance: dict[str, Any],
        *,
        part: tuple[int, int] | None = None,
        retry: bool = False,
    ) -> None:
        """`part`: which shard of how many. With `retry`, failed runs are done again."""
        self._planned = planned
        self._writer = Writer(out, planned, provenance, part)
        self.ended = self._writer.ended
        done = {name for name, status in self.ended.items() if status == "ok" or not retry}
        runs = [run for name, run in planned.distinct.items() if name not in done]
        self.todo: Sequence[Planned] = shard(runs, *part) if part else runs
        """The runs that have not ended."""

    def run(self, executor: Executor, ended: Callable[[Planned, bool], None]) -> None:
        """Execute them; `ended` is called with each, and whether it failed, once it is on the disk."""
        if not self.todo:
            return
        names = {run.id: run for run in self.todo}
        waiting: deque[Answer] = deque()
        reported = 0

        def report(until: int) -> None:
            nonlocal reported
            while reported < until:
                answer = waiting.popleft()
                reported += 1
                ended(names[answer.id], answer.failed)

        stream = executor.answers([job(self._planned, run) for run in self.todo])
        try:
            for answer in stream:
                self._writer.append(answer.line)
                waiting.append(answer)
                report(self._writer.synced)
            self._writer.sync()
            report(reported + len(waiting))
        finally:
            _close(stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._writer.sync()
        else:
            with suppress(OutputError):  # what is under way says more
                self._writer.sync()
        self._writer.close()


def executor(
    planned: Plan,
    jobs: int,
    *,
    dask: str | None = None,
    time_limit_s: float = TIME_LIMIT_S,
    memory_mb: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Executor:
    """This many worker processes on this machine, or a Dask cluster.

    By default a run may use its share of the memory of this machine.
    """
    limits = Limits(
        seconds=float(time_limit_s),
        memory_mb=memory_mb or _share_mb(1 if dask else jobs),
        folder=planned.sweep.scenario.parent.absolute(),
        build=planned.build,
    )
    if dask:
        from schedlab.sweeping.cluster import Cluster

        return Cluster(dask, jobs, limits, planned, say)
    return Local(jobs, limits)


def _share_mb(jobs: int) -> int:
    """The limits of one of several runs: its share of the memory of this machine."""
    return max(LEAST_MB, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (jobs << 20))


def _close(stream: Iterator[Answer]) -> None:
    """Stop the runs that are under way."""
    close: Callable[[], None] | None = getattr(stream, "close", None)
    if close:
        close()
