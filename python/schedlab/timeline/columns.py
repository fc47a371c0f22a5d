"""The timeline that the engine reduces from a run in progress, in flat columns of integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schedlab.timeline.reduce import Lane, Slice, Timeline, Waited, Wake


def of_columns(found: Mapping[str, Any]) -> Timeline:
    """The document of `Engine.timeline` as a timeline."""
    return Timeline(
        [_lane(lane) for lane in found["lanes"]],
        [(pid, name) for pid, name in found["tasks"]],
        [Wake(*row) for row in _rows(found["wakes"], 6)],
        {metric: [Waited(*row) for row in rows] for metric, rows in found["slowest"].items()},
        found["start"],
        found["end"],
        # What ends with the first ns of a range, or begins with its last, may be missing.
        [(low + 1, high - 1) for low, high in found.get("windows", ())],
    )


def _lane(lane: Mapping[str, Any]) -> Lane:
    slices = [Slice(start, end, task, bool(preempted)) for start, end, task, preempted in _rows(lane["slices"], 4)]
    depth = [(time, waiting) for time, waiting in _rows(lane["depth"], 2)]
    gaps = [(start, end) for start, end in _rows(lane["gaps"], 2)]
    return Lane(lane["name"], slices, depth, gaps, lane.get("busy", []), lane.get("bin", 0))


def _rows(column: Sequence[int], width: int) -> Iterator[tuple[int, ...]]:
    """A flat column in rows."""
    each = iter(column)
    return zip(*[each] * width, strict=True)
