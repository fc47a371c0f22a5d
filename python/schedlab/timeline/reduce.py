"""The reduction: every event moves a task and a CPU through their states and leaves slices, queues and wakeups."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

SLOWEST = 8
"""How many of the longest samples of each metric are kept."""
WAKEUP_LATENCY = "sched.wakeup_latency"
MOST_CPUS = 4096


class Waited(NamedTuple):
    """One long sample: it ended at `at_ns` on a lane, and took `ns`."""

    ns: int
    at_ns: int
    pid: int
    lane: int
    queued: int = 0
    """How long after its beginning no task worked on it: a sample of time in a queue began with this one, and ended
    when the task took what waited."""


class Slice(NamedTuple):
    """An interval in which a task is on a CPU."""

    start: int
    end: int
    task: int
    """Index of the task."""
    preempted: bool


class Wake(NamedTuple):
    """One wakeup: when it began, by which task on which lane, and where and when the wakee ran."""

    at: int
    lane: int
    by: int
    """Index of the waker; -1 if nothing ran there."""
    task: int
    ran_lane: int
    ran_at: int


@dataclass(slots=True)
class Lane:
    """One CPU of one kernel."""

    name: str
    slices: list[Slice] = field(default_factory=list)
    depth: list[tuple[int, int]] = field(default_factory=list)
    """When the number of waiting tasks changed, and to what."""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """From when to when it was idle while a task waited on another runqueue of its kernel."""
    busy: list[int] = field(default_factory=list)
    """If the slices are not those of the whole run: busy ns of each bin from time 0 on."""
    bin_ns: int = 0


@dataclass(slots=True)
class Timeline:
    """All lanes of a machine, the host's CPUs first, then those of its guests."""

    lanes: list[Lane] = field(default_factory=list)
    tasks: list[tuple[int, str]] = field(default_factory=list)
    """Pid and name; the same pid may appear once for each kernel."""
    wakes: list[Wake] = field(default_factory=list)
    slowest: dict[str, list[Waited]] = field(default_factory=dict)
    """By metric, the longest first."""
    start: int = 0
    end: int = 0
    windows: list[tuple[int, int]] = field(default_factory=list)
    """The ranges in which nothing is missing, one for each point that was asked for; none if all is there."""
    breaks: int = 0
    """How often records are missing: a CPU switches from a task to which it had not switched."""
    _kernels: list[Lanes] = field(default_factory=list)

    def kernel(self, name: str, from_ns: int = 0) -> Lanes:
        """Takes the events of one more kernel; "" is the host."""
        self._kernels.append(Lanes(self, name, from_ns))
        return self._kernels[-1]

    def finish(self) -> None:
        """Closes what is still open at the last event of any kernel."""
        self.end = max((k.last for k in self._kernels), default=0)
        self.start = min((k.first for k in self._kernels if k.first is not None), default=0)
        for kernel in self._kernels:
            kernel.close(self.end)
        self._kernels.clear()
        self.wakes.sort(key=lambda wake: wake.at)
        for metric, found in self.slowest.items():
            self.slowest[metric] = sorted(found, reverse=True)

    @property
    def slices(self) -> int:
        return sum(len(lane.slices) for lane in self.lanes)


class Lanes:
    """The CPUs of one kernel while its trace is read."""

    def __init__(self, timeline: Timeline, name: str, from_ns: int) -> None:
        self.last = 0
        self.first: int | None = None
        self._timeline, self._from = timeline, from_ns
        self._prefix, self._named = (f"{name} ", f"{name}.") if name else ("", "")
        self._lanes: list[int] = []
        self._task_of: dict[int, int] = {}
        self._queueing: dict[int, tuple[int, int]] = {}
        self._running: list[int] = []
        self._switched: list[bool] = []
        self._since: list[int] = []
        self._waiting: list[int] = []
        self._gap: list[int | None] = []
        self._stuck_there: list[int] = []
        self._stuck, self._losing = 0, False
        self._where: dict[int, int] = {}
        """The CPU on whose runqueue a task waits."""
        self._woken: dict[int, tuple[int, int, int]] = {}

    def lane(self, cpu: int) -> int:
        """The position of a CPU's lane; lanes appear with the highest CPU that was named."""
        if cpu >= MOST_CPUS:
            cpu = MOST_CPUS - 1
        while len(self._lanes) <= cpu:
            self._lanes.append(len(self._timeline.lanes))
            self._timeline.lanes.append(Lane(f"{self._prefix}CPU {len(self._lanes) - 1}"))
            for states in (self._running, self._since, self._waiting, self._stuck_there):
                states.append(0)
            self._gap.append(None)
            self._switched.append(False)
        return cpu

    def name(self, pid: int, comm: str) -> None:
        """Set the name of a task; the last one counts."""
        if pid:
            self._timeline.tasks[self._task(pid)] = (pid, comm)

    def switch(self, now: int, cpu: int, prev: int, state: str, entering: int) -> None:
        """`sched_switch`."""
        cpu = self.lane(cpu)
        self._clock(now)
        broken = self._switched[cpu] and self._running[cpu] != prev
        if broken:
            self._break(now, cpu)
        self._switched[cpu] = True
        if self._running[cpu] == 0 and prev and prev not in self._where:
            self._since[cpu] = max(self._since[cpu], self.first or 0)  # it ran before the trace began
        if prev:
            lane = self._timeline.lanes[self._lanes[cpu]]
            preempted = state.startswith("R")
            if not broken:
                lane.slices.append(Slice(self._since[cpu], now, self._task(prev), preempted))
            self._leave_queue(now, prev, cpu)
            if preempted:
                self._queue(now, prev, cpu)
        waited = cpu
        if entering:
            waited = self._leave_queue(now, entering, cpu)
            self._ran(now, cpu, entering)
        self._running[cpu], self._since[cpu] = entering, now
        self._gaps(now, *{cpu, waited})

    def _break(self, now: int, cpu: int) -> None:
        """Records of a CPU are missing: what was under way may have ended long ago, and nothing is shown of it."""
        self._timeline.breaks += 1
        self._woken.clear()
        for pid in list(self._where):
            self._leave_queue(now, pid)
        # What this CPU ran until now, and since when it idles, is not known either.
        self._gap[cpu] = None

    def waking(self, now: int, cpu: int, by: int, pid: int) -> None:
        """`sched_waking`, on the waker's CPU."""
        self._clock(now)
        self._woken.setdefault(pid, (now, self.lane(cpu), by))

    def wakeup(self, now: int, pid: int, cpu: int) -> None:
        """`sched_wakeup` or `sched_wakeup_new`: the task is on a runqueue."""
        self._clock(now)
        cpu = self.lane(cpu)
        if pid not in self._where and self._running[cpu] != pid:
            self._queue(now, pid, cpu)
            self._gaps(now, cpu)

    def migrate(self, now: int, pid: int, cpu: int) -> None:
        """`sched_migrate_task`; it concerns a queue only if the task waits on one."""
        self._clock(now)
        if pid in self._where:
            left, to = self._leave_queue(now, pid), self.lane(cpu)
            self._queue(now, pid, to)
            self._gaps(now, *{left, to})

    def sample(self, now: int, cpu: int, pid: int, metric: str, ns: int, *, queueing: bool = False) -> None:
        """A program reported a duration that ends now; with `queueing` it is time in a queue until the task took it."""
        since, until = self._queueing.get(pid, (-1, -1))
        if queueing:
            self._queueing[pid] = (now - ns, now)
        queued = until - since if since == now - ns and until < now else 0
        self._slow(metric, Waited(ns, now, pid, self._lanes[self.lane(cpu)], queued))

    def close(self, end: int) -> None:
        """The last slices end with the trace."""
        for cpu, pid in enumerate(self._running):
            if pid:
                self._timeline.lanes[self._lanes[cpu]].slices.append(
                    Slice(self._since[cpu], end, self._task(pid), preempted=False)
                )
            self._close_gap(end, cpu)

    def _clock(self, now: int) -> None:
        self.first = now if self.first is None else self.first
        self.last = max(self.last, now)

    def _task(self, pid: int) -> int:
        if pid not in self._task_of:
            self._task_of[pid] = len(self._timeline.tasks)
            self._timeline.tasks.append((pid, ""))
        return self._task_of[pid]

    def _queue(self, now: int, pid: int, cpu: int) -> None:
        self._where[pid] = cpu
        self._change(now, cpu, 1)

    def _leave_queue(self, now: int, pid: int, otherwise: int = 0) -> int:
        """The CPU on which the task waited; `otherwise` if it waited on none."""
        cpu = self._where.pop(pid, None)
        if cpu is None:
            return otherwise
        self._change(now, cpu, -1)
        return cpu

    def _change(self, now: int, cpu: int, by: int) -> None:
        self._waiting[cpu] += by
        depth = self._timeline.lanes[self._lanes[cpu]].depth
        if depth and depth[-1][0] == now:
            depth.pop()
        if not depth or depth[-1][1] != self._waiting[cpu]:
            depth.append((now, self._waiting[cpu]))

    def _ran(self, now: int, cpu: int, pid: int) -> None:
        woken = self._woken.pop(pid, None)
        if woken is None:
            return
        at, lane, by = woken
        waker = self._task(by) if by else -1
        self._timeline.wakes.append(Wake(at, self._lanes[lane], waker, self._task(pid), self._lanes[cpu], now))
        self._slow(WAKEUP_LATENCY, Waited(now - at, now, pid, self._lanes[cpu]))

    def _slow(self, metric: str, one: Waited) -> None:
        if one.at_ns < self._from:
            return
        found = self._timeline.slowest.setdefault(self._named + metric, [])
        if len(found) < SLOWEST:
            heapq.heappush(found, one)
        elif one > found[0]:
            heapq.heapreplace(found, one)

    def _gaps(self, now: int, *cpus: int) -> None:
        """Opens and closes the intervals in which a CPU idles while a task waits that no idle CPU is about to run.

        Only `cpus` changed, unless whether a task waits at all did.
        """
        for cpu in cpus:
            stuck = self._waiting[cpu] - (self._running[cpu] == 0 < self._waiting[cpu])
            self._stuck_there[cpu], self._stuck = stuck, self._stuck + stuck - self._stuck_there[cpu]
        losing = self._stuck > 0
        for cpu in cpus if losing == self._losing else range(len(self._running)):
            if losing and self._running[cpu] == 0 == self._waiting[cpu]:
                self._gap[cpu] = now if self._gap[cpu] is None else self._gap[cpu]
            else:
                self._close_gap(now, cpu)
        self._losing = losing

    def _close_gap(self, now: int, cpu: int) -> None:
        since, self._gap[cpu] = self._gap[cpu], None
        if since is not None and now > since:
            self._timeline.lanes[self._lanes[cpu]].gaps.append((since, now))
