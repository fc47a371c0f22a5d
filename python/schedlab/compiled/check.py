"""The self-checks of a native scheduler: a shim that errs in silence is the danger, so nothing uses one that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.compiled import child, draw, records
from schedlab.compiled.load import Group, Load, Task, Topology

if TYPE_CHECKING:
    from schedlab.compiled.records import Decisions

MS = 1_000_000
HOG = (("r", 1_000 * MS),)
TOLERANCE = 1.5
"""Percentage points by which a share of CPU time may differ from the one that its weight states."""


@dataclass(frozen=True)
class Check:
    """What is checked, and what was found."""

    name: str
    passed: bool
    found: str


@dataclass(frozen=True)
class Checked:
    """All checks of a program."""

    checks: tuple[Check, ...]
    stubs: dict[str, int]
    """Functions that were called although they do nothing in user space."""

    @property
    def passed(self) -> bool:
        """Whether the program may be used."""
        return all(check.passed for check in self.checks)


def check(program: Path) -> Checked:
    """Run every check; each run also checks clock, domains, double locks, WARN and BUG (see `shim/driver.c`)."""
    stubs = dict[str, int]()
    checks = list[Check]()
    for name, load, judge in _cases():
        output = child.execute(program, load, timeout_s=120)
        for function, calls in output.stubs.items():
            stubs[function] = stubs.get(function, 0) + calls
        if output.failure or output.warnings:
            checks.append(Check(name, False, output.failure or output.warnings[0]))
            continue
        again = child.execute(program, load, timeout_s=120)
        if again.records != output.records:
            checks.append(Check(name, False, "two runs of the same load differ"))
            continue
        passed, found = judge(load, records.parse(output.records))
        checks.append(Check(name, passed, found))
    return Checked(tuple(checks), stubs)


Judge = Callable[[Load, "Decisions"], tuple[bool, str]]


def _cases() -> Iterator[tuple[str, Load, Judge]]:
    one, four = Topology(), Topology(cores_per_llc=4)
    large = Topology(nodes=2, cores_per_llc=16, threads_per_core=2)
    nice = Load(one, 2_000 * MS, (HOG,), (Task(0), Task(0), Task(0, nice=5)))
    yield "shares by nice value", nice, _shares([42.83, 42.83, 14.35])
    groups = (Group(weight=100), Group(weight=300))
    weights = Load(one, 2_000 * MS, (HOG,), (Task(0, group=1), Task(0, group=2), Task(0, group=2)), groups)
    yield "shares by the weight of groups", weights, _shares([25.0, 37.5, 37.5])
    quota = Load(four, 2_000 * MS, (HOG,), (Task(0, group=1), Task(0, group=1)), (Group(quota_us=50_000),))
    yield "quota of half a CPU", quota, _quota(50.0)
    yield "idle CPUs are used", Load(large, 400 * MS, (HOG,), (Task(0),) * 64), _all_busy
    yield "affinities are kept", _affinities(), _kept
    for cpus in (1, 16, 480):
        load = draw.draw(7, cpus, 40 * MS if cpus > 100 else 400 * MS, draw.FEATURES)
        yield f"a drawn load on {cpus} CPUs", load, _consistent


def run_times(load: Load, decisions: Decisions) -> dict[int, int]:
    """CPU time (ns) of each task, from the switches."""
    times, since = dict[int, int](), dict[int, int]()
    for time, cpu, prev, entered in decisions.switches.tolist():
        if prev:
            times[prev] = times.get(prev, 0) + time - since.get(cpu, 0)
        since[cpu] = time
        running = entered
        since[-1 - cpu] = running
    for cpu in range(load.topology.cpus):
        if running := since.get(-1 - cpu, 0):
            times[running] = times.get(running, 0) + load.duration_ns - since[cpu]
    return times


def _shares(expected: list[float]) -> Judge:
    def judge(load: Load, decisions: Decisions) -> tuple[bool, str]:
        times = run_times(load, decisions)
        shares = [100 * times.get(pid, 0) / load.duration_ns for pid in range(1, len(load.tasks) + 1)]
        listed = " / ".join(f"{share:.1f}" for share in shares)
        wanted = " / ".join(f"{share:.1f}" for share in expected)
        passed = all(abs(a - b) <= TOLERANCE for a, b in zip(shares, expected, strict=True))
        return passed, f"{listed} % of the CPU, expected {wanted} %"

    return judge


def _quota(expected: float) -> Judge:
    def judge(load: Load, decisions: Decisions) -> tuple[bool, str]:
        share = 100 * sum(run_times(load, decisions).values()) / load.duration_ns
        return abs(share - expected) <= 3, f"{share:.1f} % of one CPU, expected {expected:.1f} %"

    return judge


def _all_busy(load: Load, decisions: Decisions) -> tuple[bool, str]:
    """As many endless tasks as CPUs: each CPU has to have one for most of the time."""
    last = {cpu: entered for _, cpu, _, entered in decisions.switches.tolist()}
    busy = sum(1 for entered in last.values() if entered)
    used = 100 * sum(run_times(load, decisions).values()) / (load.duration_ns * load.topology.cpus)
    return busy == load.topology.cpus and used > 90, f"{busy} of {load.topology.cpus} CPUs, {used:.0f} % of their time"


def _affinities() -> Load:
    program = (("r", 3 * MS), ("s", 2 * MS), ("r", MS // 3), ("s", MS))
    tasks = tuple(Task(0, cpus=(i % 4, (i + 1) % 4)) for i in range(6))
    return Load(Topology(cores_per_llc=4), 400 * MS, (program,), tasks)


def _kept(load: Load, decisions: Decisions) -> tuple[bool, str]:
    wrong = [
        (pid, cpu)
        for _, cpu, _, pid in decisions.switches.tolist()
        if 0 < pid <= len(load.tasks) and load.tasks[pid - 1].cpus and cpu not in load.tasks[pid - 1].cpus
    ]
    return not wrong, f"task {wrong[0][0]} on CPU {wrong[0][1]}" if wrong else f"{len(decisions.switches)} switches"


def _consistent(load: Load, decisions: Decisions) -> tuple[bool, str]:
    """Each CPU switches away from the task that it switched to, and no task runs on two CPUs."""
    on = dict[int, int]()
    for time, cpu, prev, entered in decisions.switches.tolist():
        if on.get(cpu, 0) != prev:
            return False, f"at {time} ns CPU {cpu} leaves task {prev}, but runs {on.get(cpu, 0)}"
        on[cpu] = entered
    kept, _ = _kept(load, decisions)
    running = [pid for pid in on.values() if pid]
    if len(running) != len(set(running)) or not kept:
        return False, "a task runs on two CPUs, or outside of its affinity"
    return True, f"{len(decisions.switches)} switches"
