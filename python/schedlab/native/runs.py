"""A run repeated: its timeline, and where the time of its slow samples went. Times are in ns."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Lane(TypedDict):
    """What a CPU did, as flat columns; see the engine's `timeline`."""

    name: str
    slices: list[int]
    depth: list[int]
    gaps: list[int]
    busy: NotRequired[list[int]]
    bin: NotRequired[int]


class Columns(TypedDict):
    """A timeline."""

    lanes: list[Lane]
    tasks: list[tuple[int, str]]
    wakes: list[int]
    slowest: dict[str, list[tuple[int, int, int, int, int]]]
    start: int
    end: int
    windows: NotRequired[list[tuple[int, int]]]
    digest: str
    events: int


class Account(TypedDict):
    """The parts of samples."""

    ns: int
    parts: dict[str, int]
    elsewhere: int
    in_queue: int
    pools: dict[str, int]
    before: dict[str, int]
    waiters: dict[str, int]
    servers: dict[str, int]
    thieves: dict[str, int]
    wakers: list[tuple[str, str, int]]
    threads: tuple[int, int, int, int]


class Band(Account):
    """The samples of a band of durations."""

    count: int
    tasks: dict[str, int]
    lanes: dict[str, int]
    tenths: list[int]


class Sample(Account):
    """One of the longest samples."""

    at: int
    pid: int
    task: str
    lane: str


class Load(TypedDict):
    """How the CPUs of a kernel were used; `cpus` has for each the time busy, waiting tasks and time with such."""

    kernel: str
    time: int
    cpus: list[tuple[int, int, int]]
    runnable: int
    over: int
    full: int
    lost: int
    most: int


class Tail(TypedDict):
    """Where the time of the samples of a metric went."""

    bands: list[Band]
    tenths: list[tuple[int, float]]
    slowest: list[Sample]
    load: list[Load]
    digest: str
    events: int
    quota: bool
