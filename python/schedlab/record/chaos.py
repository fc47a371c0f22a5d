"""A load made from a seed: jobs of several kinds with random nice values, policies, CPUs and sessions.

The same seed gives the same load, so agreement can be measured on loads for which the model was not tuned.
Needs stress-ng.
"""

from __future__ import annotations

from random import Random

HOG = "sh -c 'while :; do :; done'"
JOBS = (
    f"timeout {{seconds}} {HOG}",
    "stress-ng --nanosleep {count} -t {seconds}",
    "stress-ng --pipe {count} --pipe-data-size {bytes} -t {seconds}",
    "stress-ng --futex {count} -t {seconds}",
    "stress-ng --fork {count} -t {seconds}",
    "stress-ng --switch {count} -t {seconds}",
    "stress-ng --yield {count} -t {seconds}",
    "stress-ng --sem {count} -t {seconds}",
)
JOBS_MAX = 5
SECONDS = 2


def workload(seed: int, cpus: int) -> str:
    """The shell command line of a load for a machine with this many CPUs."""
    draw = Random(f"schedlab chaos {seed}")
    jobs = [_job(draw, cpus) for _ in range(draw.randint(2, JOBS_MAX))]
    return f"{' & '.join(jobs)} & wait"


def _job(draw: Random, cpus: int) -> str:
    words = {"seconds": SECONDS, "count": draw.randint(1, 3), "bytes": draw.choice((64, 512, 4096))}
    return " ".join([*_attributes(draw, cpus), draw.choice(JOBS).format(**words)])


def _attributes(draw: Random, cpus: int) -> list[str]:
    """Programs that start the job in a session, with a nice value or policy, or on one CPU."""
    prefix = ["setsid"] if draw.random() < 0.25 else []
    policy = draw.choice(("", "", "nice", "-b 0", "-i 0"))
    if policy == "nice":
        prefix.append(f"nice -n {draw.choice((-10, -3, 1, 5, 10, 19))}")
    elif policy:
        prefix.append(f"chrt {policy}")
    if cpus > 1 and draw.random() < 0.25:
        prefix.append(f"taskset {1 << draw.randrange(cpus):x}")
    return prefix
