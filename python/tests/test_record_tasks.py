"""Groups of the tasks that a machine has when its recording begins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from schedlab.record import tasks


def machine(
    folder: Path, weights: dict[str, str], processes: dict[int, tuple[str, str]], kind: str
) -> tuple[Path, Path]:
    """A /proc, its mounts, and a mounted hierarchy of control groups."""
    options = "rw,cpu" if kind == "cgroup" else "rw"
    (folder / "mounts").write_text(f"none {folder}/cgroup {kind} {options} 0 0\n")
    for path, weight in weights.items():
        group = folder / "cgroup" / path
        group.mkdir(parents=True, exist_ok=True)
        (group / ("cpu.shares" if kind == "cgroup" else "cpu.weight")).write_text(weight + "\n")
    for pid, (autogroup, cgroup) in processes.items():
        (folder / f"proc/{pid}/task/{pid}").mkdir(parents=True)
        (folder / f"proc/{pid}/autogroup").write_text(autogroup)
        (folder / f"proc/{pid}/cgroup").write_text(cgroup)
    return folder / "proc", folder / "mounts"


@pytest.mark.parametrize(
    ("kind", "controllers", "file"), [("cgroup", "7:cpu,cpuacct", "shares"), ("cgroup2", "0:", "weight")]
)
def test_groups_by_session_and_by_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, controllers: str, file: str
) -> None:
    def policy(pid: int) -> int:
        return os.SCHED_IDLE | os.SCHED_RESET_ON_FORK if pid == 30 else os.SCHED_OTHER

    monkeypatch.setattr(os, "sched_getscheduler", policy)
    processes = {
        9: ("", f"{controllers}:/\n"),
        20: ("/autogroup-5 nice -3\n", f"{controllers}:/\n"),
        # The controller is not switched on below /a.
        30: ("/autogroup-6 nice 0\n", f"{controllers}:/a/below\n"),
    }
    assert tasks.lines(*machine(tmp_path, {"a": "50"}, processes, kind)) == [
        f"cgroup /a {file} 50",
        "task 9 policy 0",
        "task 20 policy 0 autogroup 5 -3",
        "task 30 policy 5 cgroup /a",
    ]


def test_this_machine_has_this_task() -> None:
    assert any(line.startswith(f"task {os.getpid()} policy ") for line in tasks.lines())
