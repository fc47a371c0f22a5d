"""The decisions of a run as columns: switches, wakeups and migrations, from the engine or from a native scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIZE = 24
SWITCH, WAKEUP, WAKEUP_NEW, MIGRATE, CPU = 1, 2, 3, 4, 100
TO_STOPPER, FROM_STOPPER = 1 << 8, 1 << 9


@dataclass(frozen=True)
class Decisions:
    """One table per kind, each row an array of int64."""

    switches: NDArray[np.int64]
    """time, CPU, pid that leaves, pid that enters; ordered by time and CPU."""
    wakeups: NDArray[np.int64]
    """time, pid, CPU selected."""
    migrations: NDArray[np.int64]
    """time, pid, CPU before, CPU after."""
    busy_ns: NDArray[np.int64]
    """Per CPU; only of a native scheduler."""


def parse(data: bytes) -> Decisions:
    """The records of a run; the stopper, which is a task only on the native side, is left out of the switches."""
    import numpy as np

    layout = np.dtype([("time", "<u8"), ("cpu", "<u2"), ("kind", "<u2"), ("a", "<u4"), ("b", "<u4"), ("none", "<u4")])
    records = np.frombuffer(data, dtype=layout)
    kind = records["kind"] & 0xFF
    # The kernel has no sched_migrate_task for the CPU of a new task (__set_task_cpu), the engine has.
    placed = (kind[:-1] == MIGRATE) & (kind[1:] == WAKEUP_NEW) & (records["a"][:-1] == records["a"][1:])
    keep = np.ones(len(records), dtype=bool)
    keep[:-1] = ~placed
    records, kind = records[keep], kind[keep]

    def columns(which: NDArray[np.bool_], *names: str) -> NDArray[np.int64]:
        found = records[which]
        return np.stack([found[name].astype(np.int64) for name in names], axis=1)

    switches = columns(kind == SWITCH, "time", "cpu", "a", "b", "kind")
    wakeups = columns((kind == WAKEUP) | (kind == WAKEUP_NEW), "time", "a", "b")
    moved = columns(kind == MIGRATE, "time", "a", "b")
    ends = records[kind == CPU]
    busy = ends["a"].astype(np.int64) | ends["b"].astype(np.int64) << 32
    migrations = np.stack([moved[:, 0], moved[:, 1], moved[:, 2] >> 16, moved[:, 2] & 0xFFFF], axis=1)
    return Decisions(
        switches=_by_time_and_cpu(_without_stopper(switches)),
        wakeups=_by_time_and_pid(wakeups),
        migrations=_by_time_and_pid(migrations),
        busy_ns=busy,
    )


def _without_stopper(switches: NDArray[np.int64]) -> NDArray[np.int64]:
    """A switch to the stopper and the one away from it become one, or none if the same task continues."""
    import numpy as np

    involved = np.flatnonzero(switches[:, 4] & (TO_STOPPER | FROM_STOPPER))
    if not len(involved):
        return switches[:, :4]
    left = dict[int, int]()
    keep = np.ones(len(switches), dtype=bool)
    switches = switches.copy()
    for i in involved:
        _, cpu, prev, entered, kind = (int(x) for x in switches[i])
        if kind & FROM_STOPPER:
            prev = left.pop(cpu, prev)
            switches[i, 2] = prev
        if kind & TO_STOPPER:
            left[cpu] = prev
            keep[i] = False
        elif prev == entered:
            keep[i] = False
    return switches[keep][:, :4]


def _by_time_and_cpu(switches: NDArray[np.int64]) -> NDArray[np.int64]:
    import numpy as np

    return switches[np.lexsort((switches[:, 1], switches[:, 0]))]


def _by_time_and_pid(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    import numpy as np

    return rows[np.lexsort((rows[:, 1], rows[:, 0]))]
