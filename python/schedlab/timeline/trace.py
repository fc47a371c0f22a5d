"""Reads ftrace text as the engine writes it, and feeds it to the reduction. Other formats are converted first.

Only lines that a timeline needs are parsed. A task whose name looks like a line of a trace spoils that line only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from schedlab.errors import InputError, reason
from schedlab.timeline.reduce import Lanes, Timeline

LINE = re.compile(r"^.*?-(\d+)\s+\[(\d+)\]\s+\S{4,6}\s+(\d+)\.(\d+): (\w+): (.*)$")
SWITCH = re.compile(
    r"prev_comm=(.*) prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+) next_prio=-?\d+$"
)
WAKE = re.compile(r"comm=(.*) pid=(\d+) prio=-?\d+ (?:success=1 )?target_cpu=(\d+)$")
MIGRATE = re.compile(r"comm=.* pid=(\d+) prio=-?\d+ orig_cpu=(\d+) dest_cpu=(\d+)$")
SAMPLE = re.compile(r"pid=(\d+) metric=(\d+) value=(\d+)$")
METRIC = re.compile(r"^# metric (\d+) (\S+) (\S+)$")
QUEUEING = re.compile(r"^# queueing (\S+)$")
KERNEL = re.compile(r"^# kernel \S+ cpus (\d+)$")
WORDS = (": sched_switch: ", ": sched_wak", ": sched_migrate_task: ", ": schedlab_sample: ")


def of_traces(files: Mapping[str, Path], *, from_ns: int = 0) -> Timeline:
    """The timeline of a trace; further files are those of guests, by name, and the host's has the name "".

    Slowest samples are those that ended at `from_ns` or later. Times are ns since the beginning of the trace's clock.
    """
    timeline = Timeline()
    for name, file in files.items():
        try:
            with file.open(encoding="utf-8", errors="replace") as lines:
                _read(lines, timeline.kernel(name, from_ns))
        except OSError as e:
            raise InputError(f"cannot read the trace: {reason(e)}", file=str(file)) from None
    timeline.finish()
    return timeline


def _read(lines: Iterable[str], kernel: Lanes) -> None:
    metrics: dict[int, str] = {}
    queueing: set[str] = set()
    for line in lines:
        if line.startswith("#"):
            _header(line, kernel, metrics, queueing)
        elif any(word in line for word in WORDS) and (found := LINE.match(line)):
            pid, cpu, seconds, fraction, event, fields = found.groups()
            now = int(seconds) * 1_000_000_000 + int(f"{fraction:0<9.9}")
            if event == "schedlab_sample":
                _sample(kernel, metrics, queueing, (now, int(cpu)), fields)
            else:
                _event(kernel, (now, int(cpu), int(pid)), event, fields)


def _header(line: str, kernel: Lanes, metrics: dict[int, str], queueing: set[str]) -> None:
    if found := METRIC.match(line):
        metrics[int(found[1])] = found[2] if found[3] == "ns" else ""
    elif found := QUEUEING.match(line):
        queueing.add(found[1])
    elif found := KERNEL.match(line):
        kernel.lane(int(found[1]) - 1)


def _event(kernel: Lanes, at: tuple[int, int, int], event: str, fields: str) -> None:
    now, cpu, pid = at
    if event == "sched_switch" and (found := SWITCH.match(fields)):
        comm, prev, state, next_comm, entering = found.groups()
        kernel.name(int(prev), comm)
        kernel.name(int(entering), next_comm)
        kernel.switch(now, cpu, int(prev), state, int(entering))
    elif event == "sched_waking" and (found := WAKE.match(fields)):
        kernel.waking(now, cpu, pid, int(found[2]))
    elif event in ("sched_wakeup", "sched_wakeup_new") and (found := WAKE.match(fields)):
        kernel.name(int(found[2]), found[1])
        kernel.wakeup(now, int(found[2]), int(found[3]))
    elif event == "sched_migrate_task" and (found := MIGRATE.match(fields)):
        kernel.migrate(now, int(found[1]), int(found[3]))


def _sample(
    kernel: Lanes, metrics: Mapping[int, str], queueing: Collection[str], at: tuple[int, int], fields: str
) -> None:
    found = SAMPLE.match(fields)
    metric = metrics.get(int(found[2])) if found else None
    if found and metric:
        kernel.sample(*at, int(found[1]), metric, int(found[3]), queueing=metric in queueing)
