"""What every CPU did and when, reduced from a trace: slices, queues, wakeups, and idle time while work waits."""

from schedlab.timeline.columns import of_columns
from schedlab.timeline.reduce import Lane, Slice, Timeline, Waited
from schedlab.timeline.trace import of_traces
from schedlab.timeline.windows import Window, common_windows

__all__ = [
    "Lane",
    "Slice",
    "Timeline",
    "Waited",
    "Window",
    "common_windows",
    "of_columns",
    "of_traces",
]
