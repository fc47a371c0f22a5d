"""The types (BTF) of a kernel that a name means, as a file. Those of images are extracted once and kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import InputError, not_written
from schedlab.guests import debian, kernels

RUNNING = Path("/sys/kernel/btf/vmlinux")


@dataclass(frozen=True, slots=True)
class Types:
    """Types of a kernel."""

    kernel: str
    """The release, or the file's name."""
    file: Path
    """BTF, or a file that contains it."""


def find(name: str, extract: Callable[[str], bytes]) -> Types:
    """The types of the running kernel, of a file, or of a Debian kernel; `extract` reads them from an image."""
    if name == kernels.RUNNING:
        if not RUNNING.is_file():
            hint = "it was built without CONFIG_DEBUG_INFO_BTF; name another kernel with --kernel"
            raise InputError(f"the running kernel shows no types: there is no {RUNNING}", hint=hint)
        return Types(os.uname().release, RUNNING)
    if "/" in name or Path(name).is_file():
        path = Path(name)
        if not path.is_file():
            raise InputError("there is no such file", hint="name an image, vmlinux, or a file of BTF", file=name)
        return Types(path.name, path)
    package = debian.kernel(name)
    kept = debian.cache() / f"{package.sha256}.btf"
    if not kept.is_file():
        _keep(kept, extract(str(package.image)))
    return Types(package.version, kept)


def _keep(path: Path, types: bytes) -> None:
    part = path.with_name(f"{path.name}.part{os.getpid()}")
    try:
        part.write_bytes(types)
        part.replace(path)
    except OSError as e:
        part.unlink(missing_ok=True)
        raise not_written(f"cannot keep the types of a kernel in {path.parent}", e) from None
