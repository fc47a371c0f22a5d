"""Estimates how long the runs of a plan will take, from stored runs of it or else from trial runs at its ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schedlab.engine import Engine
from schedlab.errors import SchedlabError
from schedlab.sweeping.plan import Plan, Planned

PROBE_S = 1.0
"""The longest time for which a run is tried."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds of computing for all runs, and in words how they are known."""

    seconds: float | None
    how: str


def estimate(engine: Engine, plan: Plan, todo: Sequence[Planned], known: Mapping[tuple[int, str], float]) -> Estimate:
    """From stored runs of the same points and variants; for others their mean."""
    if not todo:
        return Estimate(0.0, "nothing is left")
    if known:
        mean = sum(known.values()) / len(known)
        total = sum(known.get((run.point, run.variant), mean) for run in todo)
        return Estimate(total, "from the stored runs")
    ends = {run.point: run for run in (todo[-1], todo[0])}
    tried = [seconds for run in ends.values() if (seconds := probe(engine, plan, run)) is not None]
    if not tried:
        return Estimate(None, "the first and the last point could not be run")
    where = "the first and the last point" if len(tried) > 1 else "one point"
    return Estimate(len(todo) * sum(tried) / len(tried), f"from {where}, tried for {PROBE_S:g} s at most")


def probe(engine: Engine, plan: Plan, run: Planned) -> float | None:
    """The wall time of a run, extrapolated from its beginning; None if it fails or has not begun in time."""
    reached: list[int] = []
    cancel = engine.cancel()

    def stop() -> None:
        reached.extend(one.now_ns for one in engine.under_way())
        cancel.cancel()

    timer = threading.Timer(PROBE_S, stop)
    began = time.monotonic()
    timer.start()
    scenario = plan.scenarios[run.point]
    try:
        engine.run(scenario, run.variant, run.seed, cancel=cancel)
        return time.monotonic() - began
    except SchedlabError:
        return (time.monotonic() - began) * scenario.duration_ns / reached[0] if reached and reached[0] else None
    finally:
        timer.cancel()
