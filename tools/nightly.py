"""Records chaos loads and prints how often the rows decide them as their kernels did, as a Markdown table, worst first.

`nightly.py FOLDER [SEEDS [FIRST [KERNEL...]]]`: SEEDS loads (default 10) from FIRST (default 1), with 1, 2 and 4 CPUs,
on each kernel named or on all those of the corpus. `KERNEL=FILE` names the image of a kernel that the archive does not
have. The traces are kept in FOLDER, and those missing are recorded; with SEEDS 0 nothing is recorded. All traces that
are there are judged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from corpus import KERNELS, SEEDED, TSC, Trace, emulation, images, workload
from schedlab.engine import native_engine
from schedlab.errors import SchedlabError
from schedlab.record import Order, record

CPUS = (1, 2, 4)
RECORDS = 12_000
TIME_LIMIT_S = 600.0
HEAD = (
    "| seed | kernel | CPUs | contested picks | preemptions | placements | balances | state | unexplained |",
    "|---|---|---|---|---|---|---|---|---|",
)
NAME = re.compile(r"(?P<kernel>.+)-(?P<cpus>\d+)cpu-chaos-seed(?P<seed>\d+).*\.ftrace\.gz")


def main(folder: Path, kernels: Sequence[str], seeds: int = 10, first: int = 1) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for seed in range(first, first + seeds):
        for kernel, image in images(kernels).items():
            for cpus in CPUS:
                trace = Trace(kernel, cpus, f"{SEEDED}{seed}")
                path = folder / trace.path.name
                try:
                    if not path.exists():
                        make(path, trace, image)
                except SchedlabError as e:
                    failed += 1
                    print(f"{trace.name}: {e.message}", file=sys.stderr)
    found = [(path, match) for path in sorted(folder.iterdir()) if (match := NAME.fullmatch(path.name))]
    rows = [judged(path, match) for path, match in found]
    print("\n".join([*HEAD, *(text for _, text in sorted(rows))]))
    return 1 if failed else 0


def make(path: Path, trace: Trace, image: str) -> None:
    """One load on one kernel."""
    order = Order(image, (workload(trace),), path, trace.cpus, records=RECORDS, time_limit_s=TIME_LIMIT_S)
    how = emulation(trace)
    record(replace(order, emulation=how, append=TSC if how == "turns" else ""), native_engine())


def judged(path: Path, name: re.Match[str]) -> tuple[tuple[float, str], str]:
    """A trace's line, sorted by the worse of picks and preemptions."""
    (report,) = native_engine().replay(str(path), first=0)
    scores = [report[side] for side in ("picks", "preemptions", "placements", "balances")]
    steps, shown = report["vruntime"], report["state"]["events"]
    state = (shown["agreed"], shown["decisions"]) if shown["decisions"] else (steps["equal"], steps["compared"])
    unexplained = sum(report["unexplained"].values())
    pairs = [*((s["agreed"], s["decisions"]) for s in scores), state]
    cells = [name["seed"], name["kernel"], name["cpus"], *(f"{a:,} of {n:,}" for a, n in pairs), f"{unexplained:,}"]
    worst = min(s["share"] for s in scores[:2]) if not unexplained else 0.0
    return (worst, path.name), f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all(word.isdecimal() for word in sys.argv[2:4]):
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[4:] or KERNELS, *map(int, sys.argv[2:4])))
