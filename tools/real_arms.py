"""Boots one real kernel twice and runs a scenario on it, then one on the running kernel: the smoke test of the arms.

It asks of each run what a stand-in cannot tell: that the kernel of the row booted, took a setting, made control groups,
ran the tasks and gave counts, the second time the same to the event; that a killed schedlab takes its QEMU along; that
the running kernel is as it was afterwards; that no QEMU is left. What cannot be had is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIMIT_S = 220
MARK = "schedlab-smoke-"
"""In every path of ours, so that our QEMUs are known by their words."""
ROW = "6.1"
SETTING = "/proc/sys/kernel/sched_rr_timeslice_ms"
GUEST = """\
machine = { base = "laptop-8", topology = { cores-per-llc = 1 } }
duration = "300ms"
seeds = 1
[[cgroup]]
name = "much"
weight = 300
[[cgroup]]
name = "much/deep"
[[cgroup]]
name = "held"
quota = "10ms"
[[workload]]
name = "beside"
cgroup = "held"
program = [{ loop = "forever", do = [{ run = "1ms" }, { count = "turns" }] }]
[[workload]]
name = "pair"
cgroup = "much/deep"
[[workload.task]]
name = "ping"
program = [{ loop = "forever", do = [{ run = "100us" }, { post = "there" }, { wait = "back" }, { count = "turns" }] }]
[[workload.task]]
name = "pong"
program = [{ loop = "forever", do = [{ wait = "there" }, { run = "100us" }, { post = "back" }] }]
[[variant]]
name = "cfs"
kernel = "6.1"
preempt = "full"
features = { WAKEUP_PREEMPTION = false }
knobs = { min_granularity = "2ms" }
sysctl = { "kernel.sched_rr_timeslice_ms" = 60 }
[arm.vm]
repeatable = true
time-limit = "200s"
"""
HOST = """\
machine = "host"
duration = "300ms"
seeds = 1
workload = [{ use = "hog", threads = 2 }]
variant = [{ name = "here", kernel = "running", sysctl = { "kernel.sched_rr_timeslice_ms" = 60 } }]
"""


class Skipped(Exception):
    """A test that cannot run here, and why."""


def main() -> int:
    passed = failed = skipped = 0
    for test in (boots, dies_along, runs_here):
        try:
            test()
            passed += 1
        except Skipped as why:
            skipped += 1
            print(f"skipped: {test.__name__}: {why}")
        except (AssertionError, OSError, subprocess.TimeoutExpired) as e:
            failed += 1
            print(f"{test.__name__} failed: {type(e).__name__} {e}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def boots() -> None:
    """A guest of Debian's 6.1 with one CPU."""
    for program, package in (("qemu-system-x86_64", "qemu-system-x86"), ("busybox", "busybox-static")):
        if not shutil.which(program):
            raise Skipped(f"{program} is not here: apt-get install {package}")
    fetched = schedlab("doctor", "--fetch", ROW)
    if fetched.returncode:
        raise Skipped(f"no kernel image of {ROW} can be had: {first_line(fetched.stderr)}")
    with ThreadPoolExecutor() as pool:
        document, again = pool.map(lambda _: ran(GUEST, "vm"), range(2))
    assert document["digests"] == again["digests"], f"{document['digests']} and {again['digests']}"
    state = document["place"]["state"]
    assert state["release"].startswith("6.1."), state["release"]
    assert state["sysctl.sched_rr_timeslice_ms"] == "60"
    assert "(full)" in state["debugfs.preempt"]
    assert "NO_WAKEUP_PREEMPTION" in state["debugfs.features"]
    assert state["debugfs.min_granularity_ns"] == "2000000"
    assert "icount" in document["place"]["machine"]
    expect(document, "pair.turns", lambda turns: turns > 100)
    # 10 ms in each of the periods of 100 ms, and what is left of the last millisecond.
    expect(document, "beside.turns", lambda turns: 50 < turns < 150)
    assert not guests(), f"QEMU is left: {guests()}"


def dies_along() -> None:
    """kill -9 of schedlab while its guest boots."""
    if not shutil.which("qemu-system-x86_64"):
        raise Skipped("qemu-system-x86_64 is not here: apt-get install qemu-system-x86")
    with tempfile.TemporaryDirectory(prefix=MARK) as folder:
        file = Path(folder) / "smoke.toml"
        file.write_text(GUEST)
        command = [sys.executable, "-m", "schedlab", "run", str(file), "--arm", "vm"]
        running = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": folder, "TMPDIR": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: bool(guests()) or running.poll() is not None)
        finally:
            running.kill()
        if running.wait() != -signal.SIGKILL:
            raise Skipped("the guest did not start")
        until(lambda: not guests())
        assert not guests(), f"QEMU is left: {guests()}"


def until(holds: Callable[[], bool]) -> None:
    """Wait for it, half a minute at most."""
    end = time.monotonic() + 30
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)


def runs_here() -> None:
    """Two hogs on the running kernel."""
    before = Path(SETTING).read_text()
    if os.geteuid() != 0 or not os.access(SETTING, os.W_OK):
        raise Skipped("only root may change a sysctl")
    document = ran(HOST, "host")
    assert document["place"]["state"]["sysctl.sched_rr_timeslice_ms"] == "60"
    # A kernel that does not record every switch has no times of tasks.
    reasons = (document.get("unavailable") or {}).values()
    assert len(document["tasks"]) >= 2 or any("every sched_switch" in reason for reason in reasons), document
    assert Path(SETTING).read_text() == before


def ran(scenario: str, arm: str) -> dict[str, Any]:
    """The document of one run; a scenario that this machine cannot run is a skip."""
    with tempfile.TemporaryDirectory(prefix="schedlab-smoke-") as folder:
        file = Path(folder) / "smoke.toml"
        file.write_text(scenario)
        done = schedlab("run", str(file), "--arm", arm, "--json", "-")
    if done.returncode == 4 or "running kernel" in done.stderr:
        raise Skipped(first_line(done.stderr))
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def expect(document: dict[str, Any], metric: str, holds: Callable[[float], bool]) -> None:
    """A condition on one metric's value."""
    values = {m["metric"]: next(iter(m["samples"].values()))[0] for m in document["metrics"]}
    value = values.get(metric)
    assert value is not None, f"{metric} has no value"
    assert holds(value), f"{metric} is {value}"


def schedlab(*words: str) -> subprocess.CompletedProcess[str]:
    """The command, with a state of its own: a test must not restore what another run has changed."""
    with tempfile.TemporaryDirectory(prefix=MARK) as state:
        return subprocess.run(
            [sys.executable, "-m", "schedlab", *words],
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": state, "TMPDIR": state},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )


def guests() -> list[str]:
    """Process ids of QEMUs that this process started and that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = stat.read_bytes()
        except OSError:
            continue
        if b"qemu-system" in words.split(b"\0")[0] and MARK.encode() in words:
            found.append(stat.parent.name)
    return found


def first_line(text: str) -> str:
    """Of an error: the message without its hint."""
    return (text.strip().splitlines() or ["it did not say why"])[0].removeprefix("error: ")


if __name__ == "__main__":
    sys.exit(main())
