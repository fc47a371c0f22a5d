"""Which parts of a run a page can hold in full: the surroundings of what a reader wants to see."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from schedlab.timeline.reduce import Timeline

Window = tuple[int, int]
SMALLEST_NS = 10_000


def windows_around(timelines: Sequence[Timeline], points: Sequence[int], slices: int) -> list[Window]:
    """The surroundings of every point, as wide as fits into so many slices of each timeline; joined where they meet."""
    if not timelines:
        return []
    start, end = min(t.start for t in timelines), max(t.end for t in timelines)
    if not points or all(t.slices <= slices for t in timelines):
        return [(start, end)]
    starts = [sorted(s.start for lane in t.lanes for s in lane.slices) for t in timelines]
    each = slices // len(points)
    found = sorted(_around(starts, point, each, start, end) for point in points)
    joined = [found[0]]
    for low, high in found[1:]:
        if low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _around(starts: Sequence[Sequence[int]], point: int, slices: int, start: int, end: int) -> Window:
    low, high = SMALLEST_NS, max(SMALLEST_NS, end - start)
    while high - low > SMALLEST_NS:
        middle = (low + high) // 2
        most = max(bisect_right(s, point + middle) - bisect_left(s, point - middle) for s in starts)
        low, high = (middle, high) if most <= slices else (low, middle)
    return max(start, point - low), min(end, point + low)
