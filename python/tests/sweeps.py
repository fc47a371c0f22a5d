"""A small sweep for tests with the real engine, and ways to start and stop it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PYTHON = Path(__file__).parents[1]

SCENARIO = """\
machine = "rpi4"
duration = "20ms"
seeds = 2
[[workload]]
use = "hackbench"
name = "load"
groups = 1
fds = 2
loops = 5
repeat = true
[[workload]]
use = "cyclictest"
name = "probe"
interval = "500us"
[[variant]]
name = "cfs"
kernel = "6.1"
[[variant]]
name = "eevdf"
kernel = "6.12.0"
[[metric]]
of = "load.time"
"""
SWEEP = """\
name = "toy"
scenario = "toy.toml"
[[axis]]
name = "load"
key = "workload.load.groups"
percent-of-cpus = [100, 200, 300]
tasks = 4
[[axis]]
key = "variant.eevdf.knobs.base_slice_ns"
values = ["1ms", "3ms"]
"""
RUNS = 3 * 2 * (1 + 2)
"""Points of load, times seeds, times the baseline and two slices: the baseline has one slice."""


def write(folder: Path, scenario: str = SCENARIO, sweep: str = SWEEP) -> str:
    """The files in this folder; the name of the sweep."""
    (folder / "toy.toml").write_text(scenario)
    (folder / "sweep.toml").write_text(sweep)
    return "sweep.toml"


def lines(folder: str | Path) -> list[dict[str, Any]]:
    """Every stored line of an experiment that is whole."""
    files = [file for file in Path(folder).rglob("*.jsonl") if not file.name.startswith("plan-")]
    texts = [line for file in files for line in file.read_text().splitlines(keepends=True)]
    return [json.loads(line) for line in texts if line.endswith("\n")]


def start(*arguments: str) -> subprocess.Popen[str]:
    """`schedlab sweep` as a process of its own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PYTHON), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, "-m", "schedlab", "sweep", *arguments],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for_lines(process: subprocess.Popen[str], folder: str, count: int) -> None:
    """Until so many runs are stored."""
    while len(lines(folder)) < count:
        assert process.poll() is None, "it ended early"
        time.sleep(0.01)


def children(pid: int, word: str = "schedlab.sweeping.worker") -> list[int]:
    """The processes below one whose command line has this word."""
    found, below = [], [pid]
    while below:
        parent = below.pop()
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                own = [int(one) for one in task.read_text().split()]
                below += own
                found += [one for one in own if word in Path(f"/proc/{one}/cmdline").read_text()]
            except OSError:
                continue  # it has ended
    return found


def ids(records: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(record["id"] for record in records)
