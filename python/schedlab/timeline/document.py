"""A timeline as columns of small integers: what the canvas of a page reads."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Sequence
from typing import Any

from schedlab.timeline.reduce import Lane, Timeline
from schedlab.timeline.vcpus import vcpu_spans
from schedlab.timeline.windows import Window

BINS = 800
"""Columns of the overview, which covers the whole run with the share of time that each lane was busy."""

LEVEL = 6
"""Of gzip: 9, the default of Python, takes much longer for a few percent."""


def document(name: str, timeline: Timeline, windows: Sequence[Window], *, origin: int = 0) -> dict[str, Any]:
    """Everything within the windows, and the overview.

    Times are ns since `origin`; each is the difference to the one before it in its column. A lane has `slices` (start,
    length, task * 2 + preempted), `depth` (time, waiting tasks), `gaps` and `stolen` (start, length; `stolen` where the
    vCPU of a guest's lane waits for a CPU of the host) and `busy`, a digit per bin.
    `wakes` are (time, lane of the waker, waker or -1, wakee, lane, time until it ran).
    """
    used: dict[int, int] = {}
    lanes = [_lane(lane, timeline, windows, used, origin) for lane in timeline.lanes]
    wakes: list[int] = []
    before = origin
    for w in timeline.wakes:
        if _inside(w.at, w.ran_at, windows):
            by = -1 if w.by < 0 else _index(used, w.by)
            wakes += [w.at - before, w.lane, by, _index(used, w.task), w.ran_lane, w.ran_at - w.at]
            before = w.at
    tasks = [list(timeline.tasks[task]) for task in used]
    return {
        "name": name,
        "start": timeline.start - origin,
        "end": timeline.end - origin,
        "windows": [[low - origin, high - origin] for low, high in windows],
        "lanes": lanes,
        "tasks": tasks,
        "wakes": wakes,
    }


def packed(found: Any) -> str:
    """Compressed and in letters that need no escape; the same for the same document."""
    text = json.dumps(found, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=LEVEL, mtime=0)).decode()


def _lane(
    lane: Lane, timeline: Timeline, windows: Sequence[Window], used: dict[int, int], origin: int
) -> dict[str, Any]:
    slices: list[int] = []
    before = origin
    for s in lane.slices:
        if _inside(s.start, s.end, windows):
            slices += [s.start - before, s.end - s.start, _index(used, s.task) * 2 + s.preempted]
            before = s.start
    gaps = [(a, b - a) for a, b in lane.gaps if _inside(a, b, windows)]
    spans = vcpu_spans(timeline, lane)
    # Between two windows it is not known how long a vCPU waited.
    cut = ((max(a, low), min(b, high)) for a, b in (spans.stolen if spans else ()) for low, high in windows)
    stolen = [(a, b - a) for a, b in cut if a < b]
    return {
        "name": lane.name,
        "slices": slices,
        "depth": _deltas(_depth(lane, windows), origin),
        "gaps": _deltas(gaps, origin),
        "stolen": _deltas(stolen, origin),
        "busy": "".join(_busy(lane, timeline.start, timeline.end)),
    }


def _depth(lane: Lane, windows: Sequence[Window]) -> Iterable[tuple[int, int]]:
    """The changes within each window, after what held when it began."""
    for low, high in windows:
        held = 0
        begun = False
        for time, depth in lane.depth:
            if time > high:
                break
            if time < low:
                held = depth
                continue
            if not begun:
                yield low, held
                begun = True
            yield time, depth
        if not begun:
            yield low, held


def _deltas(pairs: Iterable[tuple[int, int]], origin: int) -> list[int]:
    column: list[int] = []
    before = origin
    for time, number in pairs:
        column += [time - before, number]
        before = time
    return column


def _index(used: dict[int, int], task: int) -> int:
    return used.setdefault(task, len(used))


def _inside(start: int, end: int, windows: Sequence[Window]) -> bool:
    return any(start <= high and end >= low for low, high in windows)


def _busy(lane: Lane, start: int, end: int) -> Iterable[str]:
    """For each bin the tenths of it in which a task ran, 0 to 9."""
    width = max(1.0, (end - start) / BINS)
    busy = [0.0] * BINS
    for low_ns, high_ns, share in _stretches(lane):
        low, high = (low_ns - start) / width, (high_ns - start) / width
        for i in range(max(0, int(low)), min(BINS, int(high) + 1)):
            busy[i] += share * max(0.0, min(high, i + 1) - max(low, i))
    return (str(min(9, int(10 * share))) for share in busy)


def _stretches(lane: Lane) -> Iterable[tuple[int, int, float]]:
    """From when to when the CPU was busy, and for which share of that time."""
    if not lane.bin_ns:
        return ((s.start, s.end, 1.0) for s in lane.slices)
    bins = enumerate(lane.busy)
    return ((i * lane.bin_ns, (i + 1) * lane.bin_ns, ns / lane.bin_ns) for i, ns in bins if ns)
