"""What the commands print fits a terminal of 80 columns: the real commands, with the real engine, into a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from schedlab.render.grid import WIDTH

ROOT = Path(__file__).parents[2]
SHORT = ["--duration", "60ms", "--no-progress"]
TRACE = "crates/schedlab-replay/corpus/5.10.262-1cpu-niced.ftrace.gz"
EXPLAINED = ["explain", "scenarios/eevdf-vs-cfs.toml"]
TUNED = ["tune", "scenarios/first.toml", "--variant", "default", "--minimise", "service.request.p99"]
COMMAND_NAMES = (
    *("compare", "run", "explain", "ablate", "tune", "shrink", "new", "list", "report", "identify", "changelog"),
    *("replay", "convert", "view", "record", "sweep", "reproduce", "calibrate", "doctor", "validate"),
)
COMMANDS = [
    ["compare", "scenarios/eevdf-vs-cfs.toml", "--seeds", "6", *SHORT, "--out", "{tmp}/c"],
    ["compare", "scenarios/eevdf-vs-cfs.toml", "--seeds", "2", "--noise-floor", *SHORT, "--out", "{tmp}/n"],
    ["compare", "scenarios/eevdf-vs-cfs.toml", "--noise", "off", "--seeds", "1", *SHORT, "--out", "{tmp}/d"],
    ["compare", "scenarios/sleeper-curve.toml", "--seeds", "2", *SHORT, "--out", "{tmp}/v"],
    ["run", "scenarios/eevdf-vs-cfs.toml", "--variant", "cfs", *SHORT],
    [*EXPLAINED, "cfs", "eevdf", "--seed", "1"],
    [*EXPLAINED, "cfs", "eevdf", "--seed", "4"],
    [*EXPLAINED, "--variant", "eevdf", "--task", "4", "--at", "2.4ms"],
    ["ablate", "scenarios/eevdf-vs-cfs.toml", "cfs", "eevdf", "--seeds", "1", *SHORT],
    [*TUNED, "--over", "tasks.service.slice=1ms,2ms", "--trials", "2", "--confirm", "2", "--no-progress"],
    *([name, "--help"] for name in COMMAND_NAMES),
    ["list", "machines"],
    ["list", "machines", "power10-480"],
    ["list", "kernels"],
    ["list", "kernels", "6.12.0"],
    ["list", "kernels", "7.2"],
    ["list", "features"],
    ["list", "features", "--kernel", "6.12.0"],
    ["list", "knobs"],
    ["list", "knobs", "--kernel", "6.12.0"],
    ["list", "workloads"],
    ["list", "workloads", "schbench"],
    ["list", "metrics"],
    ["list", "studies"],
    ["changelog", "6.1", "6.12.107"],
    ["doctor"],
    ["new"],
    ["replay", TRACE],
    ["replay", TRACE, "--kernel", "6.1", "--state", "--first", "2"],
    ["replay", TRACE, "--matrix"],
    ["replay", "crates/schedlab-replay/corpus/{smp}"],
    ["identify", TRACE],
    ["reproduce", "eevdf-rfc-sleepers", "--short", "--no-progress"],
    ["reproduce", "--stored"],
    ["sweep", "sweeps/over-commit.toml", "--dry-run"],
    ["validate", "--stored"],
]


def printed(command: list[str], folder: Path) -> str:
    smp = sorted((ROOT / "crates/schedlab-replay/corpus").glob("*4cpu*"))[0].name
    words = [word.format(tmp=folder, smp=smp) for word in command]
    environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "schedlab", *words], cwd=ROOT, env=environment, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=600,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr  # 1: nothing better was found to tune
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words[:4]))
def test_every_line_fits(command: list[str], tmp_path: Path) -> None:
    text = printed(command, tmp_path)
    assert text.strip()
    wide = [line for line in text.splitlines() if len(line) > WIDTH]
    assert wide == []
