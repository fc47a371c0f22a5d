"""Which parts of a run a page shows in full: the surroundings of the moments of interest."""

from __future__ import annotations

from collections.abc import Sequence

from schedlab.timeline.reduce import Timeline

Window = tuple[int, int]


def common_windows(timelines: Sequence[Timeline]) -> list[Window]:
    """The ranges in which no timeline misses anything, joined where they meet."""
    if not timelines:
        return []
    whole = (min(t.start for t in timelines), max(t.end for t in timelines))
    part = [t.windows for t in timelines if t.windows]
    if not part:
        return [whole]
    found = sorted(
        (max(low for low, _ in around), min(high for _, high in around)) for around in zip(*part, strict=True)
    )
    joined: list[Window] = []
    for low, high in found:
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        elif low < high:
            joined.append((low, high))
    return joined
