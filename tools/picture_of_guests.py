"""The picture in the guide to the report of a host and its guests on one scale of time, and the sentence about it.

It shows the slowest request of scenarios/noisy-neighbour.toml with seed 1 in the variant whose guests share CPUs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import schedlab
from schedlab.engine import native_engine
from schedlab.render.timeline import standalone
from schedlab.tail import LONGEST_NS
from schedlab.timeline import Timeline, of_columns

SCENARIO, VARIANT, SEED = "scenarios/noisy-neighbour.toml", "shared", 1
METRIC = "app.latency"
BEFORE, AFTER = 0.3, 0.1
"""How much is shown before and after the request, as a share of its length."""


@dataclass(frozen=True, slots=True)
class GuestPicture:
    """The file, and what the guide has to say of it."""

    svg: str
    caption: str


def guest_picture(root: Path) -> GuestPicture:
    """Of the slowest request, from a run that is made here."""
    engine, scenario = native_engine(), schedlab.load(root / SCENARIO)
    timeline = of_columns(engine.timeline(scenario, VARIANT, SEED))
    slowest = engine.tail(scenario, VARIANT, SEED, METRIC, [(0, LONGEST_NS)])["slowest"][0]
    start, end = slowest["at"] - slowest["ns"], slowest["at"]
    window = int(start - BEFORE * slowest["ns"]), int(end + AFTER * slowest["ns"])
    return GuestPicture(standalone({VARIANT: of_use(timeline)}, *window, start), caption(slowest))


def of_use(timeline: Timeline) -> Timeline:
    """Without the CPUs on which nothing runs."""
    return replace(timeline, lanes=[lane for lane in timeline.lanes if lane.slices])


def caption(slowest: Mapping[str, Any]) -> str:
    """When the request ended, how long it took, and how long its vCPU had no CPU meanwhile, and what ran there."""
    guests = sorted(slowest["thieves"], key=slowest["thieves"].__getitem__, reverse=True)
    return (
        f"with variant {VARIANT} and seed {SEED}, a request of {slowest['task']} that ends at "
        f"{slowest['at'] / 1e6:,.1f} ms takes {slowest['ns'] / 1e6:.1f} ms, because its vCPU ({slowest['lane']}) waits "
        f"{slowest['parts']['stolen'] / 1e6:.1f} ms for a CPU of the host on which vCPUs of {' and '.join(guests)} run"
    )
