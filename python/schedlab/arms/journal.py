"""Kernel settings that a run changes: recorded before each change and restored whatever ends the run.

An entry of the journal is on the disk before its setting changes. So after a kill -9 the next start, or
`schedlab doctor --restore`, finds the old values. One process at a time holds the journal, because the settings belong
to the whole machine.

Restoring writes to the kernel as root what a file says. The journal therefore accepts an entry only if it names a
setting of the scheduler (`SETTINGS`) and the current boot, and only from a directory that no other user can write.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from schedlab.errors import ArmError, OutputError, UnsafeError, not_written, reason
from schedlab.private import Directory, open_below

SETTINGS = re.compile(
    r"/proc/sys/kernel/(sched|numa_balancing)(_\w+)?"
    r"|/sys/kernel/debug/sched_features"
    r"|/sys/kernel/debug/sched(/\w+)+"
    r"|/sys/kernel/(debug/)?tracing/events/bpf_trace/bpf_trace_printk/enable"
)
"""The files that the journal may change: what kernel/sched itself registers below /proc/sys and in debugfs, and the
switch of what BPF programs print, which the recorder turns on."""
VALUE = re.compile(r"[-\w]{1,64}", re.ASCII)
FILE, LOCK = "settings.jsonl", "settings.lock"


@dataclass(frozen=True, slots=True)
class Change:
    """A setting, the value that restores it, and the value that a run gave it."""

    file: str
    before: str
    after: str


def state_directory() -> Path:
    """The directory for files that must outlive the process."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "schedlab"


def boot_id(root: Path = Path("/")) -> str:
    """The kernel's identifier of this boot; empty where it has none."""
    try:
        return (root / "proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class Journal:
    """The settings that this process has changed. `root` stands before every path, for tests."""

    def __init__(self, folder: Path, root: Path = Path("/")) -> None:
        self._path, self._root = folder, root
        self._folder: Directory | None = None
        self._lock: int | None = None
        self._changes: list[Change] = []

    def open(self) -> list[Change]:
        """Lock the journal and restore what a killed run left changed; returns what that was."""
        try:
            self._folder = Directory.open(self._path, create=True)
            self._lock = self._folder.descriptor(LOCK, os.O_RDWR | os.O_CREAT)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise ArmError(
                "another schedlab is running on this kernel, and two runs would disturb each other",
                hint="wait until it has ended",
            ) from None
        except OSError as e:
            self.close()
            raise not_written(f"cannot keep a journal in {self._path}", e) from None
        self._changes = self.left()
        left = list(self._changes)
        self.restore()
        return left

    def left(self) -> list[Change]:
        """The changes of this boot that the journal holds, oldest first.

        A torn last line is skipped: its setting had not been changed yet.
        """
        lines = self._text().split("\n")
        entries = (self._entry(line, number) for number, line in enumerate(lines[:-1], 1))
        return [entry for entry in entries if entry is not None]

    def apply(self, settings: Iterable[tuple[str, str]]) -> None:
        """Change settings; each is journalled first and read back afterwards."""
        for file, value in settings:
            if not SETTINGS.fullmatch(file):
                raise ArmError(
                    f"{file} is not a setting of the scheduler: the host arm changes no others",
                    hint="set it by hand before the run, or use --arm vm",
                )
            if not VALUE.fullmatch(value):
                raise ArmError(f"{value!r} is not a value that can be restored in {file}")
            before = current(file, self._read(file), value)
            if before == value:
                continue
            if not VALUE.fullmatch(before):
                raise ArmError(f"{file} has no {value.removeprefix('NO_')}", hint="`cat` shows what this kernel has")
            change = Change(file, before, value)
            self._keep(change)
            self._write(change.file, change.after)
            now = current(file, self._read(file), value)
            if now != value:
                raise ArmError(
                    f"wrote {value} to {file} and read back {now}", hint="this kernel does not accept the value"
                )

    def restore(self) -> None:
        """Restore everything, the last change first; the journal is removed once all settings are restored."""
        stuck = []
        while self._changes:
            change = self._changes[-1]
            try:
                self._write(change.file, change.before)
            except ArmError as e:
                stuck.append(e.message)
            self._changes.pop()
        if stuck:
            hint = f"{self._path / FILE} keeps the old values; `schedlab doctor --restore` tries again"
            raise OutputError(f"some settings could not be restored: {'; '.join(stuck)}", hint=hint)
        try:
            if self._folder is not None:
                self._folder.remove(FILE)
        except OSError as e:
            raise not_written(f"cannot remove {self._path / FILE}", e) from None

    def close(self) -> None:
        """Release the journal."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def _text(self) -> str:
        try:
            if self._folder is not None:
                return self._folder.read(FILE) or ""
            with Directory.open(self._path) as folder:
                return folder.read(FILE) or ""
        except FileNotFoundError:
            return ""
        except OSError as e:
            raise OutputError(f"cannot read {self._path / FILE}: {reason(e)}") from None

    def _entry(self, line: str, number: int) -> Change | None:
        """One entry; None if it is of another boot, which has reset every setting."""
        try:
            entry = json.loads(line)
            boot, change = entry.pop("boot"), Change(**entry)
            words = [boot, change.file, change.before, change.after]
            if not all(isinstance(word, str) for word in words) or not boot:
                raise ValueError("every field is a string")
            if boot != boot_id(self._root):
                return None
            if not (SETTINGS.fullmatch(change.file) and VALUE.fullmatch(change.before)):
                raise ValueError(f"{change.file} = {change.before} is not a setting of the scheduler")
        except (ValueError, TypeError, AttributeError, KeyError) as e:
            why = f"there is no {e}" if isinstance(e, KeyError) else str(e)
            raise UnsafeError(
                f"schedlab did not write this entry, and nothing was restored: {why}",
                hint="restore the valid entries by hand, then remove the file",
                file=str(self._path / FILE),
                line=number,
            ) from None
        return change

    def _keep(self, change: Change) -> None:
        boot = boot_id(self._root)
        if not boot:
            raise ArmError(
                "the kernel does not identify this boot (/proc/sys/kernel/random/boot_id): nothing was changed",
                hint="without it, a later start cannot determine whether the change is still in effect",
            )
        if self._folder is None:
            raise OutputError("the journal is not open; nothing was changed", hint="this is a bug in schedlab")
        try:
            with self._folder.append(FILE) as stream:
                stream.write(json.dumps({**asdict(change), "boot": boot}) + "\n")
        except OSError as e:
            where = self._path / FILE
            raise OutputError(f"cannot write the journal {where}: {reason(e)}; nothing was changed") from None
        self._changes.append(change)

    def _read(self, file: str) -> str:
        try:
            with os.fdopen(open_below(self._root, file, os.O_RDONLY), encoding="utf-8", errors="replace") as stream:
                return stream.read()
        except OSError as e:
            raise cannot("read", file, e) from None

    def _write(self, file: str, value: str) -> None:
        try:
            # Without O_CREAT: a setting that this kernel lacks must not become a file.
            descriptor = open_below(self._root, file, os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(descriptor, value.encode())
            finally:
                os.close(descriptor)
        except OSError as e:
            raise cannot(f"write {value} to", file, e) from None


def current(file: str, text: str, value: str) -> str:
    """What must be written to `file`, whose text is `text`, to leave it as it is.

    Of a file of features, that is the state of the feature that `value` switches.
    """
    if file.endswith(("/features", "/sched_features")):
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
        hint = "run as root" if os.geteuid() else "the kernel is locked down, so not even root may write it"
    elif error.errno == errno.EINVAL:
        hint = "the kernel does not accept this value, at least not with the other settings as they are"
    elif error.errno in (errno.ELOOP, errno.ENOTDIR):
        hint = "a component of the path is a symbolic link, or not a directory"
    return ArmError(f"cannot {what} {file}: {reason(error)}", hint=hint)
