"""The answer of `waits`: the longest waits for a CPU in a recorded trace. Times are in ns."""

from __future__ import annotations

from typing import Literal, TypedDict


class Ran(TypedDict):
    """The tasks of a name that ran while another one waited."""

    name: str
    pid: int | None
    """The task, if it was one."""
    tasks: int
    ns: int
    realtime: int | None
    """Their real-time priority; -1 of deadline tasks."""


class Wait(TypedDict):
    """One wait."""

    since_ns: int
    ns: int
    cpu: int
    """Where the task ran at its end."""
    began: Literal["woken", "forked", "preempted"]
    by: int
    """The task that woke or preempted it; 0: idle, or an interrupt of it."""
    moved_from: int | None
    ran: list[Ran]
    """What ran meanwhile on the CPU, the longest first."""
    idle_ns: int
    idle_elsewhere: tuple[int, int] | None
    """The other CPU that was idle for longest, and for how long."""
    cut: bool
    """It was too long for all of it to be remembered."""


class Waiter(TypedDict):
    """A task that waited."""

    pid: int
    name: str
    waits: int
    total_ns: int
    longest: list[Wait]


class Waits(TypedDict):
    """The longest waits of a trace."""

    kernel: str | None
    cpus: int
    records: int
    lost: int
    span_ns: int
    tasks: list[Waiter]
    unfinished: int
