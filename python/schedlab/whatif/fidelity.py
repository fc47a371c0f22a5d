"""How far the simulation of the recorded kernel is from the recording, and when that refuses a metric."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from schedlab.frozen import Frozen
from schedlab.native.extracted import ExtractedPool, PoolMetrics
from schedlab.scenario import Better, Metric
from schedlab.statistics import median

KINDS: dict[str, tuple[str, Better]] = {
    "latency_p50": ("wakeup latency, median", "lower"),
    "latency_p99": ("wakeup latency, p99", "lower"),
    "cpu": ("CPU time, % of a CPU", "neither"),
    "switches": ("switches away", "neither"),
    "wakeups": ("wakeups", "neither"),
}
"""The metrics of a pool: what they mean, and which direction is better."""


class Refusal(Frozen):
    """Why a metric is not predicted, and what would help."""

    reason: str
    helps: str


@cache
def limits() -> dict[str, Any]:
    """The limits, each with its reason."""
    return tomllib.loads(Path(__file__).with_name("limits.toml").read_text(encoding="utf-8"))


def metric(pool: str, kind: str) -> Metric:
    """A metric of a pool as `judge` takes it."""
    words, better = KINDS[kind]
    name = f"{pool}.{kind}"
    return Metric(name, name, None, str(limits()[kind]["unit"]), better, 2.0, words, True)


def value(kind: str, of: PoolMetrics | None) -> float | None:
    """A metric in its unit."""
    if of is None or not of["span"]:
        return None
    if kind == "latency_p50":
        return None if of["latency_p50"] is None else of["latency_p50"] / 1000
    if kind == "latency_p99":
        return None if of["latency_p99"] is None else of["latency_p99"] / 1000
    if kind == "cpu":
        return 100 * of["cpu"] / of["span"]
    return 1e9 * (of["switches"] if kind == "switches" else of["wakeups"]) / of["span"]


def error(recorded: float | None, simulated: float | None) -> float | None:
    """The distance in percent: the same up and down, so that half and twice are 100 % each."""
    if recorded is None or simulated is None:
        return None
    if recorded == simulated:
        return 0.0
    if min(recorded, simulated) <= 0:
        return None
    return 100 * (max(recorded, simulated) / min(recorded, simulated) - 1)


def nearest(recorded: float | None, samples: Sequence[float | None]) -> float | None:
    """The value within the range of the samples that is nearest to the recorded one."""
    there = [v for v in samples if v is not None]
    return min(max(recorded, min(there)), max(there)) if there and recorded is not None else None


def refusal(kind: str, pool: ExtractedPool, recorded: float | None, samples: Sequence[float | None]) -> Refusal | None:
    """Whether a metric is beyond a limit; `samples` are those of the simulation of the recorded kernel.

    A recording is one run: where runs of the simulation lie on both sides of it, only their median is compared, by a
    wider limit.
    """
    simulated = nearest(recorded, samples)
    limit, causes = limits()[kind], limits()["causes"]
    counted = "switches" if kind == "switches" else "wakeups"
    events = pool["recorded"]["switches"] if kind == "switches" else pool["recorded"]["wakeups"]
    if events < limit["samples"]:
        return Refusal(f"{events} {counted}, of which {limit['samples']} are needed", "record longer")
    if recorded is None or simulated is None:
        return Refusal("no value in the recording or in its simulation", "record longer")
    waits = max(pool["waits"], 1)
    unknown, irregular = pool["unknown"] / waits, pool["irregular"] / waits
    if unknown > causes["unknown"]:
        return Refusal(f"{unknown:.0%} of its waits have no known cause", "record sched_waking with its context")
    if irregular > causes["irregular"] and kind != "cpu":
        return Refusal(
            f"{irregular:.0%} of its waits are for several tasks or follow no cycle, and depend on the schedule",
            "describe its pipes or locks by hand in the scenario of --out",
        )
    middle = median([v for v in samples if v is not None]) or 0.0
    for found, factor in ((simulated, limit["factor"]), (middle, limits()["spread"]["factor"])):
        distance = error(recorded, found)
        if abs(recorded - found) > limit["floor"] and (distance is None or distance > 100 * (factor - 1) + 1e-9):
            words = "infinitely" if distance is None else f"{distance:,.0f}%"
            return Refusal(
                f"the simulation of the recorded kernel is {words} off",
                "look for what is missing in the scenario of --out",
            )
    return None
