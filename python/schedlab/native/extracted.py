"""What the engine extracts from a recorded trace, and the metrics of its simulation."""

from __future__ import annotations

from typing import TypedDict


class PoolMetrics(TypedDict):
    """The metrics of a pool, of the recording or of one simulated run; times in ns."""

    wakeups: int
    latency_p50: int | None
    latency_p99: int | None
    cpu: int
    switches: int
    span: int


class ExtractedPool(TypedDict):
    """The tasks of one name."""

    name: str
    tasks: list[str]
    waits: int
    by_task: int
    irregular: int
    by_period: int
    by_timer: int
    by_arrival: int
    unknown: int
    work: int
    recorded: PoolMetrics


class Costs(TypedDict):
    """What a wakeup and a switch took on the recorded kernel, ns."""

    wakeup: int
    switch: int


class Extraction(TypedDict):
    """The scenario of a recording, and what is known of its pools."""

    text: str
    row: str
    release: str
    cpus: int
    span: int
    costs: Costs
    records: int
    notes: list[str]
    pools: list[ExtractedPool]
