"""Prints what share of a CPU a task gets that runs and sleeps equally long, beside one that never sleeps."""

from __future__ import annotations

import sys
from pathlib import Path

from schedlab import api
from schedlab.render.grid import columns

SCENARIO = Path(__file__).resolve().parents[1] / "scenarios" / "sleeper-curve.toml"


def main() -> int:
    """One line per variant, one column per length of run and sleep."""
    scenario = api.load(SCENARIO)
    rows: list[list[str]] = []
    for variant in scenario.variants:
        run = api.run(scenario, variant.name)
        busy = {task.name: task.cpu_ns for task in run.tasks}
        pairs = [task.name for task in run.tasks if task.name.startswith("sleeper-")]
        if not rows:
            rows.append(["sleeper's share of CPU", *(name.removeprefix("sleeper-") for name in pairs)])
        shares = [busy[name] / (busy[name] + busy[name.replace("sleeper", "runner")]) for name in pairs]
        rows.append([variant.name, *(f"{100 * share:.1f}%" for share in shares)])
    print("\n".join(columns(rows, "<" + ">" * (len(rows[0]) - 1))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
