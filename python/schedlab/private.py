"""Directories and files that no other user can have written, for data on which a privileged process acts.

A directory is held by a descriptor, and every file in it is opened relative to that descriptor without following
symbolic links. Directory and file must belong to this user or to root, and no one else may be able to write them.

Who can write a directory higher up can put another one in the place of this one. For root every directory and every
symbolic link on the way must therefore belong to root, and no one else may be able to write them, unless the directory
is sticky as /tmp is, where only the owner of an entry can replace it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from schedlab.errors import UnsafeError

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_LINKS = 40
"""The most symbolic links on one path, as in the kernel."""
FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""O_NONBLOCK: opening a FIFO must not wait for its other end."""


class Directory:
    """A directory that only this user and root can write."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self._descriptor = path, descriptor

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> Self:
        """Open it, or raise UnsafeError; FileNotFoundError where it does not exist and is not to be created."""
        path = path.absolute()
        check_way(path)
        if create:
            _make(path)
        try:
            descriptor = os.open(path, os.O_RDONLY | DIRECTORY)
        except OSError as e:
            if path.is_symlink():
                raise UnsafeError(f"{path} is a symbolic link", hint="schedlab needs a directory of its own") from None
            raise e
        try:
            check(path, os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor)

    def close(self) -> None:
        """Close the descriptor; nothing else may be called afterwards."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, name: str) -> str | None:
        """The text of a file; None where there is no such file."""
        try:
            descriptor = self.descriptor(name, os.O_RDONLY)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "r", encoding="utf-8", errors="replace") as stream:
            return stream.read()

    @contextmanager
    def append(self, name: str) -> Iterator[IO[str]]:
        """A stream at the end of a file, on the disk when the block ends."""
        fresh = name not in os.listdir(self._descriptor)
        with os.fdopen(self.descriptor(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a", encoding="utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if fresh:
            os.fsync(self._descriptor)

    def write(self, name: str, text: str) -> None:
        """Replace a file, or keep the old one."""
        part = f"{name}.part{os.getpid()}"
        self.remove(part)
        try:
            descriptor = self.descriptor(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
            os.replace(part, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except OSError:
            self.remove(part)
            raise

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            pass

    def descriptor(self, name: str, flags: int) -> int:
        """Open a regular file of this directory that no other user can write."""
        path = self.path / name
        try:
            descriptor = os.open(name, flags | FILE, 0o600, dir_fd=self._descriptor)
        except OSError as e:
            if path.is_symlink():
                raise UnsafeError(f"{path} is a symbolic link", hint="remove it") from None
            raise e
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnsafeError(f"{path} is not a regular file", hint="remove it")
            check(path, status)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def check(path: Path, status: os.stat_result) -> None:
    """Refuse what belongs to another user, or what another user can write."""
    user = os.geteuid()
    if status.st_uid not in (user, 0):
        raise UnsafeError(
            f"{path} belongs to user {status.st_uid}, and this process runs as user {user}",
            hint="`sudo -H` uses root's own directories; XDG_STATE_HOME and XDG_CACHE_HOME name others",
        )
    if status.st_mode & OTHERS_WRITE:
        raise UnsafeError(f"other users can write {path}", hint=f"check its contents, then: chmod go-w {path}")


def check_way(path: Path) -> None:
    """Refuse, for root, a path on which another user can replace a directory; what does not exist yet is left out."""
    if os.geteuid() != 0:
        return
    for step, status in _way(path.parent):
        if status.st_uid != 0:
            raise UnsafeError(
                f"{step}, on the way to {path}, belongs to user {status.st_uid}, and this process runs as root",
                hint="`sudo -H` uses root's own directories; XDG_STATE_HOME and XDG_CACHE_HOME name others",
            )
        shared = stat.S_ISDIR(status.st_mode) and status.st_mode & OTHERS_WRITE
        if shared and not status.st_mode & stat.S_ISVTX:
            hint = "XDG_STATE_HOME and XDG_CACHE_HOME name other directories"
            raise UnsafeError(f"other users can write {step}, on the way to {path}", hint=hint)


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every directory and symbolic link that is passed on the way to an absolute path, and that itself."""
    at, left, links = Path("/"), [*path.parts[1:]], 0
    yield at, os.lstat(at)
    while left:
        step = at / left.pop(0)
        try:
            status = os.lstat(step)
        except FileNotFoundError:
            return
        yield step, status
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            target = Path(os.readlink(step))
            at = Path("/") if target.is_absolute() else at
            left = [*(part for part in target.parts if part != "/"), *left]
        else:
            at = at.parent if step.name == ".." else step


def _make(path: Path) -> None:
    """Create a directory for this user alone, and its parents, which no one else can write either."""
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(mode=0o755, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def open_below(root: Path, file: str, flags: int) -> int:
    """Open an absolute path below `root`; no component may be a symbolic link."""
    *folders, name = [part for part in file.split("/") if part]
    if ".." in (*folders, name):
        raise UnsafeError(f"{file} has a component `..`")
    at = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            below = os.open(folder, os.O_PATH | DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)
