"""Records the traces that replay is tested on: `corpus.py [NAME...]` makes those named, by default those missing.

A trace is a workload on a kernel with so many CPUs, cut to about 3,000 decisions. Needs QEMU, and the archive for a
kernel that is not in the cache yet; no test runs this.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from schedlab.engine import Engine, native_engine
from schedlab.errors import SchedlabError, render
from schedlab.record import Order, record

CORPUS = Path(__file__).resolve().parents[1] / "crates/schedlab-replay/corpus"
DECISIONS = 3000
BYTES_MAX = 100_000
RECORDS = 60_000
"""More than that many decisions ever need."""

KERNELS = ("6.1.192", "6.12.107", "7.2.13")
HOG = "sh -c 'while :; do :; done'"
WORKLOADS = {
    "hackbench": "hackbench -g {cpus} -l 100",
    "batch-wake": f"timeout 3 {HOG} & perf bench futex wake -t 24 -w 8; perf bench futex wake -t 24 -w 8; wait",
    "cyclictest": f"for i in 1 2 3; do timeout 4 {HOG} & done; cyclictest -q --policy=other -t 3 -i 1000 -l 3000; wait",
    "switch": "stress-ng --switch 2 --switch-ops 20000 -t 3",
    "futex": "stress-ng --futex 3 --futex-ops 20000 -t 3",
    "sleep-fork": "stress-ng --nanosleep 2 --fork 2 -t 2",
    "niced": f"for n in 0 5 19; do for c in $(seq {{cpus}}); do timeout 12 nice -n $n {HOG} & done; done; wait",
    "video": f"rt-app video.json & sleep 2; for i in 1 2 3; do timeout 6 {HOG} & done; wait",
}
SESSIONS = {
    "hogs-autogroup": f"setsid timeout 3 {HOG} & for i in 1 2; do timeout 3 {HOG} & done; "
    "setsid stress-ng --nanosleep 2 -t 2 & setsid stress-ng --cpu 2 -t 2; wait",
    "hackbench-autogroup": f"setsid timeout 3 {HOG} & setsid hackbench -g {{cpus}} -l 40 & hackbench -g 1 -l 20; wait",
}
"""Each session a group of its own, beside tasks of no session."""

VIDEO = "/usr/share/doc/rt-app/examples/video-short.json"
"""rt-app itself reads it only after its workgen has made JSON of it."""


@dataclass(frozen=True)
class Trace:
    """One file of the corpus."""

    kernel: str
    cpus: int
    workload: str

    @property
    def name(self) -> str:
        return f"{self.kernel}-{self.cpus}cpu-{self.workload}"

    @property
    def path(self) -> Path:
        return CORPUS / f"{self.name}.ftrace.gz"


TRACES = [
    Trace(kernel, cpus, workload) for kernel in KERNELS for cpus in (1, 2) for workload in (*WORKLOADS, *SESSIONS)
]


def main(patterns: list[str]) -> int:
    engine = native_engine()
    chosen = [t for t in TRACES if any(fnmatch(t.name, p) for p in patterns) or not (patterns or t.path.exists())]
    failed = 0
    for trace in chosen:
        try:
            make(trace, engine)
        except SchedlabError as e:
            failed += 1
            print(f"{trace.name}: {render(e)}", file=sys.stderr)
    return 1 if failed else 0


def make(trace: Trace, engine: Engine) -> None:
    """Record, cut, and say how well the kernel's row decides it."""
    line = (WORKLOADS | SESSIONS)[trace.workload].format(cpus=trace.cpus)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        if "video.json" in line:
            subprocess.run(["workgen", "-d", "-o", "video.json", VIDEO], check=True)
        order = Order(
            trace.kernel,
            (line,),
            Path("whole.ftrace.gz"),
            trace.cpus,
            time_limit_s=400,
            records=RECORDS,
            autogroup=trace.workload in SESSIONS,
        )
        done = record(order, engine)
        keep = shorten(order.out, trace.path, done.counts["records"], engine)
    decisions, report = judged(trace.path, engine)
    agreed = report["picks"]["agreed"] + report["preemptions"]["agreed"]
    size = trace.path.stat().st_size // 1000
    print(
        f"{trace.name}: {size} kB, {keep:,} records, {agreed:,} of {decisions:,} decisions as row {report['row']}",
        flush=True,
    )


def shorten(whole: Path, target: Path, records: int, engine: Engine) -> int:
    """Cut so that about DECISIONS are left, which come denser at some times than at others, and the file is small."""
    low, high, keep = 0, records, records
    for _ in range(8):
        cut(whole, target, keep)
        decisions, _report = judged(target, engine)
        large = decisions > DECISIONS or target.stat().st_size > BYTES_MAX
        if not large and (keep == records or decisions > 0.97 * DECISIONS):
            return keep
        low, high = (low, keep) if large else (keep, high)
        keep = (low + high) // 2
    cut(whole, target, low)
    return low


def judged(path: Path, engine: Engine) -> tuple[int, dict[str, Any]]:
    """How many decisions the recorded kernel's row was asked for; a kernel without a row counts by the nearest."""
    try:
        report = engine.replay(str(path))[0]
    except SchedlabError:
        report = engine.replay(str(path), "6.12.0")[0]
    return report["picks"]["decisions"] + report["preemptions"]["decisions"], report


def cut(source: Path, target: Path, records: int) -> None:
    """The first records, packed tightly; the same input gives the same bytes."""
    with gzip.open(source) as text, target.open("wb") as file:
        packed = gzip.compress(b"".join(first(text, records)), 9, mtime=0)
        file.write(packed)


def first(text: Any, records: int) -> Iterator[bytes]:
    for line in text:
        if not line.startswith(b"#"):
            if records == 0:
                return
            records -= 1
        yield line


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
