"""Checks predictions of `schedlab whatif` against recordings of the same load on the other kernels.

    whatif_tables.py FOLDER LOAD...    prints every crossing, the worst first

FOLDER has a recording KERNEL-1cpu-LOAD.ftrace.gz of each load on each kernel, such as 6.12.107-1cpu-hogs.ftrace.gz.
Only pools with a row of their own in the table are compared; a cell that was refused counts as refused, whatever its
number.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KINDS = {"latency_p50": "p50, us", "latency_p99": "p99, us", "switches": "switches/s", "wakeups": "wakeups/s"}
LEAST = 100
"""A pool with fewer wakeups in the other recording is left out: its metrics are single events there."""


def main(folder: Path, loads: list[str]) -> int:
    cells = [cell for load in loads for cell in crossings(folder, load)]
    cells.sort(key=lambda cell: -cell["factor"])
    print("| load | metric | recorded on | for | recorded | predicted | factor | |")
    print("|---|---|---|---|---|---|---|---|")
    for c in cells:
        words = f"{c['load']} | {c['pool']} {KINDS[c['metric']]} | {c['source']} | {c['target']}"
        print(f"| {words} | {number(c['there'])} | {number(c['predicted'])} | {c['factor']:.2f} | {c['refused']} |")
    judged = [c for c in cells if not c["refused"]]
    near = sum(c["factor"] <= 1.25 for c in judged)
    signs = [c for c in judged if c["sign"] is not None]
    right = sum(c["sign"] for c in signs)
    far = sum(c["factor"] > 2 for c in judged)
    print(
        f"\n{len(cells)} crossings, {len(cells) - len(judged)} refused; of the others {near} of {len(judged)} within a "
        f"factor of 1.25, {far} off by more than 2; {right} of {len(signs)} effects of "
        "more than 10% have the right sign"
    )
    return 0


def crossings(folder: Path, load: str) -> list[dict[str, Any]]:
    """Every prediction of a load for a kernel of which there is a recording."""
    files = sorted(folder.glob(f"*-1cpu-{load}.ftrace.gz"))
    kernels = {file.name.split("-1cpu-")[0]: file for file in files}
    found = {kernel: predicted(file, [k for k in kernels if k != kernel]) for kernel, file in kernels.items()}
    cells = []
    for source, rows in found.items():
        for (pool, metric), row in rows.items():
            for target in kernels:
                there = found[target].get((pool, metric))
                value = row["predicted"].get(name(target), {}).get("value")
                if metric in KINDS and there and value and there["recorded"] and many(found[target], pool):
                    cells.append(cell(load, pool, metric, source, target, row, there["recorded"], value))
    return cells


def cell(
    load: str, pool: str, metric: str, source: str, target: str, row: dict[str, Any], there: float, value: float
) -> dict[str, Any]:
    """One prediction beside its recording."""
    factor = max(there, value) / min(there, value)
    real, simulated = there / row["recorded"] if row["recorded"] else None, None
    if row["simulated"]:
        simulated = value / row["simulated"]
    sign = None
    if real is not None and simulated is not None and not 0.9 <= real <= 1.1:
        sign = (real > 1) == (simulated > 1)
    return {
        "load": load, "pool": pool, "metric": metric, "source": source, "target": target, "there": there,
        "predicted": value, "factor": factor, "sign": sign, "refused": "refused" if row["refused"] else "",
    }  # fmt: skip


def many(rows: dict[tuple[str, str], dict[str, Any]], pool: str) -> bool:
    """Whether the pool has enough wakeups in this recording."""
    return rows.get((pool, "wakeups"), {}).get("events", 0) >= LEAST


def predicted(file: Path, kernels: list[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of `schedlab whatif` for these kernels."""
    flags = [word for kernel in kernels for word in ("--kernel", kernel)]
    command = [str(ROOT / ".venv/bin/schedlab"), "whatif", str(file), *flags, "--json"]
    document = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    events = {pool["name"]: pool["recorded"]["wakeups"] for pool in document["pools"]}
    return {(row["pool"], row["metric"]): {**row, "events": events[row["pool"]]} for row in document["rows"]}


def name(kernel: str) -> str:
    """The variant of a kernel."""
    return kernel.replace(".", "-")


def number(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
