"""Progress: what a terminal shows of the runs under way, and that nothing else shows it."""

from __future__ import annotations

import json
import os
import pty
import queue
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from schedlab.cli import progress
from schedlab.cli.progress import Progress, announcement, line
from schedlab.engine import UnderWay

HERE = Path(__file__).parent
HOUR = 3600 * 10**9


@pytest.mark.parametrize(
    ("done", "total", "last", "under_way", "elapsed_s", "expected"),
    [
        (0, 4, "", [], 0.0, "[0/4]"),
        (1, 4, "a seed 1", [], 10.0, "[1/4] 6 runs/min, about 30 s left, a seed 1"),
        (30, 40, "a seed 9", [], 10.0, "[30/40] 3 runs/s, about 3.3 s left, a seed 9"),
        (4, 4, "a seed 4", [], 2.0, "[4/4] 2 runs/s, a seed 4"),
        (0, 1, "", [UnderWay("a seed 1", 6 * HOUR, 24 * HOUR)], 60.0,
         "[0/1] 6.0 min simulated per second, about 3.0 min left, a seed 1 at 6.0 h of 24.0 h"),
        (0, 1, "", [UnderWay("a seed 1", 10**8, 10**9)], 4.0,
         "[0/1] 0.025 s simulated per second, about 36 s left, a seed 1 at 0.1 s of 1 s"),
        (0, 1, "", [UnderWay("a seed 1", 10**9, 24 * HOUR)], 1.0, "[0/1] a seed 1 at 1 s of 24.0 h"),
        (0, 1, "", [UnderWay("a seed 1", 0, HOUR)], 1.0, "[0/1]"),
        (
            1, 4, "a seed 1", [UnderWay("b seed 1", HOUR, 2 * HOUR), UnderWay("a seed 2", HOUR, 2 * HOUR)], 60.0,
            "[1/4] 2 runs/min, about 60 s left, b seed 1 at 60.0 min of 2.0 h, a seed 2 at 60.0 min of 2.0 h",
        ),
    ],
)  # fmt: skip
def test_the_line(done: int, total: int, last: str, under_way: list[UnderWay], elapsed_s: float, expected: str) -> None:
    assert line(done, total, last, under_way, elapsed_s) == expected


@pytest.mark.parametrize(
    ("done", "total", "under_way", "elapsed_s", "expected"),
    [
        (1, 40, [], 5.0, "this takes about 3.3 min in all; to shorten it: --seeds 6"),
        (
            0,
            20,
            [UnderWay("a seed 1", HOUR, 2 * HOUR)],
            30.0,
            "this takes about 20.0 min in all; to shorten it: --seeds 6",
        ),
        (4, 40, [], 5.0, ""),  # 50 s in all
        (1, 40, [], 2.0, ""),  # too early to say
        (0, 40, [], 60.0, ""),  # nothing has advanced
    ],
)
def test_long_work_is_announced(
    done: int, total: int, under_way: list[UnderWay], elapsed_s: float, expected: str
) -> None:
    assert announcement(done, total, under_way, elapsed_s, "--seeds 6") == expected


def test_long_work_is_announced_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "REDRAW_S", 0.01)
    monkeypatch.setattr(progress, "SURE_S", 0.05)
    monkeypatch.setattr(progress, "LONG_S", 0.1)
    shown = Progress(1000, live=False, shorter="--duration 1s")
    for _ in range(10):
        shown.step("a seed 1")
        time.sleep(0.03)
    shown.clear()
    assert capsys.readouterr().err.count("to shorten it: --duration 1s") == 1


COMMANDS = [["run", "toy.toml", "--variant", "cfs"], ["compare", "toy.toml", "--jobs", "1"]]


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(HERE.parent), str(HERE)])
    return {k: v for k, v in os.environ.items() if k != "CI"} | {"PYTHONPATH": path, "TERM": "xterm", **more}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_terminal_shows_how_far_a_run_is(command: list[str], tmp_path: Path) -> None:
    release = tmp_path / "go on"
    behaviour = {"cfs": {"hang_on": [1], "hangs_until": str(release)}}
    (tmp_path / "toy.toml").write_text(json.dumps({"seeds": [1], "behaviour": behaviour}))
    ours, theirs = pty.openpty()
    words = [sys.executable, str(HERE / "stand_in_cli.py"), *command]
    process = subprocess.Popen(words, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    try:
        seen = b""
        # It must come while the run hangs; otherwise this waits until the suite is stopped.
        while b"cfs seed 1 at 0.5 s of 1 s" not in seen:
            seen += os.read(ours, 4096)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_pipe_shows_no_redrawn_line(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "toy.toml").write_text(json.dumps({"seeds": [1]}))
    words = [sys.executable, str(HERE / "stand_in_cli.py"), *command]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True)
    assert done.returncode == 0
    assert b"\r" not in done.stdout + done.stderr
    assert b"\x1b" not in done.stdout + done.stderr


def test_a_pipe_shows_rate_and_time_left_inside_one_long_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET_S", -1.0)
    monkeypatch.setattr(progress, "REDRAW_S", 0.01)
    monkeypatch.setattr(progress, "SOON_S", 0.0)
    # Not capsys: emptying what it has captured while another thread writes may lose lines.
    written: queue.SimpleQueue[str] = queue.SimpleQueue()
    monkeypatch.setattr(progress, "write", written.put)
    reached = iter(range(10**6))
    found = Progress(1, False, lambda: [UnderWay("a seed 1", min(10**8 * next(reached), 95 * 10**7), 10**9)])
    seen = ""
    while "90%" not in seen:
        seen += written.get(timeout=60)
    found.clear()
    assert re.search(r"0/1 runs, 90%, .* simulated per second, about .* s left", seen)
