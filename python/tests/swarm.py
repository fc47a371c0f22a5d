"""Random scenarios, and what is said of one that fails: the smallest scenario that fails in the same way."""

from __future__ import annotations

import random
import re
from typing import Any

import schedlab
from schedlab.engine import native_engine
from schedlab.errors import RunError
from schedlab.scenario import Scenario
from schedlab.shrinking.keep import Keep
from schedlab.shrinking.shrink import shrink

Document = dict[str, Any]
MOST_TESTS = 150
"""Candidates that a reduction may run."""
KIND = re.compile(r"[^0-9:]*")
"""What a message begins with says what kind of failure it is; behind it stand times and tasks."""


def drawn(seed: int, kernels: list[str]) -> Document:
    """A scenario: machine, workloads, perhaps groups or guests, and one kernel with a changed knob."""
    draw = random.Random(seed)
    document: Document = {
        "machine": draw.choice(["rpi4", "laptop-8", "xeon-1s26c-smt2"]),
        "duration": f"{draw.randint(5, 40)}ms",
        "noise": draw.random() < 0.8,
        "seeds": [seed],
        "workload": [_workload(draw, number) for number in range(draw.randint(1, 3))],
        "variant": [{"name": "a", "kernel": draw.choice(kernels)}],
    }
    place = draw.choice(["", "", "cgroup", "guest"])
    if place == "cgroup":
        quota = {"quota": f"{draw.randint(1, 30)}ms", "period": "20ms"} if draw.random() < 0.5 else {}
        document["cgroup"] = [{"name": "g/h", "weight": draw.randint(1, 10_000), **quota}]
        draw.choice(document["workload"])["cgroup"] = "g/h"
    if place == "guest":
        size = {"count": draw.randint(1, 3), "vcpus": draw.randint(1, 6), "cpus": f"0-{draw.randint(0, 3)}"}
        platform = draw.choice(["x86-kvm", "arm64-kvm-pvsched", "powerpc-kvm", "s390"])
        document["guest"] = [{"name": "vm", "platform": platform, **size}]
        draw.choice(document["workload"])["guest"] = "vm"
    return document


def _workload(draw: random.Random, number: int) -> Document:
    kinds: list[Document] = [
        {"use": "hog", "threads": draw.randint(1, 12), "nice": draw.randint(-20, 19)},
        {"use": "hackbench", "groups": draw.randint(1, 2), "fds": draw.randint(1, 4), "loops": draw.randint(1, 20)},
        {"use": "cyclictest", "threads": draw.randint(1, 4), "interval": f"{draw.randint(100, 900)}us"},
        {"use": "schbench", "message-threads": draw.randint(1, 2), "threads": draw.randint(1, 6)},
        {"task": [_task(draw, n) for n in range(draw.randint(1, 3))]},
    ]
    return {"name": f"w{number}", **draw.choice(kinds)}


def _task(draw: random.Random, number: int) -> Document:
    steps: list[list[Document]] = [
        [{"run": f"{draw.randint(1, 900)}us"}],
        [{"sleep": f"{draw.randint(1, 900)}us"}],
        [{"lock": "m"}, {"run": "20us"}, {"unlock": "m"}],
        [{"sem-post": "s"}, {"sem-wait": "s"}],
        [{"nice": draw.randint(-20, 19)}],
    ]
    body = [step for _ in range(draw.randint(1, 4)) for step in draw.choice(steps)]
    program = [{"loop": draw.randint(1, 60), "do": [{"run": "5us"}, *body]}]
    return {"name": f"t{number}", "count": draw.randint(1, 6), "program": program}


def trouble(scenario: Scenario) -> str:
    """Why a run fails or does not repeat, with the smallest scenario that does so too; empty if all is well."""
    engine = native_engine()
    for variant in scenario.variants:
        for seed in scenario.seeds:
            try:
                engine.run(scenario, variant.name, seed, check_determinism=True)
            except RunError as e:
                return f"{variant.name} seed {seed}: {e.message}\n{_smallest(scenario, e.message)}"
    return ""


def _smallest(scenario: Scenario, message: str) -> str:
    kind = KIND.match(message)
    keep = Keep("failure", kind[0].strip() if kind else "")
    try:
        found = shrink(native_engine(), scenario, keep, tests=MOST_TESTS)
    except schedlab.InputError:  # only the repetition differs, which a single run does not show
        return f"# not reduced\n{scenario.description['text']}"
    return f"# the smallest scenario that shows: {keep} ({found.tests} candidates run)\n{found.text}"
