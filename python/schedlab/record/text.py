"""Puts a header on a recorded text and ends it where the first of the CPUs' buffers was full.

A full buffer takes nothing more, while those of other CPUs go on: after that, events are missing.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

RECORD = re.compile(rb"^.{16}-\d+ +(?:\(.{7}\) )?\[(\d+)\] \S+ +(\d+\.\d+): ")


@dataclass(frozen=True, slots=True)
class Whole:
    """The complete text."""

    path: Path
    records: int
    cut: bool
    """Whether the text ends before the recording did because a buffer was full."""


def whole(raw: Path, out: Path, head: Iterable[str], records: int = 0) -> Whole:
    """Copy `raw` (gzip or plain) to `out` behind comment lines; `records` limits how many, 0 does not."""
    end, written = _end(raw), 0
    with _open(raw) as text, out.open("wb") as to:
        to.writelines(f"# {words}\n".encode() for words in head)
        for line in text:
            if not line.startswith(b"#"):
                if (records and written == records) or (end is not None and _stamp(line) > end):
                    break
                written += 1
            to.write(line)
    return Whole(out, written, end is not None)


def _end(raw: Path) -> float | None:
    """The time of the last event of the CPU whose buffer was full first."""
    full: dict[int, float] = {}
    with _open(raw) as text:
        for line in text:
            if dropped := re.match(rb"# dropped (\d+) ", line):
                full[int(dropped[1])] = 0.0
            elif full and (record := RECORD.match(line)) and int(record[1]) in full:
                full[int(record[1])] = float(record[2])
            elif not full and not line.startswith(b"#"):
                return None
    return min(full.values(), default=None)


def _stamp(line: bytes) -> float:
    record = RECORD.match(line)
    return float(record[2]) if record else 0.0


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if zipped else path.open("rb")  # type: ignore[return-value]
