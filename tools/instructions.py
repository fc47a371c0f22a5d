"""Counts the instructions that the engine executes per context switch, with and without the physics of a preset.

`instructions.py` prints a table, `instructions.py keep` also writes it to `instructions.json`, and `instructions.py
check` fails if a load takes over 5 % more than is kept there. A change that makes a load more expensive on purpose
keeps the new number in the same commit.

What is counted is the engine that is installed in python/schedlab, in a process under `valgrind --tool=cachegrind`
without its caches: the same build takes the same number, within half a percent, on a busy machine and an idle one. Each
load is run twice, and the difference of the longer and the shorter run counts, so neither Python's start nor the run's
set-up and report do.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_suffix(".json")
TOLERANCE = 0.05

XEON = 'base = "xeon-2s28c-smt2", topology = {{ nodes = {nodes}, llcs-per-node = 1, cores-per-llc = {cores} }}'
FOUR, SIXTY_FOUR = XEON.format(nodes=1, cores=2), XEON.format(nodes=2, cores=16)
LARGEST = 'base = "power10-480"'
MECHANISMS = (
    *("lines", "locks", "selection", "cpuidle", "teo", "core-idle", "housekeeping"),
    *("memory", "warmth", "mmap-lock", "frequency", "schedutil"),
)
"""The keys of `[physics]`."""
NO_PHYSICS = f"physics = {{ {', '.join(f'{name} = false' for name in MECHANISMS)} }}"

PIPE = """
duration = "1000s"
[[workload]]
use = "perf-pipe"
loop = {length}
"""
TASKS = """
duration = "{length}ms"
[[workload]]
name = "load"
count = 400
program = [{{ loop = "forever", do = [
    {{ run = {{ exponential = "100us" }} }},
    {{ sleep = {{ exponential = "500us" }} }},
] }}]
"""
VARIANT = '[[variant]]\nname = "eevdf"\nkernel = "6.12.0"\n'

CHILD = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("_engine", sys.argv[1])
engine = module_from_spec(spec)
spec.loader.exec_module(engine)
print(engine.run(engine.loads(sys.stdin.read(), "load"), "eevdf", 1))
"""


@dataclass(frozen=True)
class Load:
    """A machine, what runs on it, and two lengths."""

    name: str
    machine: str
    workload: str
    lengths: tuple[int, int]

    def scenario(self, length: int, physics: bool) -> str:
        machine = self.machine if physics else f"{self.machine}, {NO_PHYSICS}"
        return f"machine = {{ {machine} }}{self.workload.format(length=length)}{VARIANT}"


LOADS = [
    Load("ping-pong, 1 CPU", FOUR, PIPE + 'cpus = "0"\n', (1000, 4000)),
    Load("ping-pong, 2 CPUs", FOUR, PIPE + 'cpus = "0,1"\n', (1000, 4000)),
    Load("400 tasks, 4 CPUs", FOUR, TASKS, (140, 420)),
    Load("400 tasks, 64 CPUs", SIXTY_FOUR, TASKS, (15, 45)),
    Load("400 tasks, 480 CPUs", LARGEST, TASKS, (12, 36)),
]
"""The machines of 4 and of 64 CPUs are parts of a server, so that they have its physics. The shorter run of a load is
long enough for every task to have run: what its first samples cost does not count."""


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["keep"], ["check"]):
        print(__doc__)
        return 2
    if why := cannot():
        print(f"skipped: instructions per switch: {why}\n0 passed, 0 failed, 1 skipped")
        return 0
    kept = json.loads(KEPT.read_text())["per_switch"] if KEPT.exists() else {}
    rows = [(name, load, physics) for load in LOADS for name, physics in named(load)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = dict(zip((row[0] for row in rows), pool.map(lambda row: count(*row[1:]), rows), strict=True))
    for name, number in counted.items():
        change = f"{number / kept[name] - 1:+7.1%} against {kept[name]:,} kept" if name in kept else "   none kept"
        print(f"{name:<32} {number:>7,} instructions per switch {change}")
    if arguments == ["keep"]:
        KEPT.write_text(json.dumps({"measured": measured(), "per_switch": counted}, indent=2) + "\n")
    if arguments == ["check"]:
        return judge(counted, kept)
    return 0


def judge(counted: dict[str, int], kept: dict[str, int]) -> int:
    """1 if a load has grown or has no kept number."""
    grown = [name for name, number in counted.items() if number > kept.get(name, 0) * (1 + TOLERANCE)]
    for name in grown:
        print(f"FAILED: {name}: more than {TOLERANCE:.0%} above the kept number")
    if grown:
        print(f"make it cheaper, or keep the new numbers with the reason: {sys.executable} tools/instructions.py keep")
    print(f"{len(counted) - len(grown)} passed, {len(grown)} failed")
    return 1 if grown else 0


def named(load: Load) -> list[tuple[str, bool]]:
    return [(f"{load.name}, physics off", False), (f"{load.name}, physics on", True)]


def cannot() -> str | None:
    """Why nothing can be counted here."""
    if platform.machine() != "x86_64":
        return f"the kept numbers are those of x86_64, this is {platform.machine()}"
    if not shutil.which("valgrind"):
        return "valgrind is not installed (apt-get install valgrind)"
    return None


def count(load: Load, physics: bool) -> int:
    """Instructions per switch."""
    (short, few), (long, many) = (run(load.scenario(length, physics)) for length in load.lengths)
    return round((long - short) / (many - few))


def run(scenario: str) -> tuple[int, int]:
    """Instructions of a process that runs the scenario, and the switches that it simulates."""
    engine = str(next((ROOT / "python/schedlab").glob("_engine*.so")))
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    # A fixed hash seed: Python's own instructions are the same in both runs.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [*tool, sys.executable, "-S", "-c", CHILD, engine]
    done = subprocess.run(command, input=scenario, capture_output=True, text=True, env=environment)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"{scenario}\n{done.stderr}")
    return int(found[1].replace(",", "")), json.loads(done.stdout)["switches"]


def measured() -> dict[str, str]:
    """What the numbers hold for."""
    said = {
        "compiler": ["rustc", "--version"],
        "valgrind": ["valgrind", "--version"],
        "commit": ["git", "describe", "--always", "--dirty", "--abbrev=12"],
    }
    out = {name: subprocess.run(command, cwd=ROOT, capture_output=True, text=True) for name, command in said.items()}
    return {"engine": "make optimised", **{name: done.stdout.strip() for name, done in out.items()}}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
