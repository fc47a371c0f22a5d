"""The programs that a build needs, each with the Debian package that has it."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from pathlib import Path

from schedlab.errors import ArmError

PROGRAMS = {
    "gcc": "gcc",
    "ld": "binutils",
    "nm": "binutils",
    "objcopy": "binutils",
    "readelf": "binutils",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl",
    "xz": "xz-utils",
    "tar": "tar",
}
HEADERS = {"/usr/include/gelf.h": "libelf-dev", "/usr/include/stdio.h": "libc6-dev"}
MACHINE = "x86_64"


def missing(which: Callable[[str], object] = shutil.which, root: Path = Path("/")) -> dict[str, str]:
    """What is missing, and the package of each."""
    found = {name: package for name, package in PROGRAMS.items() if not which(name)}
    return found | {name: package for name, package in HEADERS.items() if not (root / name[1:]).is_file()}


def require(machine: str | None = None) -> None:
    """Refuse a machine of another architecture, or one without the tools.

    Raises:
        ArmError: it names every tool that is missing with its package.
    """
    machine = machine or platform.machine()
    if machine != MACHINE:
        raise ArmError(
            f"a kernel's scheduler is compiled for user space on {MACHINE} only; this machine is {machine}",
            hint="the rows of `schedlab list kernels` and `--arm vm` are available here",
        )
    lacks = missing()
    if lacks:
        listed = ", ".join(f"{name} (package {package})" for name, package in lacks.items())
        packages = " ".join(sorted(set(lacks.values())))
        raise ArmError(f"the build needs {listed}", hint=f"apt-get install {packages}")
