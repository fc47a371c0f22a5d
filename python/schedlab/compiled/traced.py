"""The decisions of a simulated run, read from its trace, as the records that a native scheduler writes."""

from __future__ import annotations

import re
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.compiled import records
from schedlab.errors import RunError

if TYPE_CHECKING:
    from schedlab.engine import Cancel, Engine
    from schedlab.scenario import Scenario

EVENT = re.compile(
    rb"\[(\d+)\] \S+ +(\d+)\.(\d{9}): (sched_switch|sched_wakeup|sched_wakeup_new|sched_migrate_task): (.*)"
)
FIELD = re.compile(rb"(\w+)=(-?\d+)")
KINDS = {
    b"sched_switch": (records.SWITCH, b"prev_pid", b"next_pid"),
    b"sched_wakeup": (records.WAKEUP, b"pid", b"target_cpu"),
    b"sched_wakeup_new": (records.WAKEUP_NEW, b"pid", b"target_cpu"),
    b"sched_migrate_task": (records.MIGRATE, b"pid", b"dest_cpu"),
}


def decisions(engine: Engine, scenario: Scenario, variant: str, cancel: Cancel | None = None) -> bytes:
    """Every switch, wakeup and migration of the run with seed 1.

    Raises:
        RunError: the run stops, or its trace can't be written.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-verify-") as folder:
        path = Path(folder) / "row.ftrace"
        run = engine.run(scenario, variant, 1, trace=str(path), cancel=cancel)
        if run.trace_error:
            raise RunError(f"the trace of the row can't be written: {run.trace_error}")
        with path.open("rb") as lines:
            return b"".join(_records(lines))


def _records(lines: Iterable[bytes]) -> Iterable[bytes]:
    for line in lines:
        event = EVENT.search(line)
        if event is None:
            continue
        fields = dict(FIELD.findall(event[5]))
        kind, first, second = KINDS[event[4]]
        b = int(fields[second])
        if kind == records.MIGRATE:
            b |= int(fields[b"orig_cpu"]) << 16
        time = int(event[2]) * 1_000_000_000 + int(event[3])
        yield struct.pack("<QHHIII", time, int(event[1]), kind, int(fields[first]), b, 0)
