"""The state to read at each tracepoint, with the same field names as the dynamic probes of a guest (`probes.sh`).

Records that a program had to split are put together again when the trace is read out (`Joined`).
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from schedlab.record.bpf import kernel
from schedlab.record.bpf.btf import VMLINUX, Types
from schedlab.record.bpf.program import Value, assemble

EVENT = "bpf_trace/bpf_trace_printk"
"""The event below `events/` of tracefs under which the output of the programs is recorded."""

Paths = Mapping[str, str | tuple[str, str]]
"""Labels, and what they are of a struct; two names: newer kernels have the first."""

TASK: Paths = {
    "p": "pid",
    "v": "se.vruntime",
    "d": "se.deadline",
    "l": "se.vlag",
    "on": "se.on_rq",
    "sd": "se.sched_delayed",
    "s": "se.slice",
}
QUEUE: Paths = {
    "z": ("se.cfs_rq->zero_vruntime", "se.cfs_rq->min_vruntime"),
    "a": ("se.cfs_rq->sum_w_vruntime", "se.cfs_rq->avg_vruntime"),
    "w": ("se.cfs_rq->sum_weight", "se.cfs_rq->avg_load"),
    "n": ("se.cfs_rq->nr_queued", "se.cfs_rq->nr_running"),
}
CLOCK: Paths = {"c": "se.cfs_rq->rq->clock_task"}
LOAD: Paths = {
    "el": "se.avg.load_avg",
    "es": "se.avg.load_sum",
    "et": "se.avg.last_update_time",
    "ep": "se.avg.period_contrib",
}
QUEUE_LOAD: Paths = {
    "ql": "se.cfs_rq->avg.load_avg",
    "qs": "se.cfs_rq->avg.load_sum",
    "qt": "se.cfs_rq->avg.last_update_time",
    "qp": "se.cfs_rq->avg.period_contrib",
    "qu": "se.cfs_rq->last_update_tg_load_avg",
    "ck": "se.cfs_rq->rq->clock",
}
GROUP: Paths = {
    "tg": "sched_task_group",
    "gv": "se.parent->vruntime",
    "gd": "se.parent->deadline",
    "gl": "se.parent->vlag",
    "gon": "se.parent->on_rq",
    "gsd": "se.parent->sched_delayed",
    "gs": "se.parent->slice",
    "gw": "se.parent->load.weight",
    "ge": "se.parent->exec_start",
    "gz": ("se.parent->cfs_rq->zero_vruntime", "se.parent->cfs_rq->min_vruntime"),
    "ga": ("se.parent->cfs_rq->sum_w_vruntime", "se.parent->cfs_rq->avg_vruntime"),
    "gq": ("se.parent->cfs_rq->sum_weight", "se.parent->cfs_rq->avg_load"),
    "gn": ("se.parent->cfs_rq->nr_queued", "se.parent->cfs_rq->nr_running"),
    "la": "se.cfs_rq->avg.load_avg",
    "lc": "se.cfs_rq->tg_load_avg_contrib",
    "ta": "se.cfs_rq->tg->load_avg.counter",
}
AGED: Paths = {
    "cpu": "rq->cpu",
    "tg": "tg",
    "up": "tg->parent",
    "lu": "avg.last_update_time",
    "la": "avg.load_avg",
    "ls": "avg.load_sum",
    "lp": "avg.period_contrib",
    "lc": "tg_load_avg_contrib",
    "ta": "tg->load_avg.counter",
    "qu": "last_update_tg_load_avg",
    "ck": "rq->clock",
    "c": "rq->clock_task",
}


@dataclass(frozen=True, slots=True)
class Probe:
    """What to read at a tracepoint: members of structs that its arguments point to."""

    name: str
    tracepoint: str
    reads: tuple[tuple[int, str, str, Paths], ...]
    """Argument, struct, what its labels begin with, paths."""
    unless_zero: str | None = None
    """Only where this label of the first struct is not 0."""


def _task(argument: int, *paths: Paths, prefix: str = "") -> tuple[tuple[int, str, str, Paths], ...]:
    return tuple((argument, "task_struct", prefix if part is TASK else "", part) for part in paths)


PROBES = (
    Probe("rt", "sched_stat_runtime", _task(0, TASK, QUEUE, CLOCK, GROUP)),
    Probe("wk", "sched_wakeup", _task(0, TASK, QUEUE, CLOCK, GROUP, LOAD, QUEUE_LOAD)),
    Probe("wn", "sched_wakeup_new", _task(0, TASK, QUEUE, CLOCK, GROUP, LOAD, QUEUE_LOAD)),
    Probe("wg", "sched_waking", _task(0, TASK, QUEUE, LOAD)),
    Probe(
        "sw",
        "sched_switch",
        _task(1, TASK, prefix="p") + _task(2, TASK, prefix="n") + _task(2, QUEUE, CLOCK, GROUP, LOAD, QUEUE_LOAD),
    ),
    Probe("mt", "sched_migrate_task", _task(0, {"p": "pid"}, CLOCK)),
    Probe("pc", "pelt_cfs_tp", ((0, "cfs_rq", "", AGED),), "up"),
)


@contextmanager
def attached(log: Callable[[str], None]) -> Iterator[dict[str, int]]:
    """Attach probes to the running kernel; returns their names and numbers of records. None if not permitted."""
    open_now: list[int] = []
    try:
        yield _attach(open_now, log)
    finally:
        for descriptor in open_now:
            os.close(descriptor)


def _attach(open_now: list[int], log: Callable[[str], None]) -> dict[str, int]:
    try:
        types = Types(VMLINUX.read_bytes())
        if types.place("task_struct", "se.sched_delayed") is None:
            log("no state: this kernel is older than 6.12")
            return {}
        records: dict[str, int] = {}
        for probe in PROBES:
            code, records[probe.name] = _program(probe, types)
            program = kernel.load(code)
            open_now.append(program)
            open_now.append(kernel.attach(program, probe.tracepoint))
    except (OSError, ValueError) as e:
        log(f"no state: BPF is not permitted here ({e})")
        return {}
    return records


def _program(probe: Probe, types: Types) -> tuple[bytes, int]:
    values = [
        _value(types, argument, struct, prefix + label, path)
        for argument, struct, prefix, paths in probe.reads
        for label, path in paths.items()
    ]
    guard = next((value for value in values if value.label == probe.unless_zero), None)
    return assemble(probe.name, values, guard)


def _value(types: Types, argument: int, struct: str, label: str, path: str | tuple[str, str]) -> Value:
    for named in (path,) if isinstance(path, str) else path:
        if place := types.place(struct, named):
            return Value(label, argument, place)
    raise ValueError(f"this kernel's {struct} has no {path}")


PRINTED = re.compile(rb"^(.{16}-\d+ +(?:\(.{7}\) )?\[(\d+)\] .*?)bpf_trace_printk: (\w+)(\+?): (.*)$")


class Joined:
    """Trace text in which the output of the programs is one record per probe, as in the trace of a guest."""

    def __init__(self, records: dict[str, int]) -> None:
        self._records = records

    def lines(self, text: Iterable[bytes]) -> Iterator[bytes]:
        """The same lines, in their order."""
        waiting: deque[list[bytes | int]] = deque()
        open_on: dict[bytes, list[bytes | int]] = {}
        for line in text:
            found = PRINTED.match(line)
            if not found:
                waiting.append([line, 0])
            elif not found[4]:
                first = b"%s%s: () %s" % (found[1], found[3], found[5])
                entry: list[bytes | int] = [first, self._records.get(found[3].decode(), 1) - 1]
                waiting.append(entry)
                open_on[found[2]] = entry
            elif entry_of := open_on.get(found[2]):
                entry_of[0] = b"%s %s" % (entry_of[0], found[5])
                entry_of[1] = int(entry_of[1]) - 1
            while waiting and int(waiting[0][1]) <= 0:
                yield _ended(waiting.popleft()[0])
        # A record that is cut off by the end of the trace is incomplete.
        yield from (_ended(entry[0]) for entry in waiting if int(entry[1]) <= 0)


def _ended(line: bytes | int) -> bytes:
    whole = bytes(line) if isinstance(line, bytes) else b""
    return whole if whole.endswith(b"\n") else whole + b"\n"
