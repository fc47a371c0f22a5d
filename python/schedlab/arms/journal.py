"""Settings of the kernel that a run changes: written down before each change, put back whatever happens.

A line of the journal is on the disk before the setting it tells of is touched. So after a kill -9 the next start, or
`schedlab doctor --restore`, knows what was where. One process at a time may hold the journal: settings are the whole
machine's.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import ArmError, OutputError, reason


@dataclass(frozen=True, slots=True)
class Change:
    """A file below /proc/sys or debugfs, and what writing puts it back."""

    file: str
    before: str
    after: str


def state_directory() -> Path:
    """Where schedlab keeps what must outlive it."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "schedlab"


def boot_id(root: Path = Path("/")) -> str:
    """What tells this boot of the machine from others; empty where the kernel does not say."""
    try:
        return (root / "proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class Journal:
    """The settings that this process has changed. `root` stands before every path, for tests."""

    def __init__(self, folder: Path, root: Path = Path("/")) -> None:
        self._folder, self._root = folder, root
        self._file = folder / "settings.jsonl"
        self._lock: int | None = None
        self._changes: list[Change] = []

    def open(self) -> list[Change]:
        """Take the journal and put back what a killed run left; says what that was."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._folder / "settings.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise ArmError(
                "another schedlab runs on this kernel: their settings and their load would mix",
                hint="wait until it has ended",
            ) from None
        except OSError as e:
            raise OutputError(f"cannot keep a journal in {self._folder}: {reason(e)}") from None
        self._changes = self.left()
        left = list(self._changes)
        self.restore()
        return left

    def left(self) -> list[Change]:
        """What the journal says is changed in this boot; a torn last line was written before its change was made."""
        try:
            lines = self._file.read_text(encoding="utf-8").split("\n")
        except OSError:
            return []
        found, boot = [], boot_id(self._root)
        for line in lines[:-1]:
            try:
                told = json.loads(line)
                # A boot puts everything back by itself, and what it set may be something else today.
                if told.pop("boot", boot) == boot:
                    found.append(Change(**told))
            except (ValueError, TypeError, AttributeError):
                continue
        return found

    def apply(self, settings: Iterable[tuple[str, str]]) -> None:
        """Change settings; each is journalled first, and read back."""
        for file, value in settings:
            text = self._read(file)
            before = current(file, text, value)
            if before == value:
                continue
            change = Change(file, before, value)
            self._keep(change)
            self._write(change.file, change.after)
            now = current(file, self._read(file), value)
            if now != value:
                raise ArmError(f"{file} was told {value} and says {now}", hint="the kernel allows other values here")

    def restore(self) -> None:
        """Put everything back, the last change first; the journal is gone when all of it was."""
        stuck = []
        while self._changes:
            change = self._changes[-1]
            try:
                self._write(change.file, change.before)
            except ArmError as e:
                stuck.append(e.message)
            self._changes.pop()
        if stuck:
            hint = f"{self._file} keeps what they were; `schedlab doctor --restore` tries again"
            raise OutputError(f"not everything could be put back: {'; '.join(stuck)}", hint=hint)
        try:
            self._file.unlink(missing_ok=True)
        except OSError as e:
            raise OutputError(f"cannot remove {self._file}: {reason(e)}") from None

    def close(self) -> None:
        """Let the journal go."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _keep(self, change: Change) -> None:
        told = {"file": change.file, "before": change.before, "after": change.after, "boot": boot_id(self._root)}
        line = json.dumps(told) + "\n"
        try:
            fresh = not self._file.exists()
            with self._file.open("a", encoding="utf-8") as stream:
                stream.write(line)
                stream.flush()
                os.fsync(stream.fileno())
            if fresh:
                _sync(self._folder)
        except OSError as e:
            raise OutputError(f"cannot write the journal {self._file}: {reason(e)}; nothing was changed") from None
        self._changes.append(change)

    def _read(self, file: str) -> str:
        try:
            return self._path(file).read_text()
        except OSError as e:
            raise cannot("read", file, e) from None

    def _write(self, file: str, value: str) -> None:
        try:
            # Without O_CREAT: a setting that a kernel lacks must not become a file.
            descriptor = os.open(self._path(file), os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(descriptor, value.encode())
            finally:
                os.close(descriptor)
        except OSError as e:
            raise cannot(f"write {value} to", file, e) from None

    def _path(self, file: str) -> Path:
        return self._root / file.lstrip("/")


def current(file: str, text: str, value: str) -> str:
    """What must be written to `file`, which says `text`, to have it as it is; of features the one of `value`."""
    if file.endswith("/features"):
        wanted = value.removeprefix("NO_")
        return next((word for word in text.split() if word.removeprefix("NO_") == wanted), text.strip())
    chosen = re.search(r"\(([^)]*)\)", text)
    return chosen[1] if chosen else text.strip()


def cannot(what: str, file: str, error: OSError) -> ArmError:
    """The error for a setting that is out of reach, with what would help."""
    hint = None
    if isinstance(error, FileNotFoundError):
        hint = "this kernel has no such setting"
        if file.startswith("/sys/kernel/debug/") and not os.path.ismount("/sys/kernel/debug"):
            hint = "mount -t debugfs none /sys/kernel/debug"
    elif isinstance(error, PermissionError):
        hint = "root may" if os.geteuid() else "this kernel is locked down: it lets nobody"
    elif error.errno == errno.EINVAL:
        hint = "the kernel takes other values here, or not this one as it is set now"
    return ArmError(f"cannot {what} {file}: {reason(error)}", hint=hint)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
