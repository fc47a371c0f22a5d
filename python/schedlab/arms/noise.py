"""Measures the noise during a run: foreign tasks, steal time, throttling."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from schedlab.frozen import Frozen


class Sample(Frozen):
    """Counters at one moment, in ticks of /proc/stat."""

    busy: int
    steal: int
    wall: int
    """Of all CPUs together."""
    throttled: int

    @classmethod
    def now(cls, root: Path = Path("/")) -> Sample:
        busy, steal, wall = _stat((root / "proc/stat").read_text())
        return cls(busy, steal, wall, _throttled(root))


def between(before: Sample, after: Sample, own_s: float) -> dict[str, Any]:
    """The noise of a run that used `own_s` of CPU itself: shares in percent, throttling as a count."""
    wall = max(1, after.wall - before.wall)
    own = own_s * os.sysconf("SC_CLK_TCK")
    foreign = max(0.0, after.busy - before.busy - own)
    return {
        "foreign_pct": round(100 * foreign / wall, 2),
        "steal_pct": round(100 * (after.steal - before.steal) / wall, 2),
        "throttled": after.throttled - before.throttled,
    }


def total_pct(noise: dict[str, Any]) -> float:
    """One number to compare with a limit; any throttling exceeds it."""
    if noise.get("throttled"):
        return 100.0
    return float(noise.get("foreign_pct", 0)) + float(noise.get("steal_pct", 0))


def _stat(text: str) -> tuple[int, int, int]:
    """user nice system idle iowait irq softirq steal guest guest_nice; guests are in user already."""
    line = next(line for line in text.splitlines() if line.startswith("cpu "))
    user, nice, system, idle, iowait, irq, softirq, steal = ([int(n) for n in line.split()[1:9]] + [0] * 8)[:8]
    # Interrupts do not count as foreign because those of the run itself are among them.
    return user + nice + system, steal, user + nice + system + idle + iowait + irq + softirq + steal


def _throttled(root: Path) -> int:
    """Thermal events of the CPUs, and periods in which a group this process is in used up its quota."""
    total = 0
    for file in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_throttle_count"):
        total += _number(file)
    for file in _group_stats(root):
        try:
            found = re.search(r"^nr_throttled (\d+)$", file.read_text(), re.M)
        except OSError:
            continue
        total += int(found[1]) if found else 0
    return total


def _group_stats(root: Path) -> list[Path]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "cpu", "cpu,cpuacct"):
            base = root / "sys/fs/cgroup" / controllers
            parts = [base / path.lstrip("/"), *(base / path.lstrip("/")).parents]
            found += [part / "cpu.stat" for part in parts if part.is_relative_to(base)]
    return found


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0
