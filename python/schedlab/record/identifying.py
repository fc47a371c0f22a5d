"""The loads that distinguish kernel rows, in one line for the shell of a guest with one CPU."""

from __future__ import annotations

import shutil

from schedlab.record import chaos

HOG = "sh -c 'while :; do :; done'"
MIXED = (
    f"for n in -5 0 5 19; do timeout 2 nice -n $n {HOG} & done; timeout 2 chrt -i 0 {HOG} & "
    "for i in $(seq 30); do sleep 0.05; sh -c 'sleep 0.01'; done; wait"
)
"""Nice values, SCHED_IDLE, sleepers and forks, with programs that busybox has."""
CROWD = (
    f"timeout 1 nice -n -20 {HOG} & for i in $(seq 12); do timeout 1 nice -n 19 {HOG} & done; "
    f"timeout 1 chrt -i 0 {HOG} & "
    "for i in $(seq 15); do sleep 0.05; chrt -i 0 sleep 0.01; done; wait"
)
"""More tasks than `sched_nr_latency`, one with a slice beyond `sched_latency`, and SCHED_IDLE tasks that sleep."""
CHAOS_SEED = 1
"""Pipes, semaphores, yields and switches in several sessions, with nice values and under SCHED_IDLE."""
RECORDS = 24_000


def load() -> str:
    """The loads one after the other; without stress-ng the chaos load is left out."""
    random = [chaos.workload(CHAOS_SEED, 1)] if shutil.which("stress-ng") else []
    return "; ".join([MIXED, CROWD, *random])
