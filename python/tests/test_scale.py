"""The largest machine with its largest load: how much memory a run takes. `make bench` prints how long it takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCENARIO = """\
machine = "power10-480"
duration = "100s"
workload = [{ use = "hackbench", g = 60, p = true, l = LOOPS }]
variant = [{ name = "v", kernel = "6.12.0" }]
"""
LIMIT = 1 << 30
"""Bytes, the goal of `hackbench -g 60 -p` on 480 CPUs."""


def test_hackbench_on_480_cpus_stays_below_a_gigabyte_and_does_not_grow_with_its_messages(tmp_path: Path) -> None:
    peaks = [peak(tmp_path, loops) for loops in (3, 12)]
    assert max(peaks) < LIMIT
    # Four times the messages: nothing may be kept for each of them.
    assert peaks[1] < 1.1 * peaks[0], peaks


def peak(folder: Path, loops: int) -> int:
    """Peak resident memory of a run in a process of its own, bytes."""
    scenario = folder / "scenario.toml"
    scenario.write_text(SCENARIO.replace("LOOPS", str(loops)))
    command = [sys.executable, "-m", "schedlab", "run", str(scenario), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return usage.ru_maxrss * 1024
