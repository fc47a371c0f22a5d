"""Decisions of a scheduler and the runqueue that they were made on. Times are in ns."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

Compared = tuple[str, int]
"""The name of a number that a rule compared, and the number."""

Names = dict[str, str]
"""The names of tasks by pid, or the paths of groups by number."""

Action = Literal[
    "pick",
    "preempt",
    "keep",
    "expire",
    "stay",
    "delay",
    "throttle",
    "unthrottle",
    "leave",
    "place",
    "search",
    "pull",
    "skip",
    "no_newidle",
]
State = Literal["new", "running", "waiting", "throttled", "delayed", "sleeping", "dead"]
EntityState = Literal["running", "leaving", "waiting", "delayed"]
Flag = Literal["full", "lazy"]
"""The kind of a request to reschedule."""


class DeadlineView(TypedDict):
    """A queued task of the deadline class."""

    pid: int
    deadline_ns: int
    runtime_left_ns: int
    running: bool


class RealTimeView(TypedDict):
    """A task of the real-time class."""

    pid: int
    priority: int
    policy: str
    running: bool


class EntityView(TypedDict):
    """An entity of a fair queue; vruntime and deadline are relative to the zero point of the queue."""

    pid: int
    group: int | None
    depth: int
    state: EntityState
    weight: int
    vruntime: int
    lag: int | None
    deadline: int | None
    eligible: bool | None
    protected: bool | None
    slice_ns: int
    ran_ns: int


class QueueView(TypedDict):
    """The runqueue of a CPU."""

    cpu: int
    zero_vruntime: int
    avg_vruntime: int | None
    accounted_ns: int | None
    next: int | None
    last: int | None
    skip: int | None
    deadline: NotRequired[list[DeadlineView]]
    real_time: NotRequired[list[RealTimeView]]
    throttled: NotRequired[list[int]]
    entities: list[EntityView]


class CandidateView(TypedDict):
    """CPUs that a placement tested."""

    function: str
    feature: str | None
    cpus: list[int]
    which: str
    idle: int
    sched_idle: int
    nr_running: int
    load: int
    cache: int
    answer: str
    numbers: list[Compared]


DecisionView = TypedDict(
    "DecisionView",
    {
        "time_ns": int,
        "cpu": int,
        "action": Action,
        "pid": int | None,
        "group": int | None,
        "class": str,
        "other_cpu": int | None,
        "during": str,
        "need_resched": Flag | None,
        "function": str,
        "rule": str,
        "feature": str | None,
        "compared": list[Compared],
        "queue": NotRequired[QueueView],
        "candidates": NotRequired[list[CandidateView]],
    },
)
"""A decision: about a task (`pid`), a group, or a class as a whole."""
