"""Where the time of one sample went, from the slices of a whole timeline: what the engine's `tail` is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from schedlab.timeline.reduce import Slice, Timeline, Waited


@dataclass(slots=True)
class Account:
    """The times of a task during a sample, in ns. Their sum is the length of the sample."""

    queued: int = 0
    """No task worked on it; what the task did meanwhile belongs to other samples."""
    ran: int = 0
    waited: int = 0
    """It was runnable and not on a CPU. In a guest that includes the time for which the vCPU was not."""
    slept: int = 0
    behind: Counter[int] = field(default_factory=Counter)
    """What ran meanwhile on the CPU that the task then got, by index of the task."""
    vcpu: Account | None = None
    """Of the thread of the vCPU on the host, if the sample is a guest's."""


def account(timeline: Timeline, sample: Waited) -> Account:
    """Where the time of the sample went."""
    lane = timeline.lanes[sample.lane].name
    kernel, _, cpu = lane.rpartition("CPU ")
    found = _account(timeline, kernel, sample.pid, sample)
    host = [pid for pid, name in timeline.tasks if name == f"{kernel.strip()}/{cpu}"]
    if kernel and host:
        found.vcpu = _account(timeline, "", host[0], sample)
    return found


def task_of(timeline: Timeline, sample: Waited) -> str:
    """The name of the sample's task; pids may be the same in the host and its guests."""
    own = {s.task for s in timeline.lanes[sample.lane].slices if timeline.tasks[s.task][0] == sample.pid}
    names = [timeline.tasks[task][1] for task in own] or [name for pid, name in timeline.tasks if pid == sample.pid]
    return names[-1] if names else "pid"


def _account(timeline: Timeline, kernel: str, pid: int, sample: Waited) -> Account:
    start, end = sample.at_ns - sample.ns + sample.queued, sample.at_ns
    found = Account(queued=sample.queued)
    stays = sorted(_stays(timeline, kernel, pid))
    woken = {(wake.task, wake.ran_at): wake.at for wake in timeline.wakes}
    for before, (now, lane) in pairwise([(Slice(0, 0, -1, False), -1), *stays]):
        found.ran += _overlap(now.start, now.end, start, end)
        since = before[0].end
        waits_from = since if before[0].preempted else woken.get((now.task, now.start), now.start)
        found.slept += _overlap(since, waits_from, start, end)
        low, high = max(waits_from, since, start), min(now.start, end)
        if low < high:
            found.waited += high - low
            for other in timeline.lanes[lane].slices:
                if other.start >= high:
                    break
                if other.end > low and other.task != now.task:
                    found.behind[other.task] += _overlap(other.start, other.end, low, high)
    found.slept += max(0, sample.ns - found.queued - found.ran - found.waited - found.slept)
    return found


def _stays(timeline: Timeline, kernel: str, pid: int) -> Iterator[tuple[Slice, int]]:
    """The slices of the task, with their lane."""
    for index, lane in enumerate(timeline.lanes):
        if lane.name.rpartition("CPU ")[0] == kernel:
            yield from ((s, index) for s in lane.slices if timeline.tasks[s.task][0] == pid)


def _overlap(a: int, b: int, low: int, high: int) -> int:
    return max(0, min(b, high) - max(a, low))
