"""Which kernel is meant: an image file, a Debian kernel by version, suite or package, or the running one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import InputError, reason
from schedlab.guests import debian

RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Kernel:
    """An image that QEMU can boot."""

    image: Path
    sha256: str
    source: str
    """Where it comes from: a package with its version, or the file's name."""


def find(name: str) -> Kernel:
    """The kernel that `name` means; a Debian kernel is downloaded once and kept."""
    path = Path(name)
    if path.is_file():
        return Kernel(path, digest(path), path.name)
    if "/" in name:
        raise InputError("there is no such kernel image", file=name)
    package = debian.kernel(name)
    return Kernel(package.image, digest(package.image), f"{package.name} {package.version}")


def digest(path: Path) -> str:
    """The sha256 of an image."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as e:
        raise InputError(f"cannot read the kernel image: {reason(e)}", file=str(path)) from None
