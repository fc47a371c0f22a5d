"""A file of lines that only grows: one process writes it, and a line that does not fit is removed completely."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from schedlab import files

BLOCK = 1 << 16


class Busy(Exception):
    """Another process writes the file."""


class Lines:
    """The file, open and claimed until `close`; it is created if it does not exist."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._stream = files.append(file)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._stream.close()
            raise Busy from None
        except OSError:
            pass  # some network file systems have no locks
        self.size = os.fstat(self._descriptor).st_size

    @property
    def _descriptor(self) -> int:
        return self._stream.fileno()

    def cut(self) -> None:
        """Remove the incomplete line that a killed process left."""
        end = _whole(self.file)
        if end < self.size:
            os.truncate(self.file, end)
            self.size = end

    def add(self, line: bytes) -> None:
        """Write a line, whole or not at all: a full disk raises OSError, and Ctrl-C may interrupt it. `sync` brings it
        to the disk."""
        try:
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
            self.size += len(line)
        except (OSError, KeyboardInterrupt):
            with suppress(OSError):  # `cut` does it at the next start
                os.truncate(self.file, self.size)
            raise

    def sync(self) -> None:
        """Every line that was added is on the disk when this returns."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        with suppress(OSError):  # `add` and `sync` have reported what could not be written
            self._stream.close()


def whole(file: Path) -> Iterator[bytes]:
    """The lines of a file; a torn last one, which a killed process left, is skipped."""
    with file.open("rb") as stream:
        for line in stream:
            if line.endswith(b"\n"):
                yield line


def _whole(file: Path) -> int:
    """Where the last whole line ends."""
    with file.open("rb") as stream:
        end = stream.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - BLOCK)
            stream.seek(start)
            found = stream.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0
