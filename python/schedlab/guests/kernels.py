"""Decides which kernel a name means: an image file, or a Debian kernel by version, suite or package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import InputError, reason
from schedlab.guests import debian
from schedlab.guests.digests import digest

RUNNING = "running"
BOOT_HEADER = slice(0x202, 0x206)
"""Where the boot protocol of x86 has its magic number (Documentation/arch/x86/boot.rst)."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """An image that QEMU can boot."""

    image: Path
    sha256: str
    source: str
    """Where it comes from: a package with its version, or the file's name."""


def find(name: str) -> Kernel:
    """The kernel that `name` means; a Debian kernel is downloaded once and kept."""
    if "/" in name or Path(name).is_file():
        return image(name)
    package = debian.kernel(name)
    return Kernel(package.image, package.sha256, f"{package.name} {package.version}")


def is_image(path: Path) -> bool:
    """Whether a file begins as what QEMU boots: Linux's boot header on x86, or an ELF file (`vmlinux`)."""
    try:
        with path.open("rb") as file:
            start = file.read(BOOT_HEADER.stop)
    except OSError as e:
        raise InputError(f"cannot read the file: {reason(e)}", file=str(path)) from None
    return start[BOOT_HEADER] == b"HdrS" or start.startswith(b"\x7fELF")


def image(name: str) -> Kernel:
    """The image in a file; its path is relative to the directory in which schedlab was started."""
    path = Path(name)
    if path.is_file():
        return Kernel(path, digest(path), path.name)
    hint = None if path.is_absolute() else f"paths are relative to the current directory, here {Path.cwd()}"
    raise InputError("there is no such kernel image", file=name, hint=hint)
