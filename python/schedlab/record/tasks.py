"""The groups of the tasks that exist at the start, as header lines of a trace, because no record of it has them.

A task is `task PID policy P`, followed by `autogroup ID NICE` or `cgroup PATH` where it is in a group; a control group
of the cpu controller that has tasks below it is `cgroup PATH shares N` (version 1) or `cgroup PATH weight N`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

PROC = Path("/proc")
ROOT = PurePosixPath("/")
NORMAL = 0


def lines(proc: Path = PROC, mounts: Path = PROC / "self/mounts") -> list[str]:
    """Header lines, without `# `. Tasks that end meanwhile are left out."""
    hierarchy = _hierarchy(mounts)
    tasks: list[str] = []
    used: set[PurePosixPath] = set()
    for folder in proc.glob("[0-9]*"):
        try:
            session = re.match(r"/autogroup-(\d+) nice (-?\d+)", _read(folder / "autogroup"))
            home = _home(_read(folder / "cgroup"), hierarchy)
            threads = [int(thread.name) for thread in (folder / "task").iterdir()]
        except OSError:
            continue
        # A session is a group only for tasks that no control group has.
        group = f"cgroup {home}" if home != ROOT else f"autogroup {session[1]} {session[2]}" if session else ""
        used |= {home, *home.parents} - {ROOT}
        tasks += [f"task {thread} policy {_policy(thread)} {group}".rstrip() for thread in threads]
    return [*_weights(used, hierarchy), *sorted(tasks, key=lambda line: int(line.split()[1]))]


def _hierarchy(mounts: Path) -> tuple[Path, str] | None:
    """Where the cpu controller is mounted, and the file that holds a group's weight."""
    found: dict[str, Path] = {}
    for line in _read(mounts).splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            found["cpu.shares"] = Path(where)
        elif kind == "cgroup2":
            found["cpu.weight"] = Path(where)
    for name in ("cpu.shares", "cpu.weight"):
        if name in found:
            return found[name], name
    return None


def _home(text: str, hierarchy: tuple[Path, str] | None) -> PurePosixPath:
    """The nearest ancestor group of a process in the hierarchy of the cpu controller."""
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        version_1 = hierarchy is not None and hierarchy[1] == "cpu.shares"
        if hierarchy and ("cpu" in controllers.split(",") if version_1 else controllers == ""):
            home = PurePosixPath(path)
            while home != ROOT and not (hierarchy[0] / home.relative_to(ROOT) / hierarchy[1]).exists():
                home = home.parent
            return home
    return ROOT


def _weights(used: set[PurePosixPath], hierarchy: tuple[Path, str] | None) -> Iterator[str]:
    for path in sorted(used):
        if hierarchy:
            weight = _read(hierarchy[0] / path.relative_to(ROOT) / hierarchy[1]).strip()
            yield f"cgroup {path} {hierarchy[1].removeprefix('cpu.')} {weight}"


def _policy(thread: int) -> int:
    try:
        return os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK
    except OSError:
        return NORMAL


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
