"""The native rows of this user: the cache directory, and what is recorded about each row."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from schedlab.errors import InputError, RunError, not_written
from schedlab.private import Directory
from schedlab.spelling import nearest

META = "row.json"
PROGRAM = "scheduler"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True)
class Row:
    """A kernel's scheduler as a program that has passed its checks."""

    name: str
    release: str
    origin: str
    """The tree's path, or the package with its version."""
    key: str
    """The hash of the sources, the shim, the configuration and the compiler."""
    compiler: str
    hz: int
    folder: str

    @property
    def program(self) -> Path:
        """The executable."""
        return Path(self.folder) / f"{PROGRAM}-{self.key[:16]}"


def directory() -> Path:
    """The cache of native rows."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "schedlab" / "native"


def opened() -> Path:
    """The cache, created if needed; nobody else can write it, since what is in it is executed."""
    path = directory()
    try:
        with Directory.open(path, create=True):
            return path
    except OSError as e:
        raise not_written(f"cannot keep native rows in {path}", e) from None


def check_name(name: str) -> str:
    """A name is part of a path."""
    if not NAME.fullmatch(name):
        raise InputError(f'"{name}" is no name of a native row', hint="letters, digits, and . _ + - after the first")
    return name


def every() -> list[Row]:
    """All rows, by name."""
    if not directory().is_dir():
        return []
    return [row for path in sorted(opened().glob(f"*/{META}")) if (row := _read(path)) is not None]


def find(name: str) -> Row:
    """The row of this name.

    Raises:
        InputError: there is none, or its program is gone.
    """
    names = {row.name: row for row in every()}
    if name not in names:
        near = nearest(name, list(names))
        meant = f"did you mean {near}?" if near else "`schedlab kernel build TREE` makes one"
        raise InputError(f'no native row is called "{name}"', hint=meant)
    if not names[name].program.is_file():
        hint = f"`schedlab kernel build {names[name].origin.split()[0]}` builds it again"
        raise InputError(f"the program of the native row {name} is gone", file=str(names[name].program), hint=hint)
    return names[name]


def keep(row: Row) -> None:
    """Record the row; until then nothing uses its program."""
    path = Path(row.folder) / META
    part = path.with_suffix(".part")
    try:
        part.write_text(json.dumps(asdict(row), indent=1, sort_keys=True) + "\n")
        os.replace(part, path)
        for old in Path(row.folder).glob(f"{PROGRAM}-*"):
            if old != row.program:
                old.unlink()
    except OSError as e:
        raise not_written("cannot store the native row", e, file=str(path)) from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One build of a row at a time."""
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as e:
        raise not_written("cannot build", e, file=str(folder)) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f"another build of {folder.name} is under way", hint="wait for its end") from None
        yield


def _read(path: Path) -> Row | None:
    try:
        return Row(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
