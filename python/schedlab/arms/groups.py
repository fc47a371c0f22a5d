"""Removes the control groups that a killed agent left: their names say whose they were."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

HIERARCHIES = ("sys/fs/cgroup", "sys/fs/cgroup/*")
"""Of cgroup v2, and of each controller of v1."""
OURS = re.compile(r"schedlab-(\d+)-")


def remove_left(root: Path = Path("/")) -> list[str]:
    """Remove the groups of agents that no longer run; says which. One that still holds a task stays."""
    return [str(group) for group in left(root) if _remove(group)]


def left(root: Path = Path("/")) -> Iterator[Path]:
    """Groups whose agent is gone."""
    for hierarchy in HIERARCHIES:
        for group in sorted(root.glob(f"{hierarchy}/schedlab-*")):
            named = OURS.match(group.name)
            if named and group.is_dir() and not (root / "proc" / named[1]).exists():
                yield group


def _remove(group: Path) -> bool:
    """The kernel's own files in it go with the directory."""
    try:
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)
    except OSError:
        return False
    return True
