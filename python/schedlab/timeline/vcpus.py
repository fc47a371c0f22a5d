"""When the vCPU of a guest's lane is on a CPU of its host, and when it waits for one (stolen time)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from schedlab.timeline.reduce import Lane, Slice, Timeline

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class VcpuSpans:
    """Of one vCPU, in ascending order."""

    on: tuple[Span, ...]
    """Its thread is on a CPU of the host."""
    stolen: tuple[Span, ...]
    """Its thread is runnable and is not on a CPU."""


def vcpu_spans(timeline: Timeline, lane: Lane) -> VcpuSpans | None:
    """None for a lane of the host. A vCPU of a guest in a guest is on a CPU while the outer vCPU is as well."""
    guest, space, number = lane.name.rpartition(" CPU ")
    if not space:
        return None
    threads = {i for i, (_, name) in enumerate(timeline.tasks) if name == f"{guest}/{number}"}
    ran = [(host, [s for s in host.slices if s.task in threads]) for host in timeline.lanes]
    stays = sorted(s for host, own in ran if own for s in pieces(own, vcpu_spans(timeline, host)))
    waits = [(a.end, b.start) for a, b in pairwise(stays) if a.preempted and a.end < b.start]
    if stays and stays[-1].preempted and stays[-1].end < timeline.end:
        waits.append((stays[-1].end, timeline.end))  # it never got a CPU again
    waits += [(w.at, w.ran_at) for w in timeline.wakes if w.task in threads and w.at < w.ran_at]
    return VcpuSpans(tuple((s.start, s.end) for s in stays), tuple(sorted(waits)))


def pieces(slices: list[Slice], spans: VcpuSpans | None) -> list[Slice]:
    """The parts of the slices in which the vCPU is on a CPU; of a lane of the host, all of them."""
    if spans is None:
        return slices
    return [
        s._replace(start=max(s.start, low), end=min(s.end, high), preempted=s.preempted and high >= s.end)
        for s in slices
        for low, high in spans.on
        if low < s.end and high > s.start
    ]
