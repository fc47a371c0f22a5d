"""The guest's initramfs, in the format of the kernel's documentation (buffer-format.rst).

Nothing of the machine but the files' content goes into it: no times, no owners, so the same input gives the same bytes.
"""

from __future__ import annotations

import gzip
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

CONSOLE = (5, 1)


class Archive:
    """A cpio archive in memory; folders are added as they are needed."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._names: set[str] = set()

    def folder(self, name: str) -> None:
        path = PurePosixPath(name)
        for parent in [*reversed(path.parents), path]:
            if str(parent) not in (".", *self._names):
                self._entry(str(parent), stat.S_IFDIR | 0o755, b"")

    def file(self, name: str, content: bytes, *, executable: bool = False) -> None:
        self.folder(str(PurePosixPath(name).parent))
        self._entry(name, stat.S_IFREG | (0o755 if executable else 0o644), content)

    def device(self, name: str, number: tuple[int, int]) -> None:
        self.folder(str(PurePosixPath(name).parent))
        self._entry(name, stat.S_IFCHR | 0o600, b"", number)

    def compressed(self) -> bytes:
        """The archive, lightly compressed because unpacking in the guest takes time."""
        self._entry("TRAILER!!!", 0, b"")
        return gzip.compress(b"".join(self._parts), compresslevel=1, mtime=0)

    def _entry(self, name: str, mode: int, content: bytes, device: tuple[int, int] = (0, 0)) -> None:
        if name in self._names:
            return
        self._names.add(name)
        text = name.encode() + b"\0"
        # ino, mode, uid, gid, nlink, mtime, filesize, dev, rdev, namesize, check
        fields = (len(self._names), mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(text), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields)
        self._parts += [_padded(head + text), _padded(content)]


def build(files: Mapping[str, Path], texts: Mapping[str, str]) -> bytes:
    """The archive with copies of `files` and with `texts`; the file `init` is run."""
    archive = Archive()
    for name in ("proc", "sys", "dev", "tmp", "work", "root"):
        archive.folder(name)
    archive.device("dev/console", CONSOLE)
    for name, text in texts.items():
        archive.file(name, text.encode(), executable=True)
    for name, path in sorted(files.items()):
        archive.file(name, path.read_bytes(), executable=True)
    return archive.compressed()


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % 4)
