"""Records a fixed, held-out series of loads, and prints how the rows decide them, worst first.

`held_out.py FOLDER PATTERN...` records the members of the series whose names match and that FOLDER does not have yet;
`held_out.py FOLDER` prints the table of all that are there, `held_out.py --list` the names. The series is fixed before
anything of it is replayed, and every member that was recorded is in the table. `schbench` must be in PATH, a C
compiler for the request server.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import Any

from corpus import ARRANGEMENTS, CHAOS, HOG, NODES, TSC, Trace, build, emulation
from schedlab.engine import native_engine
from schedlab.errors import SchedlabError, render
from schedlab.record import Order, chaos, record

KERNELS = ("6.1.192", "6.12.118", "7.2.13", "7.3.4")
CPUS = (2, 4, 8)
SEEDS = range(910, 926)
RECORDS = 10_000
TIME_LIMIT_S = 900.0
SOURCES = Path(__file__).with_name("loads")
LOADS = {
    "server": "./server {twice} 3",
    "hackbench": "hackbench -T -p -g 2 -f 3 -l 200",
    "schbench": "./schbench -m 2 -t {cpus} -r 3 -w 0 -i 3 -s 3000 -c 2000",
    "forks": "stress-ng --vfork 1 --fork 2 --exec 2 -t 2",
    "niced-autogroup": f"for n in 0 3 9; do setsid nice -n $n sh -c 'timeout 3 {HOG.replace(chr(39), chr(34))} & "
    "stress-ng --nanosleep 2 -t 2; wait' & done; wait",
    "affinity": f"stress-ng --affinity {{cpus}} -t 2 & stress-ng --pipe 1 --nanosleep 2 -t 2 & timeout 3 {HOG} & wait",
    "real-time": "chrt -f 10 stress-ng --nanosleep 2 -t 2 & chrt -r 5 stress-ng --pipe 1 -t 2 & "
    f"stress-ng --switch 1 --fork 1 -t 2 & for i in $(seq {{cpus}}); do timeout 3 {HOG} & done; wait",
}
SPIN = "i=0; while [ $i -lt $1 ]; do i=$((i+1)); done"
BURSTS = f"sh -c 'while :; do {SPIN}; usleep $2; done' burst"
"""Takes the length of a burst, in rounds of a loop, and of the sleep after it, in us."""
HOGS = f"for i in $(seq {{cpus}}); do timeout 2 {HOG} & done"
RARE = {
    "deadline": f"{HOGS}; stress-ng --cpu 1 --sched deadline --sched-runtime 1000000 --sched-deadline 5000000 "
    "--sched-period 10000000 -t 2 & stress-ng --nanosleep 2 --pipe 1 -t 2; wait",
    "throttled": f"chrt -f 20 timeout 3 {HOG} & {HOGS}; for p in 5000 11000 17000; do "
    f"timeout 3 {BURSTS} 300 $p & done; chrt -r 10 timeout 3 {BURSTS} 3000 9000; wait",
    "cpusets": "mkdir /cg; mount -t cgroup2 none /cg; echo +cpuset >/cg/cgroup.subtree_control; mkdir /cg/a /cg/b; "
    'for g in a b; do sh -c "echo \\$\\$ >/cg/$g/cgroup.procs; while :; do :; done" & '
    'sh -c "echo \\$\\$ >/cg/$g/cgroup.procs; exec stress-ng --pipe 1 --nanosleep 1 -t 2" & done; '
    "stress-ng --nanosleep 1 -t 2 & "
    "for k in $(seq 20); do for c in 0 0-1 1; do echo $c >/cg/a/cpuset.cpus; usleep 7000; "
    "echo $((k % 2)) >/cg/b/cpuset.cpus; usleep 9000; done; done; "
    "kill $(jobs -p); sleep 0.1",
    "hotplug": f"{HOGS}; stress-ng --pipe 1 --nanosleep 1 -t 2 & for k in 1 2 3 4; do for on in 0 1; do "
    "echo $on >/sys/devices/system/cpu/cpu1/online; usleep 40000; done; done; wait",
    "slices": "./chaos s {twice} 2 77",
    "sessions-autogroup": "for n in 1 2 3; do setsid timeout 2 sh -c 'for i in 1 2; do while :; do "
    "usleep 3000; done & done; while :; do :; done' & done; "
    "setsid hackbench -g 1 -f 3 -l 300 & setsid stress-ng --fork 1 -t 2; wait",
    "niced-sleeps": "k=1; for n in -15 -5 0 4 11 19; do for l in 30 900; do k=$((k * 7 % 31)); "
    f"nice -n $n timeout 2 {BURSTS} $((l * k / 7)) $((k * k * 40)) & done; done; wait",
    "slack": "for s in 1 50000 2000000 9000000; do for p in 700 3100; do sh -c 'echo '$s' >/proc/self/timerslack_ns; "
    "while :; do usleep '$p'; done' & done; done; " + HOGS + "; sleep 2; kill $(jobs -p); sleep 0.1",
}
"""Kinds of load that are rare in the corpus; recorded with two and four CPUs each."""
MIXED = {
    # The first command names the programs that the guest needs: in quotes they are not found.
    "niced-pipes-autogroup": ": nice stress-ng; for s in 1 2; do setsid sh -c 'for n in 0 4 11; do "
    "nice -n $n stress-ng --pipe 1 -t 2 & nice -n $n stress-ng --nanosleep 1 -t 2 & done; wait' & done; wait",
    "pool": "./pool {twice} 2 31",
    "policies": f"chrt -b 0 timeout 2 {HOG} & chrt -i 0 timeout 2 {HOG} & chrt -b 0 stress-ng --nanosleep 1 -t 2 & "
    "chrt -i 0 stress-ng --pipe 1 -t 2 & hackbench -g 1 -f 4 -l 200; wait",
}
"""Mixtures that neither the corpus nor the other loads have, half of them on 7.3.4."""
RARE_CPUS = (2, 4)
AUTOGROUP = "autogroup"
LARGE = Trace("6.12.118", 16, "hackbench")
HEAD = (
    "| load | kernel | CPUs | contested picks | preemptions | wakeups | those that leave prev | forks and execs "
    "| passes | state | unexplained |"
)


def series() -> Iterator[Trace]:
    """Kernels and numbers of CPUs in turn, so that each load runs on several of both."""
    for turn, seed in enumerate(SEEDS):
        yield Trace(KERNELS[turn % len(KERNELS)], CPUS[turn % len(CPUS)], f"chaos-seed{seed}")
    for (k, kernel), (n, load) in product(enumerate(KERNELS), enumerate(LOADS)):
        yield Trace(kernel, CPUS[(k + n) % len(CPUS)], load)
    yield LARGE
    for (n, load), (c, cpus) in product(enumerate(RARE), enumerate(RARE_CPUS)):
        yield Trace(KERNELS[(n + 2 * c) % len(KERNELS)], cpus, load)
    for load in MIXED:
        yield from (Trace(*of, load) for of in (("7.3.4", 2), ("7.3.4", 4), ("7.2.13", 4), ("6.12.118", 2)))


def main(words: list[str]) -> int:
    if words == ["--list"]:
        print("\n".join(trace.name for trace in series()))
        return 0
    if not words:
        sys.exit(__doc__)
    folder, patterns = Path(words[0]).resolve(), words[1:]
    folder.mkdir(parents=True, exist_ok=True)
    if not patterns:
        print("\n".join(table(folder)))
        return 0
    failed = 0
    for trace in series():
        path = folder / trace.path.name
        if path.exists() or not any(fnmatch(trace.name, pattern) for pattern in patterns):
            continue
        try:
            make(path, trace)
        except SchedlabError as e:
            failed += 1
            print(f"{trace.name}: {render(e)}", file=sys.stderr)
    return 1 if failed else 0


def make(path: Path, trace: Trace) -> None:
    """Records one member of the series."""
    how = emulation(trace)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        line = workload(trace)
        for program in ("server", "pool"):
            if f"./{program}" in line:
                build(SOURCES / f"{program}.c", program, "-pthread")
        if "./chaos" in line:
            build(CHAOS, "chaos")
        if "./schbench" in line:
            if (program := shutil.which("schbench")) is None:
                raise SchedlabError("schbench is not in PATH", hint="build it and add its directory to PATH")
            shutil.copy(program, "schbench")
        order = Order(
            trace.kernel,
            (line,),
            path,
            trace.cpus,
            records=RECORDS * (2 if trace.cpus > 4 else 1),
            time_limit_s=TIME_LIMIT_S,
            smp=ARRANGEMENTS.get(trace.cpus),
            nodes=NODES if trace.cpus in ARRANGEMENTS else 1,
            emulation=how,
            append=TSC if how == "turns" else "",
            autogroup=trace.workload.endswith(AUTOGROUP),
        )
        done = record(order, native_engine())
    if done.exit_code:
        path.unlink()
        raise SchedlabError(f"the load ended with exit code {done.exit_code}", hint="\n".join(done.console[-3:]))


def workload(trace: Trace) -> str:
    """The shell line of a member."""
    if (line := (LOADS | RARE | MIXED).get(trace.workload)) is not None:
        return line.replace("{cpus}", str(trace.cpus)).replace("{twice}", str(2 * trace.cpus))
    return chaos.workload(int(trace.workload.removeprefix("chaos-seed")), trace.cpus)


@dataclass(frozen=True, order=True)
class Row:
    """A line of the table; the worst share of a kind of decision sorts it."""

    worst: float
    text: str


def table(folder: Path) -> list[str]:
    found = [(folder / trace.path.name, trace) for trace in series()]
    rows = sorted(row(path, trace) for path, trace in found if path.exists())
    return [HEAD, "|---" * HEAD.count(" | ") + "|---|", *(row.text for row in rows)]


def row(path: Path, trace: Trace) -> Row:
    (report,) = native_engine().replay(str(path), first=0)
    placed = report["placements"]
    kinds = {part["name"]: part["score"] for part in placed["kinds"]}
    nothing = {"agreed": 0, "decisions": 0}
    slow = [kinds.get(kind, nothing) for kind in ("fork", "exec")]
    scores = [
        pair(report["picks"]),
        pair(report["preemptions"]),
        pair(kinds.get("wakeup", nothing)),
        pair(placed["moved"]),
        tuple(sum(part[key] for part in slow) for key in ("agreed", "decisions")),
        pair(report["balances"]),
    ]
    unexplained = sum(report["unexplained"].values())
    cells = [trace.workload, trace.kernel, str(trace.cpus), *(f"{a:,} of {n:,}" for a, n in (*scores, state(report)))]
    worst = min((a / n for a, n in scores if n), default=1.0) if not unexplained else 0.0
    return Row(worst, f"| {' | '.join([*cells, f'{unexplained:,}'])} |")


def pair(score: dict[str, Any]) -> tuple[int, ...]:
    return score["agreed"], score["decisions"]


def state(report: dict[str, Any]) -> tuple[int, ...]:
    """Events whose state probes show, up to 6.5 steps of the printed vruntime."""
    steps, shown = report["vruntime"], report["state"]["events"]
    return pair(shown) if shown["decisions"] else (steps["equal"], steps["compared"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
