"""Adds runs to an experiment on disk. A thread of its own syncs them, so that no run waits for the disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from schedlab.errors import InputError, OutputError, not_written
from schedlab.lines import Busy, Lines
from schedlab.sweeping.plan import Plan
from schedlab.sweeping.store import describe, statuses


class Writer:
    """Several shards may write to one directory at the same time, each to a file of its own."""

    def __init__(
        self, path: Path, plan: Plan, provenance: Mapping[str, Any], shard: tuple[int, int] | None = None
    ) -> None:
        name = "results.jsonl" if shard is None else f"shards/{shard[0]}of{shard[1]}.jsonl"
        self.path, self.file = path, path / name
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._lines = Lines(self.file)
            try:
                self._lines.cut()
                self.ended = statuses(path)
                describe(path, plan, provenance)
                _sync_folder(self.file.parent)
            except BaseException:
                self._lines.close()
                raise
        except Busy:
            hint = "choose another directory with --out, or run different shards"
            raise InputError(f"another schedlab is writing to {self.file}", hint=hint) from None
        except OSError as e:
            hint = "choose another directory with --out"
            raise not_written(f"cannot keep runs in {path}", e, then=hint) from None
        self._changed = threading.Condition()
        self._written = self._synced = 0
        self._trouble: OSError | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._sync, daemon=True)
        self._thread.start()

    def append(self, line: bytes) -> None:
        """Add one line, which survives the end of this process; `synced` counts those that a power cut cannot take."""
        self._check()
        try:
            self._lines.add(line)
        except OSError as e:
            raise self._error(e) from None
        with self._changed:
            self._written += 1
            self._changed.notify_all()

    @property
    def synced(self) -> int:
        """How many of the added lines are on the disk."""
        self._check()
        return self._synced

    def sync(self) -> None:
        """Wait until every line is on the disk."""
        with self._changed:
            self._changed.wait_for(lambda: self._synced == self._written or self._trouble)
        self._check()

    def close(self) -> None:
        """Write what was added to the disk; callers call `sync` first, which raises the errors."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self._lines.close()

    def _sync(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._written > self._synced or self._closing)
                goal = self._written
                if goal == self._synced:
                    return
            try:
                self._lines.sync()
            except OSError as e:
                with self._changed:
                    self._trouble = e
                    self._changed.notify_all()
                return
            with self._changed:
                self._synced = goal
                self._changed.notify_all()

    def _check(self) -> None:
        if self._trouble:
            raise self._error(self._trouble)

    def _error(self, e: OSError) -> OutputError:
        hint = "the runs before it are kept; the same command resumes"
        return not_written(f"cannot add to {self.file}", e, then=hint)


def _sync_folder(folder: Path) -> None:
    """The names of new files survive a power cut as well."""
    with suppress(OSError):  # not every file system can do it
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
