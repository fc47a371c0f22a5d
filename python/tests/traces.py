"""A small trace in the kernel's own words: two tasks on one CPU of a 6.1 kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

HEAD = """\
# tracer: nop
#
# kernel 6.1.0-1-amd64 cpus 1
# features GENTLE_FAIR_SLEEPERS
# sched_autogroup_enabled 0
# hz 250
# tunable_scaling 1
# latency_ns 6000000
# min_granularity_ns 750000
# wakeup_granularity_ns 1000000
#
"""
ROUNDS = 300
RECORDS = 3 * ROUNDS


def lines(rounds: int = ROUNDS) -> Iterator[str]:
    """Two hogs that alternate by the tick; each round accounts 4 ms, then switches."""
    vruntime = {101: 50_000_000, 102: 50_000_000}
    runs, waits = 101, 102
    for number in range(rounds):
        time = 10_000_000_000 + 4_000_000 * number
        vruntime[runs] += 4_000_000
        prefix = f"         hog-{runs}     [000] {{flags}} {time // 10**9}.{time % 10**9:09d}: "
        vr = vruntime[runs]
        yield prefix.format(flags="d.h2.") + (
            f"sched_stat_runtime: comm=hog pid={runs} runtime=4000000 [ns] vruntime={vr} [ns]"
        )
        yield prefix.format(flags="dNh2.") + "sys_getpid()"
        yield prefix.format(flags="dN.2.") + (
            f"sched_switch: prev_comm=hog prev_pid={runs} prev_prio=120 prev_state=R+"
            f" ==> next_comm=hog next_pid={waits} next_prio=120"
        )
        runs, waits = waits, runs


def write(path: Path, rounds: int = ROUNDS) -> str:
    path.write_text(HEAD + "\n".join(lines(rounds)) + "\n")
    return str(path)


if __name__ == "__main__":
    print(HEAD)
    for line in lines(10**9):
        print(line)
