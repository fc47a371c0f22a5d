"""Prints how often the two wakers of scenarios/physics/selection.toml choose the same CPU, by the time between them."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import schedlab

SCENARIO = Path(__file__).parents[1] / "scenarios/physics/selection.toml"
START_NS = 100_000
"""When the second waker starts if it wakes at the same time as the first."""
LATER_NS = (0, 250, 500, 750, 1000, 1500, 2000)
WOKEN = re.compile(r"(\d+\.\d+): sched_wakeup: comm=woken pid=\d+ .*target_cpu=(\d+)")
ONE_PERIOD_S, BUSY_S = 100e-6, 20e-6
"""Half of the wakers' period, within which two wakeups make a pair; for how long the first task then runs."""


def main(arguments: list[str] | None = None) -> int:
    """One line per time in ns that the second waker is later by, the share of the pairs of each variant."""
    times = arguments if arguments is not None else sys.argv[1:]
    for later in map(int, times or LATER_NS):
        scenario = schedlab.load(SCENARIO, overrides=later_by(later))
        shares = [f"{variant.name} {100 * share(scenario, variant.name):.0f}%" for variant in scenario.variants]
        print(f"| {later} | {' | '.join(shares)} |")
    return 0


def later_by(ns: int) -> dict[str, str]:
    """The override with which the second waker is later by so many ns."""
    return {"workload.second.task.waker.delay": f"{START_NS + ns}ns"}


def share(scenario: schedlab.Scenario, variant: str) -> float:
    """The share of the pairs of wakeups that chose one CPU."""
    with TemporaryDirectory(prefix="schedlab-") as folder:
        trace = Path(folder) / "trace.txt"
        schedlab.run(scenario, variant, trace=trace)
        woken = [(float(time), cpu) for time, cpu in WOKEN.findall(trace.read_text(encoding="utf-8"))]
    pairs = [(b[0] - a[0], a[1] == b[1]) for a, b in pairwise(woken) if b[0] - a[0] < ONE_PERIOD_S]
    return sum(same and apart < BUSY_S for apart, same in pairs) / len(pairs)


if __name__ == "__main__":
    sys.exit(main())
