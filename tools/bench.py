"""Prints the speed ratios of the simulator, the measured numbers and the goal beside each; judges nothing.

event queue   events handled per second against a binary heap in a hold model of the same size
perf pipe     the whole process on the model of this machine, against the real benchmark on it: free and on one CPU
480 CPUs      hackbench on the largest machine: time, memory, and cost per switch against the smallest machine
guests        hackbench in 16 guests of 64 vCPUs on 480 CPUs: memory, and cost per event against bare metal
sweep         what a sweep adds to the time of each run, on this machine and through Dask
instructions  executed per context switch for five loads, against the kept numbers
fair class    one operation with up to 100,000 queued tasks and 1,000 groups, against the same with two
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import instructions

ROOT = Path(__file__).parents[1]
PIPE_LOOPS = 1_000_000
MACHINES = {"rpi4": 1, "laptop-8": 1, "power9-176": 22, "power10-480": 60}
"""Groups of hackbench on each machine: 40 tasks per 8 CPUs."""

PIPE = """
machine = "{machine}"
duration = "1000s"
[[workload]]
use = "perf-pipe"
loop = {loops}
{cpus}
[[variant]]
name = "eevdf"
kernel = "6.12.0"
"""
HACKBENCH = """
machine = "{machine}"
duration = "1000s"
[[workload]]
use = "hackbench"
groups = {groups}
pipe = true
[[variant]]
name = "eevdf"
kernel = "6.12.0"
"""

TINY = """
machine = "rpi4"
[[workload]]
use = "hog"
threads = 4
[[variant]]
name = "eevdf"
kernel = "6.12.0"
"""
SWEPT = (100, 500)
"""Runs of the short and of the long sweep."""
GUESTS = 16
GUEST = """
[[guest]]
name = "vm{number}"
vcpus = 64
platform = "powerpc-kvm"
[[workload]]
use = "hackbench"
name = "load{number}"
guest = "vm{number}"
groups = 4
pipe = true
loops = 100
"""


def main() -> int:
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; a busy machine makes every number worse\n")
    with tempfile.TemporaryDirectory() as folder:
        event_queue(Path(folder))
        perf_pipe(Path(folder))
        hackbench(Path(folder))
        guests(Path(folder))
        sweep(Path(folder))
    fair_class()
    print()
    return instructions.main([])


def event_queue(folder: Path) -> None:
    print("event queue: the engine's events per second / a std BinaryHeap's in a hold model of the same size;")
    print("more is better, goal at least 0.100: a simulated event may cost ten of the heap's")
    for name, text in (
        ("perf-pipe", PIPE.format(machine="laptop-8", loops=200_000, cpus="")),
        ("hackbench", HACKBENCH.format(machine="laptop-8", groups=4)),
    ):
        (folder / f"{name}.toml").write_text(text)
        command = ["cargo", "run", "--release", "--quiet", "-p", "schedlab-lab", "--example", "events", "--"]
        done = subprocess.run(
            [*command, folder / f"{name}.toml", "eevdf"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        )
        r = json.loads(done.stdout)
        speed = f"{r['engine_events_per_s'] / 1e6:.2f} M/s against {r['heap_events_per_s'] / 1e6:.1f} M/s"
        events = f"{r['events_per_switch']:.2f} events and {r['ns_per_switch']:.0f} ns per switch"
        print(f"  {name:<12} {r['ratio']:.3f}   {speed}, queue of {r['queue']}; {events}")


def perf_pipe(folder: Path) -> None:
    """Like with like: both sides may use every CPU of this machine, or both are kept on the same one."""
    print(f"\nperf pipe, {PIPE_LOOPS:,} loops: real time / simulator's, whole processes; goal at least 15")
    perf = shutil.which("perf")
    if perf is None:
        print("  skipped: the real side: perf is not installed (apt-get install linux-perf)")
    one = max(os.sched_getaffinity(0))
    for name, cpus, allowed in (("free", "", None), ("one CPU", f'cpus = "{one}"', {one})):
        scenario = PIPE.format(machine="host", loops=PIPE_LOOPS, cpus=cpus)
        simulated = min(simulate(folder, "pipe", scenario)[0] for _ in range(3))
        if perf is None:
            print(f"  {name:<8} simulated {simulated:.2f} s")
            continue
        command = [perf, "bench", "sched", "pipe", "-l", str(PIPE_LOOPS)]
        real = min(timed(command, allowed) for _ in range(3))
        sides = f"real {real:.2f} s, simulated {simulated:.2f} s (fastest of 3 each)"
        print(f"  {name:<8} {real / simulated:4.1f}   {sides}")


def timed(command: list[str], allowed: set[int] | None) -> float:
    """Wall time of a command, on these CPUs only if given."""
    before = os.sched_getaffinity(0)
    try:
        # The child inherits it.
        os.sched_setaffinity(0, allowed or before)
        began = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return time.monotonic() - began
    finally:
        os.sched_setaffinity(0, before)


def hackbench(folder: Path) -> None:
    print(
        "\nhackbench --pipe; goals: under 30 s and 1 GB at 480 CPUs, growth of ns per switch at most that of log(tasks)"
    )
    first: tuple[float, int] | None = None
    for machine, groups in MACHINES.items():
        wall, megabytes, run = simulate(folder, machine, HACKBENCH.format(machine=machine, groups=groups))
        cost, tasks = 1e9 * run["wall_s"] / run["switches"], 40 * groups
        first = first or (cost, tasks)
        growth = f"x{cost / first[0]:.2f} (log x{math.log(tasks) / math.log(first[1]):.2f})"
        numbers = f"{wall:6.2f} s  {megabytes:5.0f} MB  {run['switches']:>9,} switches  {cost:5.0f} ns per switch"
        print(f"  {machine:<12} {groups:>3} groups  {numbers}  {growth}")


def sweep(folder: Path) -> None:
    """From the difference of a long and a short sweep, so that starting up does not count."""
    print(
        "\nsweep, one worker: wall time per run beyond that of the engine; goals: under 5 ms here, 20 ms through Dask"
    )
    (folder / "tiny.toml").write_text(TINY)
    for name, how in (("local", []), ("Dask", ["--dask", "local"])):
        (short, inside_short), (long, inside_long) = (swept(folder, n, how) for n in SWEPT)
        each = (long - inside_long - short + inside_short) / (SWEPT[1] - SWEPT[0])
        whole = f"{SWEPT[1]} runs in {long:.2f} s, {inside_long:.2f} s of it in the engine"
        print(f"  {name:<6} {1e3 * each:6.2f} ms   {whole}")


def swept(folder: Path, runs: int, how: list[str]) -> tuple[float, float]:
    """Seconds of a sweep of so many runs, and those that its runs took by themselves."""
    out = folder / f"sweep-{runs}-{len(how)}"
    file = folder / "sweep.toml"
    file.write_text(f'scenario = "tiny.toml"\nseeds = {runs}\n[[axis]]\nkey = "duration"\nvalues = ["5ms"]\n')
    command = [str(Path(sys.executable).with_name("schedlab")), "sweep", str(file), "--out", str(out), "--jobs", "1"]
    wall = timed([*command, "--quiet", *how], None)
    lines = (out / "results.jsonl").read_text().splitlines()
    return wall, sum(json.loads(line)["wall_s"] for line in lines)


def guests(folder: Path) -> None:
    print(f"\n{GUESTS} guests of 64 vCPUs on 480 CPUs, hackbench; goal: under 1 GB")
    bare = HACKBENCH.format(machine="power10-480", groups=4 * GUESTS)
    inside = bare[: bare.index("[[workload]]")] + "".join(GUEST.format(number=n) for n in range(GUESTS))
    inside += bare[bare.index("[[variant]]") :]
    for name, text in (("bare metal", bare.replace("pipe = true", "pipe = true\nloops = 100")), ("guests", inside)):
        wall, megabytes, run = simulate(folder, name.replace(" ", "-"), text)
        cost = 1e9 * run["wall_s"] / run["handled"]
        print(f"  {name:<12} {wall:6.2f} s  {megabytes:5.0f} MB  {run['handled']:>9,} events  {cost:5.0f} ns per event")


def fair_class() -> None:
    print("\nfair class, ns per operation on one CPU, best of 5; goals: growth as log(tasks), none with groups")
    command = ["cargo", "run", "--release", "--quiet", "-p", "schedlab-policy", "--example", "fair_cost"]
    subprocess.run(command, cwd=ROOT, check=True)


def simulate(folder: Path, name: str, scenario: str) -> tuple[float, float, dict[str, float]]:
    """Wall time of the whole process, its peak memory in MB, and the run's document."""
    file, output = folder / f"{name}.toml", folder / f"{name}.json"
    file.write_text(scenario)
    command = [str(Path(sys.executable).with_name("schedlab")), "run", str(file), "--seed", "1", "--quiet"]
    began = time.monotonic()
    process = subprocess.Popen([*command, "--json", str(output)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    if status:
        sys.exit(f"{name} failed")
    return wall, usage.ru_maxrss / 1024, json.loads(output.read_text())


if __name__ == "__main__":
    sys.exit(main())
