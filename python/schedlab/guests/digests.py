"""sha256 of kernel images: results name it, and the cache records it so that a file that changed is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

from schedlab.errors import InputError, UnsafeError, reason

RECORD = "image.sha256"


def digest(path: Path) -> str:
    """The sha256 of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as e:
        raise InputError(f"cannot read the kernel image: {reason(e)}", file=str(path)) from None


def record(folder: Path, image: Path) -> None:
    """Record the image of an unpacked package."""
    (folder / RECORD).write_text(f"{digest(image)}  {image.relative_to(folder)}\n")


def recorded(folder: Path, image: Path) -> str:
    """The sha256 of an image in the cache; refused if it is not the one that was unpacked.

    A package that was unpacked before digests were recorded gets its record now.
    """
    found = digest(image)
    try:
        words = (folder / RECORD).read_text().split()
    except FileNotFoundError:
        record(folder, image)
        return found
    if words[:1] != [found]:
        raise UnsafeError(
            "this kernel image has changed since it was unpacked",
            hint=f"rm -r {folder}; the next run downloads it again",
            file=str(image),
        )
    return found
