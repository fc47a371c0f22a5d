"""Prints how often the two wakers of scenarios/physics/selection.toml choose the same CPU, by the time between them."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import schedlab

SCENARIO = Path(__file__).parents[1] / "scenarios/physics/selection.toml"
DELAYS = ("0us", "250ns", "500ns", "750ns", "1us", "1500ns", "2us")
WOKEN = re.compile(r"(\d+\.\d+): sched_wakeup: comm=woken pid=\d+ .*target_cpu=(\d+)")
ONE_PERIOD_S, BUSY_S = 100e-6, 20e-6
"""Half of the wakers' period, within which two wakeups make a pair; for how long the first task then runs."""


def main(arguments: list[str] | None = None) -> int:
    """One line per delay, the share of the pairs of each variant."""
    delays = arguments if arguments is not None else sys.argv[1:]
    for delay in delays or DELAYS:
        scenario = schedlab.load(SCENARIO, overrides={"workload.second.task.waker.delay": delay})
        shares = [f"{variant.name} {100 * share(scenario, variant.name):.0f}%" for variant in scenario.variants]
        print(f"| {delay} | {' | '.join(shares)} |")
    return 0


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
