"""Records chaos loads and prints how often the rows decide them as their kernels did, worst first.

`nightly.py [SEEDS [FIRST]]`: SEEDS loads (default 10) from FIRST (default 1), on each kernel with 1, 2 and 4 CPUs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from schedlab.engine import native_engine
from schedlab.errors import SchedlabError
from schedlab.record import Order, chaos, record

KERNELS = ("6.1", "6.12", "7.2")
CPUS = (1, 2, 4)
RECORDS = 12_000
HEAD = (
    "| seed | kernel | CPUs | contested picks | preemptions | placements | balances | unexplained |",
    "|---|---|---|---|---|---|---|---|",
)


def main(seeds: int = 10, first: int = 1) -> int:
    rows: list[tuple[float, str]] = []
    failed = 0
    for seed in range(first, first + seeds):
        for kernel in KERNELS:
            for cpus in CPUS:
                try:
                    rows.append(judged(seed, kernel, cpus))
                except SchedlabError as e:
                    failed += 1
                    print(f"seed {seed}, {kernel}, {cpus} CPUs: {e.message}", file=sys.stderr)
    print("\n".join([*HEAD, *(text for _, text in sorted(rows))]))
    return 1 if failed else 0


def judged(seed: int, kernel: str, cpus: int) -> tuple[float, str]:
    """One load on one kernel, sorted by the worse of picks and preemptions."""
    with tempfile.TemporaryDirectory(prefix="schedlab-nightly-") as folder:
        out = Path(folder) / "chaos.ftrace.gz"
        record(Order(kernel, (chaos.workload(seed, cpus),), out, cpus, records=RECORDS), native_engine())
        (report,) = native_engine().replay(str(out), first=0)
    scores = [report[side] for side in ("picks", "preemptions", "placements", "balances")]
    cells = [f"{s['agreed']:,} of {s['decisions']:,}" for s in scores]
    unexplained = sum(report["unexplained"].values())
    worst = min(s["share"] for s in scores[:2]) if not unexplained else 0.0
    return worst, f"| {' | '.join([str(seed), report['trace']['kernel'], str(cpus), *cells, str(unexplained)])} |"


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
