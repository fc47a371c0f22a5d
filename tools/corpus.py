"""Records the traces that replay is tested on: `corpus.py [KERNEL=FILE...] [NAME...]` makes those named or missing.

A trace is a workload on a kernel with so many CPUs, cut to about 3,000 decisions. Needs QEMU, and the archive for a
kernel that is not in the cache yet; no test runs this. `6.8.1=bzImage` names the image of a kernel that the archive
does not have.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from schedlab.engine import Engine, native_engine
from schedlab.errors import SchedlabError, render
from schedlab.record import Order, chaos, identifying, record

CORPUS = Path(__file__).resolve().parents[1] / "crates/schedlab-replay/corpus"
DECISIONS = 3000
BYTES_MAX = 100_000
RUNNING_RECORDS = 6_500
RECORDS_OF_FOUR_CPUS = 16_000
"""So many selections and balancing passes are needed there, and with more CPUs."""
ARRANGEMENTS = {8: "sockets=2,cores=2,threads=2", 16: "sockets=2,dies=2,cores=2,threads=2"}
"""Guests with that many CPUs have two nodes of one or two caches, and two threads per core."""
NODES = 2
SEEDED = "chaos-seed"
"""A random load of `record --chaos`, followed by its seed."""
RECORDS = 60_000
"""More than that many decisions ever need."""

KERNELS = (
    *(
        "5.10.262",
        "6.1.192",
        "6.12.43",
        "6.12.107",
        "6.16.12",
        "6.17.13",
        "6.18.12",
        "6.19.6",
        "6.19.14",
        "7.0.4",
        "7.0.13",
    ),
    *("7.1.13", "7.2.13", "7.3.4"),
)
HOG = "sh -c 'while :; do :; done'"
WORKLOADS = {
    "hackbench": "hackbench -g {cpus} -l 100",
    "batch-wake": f"timeout 3 {HOG} & perf bench futex wake -t 24 -w 8; perf bench futex wake -t 24 -w 8; wait",
    "cyclictest": f"for i in 1 2 3; do timeout 4 {HOG} & done; cyclictest -q --policy=other -t 3 -i 1000 -l 3000; wait",
    "switch": "stress-ng --switch 2 --switch-ops 20000 -t 3",
    "futex": "stress-ng --futex 3 --futex-ops 20000 -t 3",
    "sleep-fork": "stress-ng --nanosleep 2 --fork 2 -t 2",
    "niced": f"for n in 0 5 19; do for c in $(seq {{cpus}}); do timeout 12 nice -n $n {HOG} & done; done; wait",
    # More tasks than sched_nr_latency, one with a slice beyond sched_latency, SCHED_IDLE tasks that sleep or do not.
    "crowd": f"timeout 4 nice -n -20 {HOG} & for i in $(seq 12); do timeout 4 nice -n 19 {HOG} & done; "
    f"chrt -i 0 timeout 4 {HOG} & chrt -i 0 stress-ng --nanosleep 2 -t 3; wait",
    # Nice values, classes, slices, CPUs; forks and yields; real time and back.
    "chaos-slices": "./chaos s 5 2 11",
    "chaos-forks": "./chaos f 3 2 12",
    "chaos-classes": "./chaos r 5 2 13",
    "identify": identifying.load(),
    "mix": "hackbench -g 1 -l 30 & stress-ng --nanosleep 2 --fork 1 -t 2; wait",
    "mix-twice": "hackbench -g 2 -l 30 & stress-ng --nanosleep 4 --fork 1 -t 2; wait",
    "video": f"rt-app video.json & sleep 2; for i in 1 2 3; do timeout 6 {HOG} & done; wait",
}
SESSIONS = {
    "hogs-autogroup": f"setsid timeout 3 {HOG} & for i in 1 2; do timeout 3 {HOG} & done; "
    "setsid stress-ng --nanosleep 2 -t 2 & setsid stress-ng --cpu 2 -t 2; wait",
    "niced-autogroup": f"for n in 0 5 10; do timeout 4 nice -n $n {HOG} & "
    f'setsid sh -c "timeout 4 nice -n $n {HOG} & timeout 4 nice -n 3 {HOG} & wait" & done; wait',
    "hackbench-autogroup": f"setsid timeout 3 {HOG} & setsid hackbench -g {{cpus}} -l 40 & hackbench -g 1 -l 20; wait",
}
"""Each session a group of its own, beside tasks of no session."""
CACHES = {
    # Threads of one process, fewer than the CPUs of a cache, beside processes of one thread.
    "threads": f"timeout 4 {HOG} & timeout 4 {HOG} & hackbench -T -g 1 -f 2 -l 4000 "
    "& stress-ng --nanosleep 2 -t 3; wait",
}
"""Recorded on one node with two caches, one of which is preferred for each process (7.2)."""

CHAOS = Path(__file__).with_name("chaos.c")
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


RUNNING = "setsid hackbench -g 1 -l 60 & stress-ng --nanosleep 2 --fork 1 -t 1; wait"
OURS = re.compile(
    r"hackbench|stress-ng|sh$|kworker|ksoftirqd|rcu_|migration|swapper|<idle>|<\.\.\.>|kcompactd|schedlab"
)
"""What a trace of the running kernel may name: its workload and the kernel's threads."""

SEED_NUMBERS = (101, 102)


def missing(kernels: tuple[str, ...]) -> list[Trace]:
    """What `corpus.py` makes by default, if it is not there."""
    return [Trace(k, cpus, load) for k in kernels for cpus in (1, 2, 4) for load in (*WORKLOADS, *SESSIONS)]


def if_named(kernels: tuple[str, ...]) -> list[Trace]:
    """What is made only if named: loads from a seed, and guests with the arrangement of ARRANGEMENTS."""
    seeds = [Trace(k, cpus, f"{SEEDED}{seed}") for k in kernels for cpus in (1, 2, 4) for seed in SEED_NUMBERS]
    return [
        *seeds,
        *(Trace(k, 8, load) for k in kernels for load in ("mix", "batch-wake", *CACHES)),
        *(Trace(k, 16, "mix-twice") for k in kernels),
    ]


def main(words: list[str]) -> int:
    engine = native_engine()
    built = images(word for word in words if "=" in word)
    patterns = [word for word in words if "=" not in word]
    kernels = (*KERNELS, *built)
    named = [t for t in (*missing(kernels), *if_named(kernels)) if any(fnmatch(t.name, p) for p in patterns)]
    chosen = named if patterns else [t for t in missing(kernels) if not t.path.exists()]
    failed = 0
    if "running" in patterns:
        make_running(engine)
    for trace in chosen:
        try:
            make(trace, engine, built.get(trace.kernel, trace.kernel))
        except SchedlabError as e:
            failed += 1
            print(f"{trace.name}: {render(e)}", file=sys.stderr)
    return 1 if failed else 0


def images(words: Iterable[str]) -> dict[str, str]:
    """Where the image of each kernel is, given as `KERNEL` (in the archive) or `KERNEL=FILE`."""
    return {name: file or name for name, _, file in (word.partition("=") for word in words)}


def make_running(engine: Engine) -> None:
    """The kernel that runs this: two CPUs, sessions that began before; other people's programs go by no name."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        record(Order("running", (RUNNING,), Path("whole.ftrace"), records=RUNNING_RECORDS), engine)
        text = [nameless(line) for line in Path("whole.ftrace").read_text().splitlines(keepends=True)]
    number = next(re.match(r"[\d.]+", line.split()[2])[0] for line in text if line.startswith("# kernel "))  # type: ignore[index]
    cpus = next(line.split()[4] for line in text if line.startswith("# kernel "))
    target = CORPUS / f"{number}-{cpus}cpu-running.ftrace.gz"
    target.write_bytes(gzip.compress("".join(text).encode(), 9, mtime=0))
    print(f"{target.name}: {target.stat().st_size // 1000} kB", flush=True)


def nameless(line: str) -> str:
    """Without the names of programs that are not ours, and without the machine's command line."""
    if line.startswith("#"):
        return re.sub(r"(# kernel [\d.]+)\S*( cpus \d+).*", r"\1\2", line)
    line = re.sub(r"comm=(.+?)(?= [a-z_]+=|$)", lambda found: found[0] if OURS.match(found[1]) else "comm=other", line)
    return re.sub(r"^( *)(.+?)(-\d+ +\[)", lambda f: f[0] if OURS.match(f[2]) else f"{f[1]}other{f[3]}", line)


def make(trace: Trace, engine: Engine, kernel: str) -> None:
    """Record, cut, and say how well the kernel's row decides it. `kernel`: a version in the archive, or an image."""
    image = str(Path(kernel).resolve()) if Path(kernel).is_file() else kernel
    line = workload(trace)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        if "video.json" in line:
            subprocess.run(["workgen", "-d", "-o", "video.json", VIDEO], check=True)
        if "./chaos" in line:
            build(CHAOS, "chaos")
        order = Order(
            image,
            (line,),
            Path("whole.ftrace.gz"),
            trace.cpus,
            time_limit_s=400,
            records=RECORDS,
            smp=arrangement(trace),
            nodes=NODES if trace.cpus in ARRANGEMENTS and trace.workload not in CACHES else 1,
            emulation=emulation(trace),
            append=TSC if emulation(trace) == "turns" else "",
            autogroup=trace.workload in SESSIONS,
        )
        done = record(order, engine)
        if trace.cpus < 4:
            keep = shorten(order.out, trace.path, done.counts["records"], engine)
        else:
            keep = RECORDS_OF_FOUR_CPUS
            cut(order.out, trace.path, keep)
    decisions, report = judged(trace.path, engine)
    agreed = report["picks"]["agreed"] + report["preemptions"]["agreed"]
    size = trace.path.stat().st_size // 1000
    print(
        f"{trace.name}: {size} kB, {keep:,} records, {agreed:,} of {decisions:,} decisions as row {report['row']}",
        flush=True,
    )


def build(source: Path, program: str, *flags: str) -> None:
    """Compiles a load into the current directory, linked statically."""
    try:
        subprocess.run(["cc", "-O1", "-static", *flags, "-o", program, source], check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        hint = "install a C compiler that can link statically"
        raise SchedlabError(f"cannot build {source.name}: {e}", hint=hint) from None


def emulation(trace: Trace) -> str | None:
    """Several CPUs are run in turn by counted instructions, so that stops of the host do not show.

    6.1 and 6.3 hang with them when they start the second CPU; older kernels are treated like them.
    """
    if trace.cpus == 1:
        return None
    return "turns" if trace.kernel.startswith(("5.", "6.1.", "6.3.")) else "counted"


def arrangement(trace: Trace) -> str | None:
    """How the CPUs of the guest are arranged."""
    if trace.workload in CACHES:
        return f"sockets=2,cores={trace.cpus // 2},threads=1"
    return ARRANGEMENTS.get(trace.cpus)


TSC = "tsc=reliable"
"""Time stamps are not compared while CPUs start, where a CPU that waits for its turn seems to be late."""


def workload(trace: Trace) -> str:
    """The shell line that a trace records."""
    if trace.workload.startswith(SEEDED):
        return chaos.workload(int(trace.workload.removeprefix(SEEDED)), trace.cpus)
    return (WORKLOADS | SESSIONS | CACHES)[trace.workload].format(cpus=trace.cpus)


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
    """The first records up to a switch, packed tightly; the same input gives the same bytes."""
    with gzip.open(source) as text, target.open("wb") as file:
        lines = list(first(text, records))
        # Not amid an operation: behind a switch, with probes behind what they show of it.
        end = b" sw: " if any(b" sw: " in line for line in lines) else b" sched_switch: "
        while lines and end not in lines[-1]:
            lines.pop()
        file.write(gzip.compress(b"".join(lines), 9, mtime=0))


def first(text: Any, records: int) -> Iterator[bytes]:
    for line in text:
        if not line.startswith(b"#"):
            if records == 0:
                return
            records -= 1
        yield line


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
