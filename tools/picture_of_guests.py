"""The picture in README.md of a host and its guests on one scale of time, and the sentence about it.

It shows the slowest request of scenarios/noisy-neighbour.toml with seed 1 in the variant whose guests share CPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import schedlab
from schedlab.engine import native_engine
from schedlab.render.timeline import standalone
from schedlab.timeline import Timeline, Waited, account, of_columns, task_of

SCENARIO, VARIANT, SEED = "scenarios/noisy-neighbour.toml", "shared", 1
METRIC = "vm.app.latency"
BEFORE, AFTER = 0.3, 0.1
"""How much is shown before and after the request, as a share of its length."""


@dataclass(frozen=True, slots=True)
class GuestPicture:
    """The file, and what README.md has to say of it."""

    svg: str
    caption: str


def guest_picture(root: Path) -> GuestPicture:
    """Of the slowest request, from a run that is made here."""
    scenario = schedlab.load(root / SCENARIO)
    timeline = of_columns(native_engine().timeline(scenario, VARIANT, SEED))
    slowest = timeline.slowest[METRIC][0]
    start, end = slowest.at_ns - slowest.ns, slowest.at_ns
    window = int(start - BEFORE * slowest.ns), int(end + AFTER * slowest.ns)
    return GuestPicture(standalone({VARIANT: of_use(timeline)}, *window, start), caption(timeline, slowest))


def of_use(timeline: Timeline) -> Timeline:
    """Without the CPUs on which nothing runs."""
    return replace(timeline, lanes=[lane for lane in timeline.lanes if lane.slices])


def caption(timeline: Timeline, slowest: Waited) -> str:
    """How long the request took, and how long its vCPU waited meanwhile behind whom."""
    lane = timeline.lanes[slowest.lane].name
    vcpu = account(timeline, slowest).vcpu
    assert vcpu is not None, f"{lane} is a guest's"
    others = [timeline.tasks[task][1] for task, _ in vcpu.behind.most_common(2)]
    return (
        f"a request of {task_of(timeline, slowest)} takes {slowest.ns / 1e6:.1f} ms, because its vCPU ({lane}) waits "
        f"{vcpu.waited / 1e6:.1f} ms for a CPU of the host on which {' and '.join(others)} run"
    )
