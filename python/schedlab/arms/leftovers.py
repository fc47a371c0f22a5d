"""Finds and removes control groups and tracing instances of killed processes; their names hold the process id."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GROUPS = ("sys/fs/cgroup", "sys/fs/cgroup/*")
"""Where agents make control groups: cgroup v2, and each controller of v1."""
INSTANCES = ("sys/kernel/tracing/instances", "sys/kernel/debug/tracing/instances")
"""Where agents and the recorder make tracing instances."""
OURS = re.compile(r"schedlab-(\d+)(-.*)?")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A kernel directory (control group or tracing instance) whose process has ended."""

    kind: str
    path: Path

    def __str__(self) -> str:
        return f"the {self.kind} {self.path}"


def find(root: Path = Path("/")) -> list[Leftover]:
    """All leftovers of processes that have ended."""
    groups = [Leftover("control group", path) for path in _ended(root, GROUPS)]
    return groups + [Leftover("tracing instance", path) for path in _ended(root, INSTANCES)]


def remove(root: Path = Path("/")) -> list[str]:
    """Remove them; returns what was removed. Groups that still contain a task are kept."""
    return [str(found) for found in find(root) if _removed(found)]


def remove_instances(root: Path = Path("/")) -> list[str]:
    """Remove tracing instances only; returns what was removed."""
    return [str(found) for found in find(root) if found.kind == "tracing instance" and _removed(found)]


def _ended(root: Path, places: tuple[str, ...]) -> Iterator[Path]:
    for place in places:
        for path in sorted(root.glob(f"{place}/schedlab-*")):
            named = OURS.fullmatch(path.name)
            if named and path.is_dir() and not path.is_symlink() and not (root / "proc" / named[1]).exists():
                yield path


def _removed(found: Leftover) -> bool:
    """Remove a directory. The kernel's files in it are removed with it, but child groups must be removed first."""
    try:
        if found.kind == "control group":
            for folder, below, _ in os.walk(found.path, topdown=False):
                for name in below:
                    os.rmdir(os.path.join(folder, name))
        os.rmdir(found.path)
    except OSError:
        return False
    return True
