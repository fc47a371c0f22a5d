"""Writes files whole, and never through a symbolic link that another user placed there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def replace(path: Path, content: str | bytes, *, sync: bool = False) -> None:
    """The whole content under this name, or what was there before; OSError where that is not possible.

    A pipe or a character device, such as /dev/stdout, is written directly.
    """
    data = content.encode() if isinstance(content, str) else content
    if is_stream(path):
        path.write_bytes(data)
        return
    # A new name, created by this process, so that no other user can have prepared it.
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        with os.fdopen(os.open(part, FLAGS | os.O_EXCL, 0o666), "wb") as stream:
            stream.write(data)
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def append(path: Path) -> IO[str]:
    """A stream at the end of a regular file, which is created if it does not exist."""
    try:
        descriptor = os.open(path, FLAGS | os.O_APPEND | os.O_NONBLOCK, 0o666)
    except OSError as e:
        if e.errno == errno.ELOOP:
            raise OSError(e.errno, f"{path.name} is a symbolic link") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{path.name} is not a regular file")
    return os.fdopen(descriptor, "a", encoding="utf-8")


def why_not(path: Path) -> str | None:
    """Why a file of this name cannot be written; None if it can. Missing directories would be created."""
    if path.is_dir():
        return "it is a directory"
    if is_stream(path):
        return None if os.access(path, os.W_OK) else "no permission"
    if path.exists() and not path.is_file():
        return "it is not a regular file"
    return why_not_in(path.parent)


def why_not_in(folder: Path) -> str | None:
    """Why no file can be created in this directory, which may have to be created first."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        return f"{folder} is not a directory"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"{folder} is not writable"


def is_stream(path: Path) -> bool:
    """Whether writing to this path goes straight to its other end."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)
