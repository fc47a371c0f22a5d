"""What changed besides the judged metrics: switches, migrations, scans, locks, faults, steal and use of the CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schedlab.statistics import Difference, paired_difference

if TYPE_CHECKING:
    from schedlab.comparison import Comparison

METRICS = {
    "sched.switches": ("", "context switches"),
    "sched.voluntary_switches": ("", "switches away from a task that slept"),
    "sched.involuntary_switches": ("", "switches away from a task that was still runnable"),
    "sched.wakeups": ("", "wakeups of sleeping tasks"),
    "sched.migrations": ("", "moves of a task to another CPU"),
    "sched.cpu_busy": ("%", "CPU time spent in tasks"),
    "sched.idle_while_runnable": ("%", "CPU time idle while a task waited on another runqueue"),
    "sched.run_time.mean": ("us", "time from a switch to a task until the switch away from it, mean"),
    "sched.run_delay.mean": ("us", "one wait on a runqueue, mean"),
    "sched.run_delay.p99": ("us", "one wait on a runqueue, 99th percentile"),
    "sched.resched_delay.p99": ("us", "from a request to reschedule to the switch, 99th percentile"),
    "sched.select_idle_sibling.mean": ("us", "one search for an idle CPU at a wakeup, mean"),
    "sched.scan_tested": ("", "CPUs tested in one search for an idle CPU, mean"),
    "sched.scan_cost": ("%", "CPU time spent in searches for an idle CPU"),
    "sched.lock_wait": ("%", "CPU time spent waiting for locks"),
    "sched.faults": ("", "page faults"),
    "sched.forks": ("", "tasks created"),
}
"""Unit and meaning, in the order in which they are shown."""
OF_GUESTS = {
    ".steal": ("%", "share of the vCPUs' time in which they waited for a CPU of the host"),
    ".exits.halt": ("1/s", "exits because a CPU halted"),
    ".exits.ipi": ("1/s", "exits to send or to receive an inter-processor interrupt"),
}
"""The same for the metrics of each guest, by the end of their names."""


@dataclass(frozen=True, slots=True)
class Unjudged:
    """One quantity that is not judged, in two variants."""

    name: str
    unit: str
    meaning: str
    difference: Difference

    @property
    def changed(self) -> bool:
        """Whether a change was detected: the interval excludes 0, or every seed has the same difference."""
        d = self.difference
        return d.interval.excludes_zero() if d.interval else d.constant and bool(d.estimate)


def unjudged(comparison: Comparison, a: str, b: str) -> list[Unjudged]:
    """Every quantity of the two variants that is not judged and is not 0 in both."""
    judged = {m.metric.name for m in comparison.metrics}
    columns = {column.name: column for column in comparison.columns}
    names = _names(sorted({name for c in columns.values() for run in c.runs.values() for name in run.metrics}))
    found = []
    for name, (unit, meaning) in names.items():
        x, y = (columns[one].samples(name, comparison.seeds) for one in (a, b))
        if name not in judged and any([*x, *y]):
            found.append(Unjudged(name, unit, meaning, paired_difference(x, y)))
    return found


def _names(present: Sequence[str]) -> dict[str, tuple[str, str]]:
    shown = {name: words for name, words in METRICS.items() if name in present}
    for end, words in OF_GUESTS.items():
        shown |= {name: words for name in present if name.endswith(end)}
    return shown
